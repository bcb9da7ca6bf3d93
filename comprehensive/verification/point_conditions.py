"""Conditions of trees as functions of a point: they hold there, or leave an interval of one machine symbol."""

from __future__ import annotations

from collections.abc import Callable
from math import lcm

from msgspec import Struct

from metafork.algebra.polynomial import Constraint, Polynomial

Values = dict[str, int]
Interval = tuple[int, int | None]


class Condition(Struct, frozen=True):
    """A constraint, compiled: ``value <= 0`` (or ``<``, ``==``) without a machine symbol, else a bound for one.

    With ``symbol``, the constraint is ``factor*symbol + value`` compared with 0; ``symbol`` is empty where there is no
    machine symbol and ``None`` where they do not occur as one linear term.
    """

    value: Callable[[Values], int]
    relation: str
    symbol: str | None
    factor: int

    def holds(self, point: Values) -> bool:
        """Say whether it holds at a point that gives every symbol a value."""
        total = self.value(point) + (self.factor * point[self.symbol] if self.symbol else 0)
        return total <= 0 if self.relation == "<=" else total < 0 if self.relation == "<" else total == 0

    def narrowed(self, point: Values, interval: Interval) -> Interval | None:
        """Return the part of an interval of the machine symbol in which it holds, ``None`` where that is empty."""
        low, high = interval
        rest = self.value(point)
        factor = self.factor
        strict = 1 if self.relation == "<" else 0
        if factor < 0 or self.relation == "==":  # symbol >= rest/-factor
            size = -factor if factor < 0 else factor
            bound = rest if factor < 0 else -rest
            low = max(low, -((-bound - strict) // size) if not strict else bound // size + 1)
        if factor > 0 or self.relation == "==":
            size = abs(factor)
            bound = -rest if factor > 0 else rest
            top = bound // size if not strict else -(-bound // size) - 1
            high = top if high is None else min(high, top)
        return None if high is not None and high < low else (low, high)


def condition_of(constraint: Constraint, machine: frozenset[str], late: frozenset[str] = frozenset()) -> Condition:
    """Return a constraint, compiled; ``machine`` are the machine's symbols, ``late`` those derived from them."""
    difference = constraint.difference
    scale = lcm(*(coefficient.denominator for coefficient in difference.terms().values()))
    difference = difference * scale
    occurring = sorted(difference.symbols & machine)
    symbol: str | None = ""
    factor = 0
    if difference.symbols & late:
        symbol = None
    elif occurring:
        coefficient = difference.coefficient(occurring[0]) if len(occurring) == 1 else None
        if coefficient is not None and coefficient.is_constant:
            symbol, factor = occurring[0], int(coefficient.constant_value())
            difference = difference - coefficient * Polynomial.symbol(symbol)
        else:
            symbol = None
    return Condition(compiled(difference), constraint.relation, symbol, factor)


def compiled(polynomial: Polynomial) -> Callable[[Values], int]:
    """Return a function of a point for a polynomial with integer coefficients."""
    names = sorted(polynomial.symbols)
    terms = [
        "*".join([str(int(coefficient)), *(f"v[{names.index(name)}]" for name, power in mono for _ in range(power))])
        for mono, coefficient in polynomial.terms().items()
    ]
    function: Callable[[list[int]], int] = eval(f"lambda v: {' + '.join(terms) or '0'}")
    return lambda point: function([point[name] for name in names])
