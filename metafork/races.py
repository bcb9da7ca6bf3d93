"""Does a program keep the promise of its ``meta_for``s?  Races of the input, refuted by two iterations or proved away.

Iterations of the grid conflict when they touch one element anywhere in a launch, one of them writing; iterations of
the threads only between two barriers, which stand between phases and between iterations of a block-level loop
(LANGUAGE, "Refused").

*Refutation*: at a few small parameter values that Start allows, every iteration is played through and its accesses are
noted; a conflict is a race with its two iterations as witness.  Accesses under conditions that read memory, or in loops
of unknown shape, take no part: they may not happen.

*Proof*: of each pair of accesses, either some index always differs, or equal indices force equal grid (thread)
variables, because the loops are digits of the indices: the step of each is at least the span of those below it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import gcd

from metafork.bounds import extreme
from metafork.evaluation import NoValueError, integer_value
from metafork.facts import Facts, Scope, program_facts
from metafork.ir import Array, Program
from metafork.polynomial import Constraint, Polynomial, at_most, less_than
from metafork.prover import Prover, sample_points
from metafork.radix import is_mixed_radix
from metafork.references import LoopKind, LoopRange, Reference, references
from metafork.source_cfg import UniformPath, uniform_paths
from metafork.windows import coordinates, split_factors

MOST_ACCESSES = 4000
"""Accesses that are played through at one parameter point; larger points are skipped."""
MOST_ITERATIONS = 20_000
"""Iterations of the loops around one access that are played through, those included that its guards leave out."""
MOST_QUESTIONS = 12
"""Pairs of accesses, for each path, about which the solver is asked."""


class RaceKind(Enum):
    """Which iterations conflict."""

    GRID = "grid"
    THREADS = "threads"


@dataclass(frozen=True, slots=True)
class Race:
    """Two iterations that touch one element, at parameter values that Start allows."""

    kind: RaceKind
    first: Reference
    second: Reference
    first_iteration: Mapping[str, int]
    second_iteration: Mapping[str, int]
    parameters: Mapping[str, int]
    element: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Unproved:
    """A pair of accesses that may be a race, and why that is not known."""

    kind: RaceKind
    first: Reference
    second: Reference
    reason: str


@dataclass(frozen=True, slots=True)
class RaceReport:
    """``races`` are certain; ``unproved`` pairs are neither proved nor refuted.  Both empty: proved free of races."""

    races: tuple[Race, ...]
    unproved: tuple[Unproved, ...]


def find_races(program: Program) -> tuple[Race, ...]:
    """Return races of a program with their witnesses (at most one for each kind and array).

    Iterations are played through for those arrays only that are not proved free of races by cheap means.
    """
    facts = program_facts(program)
    found: dict[tuple[RaceKind, str], Race] = {}
    for path in uniform_paths(program):
        doubtful = {pair.first.array for pair in _Pairs(path, facts).unproved(thorough=False)}
        accesses = references(path.program, facts)
        accesses = tuple(access for access in accesses if access.array in doubtful and _certain(access))
        if not accesses:
            continue
        for point in sorted(sample_points(facts.constraints, facts.derived), key=lambda p: sum(p.values())):
            if _on_path(path, facts, point):
                for race in _Play(path.program, accesses, point).races():
                    found.setdefault((race.kind, race.first.array), race)
    return tuple(found.values())


def race_report(program: Program, deadline: float | None = None) -> RaceReport:
    """Return the races of a program, and the pairs of accesses of which nothing is known.

    After ``deadline`` (of ``time.monotonic``) the solver is asked nothing more: what that leaves open is unproved.
    """
    races = find_races(program)
    refuted = {(race.kind, race.first.array) for race in races}
    facts = program_facts(program)
    unproved: dict[tuple[RaceKind, str, str], Unproved] = {}
    for path in uniform_paths(program):
        prover = _Pairs(path, facts, deadline)
        for open_pair in prover.unproved(thorough=True):
            if (open_pair.kind, open_pair.first.array) not in refuted:
                key = (open_pair.kind, open_pair.first.array, open_pair.reason)
                unproved.setdefault(key, open_pair)
    return RaceReport(races, tuple(unproved.values()))


def _certain(access: Reference) -> bool:
    """Say whether the access surely happens where its guards, all polynomial, hold."""
    return (
        access.bounded
        and access.phase is not None
        and all(index is not None for index in access.indices)
        and all(guard.exact for guard in access.guards)
        and all(loop.trips is not None and loop.dense for loop in access.loops)
    )


def _on_path(path: UniformPath, facts: Facts, point: Mapping[str, int]) -> bool:
    """Say whether the conditions of a path have their truth values at a point (conditions on the grid: unknown)."""
    values = dict(point)
    for name, value in facts.values.items():
        try:
            values.setdefault(name, int(value.evaluate(point)))
        except KeyError:
            return False
    for condition, truth in path.conditions:
        try:
            if bool(integer_value(condition, values)) != truth:
                return False
        except NoValueError:
            return False
    return True


_Iteration = tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _Touch:
    """One access to an element: the iteration of the grid, of the block-level loops and of the threads."""

    access: Reference
    grid: tuple[int, ...]
    block: tuple[int, ...]
    threads: tuple[int, ...]
    values: dict[str, int]


class _Play:
    """Plays through all iterations at one point, and notes who touches what."""

    def __init__(self, program: Program, accesses: Sequence[Reference], point: Mapping[str, int]) -> None:
        self._accesses = accesses
        self._point = point
        self._own = {array.name for array in program.arrays}

    def races(self) -> Iterator[Race]:
        touches: dict[tuple[str, tuple[int, ...], tuple[int, ...]], list[_Touch]] = {}
        told: set[tuple[RaceKind, str]] = set()
        count = 0
        for access in self._accesses:
            for touch, element in self._touches(access):
                count += 1
                if count > MOST_ACCESSES:
                    return
                # An array of the block is another one in every block.
                home = () if access.array in self._own else touch.grid
                others = touches.setdefault((access.array, element, home), [])
                for other in others:
                    kind = _conflict(other, touch)
                    if kind is not None and (kind, access.array) not in told:
                        told.add((kind, access.array))
                        yield self._race(kind, other, touch, element)
                if len(others) < 8:
                    others.append(touch)

    def _touches(self, access: Reference) -> Iterator[tuple[_Touch, tuple[int, ...]]]:
        guards = [constraint for guard in access.guards for constraint in guard.constraints]
        for number, values in enumerate(_iterations(access.loops, dict(self._point))):
            if number > MOST_ITERATIONS:
                return
            if not all(guard.holds(values) for guard in guards):
                continue
            element = tuple(int(index.evaluate(values)) for index in access.indices if index is not None)
            by_kind = {kind: tuple(values[loop.var] for loop in access.loops if loop.kind is kind) for kind in LoopKind}
            yield (
                _Touch(access, by_kind[LoopKind.GRID], by_kind[LoopKind.BLOCK], by_kind[LoopKind.THREAD], dict(values)),
                element,
            )

    def _race(self, kind: RaceKind, first: _Touch, second: _Touch, element: tuple[int, ...]) -> Race:
        def iteration(touch: _Touch) -> dict[str, int]:
            return {
                loop.var: int((Polynomial.symbol(loop.var) * loop.step + loop.low).evaluate(touch.values))
                for loop in touch.access.loops
            }

        parameters = {name: value for name, value in self._point.items() if name in self._point}
        return Race(kind, first.access, second.access, iteration(first), iteration(second), parameters, element)


def _iterations(loops: Sequence[LoopRange], values: dict[str, int]) -> Iterator[dict[str, int]]:
    """Yield the values of all symbols for every iteration of a nest."""
    if not loops:
        yield values
        return
    first, *rest = loops
    assert first.trips is not None
    for value in range(int(first.trips.evaluate(values))):
        values[first.var] = value
        yield from _iterations(rest, values)
    values.pop(first.var, None)


def _conflict(first: _Touch, second: _Touch) -> RaceKind | None:
    if not (first.access.writes or second.access.writes):
        return None
    if first.grid != second.grid:
        return RaceKind.GRID
    same_stretch = first.access.phase == second.access.phase and first.block == second.block
    return RaceKind.THREADS if same_stretch and first.threads != second.threads else None


OTHER = "'"
"""Ends the name of a loop symbol in the second of two iterations that are compared."""


class _Pairs:
    """Compares the accesses of one path pair by pair."""

    def __init__(self, path: UniformPath, facts: Facts, deadline: float | None = None) -> None:
        self._program = path.program
        self._deadline = deadline
        scope = Scope.of(facts)
        decided = tuple(c for condition, truth in path.conditions for c in scope.implied(condition, truth))
        self._prover = Prover((*facts.constraints, *decided), facts.derived)
        self._accesses = references(path.program, facts)
        self._questions = 0
        self._factors: dict[str, tuple[Polynomial, ...]] = {}
        for array in path.program.arrays:
            own = [access for access in self._accesses if access.array == array.name]
            self._factors[array.name] = self._split(array, own)

    def unproved(self, *, thorough: bool) -> Iterator[Unproved]:
        """Yield the pairs that are not proved apart; ``thorough`` asks the solver too."""
        written = {access.array for access in self._accesses if access.writes}
        global_arrays = {array.name for array in self._program.arrays}
        for number, first in enumerate(self._accesses):
            for second in self._accesses[number:]:
                if first.array != second.array or first.array not in written:
                    continue
                if not (first.writes or second.writes):
                    continue
                if first.array in global_arrays:
                    reason = self._open(first, second, RaceKind.GRID, thorough)
                    if reason:
                        yield Unproved(RaceKind.GRID, first, second, reason)
                if first.phase is not None and first.phase == second.phase:
                    reason = self._open(first, second, RaceKind.THREADS, thorough)
                    if reason:
                        yield Unproved(RaceKind.THREADS, first, second, reason)

    def _may_ask(self) -> bool:
        self._questions += 1
        late = self._deadline is not None and time.monotonic() > self._deadline
        return self._questions <= MOST_QUESTIONS and not late

    def _split(self, array: Array, own: Sequence[Reference]) -> tuple[Polynomial, ...]:
        if not own or any(index is None for access in own for index in access.indices):
            return ()
        return split_factors(self._program, self._prover, array, own)

    def _open(self, first: Reference, second: Reference, kind: RaceKind, thorough: bool) -> str:
        """Return why the pair is not proved free of races; empty where it is."""
        shared = _shared_loops(first, second, kind)
        pairs = self._known_indices(first, second)
        if not pairs:
            return f"no index of {first.array} is a known polynomial in loop variables and parameters"
        here = tuple(left for left, _ in pairs)
        there = tuple(_renamed(right, second, shared) for _, right in pairs)
        loops = [*first.loops, *(_renamed_loop(loop, second, shared) for loop in second.loops if loop not in shared)]
        if any(self._apart(left, right, loops) for left, right in zip(here, there, strict=True)):
            return ""
        wanted = {
            loop.var
            for loop in first.loops
            if loop.kind is (LoopKind.GRID if kind is RaceKind.GRID else LoopKind.THREAD)
        }
        if wanted <= self._forced(first, second, shared, pairs):
            return ""
        if thorough and self._may_ask() and self._excluded(first, second, here, there, loops, kind, shared):
            return ""
        return f"it is not proved that different iterations touch different elements of {first.array}"

    def _known_indices(self, first: Reference, second: Reference) -> list[tuple[Polynomial, Polynomial]]:
        """Return the pairs of indices that are known on both sides; to differ in one of them is to differ."""
        factors = self._factors.get(first.array, ())
        if factors:
            return list(zip(coordinates(first, factors), coordinates(second, factors), strict=True))
        both = zip(first.indices, second.indices, strict=True)
        return [(left, right) for left, right in both if left is not None and right is not None]

    def _apart(self, left: Polynomial, right: Polynomial, loops: Sequence[LoopRange]) -> bool:
        """Say whether two indices differ always: one stays below the other, or their remainders differ."""
        apart = left - right
        constant = apart.terms().get((), Fraction(0))
        steps = [coefficient for mono, coefficient in apart.terms().items() if mono]
        if constant.denominator == 1 and steps and all(step.denominator == 1 for step in steps):
            common = gcd(*(step.numerator for step in steps))
            if constant.numerator % common:
                return True
        for difference in (left - right, right - left):
            most = extreme(difference, loops, self._prover, largest=True)
            if most is not None and self._prover.proves(less_than(most, 0)):
                return True
        return False

    def _forced(
        self,
        first: Reference,
        second: Reference,
        shared: Sequence[LoopRange],
        pairs: Sequence[tuple[Polynomial, Polynomial]],
    ) -> set[str]:
        """Return the loop symbols of ``first`` that equal indices force to have one value in both iterations."""
        forced: set[str] = set()
        partner = _partners(first, second)
        fixed = {loop.var for loop in shared}
        for left, right in pairs:
            digits = [loop for loop in first.loops if loop.var in left.symbols and loop.var not in fixed]
            renaming = {partner[loop.var]: Polynomial.symbol(loop.var) for loop in digits if loop.var in partner}
            if left == right.substitute(renaming) and is_mixed_radix(left, digits, self._prover):
                forced |= {loop.var for loop in digits if loop.var in partner}
        return forced

    def _excluded(
        self,
        first: Reference,
        second: Reference,
        here: Sequence[Polynomial],
        there: Sequence[Polynomial],
        loops: Sequence[LoopRange],
        kind: RaceKind,
        shared: Sequence[LoopRange],
    ) -> bool:
        """Ask whether the indices can be equal at all while one grid (thread) variable differs."""
        premises: list[Constraint] = [c for loop in loops for c in loop.constraints()]
        premises += [c for guard in first.guards for c in guard.constraints]
        premises += [
            Constraint(_renamed(c.left, second, shared), c.relation, _renamed(c.right, second, shared))
            for guard in second.guards
            for c in guard.constraints
        ]
        premises += [Constraint(left, "==", right) for left, right in zip(here, there, strict=True)]
        known = self._prover.with_premises(premises)
        partner = _partners(first, second)
        role = LoopKind.GRID if kind is RaceKind.GRID else LoopKind.THREAD
        for loop in first.loops:
            if loop.kind is not role:
                continue
            mine = Polynomial.symbol(loop.var)
            theirs = Polynomial.symbol(partner.get(loop.var, loop.var) + OTHER)
            if not known.proves((at_most(mine, theirs), at_most(theirs, mine))):
                return False
        return True


def _shared_loops(first: Reference, second: Reference, kind: RaceKind) -> tuple[LoopRange, ...]:
    """Return the loops that have one iteration for both accesses."""
    if kind is RaceKind.GRID:
        return ()
    roles = (LoopKind.GRID, LoopKind.BLOCK)
    return tuple(loop for loop in first.loops if loop.kind in roles and loop in second.loops)


def _partners(first: Reference, second: Reference) -> dict[str, str]:
    """Return the loop symbol of ``second`` that plays the part of each of ``first``: by kind and position."""
    result: dict[str, str] = {}
    for kind in LoopKind:
        mine = [loop for loop in first.loops if loop.kind is kind]
        theirs = [loop for loop in second.loops if loop.kind is kind]
        result |= {a.var: b.var for a, b in zip(mine, theirs, strict=False) if a.trips == b.trips}
    return result


def _renamed(value: Polynomial, access: Reference, shared: Sequence[LoopRange]) -> Polynomial:
    """Return a polynomial of the second iteration: its loop symbols get a name of their own, but for shared ones."""
    own = {loop.var: Polynomial.symbol(loop.var + OTHER) for loop in access.loops if loop not in shared}
    return value.substitute(own)


def _renamed_loop(loop: LoopRange, access: Reference, shared: Sequence[LoopRange]) -> LoopRange:
    trips = None if loop.trips is None else _renamed(loop.trips, access, shared)
    return LoopRange(loop.var + OTHER, trips, loop.kind, loop.dense, loop.low, loop.step)
