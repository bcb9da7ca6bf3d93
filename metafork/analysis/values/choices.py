"""Expressions that are one of several polynomials: the least, the largest, or the one in a period.

``a < b ? a : b`` and ``if (end > n) end = n;`` choose the least or the largest of two values.  The condition need not
compare these: ``i > 0 ? i - 1 : 0`` is the larger of ``i - 1`` and 0, and ``i == 0 ? i : i - 1`` is too, where 0 <= i.

``(i + 1) % n``, ``i == n - 1 ? 0 : i + 1`` and ``if (l < 0) l += n;`` wrap at a border: they are a value less as many
periods as bring it between 0 and the period.  The two sides of a choice are so where they differ by a period, the
condition of the one side taken into account: 0 is ``i + 1 - n`` where ``i == n - 1``.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from metafork.algebra.polynomial import ZERO, Constraint, Polynomial, at_most, less_than
from metafork.algebra.symbols import UNKNOWN, Value, ValueKind
from metafork.analysis.values.conditions import meaning, where
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Binary, Cast, Conditional, Expr, Var

_OTHER: dict[ValueKind, ValueKind] = {"maximum": "minimum", "minimum": "maximum"}


def extremum_of(scope: Scope, expr: Expr, type_: ScalarType | None = None) -> Value:
    """Return polynomials of which an integer expression, converted to a type, is the least or largest."""
    return value_of(scope, expr, type_, wraps=False)


def value_of(scope: Scope, expr: Expr, type_: ScalarType | None = None, *, wraps: bool = True) -> Value:
    """Return what an integer expression, converted to a type, is: perhaps with ``wraps`` a modular value."""
    type_ = type_ or expr.type
    if not (expr.type.integer and type_.integer):
        return UNKNOWN
    value = scope.converted(expr, type_)
    if value is not None:
        return Value.of(value)
    found = _choice(scope, expr, wraps)
    parts = () if type_.holds(expr.type) else found.operands[found.kind == "modular" :]
    return found if all(scope.stored(one, expr.type, type_) is not None for one in parts) else UNKNOWN


def _choice(scope: Scope, expr: Expr, wraps: bool) -> Value:
    match expr:
        case Var(name=name):
            found = scope.choices.get(name, UNKNOWN)
            return found if found.kind in _OTHER or (wraps and found.kind == "modular") else UNKNOWN
        case Cast(type=type_, operand=operand):
            return value_of(scope, operand, type_, wraps=wraps)
        case Conditional(condition=condition, then=then, otherwise=otherwise, type=type_):
            sides = extremum_of(scope, then, type_), extremum_of(scope, otherwise, type_)
            return chosen(scope, condition, *sides, wraps=wraps)
        case Binary(op="+" | "-" as op, left=left, right=right, type=type_) if type_.signed:
            first, second = extremum_of(scope, left, type_), extremum_of(scope, right, type_)
            if first and second.known:
                shift = second.operands[0] if op == "+" else -second.operands[0]
                return Value(first.kind, tuple(operand + shift for operand in first.operands))
            if first.known and second:
                kind, sign = (second.kind, 1) if op == "+" else (_OTHER[second.kind], -1)
                return Value(kind, tuple(first.operands[0] + operand * sign for operand in second.operands))
            return UNKNOWN
        case Binary(op="%", left=left, right=right, type=type_) if wraps:
            value, period = scope.converted(left, type_), scope.converted(right, type_)
            if value is None or period is None or not period.symbols <= scope.constants:
                return UNKNOWN
            # C's remainder of a value below 0 is not above 0; a divisor of 0 is undefined.
            return Value("modular", (value, period)) if scope.bounded(value) and scope.bounded(period) else UNKNOWN
        case _:
            return UNKNOWN


def chosen(scope: Scope, condition: Expr, then: Value, otherwise: Value, *, wraps: bool = True) -> Value:
    """Return what ``condition ? then : otherwise`` is."""
    if not (then and otherwise) or not {then.kind, otherwise.kind} <= _OTHER.keys():
        return UNKNOWN
    found = _chosen(scope, condition, then, otherwise)
    if found:
        return found
    for truth, side in ((True, then), (False, otherwise)):
        said = meaning(scope, condition, truth).conjunction
        if said is not None and all(one.relation != "==" and scope.bounded(one.room) for one in said):
            return side
    less = _without_idle(scope, then), _without_idle(scope, otherwise)
    found = UNKNOWN if less == (then, otherwise) else _chosen(scope, condition, *less)
    return found if found or not wraps else chosen_wrap(scope, condition, then, otherwise)


def _chosen(scope: Scope, condition: Expr, then: Value, otherwise: Value) -> Value:
    if then.known and otherwise.known:
        sides, cases = (then.operands[0], otherwise.operands[0]), _cases(scope, condition)
        for here, (inside, zeros) in enumerate(cases):
            outside, other = cases[1 - here][0], sides[1 - here]
            for value in (sides[here] + zero for zero in zeros):
                if inside.bounded(other - value) and outside.bounded(value - other):
                    return Value("minimum", (value, other))
                if inside.bounded(value - other) and outside.bounded(other - value):
                    return Value("maximum", (value, other))
        return UNKNOWN
    if not isinstance(condition, Binary) or condition.op not in ("<", "<=", ">", ">="):
        return UNKNOWN
    # min(a, b) < c ? min(a, b) : c
    left, right = extremum_of(scope, condition.left), extremum_of(scope, condition.right)
    if {left, right} != {then, otherwise}:
        return UNKNOWN
    least = (left == then) == (condition.op in ("<", "<="))
    kind: ValueKind = "minimum" if least else "maximum"
    first, second = then.as_kind(kind), otherwise.as_kind(kind)
    return Value(kind, tuple(dict.fromkeys((*first, *second)))) if first and second else UNKNOWN


def _without_idle(scope: Scope, value: Value) -> Value:
    """Return an extremum of two without an operand that it never is: ``i - 1`` for the least of that and ``n - 1``."""
    if len(value.operands) != 2:
        return value
    for kept, other in (value.operands, value.operands[::-1]):
        if scope.bounded(other - kept if value.kind == "minimum" else kept - other):
            return Value.of(kept)
    return value


def chosen_wrap(scope: Scope, condition: Expr, then: Value, otherwise: Value) -> Value:
    """Return the modular value that ``condition ? then : otherwise`` is."""
    if not (then.known and otherwise.known):
        return UNKNOWN
    sides, cases = (then.operands[0], otherwise.operands[0]), _cases(scope, condition)
    for here, (_, zeros) in enumerate(cases):
        for zero in zeros:
            value, other = sides[here] + zero, sides[1 - here]
            # The greater side is the value that the period is taken from.
            for greater, period in ((value, value - other), (other, other - value)):
                if period.symbols <= scope.constants and period and scope.bounded(period):
                    inside = zip(sides, cases, strict=True)
                    if all(one.bounded(side) and one.bounded(period - side, 1) for side, (one, _) in inside):
                        return Value("modular", (greater, period))
    return UNKNOWN


def _cases(scope: Scope, condition: Expr) -> list[tuple[Scope, tuple[Polynomial, ...]]]:
    """Return scopes of where a condition holds, and where not, and what is 0 there: 0 first, others of either sign."""
    found = []
    for truth in (True, False):
        known = tuple(_known(scope, condition, truth))
        inner = scope.copy()
        inner.ranges.assume(known)
        slacks = dict.fromkeys(one.right - one.left for one in known if one.relation == "<=")
        found.append((inner, (ZERO, *(slack for slack in slacks if -slack in slacks))))
    return found


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


def upper_bounds(scope: Scope, expr: Expr, type_: ScalarType | None = None) -> Value:
    """Return polynomials that an integer expression, converted to a type, does not exceed.

    ``room < n ? (0 < room ? room : 0) : n`` is at most n, but need be neither ``room`` nor n.
    """
    least = extremum_of(scope, expr, type_).as_kind("minimum")
    type_ = type_ or expr.type
    if least or not (expr.type.integer and type_.integer):
        return Value("bounded", least)
    if isinstance(expr, Var):
        return Value("bounded", scope.bound(expr.name).as_kind("bounded")) if type_.holds(expr.type) else UNKNOWN
    if not type_.holds(expr.type):
        expr = Cast(type_, expr)
    inner = scope.copy()
    inner.demands = None
    candidates = tuple(_candidates(inner, expr))
    inner.beyond = _Unknown({})
    return Value("bounded", tuple(dict.fromkeys(one for one in candidates if _never_above(inner, expr, one))))


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
