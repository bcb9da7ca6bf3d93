"""How many elements an array has that its initialiser alone gives an extent."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metafork.frontend.text import syntax
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
            indices = [number_of(index) for index in one.indices]
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


def number_of(expression: syntax.Expression) -> int | None:
    """Return the value of an expression of decimal numbers, ``None`` for any other."""
    match expression:
        case syntax.Constant(text=text) if text.isdecimal() and (text == "0" or text[0] != "0"):
            return int(text)
        case syntax.Infix(op="+" | "-" | "*" as op, left=left, right=right):
            first, second = number_of(left), number_of(right)
            if first is None or second is None:
                return None
            return first + second if op == "+" else first - second if op == "-" else first * second
        case _:
            return None
