"""Where the values of a braced initialiser stand in an array, as C says (section 6.7.9 of C11)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from metafork.frontend.text import syntax
from metafork.ir.messages.source import Span

Place = tuple[int, ...]


class MisfitError(Exception):
    """Braces do not fit the extents of an array; ``span`` is the item that does not."""

    def __init__(self, span: Span) -> None:
        super().__init__("braces do not fit the extents")
        self.span = span


def placed(
    braces: syntax.Braces, extents: tuple[int, ...], number: Callable[[syntax.Expression], int]
) -> Iterator[tuple[Place, syntax.Expression]]:
    """Yield places and their values, in the order of the text; the last value of a place is the one that counts.

    Rows without braces of their own take as many values as they have elements; a designator says where the next value
    stands, ``number`` what its indices are.  Raises ``MisfitError``.
    """
    return _placed(braces, extents, (), number)


def _placed(
    braces: syntax.Braces, extents: tuple[int, ...], outer: Place, number: Callable[[syntax.Expression], int]
) -> Iterator[tuple[Place, syntax.Expression]]:
    at = 0
    for one in braces.items:
        item, rank = one, 1
        if isinstance(one, syntax.Designated):
            at, rank, item = _designated(one, extents, number), len(one.indices), one.item
        assert not isinstance(item, syntax.Designated)
        rows = math.prod(extents[rank:])
        if at >= math.prod(extents):
            raise MisfitError(item.span)
        if not isinstance(item, syntax.Braces):
            yield (*outer, *_place(at, extents)), item
            at += 1
        elif len(extents) > rank and at % rows == 0:
            yield from _placed(item, extents[rank:], (*outer, *_place(at // rows, extents[:rank])), number)
            at += rows
        elif (
            len(extents) == rank
            and len(item.items) == 1
            and not isinstance(item.items[0], syntax.Braces | syntax.Designated)
        ):
            yield (*outer, *_place(at, extents)), item.items[0]
            at += 1
        else:
            raise MisfitError(item.span)


def _designated(one: syntax.Designated, extents: tuple[int, ...], number: Callable[[syntax.Expression], int]) -> int:
    """Return the place that a designator says, counted in elements."""
    if len(one.indices) > len(extents):
        raise MisfitError(one.span)
    at = 0
    for index, extent in zip(one.indices, extents, strict=False):
        if isinstance(index, syntax.MemberDesignator):
            raise MisfitError(index.span)
        value = number(index)
        if not 0 <= value < extent:
            raise MisfitError(index.span)
        at = at * extent + value
    return at * math.prod(extents[len(one.indices) :])


def _place(number: int, extents: tuple[int, ...]) -> Place:
    place: list[int] = []
    for extent in reversed(extents):
        place.insert(0, number % extent)
        number //= extent
    return tuple(place)
