"""The value of a C integer expression at a point, exactly as C computes it, or nothing where C leaves it undefined."""

from __future__ import annotations

from collections.abc import Mapping

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType, common_type


class NoValueError(Exception):
    """The expression reads memory, is not of integer type, or has no defined value at the point."""


def integer_value(expr: ir.Expr, values: Mapping[str, int]) -> int:
    """Return the value of an integer expression; ``values`` gives the variables.

    Raises ``NoValueError`` where it reads memory or a variable without a value, divides by zero, shifts too far or
    leaves the range of a signed type.
    """
    match expr:
        case ir.IntConst(value=value):
            return value
        case ir.Var(name=name):
            if name not in values:
                raise NoValueError(name)
            return values[name]
        case ir.Unary(op=op, operand=operand):
            return of_one(op, integer_value(operand, values), expr.type)
        case ir.Cast(type=type_, operand=operand):
            return converted(integer_value(operand, values), type_)
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            chosen = then if integer_value(condition, values) else otherwise
            return converted(integer_value(chosen, values), expr.type)
        case ir.Binary():
            return _binary(expr, values)
        case ir.Call() | ir.Element() | ir.FloatConst():
            raise NoValueError(type(expr).__name__)


def _binary(expr: ir.Binary, values: Mapping[str, int]) -> int:
    left = integer_value(expr.left, values)
    if expr.op == "&&":
        return int(bool(left) and bool(integer_value(expr.right, values)))
    if expr.op == "||":
        return int(bool(left) or bool(integer_value(expr.right, values)))
    return of_two(expr, left, integer_value(expr.right, values))


def of_one(op: str, value: int, type_: ScalarType) -> int:
    """Return what a unary operation with a result of that type makes of a value."""
    match op:
        case "!":
            return int(not value)
        case "-":
            return fitted(-value, type_)
        case "~":
            return fitted(~value, type_)
        case _:
            return value


def of_two(expr: ir.Binary, left: int, right: int) -> int:
    """Return the value of an operation, other than ``&&`` and ``||``, whose operands have these values."""
    if expr.op in ("<<", ">>"):
        return operation(expr.op, left, right, expr.type)
    own, other = expr.left.type, expr.right.type
    type_ = common_type(own, other)
    left = left if own is type_ else converted(left, type_)
    right = right if other is type_ else converted(right, type_)
    return operation(expr.op, left, right, type_)


def operation(op: str, left: int, right: int, type_: ScalarType) -> int:
    """Return the result of a binary operation on values of one type; the right operand of a shift is of any type.

    Raises ``NoValueError`` where C gives it no value.
    """
    match op:
        case "<":
            return int(left < right)
        case ">":
            return int(left > right)
        case "<=":
            return int(left <= right)
        case ">=":
            return int(left >= right)
        case "==":
            return int(left == right)
        case "!=":
            return int(left != right)
        case "<<" | ">>":
            if not 0 <= right < 8 * type_.size:
                raise NoValueError("shift")
            return fitted(left << right if op == "<<" else left >> right, type_)
        case "/" | "%":
            if right == 0:
                raise NoValueError("division by zero")
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            # The remainder has no value either where the quotient has none.
            quotient = fitted(quotient, type_)
            return quotient if op == "/" else left - right * quotient
        case "+":
            return fitted(left + right, type_)
        case "-":
            return fitted(left - right, type_)
        case "*":
            return fitted(left * right, type_)
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return fitted(left ^ right, type_)
        case _:
            raise NoValueError(op)


def fitted(value: int, type_: ScalarType) -> int:
    """Return a result in its type: unsigned types wrap; raises ``NoValueError`` where a signed one overflows."""
    if type_.floating:
        raise NoValueError("floating")
    bits = 8 * type_.size
    if not type_.signed:
        return value % (1 << bits)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise NoValueError("overflow")
    return value


def converted(value: int, type_: ScalarType) -> int:
    """Return a value converted to a type; two's complement, as every compiler has it."""
    if type_.floating:
        raise NoValueError("floating")
    if type_ is ScalarType.BOOL:
        return int(value != 0)
    bits = 8 * type_.size
    wrapped = value % (1 << bits)
    return wrapped - (1 << bits) if type_.signed and wrapped >= 1 << (bits - 1) else wrapped
