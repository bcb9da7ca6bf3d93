"""The value of a constant expression of C, integer or floating, as a compiler computes it when it translates.

Floating operations are computed exactly and rounded once to their type: what every compiler of ``FLT_EVAL_METHOD`` 0
does.
"""

from __future__ import annotations

import math
from fractions import Fraction

from metafork.ir import program as ir
from metafork.ir.arithmetic import evaluation
from metafork.ir.arithmetic.evaluation import NoValueError, fitted, operation
from metafork.ir.arithmetic.exact_constants import floating_value, nearest
from metafork.ir.arithmetic.types import ScalarType, common_type

Number = int | float


def constant(expr: ir.Expr, type_: ScalarType) -> ir.IntConst | ir.FloatConst:
    """Return an expression as a constant of a type; a number that stands there so already keeps its spelling.

    Raises ``NoValueError`` where it is none: it reads something, calls something, or C gives it no value.
    """
    if isinstance(expr, ir.FloatConst) and expr.type is type_:
        return expr
    value = _converted(_value(expr), type_)
    if isinstance(value, int):
        return ir.IntConst(value, type_, expr.span)
    return ir.FloatConst(_text(value, type_), type_, expr.span)


def _text(value: float, type_: ScalarType) -> str:
    """Return the shortest decimal number that is rounded to the value."""
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isnan(value):
        return f"{sign}NAN"
    if math.isinf(value):
        return f"{sign}INFINITY"
    return f"{value!r}{'f' if type_ is ScalarType.FLOAT else ''}"


def _value(expr: ir.Expr) -> Number:
    match expr:
        case ir.IntConst(value=value):
            return value
        case ir.FloatConst(text=text, type=type_):
            return floating_value(text, type_)
        case ir.Cast(type=type_, operand=operand):
            return _converted(_value(operand), type_)
        case ir.Unary(op="!", operand=operand):
            return int(_value(operand) == 0)
        case ir.Unary(op=op, operand=operand, type=type_):
            inner = _converted(_value(operand), type_)
            if op == "-":
                return -inner if isinstance(inner, float) else fitted(-inner, type_)
            return fitted(~inner, type_) if op == "~" and isinstance(inner, int) else inner
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise, type=type_):
            return _converted(_value(then if _value(condition) != 0 else otherwise), type_)
        case ir.Binary():
            return _binary(expr)
        case ir.Var() | ir.Call() | ir.Element():
            raise NoValueError(type(expr).__name__)


def _binary(expr: ir.Binary) -> Number:
    left = _value(expr.left)
    if expr.op == "&&":
        return int(left != 0 and _value(expr.right) != 0)
    if expr.op == "||":
        return int(left != 0 or _value(expr.right) != 0)
    right = _value(expr.right)
    if expr.op in ("<<", ">>"):
        if isinstance(left, float) or isinstance(right, float):
            raise NoValueError(expr.op)
        return operation(expr.op, left, right, expr.type)
    type_ = common_type(expr.left.type, expr.right.type)
    left, right = _converted(left, type_), _converted(right, type_)
    if isinstance(left, int) and isinstance(right, int):
        return operation(expr.op, left, right, type_)
    if not (math.isfinite(left) and math.isfinite(right)) or (expr.op == "/" and right == 0):
        raise NoValueError(expr.op)  # compilers differ in what a NaN looks like
    if expr.op in ir.COMPARISONS:
        return int(_COMPARED[expr.op](left, right))
    return _rounded(expr.op, float(left), float(right), type_)


_COMPARED = {
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}


def _rounded(op: str, left: float, right: float, type_: ScalarType) -> float:
    first, second = Fraction(left), Fraction(right)
    match op:
        case "+":
            exact, zero = first + second, left + right
        case "-":
            exact, zero = first - second, left - right
        case "*":
            exact, zero = first * second, left * right
        case "/":
            exact, zero = first / second, left / right
        case _:
            raise NoValueError(op)
    return zero if exact == 0 else _nearest(exact, type_)


def _nearest(exact: Fraction, type_: ScalarType) -> float:
    return math.copysign(nearest(abs(exact), type_), -1.0 if exact < 0 else 1.0)


def _converted(value: Number, type_: ScalarType) -> Number:
    if type_.floating:
        if isinstance(value, float) and (value == 0 or not math.isfinite(value)):
            return value
        return _nearest(Fraction(value), type_) if value else 0.0
    if isinstance(value, int):
        return evaluation.converted(value, type_)
    if not math.isfinite(value) or type_ is ScalarType.BOOL:
        raise NoValueError("a floating number as an integer")
    whole = math.trunc(value)
    if evaluation.converted(whole, type_) != whole:
        raise NoValueError("a floating number out of range")
    return whole
