"""Where the values of a braced initialiser stand in a structure, as C says (section 6.7.9 of C11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from metafork.frontend.schedules.structure_parts import Whole, components
from metafork.frontend.schedules.values.initialisers import MisfitError
from metafork.frontend.text import syntax
from metafork.ir import program as ir

Item = syntax.Expression | ir.Expr


class Shape(Struct, frozen=True):
    """A scalar, an array or a structure: its scalars are numbered from ``start`` on, ``end`` is behind them.

    ``names`` are those of its parts: members, or the indices of an array.
    """

    start: int
    end: int
    names: tuple[str | int, ...] = ()
    parts: tuple[Shape, ...] = ()

    def moved(self, by: int) -> Shape:
        """Return the same with other numbers."""
        return Shape(self.start + by, self.end + by, self.names, tuple(part.moved(by) for part in self.parts))

    @property
    def is_structure(self) -> bool:
        """Whether its parts are members."""
        return bool(self.names) and isinstance(self.names[0], str)


def shape_of(members: Sequence[str]) -> Shape:
    """Return the shape of a structure whose members are written out."""
    return _shape([components(member) for member in members], 0)


def array_of(shape: Shape, extent: int) -> Shape:
    """Return the shape of an array."""
    parts = tuple(shape.moved(number * shape.end) for number in range(extent))
    return Shape(0, extent * shape.end, tuple(range(extent)), parts)


def _shape(members: Sequence[tuple[str | int, ...]], start: int) -> Shape:
    if members == [()]:
        return Shape(start, start + 1)
    groups: dict[str | int, list[tuple[str | int, ...]]] = {}
    for first, *rest in members:
        groups.setdefault(first, []).append(tuple(rest))
    parts: list[Shape] = []
    for inner in groups.values():
        parts.append(_shape(inner, parts[-1].end if parts else start))
    return Shape(start, parts[-1].end, tuple(groups), tuple(parts))


def placed_members(
    braces: syntax.Braces,
    shape: Shape,
    number: Callable[[syntax.Expression], int],
    whole: Callable[[syntax.Expression], Whole | None],
) -> Iterator[tuple[int, Item]]:
    """Yield the numbers of scalars and their values; the last value of a number is the one that counts.

    What has no braces of its own takes as many values as it has scalars, or one that is such a structure, which
    ``whole`` says.  Raises ``MisfitError``.
    """
    if not shape.parts:
        if len(braces.items) != 1 or isinstance(braces.items[0], syntax.Braces | syntax.Designated):
            raise MisfitError(braces.span)
        yield shape.start, braces.items[0]
        return
    at = shape.start
    for one in braces.items:
        item, place = one, None
        if isinstance(one, syntax.Designated):
            item, place = one.item, _designated(one, shape, number)
            at = place.start
        assert not isinstance(item, syntax.Designated)
        if at >= shape.end:
            raise MisfitError(item.span)
        if isinstance(item, syntax.Braces):
            place = place or _outermost(shape, at)
            yield from placed_members(item, place, number, whole)
            at = place.end
            continue
        found = whole(item)
        if found is None:
            yield at, item
            at += 1
            continue
        fitting = [one for one in _starting(place or shape, at, place is not None) if one.is_structure]
        target = next((one for one in fitting if one.end - one.start == len(found.values)), None)
        if target is None:
            raise MisfitError(item.span)
        yield from enumerate(found.values, target.start)
        at = target.end


def _designated(one: syntax.Designated, shape: Shape, number: Callable[[syntax.Expression], int]) -> Shape:
    """Return the part that a designator names."""
    for index in one.indices:
        wanted = index.name if isinstance(index, syntax.MemberDesignator) else number(index)
        if wanted not in shape.names:
            raise MisfitError(index.span)
        shape = shape.parts[shape.names.index(wanted)]
    return shape


def _outermost(shape: Shape, at: int) -> Shape:
    """Return the outermost part of a shape that starts at a scalar."""
    inner = next(part for part in shape.parts if part.start <= at < part.end)
    return inner if inner.start == at or not inner.parts else _outermost(inner, at)


def _starting(shape: Shape, at: int, own: bool) -> Iterator[Shape]:
    """Yield the parts that start at a scalar, outermost first, the whole too where it may be the one."""
    if own and shape.start == at:
        yield shape
    for part in shape.parts:
        if part.start <= at < part.end:
            yield from _starting(part, at, True)
