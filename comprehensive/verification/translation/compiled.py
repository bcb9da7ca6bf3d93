"""Integer expressions as functions of Python: most of what is played is arithmetic of indices, millions of times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from metafork.ir.program import Binary, Cast, Expr, IntConst, Var

Function = Callable[[Mapping[str, Any]], int]
"""From the values of variables; raises ``TypeError`` where one is no number."""


def compiled(expr: Expr) -> Function | None:
    """Return the function of sums, products and quotients of ``int``s; ``None`` for any other expression.

    Sums that leave a signed type on their way are taken for what they are: points are far too small for it.
    """
    text = _text(expr)
    if text is None:
        return None
    function: Function = eval(f"lambda v: {text}", {"quotient": _quotient, "remainder": _remainder})
    return function


def _text(expr: Expr) -> str | None:
    if not (expr.type.integer and expr.type.signed and expr.type.size >= 4):
        return None
    match expr:
        case IntConst(value=value):
            return str(value)
        case Var(name=name):
            return f"v[{name!r}]"
        case Cast(operand=operand) if expr.type.holds(operand.type):
            return _text(operand)
        case Binary(op=("+" | "-" | "*" | "/" | "%") as op, left=left, right=right):
            first, second = _text(left), _text(right)
            if first is None or second is None:
                return None
            names = {"/": "quotient", "%": "remainder"}
            return f"{names[op]}({first}, {second})" if op in names else f"({first} {op} {second})"
        case _:
            return None


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise TypeError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _quotient(left, right)
