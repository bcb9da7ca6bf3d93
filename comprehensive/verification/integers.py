"""C integer expressions over numbers, for scalars that are no polynomials (``n > B ? n / B : 1``)."""

from __future__ import annotations

from collections.abc import Mapping

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Binary, Cast, Conditional, Expr, IntConst, Unary, Var


def evaluated(expr: Expr, values: Mapping[str, int]) -> int:
    """Return the value of an integer expression as C computes it.

    Raises ``ValueError`` where it is no integer expression over ``values`` or where C leaves it undefined (overflow,
    shifts too far), ``ZeroDivisionError`` for a division by zero.
    """
    match expr:
        case IntConst(value=value):
            return value
        case Var(name=name) if name in values:
            return values[name]
        case Cast(type=type_, operand=operand) if type_.integer:
            return wrapped(evaluated(operand, values), type_)
        case Unary(op=op, operand=operand, type=type_):
            inner = evaluated(operand, values)
            return _fitting({"-": -inner, "+": inner, "~": ~inner, "!": int(not inner)}[op], type_)
        case Conditional(condition=condition, then=then, otherwise=otherwise, type=type_):
            return wrapped(evaluated(then if evaluated(condition, values) else otherwise, values), type_)
        case Binary(op=("&&" | "||") as op, left=left, right=right):
            first = bool(evaluated(left, values))
            return int(first) if first == (op == "||") else int(bool(evaluated(right, values)))
        case Binary():
            return _binary(expr, values)
        case _:
            raise ValueError(f"{type(expr).__name__} is no integer expression over these values")


def _binary(expr: Binary, values: Mapping[str, int]) -> int:
    from metafork.ir.arithmetic.types import common_type

    both = common_type(expr.left.type, expr.right.type)
    shift = expr.op in ("<<", ">>")
    left = wrapped(evaluated(expr.left, values), expr.type if shift else both)
    right = evaluated(expr.right, values) if shift else wrapped(evaluated(expr.right, values), both)
    if shift and not 0 <= right < 8 * expr.type.size:
        raise ValueError("a shift too far")
    match expr.op:
        case "+":
            value = left + right
        case "-":
            value = left - right
        case "*":
            value = left * right
        case "/" | "%":
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            value = quotient if expr.op == "/" else left - quotient * right
        case "<<":
            value = left << right
        case ">>":
            value = left >> right
        case "&":
            value = left & right
        case "|":
            value = left | right
        case "^":
            value = left ^ right
        case "<":
            value = int(left < right)
        case ">":
            value = int(left > right)
        case "<=":
            value = int(left <= right)
        case ">=":
            value = int(left >= right)
        case "==":
            value = int(left == right)
        case "!=":
            value = int(left != right)
        case _:
            raise ValueError(f"no integer operation: {expr.op}")
    return _fitting(value, expr.type)


def wrapped(value: int, type_: ScalarType) -> int:
    """Return an integer converted to an integer type, as compilers define it: modulo its range."""
    if not type_.integer:
        raise ValueError(f"{type_.spelling} is no integer type")
    if type_ is ScalarType.BOOL:
        return int(value != 0)
    bits = 8 * type_.size
    value %= 1 << bits
    return value - (1 << bits) if type_.signed and value >> (bits - 1) else value


def _fitting(value: int, type_: ScalarType) -> int:
    """Return the result of an operation: modulo the range for unsigned types, undefined outside of a signed one."""
    fitting = wrapped(value, type_)
    if type_.signed and fitting != value:
        raise ValueError("a signed overflow")
    return fitting
