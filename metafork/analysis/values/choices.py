"""Expressions that choose the least or the largest of two values: ``a < b ? a : b``, ``if (end > n) end = n;``.

The condition need not compare the values themselves: ``i > 0 ? i - 1 : 0`` is the larger of ``i - 1`` and 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial, at_most, less_than
from metafork.algebra.symbols import AtMost, Extremum
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.types import ScalarType, common_type
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
            known = scope.known.get(name)
            return known if isinstance(known, Extremum) else None
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
    if not isinstance(condition, Binary):
        return None
    found = _chosen(scope, condition, then, otherwise)
    if found is not None:
        return found
    decided = _decided(scope, condition)
    if decided is not None:
        return then if decided else otherwise
    less = _without_idle(scope, then), _without_idle(scope, otherwise)
    return None if less == (then, otherwise) else _chosen(scope, condition, *less)


def _chosen(scope: Scope, condition: Binary, then: Extremum, otherwise: Extremum) -> Extremum | None:
    if len(then.operands) == 1 and len(otherwise.operands) == 1:
        sides = scope.compared(condition.left, condition.right)
        if sides is None:
            return None
        kind = _kind(condition.op, sides[0] - sides[1], then.operands[0] - otherwise.operands[0])
        if kind is None:
            return _chosen_at_a_border(scope, condition.op, sides[0] - sides[1], then, otherwise)
        return Extremum(kind, (then.operands[0], otherwise.operands[0]))
    if condition.op not in ("<", "<=", ">", ">="):
        return None
    # min(a, b) < c ? min(a, b) : c
    left, right = extremum_of(scope, condition.left), extremum_of(scope, condition.right)
    if {left, right} != {then, otherwise}:
        return None
    least = (left == then) == (condition.op in ("<", "<="))
    kind = "minimum" if least else "maximum"
    first, second = then.as_kind(kind), otherwise.as_kind(kind)
    return None if first is None or second is None else Extremum(kind, tuple(dict.fromkeys((*first, *second))))


def _without_idle(scope: Scope, value: Extremum) -> Extremum:
    """Return an extremum of two without an operand that it never is: ``i - 1`` for the least of that and ``n - 1``."""
    if len(value.operands) != 2:
        return value
    for kept, other in (value.operands, value.operands[::-1]):
        apart = other - kept if value.kind == "minimum" else kept - other
        if scope.bounded(apart):
            return Extremum(value.kind, (kept,))
    return value


def _decided(scope: Scope, condition: Binary) -> bool | None:
    """Say how a comparison turns out where it stands, ``None`` where that is not known."""
    sides = scope.compared(condition.left, condition.right) if condition.op in ("<", "<=", ">", ">=") else None
    if sides is None:
        return None
    less, more = sides if condition.op in ("<", "<=") else sides[::-1]
    apart = more - less - (1 if condition.op in ("<", ">") else 0)  # the condition holds where this is not below 0
    if scope.bounded(apart):
        return True
    return False if scope.bounded(-apart, 1) else None


def _chosen_at_a_border(
    scope: Scope, op: str, apart: Polynomial, then: Extremum, otherwise: Extremum
) -> Extremum | None:
    """Return the extremum that ``i == 0 ? i : i - 1`` is where ``i`` is not below 0: the larger of 0 and ``i - 1``.

    ``apart`` is the difference of what the condition compares.  Where it has a sign, the border is where it is 0.
    """
    for above, inward in ((True, apart), (False, -apart)):
        at = {"==": True, "!=": False} | ({"<=": True, ">": False} if above else {">=": True, "<": False})
        if op not in at or not scope.bounded(inward):
            continue
        there, elsewhere = (then, otherwise) if at[op] else (otherwise, then)
        for shift in (apart - apart, apart, -apart):  # what differs by it is the same at the border
            value = there.operands[0] + shift
            kind = _kind("<=" if above else ">=", apart, value - elsewhere.operands[0])
            if kind is not None:
                return Extremum(kind, (value, elsewhere.operands[0]))
    return None


def _kind(op: str, sides: Polynomial, values: Polynomial) -> Literal["maximum", "minimum"] | None:
    """Say which of two values a comparison chooses, given the difference of its sides and that of the values."""
    if op not in ("<", "<=", ">", ">="):
        return None
    if op in (">", ">="):
        op, sides = {">": "<", ">=": "<="}[op], -sides
    if op == "<=":
        sides = sides - 1  # of integers
    # The condition holds where sides <= -1.
    for kind, apart, allowed in (("minimum", values - sides, (0, 1)), ("maximum", values + sides, (0, -1))):
        if apart.is_constant and apart.constant_value() in allowed:
            return "minimum" if kind == "minimum" else "maximum"
    return None


def upper_bounds(scope: Scope, expr: Expr, type_: ScalarType | None = None) -> AtMost | None:
    """Return polynomials that an integer expression, converted to a type, does not exceed.

    ``room < n ? (0 < room ? room : 0) : n`` is at most n, but need be neither ``room`` nor n.
    """
    if not expr.type.integer or not (type_ is None or type_.integer):
        return None
    found = extremum_of(scope, expr, type_)
    least = None if found is None else found.as_kind("minimum")
    if least is not None:
        return AtMost(least)
    if isinstance(expr, Var):
        known = scope.known.get(expr.name)
        return known if isinstance(known, AtMost) and (type_ is None or type_.holds(expr.type)) else None
    if type_ is not None and not type_.holds(expr.type):
        expr = Cast(type_, expr)
    inner = scope.copy()
    inner.demands = None
    reading = _Reading({})
    kept = (bound for bound in reading.candidates(inner, expr) if reading.never_above(inner, expr, bound))
    operands = tuple(dict.fromkeys(kept))
    return AtMost(operands) if operands else None


class _Reading(Struct, frozen=True):
    """One reading of an expression; an operand that is no known polynomial is one unknown integer everywhere in it."""

    unknown: dict[Expr, Polynomial]

    def candidates(self, scope: Scope, expr: Expr) -> Iterator[Polynomial]:
        """Yield the polynomials that the expression chooses from."""
        match expr:
            case Conditional(then=then, otherwise=otherwise):
                yield from self.candidates(scope, then)
                yield from self.candidates(scope, otherwise)
            case Cast(operand=operand):
                yield from self.candidates(scope, operand)
            case _:
                value = scope.polynomial(expr)
                if value is not None:
                    yield value

    def never_above(self, scope: Scope, expr: Expr, bound: Polynomial) -> bool:
        """Say whether an expression is shown not to exceed a bound."""
        match expr:
            case Conditional(condition=condition, then=then, otherwise=otherwise, type=type_):
                sides = ((then, True), (otherwise, False))
                return all(
                    self.never_above(self._where(scope, condition, holds), _as(side, type_), bound)
                    for side, holds in sides
                )
            case Cast(type=type_, operand=operand) if type_.integer and operand.type.integer:
                if not type_.holds(operand.type):
                    # What does not fit becomes less, unless it lies below the type.
                    value = self._value(scope, operand)
                    if not scope.bounded(value, type_.least):
                        return False
                return self.never_above(scope, operand, bound)
            case _:
                return scope.bounded(bound - self._value(scope, expr))

    def _where(self, scope: Scope, condition: Expr, holds: bool) -> Scope:
        """Return what is known where a condition holds, or does not."""
        inner = scope.copy()
        if isinstance(condition, Binary) and condition.op in ("<", "<=", ">", ">="):
            type_ = common_type(condition.left.type, condition.right.type)
            if all(side.type.integer and type_.holds(side.type) for side in (condition.left, condition.right)):
                left, right = (self._value(scope, side) for side in (condition.left, condition.right))
                if condition.op in (">", ">="):
                    left, right = right, left
                relation = less_than if condition.op in ("<", ">") else at_most
                constraint = relation(left, right)
                inner.ranges.assume((constraint if holds else constraint.negated(),))
        return inner

    def _value(self, scope: Scope, expr: Expr) -> Polynomial:
        while isinstance(expr, Cast) and expr.type.integer and expr.type.holds(expr.operand.type):
            expr = expr.operand
        value = scope.polynomial(expr)
        if value is not None:
            return value
        if expr not in self.unknown:
            above, below = (f"unknown {len(self.unknown)} {side}" for side in ("above", "below"))
            self.unknown[expr] = Polynomial.symbol(above) - Polynomial.symbol(below)
        return self.unknown[expr]


def _as(expr: Expr, type_: ScalarType) -> Expr:
    return expr if type_.holds(expr.type) else Cast(type_, expr)
