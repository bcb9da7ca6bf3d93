"""The code that moves windows: all threads of a block copy together, neighbours in x touching neighbours in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from metafork.algebra.polynomial import ONE, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.algebra.ranges import extreme, stays_within
from metafork.analysis.loop_ranges import LoopKind, LoopRange
from metafork.analysis.memory.copy_walk import copy_walk, trips_of, whole
from metafork.analysis.memory.private_windows import PrivateWindow
from metafork.analysis.memory.tile_layout import place_in_line, place_in_tile
from metafork.analysis.memory.window_store import Digit, WrittenBox
from metafork.analysis.memory.windows import Interleaving, Window
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import OFFSET
from metafork.ir.mapping import ROW_BY_ROW
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import LONG, code_of, condition_of, conjunction, may_be_negative
from metafork.ir.program import (
    Assign,
    Binary,
    Call,
    Cast,
    Conditional,
    Declare,
    Element,
    Expr,
    FloatConst,
    For,
    If,
    IntConst,
    Stmt,
    Var,
    binary,
)

UNSIGNED = ScalarType.UNSIGNED_INT
INT = ScalarType.INT


def builtin(name: str) -> Var:
    """Return a built-in variable of the device."""
    return Var(name, UNSIGNED)


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Where a thread stands in rows of one length: its row and column, and how many of each all threads cover."""

    row: Expr
    column: Expr
    rows: Expr
    columns: Expr | None
    """``None`` where the threads fill whole rows."""


@dataclass(slots=True)
class RowPlaces:
    """What the copies of a path share: places of a thread in rows, computed once, and names that are in use."""

    symbols: Mapping[str, Expr]
    taken: set[str]
    declarations: list[Stmt] = field(default_factory=list)
    known: dict[Polynomial, RowPlace] = field(default_factory=dict)
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

    def place(self, length: Polynomial, site: Site) -> RowPlace:
        """Return the place of a thread in rows of that length."""
        if length not in self.known:
            self.known[length] = self._computed(length, site)
        return self.known[length]

    def _computed(self, length: Polynomial, site: Site) -> RowPlace:
        columns = code_of(length, self.symbols)
        if not site.prover.proves(at_most(ONE, length)):  # rows without elements are not walked, but divided by
            columns = Conditional(binary(">", columns, IntConst(0)), columns, IntConst(1), columns.type)
        width = self._declare("row_length", columns)
        index, count = _linear(site.axes, 0)
        row = self._declare("thread_row", _quotient(index, width))
        column = self._declare("thread_column", binary("-", as_int(index), binary("*", row, width)))
        rows = None if site.exactly is None else trips_of(site.exactly, length)
        if rows is not None:
            return RowPlace(row, column, code_of(rows, self.symbols), None)
        covered = self._declare("block_rows", _quotient(count, width))
        rest = self._declare("block_columns", binary("-", as_int(count), binary("*", covered, width)))
        return RowPlace(row, column, covered, rest)

    def _declare(self, name: str, value: Expr) -> Expr:
        if isinstance(value, IntConst):
            return value
        variable = Var(fresh(name, self.taken), INT)
        self.declarations.append(Declare(variable.name, INT, value if value.type is INT else as_int(value)))
        return variable


def _quotient(value: Expr, divisor: Expr) -> Expr:
    """Return the quotient of what is not negative; a division without signs takes fewer instructions."""
    return as_int(binary("/", value, Cast(UNSIGNED, divisor)))


@dataclass(frozen=True, slots=True)
class Site:
    """Where copies stand: expressions of the symbols in scope, array extents, threads, and what is known.

    ``extents`` are the declared extents of the arrays as polynomials (``None`` where one is none); ``shape`` are the
    extents of the block, x first, with which a launch may be wider where ``striding`` holds.
    """

    symbols: Mapping[str, Expr]
    extents: Mapping[str, tuple[Polynomial | None, ...]]
    extent_code: Mapping[str, tuple[Expr, ...]]
    shape: tuple[Polynomial, ...]
    striding: bool
    prover: Prover
    rows: RowPlaces

    @property
    def axes(self) -> int:
        """The number of dimensions of the block."""
        return len(self.shape)

    @property
    def exactly(self) -> Polynomial | None:
        """The number of threads, where every launch has as many."""
        return None if self.striding else product_of(self.shape)


