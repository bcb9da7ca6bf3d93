"""Polynomials in parameters, and conditions on them, as expressions of the program: what extents of pointers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from msgspec import Struct, field

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Expr, IntConst, binary

TERMS_TOGETHER = 64
"""Terms of a sum without parentheses: expressions are read to a depth."""


class Names(Struct, frozen=True):
    """What may be written: some names, and quotients of what may be written; and where one of several cases holds.

    ``names`` are given with what they stand for.  ``either`` are symbols that are 1 where one of their cases holds, and
    0 elsewhere.
    """

    names: Mapping[str, Expr] = field(default_factory=dict)
    quotients: Mapping[str, DerivedSymbol] = field(default_factory=dict)
    either: Mapping[str, Sequence[Sequence[Constraint]]] = field(default_factory=dict)

    def others(self, value: Polynomial) -> set[str]:
        """Return what a value depends on but for the given names, quotients taken apart."""
        found: set[str] = set()
        for name in value.symbols:
            if name in self.quotients and name not in self.names:
                for operand in self.quotients[name].operands:
                    found |= self.others(operand)
            elif name not in self.names:
                found.add(name)
        return found

    def expression(self, name: str) -> Expr | None:
        """Return a symbol as an expression; ``None`` where it cannot be written."""
        if name in self.names:
            return self.names[name]
        symbol = self.quotients.get(name)
        if symbol is None or symbol.kind not in ("floor", "ceiling"):
            return None
        dividend, divisor = symbol.operands
        above = expression_of(dividend if symbol.kind == "floor" else dividend + divisor - 1, self)
        below = expression_of(divisor, self)
        return None if above is None or below is None else binary("/", above, below)


def expression_of(value: Polynomial, names: Names) -> Expr | None:
    """Return a polynomial as an expression, quotients written out; ``None`` where that cannot be."""
    ordered = sorted(value.terms().items(), key=lambda term: (term[1] < 0, not term[0]))
    if len(ordered) > TERMS_TOGETHER:
        pieces = (ordered[first : first + TERMS_TOGETHER] for first in range(0, len(ordered), TERMS_TOGETHER))
        parts = [expression_of(Polynomial(dict(piece)), names) for piece in pieces]
        known = [one for one in parts if one is not None]
        return _joined("+", known) if len(known) == len(parts) else None
    total: Expr | None = None
    for monomial, coefficient in ordered:
        powers = [(names.expression(name), exponent) for name, exponent in monomial]
        factors = [factor for factor, exponent in powers if factor is not None for _ in range(exponent)]
        if coefficient.denominator != 1 or any(factor is None for factor, _ in powers):
            return None
        number = abs(int(coefficient))
        if number != 1 or not factors:
            factors.insert(0, _number(number))
        term = _joined("*", factors)
        if coefficient < 0:
            total = binary("-", _number(0) if total is None else total, term)
        else:
            total = term if total is None else binary("+", total, term)
    return _number(0) if total is None else total


def condition_of(condition: Constraint, names: Names) -> Expr | None:
    """Return a condition as an expression, what is subtracted on the other side; ``None`` where that cannot be."""
    value, relation = condition.difference, condition.relation
    for name, cases in names.either.items():
        if condition == at_most(1, Polynomial.symbol(name)):
            found = [[condition_of(one, names) for one in case] for case in cases]
            known = [[one for one in case if one is not None] for case in found]
            if known != found:
                return None
            return _joined("||", [_joined("&&", case) for case in known])
    constant = value.coefficients.get((), 0)
    if relation == "<" and constant <= -1:
        value, relation = value + 1, "<="  # of integers
    terms = value.coefficients
    left = expression_of(Polynomial({mono: c for mono, c in terms.items() if c > 0}), names)
    right = expression_of(Polynomial({mono: -c for mono, c in terms.items() if c < 0}), names)
    return None if left is None or right is None else binary(relation, left, right)


def _joined(op: str, operands: Sequence[Expr]) -> Expr:
    return reduce(lambda left, right: binary(op, left, right), operands)


def _number(value: int) -> Expr:
    return IntConst(value, ScalarType.INT if value <= ScalarType.INT.greatest else ScalarType.LONG)
