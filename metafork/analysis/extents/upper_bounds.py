"""What an index is at most, in parameters, and the equations that hold where it is that much.

Loop symbols are eliminated from an index one by one, the innermost first: at the end of the symbol's range, or by a
condition around the access (``p < n``), which is added as often as makes the symbol vanish.  Every way ends in an upper
bound that is proved; it is reached where each step was an equation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from math import gcd

from msgspec import Struct, field

from metafork.algebra.polynomial import ONE, Polynomial, at_most
from metafork.algebra.positivity import rooms
from metafork.algebra.prover import Prover
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.extents.accesses import Access
from metafork.analysis.values.scope import fresh_name

Equations = tuple[Polynomial, ...]
"""Polynomials that are 0."""

MOST_UNEVEN = 4
"""By how much the least multiple of a divisor behind a dividend may be looked for."""

WAYS = 64
"""Steps of one search for bounds."""

MOST_BOUNDS = 8
"""Bounds of one access."""


class Bounds(Struct, frozen=True):
    """Upper bounds of an index, each with the ways to reach it, and quotients of parameters that stand in them.

    ``ends`` are what quotients of loop symbols are at most.
    """

    ways: dict[Polynomial, list[Equations]]
    quotients: tuple[DerivedSymbol, ...]
    ends: dict[str, list[Polynomial]]


def upper_bounds(access: Access, prover: Prover, always: Prover) -> Bounds:
    """Return what an index is at most.

    ``prover`` knows what holds where the access is made, ``always`` what holds in any case.
    """
    assert access.index is not None
    conditions = [*access.conditions, *access.known]
    ranges = {one for loop in access.loops for one in loop.constraints() if one not in loop.inside}
    slacks = rooms(one for one in conditions if one not in ranges)
    own = access.own
    # What is in a loop runs if the loop does.
    slacks += [loop.trips - 1 for loop in access.loops if loop.trips is not None and loop.trips.symbols & own]
    slacks = _least(slacks)
    division = _Division(prover, always)
    more: list[Polynomial] = []
    ends: dict[str, list[Polynomial]] = {}
    for loop, slack in product(access.loops, slacks):
        factor = slack.coefficient(loop.var)
        rest = slack.without((loop.var,))
        if factor and not (factor.symbols | rest.symbols) & own and factor != -ONE:
            more += [most - Polynomial.symbol(loop.var) for most in division.at_most([rest], -factor)]
    for slack in slacks:
        moving, common = _common(slack, own)
        rest = slack + moving * common
        if common > 1 and rest.whole:
            more += [most - moving for most in division.at_most([rest], Polynomial.constant(common))]
    order = [*sorted(access.unknown), *(one.var for one in reversed(access.loops))]
    quotients = [one.name for one in reversed(access.quotients)]
    names: set[str] = {*order}
    for quotient in access.quotients:
        dividend, divisor = quotient.operands
        known = [one for one in (*more, *slacks) if one.symbols & own <= names]
        found = dict.fromkeys(
            bound
            for first in (False, True)
            for bound, _ in _Ways(prover, access, [*quotients, *order], first).bounds(dividend, known)
        )
        ends[quotient.name] = division.at_most([one for one in found if not one.symbols & own], divisor)
        more += [most - Polynomial.symbol(quotient.name) for most in ends[quotient.name]]
        names.add(quotient.name)
    ways: dict[Polynomial, list[Equations]] = {}
    orders = [[*quotients, *order], [*order, *quotients]] if quotients else [order]
    for each, first in product(orders, (False, True)):
        for bound, equations in _Ways(prover, access, each, first).bounds(access.index, (*more, *slacks)):
            if not bound.symbols & own and bound.whole and equations not in ways.setdefault(bound, []):
                ways[bound].append(equations)
    # No symbol is below 0: `n + 14` says no more than `n - 1`.
    tight = [one for one in ways if not any(_never_less(one, other) for other in ways if other != one)]
    chosen = sorted(tight, key=lambda bound: (bound.degree, len(bound.coefficients), str(bound)))[:MOST_BOUNDS]
    return Bounds({bound: ways[bound] for bound in chosen}, tuple(division.made), ends)


def _least(slacks: Sequence[Polynomial]) -> list[Polynomial]:
    """Return slacks without those that are a number more than another one: ``i < n`` where there is ``i < n - 1``."""
    found: dict[Polynomial, Polynomial] = {}
    for slack in slacks:
        constant = slack.coefficients.get((), 0)
        rest = slack - constant
        if rest not in found or constant < found[rest].coefficients.get((), 0):
            found[rest] = slack
    return list(found.values())


def _common(slack: Polynomial, own: Collection[str]) -> tuple[Polynomial, int]:
    """Return ``X`` and ``d`` of ``rest - d*X``, where the ``rest`` has no symbol of an access; 0, if there is none."""
    moving = {mono: -factor for mono, factor in slack.coefficients.items() if any(name in own for name, _ in mono)}
    whole = all(factor.denominator == 1 for factor in moving.values())
    divisor = gcd(*map(int, moving.values())) if whole else 0
    return Polynomial({mono: int(factor) // divisor for mono, factor in moving.items()} if divisor else {}), divisor


def _never_less(one: Polynomial, other: Polynomial) -> bool:
    return (one - other).only_adds


class _Division(Struct):
    """Quotients of numbers of which upper bounds are known; ``made`` are those that have symbols."""

    prover: Prover
    always: Prover
    made: list[DerivedSymbol] = field(default_factory=list)

    def at_most(self, bounds: Sequence[Polynomial], divisor: Polynomial) -> list[Polynomial]:
        """Return what the quotient by a divisor is at most."""
        found: list[Polynomial] = []
        for most, more in product(bounds[:MOST_BOUNDS], range(1, MOST_UNEVEN + 1)):
            exact = (most + more).divide_exactly(divisor)
            if exact is not None and exact.whole and self.prover.shows(at_most(more, divisor)):
                found.append(exact - ONE)
        for most, times in product(bounds[:1], range(MOST_UNEVEN)):
            dividend = most + divisor * times
            if not found and self.always.shows([at_most(0, dividend), at_most(1, divisor)]):
                symbol = DerivedSymbol(fresh_name("floor", (dividend, divisor)), "floor", (dividend, divisor))
                self.made += [] if symbol in self.made else [symbol]
                found.append(Polynomial.symbol(symbol.name) - times)
        return list(dict.fromkeys(found))


def _sign(value: Polynomial, prover: Prover) -> int:
    """Return 1 or -1 where a value is proved not to be below or above 0, else 0."""
    return 1 if prover.shows(at_most(0, value)) else -1 if prover.shows(at_most(value, 0)) else 0


class _Ways(Struct):
    """The ways to a bound of an access that were not tried yet, and what knows signs."""

    prover: Prover
    access: Access
    order: Sequence[str]
    ranges_first: bool
    left: int = WAYS

    def bounds(self, value: Polynomial, slacks: Sequence[Polynomial]) -> Iterator[tuple[Polynomial, Equations]]:
        """Yield polynomials in parameters that a value is never above; ``slacks`` are never below 0."""
        name = next((one for one in self.order if one in value.symbols), None)
        if name is None:
            yield value, ()
            return
        factor = value.coefficient(name)
        self.left -= 1
        if self.left < 0:
            return
        if factor is None:
            yield from self._of_higher_degree(value, name, slacks)
            return
        steps = (self._by_conditions(value, factor, name, slacks), self._by_range(value, factor, name, slacks))
        for step in reversed(steps) if self.ranges_first else steps:
            for greater, left, zero in step:
                for bound, zeros in self.bounds(greater, left):
                    yield bound, (zero, *zeros)

    def _of_higher_degree(
        self, value: Polynomial, name: str, slacks: Sequence[Polynomial]
    ) -> Iterator[tuple[Polynomial, Equations]]:
        """Yield what a value is not above at the end of a symbol's range, where it only grows with it."""
        if any(c < 0 for mono, c in value.coefficients.items() if any(other == name for other, _ in mono)):
            return
        zeros = [
            (slack, slack.without((name,)), number)
            for number, slack in enumerate(slacks)
            if slack.coefficient(name) == -ONE
        ]
        loop = next((one for one in self.access.loops if one.var == name), None)
        if loop is not None and loop.trips is not None:
            zeros.append((loop.trips - 1 - Polynomial.symbol(name), loop.trips - 1, len(slacks)))
        for zero, end, number in zeros:
            for bound, others in self.bounds(value.substitute({name: end}), (*slacks[:number], *slacks[number + 1 :])):
                yield bound, (zero, *others)

    def _by_conditions(self, value: Polynomial, factor: Polynomial, name: str, slacks: Sequence[Polynomial]) -> _Steps:
        """Yield what a value is not above by a condition that bounds a symbol, and the other conditions."""
        for number, slack in enumerate(slacks):
            down = slack.coefficient(name)
            times = None if not down else factor.divide_exactly(-down)
            if times is not None and _sign(times, self.prover) == 1:
                # Once each: it may bring other symbols back.
                yield value + slack * times, (*slacks[:number], *slacks[number + 1 :]), slack

    def _by_range(self, value: Polynomial, factor: Polynomial, name: str, slacks: Sequence[Polynomial]) -> _Steps:
        """Yield what a value is at the end of the symbol's range where it is the greatest."""
        sign = _sign(factor, self.prover)
        symbol = Polynomial.symbol(name)
        loop = next((one for one in self.access.loops if one.var == name), None)
        if sign == -1:
            yield value.substitute({name: 0}), slacks, symbol
        elif sign == 1 and loop is not None and loop.trips is not None:
            end = loop.trips - 1
            yield value.substitute({name: end}), slacks, symbol - end


_Steps = Iterator[tuple[Polynomial, Sequence[Polynomial], Polynomial]]
