"""How many elements an array has that its initialiser alone gives an extent."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from metafork.frontend.text import syntax
from metafork.frontend.text.constants import character_constant, integer_constant
from metafork.ir.messages.source import Span


def first_extent(
    braces: syntax.Braces, inner: Sequence[syntax.Expression | None], span: Span
) -> syntax.Expression | None:
    """Return the first extent of an array whose other ones are ``inner``; ``None`` where it does not show."""
    rows = _rows(braces, inner)
    if rows is not None:
        return syntax.Constant(str(rows), span) if rows else None
    numbers = [None if extent is None else number_of(extent) for extent in inner]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers) or min(known, default=1) < 1:
        return None
    extents = [math.prod(known[place:]) for place in range(len(known) + 1)]
    at, most = 0, 0
    for one in braces.items:
        item, rank = one, 1
        if isinstance(one, syntax.Designated):
            named = [None if isinstance(index, syntax.MemberDesignator) else index for index in one.indices]
            indices = [None if index is None else number_of(index) for index in named]
            if len(indices) > len(extents) or None in indices:
                return None
            at = sum(index * extent for index, extent in zip(indices, extents, strict=False) if index is not None)
            item, rank = one.item, len(indices)
        at += extents[min(rank, len(extents)) - 1] if isinstance(item, syntax.Braces) else 1
        most = max(most, at)
    return syntax.Constant(str(-(-most // extents[0])), span) if most else None


def _rows(braces: syntax.Braces, inner: Sequence[syntax.Expression | None]) -> int | None:
    """Return the number of items where each is an element, or each a row; those of rows need not be numbers."""
    items = braces.items
    if any(isinstance(item, syntax.Designated) or isinstance(item, syntax.Braces) != bool(inner) for item in items):
        return None
    return len(items)


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def number_of(
    expression: syntax.Expression, size_of: Callable[[syntax.TypeName], int | None] = lambda _: None
) -> int | None:
    """Return the value of an expression of numbers, ``None`` for any other; ``size_of`` gives those of ``sizeof``.

    Operands are not negative, and so small that no type of C matters.
    """
    match expression:
        case syntax.Constant(text=text) if text.startswith("'"):
            return character_constant(text)
        case syntax.Constant(text=text):
            found = integer_constant(text)
            return None if found is None else found[0]
        case syntax.SizeOfType(type=type_):
            return size_of(type_)
        case syntax.Infix(op=op, left=left, right=right) if op in _OPERATIONS:
            first, second = number_of(left, size_of), number_of(right, size_of)
            if first is None or second is None or not 0 <= first < 1 << 31 or not 0 <= second < 1 << 31:
                return None
            if (second < 1 and op in ("/", "%")) or (second > 30 and op in ("<<", ">>")):
                return None
            return int(_OPERATIONS[op](first, second))
        case syntax.Ternary(condition=condition, then=then, otherwise=otherwise):
            chosen = number_of(condition, size_of)
            return None if chosen is None else number_of(then if chosen else otherwise, size_of)
        case _:
            return None
