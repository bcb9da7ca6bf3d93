"""Flat arrays with indices that are clamped or wrap, as arrays of rows: ``a[up * m + left]`` is ``a[up][left]``.

``before --> after``::

    const float a[n * m]; ... int left = j == 0 ? m - 1 : j - 1; ... a[(i + 1) % n * m + left]
    -->
    const float a[n][m]; ... a[(i + 1) % n][j == 0 ? m - 1 : j - 1]

Elements stand where they stood, so that this says nothing new of memory.  It says of an index that is no polynomial
which polynomials its row and its column are chosen from, which is what a window needs.  Every access to the array must
fall into a row and a column ``0 <= column < m`` that is proved, and each of them must be a polynomial, or clamped, or
wrap.  An index that is a polynomial is split by ``windows`` itself: an array with such indices alone stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.reference_walk import ReferenceWalk
from metafork.analysis.values.choices import value_of
from metafork.analysis.values.conditions import where
from metafork.analysis.values.loop_ranges import nearby
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir
from metafork.ir.polynomial_code import code_of
from metafork.ir.rewriting import variables
from metafork.ir.visitor import Rewriter

Split = tuple[ir.Expr | None, ir.Expr | None]
"""Row and column, ``None`` for 0."""


def with_rows(program: ir.Program, analyses: Analyses) -> ir.Program:
    """Return the program in which flat arrays with clamped or wrapped indices are arrays of rows."""
    return analyses.of(_with_rows, program)


def _with_rows(program: ir.Program, analyses: Analyses) -> ir.Program:
    facts = analyses.facts(program)
    single = [array for array in program.arrays if len(array.extents) == 1 and not array.endless]
    flat = {array.name: array for array in single if not array.scalar}
    found = analyses.references(program, facts)
    unknown = {one.array for one in found if None in one.indices and one.array in flat}
    if not unknown:
        return program
    walk = _Walk(facts, unknown)
    walk.program(analyses.unmapped(program))
    named = [ir.Var(one.name, one.type) for one in program.parameters]
    named += [ir.Var(one.name, one.type) for one in program.derived]
    symbols = {one.name: one for one in named if facts.values.get(one.name) == Polynomial.symbol(one.name)}
    rows = _Rows(Scope.of(facts), symbols, _definitions(program))
    changed: dict[str, tuple[ir.Expr, ...]] = {}
    indices: dict[int, tuple[ir.Expr, ...]] = {}
    for name in sorted(unknown):
        met = {number: one for number, one in walk.met.items() if one[0].array == name}
        extents = rows.extents(flat[name], met)
        if extents is not None:
            changed[name], places = extents
            indices |= places
    if not changed:
        return program
    arrays = tuple(replace(one, extents=changed.get(one.name, one.extents)) for one in program.arrays)
    return replace(program, arrays=arrays, body=_InRows(indices).body(program.body))


class _Walk(ReferenceWalk):
    """Takes note of accesses to some arrays, each with what is known where it stands."""

    def __init__(self, facts: Facts, arrays: set[str]) -> None:
        super().__init__(facts)
        self._arrays = arrays
        self.met: dict[int, tuple[ir.Element, Scope]] = {}

    def element(self, node: ir.Element, number: int) -> None:
        """Take note of an access."""
        if node.array in self._arrays:
            self.met[number] = node, self.scope.copy()
        super().element(node, number)


class _InRows(Rewriter):
    """Gives elements, by their numbers, other indices."""

    def __init__(self, indices: Mapping[int, tuple[ir.Expr, ...]]) -> None:
        self._indices = indices

    def element(self, node: ir.Element, number: int) -> ir.Element:
        """Return an element with its row and column."""
        return replace(node, indices=self._indices.get(number, node.indices))


def _definitions(program: ir.Program) -> dict[str, ir.Expr]:
    """Return what locals are that are set once, of what keeps its value as long as they live."""
    assigned: dict[str, int] = {}
    stepped: set[str] = set()
    for stmt in ir.walk_statements(program.body):
        match stmt:
            case ir.For(init=ir.Declare(name=name), step=ir.Assign(target=ir.Var(name=other))) if name == other:
                stepped.add(name)
            case ir.Declare(name=name) | ir.Assign(target=ir.Var(name=name)):
                assigned[name] = assigned.get(name, 0) + 1
            case _:
                pass
    counting = {name for name in stepped if assigned[name] == 2}
    found: dict[str, ir.Expr] = {}
    for stmt in ir.walk_statements(program.body):
        if not isinstance(stmt, ir.Declare) or stmt.value is None or assigned.get(stmt.name, 0) != 1:
            continue
        value = stmt.value
        names = variables(value) - counting - found.keys()
        reads = any(isinstance(part, ir.Element) for part in ir.walk_expression(value))
        if not reads and all(name not in assigned for name in names):
            found[stmt.name] = value if value.type is stmt.type else ir.Cast(stmt.type, value)
    return found


class _Rows(Struct, frozen=True):
    """Splits indices; ``constants`` knows what is the same in all of the launch, ``symbols`` how that is written."""

    constants: Scope
    symbols: Mapping[str, ir.Expr]
    definitions: Mapping[str, ir.Expr]

    def extents(
        self, array: ir.Array, met: Mapping[int, tuple[ir.Element, Scope]]
    ) -> tuple[tuple[ir.Expr, ...], dict[int, tuple[ir.Expr, ...]]] | None:
        """Return extents by which an array is one of rows, and the indices of its accesses; ``None`` where none are."""
        rest = self.constants.polynomial(array.extents[0])
        written = [element.indices[0] for element, _ in met.values()]
        if rest is None:
            return None
        most = array.extents[0].type.greatest
        columns: list[list[ir.Expr]] = [[] for _ in met]
        sides: list[Polynomial] = []
        while (found := self._split(written, [scope for _, scope in met.values()], rest, most)) is not None:
            width, places = found
            rest = self._quotient(rest, width)
            assert rest is not None
            sides.insert(0, width)
            written = [ir.IntConst(0) if row is None else row for row, _ in places]
            for number, (_, column) in enumerate(places):
                columns[number].insert(0, ir.IntConst(0) if column is None else column)
        if not sides:
            return None
        places_of: dict[int, tuple[ir.Expr, ...]] = {}
        for number, row, own in zip(met, written, columns, strict=True):
            _, scope = met[number]
            if not all(_understood(scope, index) for index in (row, *own)):
                return None
            places_of[number] = (row, *own)
        return tuple(code_of(side, self.symbols) for side in (rest, *sides)), places_of

    def _split(
        self, written: Sequence[ir.Expr], scopes: Sequence[Scope], extent: Polynomial, most: int
    ) -> tuple[Polynomial, list[Split]] | None:
        """Return the least width by which all indices fall into rows and columns."""
        widths = {width for index in written for width in self._widths(index)}
        for width in sorted(widths, key=lambda one: (one.degree, one.text())):
            count = self._quotient(extent, width)
            if count is None or width == extent:
                continue
            places = [self._place(index, scope, width, most) for index, scope in zip(written, scopes, strict=True)]
            if any(row is not None for row, _ in places) and all(
                (column is None or _inside(scope, column, width))
                # What is computed without a sign is what it seems to be where rows end at the end of the array.
                and (row is None or row.type.signed or _inside(scope, row, count))
                for (row, column), scope in zip(places, scopes, strict=True)
            ):
                return width, places
        return None

    def _widths(self, index: ir.Expr, met: frozenset[str] = frozenset()) -> Iterator[Polynomial]:
        for part in ir.walk_expression(index):
            if isinstance(part, ir.Var) and part.name in self.definitions.keys() - met:
                yield from self._widths(self.definitions[part.name], met | {part.name})
            if isinstance(part, ir.Binary) and part.op in ("*", "+", "-") and part.type.integer:
                for side in (part.left, part.right):
                    value = self.constants.polynomial(side)
                    if value is not None and not value.is_constant:
                        yield value

    def _place(self, index: ir.Expr, scope: Scope, width: Polynomial, most: int) -> Split:
        """Return row and column of an index as far as its text says; all of it is the column where it says nothing."""
        value = self.constants.polynomial(index)
        whole = None if value is None else self._quotient(value, width)
        if whole is not None:
            return (None if not whole else code_of(whole, self.symbols)), None
        type_ = index.type
        # Signed arithmetic does not overflow; that without a sign does not where the array has no more elements.
        exact = type_.size >= 4 and (type_.signed or most <= type_.greatest)
        match index:
            case ir.Binary(op="+" | "-" as op, left=left, right=right) if exact and (type_.signed or op == "+"):
                if not (type_.holds(left.type) and type_.holds(right.type)):
                    return None, index
                first, second = self._place(left, scope, width, most), self._place(right, scope, width, most)
                if first[0] is None and second[0] is None:
                    return None, index
                return _joined(op, first[0], second[0]), _joined(op, first[1], second[1])
            case ir.Binary(op="*", left=left, right=right) if exact:
                if not (type_.holds(left.type) and type_.holds(right.type)):
                    return None, index
                for one, other in ((left, right), (right, left)):
                    row, column = self._place(one, scope, width, most)
                    if row is not None and column is None:
                        return (other if row == ir.IntConst(1) else ir.binary("*", row, other)), None
                return None, index
            case ir.Cast(type=to, operand=operand) if to.holds(operand.type):
                row, column = self._place(operand, scope, width, most)
                return (row, column) if row is not None else (None, index)
            case ir.Var(name=name) if name in self.definitions:
                if scope.choices.get(name) and _inside(scope, index, width):
                    return None, index
                row, column = self._place(self.definitions[name], scope, width, most)
                return (row, column) if row is not None else (None, index)
            case ir.Conditional() if _inside(scope, index, width):
                return None, index  # w - 1 may be such a column: it is no row more, and one column less
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                first, second = self._place(then, scope, width, most), self._place(otherwise, scope, width, most)
                if first[0] is None and second[0] is None:
                    return None, index
                return _chosen(condition, first[0], second[0]), _chosen(condition, first[1], second[1])
            case _:
                return None, index

    def _quotient(self, value: Polynomial, divisor: Polynomial) -> Polynomial | None:
        """Return the quotient where it is a polynomial with integer coefficients that can be written."""
        found = value.divide_exactly(divisor)
        if found is None or not found.whole:
            return None
        return found if (found.symbols | divisor.symbols) <= self.symbols.keys() else None


def _joined(op: str, first: ir.Expr | None, second: ir.Expr | None) -> ir.Expr | None:
    if second is None:
        return first
    return second if first is None and op == "+" else ir.binary(op, first or ir.IntConst(0), second)


def _chosen(condition: ir.Expr, first: ir.Expr | None, second: ir.Expr | None) -> ir.Expr | None:
    if first == second:
        return first
    zero = ir.IntConst(0)
    sides = ir.binary("+", first or zero, second or zero)
    return ir.Conditional(condition, first or zero, second or zero, sides.type)


def _understood(scope: Scope, index: ir.Expr) -> bool:
    value = value_of(scope, index)
    return value.known or nearby(scope, value, "index") is not None


def _inside(scope: Scope, index: ir.Expr, extent: Polynomial) -> bool:
    """Say whether it is proved that ``0 <= index < extent`` where an access stands."""
    value = value_of(scope, index)
    if value.kind == "modular":
        return scope.bounded(extent - value.operands[1])
    low = [scope.bounded(one) for one in value.operands]
    high = [scope.bounded(extent - one, 1) for one in value.operands]
    if value and (any(low) and all(high) if value.kind == "maximum" else all(low) and any(high)):
        return True
    match index:
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            sides = ((then, True), (otherwise, False))
            return all(_inside(where(scope, condition, truth), side, extent) for side, truth in sides)
        case ir.Cast(type=type_, operand=operand) if type_.integer and type_.holds(operand.type):
            return _inside(scope, operand, extent)
        case _:
            return False
