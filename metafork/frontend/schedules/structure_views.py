"""Structures of several types as views: for each type an array of its own, which lies where the structures lie.

``before --> after``, for ``struct body { float x, y; int id; double mass; }``::

    p[i].mass = p[i].id;      -->      p_double[i][2] = p_int[i][2];

C leaves room so that this always is so: a member begins at a multiple of its size, and the structure's size is a
multiple of it.  Members of different types share no byte, so that views are as good as arrays of their own for whoever
asks what an access touches.  Structures that a schedule declares have no place that others see: their views hold the
members of their type alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import arrays_read, fresh_name, map_body, map_expression


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
        body = map_body(self._declared(body), self._element)
        read = _read(body)
        return _without(body, self._own - read)

    def _any(self, body: tuple[ir.Stmt, ...]) -> bool:
        return bool(self._views) or any(
            isinstance(stmt, ir.BlockArray | ir.PrivateArray) and stmt.array.slots for stmt in ir.walk_statements(body)
        )

    def _declared(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """Return statements in which a schedule's own structures are declared as views."""
        return tuple(new for stmt in body for new in self._declarations(stmt))

    def _declarations(self, stmt: ir.Stmt) -> Iterable[ir.Stmt]:
        match stmt:
            case ir.BlockArray(array=array) | ir.PrivateArray(array=array) if array.slots:
                places: list[tuple[ScalarType, int]] = []
                counts: dict[ScalarType, int] = {}
                for slot in array.slots:
                    places.append((slot.type, counts.get(slot.type, 0)))
                    counts[slot.type] = places[-1][1] + 1
                views = self._split(array, places, counts, {})
                if isinstance(stmt, ir.PrivateArray):
                    self._own.update(view.name for view in views)
                return [replace(stmt, array=replace(view, whole="")) for view in views]
            case ir.If(then=then, otherwise=otherwise):
                return [replace(stmt, then=self._declared(then), otherwise=self._declared(otherwise))]
            case ir.For(body=inner) | ir.While(body=inner) | ir.Phase(body=inner):
                return [replace(stmt, body=self._declared(inner))]
            case _:
                return [stmt]

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

    def _element(self, expr: ir.Expr) -> ir.Expr | None:
        if not isinstance(expr, ir.Element) or expr.array not in self._views:
            return None
        views, places = self._views[expr.array]
        *around, last = (map_expression(index, self._element) for index in expr.indices)
        position, further = _member(last)
        type_, column = places[position]
        index: ir.Expr = ir.IntConst(column)
        if further is not None:
            index = ir.binary("+", index, further, further.span) if column else further
        return replace(expr, array=views[type_].name, indices=(*around, index))


def _read(body: tuple[ir.Stmt, ...]) -> set[str]:
    """Return the arrays whose values matter to anything but themselves."""
    found: set[str] = set()
    for stmt in ir.walk_statements(body):
        parts = ir.expressions_of(stmt)
        if isinstance(stmt, ir.Assign):
            parts = (*ir.subexpressions(stmt.target), stmt.value)
        found |= {name for expr in parts for name in arrays_read(expr)}
    return found


def _without(body: tuple[ir.Stmt, ...], names: set[str]) -> tuple[ir.Stmt, ...]:
    """Return statements without some arrays of a thread, which nothing reads."""
    kept: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.PrivateArray(array=array) if array.name in names:
                pass
            case ir.Assign(target=ir.Element(array=name)) if name in names:
                pass
            case ir.If(then=then, otherwise=otherwise):
                kept.append(replace(stmt, then=_without(then, names), otherwise=_without(otherwise, names)))
            case ir.For(body=inner) | ir.While(body=inner) | ir.Phase(body=inner):
                kept.append(replace(stmt, body=_without(inner, names)))
            case _:
                kept.append(stmt)
    return tuple(kept)


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