def product_of(extents: Iterable[Polynomial]) -> Polynomial:
    """Return the product of extents."""
    result = ONE
    for extent in extents:
        result = result * extent
    return result


def linear_offset(indices: tuple[Expr, ...], extents: tuple[Expr, ...]) -> Expr:
    """Return the row-major offset of an element in elements; 64-bit where there is more than one dimension."""
    offset = indices[0]
    for index, extent in zip(indices[1:], extents[1:], strict=True):
        wide = as_long(offset)
        offset = binary("+", binary("*", wide, extent), index)
    return offset


def offset_inside(indices: tuple[Expr, ...], extents: tuple[Expr, ...]) -> Expr:
    """Return the row-major offset of an element that lies in its array: with 32 bits where the array's offsets fit."""
    if len(indices) == 1:
        return indices[0]
    offset = _offset(indices[0])
    for index, extent in zip(indices[1:], extents[1:], strict=True):
        offset = binary("+", binary("*", offset, _narrow(extent)), _narrow(index))
    return offset


def _offset(index: Expr) -> Expr:
    return Call(OFFSET, (index,), LONG)


def _narrow(part: Expr) -> Expr:
    return part if part.type.size <= INT.size or isinstance(part, IntConst) else _offset(part)


def as_long(expr: Expr) -> Expr:
    """Return the expression as ``long long``."""
    return expr if expr.type == LONG else Cast(LONG, expr)


def window_offset(window: Window, offsets: tuple[Expr, ...], symbols: Mapping[str, Expr]) -> Expr:
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
        offset = binary("+", binary("*", offset, columns), index)
    return offset


def kept_column(kept: Interleaving, x: Expr, turn: Expr, symbols: Mapping[str, Expr]) -> Expr:
    """Return where column ``turn*apart + x`` of an interleaved row is kept."""
    together = IntConst(kept.together)
    if kept.together == kept.trips:
        return binary("+", binary("*", x, together), turn)
    group = binary("*", binary("/", turn, together), code_of(kept.apart * kept.together, symbols))
    return binary("+", group, binary("+", binary("*", x, together), binary("%", turn, together)))


def load(window: Window, name: str, site: Site) -> list[Stmt]:
    """Return the loops that fill a window from global memory, staying inside the array."""
    prefix = site.rows.prefix(name)
    counters = tuple(Var(f"{prefix}_{axis}", INT) for axis in range(len(window.extents)))
    walk = _Walk(prefix, counters, window.extents, site, window.kept)
    values, declarations, guards = _global_coordinates(
        window, window.lows, window.strides, window.extents, counters, site, walk.ends
    )
    place = walk.place_in(window, counters, site.symbols)
    target = Element(name, (place,), window.array.element)
    source = Element(window.array.name, (_place(window, values, site),), window.array.element)
    copy: Stmt = Assign(target, "", source)
    guard = conjunction(guards)
    return walk.around((*declarations, copy if guard is None else If(guard, (copy,))))


def store(window: Window, box: WrittenBox, name: str, site: Site) -> list[Stmt]:
    """Return the loops that copy back what one reference wrote, under its guards."""
    prefix = site.rows.prefix(name)
    counters = tuple(Var(f"{prefix}_{axis}", INT) for axis in range(len(box.extents)))
    values, declarations, _ = _global_coordinates(window, box.lows, box.scales, box.extents, counters, site, {})
    symbols = dict(site.symbols)
    needed = {symbol for constraint in box.guards for symbol in constraint.symbols}
    decoded: list[Stmt] = []
    for counter, digits in zip(counters, box.digits, strict=True):
        for digit in digits:
            if digit.symbol in needed:
                variable = Var(f"{prefix}_{digit.symbol}", INT)
                decoded.append(Declare(variable.name, INT, _decode(counter, digit, digits[-1], site.symbols)))
                symbols[digit.symbol] = variable
    conditions: list[Expr] = [
        condition_of(guard, symbols, wide=may_be_negative(guard.left) or may_be_negative(guard.right))
        for guard in box.guards
    ]
    shifts = []
    for axis, counter in enumerate(counters):
        shift = (box.lows[axis] - window.lows[axis]).divide_exactly(Polynomial.constant(window.strides[axis]))
        assert shift is not None
        shifts.append(counter if not shift else binary("+", counter, code_of(shift, site.symbols)))
    walk = _Walk(prefix, counters, box.extents, site)
    place = walk.place_in(window, tuple(shifts), site.symbols)
    source = Element(name, (place,), window.array.element)
    target = Element(window.array.name, (_place(window, values, site),), window.array.element)
    copy: Stmt = Assign(target, "", source)
    guard = conjunction(conditions)
    body = (*decoded, *declarations, copy) if guard is None else (*decoded, If(guard, (*declarations, copy)))
    return walk.around(body)


