"""Polynomials back as C expressions, for offsets, sizes and bounds in generated code."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Binary, Cast, Expr, IntConst, binary

LONG = ScalarType.LONG_LONG


def code_of(value: Polynomial, symbols: Mapping[str, Expr], *, wide: bool = False) -> Expr:
    """Return a C expression with the value of a polynomial with integer coefficients.

    ``symbols`` gives the expression of each symbol; one that is a quotient ``x/y`` is an exact one (the number of an
    iteration), so that ``y`` times it is ``x``.  ``wide`` computes in ``long long`` throughout.  Positive terms
    come first, so that partial sums of what is not negative are not negative.
    """
    entries = sorted(value.terms().items(), key=lambda entry: (entry[1] < 0, -sum(e for _, e in entry[0]), entry[0]))
    total: Expr | None = None
    for mono, coefficient in entries:
        if coefficient.denominator != 1:
            raise ValueError(f"{value} has a coefficient that is no integer")
        factors: list[Expr] = [symbols[name] for name, exponent in mono for _ in range(exponent)]
        if any(isinstance(factor, IntConst) and factor.value == 0 for factor in factors):
            continue
        size = abs(int(coefficient))
        size, factors = _undivided(size, factors)
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


def whole_code_of(value: Polynomial, symbols: Mapping[str, Expr]) -> Expr:
    """Return a C expression with the value of a polynomial that is an integer, whatever its coefficients are."""
    denominator = lcm(*(coefficient.denominator for coefficient in value.terms().values()))
    whole = code_of(value * denominator, symbols)
    return whole if denominator == 1 else binary("/", whole, IntConst(denominator))


def _undivided(size: int, factors: list[Expr]) -> tuple[int, list[Expr]]:
    """Take an exact quotient and its divisor out of a product, as far as the divisor stands in it."""
    for position, factor in enumerate(factors):
        if not (isinstance(factor, Binary) and factor.op == "/"):
            continue
        rest = [*factors[:position], *factors[position + 1 :]]
        whole = factor.left
        if isinstance(factor.right, IntConst) and size % factor.right.value == 0:
            return size // factor.right.value, [*rest, whole]
        divisor = _factors(factor.right)
        if all(divisor.count(part) <= rest.count(part) for part in divisor):
            for part in divisor:
                rest.remove(part)
            return size, [*rest, whole]
    return size, factors


def _factors(product: Expr) -> list[Expr]:
    """Return the factors of a product."""
    if isinstance(product, Binary) and product.op == "*":
        return [*_factors(product.left), *_factors(product.right)]
    return [product]


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
