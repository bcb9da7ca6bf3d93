"""``meta_atomic`` in front of an assignment: which operation it is, of those that may run in any order.

``a[e] += v`` and its like, ``a[e]++``, and the same written out: ``a[e] = a[e] + v``, ``a[e] = a[e] < v ? v : a[e]``
(a macro or a function of the file may have said it).
"""

from __future__ import annotations

from msgspec.structs import replace

from metafork.frontend.text.reporter import Reporter
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.atomic_updates import OPERATORS, SUMS
from metafork.ir.messages.source import Span
from metafork.ir.rewriting import names_in, substitute

_PLAIN = frozenset(OPERATORS) - {"min", "max"}


def with_old_value(built: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Return statements with the element back in the last one that was read ahead of it, as a function's argument."""
    *ahead, last = built
    if not isinstance(last, ir.Assign) or not isinstance(last.target, ir.Element):
        return built
    for stmt in ahead:
        if isinstance(stmt, ir.Declare) and stmt.value is not None and _same(stmt.value, last.target):
            others = tuple(one for one in ahead if one is not stmt)
            if stmt.name not in names_in(others):
                return with_old_value((*others, replace(last, value=substitute(last.value, {stmt.name: stmt.value}))))
    return built


def atomic(assignment: ir.Stmt, own: bool, reassociate: bool, span: Span, reporter: Reporter) -> ir.Assign:
    """Return an assignment as an atomic update; ``own`` says that the thread alone has its target.

    Floating-point numbers are added up only where the user asked to ``reassociate``.

    Raises ``RefusedError`` where it is none.
    """
    if not isinstance(assignment, ir.Assign) or not isinstance(assignment.target, ir.Element):
        message = "what is updated atomically here is no element of an array"
        raise reporter.refuse("MF0224", span, message, way_out="remove `meta_atomic`: other threads do not see it.")
    target = assignment.target
    if own:
        message = f"`{target.array}` is an array of the thread"
        raise reporter.refuse("MF0224", span, message, way_out="remove `meta_atomic`: other threads do not see it.")
    if target.type.small:
        message = f"the elements of `{target.array}` have type `{target.type.spelling}`"
        reason = "devices add to numbers of 4 and 8 bytes."
        raise reporter.refuse("MF0224", span, message, reason=reason, way_out="add up in an array of `float`.")
    if target.type.floating and not reassociate:
        raise reporter.refuse(
            "MF0224",
            span,
            f"the elements of `{target.array}` have type `{target.type.spelling}`",
            reason="a floating-point sum depends on the order of its terms, and threads have none.",
            way_out="allow any order: add `--reassociate` to the command. Results then differ in their last bits from "
            "run to run, within a bound that the report states.",
        )
    if target.type is ScalarType.BOOL:
        raise reporter.refuse(
            "MF0224",
            span,
            f"the elements of `{target.array}` have type `_Bool`",
            reason="no device updates one truth value of several in a word atomically.",
            way_out="make it an array of `int`.",
        )
    op, value = operation(assignment)
    if op is None:
        raise reporter.refuse(
            "MF0224", span, f"`{target.array}` is not updated by an operation that may run in any order"
        )
    if target.type.floating and op not in SUMS:
        message = f"`{target.array}` has type `{target.type.spelling}` and is not updated by a sum"
        way_out = "write `+=` or `-=`; for products and extrema let each thread write its part to an array."
        raise reporter.refuse("MF0224", span, message, reason="devices only add to them.", way_out=way_out)
    if value.type.floating and target.type.integer:
        message = f"the value has type `{value.type.spelling}`"
        raise reporter.refuse(
            "MF0224", span, message, way_out=f"convert it: `({target.type.spelling})` in front of the value."
        )
    if op in ("min", "max") and not keeps(target.type, value):
        message = f"the value has type `{value.type.spelling}`, the element `{target.type.spelling}`"
        raise reporter.refuse(
            "MF0224",
            span,
            message,
            reason="C compares them in a third type, atomic operations in that of the element.",
            way_out=f"convert the value: `({target.type.spelling})`.",
        )
    return replace(assignment, op=op, value=value, atomic=True)


def operation(assignment: ir.Assign) -> tuple[str | None, ir.Expr]:
    """Return the operation of an update, ``None`` where it is none that may run in any order, and its value."""
    target, op, value = assignment.target, assignment.op, assignment.value
    if op:
        return (op if op in _PLAIN else None), value
    while isinstance(value, ir.Cast) and value.type is target.type:
        value = value.operand
    match value:
        case ir.Binary(op=op, left=left, right=right) if op in _PLAIN:
            if _same(left, target):
                return op, right
            if _same(right, target) and op != "-":
                return op, left
        case ir.Conditional(condition=ir.Binary(op=op, left=left, right=right), then=then, otherwise=otherwise):
            if op in (">", ">="):
                left, right = right, left
            if op in ("<", ">", "<=", ">="):
                least = _same(then, left) and _same(otherwise, right)
                most = _same(then, right) and _same(otherwise, left)
                if (least or most) and _same(left, target) != _same(right, target):
                    return ("min" if least else "max"), (right if _same(left, target) else left)
    return None, value


def _same(one: ir.Expr, other: ir.Expr) -> bool:
    """Say whether two expressions are one, conversions that change no value left aside."""
    return _bare(one) == _bare(other)


def _bare(expr: ir.Expr) -> ir.Expr:
    while (
        isinstance(expr, ir.Cast)
        and expr.operand.type.integer
        and expr.type.integer
        and expr.type.holds(expr.operand.type)
    ):
        expr = expr.operand
    return expr


def keeps(type_: ScalarType, value: ir.Expr) -> bool:
    """Say whether a value is the same in a type, and compared there as C compares it with values of that type."""
    if isinstance(value, ir.IntConst):
        return type_.least <= value.value <= type_.greatest and common_type(type_, value.type).holds(type_)
    return type_.holds(value.type)
