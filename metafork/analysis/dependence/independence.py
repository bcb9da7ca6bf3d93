"""Are the iterations of a serial loop independent, so that they may run in any order and in different blocks?

``iterations_independent(program, k)`` asks whether, within one point of the grid, an element that one iteration of the
loop ``k`` writes may be touched by another iteration.  What needs no proof, because ``meta_for`` promises it:

- points of the grid touch nothing of each other's that is written, whatever their iterations of ``k``;
- within one phase, between two barriers, threads touch nothing of each other's that is written.

So two accesses are compared for k < k' and k' < k, at one grid point, and at one thread where both stand in one
phase that no block-level loop repeats (``k`` itself included); otherwise at any two threads, for a barrier between
the two may order them today.  All other loop variables are free on both sides.

Atomic updates of one kind may meet: they give the same in any order.  Whether others may is asked of
``metafork.analysis.dependence``.  Uniform conditions are decided path by path before (Figure 7's ``t % 2``).
"""

from __future__ import annotations

from msgspec import Struct

from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from metafork.analysis.cfg.source_cfg import UniformPath, uniform_paths
from metafork.analysis.dependence.instances import Instances
from metafork.analysis.dependence.overlap import Overlaps, conflicting
from metafork.analysis.references import Reference
from metafork.analysis.values.conditions import together
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir.program import Declare, Element, For, Program, Stmt, parts_of, walk_statements


class Independence(Struct, frozen=True):
    """Whether iterations are independent; where that is not proved, why, and the access at fault."""

    verdict: Verdict
    reason: str = ""
    access: Reference | None = None

    def __bool__(self) -> bool:
        """Whether they are proved to be independent."""
        return self.verdict is Verdict.YES


def iterations_independent(
    program: Program, loop: str, analyses: Analyses, private: frozenset[str] = frozenset(), *, within: str | None = None
) -> Independence:
    """Say whether the iterations of the serial loop with variable ``loop`` are independent.

    Every access to an array that is written stands inside the loop (the caller sees to that), and no local hides
    another name.  ``private`` are block arrays declared inside the loop: each iteration has its own.  Where iterations
    stay ``within`` a loop, itself or one around it, what stands outside of that comes before or behind all of it, and
    is not asked for; nor are different iterations of the loops around it.  A NO or an UNKNOWN says in ``reason`` which
    accesses are at fault.
    """
    facts = analyses.facts(program)
    for path in uniform_paths(program):
        found = _on_path(path, analyses, facts, loop, private, within)
        if not found:
            return found
    return Independence(Verdict.YES)


def _on_path(
    path: UniformPath, analyses: Analyses, facts: Facts, loop: str, private: frozenset[str], within: str | None
) -> Independence:
    accesses = analyses.references(path.program, facts)
    if within is not None:
        accesses = tuple(access for access in accesses if _range_of(access, loop) is not None)
        if not accesses and any(_touches(stmt, loop) for stmt in walk_statements(path.program.body)):
            return Independence(Verdict.UNKNOWN, f"what the loop over {loop} touches is not known")
    written = {access.array for access in accesses if access.writes} - private
    accesses = tuple(access for access in accesses if access.array in written)
    decided = together(Scope.of(facts), path.conditions)
    prover = analyses.prover((*facts.constraints, *decided.constraints), facts.derived)
    overlaps = Overlaps(accesses, prover, decided.alternatives)
    seen = set()
    for first, second in conflicting(accesses):
        key = tuple((access.array, access.indices, *_circumstances(access)) for access in (first, second))
        if key in seen:
            continue
        seen.add(key)
        verdict, reason = _compared(first, second, loop, overlaps, within)
        if verdict is not Verdict.YES:
            return Independence(verdict, reason, _at_fault(first, second, loop))
    return Independence(Verdict.YES)


def _touches(stmt: Stmt, loop: str) -> bool:
    """Say whether a statement is the loop with that variable, and accesses some array."""
    match stmt:
        case For(init=Declare(name=name), body=body) if name == loop:
            return any(isinstance(part, Element) for part in parts_of(body))
        case _:
            return False


def _compared(
    first: Reference, second: Reference, loop: str, overlaps: Overlaps, within: str | None
) -> tuple[Verdict, str]:
    """Say whether two accesses to one array touch different elements in different iterations, and if not, why."""
    array = first.array
    if _range_of(first, loop) is None or _range_of(second, loop) is None:
        return Verdict.UNKNOWN, f"{array} is touched outside the loop over {loop}"
    # Both happen wherever their loops run, so that a common element is a conflict.
    certain = all(access.bounded and not access.guards for access in (first, second))
    known = [index for index in first.indices if index is not None and loop not in index.symbols]
    one_place = first.indices == second.indices and first.loops == second.loops
    if one_place and len(known) == len(first.indices):
        return Verdict.NO if certain else Verdict.UNKNOWN, f"iterations of {loop} touch one element of {array}"
    meeting = overlaps.overlap(first, second, _instances(first, second, loop, within))
    if meeting:
        return Verdict.YES, ""
    if None in (*first.indices, *second.indices):
        return Verdict.UNKNOWN, f"an index of {array} is no known polynomial"
    where = f"iterations of {loop} may touch one element of {array}"
    if meeting.disjoint is Verdict.NO:
        return Verdict.NO if certain else Verdict.UNKNOWN, where
    return Verdict.UNKNOWN, f"it is not proved that no two {where}"


def _instances(first: Reference, second: Reference, loop: str, within: str | None) -> Instances:
    """Return two points of one block, and of one thread where no barrier stands between the accesses."""
    # A loop of unknown shape is no part of ``loops``; it may stand at block level.
    one_thread = (
        first.phase == second.phase
        and first.phase is not None
        and first.bounded
        and second.bounded
        and all(range_.kind is not LoopKind.BLOCK for range_ in (*first.loops, *second.loops))
    )
    kinds = (LoopKind.GRID, LoopKind.THREAD) if one_thread else (LoopKind.GRID,)
    names = [range_.var for range_ in second.loops]
    around = names[: names.index(within)] if within in names else []
    return Instances(frozenset([*around, *(one.var for one in second.loops if one.kind in kinds)]), (loop,))


def _at_fault(first: Reference, second: Reference, loop: str) -> Reference:
    """Return the access of two that says more of why they may meet."""
    for access in (first, second):
        if _range_of(access, loop) is None or None in access.indices:
            return access
    return second if second.writes else first


def _circumstances(access: Reference) -> tuple[object, ...]:
    return (access.loops, access.guards, access.bounded, access.phase)


def _range_of(access: Reference, loop: str) -> LoopRange | None:
    return next((range_ for range_ in access.loops if range_.var == loop), None)
