"""Why a schedule is cached, kept in registers and given to the grid as it is: the remarks of its strategies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.thread_arrays import thread_arrays
from metafork.comprehensive.case_discussion.order import ByCost, at_its_leaf
from metafork.ir.messages.source import NOWHERE
from metafork.ir.program import Program, Version
from metafork.strategies.caching import CachingChoice, to_be_tried, with_cached_arrays
from metafork.strategies.strategy import Applied, Remark, Strategy

_HINT = "--order paper puts the leaves with it first"


def explanation(
    program: Program, strategies: Sequence[Strategy], analyses: Analyses, order: ByCost | None = None
) -> tuple[Remark, ...]:
    """Return what the choice of cached arrays and each strategy remark on a program as the input has it."""
    return explained(with_cached_arrays(program, analyses), to_be_tried(program, strategies), analyses, order)


def explained(
    choice: CachingChoice, strategies: Sequence[Strategy], analyses: Analyses, order: ByCost | None
) -> tuple[Remark, ...]:
    """Return the remarks on a program whose cached arrays were chosen, and whose leaves are put in ``order``.

    Strategies on the LLVM IR are left aside: they take up neither arrays nor loops.
    """
    start = Version(choice.program)
    remarks = [*_ordered(choice, strategies, analyses, order), *_own_arrays(choice.program), *_tables(choice.program)]
    own = [one for strategy in strategies if not strategy.on_ir for one in analyses.of(strategy.apply, start).remarks]
    taken = {(one.topic, one.subject) for one in own if one.taken}
    remarks = [one for one in remarks if one.taken or (one.topic, one.subject) not in taken]
    return tuple(dict.fromkeys((*remarks, *own)))


def _own_arrays(program: Program) -> Iterator[Remark]:
    """Say which arrays of the threads stand in registers."""
    for name, one in thread_arrays(program).arrays.items():
        fault = NOWHERE if one.fault is None else one.fault.span
        reason = one.reason or "every index is a number once the loops around it are unrolled"
        hint = f"index {name} by numbers and by what counts between numbers" if one.fault is not None else ""
        yield Remark("registers", name, one.in_registers, reason, one.array.span, fault, hint)


def _tables(program: Program) -> Iterator[Remark]:
    """Say which constant arrays of the file are in constant memory."""
    for table in program.tables:
        reason = f"its {len(table.values)} values stand in the text, and all threads of a warp read the same one"
        yield Remark("constant memory", table.array.name, True, reason, table.array.span)
    for array in program.arrays:
        if array.in_global:
            yield Remark("constant memory", array.name, False, array.in_global, array.span)


def _ordered(
    choice: CachingChoice, strategies: Sequence[Strategy], analyses: Analyses, order: ByCost | None
) -> list[Remark]:
    """Return the remarks on arrays; of those that the leaf put first does not have in shared memory, they say why."""
    remarks, cached = list(choice.remarks), choice.program.mapping.cached
    if order is None:
        return remarks
    start = Version(choice.program)
    for strategy in strategies:
        applied = analyses.of(strategy.apply, start) if strategy.by_choice else None
        if not isinstance(applied, Applied):
            continue
        taken_out = set(cached) - set(applied.version.program.mapping.cached)
        precedence = order.precedence(applied.version, [start])
        if precedence.first:
            others = [at_its_leaf(start, strategies, analyses, proposing) for proposing in (False, True)]
            precedence = order.precedence(at_its_leaf(applied.version, strategies, analyses, False), others)
        if precedence.first:
            remarks = [
                replace(one, taken=False, reason=f"{one.reason}, but without it {precedence.reason}", hint=_HINT)
                if one.topic == "shared memory" and one.taken and one.subject in taken_out
                else one
                for one in remarks
            ]
            break
    return remarks
