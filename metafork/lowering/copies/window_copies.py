"""Windows moved between an array in global memory and its tile in shared memory, by all threads of a block together.

``load`` fills a tile; ``store`` copies back what was written.  Each says what happens to one element at the counters
of a box (coordinates, conditions, offsets), and ``metafork.lowering.copies.copy_loops`` puts the loops around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most, less_than, product
from metafork.algebra.ranges import extreme
from metafork.analysis.memory.copy_walk import copy_walk, trips_of
from metafork.analysis.memory.tile_layout import pitch_of
from metafork.analysis.memory.window_store import Digit, WrittenBox
from metafork.analysis.memory.windows import Window
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.polynomial_code import LONG, code_of, condition_of, conjunction, may_be_negative
from metafork.lowering.copies.copy import (
    INT,
    Choice,
    Site,
    array_extents,
    as_int,
    as_long,
    as_offset,
    bounds_of,
    narrow,
    offset_inside,
    row_bounds,
    window_offset,
    zero,
)
from metafork.lowering.copies.copy_loops import Growth, Running, Walk
from metafork.lowering.copies.wide_copies import WideAccess, wide_access


def load(window: Window, name: str, site: Site, buffer: ir.Expr | None = None) -> list[ir.Stmt]:
    """Return the loops that fill a window from global memory, staying inside the array.

    One with several buffers is copied into that which begins at ``buffer``, asynchronously.  Several elements go
    together where that is proved but for what the kernel asks then.  In a block-level loop, a window that is not proved
    to lie in its array has a copy without borders too, for where it does.
    """
    lies_in = _lies_in(window, site) if window.level and site.exactly is not None else ()
    if not lies_in:
        return _load(window, name, site, buffer)
    test = conjunction([condition_of(one, site.symbols, wide=True) for one in lies_in])
    assert test is not None
    inside = _load(window, name, replace(site, inside=True), buffer)
    return [ir.If(test, tuple(inside), tuple(_loaded(window, name, site, buffer, in_branch=True)), widened=True)]


def _lies_in(window: Window, site: Site) -> tuple[Constraint, ...]:
    """Return what says that a window lies in its array, but for what is proved; nothing where that cannot be asked."""
    if window.factors or window.array.whole or window.elements.is_constant or any(window.periods):
        return ()
    asked: list[Constraint] = []
    places = zip(window.lows, window.strides, window.extents, site.extents[window.array.name], strict=True)
    for low, stride, extent, end in places:
        if end is None:
            return ()
        counter = LoopRange("element", extent, LoopKind.SERIAL)
        place = low + stride * Polynomial.symbol(counter.var)
        begins, ends = site.prover.derives_within(place, end, [*window.fixed, counter])
        if not begins:
            return ()
        if not ends:
            asked.append(less_than(low + stride * (extent - 1), end))
    return tuple(asked)


def _load(window: Window, name: str, site: Site, buffer: ir.Expr | None) -> list[ir.Stmt]:
    """Return the loops that fill a window, by wide accesses where these are to be had."""
    wide = wide_access(window, name, site)
    if wide is None:
        return _loaded(window, name, site, buffer)
    choice = _choice(window, wide, site)
    alone = _loaded(window, name, site, buffer, choice=choice, in_branch=True)
    together = _loaded(window, name, site, buffer, wide.lanes, choice)
    condition = wide.condition if choice is None else choice.wide
    return [ir.If(condition, tuple(together), tuple(alone), widened=True)]


def _choice(window: Window, wide: WideAccess, site: Site) -> Choice | None:
    """Return by what the two copies of a window share the places of threads, where either has to compute them."""
    length = window.extents[-1]
    lengths = (length, length * Fraction(1, wide.lanes))
    flat = all(copy_walk((*window.extents[:-1], one), site.shape).flat for one in lengths)
    if not flat or window.elements.is_constant or site.exactly is None:
        return None
    if any(trips_of(site.exactly, one) is not None for one in lengths):
        return None
    return site.rows.choice(wide.condition, wide.lanes)


def _loaded(
    window: Window,
    name: str,
    site: Site,
    buffer: ir.Expr | None,
    lanes: int = 1,
    choice: Choice | None = None,
    *,
    in_branch: bool = False,
) -> list[ir.Stmt]:
    """Return the loops that copy so many elements of a row by each access."""
    prefix = site.rows.prefix(name)
    counters = tuple(ir.Var(f"{prefix}_{axis}", INT) for axis in range(len(window.extents)))
    extents = window.extents
    if lanes > 1:
        extents = (*extents[:-1], extents[-1] * Fraction(1, lanes))
    walk = Walk(prefix, counters, extents, site, window.kept, in_branch, lanes, choice)
    strides = (*window.strides[:-1], window.strides[-1] * lanes)
    box = _Box(window, window.lows, strides, extents, counters, site)
    found = box.coordinates({} if site.filled else walk.ends)
    place = walk.place_in(window, box.in_window(counters), site.symbols)

    guard = conjunction(found.guards)

    def copied(offset: ir.Expr, place: ir.Expr) -> tuple[ir.Stmt, ...]:
        if buffer is not None and buffer != ir.IntConst(0):
            place = ir.binary("+", buffer, place)
        copies = tuple(_copy(window.array, offset, name, place, lanes, one, buffer is not None) for one in range(lanes))
        if guard is None:
            return copies
        type_ = window.array.element
        outside = (ir.Assign(ir.Element(name, (place,), type_), "", zero(type_)),) if site.filled else ()
        return (ir.If(guard, copies, outside),)

    body = (*found.declarations, *copied(_place(window, found.values, site), place))
    return walk.around(body, box.running(walk, tuple(found.declarations) if guard is not None else None, copied))


def _copy(
    array: ir.Array, offset: ir.Expr, name: str, place: ir.Expr, lanes: int, number: int, asynchronous: bool
) -> ir.Assign:
    """Return the copy of one of the neighbours that an access moves from an array into a window."""
    part = None if lanes == 1 else ir.Part(lanes, number)
    if number:
        offset, place = ir.binary("+", offset, ir.IntConst(number)), ir.binary("+", place, ir.IntConst(number))
    source = ir.Element(array.name, (offset,), array.element, part=part)
    return ir.Assign(ir.Element(name, (place,), array.element, part=part), "", source, asynchronous=asynchronous)


def store(window: Window, box: WrittenBox, name: str, site: Site) -> list[ir.Stmt]:
    """Return the loops that copy back what one reference wrote, under its guards."""
    prefix = site.rows.prefix(name)
    counters = tuple(ir.Var(f"{prefix}_{axis}", INT) for axis in range(len(box.extents)))
    written = _Box(window, box.lows, box.scales, box.extents, counters, site)
    found = written.coordinates({})
    symbols = dict(site.symbols)
    needed = {symbol for constraint in box.guards for symbol in constraint.symbols}
    decoded: list[ir.Stmt] = []
    for counter, digits in zip(counters, box.digits, strict=True):
        for digit in digits:
            if digit.symbol in needed:
                variable = ir.Var(f"{prefix}_{digit.symbol}", INT)
                decoded.append(ir.Declare(variable.name, INT, _decode(counter, digit, digits[-1], site.symbols)))
                symbols[digit.symbol] = variable
    conditions: list[ir.Expr] = [
        condition_of(guard, symbols, wide=may_be_negative(guard.left) or may_be_negative(guard.right))
        for guard in box.guards
    ]
    walk = Walk(prefix, counters, box.extents, site)
    place = walk.place_in(window, written.in_window(counters), site.symbols)
    source = ir.Element(name, (place,), window.array.element)
    copy: ir.Stmt = ir.Assign(
        ir.Element(window.array.name, (_place(window, found.values, site),), window.array.element), "", source
    )
    guard = conjunction(conditions)
    body = (*found.declarations, copy) if guard is None else (*decoded, ir.If(guard, (*found.declarations, copy)))

    def copied(offset: ir.Expr, place: ir.Expr) -> tuple[ir.Stmt, ...]:
        element = window.array.element
        to, source = ir.Element(window.array.name, (offset,), element), ir.Element(name, (place,), element)
        move = ir.Assign(to, "", source)
        return (move,) if guard is None else (ir.If(guard, (move,)),)

    return walk.around(body, written.running(walk, tuple(decoded) if guard is not None else None, copied))


def _decode(counter: ir.Var, digit: Digit, highest: Digit, symbols: Mapping[str, ir.Expr]) -> ir.Expr:
    value: ir.Expr = counter
    if digit.weight != 1:
        value = ir.binary("/", value, code_of(digit.weight, symbols))
    if digit != highest:
        value = ir.binary("%", value, code_of(digit.trips, symbols))
    return value


class _Coordinates(Struct, frozen=True):
    """The coordinates of an element in the array, their declarations, and the conditions that keep them inside it."""

    values: tuple[ir.Expr, ...]
    declarations: list[ir.Stmt]
    guards: list[ir.Expr]


class _Box(Struct, frozen=True):
    """A box of a window: coordinate d of element e is ``lows[d] + strides[d]*e``, with e counted by ``counters``."""

    window: Window
    lows: tuple[Polynomial, ...]
    strides: tuple[int, ...]
    extents: tuple[Polynomial, ...]
    counters: tuple[ir.Var, ...]
    site: Site

    def coordinates(self, ends: dict[int, ir.Expr | None]) -> _Coordinates:
        """Return where an element stands in the array.

        An axis in ``ends`` gets its value there, the end of its counter, in place of a condition that the array's
        extent asks for.
        """
        site, window = self.site, self.window
        values: list[ir.Expr] = []
        declarations: list[ir.Stmt] = []
        guards: list[ir.Expr] = []
        loops = [*window.fixed]
        polynomials: list[Polynomial] = []
        for axis, counter in enumerate(self.counters):
            loops.append(LoopRange(counter.name, self.extents[axis], LoopKind.SERIAL))
            polynomials.append(self._coordinate(axis))
            period = window.periods[axis] if window.periods else None
            code = self._code(axis, loops, self.counters, wrapped=period is not None)
            value = ir.Var(f"{counter.name}_at", code.type if code.type == LONG else INT)
            declarations.append(ir.Declare(value.name, value.type, code))
            values.append(value)
            if period is not None:
                length = code_of(period, site.symbols, wide=True)
                some = None if site.prover.proves(at_most(ONE, period)) else ir.binary("<", ir.IntConst(0), length)
                declarations.append(ir.Assign(value, "", _wrapped(value, length, some)))
                guards += [] if some is None else [some]
        declared = site.extents[window.array.name]
        if not window.factors:
            for axis, index in enumerate(values):
                if window.periods and window.periods[axis] is not None:
                    continue
                extent_code = site.extent_code[window.array.name][axis]
                both = bounds_of(polynomials[axis], declared[axis], index, extent_code, loops, site)
                if both[1] is not None and axis in ends and self.strides[axis] == 1:
                    ends[axis] = _end(extent_code, self.lows[axis], self.extents[axis], index.type, site)
                    both = both[0], None
                guards += [bound for bound in both if bound is not None]
            return _Coordinates(tuple(values), declarations, guards)
        for factor, column, polynomial in zip(window.factors, values[1:], polynomials[1:], strict=True):
            both = bounds_of(polynomial, factor, column, code_of(factor, site.symbols), loops, site)
            guards += [bound for bound in both if bound is not None]
        both = row_bounds(window, values, polynomials, loops, site)
        guards += [bound for bound in both if bound is not None]
        return _Coordinates(tuple(values), declarations, guards)

    def _coordinate(self, axis: int) -> Polynomial:
        return self.lows[axis] + self.strides[axis] * Polynomial.symbol(self.counters[axis].name)

    def _code(
        self, axis: int, loops: list[LoopRange], counters: Sequence[ir.Expr], *, wrapped: bool = False
    ) -> ir.Expr:
        """Return a coordinate for values of the counters; one that is ``wrapped`` has no end yet."""
        site, polynomial = self.site, self._coordinate(axis)
        own = {counter.name: value for counter, value in zip(self.counters, counters, strict=True)}
        symbols = {**site.symbols, **own}
        narrow_enough = len(self.counters) > 1 and not may_be_negative(polynomial) and _indexed_in_int(self.window)
        wide = wrapped or not narrow_enough
        code = code_of(polynomial.without(n for n, at in own.items() if at == ir.IntConst(0)), symbols, wide=wide)
        reach = _reach(polynomial, loops, site) if wide and not wrapped else None
        if reach is None:
            return code
        site.rows.spans.append(reach)
        return _in_offsets(code)

    def in_window(self, counters: Sequence[ir.Expr]) -> tuple[ir.Expr, ...]:
        """Return the coordinates in the window for values of the counters."""
        result: list[ir.Expr] = []
        for axis, counter in enumerate(counters):
            distance = self.lows[axis] - self.window.lows[axis]
            shift = distance.divide_exactly(Polynomial.constant(self.window.strides[axis]))
            assert shift is not None
            place = self._scaled(axis, counter)
            result.append(place if not shift else ir.binary("+", place, code_of(shift, self.site.symbols)))
        return tuple(result)

    def _scaled(self, axis: int, counted: ir.Expr) -> ir.Expr:
        """Return how many elements of the window a counter counts: some where they are copied together."""
        together = self.strides[axis] // self.window.strides[axis]
        return counted if together == 1 else ir.binary("*", counted, ir.IntConst(together))

    def running(
        self,
        walk: Walk,
        decoded: tuple[ir.Stmt, ...] | None,
        copy: Callable[[ir.Expr, ir.Expr], tuple[ir.Stmt, ...]],
    ) -> Running | None:
        """Return the copy by offsets that advance; ``None`` where it is not proved that they fit their types.

        ``copy`` is the copy between an offset in the array and one in the window; ``decoded`` declares what it needs
        of the counters, ``None`` where it needs nothing of them.
        """
        window, site = self.window, self.site
        in_order = window.layout.turn == "none" and window.kept is None and not any(window.periods)
        span = self._span() if in_order else None
        if span is None:
            return None
        boxes = zip(self.counters, self.extents, strict=True)
        loops = [*window.fixed, *(LoopRange(one.name, extent, LoopKind.SERIAL) for one, extent in boxes)]
        sizes = array_extents(window.array.name, window.factors, site)
        pitches = [code_of(extent, site.symbols) for extent in window.extents]
        if len(pitches) > 1:
            pitches[-1] = pitch_of(window.layout, pitches[-1])

        def array_at(counters: Sequence[ir.Expr]) -> ir.Expr:
            return as_long(_place(window, tuple(self._code(a, loops, counters) for a in range(len(self.lows))), site))

        def array_by(growth: Growth) -> ir.Expr:
            steps = {axis: _times(self.strides[axis], by) for axis, by in growth.items()}
            return _grown(steps, sizes, offsets=True)

        def copied(offset: ir.Expr, place: ir.Expr) -> tuple[ir.Stmt, ...]:
            return (*(decoded or ()), *copy(offset, place))

        site.rows.spans.append(span)
        return Running(
            array_at,
            array_by,
            lambda counters: window_offset(window, self.in_window(counters), site.symbols),
            lambda growth: _grown(
                {axis: self._scaled(axis, by) for axis, by in growth.items()}, pitches, offsets=False
            ),
            copied,
            decoded is not None,
            walk.is_line(window, self.in_window(self.counters)),
        )

    def _span(self) -> Polynomial | None:
        """Return what offsets do not reach that advance through the box; ``None`` where it is not known.

        The box begins in the array.  A thread starts at most as many elements on as there are threads, along each axis,
        and goes as far once more after its last element.
        """
        site, threads = self.site, self.site.exactly
        declared = site.extents[self.window.array.name]
        known = tuple(extent for extent in declared if extent is not None)
        if threads is None or len(known) < len(declared):
            return None
        total, inner = product(known), self.window.factors or known[1:]
        low, steps, size = ZERO, ZERO, ONE
        for axis in reversed(range(len(self.lows))):
            low, steps = (
                low + self.lows[axis] * size,
                steps + self.strides[axis] * (self.extents[axis] + 2 * threads) * size,
            )
            size = size * inner[axis - 1] if axis else size
        corner = [(low, total)] if self.window.factors else list(zip(self.lows, known, strict=True))
        if not all(all(site.prover.derives_within(*one, self.window.fixed)) for one in corner):
            return None
        span = total + steps
        return span if span.symbols <= site.rows.host else None


def _times(stride: int, by: ir.Expr) -> ir.Expr:
    return by if stride == 1 else ir.binary("*", ir.IntConst(stride), by)


def _grown(growth: Growth, extents: Sequence[ir.Expr], *, offsets: bool) -> ir.Expr:
    """Return what a row-major offset grows by where coordinates do."""
    total: ir.Expr | None = None
    for axis, extent in enumerate(extents):
        if total == ir.IntConst(1):
            total = as_offset(extent) if offsets and axis < len(extents) - 1 else extent
        elif total is not None:
            total = ir.binary("*", total, narrow(extent) if offsets else extent)
        if axis in growth:
            by = growth[axis]
            if offsets and axis < len(extents) - 1 and by != ir.IntConst(1):
                by = as_offset(by)
            total = by if total is None else ir.binary("+", total, by)
    assert total is not None
    return total


def _wrapped(value: ir.Var, period: ir.Expr, some: ir.Expr | None) -> ir.Expr:
    """Return a value modulo a period where there is one; what lies between 0 and the period is not divided."""
    rest = ir.binary("%", ir.binary("+", ir.binary("%", value, period), period), period)
    outside = ir.binary("||", ir.binary("<", value, ir.IntConst(0)), ir.binary(">=", value, period))
    return ir.Conditional(outside if some is None else ir.binary("&&", some, outside), rest, value, LONG)


def _end(array: ir.Expr, low: Polynomial, window: Polynomial, type_: ScalarType, site: Site) -> ir.Expr:
    """Return how many elements of an axis of a window lie below the end of the array, at most all; or less than 1."""
    wide = type_ is not INT or not INT.holds(array.type)
    room = ir.binary("-", as_long(array) if wide else array, code_of(low, site.symbols, wide=wide))
    some = (
        room
        if room.type is INT
        else ir.Conditional(ir.binary("<", ir.IntConst(0), room), as_int(room), ir.IntConst(0), INT)
    )
    whole = code_of(window, site.symbols)
    least = whole if whole.type is INT else as_int(whole)  # a window fits in shared memory
    return ir.Conditional(ir.binary("<", room, whole), some, least, INT)


def _reach(value: Polynomial, loops: list[LoopRange], site: Site) -> Polynomial | None:
    """Return the largest value of a sum of terms that are not negative, ``None`` where one may be, or it is unknown."""
    for mono, coefficient in value.terms().items():
        lowest = extreme(Polynomial({mono: coefficient}), loops, site.prover, largest=False)
        if lowest is None or not site.prover.certifies(at_most(0, lowest)):
            return None
    highest = extreme(value, loops, site.prover, largest=True)
    return highest if highest is not None and highest.symbols <= site.rows.host else None


def _in_offsets(code: ir.Expr) -> ir.Expr:
    """Return a sum in ``long long`` as one in the type of offsets."""
    match code:
        case ir.Binary(op=op, left=left, right=right):
            return ir.binary(op, _in_offsets(left), _in_offsets(right))
        case ir.Cast(type=type_, operand=operand) if type_ == LONG:
            return as_offset(operand)
        case ir.IntConst(value=value, type=type_) if type_ == LONG and value < 1 << 31:
            return as_offset(ir.IntConst(value))
        case _:
            return code


def _indexed_in_int(window: Window) -> bool:
    """Say whether the program itself computes every index of a window in ``int``, without overflow."""
    return all(INT.holds(index.type) for reference in window.references for index in reference.element.indices)


def _place(window: Window, values: tuple[ir.Expr, ...], site: Site) -> ir.Expr:
    return offset_inside(values, array_extents(window.array.name, window.factors, site))
