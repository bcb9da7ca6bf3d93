"""Expressions that choose the least or the largest of two values: ``a < b ? a : b``, ``if (end > n) end = n;``.

The condition need not compare the values themselves: ``i > 0 ? i - 1 : 0`` is the larger of ``i - 1`` and 0.
"""

from __future__ import annotations

from typing import Literal

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.symbols import Extremum
from metafork.analysis.facts import Scope
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Binary, Cast, Conditional, Expr, Var

_OTHER: dict[Literal["maximum", "minimum"], Literal["maximum", "minimum"]] = {
    "maximum": "minimum",
    "minimum": "maximum",
}


def extremum_of(scope: Scope, expr: Expr, type_: ScalarType | None = None) -> Extremum | None:
    """Return polynomials of which an integer expression, converted to a type, is the least or largest.

    A polynomial is both.  ``None`` where the expression is not known to be one, or the conversion may change it.
    """
    if not expr.type.integer or not (type_ is None or type_.integer):
        return None
    value = scope.polynomial(expr)
    found = Extremum("minimum", (value,)) if value is not None else _extremum(scope, expr)
    if found is None or type_ is None or type_.holds(expr.type):
        return found
    kept = all(scope.stored(operand, expr.type, type_) is not None for operand in found.operands)
    return found if kept else None


def _extremum(scope: Scope, expr: Expr) -> Extremum | None:
    match expr:
        case Var(name=name):
            return scope.extrema.get(name)
        case Cast(type=type_, operand=operand):
            return extremum_of(scope, operand, type_)
        case Conditional(condition=condition, then=then, otherwise=otherwise, type=type_):
            first, second = extremum_of(scope, then, type_), extremum_of(scope, otherwise, type_)
            return None if first is None or second is None else chosen(scope, condition, first, second)
        case Binary(op="+" | "-" as op, left=left, right=right, type=type_) if type_.signed:
            first, second = extremum_of(scope, left, type_), extremum_of(scope, right, type_)
            if first is None or second is None:
                return None
            if len(second.operands) == 1:
                shift = second.operands[0] if op == "+" else -second.operands[0]
                return Extremum(first.kind, tuple(operand + shift for operand in first.operands))
            if len(first.operands) == 1:
                kind = second.kind if op == "+" else _OTHER[second.kind]
                sign = 1 if op == "+" else -1
                return Extremum(kind, tuple(first.operands[0] + operand * sign for operand in second.operands))
            return None
        case _:
            return None


def chosen(scope: Scope, condition: Expr, then: Extremum, otherwise: Extremum) -> Extremum | None:
    """Return the extremum that ``condition ? then : otherwise`` is, ``None`` where it is not known to be one."""
    if not (isinstance(condition, Binary) and condition.op in ("<", "<=", ">", ">=")):
        return None
    if len(then.operands) == 1 and len(otherwise.operands) == 1:
        sides = scope.compared(condition.left, condition.right)
        if sides is None:
            return None
        kind = _kind(condition.op, sides[0] - sides[1], then.operands[0] - otherwise.operands[0])
        return None if kind is None else Extremum(kind, (then.operands[0], otherwise.operands[0]))
    # min(a, b) < c ? min(a, b) : c
    left, right = extremum_of(scope, condition.left), extremum_of(scope, condition.right)
    if {left, right} != {then, otherwise}:
        return None
    least = (left == then) == (condition.op in ("<", "<="))
    kind = "minimum" if least else "maximum"
    first, second = then.as_kind(kind), otherwise.as_kind(kind)
    return None if first is None or second is None else Extremum(kind, tuple(dict.fromkeys((*first, *second))))


def _kind(op: str, sides: Polynomial, values: Polynomial) -> Literal["maximum", "minimum"] | None:
    """Say which of two values a comparison chooses, given the difference of its sides and that of the values."""
    if op in (">", ">="):
        op, sides = {">": "<", ">=": "<="}[op], -sides
    if op == "<=":
        sides = sides - 1  # of integers
    # The condition holds where sides <= -1.
    for kind, apart, allowed in (("minimum", values - sides, (0, 1)), ("maximum", values + sides, (0, -1))):
        if apart.is_constant and apart.constant_value() in allowed:
            return "minimum" if kind == "minimum" else "maximum"
    return None
