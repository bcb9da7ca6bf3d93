"""Expressions that are one of several polynomials: the least, the largest, or the one in a period.

``a < b ? a : b`` and ``if (end > n) end = n;`` choose the least or the largest of two values.  The condition need not
compare these: ``i > 0 ? i - 1 : 0`` is the larger of ``i - 1`` and 0, and ``i == 0 ? i : i - 1`` is too, where 0 <= i.

``(i + 1) % n``, ``i == n - 1 ? 0 : i + 1`` and ``if (l < 0) l += n;`` wrap at a border: they are a value less as many
periods as bring it between 0 and the period.  The two sides of a choice are so where they differ by a period, the
condition of the one side taken into account: 0 is ``i + 1 - n`` where ``i == n - 1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from metafork.algebra.polynomial import ZERO, Constraint, Polynomial, at_most, less_than
from metafork.algebra.symbols import AtMost, Extremum, Wrap
from metafork.analysis.values.conditions import meaning, where
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Binary, Cast, Conditional, Expr, Var

Kind = Literal["maximum", "minimum"]
_OTHER: dict[Kind, Kind] = {"maximum": "minimum", "minimum": "maximum"}


def choice_of(scope: Scope, expr: Expr, type_: ScalarType | None = None) -> Extremum | Wrap | None:
    """Return the polynomials that an integer expression, converted to a type, chooses from, ``None`` if unknown."""
    extremum = extremum_of(scope, expr, type_)
    return wrap_of(scope, expr, type_) if extremum is None else extremum


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
            return None if first is None or second is None else _chosen_extremum(scope, condition, first, second)
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


def wrap_of(scope: Scope, expr: Expr, type_: ScalarType | None = None) -> Wrap | None:
    """Return the wrap that an integer expression, converted to a type, is; ``None`` where it is not known to be one."""
    if not expr.type.integer or not (type_ is None or type_.integer):
        return None
    found = _wrap(scope, expr)
    if found is None or type_ is None or type_.holds(expr.type):
        return found
    return found if scope.stored(found.period, expr.type, type_) is not None else None


def _wrap(scope: Scope, expr: Expr) -> Wrap | None:
    match expr:
        case Var(name=name):
            known = scope.known.get(name)
            return known if isinstance(known, Wrap) else None
        case Cast(type=type_, operand=operand):
            return wrap_of(scope, operand, type_)
        case Binary(op="%", left=left, right=right, type=type_):
            value, period = scope.converted(left, type_), scope.converted(right, type_)
            if value is None or period is None or not period.symbols <= scope.constants:
                return None
            # C's remainder of a value below 0 is not above 0; a divisor of 0 is undefined.
            return Wrap(value, period) if scope.bounded(value) and scope.bounded(period) else None
        case Conditional(condition=condition, then=then, otherwise=otherwise, type=type_):
            first, second = scope.converted(then, type_), scope.converted(otherwise, type_)
            return None if first is None or second is None else _chosen_wrap(scope, condition, first, second)
        case _:
            return None


def chosen(scope: Scope, condition: Expr, then: Extremum, otherwise: Extremum) -> Extremum | Wrap | None:
    """Return what ``condition ? then : otherwise`` is, ``None`` where that is not known."""
    extremum = _chosen_extremum(scope, condition, then, otherwise)
    if extremum is None and len(then.operands) == len(otherwise.operands) == 1:
        return _chosen_wrap(scope, condition, then.operands[0], otherwise.operands[0])
    return extremum


def _chosen_extremum(scope: Scope, condition: Expr, then: Extremum, otherwise: Extremum) -> Extremum | None:
    found = _chosen(scope, condition, then, otherwise)
    if found is not None:
        return found
    for truth, side in ((True, then), (False, otherwise)):
        said = meaning(scope, condition, truth).conjunction
        if said is not None and all(one.relation != "==" and scope.bounded(one.room) for one in said):
            return side
    less = _without_idle(scope, then), _without_idle(scope, otherwise)
    return None if less == (then, otherwise) else _chosen(scope, condition, *less)


def _chosen(scope: Scope, condition: Expr, then: Extremum, otherwise: Extremum) -> Extremum | None:
    if len(then.operands) == len(otherwise.operands) == 1:
        sides, cases = (then.operands[0], otherwise.operands[0]), _Case.both(scope, condition)
        for here, case in enumerate(cases):
            for zero in case.zeros:
                value, other = sides[here] + zero, sides[1 - here]
                if case.scope.bounded(other - value) and cases[1 - here].scope.bounded(value - other):
                    return Extremum("minimum", (value, other))
                if case.scope.bounded(value - other) and cases[1 - here].scope.bounded(other - value):
                    return Extremum("maximum", (value, other))
        return None
    if not isinstance(condition, Binary) or condition.op not in ("<", "<=", ">", ">="):
        return None
    # min(a, b) < c ? min(a, b) : c
    left, right = extremum_of(scope, condition.left), extremum_of(scope, condition.right)
    if {left, right} != {then, otherwise}:
        return None
    least = (left == then) == (condition.op in ("<", "<="))
    kind: Kind = "minimum" if least else "maximum"
    first, second = then.as_kind(kind), otherwise.as_kind(kind)
    return None if first is None or second is None else Extremum(kind, tuple(dict.fromkeys((*first, *second))))


def _without_idle(scope: Scope, value: Extremum) -> Extremum:
    """Return an extremum of two without an operand that it never is: ``i - 1`` for the least of that and ``n - 1``."""
    if len(value.operands) != 2:
        return value
    for kept, other in (value.operands, value.operands[::-1]):
        if scope.bounded(other - kept if value.kind == "minimum" else kept - other):
            return Extremum(value.kind, (kept,))
    return value


def _chosen_wrap(scope: Scope, condition: Expr, then: Polynomial, otherwise: Polynomial) -> Wrap | None:
    sides, cases = (then, otherwise), _Case.both(scope, condition)
    for here, case in enumerate(cases):
        for zero in case.zeros:
            value, other = sides[here] + zero, sides[1 - here]
            # The greater side is the value that the period is taken from.
            for greater, period in ((value, value - other), (other, other - value)):
                if period.symbols <= scope.constants and period and scope.bounded(period):
                    inside = zip(sides, cases, strict=True)
                    if all(one.scope.bounded(side) and one.scope.bounded(period - side, 1) for side, one in inside):
                        return Wrap(greater, period)
    return None


class _Case(Struct, frozen=True):
    """What is known where a condition holds, or does not, and what is 0 there: 0 first, others of either sign."""

    scope: Scope
    zeros: tuple[Polynomial, ...]

    @staticmethod
    def both(scope: Scope, condition: Expr) -> tuple[_Case, _Case]:
        """Return the case where a condition holds, and the other one."""
        return _Case._of(scope, condition, True), _Case._of(scope, condition, False)

    @staticmethod
    def _of(scope: Scope, condition: Expr, truth: bool) -> _Case:
        known = tuple(_known(scope, condition, truth))
        inner = scope.copy()
        inner.ranges.assume(known)
        slacks = dict.fromkeys(one.right - one.left for one in known if one.relation == "<=")
        return _Case(inner, (ZERO, *(slack for slack in slacks if -slack in slacks)))


def _known(scope: Scope, condition: Expr, truth: bool) -> Iterator[Constraint]:
    """Yield what a comparison says of integers where it holds, or does not; an equality as two constraints.

    What is known besides makes ``i != n - 1`` an inequality, and ``i >= n - 1`` an equality.
    """
    for constraint in meaning(scope, condition, truth).constraints:
        yield at_most(0, constraint.room)
        if constraint.relation == "==" or scope.bounded(-constraint.room):
            yield at_most(constraint.room, 0)
    match condition:
        case Binary(op=("==" | "!=") as op, left=left, right=right) if (op == "!=") == truth:
            compared = scope.compared(left, right)
            if compared is not None:
                apart = compared[0] - compared[1]
                yield from (less_than(0, one) for one in (apart, -apart) if scope.bounded(one))


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
    candidates = tuple(_candidates(inner, expr))
    inner.beyond = _Unknown({})
    operands = tuple(dict.fromkeys(one for one in candidates if _never_above(inner, expr, one)))
    return AtMost(operands) if operands else None


class _Unknown(Struct, frozen=True):
    """Takes what is no known polynomial as one unknown integer wherever it stands."""

    met: dict[Expr, Polynomial]

    def value(self, scope: Scope, expr: Expr) -> Polynomial:
        if expr not in self.met:
            above, below = (f"unknown {len(self.met)} {side}" for side in ("above", "below"))
            self.met[expr] = Polynomial.symbol(above) - Polynomial.symbol(below)
        return self.met[expr]

    def constraints(self, value: Polynomial) -> tuple[Constraint, ...]:
        return ()


def _candidates(scope: Scope, expr: Expr) -> Iterator[Polynomial]:
    """Yield the polynomials that the expression chooses from."""
    match expr:
        case Conditional(then=then, otherwise=otherwise):
            yield from _candidates(scope, then)
            yield from _candidates(scope, otherwise)
        case Cast(operand=operand):
            yield from _candidates(scope, operand)
        case _:
            value = scope.polynomial(expr)
            if value is not None:
                yield value


def _never_above(scope: Scope, expr: Expr, bound: Polynomial) -> bool:
    """Say whether an expression, all of whose parts have values, is shown not to exceed a bound."""
    match expr:
        case Conditional(condition=condition, then=then, otherwise=otherwise, type=type_):
            return all(
                _never_above(
                    where(scope, condition, truth), side if type_.holds(side.type) else Cast(type_, side), bound
                )
                for side, truth in ((then, True), (otherwise, False))
            )
        case Cast(type=type_, operand=operand) if type_.integer and operand.type.integer:
            value = scope.polynomial(operand)
            # What does not fit becomes less, unless it lies below the type.
            fits = type_.holds(operand.type) or (value is not None and scope.bounded(value, type_.least))
            return fits and _never_above(scope, operand, bound)
        case _:
            value = scope.polynomial(expr)
            return value is not None and scope.bounded(bound - value)
