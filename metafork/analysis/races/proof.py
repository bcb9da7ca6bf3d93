"""Proofs that iterations do not conflict: each pair of accesses of one path, taken as those of two iterations.

Either some index always differs, or equal indices force equal grid (thread) variables, because the loops are digits of
the indices: the step of each is at least the span of those below it.  What that leaves open goes to the solver, with
the conditions around both accesses as premises; one that leaves a choice (``i != k``) makes a distinction of cases.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import gcd

from metafork.algebra.polynomial import Constraint, Polynomial, at_most, less_than
from metafork.algebra.prover import Prover
from metafork.algebra.radix import is_mixed_radix
from metafork.analysis.bounds import extreme
from metafork.analysis.cfg.source_cfg import UniformPath
from metafork.analysis.conditions import Choice, meaning
from metafork.analysis.facts import Facts, Scope
from metafork.analysis.loop_ranges import LoopKind, LoopRange
from metafork.analysis.memory.windows import coordinates, index_steps, split_factors
from metafork.analysis.references import Reference, references_and_quotients
from metafork.ir.program import Array

MOST_QUESTIONS = 12
"""Pairs of accesses, for each path, about which the solver is asked."""
MOST_CASES = 40
"""Cases that are looked at for one pair of accesses."""


class RaceKind(Enum):
    """Which iterations conflict."""

    GRID = "grid"
    THREADS = "threads"


@dataclass(frozen=True, slots=True)
class Unproved:
    """A pair of accesses of which it is not known whether it is a race.

    ``compared`` is false where there is nothing to compare: no index is known of both accesses.
    """

    kind: RaceKind
    first: Reference
    second: Reference
    compared: bool


OTHER = "'"
"""Ends the name of a loop symbol in the second of two iterations that are compared."""


class AccessPairs:
    """Compares the accesses of one path pair by pair.

    A path with conditions on grid variables is one of a block: only races of threads are then asked about.
    """

    def __init__(self, path: UniformPath, facts: Facts, deadline: float | None = None) -> None:
        self._program = path.program
        self._deadline = deadline
        scope = Scope.of(facts)
        for loop in path.program.grid:
            scope.values[loop.var] = Polynomial.symbol(loop.var)
            scope.ranges.enter(loop.var, scope.polynomial(loop.extent))
        decided = [meaning(scope, condition, truth) for condition, truth in path.conditions]
        self._alternatives = tuple(choice for one in decided for choice in one.alternatives)
        self._accesses, of_guards = references_and_quotients(path.program, facts)
        quotients = tuple(dict.fromkeys((*scope.derived[len(facts.derived) :], *of_guards)))
        known = [*facts.constraints, *(constraint for one in decided for constraint in one.constraints)]
        known += [constraint for quotient in quotients for constraint in quotient.constraints()]
        self._prover = Prover(known, (*facts.derived, *quotients))
        self._questions = 0
        self._cases = 0
        self._splits: dict[str, tuple[tuple[Polynomial, ...], ...]] = {}
        for array in path.program.arrays:
            own = [access for access in self._accesses if access.array == array.name]
            self._splits[array.name] = self._splits_of(array, own)

    def unproved(self, kinds: Sequence[RaceKind], *, thorough: bool) -> Iterator[Unproved]:
        """Yield the pairs that are not proved apart; ``thorough`` asks the solver too."""
        written = {access.array for access in self._accesses if access.writes}
        global_arrays = {array.name for array in self._program.arrays}
        for number, first in enumerate(self._accesses):
            for second in self._accesses[number:]:
                if first.array != second.array or first.array not in written:
                    continue
                if not (first.writes or second.writes):
                    continue
                for kind in kinds:
                    if kind is RaceKind.GRID:
                        may_meet = first.array in global_arrays
                    else:
                        may_meet = first.phase is not None and first.phase == second.phase
                    open_pair = self._open(first, second, kind, thorough) if may_meet else None
                    if open_pair is not None:
                        yield open_pair

    def _may_ask(self) -> bool:
        self._questions += 1
        self._cases = 0
        return self._questions <= MOST_QUESTIONS and not self._late()

    def _late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    def _splits_of(self, array: Array, own: Sequence[Reference]) -> tuple[tuple[Polynomial, ...], ...]:
        """Return the ways to split a linear index into coordinates: by rows within a block, and by those of blocks."""
        if not own or any(index is None for access in own for index in access.indices):
            return ((),)
        steps = set(index_steps(own, tuple(LoopKind)))
        steps |= {_primitive(step) for step in steps}  # 2*h*g + h + k has the coordinates 2*g + 1 and k
        ways = (
            split_factors(self._program, self._prover, array, own),
            split_factors(self._program, self._prover, array, own, steps),
        )
        return tuple(dict.fromkeys(ways))

    def _open(self, first: Reference, second: Reference, kind: RaceKind, thorough: bool) -> Unproved | None:
        """Return the pair unless it is proved free of races."""
        shared = _shared_loops(first, second, kind)
        ways = self._known_indices(first, second)
        if not any(ways):
            return Unproved(kind, first, second, compared=False)
        loops = [*first.loops, *(_renamed_loop(loop, second, shared) for loop in second.loops if loop not in shared)]
        wanted = {
            loop.var
            for loop in first.loops
            if loop.kind is (LoopKind.GRID if kind is RaceKind.GRID else LoopKind.THREAD)
        }
        renamed = [[(left, _renamed(right, second, shared)) for left, right in pairs] for pairs in ways]
        for pairs, apart in zip(ways, renamed, strict=True):
            if any(self._apart(left, right, loops) for left, right in apart):
                return None
            if wanted <= self._forced(first, second, shared, pairs):
                return None
        if thorough and self._may_ask():
            for apart in renamed:
                if self._excluded(first, second, apart, loops, kind, shared):
                    return None
        return Unproved(kind, first, second, compared=True)

    def _known_indices(self, first: Reference, second: Reference) -> list[list[tuple[Polynomial, Polynomial]]]:
        """Return the pairs of indices that are known on both sides; to differ in one of them is to differ.

        There is one list for each way to split linear indices.
        """
        ways: list[list[tuple[Polynomial, Polynomial]]] = []
        for factors in self._splits.get(first.array, ((),)):
            if factors:
                ways.append(list(zip(coordinates(first, factors), coordinates(second, factors), strict=True)))
            else:
                both = zip(first.indices, second.indices, strict=True)
                ways.append([(left, right) for left, right in both if left is not None and right is not None])
        return ways

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
        pairs: Sequence[tuple[Polynomial, Polynomial]],
        loops: Sequence[LoopRange],
        kind: RaceKind,
        shared: Sequence[LoopRange],
    ) -> bool:
        """Ask whether the indices can be equal at all while one grid (thread) variable differs."""
        premises: list[Constraint] = [c for loop in loops for c in loop.constraints()]
        premises += [c for guard in first.guards for c in guard.constraints]
        premises += [_renamed_constraint(c, second, shared) for guard in second.guards for c in guard.constraints]
        premises += [Constraint(left, "==", right) for left, right in pairs]
        choices = [*self._alternatives, *(choice for guard in first.guards for choice in guard.meaning.alternatives)]
        choices += [
            tuple(tuple(_renamed_constraint(c, second, shared) for c in case) for case in choice)
            for guard in second.guards
            for choice in guard.meaning.alternatives
        ]
        partner = _partners(first, second)
        role = LoopKind.GRID if kind is RaceKind.GRID else LoopKind.THREAD
        goal: list[Constraint] = []
        for loop in first.loops:
            if loop.kind is role:
                mine = Polynomial.symbol(loop.var)
                theirs = Polynomial.symbol(partner.get(loop.var, loop.var) + OTHER)
                goal += [at_most(mine, theirs), at_most(theirs, mine)]
        return self._in_every_case(self._prover.with_premises(premises), choices, goal)

    def _in_every_case(self, known: Prover, choices: Sequence[Choice], goal: Sequence[Constraint]) -> bool:
        """Say whether the goal holds in every case of the choices that is possible with what is known."""
        left: list[Choice] = []
        for choice in choices:
            possible = tuple(case for case in choice if not self._contradicts(known, case))
            if not possible:
                return True
            if len(possible) == 1:
                known = known.with_premises(possible[0])
            else:
                left.append(possible)
        if known.proves(goal):
            return True
        if not left or self._cases > MOST_CASES:
            return False
        return all(self._in_every_case(known.with_premises(case), left[1:], goal) for case in left[0])

    def _contradicts(self, known: Prover, case: Sequence[Constraint]) -> bool:
        """Say whether a case is impossible; after many of them, or late, none is looked at any more."""
        self._cases += 1
        if self._cases > MOST_CASES or self._late():
            return False
        return known.with_premises(case).consistent() is False


def _primitive(value: Polynomial) -> Polynomial:
    """Return a polynomial without the integer that divides all its coefficients."""
    coefficients = value.terms().values()
    if any(coefficient.denominator != 1 for coefficient in coefficients):
        return value
    return value * Fraction(1, gcd(*(coefficient.numerator for coefficient in coefficients)))


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


def _renamed_constraint(constraint: Constraint, access: Reference, shared: Sequence[LoopRange]) -> Constraint:
    left, right = (_renamed(side, access, shared) for side in (constraint.left, constraint.right))
    return Constraint(left, constraint.relation, right)


def _renamed_loop(loop: LoopRange, access: Reference, shared: Sequence[LoopRange]) -> LoopRange:
    trips = None if loop.trips is None else _renamed(loop.trips, access, shared)
    inside = tuple(_renamed_constraint(constraint, access, shared) for constraint in loop.inside)
    return replace(loop, var=loop.var + OTHER, trips=trips, inside=inside)
