"""caching: which arrays go through shared memory, and taking them out again (DESIGN section 5).

``accept --> refuse``::

    meta_schedule cache(a, c) { ... }   -->   meta_schedule cache() { ... }

The accept side of the counter keeps the arrays; the strategy, on the refuse side, takes all of them out at once.
Without a ``cache`` clause ``with_cached_arrays`` decides beforehand, by reuse between threads and by coalescing
(``strategies.window_worth``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import LeftOut, UnknownSizeError, block_memory
from metafork.analysis.memory.flat_rows import with_rows
from metafork.analysis.memory.private_windows import left_in_global_memory
from metafork.analysis.references import Reference
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.program import Array, BlockArray, Program, Version, walk_statements
from metafork.strategies.hints import bounded_loop_hints, chosen_index_hint
from metafork.strategies.strategy import Applied, Effect, NotApplied, Remark, Sign, Strategy, after
from metafork.strategies.window_worth import Growth, Served, worth_of
from metafork.transform.directive import Schedule
from metafork.transform.placement import Cache, Delinearize, Uncache


class Caching(Strategy, frozen=True):
    """Take every cached array out of shared memory.

    ``meta_schedule cache(a) {...}  -->  meta_schedule cache() {...}``.  Legal always: the kernel then reads and writes
    global memory where the program says so.  Arrays declared at block level stay: they have no other home.
    """

    name: str = "caching"
    improves: frozenset[str] = frozenset({"shared_memory", "occupancy"})
    by_choice: ClassVar[bool] = True
    sign: ClassVar[Sign] = Sign("4b")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version without cached arrays."""
        cached = version.program.mapping.cached
        if not cached:
            return NotApplied("no array goes through shared memory")
        note = f"took {', '.join(cached)} out of shared memory"
        effect = Effect(without_shared_memory(version.program, cached), of_memory=True, while_empty=True)
        return after(version, tuple(map(Uncache, cached)), analyses, note, effect)


STRATEGY = Caching()


def to_be_tried(program: Program, strategies: Sequence[Strategy]) -> list[Strategy]:
    """Return the strategies that the program, as it was read, leaves to be tried: a cache clause decides alone."""
    return [strategy for strategy in strategies if not (program.mapping.decided and strategy.caches)]


def without_shared_memory(program: Program, taken_out: Sequence[str]) -> str:
    """Name a program whose cached arrays were taken out: arrays of the block may be left in shared memory."""
    if any(isinstance(stmt, BlockArray) for stmt in walk_statements(program.body)):
        return f"{', '.join(taken_out)} not in shared memory"
    return "no shared memory"


class CachingChoice(Struct, frozen=True):
    """The program with its cached arrays chosen, by directives, and a remark on each array that says why."""

    program: Program
    remarks: tuple[Remark, ...]
    schedule: Schedule = ()

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """The remarks as (array, sentence) pairs."""
        return tuple((remark.subject, _sentence(remark)) for remark in self.remarks)


def _sentence(remark: Remark) -> str:
    if remark.topic == "registers":
        return f"kept in registers: {remark.reason}"
    return f"cached: {remark.reason}" if remark.taken else f"not cached: {remark.reason}"


def with_cached_arrays(program: Program, analyses: Analyses | None = None) -> CachingChoice:
    """Decide which arrays go through shared memory at the start of the case discussion.

    A ``cache`` clause decides by itself.  Without one, an array is cached when threads share its elements (an index
    does not tell neighbours apart, or references of neighbours overlap), or when neighbours in x touch elements that
    are not neighbours in memory.  A window that grows with the data is not taken up unless the clause asks for it.
    """
    analyses = analyses or Analyses()
    rows = with_rows(program, analyses)
    split = () if rows is program else (Delinearize(),)
    program = rows
    asked = program.mapping.cached if program.mapping.decided else ()
    kept: tuple[str, ...] = ()
    try:
        left = {one.array: one for one in block_memory(program, analyses).left_out} if asked else {}
        kept = tuple(name for name in asked if name not in left)
        private = _private(program.mapped(cached=kept), analyses)
        remarks = [
            _asked(program, array, left.get(array.name), analyses)
            if array.name in asked
            else Remark("shared memory", array.name, False, _VIEW, array.span)
            if array.whole
            else _alone(array, private[array.name])
            if array.name in private
            else _judged(program, array, analyses)
            for array in program.arrays
        ]
    except UnknownSizeError as reason:
        unknown = Remark("shared memory", "shared memory", False, str(reason), program.span)
        return CachingChoice(program.mapped(cached=(), decided=True), (unknown,), (*split, *map(Uncache, asked)))
    if program.mapping.decided:
        remarks = [_left_to_the_clause(remark, asked) for remark in remarks]
    else:
        kept = tuple(remark.subject for remark in remarks if remark.topic == "shared memory" and remark.taken)
    remarks = [_with_clause(remark, kept) for remark in remarks]
    left_out = (Uncache(name) for name in asked if name not in kept)
    schedule = (*split, *left_out, *(Cache(name) for name in kept if name not in asked))
    return CachingChoice(program.mapped(cached=kept, decided=True), tuple(remarks), schedule)


