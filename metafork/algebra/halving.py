"""Have polynomial conditions no common solution in integers?  Ranges of symbols are halved until no part has one.

What comes in: conditions on non-negative integers, some of them quotients of others.  What goes out: whether it is
proved that no point satisfies all of them; a failure says nothing.

- Limits (of a machine, say) stand alone in conditions and are eliminated first: ``a <= Z`` and ``Z <= b`` give
  ``a <= b``, as in the method of Fourier and Motzkin.
- The other symbols lie in a box, whose sides may have no end.  In distances from its lower corner a polynomial is least
  where each term is; above 0, that excludes ``p <= 0`` from the box.  Boxes that nothing excludes are halved.
- The range of a quotient follows from the box.  One without an end is replaced by what it is at least or at most
  (``n/d`` and ``(n + d - 1)/d`` for a ceiling), which tells what becomes of all large values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm

from metafork.algebra.polynomial import ZERO, Constraint, Polynomial
from metafork.algebra.positivity import whole
from metafork.algebra.ranges import Box
from metafork.algebra.symbols import DerivedSymbol

MOST_BOXES = 150
"""Boxes that are looked at for one set of symbols."""
MOST_SYMBOLS = 2
"""Symbols whose ranges are halved."""
FAR = 4096
"""A range without an end is split like one that ends here: ends of ranges beyond it have been of no use."""

Number = int | Fraction
Range = tuple[int, int | None]
"""The least and the greatest value of a symbol; ``None`` where there is no greatest."""


class Halving:
    """Proofs that conditions exclude each other, from facts about non-negative integers.

    ``quotients`` are the derived symbols that the facts define; ``limits`` are symbols to be eliminated.
    """

    def __init__(
        self, facts: Iterable[Constraint], quotients: Iterable[DerivedSymbol], limits: Collection[str] = ()
    ) -> None:
        self._facts = tuple(facts)
        self._quotients = {quotient.name: quotient for quotient in quotients}
        self._limits = limits
        self._box = Box(self._facts)
        self._rows: dict[Constraint, tuple[Polynomial, ...]] = {}
        self._parameters: dict[str, frozenset[str]] = {}
        self._regions: dict[frozenset[str], _Region] = {}

    def excluded(self, path: Sequence[Constraint], last: Constraint) -> bool:
        """Say whether it is shown that no point of ``path`` satisfies ``last``; consequences of ``last`` are used."""
        rows = {row: False for one in path for row in self._brought_to_zero(one)}
        rows |= dict.fromkeys(self._brought_to_zero(last), True)
        for limit in self._limits:
            rows = self._without(limit, rows)
        if any(row.is_constant and row.constant_value() > 0 for row in rows):
            return True
        about = {row: self._parameters_of(row.symbols) for row in rows if row.symbols}
        own = {parameters for row, parameters in about.items() if rows[row]}
        chosen = {one | other for one in own for other in about.values() if len(one | other) <= MOST_SYMBOLS}
        return any(
            self._region(parameters).excludes([row for row, symbols in about.items() if symbols <= parameters])
            for parameters in sorted(chosen, key=lambda one: (len(one), sorted(one)))
        )

    def _brought_to_zero(self, condition: Constraint) -> tuple[Polynomial, ...]:
        """Return the polynomials with integer coefficients that a condition says are at most 0."""
        if condition not in self._rows:
            value = condition.difference
            value *= lcm(*(coefficient.denominator for coefficient in value.coefficients.values()))
            match condition.relation:
                case "<=":
                    rows: tuple[Polynomial, ...] = (value,)
                case "<":
                    rows = (value + 1,)
                case "==":
                    rows = (value, -value)
            self._rows[condition] = rows
        return self._rows[condition]

    def _without(self, limit: str, rows: Mapping[Polynomial, bool]) -> dict[Polynomial, bool]:
        """Return rows without a limit: those in which it does not stand, and sums of two in which it does.

        The mark of a row says that it follows from the last condition.
        """
        symbol = Polynomial.symbol(limit)
        rest = {row: own for row, own in rows.items() if limit not in row.symbols}
        if len(rest) == len(rows):
            return rest
        below, above = [(self._box.least.get(limit, 0) - symbol, 1, False)], []
        if limit in self._box.greatest:
            above.append((symbol - self._box.greatest[limit], 1, False))
        for row, own in rows.items():
            factor = row.coefficient(limit) or ZERO
            if factor and factor.is_constant:
                number = int(factor.constant_value())
                (above if number > 0 else below).append((row, abs(number), own))
        for low, first, own in below:
            for high, second, other in above:
                total = low * second + high * first
                rest[total] = rest.get(total, False) or own or other
        return rest

    def _parameters_of(self, symbols: Iterable[str]) -> frozenset[str]:
        """Return the symbols that are no quotients and on which some symbols depend."""
        return frozenset().union(*map(self._below, symbols))

    def _below(self, name: str) -> frozenset[str]:
        if name not in self._parameters:
            operands = self._quotients[name].operands if name in self._quotients else ()
            below = [self._parameters_of(operand.symbols) for operand in operands]
            self._parameters[name] = frozenset().union(*below) if operands else frozenset((name,))
        return self._parameters[name]

    def _region(self, parameters: frozenset[str]) -> _Region:
        if parameters not in self._regions:
            quotients = [one for one in self._quotients.values() if self._below(one.name) <= parameters]
            names = {*parameters, *(quotient.name for quotient in quotients)}
            definitions = {fact for quotient in quotients for fact in quotient.constraints()}
            facts = [fact for fact in self._facts if fact.symbols <= names and fact not in definitions]
            rows = [row for fact in facts if len(fact.symbols) > 1 for row in self._brought_to_zero(fact)]
            ranges = {name: _range(self._box, name) for name in names}
            self._regions[parameters] = _Region(parameters, quotients, ranges, rows)
        return self._regions[parameters]


class _Region:
    """The points of some parameters, and what is shown of them."""

    def __init__(
        self,
        parameters: Iterable[str],
        quotients: Sequence[DerivedSymbol],
        ranges: Mapping[str, Range],
        rows: Sequence[Polynomial],
    ) -> None:
        self._parameters = sorted(parameters)
        self._quotients = [_Quotient(quotient, ranges[quotient.name]) for quotient in quotients]
        self._ranges = ranges
        self._rows = rows
        self._least: dict[tuple[Polynomial, tuple[str, ...]], _Least] = {}

    def excludes(self, rows: Sequence[Polynomial]) -> bool:
        """Say whether some row is shown to be above 0 at each point."""
        rows = [*rows, *self._rows]
        boxes = [{name: self._ranges[name] for name in self._parameters}]
        for _ in range(MOST_BOXES):
            if not boxes:
                return True
            box = boxes.pop()
            full = self._with_quotients(box)
            if full is None or any(self._above_zero(row, full) for row in rows):
                continue
            name = max(self._parameters, key=lambda one: _length(box[one]))
            if not _length(box[name]):
                return False
            boxes += [{**box, name: half} for half in _halves(box[name])]
        return False

    def _with_quotients(self, box: Mapping[str, Range]) -> dict[str, Range] | None:
        """Return a box with the ranges of quotients; ``None`` where one has no value."""
        full = dict(box)
        for quotient in self._quotients:
            low, high = quotient.within(full)
            if high is not None and low > high:
                return None
            full[quotient.name] = low, high
        return full

    def _above_zero(self, row: Polynomial, box: Mapping[str, Range]) -> bool:
        """Say whether a row is shown to be above 0 everywhere in a box."""
        without_end = tuple(one.name for one in self._quotients if box[one.name][1] is None)
        for replaced in dict.fromkeys(((), without_end)):
            least = self._least_of(row, replaced).at(box)
            if least is not None and least > 0:
                return True
        return False

    def _least_of(self, row: Polynomial, replaced: tuple[str, ...]) -> _Least:
        """Return the least value of a row in which some quotients are replaced by their bounds."""
        key = row, replaced
        if key not in self._least:
            for quotient in reversed(self._quotients):
                if quotient.name in replaced and quotient.name in row.symbols:
                    row = quotient.bounded_in(row)
            self._least[key] = _Least(row)
        return self._least[key]


class _Least:
    """A polynomial as a function of a box: a number that it is never below."""

    def __init__(self, value: Polynomial) -> None:
        steps = {name: Polynomial.symbol(name) + Polynomial.symbol(f"{name} ") for name in value.symbols}
        groups: dict[tuple[str, ...], list[tuple[Number, tuple[str, ...]]]] = {(): []}
        for mono, coefficient in value.substitute(steps).coefficients.items():
            factors = [name for name, exponent in mono for _ in range(exponent)]
            distances = tuple(name[:-1] for name in factors if name.endswith(" "))
            corner = tuple(name for name in factors if not name.endswith(" "))
            groups.setdefault(distances, []).append((coefficient, corner))
        self._at_corner = groups.pop(())
        self._slopes = list(groups.items())

    def at(self, box: Mapping[str, Range]) -> Number | None:
        """Return the number; ``None`` where there is none."""
        total = _sum(self._at_corner, box)
        for distances, terms in self._slopes:
            slope = _sum(terms, box)
            if slope >= 0:
                continue
            sides = [box[name] for name in distances]
            if any(low == high for low, high in sides):
                continue
            for low, high in sides:
                if high is None:
                    return None
                slope *= high - low
            total += slope
        return total


class _Quotient:
    """A derived symbol as a function of a box, and what it is at least and at most."""

    def __init__(self, symbol: DerivedSymbol, known: Range) -> None:
        self.name = symbol.name
        self._known = known
        self._divided = symbol.kind in ("floor", "ceiling")
        self._up = symbol.kind == "ceiling"
        self._operands = symbol.operands
        self._least = [_Least(operand) for operand in symbol.operands]
        self._greatest = [_Least(-operand) for operand in symbol.operands]

    def within(self, box: Mapping[str, Range]) -> Range:
        """Return the range of the symbol; dividends are at least 0 and divisors at least 1, which facts say."""
        low, high = self._known
        if not self._divided:
            return low, high
        least, least_divisor = (one.at(box) for one in self._least)
        most, most_divisor = (one.at(box) for one in self._greatest)
        if least is not None and most_divisor is not None:
            low = max(low, self._quotient(max(least, 0), max(-most_divisor, 1)))
        if most is not None:
            end = self._quotient(max(-most, 0), max(least_divisor or 1, 1))
            high = end if high is None else min(high, end)
        return low, high

    def bounded_in(self, row: Polynomial) -> Polynomial:
        """Return a polynomial without the symbol that is at most a multiple of a row; or else the row."""
        factor = row.coefficient(self.name)
        if not self._divided or not factor or not all(map(whole, self._operands)):
            return row
        dividend, divisor = self._operands
        if not divisor.is_constant:
            return row
        number = int(divisor.constant_value())
        least, most = (dividend, dividend + number - 1) if self._up else (dividend - number + 1, dividend)
        added = Polynomial.of_coefficients({mono: value for mono, value in factor.coefficients.items() if value > 0})
        return row.without([self.name]) * number + added * least + (factor - added) * most

    def _quotient(self, dividend: Number, divisor: Number) -> int:
        return int(-(-dividend // divisor) if self._up else dividend // divisor)


def _sum(terms: Iterable[tuple[Number, tuple[str, ...]]], box: Mapping[str, Range]) -> Number:
    """Return a sum of products at the lower corner of a box."""
    total: Number = 0
    for number, names in terms:
        for name in names:
            number = number * box[name][0]
        total += number
    return total


def _range(box: Box, name: str) -> Range:
    greatest = box.greatest.get(name)
    return int(box.least.get(name, 0)), None if greatest is None else int(greatest)


def _length(one: Range) -> float:
    """Return by what factor the ends of a range differ; 0 for a single number."""
    low, high = one
    return 0 if low == high else ((FAR if high is None else high) + 1) / (low + 1)


def _halves(one: Range) -> tuple[Range, Range]:
    """Split a range behind the number that is divisible by the highest power of 2, where ceilings make their steps."""
    low, high = one
    middle = 4 * low + 3 if high is None else high - 1
    while middle and middle & (middle - 1) >= low:
        middle &= middle - 1
    return (middle + 1, high), (low, middle)
