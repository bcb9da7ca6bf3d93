"""Polynomials back as C expressions, for offsets, sizes and bounds in generated code."""

from __future__ import annotations

from collections.abc import Mapping

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Binary, Cast, Expr, IntConst, binary

LONG = ScalarType.LONG_LONG


def code_of(value: Polynomial, symbols: Mapping[str, Expr], *, wide: bool = False) -> Expr:
    """Return a C expression with the value of a polynomial with integer coefficients.

    ``symbols`` gives the expression of each symbol.  ``wide`` computes in ``long long`` throughout.  Positive terms
    come first, so that partial sums of what is not negative are not negative.
    """
    entries = sorted(value.terms().items(), key=lambda entry: (entry[1] < 0, -sum(e for _, e in entry[0]), entry[0]))
    total: Expr | None = None
    for mono, coefficient in entries:
        if coefficient.denominator != 1:
            raise ValueError(f"{value} has a coefficient that is no integer")
        factors: list[Expr] = [symbols[name] for name, exponent in mono for _ in range(exponent)]
        size = abs(int(coefficient))
        if size != 1 or not factors:
            factors.insert(0, IntConst(size, LONG if size > 2**31 - 1 else ScalarType.INT))
        if wide and factors[0].type != LONG:
            factors[0] = Cast(LONG, factors[0]) if not isinstance(factors[0], IntConst) else IntConst(size, LONG)
        product = factors[0]
        for factor in factors[1:]:
            product = binary("*", product, factor)
        if total is None:
            total = product if coefficient > 0 else binary("-", IntConst(0, LONG if wide else ScalarType.INT), product)
        else:
            total = binary("+" if coefficient > 0 else "-", total, product)
    return IntConst(0, LONG if wide else ScalarType.INT) if total is None else total


def condition_of(constraint: Constraint, symbols: Mapping[str, Expr], *, wide: bool = False) -> Binary:
    """Return a C condition that says the same as a constraint."""
    left, right = (code_of(side, symbols, wide=wide) for side in (constraint.left, constraint.right))
    return binary(constraint.relation, left, right)


def may_be_negative(value: Polynomial) -> bool:
    """Say whether some term is subtracted, so that a partial sum may leave the range that the whole keeps."""
    return any(coefficient < 0 for coefficient in value.terms().values())


def conjunction(conditions: list[Expr]) -> Expr | None:
    """Return ``a && b && ...``, ``None`` for no condition."""
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else binary("&&", result, condition)
    return result
