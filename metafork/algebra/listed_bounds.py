"""A polynomial that bounds integers at listed points from above, tightly and with few terms.

What comes in: points (values of a few parameters) and an integer at each.  What goes out: a polynomial, of degree 2
at most in each parameter, whose value at every listed point is the integer there or up to ``slack`` more.  It is
claimed at listed points and nowhere else; between and beyond them it may be anything.

Whether there is one at all is decided over the rationals, by the simplex method for bounds of sums (Dutertre and de
Moura, "A Fast Linear-Arithmetic Solver for DPLL(T)", CAV 2006, section 3) in exact numbers.  Sets of terms are then
tried from the smallest on, and coefficients from integers on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations, islice, product
from math import ceil, floor, lcm, prod

from msgspec import Struct, field

from metafork.algebra.polynomial import Polynomial

SLACK = 2
"""How far above the integer the polynomial may be at a listed point."""
MOST_DEGREE = 2
"""Highest power of a parameter."""
DENOMINATORS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Common denominators of coefficients that are tried, in this order."""
MOST_SETS = 80
"""Most sets of terms that are tried; after that terms are taken out of a polynomial one by one."""
MOST_LOOKED_AT = 1000
"""Most sets of as many terms that are looked at."""
MOST_NEAT = 4
"""Most sets of as many terms of which the one with the neatest coefficients is taken."""
MOST_BRANCHES = 12
"""Most parts into which a search for integers is split."""
MOST_SEARCHED = 4
"""Most coefficients for which integers, or other small denominators, are searched."""

Term = tuple[int, ...]
"""The exponents of a product of powers, one for each parameter."""


def upper_bound(points: Sequence[Mapping[str, int]], values: Sequence[int], slack: int = SLACK) -> Polynomial | None:
    """Return a polynomial ``p`` with ``value <= p(point) <= value + slack`` at each point; ``None``: there is none.

    All points give the same parameters values, and no two are equal.  Fewest terms beside the constant are preferred
    (exactly as long as few sets of terms have to be tried), then small denominators, then values close to the integers.
    """
    names = [name for name in points[0] if len({point[name] for point in points}) > 1]
    problem = _Problem(names, tuple(tuple(point[name] for name in names) for point in points), tuple(values), slack)
    everything = problem.solution(problem.terms)
    if everything is None:
        return None
    tried = 0
    for size in range(len(points)):
        possible = []
        for chosen in islice(combinations(problem.terms, size), MOST_LOOKED_AT):
            if problem.separated(chosen):
                tried += 1
                if problem.solution(chosen) is not None:
                    possible.append(chosen)
            if tried > MOST_SETS or len(possible) == MOST_NEAT:
                break
        if possible:
            return problem.neatest(possible)
        if tried > MOST_SETS:
            break
    return problem.neatest([problem.thinned(everything)])


class _Problem(Struct, frozen=True, dict=True):
    """Which coefficients of some terms, beside a constant, keep the sums between the values and ``slack`` above."""

    names: Sequence[str]
    places: tuple[tuple[int, ...], ...]
    values: tuple[int, ...]
    slack: int
    _columns: dict[Term, tuple[int, ...]] = field(default_factory=dict)

    def column(self, term: Term) -> tuple[int, ...]:
        """Return the values of a term at the points."""
        if term not in self._columns:
            self._columns[term] = tuple(
                prod(value**power for value, power in zip(place, term, strict=True)) for place in self.places
            )
        return self._columns[term]

    @cached_property
    def terms(self) -> list[Term]:
        """The terms beside the constant, simple ones first.

        Others add nothing at these points: ``x*x`` is a sum of ``x`` and a constant where ``x`` has two values, and of
        terms that differ by a factor and a constant only the simplest is there.
        """
        different = [len(set(column)) for column in zip(*self.places, strict=True)]
        powers = product(*(range(min(MOST_DEGREE + 1, count)) for count in different))
        found: dict[tuple[Fraction, ...], Term] = {}
        for term in sorted(powers, key=lambda one: (sum(one), max(one, default=0), tuple(-power for power in one))):
            column = self.column(term)
            steps = [value - column[0] for value in column]
            scale = next((step for step in steps if step), None)
            if scale is not None:
                found.setdefault(tuple(Fraction(step, scale) for step in steps), term)
        return list(found.values())

    def separated(self, chosen: Sequence[Term]) -> bool:
        """Say whether points that some terms do not tell apart have values that one number bounds."""
        ranges: dict[tuple[int, ...], tuple[int, int]] = {}
        for place, value in enumerate(self.values):
            key = tuple(self.column(term)[place] for term in chosen)
            low, high = ranges.get(key, (value, value))
            ranges[key] = (min(low, value), max(high, value))
        return all(high - low <= self.slack for low, high in ranges.values())

    def solution(self, chosen: Sequence[Term], slack: int | None = None) -> list[Fraction] | None:
        """Return coefficients of the constant and some terms."""
        return self._simplex(chosen, slack, 1).solve()

    def _simplex(self, chosen: Sequence[Term], slack: int | None, scale: int) -> _Simplex:
        """Return the question for coefficients times ``scale``."""
        columns = [self.column(term) for term in chosen]
        rows = [[Fraction(1), *(Fraction(column[at]) for column in columns)] for at in range(len(self.values))]
        above = self.slack if slack is None else slack
        bounds = [(Fraction(scale * value), Fraction(scale * (value + above))) for value in self.values]
        return _Simplex(rows, bounds)

    def thinned(self, coefficients: Sequence[Fraction]) -> tuple[Term, ...]:
        """Return terms of a solution over all terms none of which can be left out alone, the simplest kept."""
        kept = [term for term, value in zip(self.terms, coefficients[1:], strict=True) if value]
        for term in reversed(kept.copy()):
            rest = [one for one in kept if one != term]
            if self.separated(rest) and self.solution(rest) is not None:
                kept = rest
        return tuple(kept)

    def neatest(self, possible: Sequence[Sequence[Term]]) -> Polynomial:
        """Return the polynomial of the smallest denominator, and the closest, over one of some sets of terms."""
        searched = [
            (chosen, slack)
            for slack in dict.fromkeys((0, self.slack))
            for chosen in possible
            if len(chosen) < MOST_SEARCHED and self.solution(chosen, slack) is not None
        ]
        for scale in DENOMINATORS:
            for chosen, slack in searched:
                found = self._simplex(chosen, slack, scale).solve_in_integers()
                if found is not None:
                    return self._polynomial(chosen, [value / scale for value in found], scale)
        found = self.solution(possible[0])
        assert found is not None
        return self._polynomial(possible[0], found, lcm(*(value.denominator for value in found)))

    def _polynomial(self, chosen: Sequence[Term], coefficients: Sequence[Fraction], scale: int) -> Polynomial:
        """Return the polynomial, its constant as small as the denominator lets it be."""
        slopes = list(zip(chosen, coefficients[1:], strict=True))
        lacking = max(
            value - sum(self.column(term)[at] * slope for term, slope in slopes) for at, value in enumerate(self.values)
        )
        total = Polynomial.constant(Fraction(ceil(lacking * scale), scale))
        for term, slope in slopes:
            factors = (Polynomial.symbol(name) ** power for name, power in zip(self.names, term, strict=True))
            total += prod(factors, start=Polynomial.constant(slope))
        return total