def _decode(counter: Var, digit: Digit, highest: Digit, symbols: Mapping[str, Expr]) -> Expr:
    value: Expr = counter
    if digit.weight != 1:
        value = binary("/", value, code_of(digit.weight, symbols))
    if digit != highest:
        value = binary("%", value, code_of(digit.trips, symbols))
    return value


def _global_coordinates(
    window: Window,
    lows: tuple[Polynomial, ...],
    strides: tuple[int, ...],
    extents: tuple[Polynomial, ...],
    counters: tuple[Var, ...],
    site: Site,
    ends: dict[int, Expr | None],
) -> tuple[tuple[Expr, ...], list[Stmt], list[Expr]]:
    """Return the coordinates in the array, their declarations, and the conditions that keep them inside it.

    An axis in ``ends`` gets its value there, the end of its counter, in place of a condition that the array's extent
    asks for.
    """
    values: list[Expr] = []
    declarations: list[Stmt] = []
    guards: list[Expr] = []
    polynomials: list[Polynomial] = []
    loops = [*window.fixed]
    for low, stride, extent, counter in zip(lows, strides, extents, counters, strict=True):
        loops.append(LoopRange(counter.name, extent, LoopKind.SERIAL))
        polynomial = low + stride * Polynomial.symbol(counter.name)
        polynomials.append(polynomial)
        symbols = {**site.symbols, **{other.name: other for other in counters}}
        period = window.periods[len(values)] if window.periods else None
        wide = period is not None or len(counters) == 1 or may_be_negative(polynomial) or not _indexed_in_int(window)
        value = Var(f"{counter.name}_at", LONG if wide else INT)
        code = code_of(polynomial, symbols, wide=wide)
        if period is not None:
            declarations.append(Declare(value.name, value.type, code))
            length = code_of(period, site.symbols, wide=True)
            some = None if site.prover.proves(at_most(ONE, period)) else binary("<", IntConst(0), length)
            declarations.append(Assign(value, "", _wrapped(value, length, some)))
            values.append(value)
            guards += [] if some is None else [some]
            continue
        reach = _reach(polynomial, loops, site) if wide else None
        if reach is not None:
            site.rows.spans.append(reach)
            code = _in_offsets(code)
        declarations.append(Declare(value.name, value.type, code))
        values.append(value)
    declared = site.extents[window.array.name]
    if not window.factors:
        for axis, index in enumerate(values):
            if window.periods and window.periods[axis] is not None:
                continue
            extent_code = site.extent_code[window.array.name][axis]
            both = bounds_of(polynomials[axis], declared[axis], index, extent_code, loops, site)
            if both[1] is not None and axis in ends and strides[axis] == 1:
                ends[axis] = _end(extent_code, lows[axis], extents[axis], index.type, site)
                both = both[0], None
            guards += [bound for bound in both if bound is not None]
        return tuple(values), declarations, guards
    for factor, column, polynomial in zip(window.factors, values[1:], polynomials[1:], strict=True):
        both = bounds_of(polynomial, factor, column, code_of(factor, site.symbols), loops, site)
        guards += [bound for bound in both if bound is not None]
    both = row_bounds(window, values, polynomials, loops, site)
    return tuple(values), declarations, [*guards, *(bound for bound in both if bound is not None)]


def _wrapped(value: Var, period: Expr, some: Expr | None) -> Expr:
    """Return a value modulo a period where there is one; what lies between 0 and the period is not divided."""
    rest = binary("%", binary("+", binary("%", value, period), period), period)
    outside = binary("||", binary("<", value, IntConst(0)), binary(">=", value, period))
    return Conditional(outside if some is None else binary("&&", some, outside), rest, value, LONG)


