"""The least and the greatest value of a polynomial whose symbols lie in ranges: the one search for both.

Ranges of counters are polynomials: ``0 <= i < n``, and those of inner counters may depend on outer ones.  A polynomial
that is linear in a counter takes its *extreme* at an end of that counter's range; counters are eliminated from the
innermost outwards.  Where it is not linear, or the sign of a factor is not known, each term by itself gives a *bound*,
which no iteration need reach.  The two are never mixed up: ``extreme`` returns the first alone, ``bounds`` both.

Ranges of other symbols are numbers (``Box``), read from premises about one symbol each.

Every symbol is a non-negative integer, if a box does not say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple, Protocol

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most, less_than


class Counted(Protocol):
    """A counter: ``0 <= var < trips``, or ``0 <= var`` alone where ``trips`` is ``None``."""

    @property
    def var(self) -> str:
        """The symbol."""
        ...

    @property
    def trips(self) -> Polynomial | None:
        """How many values it takes."""
        ...


class Counter(NamedTuple):
    """A counter and nothing else."""

    var: str
    trips: Polynomial | None


class Signs(Protocol):
    """Whatever knows signs: ``metafork.algebra.positivity`` by certificates, ``metafork.algebra.prover`` also by Z3."""

    def sign(self, value: Polynomial) -> int | None:
        """Return 1 or -1 where ``value >= 0`` or ``value <= 0`` is shown (0 where it is zero), else ``None``."""
        ...


class Shows(Protocol):
    """Says whether a condition is shown."""

    def __call__(self, goal: Constraint, /) -> object:
        """Return something true where it is."""
        ...


# --- counters -------------------------------------------------------------------------------------------------------


def extreme(value: Polynomial, counters: Sequence[Counted], signs: Signs, *, largest: bool) -> Polynomial | None:
    """Return the largest (or smallest) value over ``counters`` (outermost first) as a polynomial in the other symbols.

    It is reached where every counter takes both ends of its range.  ``None`` where the value is not linear in a
    counter, a trip count is not known, or the sign of a factor is not.
    """
    found = _at_ends(value, counters, signs, largest)
    if found is None or any(counter.trips is None and counter.var in found.symbols for counter in counters):
        return None
    return found


def bounds(value: Polynomial, counters: Sequence[Counted], signs: Signs, *, largest: bool) -> tuple[Polynomial, ...]:
    """Return polynomials that a value is at most (or at least), whatever the counters are; the extreme comes first.

    A counter of unknown range stays in them where its greatest value is asked for.
    """
    found = _at_ends(value, counters, signs, largest)
    each = value
    for counter in reversed(counters):
        if counter.var in each.symbols:
            each = _each_term(each, counter, largest)
    return (each,) if found is None or found == each else (found, each)


def _at_ends(value: Polynomial, counters: Sequence[Counted], signs: Signs, largest: bool) -> Polynomial | None:
    for counter in reversed(counters):
        factor = value.coefficient(counter.var)
        if factor is None:
            return None
        if not factor:
            continue
        sign = signs.sign(factor)
        if sign is None:
            return None
        end = _end(counter, last=(sign > 0) == largest)
        if end is not None:
            value = value.substitute({counter.var: end})
    return value


def _each_term(value: Polynomial, counter: Counted, largest: bool) -> Polynomial:
    """Return a bound in which every term has its own extreme."""
    result = ZERO
    for mono, coefficient in value.coefficients.items():
        term = Polynomial({mono: coefficient})
        end = _end(counter, last=(coefficient > 0) == largest)
        result = result + (term if end is None else term.substitute({counter.var: end}))
    return result


def _end(counter: Counted, *, last: bool) -> Polynomial | None:
    if not last:
        return ZERO
    return None if counter.trips is None else counter.trips - ONE


def stays_within(
    value: Polynomial, extent: Polynomial, counters: Sequence[Counted], signs: Signs, shows: Shows
) -> tuple[bool, bool]:
    """Say whether ``0 <= value`` and whether ``value < extent`` are shown for all values of the counters."""
    lows = bounds(value, counters, signs, largest=False)
    highs = bounds(value - extent, counters, signs, largest=True)
    return (
        any(bool(shows(at_most(0, low))) for low in lows),
        any(bool(shows(less_than(high, 0))) for high in highs),
    )


# --- numbers --------------------------------------------------------------------------------------------------------


class Box:
    """Numbers between which symbols lie, as far as conditions on one symbol say.

    ``real`` names the symbols that are not integers.  The others are not negative unless ``signed``: then nothing is
    known of a symbol of which no condition speaks.
    """

    def __init__(
        self, conditions: Iterable[Constraint] = (), real: frozenset[str] = frozenset(), *, signed: bool = False
    ) -> None:
        self._real = real
        self._signed = signed
        self.least: dict[str, int | Fraction] = {}
        self.greatest: dict[str, int | Fraction] = {}
        self._rests: dict[str, Polynomial] = {}
        self.learn(conditions)

    def copy(self) -> Box:
        """Return a box of its own that knows the same."""
        result = Box((), self._real, signed=self._signed)
        result.least, result.greatest, result._rests = dict(self.least), dict(self.greatest), self._rests
        return result

    def learn(self, conditions: Iterable[Constraint]) -> None:
        """Learn from conditions ``c <= k*x`` and the like, and from ``c <= k*x*y``; others teach nothing."""
        for condition in conditions:
            if not 1 <= len(condition.symbols) <= 2:
                continue
            strict = condition.relation == "<"
            self._learn(condition.difference, strict)
            if condition.relation == "==":
                self._learn(-condition.difference, strict)
        self._rests = {name: Polynomial.symbol(name) + bound for name, bound in self.least.items() if bound}

    def _learn(self, difference: Polynomial, strict: bool) -> None:
        """Learn from ``difference <= 0``, or ``< 0``."""
        terms = difference.coefficients
        if len(terms) - (() in terms) != 1:
            return
        mono, coefficient = next((mono, coefficient) for mono, coefficient in terms.items() if mono)
        bound = -Fraction(terms.get((), 0)) / coefficient
        if len(mono) == 1 and mono[0][1] == 1:
            name = mono[0][0]
            if coefficient < 0:
                least = bound if name in self._real else _above(bound, strict)
                self.least[name] = max(least, self.least.get(name, least if self._signed else 0))
            else:
                greatest = bound if name in self._real else -_above(-bound, strict)
                self.greatest[name] = min(greatest, self.greatest.get(name, greatest))
        elif coefficient < 0 and (bound > 0 or (strict and bound == 0)) and not self._signed:
            # With integers, each factor of a product that is above 0 is itself at least 1.
            for name, _ in mono:
                if name not in self._real:
                    self.least[name] = max(1, self.least.get(name, 1))

    def never_negative(self, value: Polynomial) -> bool:
        """Say whether ``value >= 0`` is shown."""
        if not self._signed and all(coefficient >= 0 for coefficient in value.coefficients.values()):
            return True
        least = self.at_least(value)
        return least is not None and least >= 0

    def at_least(self, value: Polynomial) -> int | Fraction | None:
        """Return a number that a polynomial never is below, its least value where it is linear; ``None`` for none."""
        if self._signed and not all(map(self.least.__contains__, value.symbols)):
            return None
        total: int | Fraction = 0
        # Of symbols that are their least values and a rest each: terms that are added are least where the rests are 0.
        for mono, coefficient in value.substitute(self._rests).coefficients.items():
            if not mono:
                total += coefficient
            elif coefficient < 0:
                product = coefficient
                for name, exponent in mono:
                    if name not in self.greatest:
                        return None
                    product *= (self.greatest[name] - self.least.get(name, 0)) ** exponent
                total += product
        return total


def _above(bound: Fraction, strict: bool) -> int:
    """Return the least integer that is at least a number, or above it."""
    return floor(bound) + 1 if strict else ceil(bound)
