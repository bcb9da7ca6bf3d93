"""What copies between global and shared memory share: where they stand, places of threads in rows, offsets, bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from msgspec import Struct, field

from metafork.algebra.polynomial import ONE, Polynomial, at_most, product
from metafork.algebra.prover import Prover
from metafork.analysis.memory.copy_walk import trips_of, whole
from metafork.analysis.memory.private_windows import PrivateWindow
from metafork.analysis.memory.tile_layout import place_in_line, place_in_tile
from metafork.analysis.memory.windows import Interleaving, Window
from metafork.analysis.values.loop_ranges import LoopRange
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import OFFSET, QUOTIENT, builtin
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import LONG, code_of, whole_code_of

UNSIGNED = ScalarType.UNSIGNED_INT
INT = ScalarType.INT


class RowPlace(Struct, frozen=True):
    """Where a thread stands in rows of one length: its row and column, and how many of each all threads cover.

    ``length`` is that length, or 1 where rows have no elements.
    """

    length: ir.Expr
    row: ir.Expr
    column: ir.Expr
    rows: ir.Expr
    columns: ir.Expr | None
    """``None`` where the threads fill whole rows."""


class Choice(Struct, frozen=True):
    """Rows are walked by accesses of so many elements where ``wide`` is not 0, by elements elsewhere."""

    wide: ir.Var
    lanes: int


class RowPlaces(Struct):
    """What the copies of a path share: places of a thread in rows, computed once, and names that are in use."""

    symbols: Mapping[str, ir.Expr]
    taken: set[str]
    declarations: list[ir.Stmt] = field(default_factory=list)
    known: dict[tuple[Polynomial, Choice | None], RowPlace] = field(default_factory=dict)
    asked: dict[ir.Expr, ir.Var] = field(default_factory=dict)
    copied: set[str] = field(default_factory=set)
    host: frozenset[str] = frozenset()
    """The symbols that the host can compute."""
    spans: list[Polynomial] = field(default_factory=list)
    """What coordinates reach that ``int`` holds where it holds these (``Kernel.spans``)."""

    def prefix(self, name: str) -> str:
        """Return what the variables of another copy to or from a window are called after."""
        result = name if name not in self.copied else fresh(f"{name}_copy", self.taken)
        self.copied.add(result)
        return result

    def choice(self, condition: ir.Expr, lanes: int) -> Choice:
        """Return the choice by a condition that is the same in all threads; it is asked once."""
        if condition not in self.asked:
            variable = ir.Var(fresh("wide", self.taken), INT)
            self.declarations.append(ir.Declare(variable.name, INT, condition))
            self.asked[condition] = variable
        return Choice(self.asked[condition], lanes)

    def place(self, length: Polynomial, site: Site, choice: Choice | None = None) -> RowPlace:
        """Return the place of a thread in rows of that length, in elements where there is a choice."""
        if (length, choice) not in self.known:
            self.known[length, choice] = self._computed(length, site, choice)
        return self.known[length, choice]

    def _computed(self, length: Polynomial, site: Site, choice: Choice | None) -> RowPlace:
        columns = whole_code_of(length, self.symbols)
        if choice is not None:
            accesses = whole_code_of(length * Fraction(1, choice.lanes), self.symbols)
            columns = ir.Conditional(choice.wide, accesses, columns, columns.type)
        if not site.prover.proves(at_most(ONE, length)):  # rows without elements are not walked, but divided by
            columns = ir.Conditional(ir.binary(">", columns, ir.IntConst(0)), columns, ir.IntConst(1), columns.type)
        width = self._declare("row_length", columns)
        index, count = linear_index(site, 0, site.axes)
        row = self._declare("thread_row", _quotient(index, width))
        column = self._declare("thread_column", ir.binary("-", as_int(index), ir.binary("*", row, width)))
        rows = None if site.exactly is None or choice is not None else trips_of(site.exactly, length)
        if rows is not None:
            return RowPlace(width, row, column, code_of(rows, self.symbols), None)
        covered = self._declare("block_rows", _quotient(count, width))
        rest = self._declare("block_columns", ir.binary("-", as_int(count), ir.binary("*", covered, width)))
        return RowPlace(width, row, column, covered, rest)

    def _declare(self, name: str, value: ir.Expr) -> ir.Expr:
        if isinstance(value, ir.IntConst):
            return value
        variable = ir.Var(fresh(name, self.taken), INT)
        self.declarations.append(ir.Declare(variable.name, INT, value if value.type is INT else as_int(value)))
        return variable


def _quotient(value: ir.Expr, divisor: ir.Expr) -> ir.Expr:
    """Return the quotient of the place of a thread, or of the number of threads."""
    return ir.Call(QUOTIENT, (value, ir.Cast(UNSIGNED, divisor)), INT)


class Site(Struct, frozen=True):
    """Where copies stand: expressions of the symbols in scope, array extents, threads, and what is known.

    ``extents`` are the declared extents of the arrays as polynomials (``None`` where one is none); ``shape`` are the
    extents of the block, x first, with which a launch may be wider where ``striding`` holds; ``begins`` are the bytes
    of shared memory at which windows begin, by name.  ``inside``: the code asks before that a window lies in its array;
    ``filled``: what of a window lies outside is zero.
    """

    symbols: Mapping[str, ir.Expr]
    extents: Mapping[str, tuple[Polynomial | None, ...]]
    extent_code: Mapping[str, tuple[ir.Expr, ...]]
    shape: tuple[Polynomial, ...]
    striding: bool
    prover: Prover
    rows: RowPlaces
    begins: Mapping[str, Polynomial] = field(default_factory=dict)
    inside: bool = False
    filled: bool = False

    @property
    def axes(self) -> int:
        """The number of dimensions of the block."""
        return len(self.shape)

    def has_one_thread(self, axis: int) -> bool:
        """Say whether a block has but one thread along an axis, in every launch."""
        return self.shape[axis] == ONE and not self.striding

    @property
    def exactly(self) -> Polynomial | None:
        """The number of threads, where every launch has as many."""
        return None if self.striding else product(self.shape)


def linear_offset(indices: tuple[ir.Expr, ...], extents: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return the row-major offset of an element in elements; 64-bit where there is more than one dimension."""
    offset = indices[0]
    for index, extent in zip(indices[1:], extents[1:], strict=True):
        wide = as_long(offset)
        offset = ir.binary("+", ir.binary("*", wide, extent), index)
    return offset