Bounds = tuple[Fraction | None, Fraction | None]


class _Simplex:
    """Finds ``c`` with ``low <= sum of row[j]*c[j] <= high`` for each row.

    The variables are ``c`` (numbers from 0) and the sums (numbers from ``len(c)``); those in ``rows`` are written as
    sums of the others, whose values are free to move within their bounds.
    """

    def __init__(self, rows: Sequence[Sequence[Fraction]], bounds: Sequence[Bounds]) -> None:
        self._width = len(rows[0])
        self._given = rows
        self._given_bounds = list(bounds)
        self._bounds: list[Bounds] = [(None, None)] * self._width + self._given_bounds

    def solve(self, limits: Mapping[int, Bounds] | None = None) -> list[Fraction] | None:
        """Return ``c``, or ``None`` where there is none; ``limits`` are bounds of single coefficients."""
        width = self._width
        bounds = [*((limits or {}).get(at, (None, None)) for at in range(width)), *self._given_bounds]
        rows = {
            width + at: {place: factor for place, factor in enumerate(row) if factor}
            for at, row in enumerate(self._given)
        }
        values = [Fraction(0)] * len(bounds)
        for at in range(width):
            low, high = bounds[at]
            values[at] = low if low is not None and low > 0 else high if high is not None and high < 0 else Fraction(0)
        for basic, row in rows.items():
            values[basic] = sum((factor * values[at] for at, factor in row.items()), Fraction(0))
        while True:
            # Bland's rule, in both choices: no basis comes twice.
            basic = next((at for at in sorted(rows) if _off(values[at], bounds[at])), -1)
            if basic < 0:
                return values[:width]
            low, high = bounds[basic]
            rising = low is not None and values[basic] < low
            goal = low if rising else high
            assert goal is not None
            entering = next(
                (
                    at
                    for at, factor in sorted(rows[basic].items())
                    if _moves(values[at], bounds[at], rising == (factor > 0))
                ),
                -1,
            )
            if entering < 0:
                return None
            step = (goal - values[basic]) / rows[basic][entering]
            values[basic] = goal
            values[entering] += step
            for other, row in rows.items():
                if other != basic and entering in row:
                    values[other] += row[entering] * step
            _pivot(rows, basic, entering)

    def solve_in_integers(self) -> list[Fraction] | None:
        """Return ``c`` in integers; ``None`` where there is none, or none was found in ``MOST_BRANCHES`` parts."""
        waiting: list[dict[int, Bounds]] = [{}]
        for _ in range(MOST_BRANCHES):
            if not waiting:
                return None
            limits = waiting.pop()
            found = self.solve(limits)
            if found is None:
                continue
            broken = next((at for at, value in enumerate(found) if value.denominator > 1), None)
            if broken is None:
                return found
            low, high = limits.get(broken, (None, None))
            waiting.append({**limits, broken: (Fraction(ceil(found[broken])), high)})
            waiting.append({**limits, broken: (low, Fraction(floor(found[broken])))})
        return None


def _off(value: Fraction, bounds: Bounds) -> bool:
    low, high = bounds
    return (low is not None and value < low) or (high is not None and value > high)


def _moves(value: Fraction, bounds: Bounds, up: bool) -> bool:
    """Say whether a value may become larger (or smaller) within its bounds."""
    low, high = bounds
    return (high is None or value < high) if up else (low is None or value > low)


def _pivot(rows: dict[int, dict[int, Fraction]], basic: int, entering: int) -> None:
    """Write ``entering`` as a sum in place of ``basic``."""
    row = rows.pop(basic)
    factor = row.pop(entering)
    own = {at: -value / factor for at, value in row.items()}
    own[basic] = 1 / factor
    for others in rows.values():
        times = others.pop(entering, None)
        if times is not None:
            for at, value in own.items():
                total = others.get(at, Fraction(0)) + times * value
                if total:
                    others[at] = total
                else:
                    others.pop(at, None)
    rows[entering] = own