_VIEW = "it is the part of one type of structures of several, whose copy would hold parts of others"


def _private(program: Program, analyses: Analyses) -> dict[str, Reference]:
    """Return the arrays of which a thread keeps its elements in registers, each with an access to it."""
    return {
        window.array.name: window.references[0]
        for plan in block_memory(program, analyses).paths
        for window in plan.private
    }


def _alone(array: Array, access: Reference) -> Remark:
    reason = "each thread is alone with its elements"
    return Remark("registers", array.name, True, reason, array.span, access.element.span)


def _asked(program: Program, array: Array, left: LeftOut | None, analyses: Analyses) -> Remark:
    """Remark on an array that the clause names."""
    if left is None:
        span = _first_access(program, array, analyses)
        return Remark("shared memory", array.name, True, "the cache clause asks for it", array.span, span)
    return _refused(program, array, left, analyses)


def _first_access(program: Program, array: Array, analyses: Analyses) -> Span:
    found = analyses.references(program, analyses.facts(program))
    return next((access.element.span for access in found if access.array == array.name), NOWHERE)


def _refused(program: Program, array: Array, left: LeftOut, analyses: Analyses) -> Remark:
    fault = NOWHERE if left.access is None else left.access.element.span
    bounded = bounded_loop_hints(program, left.loop) if left.loop else ()
    hint = next((text for text, written in bounded if _taken(written, array, analyses)), "")
    if left.access is not None and not left.access.writes and (left.access.wrapped or None in left.access.indices):
        found = chosen_index_hint(program, left.access)
        hint = found[0] if found is not None and _taken(found[1], array, analyses) else ""
    return Remark("shared memory", array.name, False, left.reason, array.span, fault, hint)


def _taken(program: Program, array: Array, analyses: Analyses) -> bool:
    """Say whether an array goes through shared memory in a program: by its clause, or because that is worth it."""
    if block_memory(program.mapped(cached=(array.name,)), analyses).left_out:
        return False
    if array.name in program.mapping.cached:
        return True
    return not program.mapping.decided and _judged(program, array, analyses).taken


def _judged(program: Program, array: Array, analyses: Analyses) -> Remark:
    """Decide on one array that is in no clause; the hint of one that the clause would get in is its name alone."""
    memory = block_memory(program.mapped(cached=(array.name,)), analyses)
    if memory.left_out:
        return _refused(program, array, memory.left_out[0], analyses)
    worth = worth_of(memory, Growth.of(program, analyses), analyses)
    if isinstance(worth, Served):
        span = worth.access.element.span
        return Remark("shared memory", array.name, False, worth.reason, array.span, span)
    if worth is None:
        why = "neighbours share no element of it, and their accesses coalesce"
        plans = block_memory(program, analyses).paths
        prover = analyses.prover(memory.facts.constraints, memory.facts.derived)
        left = [left_in_global_memory(plan.program, prover, plan.references).get(array.name) for plan in plans]
        why = "; and ".join([why, *dict.fromkeys(reason for reason in left if reason)])
        fault = _first_access(program, array, analyses)
        return Remark("shared memory", array.name, False, why, array.span, fault)
    why, access, grows = worth
    if grows:
        why = "a block's window of it grows with the data"
    hint = array.name if grows else ""
    return Remark("shared memory", array.name, not grows, why, array.span, access.element.span, hint)


def _left_to_the_clause(remark: Remark, asked: Sequence[str]) -> Remark:
    """Remark on an array where there is a clause."""
    if remark.subject in asked or remark.topic == "registers":
        return remark
    if not remark.taken:
        hint = remark.hint if remark.hint == remark.subject else ""
        return replace(remark, reason=f"the cache clause leaves it out, and {remark.reason}", hint=hint)
    return replace(remark, taken=False, reason=f"the cache clause leaves it out, but {remark.reason}",
                   hint=remark.subject)  # fmt: skip


def _with_clause(remark: Remark, kept: Sequence[str]) -> Remark:
    """Write the clause out where a hint is the name of the array that it would add."""
    if remark.hint != remark.subject:
        return remark
    return replace(remark, hint=f"add cache({', '.join((*kept, remark.subject))})")
