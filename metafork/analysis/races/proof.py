"""Proofs that iterations do not conflict: each pair of accesses of one path, taken as those of two iterations.

Whether the two may meet is asked of ``metafork.analysis.meeting``: blocks have nothing in common but parameters, the
threads of a block have its grid variables and, between two barriers, all that the block computes once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum

from msgspec import Struct

from metafork.algebra.polynomial import ONE, Polynomial
from metafork.algebra.prover import Prover
from metafork.analysis.cfg.source_cfg import UniformPath
from metafork.analysis.conditions import meaning
from metafork.analysis.facts import Facts, Scope
from metafork.analysis.hidden_references import references_with_hidden
from metafork.analysis.loop_ranges import LoopKind, LoopRange
from metafork.analysis.meeting.meeting import Meetings
from metafork.analysis.meeting.points import Points
from metafork.analysis.references import Reference
from metafork.ir.translation_unit import Promise

MOST_QUESTIONS = 12
"""Pairs of accesses, for each path, about which the solvers are asked."""


class RaceKind(Enum):
    """Which iterations conflict."""

    GRID = "grid"
    THREADS = "threads"


class Unproved(Struct, frozen=True):
    """A pair of accesses of which it is not known whether it is a race.

    ``compared`` is false where there is nothing to compare: no index is known of both accesses.
    """

    kind: RaceKind
    first: Reference
    second: Reference
    compared: bool


class AccessPairs:
    """Compares the accesses of one path pair by pair.

    A path with conditions on grid variables is one of a block: only races of threads are then asked about.
    """

    def __init__(self, path: UniformPath, facts: Facts, deadline: float | None = None) -> None:
        self._program = path.program
        scope = Scope.of(facts)
        for loop in path.program.grid:
            scope.values[loop.var] = Polynomial.symbol(loop.var)
            scope.ranges.enter(loop.var, scope.polynomial(loop.extent))
        decided = [meaning(scope, condition, truth) for condition, truth in path.conditions]
        self._accesses, of_guards, hidden = references_with_hidden(path.program, facts)
        quotients = tuple(dict.fromkeys((*scope.derived[len(facts.derived) :], *of_guards)))
        known = [*facts.constraints, *(constraint for one in decided for constraint in one.constraints)]
        known += [constraint for quotient in quotients for constraint in quotient.constraints()]
        self._apart: set[tuple[int, int, RaceKind]] = set()
        self._meetings = Meetings(
            path.program,
            self._accesses,
            Prover(known, (*facts.derived, *quotients)),
            [choice for one in decided for choice in one.alternatives],
            hidden,
            most_questions=MOST_QUESTIONS,
            deadline=deadline,
        )

    def unproved(
        self,
        kinds: Sequence[RaceKind],
        *,
        thorough: bool,
        refuted: Collection[tuple[RaceKind, str]] = (),
        promises: Collection[Promise] = (),
    ) -> Iterator[Unproved]:
        """Yield the pairs that are not proved apart; ``thorough`` asks the solvers too.

        Nothing is asked about arrays that are known to race in that way, and about accesses that are vouched for.
        """
        written = {access.array for access in self._accesses if access.writes}
        global_arrays = {array.name for array in self._program.arrays}
        for number, first in enumerate(self._accesses):
            for other, second in enumerate(self._accesses[number:], number):
                if first.array != second.array or first.array not in written:
                    continue
                if not (first.writes or second.writes) or first.commutes(second):
                    continue
                if any(_is_about(p, one) for p in promises for one in (first, second)):
                    continue
                for kind in kinds:
                    if kind is RaceKind.GRID:
                        may_meet = first.array in global_arrays
                    else:
                        may_meet = first.phase is not None and first.phase == second.phase
                    if not may_meet or (kind, first.array) in refuted or (number, other, kind) in self._apart:
                        continue
                    meeting = self._meetings.meet(first, second, _points(first, second, kind), thorough=thorough)
                    if meeting:
                        self._apart.add((number, other, kind))
                    else:
                        yield Unproved(kind, first, second, meeting.compared)


def _is_about(promise: Promise, access: Reference) -> bool:
    span, element = promise.span, access.element.span
    return promise.array == access.array and span.start <= element.start and element.end <= span.end


def _points(first: Reference, second: Reference, kind: RaceKind) -> Points:
    """Return which loops have one iteration for both accesses, and which may not all have one."""
    if kind is RaceKind.GRID:
        # A symbol that was decoded from grid variables differs only where one of those does.
        grid = _differing(loop for loop in first.loops if loop.kind is LoopKind.GRID and loop.dense)
        return Points(frozenset(), grid)
    outside = (LoopKind.GRID, LoopKind.BLOCK)
    same = frozenset(loop.var for loop in first.loops if loop.kind in outside and loop in second.loops)
    threads = _differing(loop for loop in first.loops if loop.kind is LoopKind.THREAD)
    return Points(same, threads, one_stretch=True)


def _differing(loops: Iterable[LoopRange]) -> tuple[str, ...]:
    """Return the symbols that can differ: those of loops of one iteration only where there is no other one."""
    loops = tuple(loops)
    several = tuple(loop.var for loop in loops if loop.trips != ONE)
    return several or tuple(loop.var for loop in loops)
