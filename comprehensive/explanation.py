"""Why a schedule is cached, kept in registers and given to the grid as it is: the remarks of its strategies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.thread_arrays import thread_arrays
from metafork.ir.messages.source import NOWHERE
from metafork.ir.program import Program, Version
from strategies.caching import CachingChoice, with_cached_arrays
from strategies.strategy import Remark, Strategy


def explanation(program: Program, strategies: Sequence[Strategy], analyses: Analyses) -> tuple[Remark, ...]:
    """Return what the choice of cached arrays and each strategy remark on a program as the input has it."""
    return explained(with_cached_arrays(program, analyses), strategies, analyses)


def explained(choice: CachingChoice, strategies: Sequence[Strategy], analyses: Analyses) -> tuple[Remark, ...]:
    """Return the remarks on a program whose cached arrays were chosen.

    Strategies on the LLVM IR are left aside: they take up neither arrays nor loops.
    """
    start = Version(choice.program)
    remarks = [*choice.remarks, *_own_arrays(choice.program)]
    for strategy in strategies:
        if not strategy.on_ir:
            remarks += strategy.apply(start, analyses).remarks
    return tuple(dict.fromkeys(remarks))


def _own_arrays(program: Program) -> Iterator[Remark]:
    """Say which arrays of the threads stand in registers."""
    for name, one in thread_arrays(program).arrays.items():
        fault = NOWHERE if one.fault is None else one.fault.span
        reason = one.reason or "every index is a number once the loops around it are unrolled"
        hint = f"index {name} by numbers and by what counts between numbers" if one.fault is not None else ""
        yield Remark("registers", name, one.in_registers, reason, one.array.span, fault, hint)
