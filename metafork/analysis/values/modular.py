"""Expressions that wrap at a border: ``(i + 1) % n``, ``i == n - 1 ? 0 : i + 1``, ``if (l < 0) l += n;``.

Each is ``value mod period``: a polynomial in loop variables and parameters less as many periods as bring it between 0
and the period.  The two sides of a choice are such a remainder where they differ by a period, the condition of the one
side taken into account: 0 is ``i + 1 - n`` where ``i == n - 1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from metafork.algebra.polynomial import Constraint, Polynomial, at_most, less_than
from metafork.algebra.symbols import Wrap
from metafork.analysis.values.conditions import meaning
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Binary, Cast, Conditional, Expr, Var


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
            return None if first is None or second is None else chosen_wrap(scope, condition, first, second)
        case _:
            return None


def chosen_wrap(scope: Scope, condition: Expr, then: Polynomial, otherwise: Polynomial) -> Wrap | None:
    """Return the wrap that ``condition ? then : otherwise`` is, ``None`` where it is not known to be one."""
    cases = [tuple(_known(scope, condition, truth)) for truth in (True, False)]
    sides = (then, otherwise)
    for here in (0, 1):
        for shift in _zeros(cases[here]):
            period = sides[here] + shift - sides[1 - here]
            for one in (period, -period):
                if one.symbols <= scope.constants and one and scope.bounded(one):
                    below = all(_between(scope, value, one, known) for value, known in zip(sides, cases, strict=True))
                    # The greater side is the value that the period is taken from.
                    greater = sides[1 - here] if one == -period else sides[here] + shift
                    if below:
                        return Wrap(greater, one)
    return None


def _known(scope: Scope, condition: Expr, truth: bool) -> Iterator[Constraint]:
    """Yield what a comparison says of integers where it holds, or does not; an equality as two constraints.

    What is known besides makes ``i != n - 1`` an inequality, and ``i >= n - 1`` an equality.
    """
    for constraint in meaning(scope, condition, truth).constraints:
        difference = constraint.difference
        if constraint.relation == "==":
            yield from (at_most(difference, 0), at_most(0, difference))
            continue
        slack = constraint.room
        yield at_most(0, slack)
        if scope.bounded(-slack):
            yield at_most(slack, 0)
    match condition:
        case Binary(op=("==" | "!=") as op, left=left, right=right) if (op == "!=") == truth:
            compared = scope.compared(left, right)
            if compared is not None:
                apart = compared[0] - compared[1]
                yield from (less_than(0, one) for one in (apart, -apart) if scope.bounded(one))


def _zeros(known: Iterable[Constraint]) -> Iterator[Polynomial]:
    """Yield what is 0 where constraints hold, 0 itself first, with either sign."""
    yield Polynomial.constant(0)
    slacks = {one.right - one.left for one in known if one.relation == "<="}
    yield from (slack for slack in slacks if -slack in slacks)


def _between(scope: Scope, value: Polynomial, period: Polynomial, known: Iterable[Constraint]) -> bool:
    """Say whether ``0 <= value < period`` holds where some constraints do."""
    inner = scope.copy()
    inner.ranges.assume(known)
    return inner.bounded(value) and inner.bounded(period - value, 1)