def row_bounds(
    window: Window | PrivateWindow,
    code: Sequence[Expr],
    values: Sequence[Polynomial],
    loops: Sequence[LoopRange],
    site: Site,
) -> tuple[Expr | None, Expr | None]:
    """Return what keeps a linear index inside its array where the columns that it was split into are inside theirs.

    ``code`` and ``values`` are its coordinates.  In an array of whole rows the row alone decides.
    """
    (extent,), (extent_code,) = site.extents[window.array.name], site.extent_code[window.array.name]
    rows = None if extent is None else extent.divide_exactly(product_of(window.factors))
    if rows is not None and whole(rows):
        return bounds_of(values[0], rows, code[0], code_of(rows, site.symbols), loops, site)
    linear = values[0]
    for factor, value in zip(window.factors, values[1:], strict=True):
        linear = linear * factor + value
    offset = linear_offset(tuple(code), array_extents(window.array.name, window.factors, site))
    return bounds_of(linear, extent, offset, extent_code, loops, site)


def _end(array: Expr, low: Polynomial, window: Polynomial, type_: ScalarType, site: Site) -> Expr:
    """Return how many elements of an axis of a window lie below the end of the array, at most all; or less than 1."""
    wide = type_ is not INT or not INT.holds(array.type)
    room = binary("-", as_long(array) if wide else array, code_of(low, site.symbols, wide=wide))
    some = room if room.type is INT else Conditional(binary("<", IntConst(0), room), as_int(room), IntConst(0), INT)
    whole = code_of(window, site.symbols)
    least = whole if whole.type is INT else as_int(whole)  # a window fits in shared memory
    return Conditional(binary("<", room, whole), some, least, INT)


def _reach(value: Polynomial, loops: list[LoopRange], site: Site) -> Polynomial | None:
    """Return the largest value of a sum of terms that are not negative, ``None`` where one may be, or it is unknown."""
    for mono, coefficient in value.terms().items():
        if coefficient < 0:
            return None
        lowest = extreme(Polynomial({mono: coefficient}), loops, site.prover, largest=False)
        if lowest is None or not site.prover.certifies(at_most(0, lowest)):
            return None
    highest = extreme(value, loops, site.prover, largest=True)
    return highest if highest is not None and highest.symbols <= site.rows.host else None


def _in_offsets(code: Expr) -> Expr:
    """Return a sum in ``long long`` as one in the type of offsets."""
    match code:
        case Binary(op=op, left=left, right=right):
            return binary(op, _in_offsets(left), _in_offsets(right))
        case Cast(type=type_, operand=operand) if type_ == LONG:
            return _offset(operand)
        case IntConst(value=value, type=type_) if type_ == LONG and value < 1 << 31:
            return _offset(IntConst(value))
        case _:
            return code


def _indexed_in_int(window: Window) -> bool:
    """Say whether the program itself computes every index of a window in ``int``, without overflow."""
    return all(INT.holds(index.type) for reference in window.references for index in reference.element.indices)


def bounds_of(
    value: Polynomial, extent: Polynomial | None, code: Expr, extent_code: Expr, loops: Sequence[LoopRange], site: Site
) -> tuple[Expr | None, Expr | None]:
    """Return ``0 <= code`` and ``code < extent``, ``None`` for what is proved."""
    prover = site.prover
    low, high = (False, False) if extent is None else stays_within(value, extent, loops, prover, prover.derives)
    return None if low else binary("<=", IntConst(0), code), None if high else binary("<", code, extent_code)


def array_extents(name: str, factors: tuple[Polynomial, ...], site: Site) -> tuple[Expr, ...]:
    """Return the extents by which coordinates in an array make an offset; ``factors`` are those of an array of one."""
    if not factors:
        return site.extent_code[name]
    return (IntConst(1), *(code_of(factor, site.symbols) for factor in factors))


def _place(window: Window, values: tuple[Expr, ...], site: Site) -> Expr:
    return offset_inside(values, array_extents(window.array.name, window.factors, site))


