"""Equations that have no integer solution because of remainders: ``2*q - 2*p == 1``, ``h*(2*q - 2*p - 1) == 0``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd

from metafork.algebra.polynomial import Polynomial

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
        factor = equation.coefficient(name)
        assert factor is not None
        definition = Polynomial.symbol(name) - equation * factor  # the factor is its own inverse
        left = [
            _primitive(value.substitute({name: definition}), at_least_one) for value in left if value is not equation
        ]
    return False


def _alone(value: Polynomial) -> list[str]:
    """Return the symbols that stand in one term alone, with factor 1 or -1."""
    if not value.whole:
        return []
    names = [mono[0][0] for mono, coefficient in value.coefficients.items() if len(mono) == 1 and abs(coefficient) == 1]
    return sorted(name for name in names if _linear(value, name))


def _products_with(name: str, values: Iterable[Polynomial]) -> int:
    return sum(len(mono) > 1 and any(other == name for other, _ in mono) for value in values for mono in value.terms())


def _linear(value: Polynomial, name: str) -> bool:
    factor = value.coefficient(name)
    return factor is not None and factor.is_constant


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
