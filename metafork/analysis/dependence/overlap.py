"""May two accesses, in two instances of the loops around them, name the same element?

One test for the freedom of the input from races and for the independence of a loop's iterations.  It answers that they
are *disjoint*, with the reason, or that this is not known, which never counts as yes.  Asked in turn, cheapest first:

1. an index of the two differs always, or by case: for each loop that may have two values, the one before and the one
   after.  Remainders and certificates of positivity settle a case, products of symbols included;
2. equal indices force equal iterations, because the loops are digits of the indices (mixed radix);
3. isl, with the choices of conditions such as ``i != k``, for what is affine and for products taken as variables;
4. Z3, case by case of those choices.

Indices that are linear are split by the extents of rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import combinations, product

from msgspec import Struct

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most, equal
from metafork.algebra.positivity import Positivity, rooms
from metafork.algebra.prover import Prover, Verdict
from metafork.algebra.radix import is_mixed_radix
from metafork.analysis.delinearization import row_coordinates, row_factors
from metafork.analysis.dependence.equations import IndexPair, contradict, with_equal_symbols
from metafork.analysis.dependence.instances import AtInstances, Instances
from metafork.analysis.references import Reference
from metafork.analysis.values.conditions import Choice
from metafork.analysis.values.opaque import OpaqueSymbols

MOST_CASES = 40
"""Cases of conditions that the solver looks at for one pair of accesses."""
MOST_BITS = 2
"""Opaque values of 0 or 1 that are tried both ways."""
MOST_QUOTIENTS = 2
"""Pairs of quotients, one of each access, that are tried in both orders."""
MOST_ENUMERATED = 4
"""Loops with at most this constant number of iterations are compared iteration by iteration."""


class Overlap(Struct, frozen=True):
    """YES: the accesses are disjoint.  NO: some iterations meet, if both accesses are made in them."""

    disjoint: Verdict
    reason: str

    def __bool__(self) -> bool:
        """Whether the accesses are proved to be disjoint."""
        return self.disjoint is Verdict.YES


_Case = tuple[dict[str, Polynomial], tuple[Constraint, ...]]
"""What symbols of both points are where one loop has two values in one of two orders, and what holds besides."""


def conflicting(accesses: Sequence[Reference]) -> Iterator[tuple[Reference, Reference]]:
    """Yield the pairs of accesses to one array, one of which writes, that do not commute; each with itself too."""
    for number, first in enumerate(accesses):
        for second in accesses[number:]:
            if first.array == second.array and (first.writes or second.writes) and not first.commutes(second):
                yield first, second


class Overlaps:
    """Compares accesses of one path of a program.

    ``known`` holds wherever they are made, ``choices`` in one case each.  ``most_questions`` bounds the pairs about
    which isl and Z3 are asked, ``deadline`` (of ``time.monotonic``) the time.
    """

    def __init__(
        self,
        accesses: Sequence[Reference],
        prover: Prover,
        choices: Sequence[Choice] = (),
        opaque: OpaqueSymbols | None = None,
        *,
        most_questions: int | None = None,
        deadline: float | None = None,
    ) -> None:
        self._accesses = accesses
        self._prover = prover
        self._choices = tuple(choices)
        self._opaque = OpaqueSymbols() if opaque is None else opaque
        self._positivity = Positivity(prover.premises, prover.quotients)
        self._most_questions = most_questions
        self._deadline = deadline
        self._questions = 0
        self._cases = 0
        self._factors: dict[str, tuple[Polynomial, ...]] = {}
        self._rows: dict[Reference, tuple[Polynomial | None, ...] | None] = {}

    def overlap(self, first: Reference, second: Reference, instances: Instances, *, thorough: bool = True) -> Overlap:
        """Say whether the accesses are disjoint wherever one of ``instances.apart`` differs.

        Without ``thorough`` neither isl nor, about both accesses together, Z3 is asked.
        """
        both = AtInstances(first, second, instances, self._opaque)
        if not instances.apart or any(both.other(name) == name for name in instances.apart):
            return Overlap(Verdict.UNKNOWN, "the iterations are not told apart")
        whole = _paired(both, first.indices, second.indices)
        if set(instances.apart) <= self._forced(both, whole):
            return Overlap(Verdict.YES, "the loops are the digits of the indices")
        equations = with_equal_symbols(both.with_involutions(self._known_indices(both)))
        if not equations:
            return Overlap(Verdict.UNKNOWN, "no index is known of both accesses")
        if any(left - right in both.never for left, right in equations):
            return Overlap(Verdict.YES, "an index differs always")
        orders = [case for order in self._in_two_orders(both) for case in _either_way(both, equations, order)]
        cases = [case for order in orders for case in _quotients_in_order(both, equations, order)]
        if all(self._settled(both, equations, case) for case in cases):
            return Overlap(Verdict.YES, "an index differs always")
        if set(instances.apart) <= self._forced(both, equations):
            return Overlap(Verdict.YES, "the loops are the digits of the indices")
        if not thorough or not self._may_ask():
            return Overlap(Verdict.UNKNOWN, "it is not proved that the indices differ")
        return self._asked(both, equations, cases)

    def _may_ask(self) -> bool:
        self._questions += 1
        self._cases = 0
        return (self._most_questions is None or self._questions <= self._most_questions) and not self._late()

    def _late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline

    # --- indices ----------------------------------------------------------------------------------------------

    def _known_indices(self, both: AtInstances) -> list[IndexPair]:
        """Return the pairs of indices that are known on both sides; to differ in one of them is to differ."""
        name = both.first.array
        if name not in self._factors:
            own = [access for access in self._accesses if access.array == name]
            known = own and all(access.indices and access.indices[0] is not None for access in own)
            self._factors[name] = row_factors(self._prover, own, self._opaque) if known else ()
        mine, theirs = self._coordinates(both.first), self._coordinates(both.second)
        if mine is None or theirs is None:
            mine, theirs = both.first.indices, both.second.indices
        return _paired(both, mine, theirs)

    def _coordinates(self, access: Reference) -> tuple[Polynomial | None, ...] | None:
        """Return the indices of an access, the first one split by rows; ``None`` where that is not proved."""
        factors = self._factors[access.array]
        if access not in self._rows:
            self._rows[access] = row_coordinates(self._prover, access, factors, self._opaque) if factors else None
        return self._rows[access]

    # --- cheap proofs -----------------------------------------------------------------------------------------

    def _in_two_orders(self, both: AtInstances) -> Iterator[_Case]:
        """Yield the cases in which a loop is the first one that has two values.

        Each has one of two orders where both accesses are the same one.
        """
        same: dict[str, Polynomial] = {}
        for name in both.instances.apart:
            loop = next(loop for loop in both.first.loops if loop.var == name)
            other = both.other(name)
            equal_before = dict(same)
            same[other] = Polynomial.symbol(name)
            trips = loop.trips
            if trips is not None and trips.is_constant and trips.constant_value() <= MOST_ENUMERATED:
                numbers = [Polynomial.constant(number) for number in range(int(trips.constant_value()))]
                for low, high in combinations(numbers, 2):
                    yield {**equal_before, name: low, other: high}, ()
                    if not both.symmetric:
                        yield {**equal_before, name: high, other: low}, ()
                continue
            gap = Polynomial.symbol(f"{name} gap") + 1
            yield {**equal_before, other: Polynomial.symbol(name) + gap}, ()
            if not both.symmetric:
                yield {**equal_before, name: Polynomial.symbol(other) + gap}, ()

    def _settled(self, both: AtInstances, equations: Sequence[IndexPair], case: _Case) -> bool:
        """Say whether an index differs in a case by remainders or by certificates."""
        values, more = case
        known = [*more, *(constraint.substitute(values) for constraint in both.premises)]
        differences = [(left - right).substitute(values) for left, right in equations]
        if any(difference.is_constant and difference for difference in differences):
            return True
        known_here = self._positivity.extended(known)
        if any(known_here.positive(c.left - c.right) for c in more):
            return True  # there is no such case
        if any(known_here.positive(d, search=True) or known_here.positive(-d, search=True) for d in differences):
            return True
        less = rooms(known)
        if any(known_here.follows_from(way - 1, less) for d in differences if d.whole for way in (d, -d)):
            return True
        zero = [*differences, *(c.difference for c in (*known, *self._prover.premises) if c.relation == "==")]
        return contradict(zero, lambda name: known_here.positive(Polynomial.symbol(name), search=True))

    def _forced(self, both: AtInstances, pairs: Sequence[IndexPair]) -> set[str]:
        """Return the loop symbols that equal indices force to have one value at both points."""
        forced: set[str] = set()
        partners = both.partners()
        common = [c for c in both.premises if c.symbols.isdisjoint(both.of_one_point)]
        prover = self._prover.with_premises(common) if common else self._prover
        for left, right in pairs:
            digits = [loop for loop in both.first.loops if loop.var in left.symbols - both.instances.same]
            back = {partners[loop.var]: Polynomial.symbol(loop.var) for loop in digits if loop.var in partners}
            if left != right.substitute(back):
                continue
            if is_mixed_radix(left, digits, prover):
                forced |= {loop.var for loop in digits if loop.var in partners}
        return forced

    # --- solvers ----------------------------------------------------------------------------------------------

    def _asked(self, both: AtInstances, equations: Sequence[IndexPair], cases: Sequence[_Case]) -> Overlap:
        """Ask isl about each case, then Z3 about what that leaves open."""
        from metafork.algebra.affine import affine_conflict  # most pairs are decided before

        choices = (*self._choices, *both.choices)
        left: list[_Case] = []
        for values, more in cases:
            if self._settled(both, equations, (values, more)):
                continue
            rows = [*self._prover.premises, *more, *(c.substitute(values) for c in both.premises)]
            rows += [equal(a.substitute(values), b.substitute(values)) for a, b in equations]
            within = [[[c.substitute(values) for c in case] for case in choice] for choice in choices]
            conflict = affine_conflict(rows, within)
            if conflict:
                verdict = Verdict.UNKNOWN if both.with_opaque else Verdict.NO
                return Overlap(verdict, "there are iterations with equal indices")
            if conflict is None:
                left.append((values, more))
        if not left:
            return Overlap(Verdict.YES, "no iterations have equal indices")
        premises = [*both.premises, *(Constraint(a, "==", b) for a, b in equations)]
        goal: list[Constraint] = []
        for name in both.instances.apart:
            mine, theirs = Polynomial.symbol(name), Polynomial.symbol(both.other(name))
            goal += [at_most(mine, theirs), at_most(theirs, mine)]
        if self._in_every_case(self._prover.with_premises(premises), choices, goal):
            return Overlap(Verdict.YES, "equal indices are refuted")
        return Overlap(Verdict.UNKNOWN, "it is not proved that the indices differ")

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


def _paired(
    both: AtInstances, mine: Sequence[Polynomial | None], theirs: Sequence[Polynomial | None]
) -> list[IndexPair]:
    known = zip(mine, theirs, strict=True)
    return [(a, both.primed(b)) for a, b in known if a is not None and b is not None]


def _either_way(both: AtInstances, equations: Sequence[IndexPair], case: _Case) -> Iterator[_Case]:
    """Yield a case once for each value of the opaque values that are 0 or 1 and stand in products."""
    products = [mono for pair in equations for side in pair for mono in side.terms() if len(mono) > 1]
    factors = sorted({name for mono in products for name, _ in mono if name in both.bits})[:MOST_BITS]
    values, more = case
    for bits in product((ZERO, ONE), repeat=len(factors)):
        yield {**values, **dict(zip(factors, bits, strict=True))}, more


def _quotients_in_order(both: AtInstances, equations: Sequence[IndexPair], case: _Case) -> Iterator[_Case]:
    """Yield a case once for each order of quotients by one divisor: ``i + 1 - n*p == j + 1 - n*q`` with p < q, p == q.

    Remainders are equal where the quotients are, or the values of which they are the quotients lie apart.
    """
    products = {
        name for pair in equations for side in pair for mono in side.terms() if len(mono) > 1 for name, _ in mono
    }
    values, more = case
    free = [
        one
        for one in both.quotients
        if products >= {one.mine, one.theirs} and not {one.mine, one.theirs} & values.keys()
    ]
    for signs in product((0, 1, -1), repeat=min(len(free), MOST_QUOTIENTS)):
        further, known = dict(values), list(more)
        for one, sign in zip(free, signs, strict=False):
            gap = Polynomial.symbol(f"{one.mine} {one.theirs} gap") + 1 if sign else ZERO
            less, greater = (one.mine, one.theirs) if sign >= 0 else (one.theirs, one.mine)
            further.setdefault(greater, Polynomial.symbol(less) + gap)
            # Numbers whose quotients are so far apart are as far apart, less than one divisor more or less.
            apart = (one.apart if sign >= 0 else -one.apart).substitute(values)
            known += [at_most(one.divisor * (gap - 1) + 1, apart), at_most(apart, one.divisor * (gap + 1) - 1)]
        yield further, tuple(known)