@dataclass(slots=True)
class _Walk:
    """The loops of a copy over a box, as ``metafork.analysis.memory.copy_walk`` says.

    ``ends`` are the axes whose loop may end before the box does; the ends may be set until ``around``.
    """

    name: str
    counters: tuple[Var, ...]
    extents: tuple[Polynomial, ...]
    site: Site
    kept: Interleaving | None = None
    ends: dict[int, Expr | None] = field(init=False)

    def __post_init__(self) -> None:
        walk = copy_walk(self.extents, self.site.shape)
        *outer, last = walk.axes
        if walk.flat:
            if self.site.exactly == self.extents[outer[-1]] * self.extents[last]:
                outer.pop()  # no loop
        elif not outer:
            outer = [] if self._fills(last, 0, self.site.axes) else [last]
        else:
            if self.site.axes > 1 and self._fills(outer[-1], 1, self.site.axes):
                outer.pop()
            if not self._fills(last, 0, 1):
                outer.append(last)
        # A loop of a constant number of trips is better unrolled, with a condition for each.
        self.ends = dict.fromkeys(axis for axis in outer if self._rolled(axis))

    def _fills(self, axis: int, lowest: int, highest: int) -> bool:
        """Say whether the threads of these dimensions are as many as an axis has elements."""
        return not self.site.striding and product_of(self.site.shape[lowest:highest]) == self.extents[axis]

    @property
    def _line(self) -> Var:
        return Var(f"{self.name}_line", INT)

    def place_in(self, window: Window, offsets: tuple[Expr, ...], symbols: Mapping[str, Expr]) -> Expr:
        """Return the offset in the window of the element at these window coordinates."""
        whole_rows = offsets == self.counters and self.extents == window.extents and len(offsets) == 2
        if whole_rows and window.layout == ROW_BY_ROW and copy_walk(self.extents, self.site.shape).flat:
            return self._line
        if window.kept is not None:
            column = kept_column(window.kept, as_int(builtin("threadIdx.x")), self._trip(self.counters[-1]), symbols)
            offsets = (*offsets[:-1], column)
        return window_offset(window, offsets, symbols)

    def around(self, body: tuple[Stmt, ...]) -> list[Stmt]:
        """Return the loops around what copies one element."""
        walk = copy_walk(self.extents, self.site.shape)
        *outer, last = walk.axes
        result: tuple[Stmt, ...]
        if walk.flat:
            result = self._as_line(outer.pop(), last, body)
        elif not outer:
            result = self._over(last, body, 0, self.site.axes)
        else:
            result = self._over(last, body, 0, 1)
            if self.site.axes > 1:
                result = self._over(outer.pop(), result, 1, self.site.axes)
        for axis in reversed(outer):
            counter = self.counters[axis]
            first = Declare(counter.name, INT, IntConst(0))
            result = (
                For(first, self._inside(axis), _advance(counter, IntConst(1)), result, rolled=self._rolled(axis)),
            )
        fixed = [axis for axis in range(len(self.counters)) if axis not in walk.axes]
        ends = [Declare(self._end(axis).name, INT, end) for axis, end in self.ends.items() if end is not None]
        return [*ends, *(Declare(self.counters[axis].name, INT, IntConst(0)) for axis in fixed), *result]

    def _end(self, axis: int) -> Var:
        return Var(f"{self.counters[axis].name}_end", INT)

    def _extent(self, axis: int) -> Expr:
        return code_of(self.extents[axis], self.site.symbols)

    def _inside(self, axis: int) -> Expr:
        """Return the condition of the loop over an axis."""
        end = self._extent(axis) if self.ends.get(axis) is None else self._end(axis)
        return binary("<", self.counters[axis], end)

    def _rolled(self, *axes: int) -> bool:
        """Say whether a loop over these axes is better not unrolled: unless threads and elements are constants."""
        if self.kept is not None and axes == (len(self.extents) - 1,):
            return False  # a thread's trips are known, and say where an element is kept
        sizes = (*(self.extents[axis] for axis in axes), *self.site.shape)
        return self.site.striding or not all(size.is_constant for size in sizes)

    def _trip(self, counter: Var | Declare) -> Var:
        """Return what counts the trips of a thread along an axis."""
        return Var(f"{counter.name}_trip", INT)

    def _counted(
        self,
        first: Declare,
        condition: Expr,
        advance: tuple[Stmt, ...],
        body: tuple[Stmt, ...],
        elements: Polynomial,
        threads: Polynomial,
    ) -> tuple[Stmt, ...]:
        """Return a loop whose trips are a constant, and what is left for some of the threads.

        nvcc unrolls it, where it does not see that ``threadIdx.x`` being below a constant makes the trips of the usual
        loop one.
        """
        exact = trips_of(elements, threads)
        if exact is not None:
            trips, rest = int(exact.constant_value()), 0
        else:
            trips, rest = divmod(int(elements.constant_value()), int(threads.constant_value()))
        trip = self._trip(first)
        start, inside = Declare(trip.name, INT, IntConst(0)), binary("<", trip, IntConst(trips))
        whole = (For(start, inside, _advance(trip, IntConst(1)), (*body, *advance)),) if trips else ()
        return (first, *whole, *((If(condition, body),) if rest else ()))

    def _over(self, axis: int, body: tuple[Stmt, ...], lowest: int, highest: int) -> tuple[Stmt, ...]:
        """Spread one axis over the threads of some dimensions."""
        index, count = _linear(highest, lowest)
        counter = self.counters[axis]
        first = Declare(counter.name, INT, as_int(index))
        if self._fills(axis, lowest, highest):
            return (first, *body)
        advance = _advance(counter, as_int(count))
        if not self._rolled(axis):
            threads = product_of(self.site.shape[lowest:highest])
            return self._counted(first, self._inside(axis), (advance,), body, self.extents[axis], threads)
        return (For(first, self._inside(axis), advance, body, rolled=True),)

    def _as_line(self, rows: int, columns: int, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Spread two axes over all threads, row after row."""
        site, row, column = self.site, self.counters[rows], self.counters[columns]
        place = site.rows.place(self.extents[columns], site)
        total = self.extents[rows] * self.extents[columns]
        index, count = _linear(site.axes, 0)
        start = (Declare(row.name, INT, place.row), Declare(column.name, INT, place.column))
        first = Declare(self._line.name, INT, as_int(index))
        if site.exactly == total:
            return (first, *start, *body)
        advance: list[Stmt] = [_advance(row, place.rows)]
        if place.columns is not None:
            length = self._extent(columns)
            wrap = (Assign(column, "-", length), _advance(row, IntConst(1)))
            advance += [_advance(column, place.columns), If(binary(">=", column, length), wrap)]
        elements = code_of(total, site.symbols)
        if self.ends.get(rows) is not None:
            inside: Expr = binary("*", self._end(rows), self._extent(columns))
            inside = inside if inside.type is INT else as_int(inside)
            elements = Conditional(binary("<", IntConst(0), self._end(rows)), inside, IntConst(0), INT)
        condition = binary("<", self._line, elements)
        if not self._rolled(rows, columns):
            steps = (_advance(self._line, as_int(count)), *advance)
            counted = self._counted(first, condition, steps, body, total, product_of(site.shape))
            return (*start, *counted)
        return (*start, For(first, condition, _advance(self._line, as_int(count)), (*body, *advance), rolled=True))


def _advance(counter: Var, step: Expr) -> Assign:
    return Assign(counter, "+", step)


def zero(type_: ScalarType) -> Expr:
    """Return the constant zero for a variable of that type."""
    if not type_.floating:
        return IntConst(0)
    return FloatConst("0.0f" if type_ is ScalarType.FLOAT else "0.0", type_)


def as_int(expr: Expr) -> Expr:
    """Return the expression as ``int``."""
    return Cast(INT, expr)


def _linear(axes: int, lowest: int) -> tuple[Expr, Expr]:
    """Return the linear index of a thread over dimensions ``lowest`` to ``axes - 1``, and how many there are."""
    letters = "xyz"[lowest:axes]
    index: Expr = builtin(f"threadIdx.{letters[-1]}")
    count: Expr = builtin(f"blockDim.{letters[0]}")
    for letter in reversed(letters[:-1]):
        index = binary("+", binary("*", index, builtin(f"blockDim.{letter}")), builtin(f"threadIdx.{letter}"))
    for letter in letters[1:]:
        count = binary("*", count, builtin(f"blockDim.{letter}"))
    return index, count
