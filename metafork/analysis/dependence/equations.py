"""Equations of whole numbers: which have no solution, what others follow, and what they say of conditions.

``2*q - 2*p == 1`` and ``h*(2*q - 2*p - 1) == 0`` have none because of remainders, for ``1 <= h``.  ``q == r`` makes
``e - D*q == f - D*r`` ``e == f``.  With ``n == 2*m``, ``2*j < n`` is ``2*j + 2 <= n``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import gcd

from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.analysis.references import Reference

IndexPair = tuple[Polynomial, Polynomial]
"""Two indices that are equal where two accesses meet."""
MOST_STEPS = 40
"""Symbols that are eliminated from one set of equations."""


def contradict(equations: Iterable[Polynomial], at_least_one: Callable[[str], bool]) -> bool:
    """Say whether polynomials are shown not to be 0 together at any integer point.

    A symbol that stands in one of them alone, with factor 1 or -1, is replaced by what it equals; a common factor
    that is at least 1 is divided by.
    """
    left = [_primitive(value, at_least_one) for value in equations]
    for _ in range(MOST_STEPS):
        left = [value for value in dict.fromkeys(left) if value]
        if any(_never_zero(value) for value in left):
            return True
        candidates = [(value, name) for value in left for name in _alone(value)]
        if not candidates:
            return False
        # A symbol that is a factor elsewhere is kept: it may be what a whole equation can be divided by.
        equation, name = min(candidates, key=lambda one: (_products_with(one[1], left), one[1]))
        solved = {name: _solved(equation, name)}
        left = [_primitive(value.substitute(solved), at_least_one) for value in left if value is not equation]
    return False


def _alone(value: Polynomial) -> list[str]:
    """Return the symbols that stand in one term alone, with factor 1 or -1."""
    if not value.whole:
        return []
    names = [mono[0][0] for mono, coefficient in value.coefficients.items() if len(mono) == 1 and abs(coefficient) == 1]
    return [name for name in names if (factor := value.coefficient(name)) is not None and factor.is_constant]


def _solved(zero: Polynomial, name: str) -> Polynomial:
    """Return what a symbol equals that stands alone in an equation, with factor 1 or -1."""
    factor = zero.coefficient(name)
    assert factor is not None
    return Polynomial.symbol(name) - zero * factor  # the factor is its own inverse


def _products_with(name: str, values: Iterable[Polynomial]) -> int:
    return sum(len(mono) > 1 and any(other == name for other, _ in mono) for value in values for mono in value.terms())


def _primitive(value: Polynomial, at_least_one: Callable[[str], bool]) -> Polynomial:
    """Return the polynomial without factors that are not 0: symbols in all of its terms."""
    terms = value.terms()
    if not terms or () in terms:
        return value
    common = set.intersection(*({name for name, _ in mono} for mono in terms))
    for name in sorted(common):
        if at_least_one(name):
            quotient = value.divide_exactly(Polynomial.symbol(name))
            assert quotient is not None
            return _primitive(quotient, at_least_one)
    return value


def _never_zero(value: Polynomial) -> bool:
    """Say whether no integers make the value 0, by the remainder of its constant."""
    terms = dict(value.coefficients)
    constant = terms.pop((), 0)
    if not constant or not value.whole:
        return False
    common = gcd(*map(int, terms.values()))
    return common == 0 or constant % common != 0


def with_equal_symbols(pairs: Sequence[IndexPair]) -> list[IndexPair]:
    """Return pairs and what follows from those of two symbols: ``q == r`` makes ``e - D*q == f - D*r`` ``e == f``."""
    equal: dict[str, Polynomial] = {}
    while True:
        left = [_without_common_terms(one.substitute(equal), other.substitute(equal)) for one, other in pairs]
        found = next(((one, other.only_symbol) for one, other in left if one.only_symbol and other.only_symbol), None)
        if found is None:
            break
        one, name = found
        equal = {other: value.substitute({name: one}) for other, value in equal.items()} | {name: one}
    if not equal:
        return list(pairs)
    same = [(one, Polynomial.symbol(name)) for name, one in equal.items()]
    return list(dict.fromkeys((*pairs, *same, *((one, other) for one, other in left if one != other))))


def _without_common_terms(one: Polynomial, other: Polynomial) -> IndexPair:
    """Return two sides of an equation without the terms that both have."""
    mine, theirs = one.terms(), other.terms()
    common = Polynomial({mono: factor for mono, factor in mine.items() if theirs.get(mono) == factor})
    return one - common, other - common


class Multiples:
    """Symbols that are multiples of a number, from equations: ``n`` where ``n - 2*m == 0`` is known."""

    def __init__(self, known: Iterable[Constraint]) -> None:
        self.equations = tuple(dict.fromkeys(one for one in known if one.relation == "=="))
        self._values: dict[str, Polynomial] = {}
        for one in self.equations:
            self._learn(one.difference.substitute(self._values))

    def _learn(self, zero: Polynomial) -> None:
        for name in _alone(zero):
            value = _solved(zero, name)
            if gcd(*(int(factor) for mono, factor in value.coefficients.items() if mono)) > 1:
                self._values = {one: known.substitute({name: value}) for one, known in self._values.items()}
                self._values[name] = value
                return

    def tightened(self, constraint: Constraint) -> Constraint:
        """Return a constraint that says as much of whole numbers as it can without other symbols."""
        zero = constraint.difference
        if constraint.relation == "==" or not zero.whole or self._values.keys().isdisjoint(zero.symbols):
            return constraint
        least = zero + (1 if constraint.relation == "<" else 0)
        terms = dict(least.substitute(self._values).coefficients)
        number = int(terms.pop((), 0))
        common = gcd(*(int(factor) for factor in terms.values()))
        more = -number % common if common > 1 else 0
        if not more:
            return constraint
        return Constraint(constraint.left + more + (1 if constraint.relation == "<" else 0), "<=", constraint.right)

    def tightened_where(self, accesses: Sequence[Reference]) -> tuple[Reference, ...]:
        """Return accesses of whose conditions more is known."""
        if not self._values:
            return tuple(accesses)
        more = cache(lambda meaning: meaning.of_each(self.tightened))
        return tuple(
            replace(access, guards=tuple(replace(one, meaning=more(one.meaning)) for one in access.guards))
            for access in accesses
        )
