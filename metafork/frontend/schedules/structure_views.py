"""Structures of several types as views: for each type an array of its own, which lies where the structures lie.

``before --> after``, for ``struct body { float x, y; int id; double mass; }``::

    p[i].mass = p[i].id;      -->      p_double[i][2] = p_int[i][2];

C leaves room so that this always is so: a member begins at a multiple of its size, and the structure's size is a
multiple of it.  Members of different types share no byte, so that views are as good as arrays of their own for whoever
asks what an access touches.  Structures that a schedule declares have no place that others see: their views hold the
members of their type alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import arrays_read, fresh_name
from metafork.ir.visitor import Body, Rewriter


class Views(Struct):
    """The views of one schedule's structures; ``taken`` are the names that theirs must differ from."""

    taken: set[str]
    _own: set[str] = field(default_factory=set)
    _views: dict[str, tuple[dict[ScalarType, ir.Array], list[tuple[ScalarType, int]]]] = field(default_factory=dict)

    def of_host(self, array: ir.Array) -> tuple[ir.Array, ...]:
        """Return the views of an array of the host; itself where its elements are of one type."""
        if not array.slots:
            return (array,)
        whole = array.extents[-1]
        assert isinstance(whole, ir.IntConst)
        size = whole.value * array.element.size
        places = [(slot.type, slot.offset // slot.type.size) for slot in array.slots]
        names: dict[ScalarType, list[str]] = {type_: [""] * (size // type_.size) for type_, _ in places}
        for (type_, column), name in zip(places, array.members, strict=True):
            names[type_][column] = name
        return self._split(array, places, {type_: len(columns) for type_, columns in names.items()}, names)

    def body(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """Return statements of a schedule in terms of views; those of the host's arrays are known."""
        if not self._any(body):
            return body
        body = _InViews(self).body(body)
        return _Without(self._own - _read(body)).body(body)

    def _any(self, body: tuple[ir.Stmt, ...]) -> bool:
        return bool(self._views) or any(
            isinstance(stmt, ir.BlockArray | ir.PrivateArray) and stmt.array.slots for stmt in ir.walk_statements(body)
        )

    def of_own(self, node: ir.BlockArray | ir.PrivateArray) -> tuple[ir.Stmt, ...]:
        """Return the views of an array that the schedule declares; itself where its elements are of one type."""
        array = node.array
        if not array.slots:
            return (node,)
        places: list[tuple[ScalarType, int]] = []
        counts: dict[ScalarType, int] = {}
        for slot in array.slots:
            places.append((slot.type, counts.get(slot.type, 0)))
            counts[slot.type] = places[-1][1] + 1
        views = self._split(array, places, counts, {})
        if isinstance(node, ir.PrivateArray):
            self._own.update(view.name for view in views)
        return tuple(replace(node, array=replace(view, whole="")) for view in views)

    def _split(
        self,
        array: ir.Array,
        places: list[tuple[ScalarType, int]],
        columns: dict[ScalarType, int],
        names: dict[ScalarType, list[str]],
    ) -> tuple[ir.Array, ...]:
        found: dict[ScalarType, ir.Array] = {}
        for type_, count in columns.items():
            name = fresh_name(f"{array.name}_{type_.spelling.lstrip('_').replace(' ', '_')}", self.taken)
            self.taken.add(name)
            extents = (*array.extents[:-1], ir.IntConst(count))
            found[type_] = ir.Array(
                name, type_, extents, array.span, tuple(names.get(type_, ())), whole=array.name, scalar=array.scalar
            )
        self._views[array.name] = found, places
        return tuple(found.values())

    def element(self, expr: ir.Element) -> ir.Element:
        """Return the element of a view that an element of a structure is."""
        if expr.array not in self._views:
            return expr
        views, places = self._views[expr.array]
        *around, last = expr.indices
        position, further = _member(last)
        type_, column = places[position]
        index: ir.Expr = ir.IntConst(column)
        if further is not None:
            index = ir.binary("+", index, further, further.span) if column else further
        return replace(expr, array=views[type_].name, indices=(*around, index))


class _InViews(Rewriter):
    def __init__(self, views: Views) -> None:
        self._views = views

    def array(self, node: ir.BlockArray | ir.PrivateArray) -> Body:
        return self._views.of_own(node)

    def element(self, node: ir.Element, number: int) -> ir.Element:
        return self._views.element(node)


def _read(body: tuple[ir.Stmt, ...]) -> set[str]:
    """Return the arrays whose values matter to anything but themselves."""
    found: set[str] = set()
    for stmt in ir.walk_statements(body):
        parts = ir.expressions_of(stmt)
        if isinstance(stmt, ir.Assign):
            parts = (*ir.subexpressions(stmt.target), stmt.value)
        found |= {name for expr in parts for name in arrays_read(expr)}
    return found


class _Without(Rewriter):
    """Leaves some arrays of a thread out, which nothing reads."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def array(self, node: ir.BlockArray | ir.PrivateArray) -> ir.Stmt | Body:
        return () if node.array.name in self._names else node

    def assign(self, node: ir.Assign) -> ir.Stmt | Body:
        return () if isinstance(node.target, ir.Element) and node.target.array in self._names else node


def _member(index: ir.Expr) -> tuple[int, ir.Expr | None]:
    """Return the number of a member, and how much further on an element of its array stands."""
    match index:
        case ir.IntConst(value=position):
            return position, None
        case ir.Binary(op="+", left=ir.IntConst(value=position), right=further):
            return position, further
        case _:
            raise AssertionError(index)


def accessed(arrays: Sequence[ir.Array], body: tuple[ir.Stmt, ...]) -> tuple[ir.Array, ...]:
    """Return arrays without the views that a body does not name."""
    named = {
        part.array
        for stmt in ir.walk_statements(body)
        for expr in ir.expressions_of(stmt)
        for part in ir.walk_expression(expr)
        if isinstance(part, ir.Element)
    }
    return tuple(array for array in arrays if not array.whole or array.name in named)
