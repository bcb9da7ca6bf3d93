"""Proofs that iterations do not conflict: each pair of accesses of one path, taken as those of two iterations.

Whether the two may meet is asked of ``metafork.analysis.dependence``: blocks have nothing in common but parameters, the
threads of a block have its grid variables and, between two barriers, all that the block computes once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, Polynomial
from metafork.algebra.prover import Prover
from metafork.analysis.cfg.source_cfg import UniformPath
from metafork.analysis.dependence.equations import Multiples
from metafork.analysis.dependence.instances import Instances
from metafork.analysis.dependence.overlap import Overlaps, conflicting
from metafork.analysis.opaque_references import references_with_opaque
from metafork.analysis.references import Reference
from metafork.analysis.values.conditions import together
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.analysis.values.scope import Facts, Scope
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
        decided = together(scope, path.conditions)
        accesses, of_guards, opaque = references_with_opaque(path.program, facts)
        quotients = tuple(dict.fromkeys((*scope.derived[len(facts.derived) :], *of_guards)))
        known = [*facts.constraints, *decided.constraints]
        known += [constraint for quotient in quotients for constraint in quotient.constraints()]
        self._accesses = Multiples(known).tightened_where(accesses)
        numbers: dict[tuple[object, ...], int] = {}
        self._said = {
            one.number: numbers.setdefault((*_what(one), *(guard.meaning for guard in one.guards)), one.number)
            for one in self._accesses
        }
        """For each access the first one of which the same is known."""
        self._unguarded = _without_own_conditions(self._accesses, self._said)
        self._apart: set[tuple[int, int, RaceKind]] = set()
        self._plain: dict[tuple[int, int, RaceKind], bool] = {}
        self._overlaps = Overlaps(
            [one for one in self._accesses if self._said[one.number] == one.number],
            Prover(known, (*facts.derived, *quotients)),
            decided.alternatives,
            opaque,
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
        only: str | None = None,
    ) -> Iterator[Unproved]:
        """Yield the pairs that are not proved apart, perhaps ``only`` of one array; ``thorough`` asks the solvers too.

        Nothing is asked about arrays that are known to race in that way, and about accesses that are vouched for.
        """
        global_arrays = {array.name for array in self._program.arrays}
        told: set[tuple[RaceKind, str, bool]] = set()
        for first, second in self._pairs(promises):
            if only is not None and first.array != only:
                continue
            for kind in kinds:
                if kind is RaceKind.GRID:
                    may_meet = first.array in global_arrays
                else:
                    may_meet = first.phase is not None and first.phase == second.phase
                compared = _comparable(first, second)
                pair = (kind, first.array, compared)
                if not may_meet or pair[:2] in refuted or pair in told:
                    continue
                if not self._disjoint(first, second, kind, thorough=thorough):
                    told.add(pair)
                    yield Unproved(kind, first, second, compared)

    def _pairs(self, promises: Collection[Promise]) -> Iterator[tuple[Reference, Reference]]:
        """Yield the pairs of accesses of which one writes, one access for all that say the same and do the same."""
        written = {access.array for access in self._accesses if access.writes}
        unlike: dict[tuple[int, bool, str], Reference] = {}
        for access in self._accesses:
            if access.array in written and not any(_is_about(promise, access) for promise in promises):
                unlike.setdefault((self._said[access.number], access.writes, access.atomic), access)
        return conflicting(list(unlike.values()))

    def _disjoint(self, first: Reference, second: Reference, kind: RaceKind, *, thorough: bool) -> bool:
        """Say whether two accesses are proved apart; what was proved once is not asked again.

        Where many accesses differ in their conditions only, one is asked about first that has those of all.
        """
        ends = [self._said[first.number], self._said[second.number]]
        pair = (min(ends), max(ends), kind)
        if pair in self._apart:
            return True
        if ends[0] == ends[1]:
            second = first
        one, other = self._unguarded.get(ends[0], first), self._unguarded.get(ends[1], second)
        if one is not first or other is not second:
            asked = (one.number, other.number, kind)
            if asked not in self._plain:
                self._plain[asked] = bool(
                    self._overlaps.overlap(one, other, _instances(one, other, kind), thorough=False)
                )
            if self._plain[asked]:
                return True
        if not self._overlaps.overlap(first, second, _instances(first, second, kind), thorough=thorough):
            return False
        self._apart.add(pair)
        return True


MANY_CONDITIONS = 3
"""Accesses that differ in their conditions only, for one more that has no others than all of them have."""


def _without_own_conditions(accesses: Sequence[Reference], said: Mapping[int, int]) -> dict[int, Reference]:
    """Return, by what is said of them, accesses with the conditions only that many more with their elements have."""
    alike: dict[tuple[object, ...], dict[int, Reference]] = {}
    for access in accesses:
        alike.setdefault(_what(access), {}).setdefault(said[access.number], access)
    found: dict[int, Reference] = {}
    for those in alike.values():
        if len(those) >= MANY_CONDITIONS:
            first, *others = those.values()
            common = tuple(one for one in first.guards if all(one in other.guards for other in others))
            found |= dict.fromkeys(those, replace(first, guards=common))
    return found


def _what(access: Reference) -> tuple[object, ...]:
    """Return all that says which elements an access touches, but its conditions."""
    indices, loops = access.indices, access.loops
    own = {loop.var: Polynomial.symbol(f" {axis}") for axis, loop in (*access.distances, *access.turns)}
    if own:
        indices = tuple(None if index is None else index.substitute(own) for index in indices)
        loops = tuple(loop.renamed(own) for loop in loops)
    return access.array, indices, loops, access.clamped, access.wrapped, access.bounded, access.phase


def _comparable(first: Reference, second: Reference) -> bool:
    """Say whether an index is known of both accesses."""
    return any(a is not None and b is not None for a, b in zip(first.indices, second.indices, strict=True))


def _is_about(promise: Promise, access: Reference) -> bool:
    span, element = promise.span, access.element.span
    return promise.array == access.array and span.start <= element.start and element.end <= span.end


def _instances(first: Reference, second: Reference, kind: RaceKind) -> Instances:
    """Return which loops have one iteration for both accesses, and which may not all have one."""
    if kind is RaceKind.GRID:
        # A symbol that was decoded from grid variables differs only where one of those does.
        grid = _differing(loop for loop in first.loops if loop.kind is LoopKind.GRID and loop.dense)
        return Instances(frozenset(), grid)
    outside = (LoopKind.GRID, LoopKind.BLOCK)
    same = frozenset(loop.var for loop in first.loops if loop.kind in outside and loop in second.loops)
    threads = _differing(loop for loop in first.loops if loop.kind is LoopKind.THREAD)
    return Instances(same, threads, one_stretch=True)


def _differing(loops: Iterable[LoopRange]) -> tuple[str, ...]:
    """Return the symbols that can differ: those of loops of one iteration only where there is no other one."""
    loops = tuple(loops)
    several = tuple(loop.var for loop in loops if loop.trips != ONE)
    return several or tuple(loop.var for loop in loops)
