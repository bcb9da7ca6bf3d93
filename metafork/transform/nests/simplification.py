"""Small exact simplifications of integer expressions, for what strategies leave behind (``q + 0``, ``1*B``)."""

from __future__ import annotations

from msgspec.structs import replace

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Binary, Cast, Expr, IntConst, binary
from metafork.ir.rewriting import map_expression


def simplified(expr: Expr) -> Expr:
    """Return an integer expression without neutral elements; products by 0 disappear where they compute nothing else.

    The type is kept: an operand of another type stays where dropping the other would change the type.
    """

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Binary) or not part.type.integer:
            return None
        left, right = simplified(part.left), simplified(part.right)
        small = _small(part.op, left, right)
        if small is not None and small.type == part.type:
            return small
        if left is part.left and right is part.right:
            return part
        return replace(part, left=left, right=right)

    return map_expression(expr, change)


def _small(op: str, left: Expr, right: Expr) -> Expr | None:
    match op, left, right:
        case "+", IntConst(value=first), IntConst(value=second) if first == 0 or second == 0:
            return left if second == 0 else right
        case "*", IntConst(value=first), IntConst(value=second):
            return replace(left, value=first * second) if first in (0, 1) or second in (0, 1) else None
        case (("+" | "-" | "<<" | ">>"), _, IntConst(value=0)):
            return left
        case "+", IntConst(value=0), _:
            return right
        case (("*" | "/"), _, IntConst(value=1)):
            return left
        case "*", IntConst(value=1), _:
            return right
        case "*", _, IntConst(value=0):
            return right
        case (("*" | "/" | "%"), IntConst(value=0), _):
            return left
        case _:
            return None


def factors(expr: Expr) -> list[Expr]:
    """Return the factors of a product, left to right, through products of the same type."""
    if isinstance(expr, Binary) and expr.op == "*" and expr.type.integer:
        result: list[Expr] = []
        for side in (expr.left, expr.right):
            result += factors(side) if side.type == expr.type else [side]
        return result
    return [expr]


def product(parts: list[Expr], type_: ScalarType) -> Expr:
    """Return the product of factors, left to right, computed in a type that holds theirs; 1 where there are none."""
    if not parts:
        return IntConst(1, type_)
    result = parts[0]
    for part in parts[1:]:
        result = binary("*", result, part)
    # What was a long product because of a factor that is gone would overflow as a product of ints.
    return result if result.type is type_ else product([Cast(type_, parts[0]), *parts[1:]], type_)


def summands(expr: Expr, negative: bool = False) -> list[tuple[bool, Expr]]:
    """Return the terms of a sum, left to right, each with whether it is subtracted."""
    if isinstance(expr, Binary) and expr.op in ("+", "-") and expr.type.integer:
        result: list[tuple[bool, Expr]] = []
        for side, flip in ((expr.left, negative), (expr.right, negative != (expr.op == "-"))):
            result += summands(side, flip) if side.type == expr.type else [(flip, side)]
        return result
    return [(negative, expr)]
