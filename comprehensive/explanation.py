"""Why a schedule is cached, kept in registers and given to the grid as it is: the remarks of its strategies."""

from __future__ import annotations

from collections.abc import Sequence

from metafork.analysis.analyses import Analyses
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
    remarks = list(choice.remarks)
    for strategy in strategies:
        if not strategy.on_ir:
            remarks += strategy.apply(start, analyses).remarks
    return tuple(dict.fromkeys(remarks))