def offset_inside(indices: tuple[ir.Expr, ...], extents: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return the row-major offset of an element that lies in its array: with 32 bits where the array's offsets fit."""
    if len(indices) == 1:
        return indices[0]
    offset = as_offset(indices[0])
    for index, extent in zip(indices[1:], extents[1:], strict=True):
        offset = ir.binary("+", ir.binary("*", offset, narrow(extent)), narrow(index))
    return offset


def as_offset(index: ir.Expr) -> ir.Expr:
    """Return an index in the type of offsets."""
    return ir.Call(OFFSET, (index,), LONG)


def narrow(part: ir.Expr) -> ir.Expr:
    """Return a part of an offset in the type of offsets, where it has more bits than ``int``."""
    return part if part.type.size <= INT.size or isinstance(part, ir.IntConst) else as_offset(part)


def as_long(expr: ir.Expr) -> ir.Expr:
    """Return the expression as ``long long``."""
    return expr if expr.type == LONG else ir.Cast(LONG, expr)


def window_offset(window: Window, offsets: tuple[ir.Expr, ...], symbols: Mapping[str, ir.Expr]) -> ir.Expr:
    """Return the offset in a window, in elements, of the element with these window coordinates."""
    if len(offsets) == 1:
        return place_in_line(
            window.layout, window.array.element, offsets[0], code_of(window.extents[0], symbols), symbols
        )
    offset = offsets[0]
    for axis, (index, extent) in enumerate(zip(offsets[1:], window.extents[1:], strict=True), 1):
        columns = code_of(extent, symbols)
        if axis == len(offsets) - 1:
            return place_in_tile(window.layout, window.array.element, offset, index, columns, symbols)
        offset = ir.binary("+", ir.binary("*", offset, columns), index)
    return offset


def kept_column(kept: Interleaving, x: ir.Expr, turn: ir.Expr, symbols: Mapping[str, ir.Expr]) -> ir.Expr:
    """Return where column ``turn*apart + x`` of an interleaved row is kept."""
    together = ir.IntConst(kept.together)
    if kept.together == kept.trips:
        return ir.binary("+", ir.binary("*", x, together), turn)
    group = ir.binary("*", ir.binary("/", turn, together), code_of(kept.apart * kept.together, symbols))
    return ir.binary("+", group, ir.binary("+", ir.binary("*", x, together), ir.binary("%", turn, together)))


def row_bounds(
    window: Window | PrivateWindow,
    code: Sequence[ir.Expr],
    values: Sequence[Polynomial],
    loops: Sequence[LoopRange],
    site: Site,
) -> tuple[ir.Expr | None, ir.Expr | None]:
    """Return what keeps a linear index inside its array where the columns that it was split into are inside theirs.

    ``code`` and ``values`` are its coordinates.  In an array of whole rows the row alone decides.
    """
    (extent,), (extent_code,) = site.extents[window.array.name], site.extent_code[window.array.name]
    rows = None if extent is None else extent.divide_exactly(product(window.factors))
    if rows is not None and whole(rows):
        return bounds_of(values[0], rows, code[0], code_of(rows, site.symbols), loops, site)
    linear = values[0]
    for factor, value in zip(window.factors, values[1:], strict=True):
        linear = linear * factor + value
    offset = linear_offset(tuple(code), array_extents(window.array.name, window.factors, site))
    return bounds_of(linear, extent, offset, extent_code, loops, site)


def bounds_of(
    value: Polynomial,
    extent: Polynomial | None,
    code: ir.Expr,
    extent_code: ir.Expr,
    loops: Sequence[LoopRange],
    site: Site,
) -> tuple[ir.Expr | None, ir.Expr | None]:
    """Return ``0 <= code`` and ``code < extent``, ``None`` for what is known."""
    if site.inside:
        return None, None
    low, high = (False, False) if extent is None else site.prover.derives_within(value, extent, loops)
    return None if low else ir.binary("<=", ir.IntConst(0), code), None if high else ir.binary("<", code, extent_code)


def array_extents(name: str, factors: tuple[Polynomial, ...], site: Site) -> tuple[ir.Expr, ...]:
    """Return the extents by which coordinates in an array make an offset; ``factors`` are those of an array of one."""
    if not factors:
        return site.extent_code[name]
    return (ir.IntConst(1), *(code_of(factor, site.symbols) for factor in factors))


def zero(type_: ScalarType) -> ir.Expr:
    """Return the constant zero for a variable of that type."""
    if not type_.floating:
        return ir.IntConst(0)
    return ir.FloatConst("0.0f" if type_ is ScalarType.FLOAT else "0.0", type_)


def as_int(expr: ir.Expr) -> ir.Expr:
    """Return the expression as ``int``."""
    return ir.Cast(INT, expr)


def linear_index(site: Site, lowest: int, highest: int) -> tuple[ir.Expr, ir.Expr]:
    """Return the linear index of a thread over dimensions ``lowest`` to ``highest - 1``, and how many there are.

    Dimensions in which a block has one thread are left out.
    """
    axes = range(lowest, highest)
    letters = "".join("xyz"[axis] for axis in axes if not site.has_one_thread(axis)) or "xyz"[lowest]
    index: ir.Expr = builtin(f"threadIdx.{letters[-1]}")
    count: ir.Expr = builtin(f"blockDim.{letters[0]}")
    for letter in reversed(letters[:-1]):
        index = ir.binary("+", ir.binary("*", index, builtin(f"blockDim.{letter}")), builtin(f"threadIdx.{letter}"))
    for letter in letters[1:]:
        count = ir.binary("*", count, builtin(f"blockDim.{letter}"))
    return index, count
