"""The loops of a copy over a box: who copies which element, and the offsets that advance from one to the next.

``metafork.analysis.memory.copy_walk`` says which threads walk which axes.  Where the box is proved to lie in the array,
the innermost loop advances two offsets by what does not change from round to round, and computes nothing else::

    int from = ..., to = ...;                              before the loop: products, and no quotient inside
    for (int e = threadIdx.x; e < extent; e += blockDim.x) {
      tile[to] = array[from];
      from += ...; to += ...;
    }

In other copies each round computes its coordinates, which conditions compare with the borders of the array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial, product
from metafork.analysis.memory.copy_walk import copy_walk, trips_of
from metafork.analysis.memory.windows import Interleaving, Window
from metafork.ir.kernel import builtin
from metafork.ir.mapping import ROW_BY_ROW
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import LONG, whole_code_of
from metafork.ir.program import ROLLED, Assign, Conditional, Declare, Expr, For, If, IntConst, Stmt, Var, binary
from metafork.lowering.copies.copy import (
    INT,
    Choice,
    Site,
    as_int,
    kept_column,
    linear_index,
    window_offset,
)

MOST_STRIPS = 16
"""Most elements that a thread copies without a loop."""
LOADS_AHEAD = 8
"""How many elements a thread loads before it stores them, where it copies one of every row."""
VECTORS_AHEAD = 4
"""How many vectors it loads before it stores them, where its next one lies in the same column of a row further on."""

Growth = Mapping[int, Expr]
"""How much the counters of some axes grow."""


class Running(Struct, frozen=True):
    """A copy by offsets that advance.

    ``array_at`` and ``tile_at`` give the offsets for values of all counters, ``array_by`` and ``tile_by`` what they
    grow by with the counters; ``copied`` is the copy between two offsets, which needs the counters too where
    ``counted`` holds.  ``in_line``: the tile's elements stand in the order in which the threads walk rows.
    """

    array_at: Callable[[Sequence[Expr]], Expr]
    array_by: Callable[[Growth], Expr]
    tile_at: Callable[[Sequence[Expr]], Expr]
    tile_by: Callable[[Growth], Expr]
    copied: Callable[[Expr, Expr], tuple[Stmt, ...]]
    counted: bool
    in_line: bool


@dataclass(slots=True)
class Walk:
    """The loops of a copy over a box.

    ``ends`` are the axes whose loop may end before the box does; the ends may be set until ``around``.  Where the copy
    is ``in_branch``, one of two that a condition chooses from, its loops stay loops: of a few instructions compilers
    make no branch, and all threads would go through both copies.  An element of the box is what one access moves, so
    many elements ``together``.  A ``choice`` says that the other of two copies moves more of them, or this one.
    """

    name: str
    counters: tuple[Var, ...]
    extents: tuple[Polynomial, ...]
    site: Site
    kept: Interleaving | None = None
    in_branch: bool = False
    together: int = 1
    choice: Choice | None = None
    ends: dict[int, Expr | None] = field(init=False)
    _running: Running | None = None
    _settled: list[Stmt] = field(default_factory=list)
    _starts: dict[int, Expr] = field(default_factory=dict)
    _copies: int = 1

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
        return not self.site.striding and product(self.site.shape[lowest:highest]) == self.extents[axis]

    @property
    def line(self) -> Var:
        """The place of a thread in the order in which all threads walk rows."""
        return Var(f"{self.name}_line", INT)

    def is_line(self, window: Window, offsets: tuple[Expr, ...]) -> bool:
        """Say whether the elements of a window stand in the order in which the threads walk them."""
        *rows, last = self.counters
        in_rows = offsets == (*rows, self._elements(last)) and len(offsets) == 2
        return (
            in_rows
            and (*self.extents[:-1], self.extents[-1] * self.together) == window.extents
            and window.kept is None
            and window.layout == ROW_BY_ROW
            and copy_walk(self.extents, self.site.shape).flat
        )

    def place_in(self, window: Window, offsets: tuple[Expr, ...], symbols: Mapping[str, Expr]) -> Expr:
        """Return the offset in the window of the element at these window coordinates."""
        if self.is_line(window, offsets):
            return self.place_in_line
        if window.kept is not None:
            column = kept_column(window.kept, as_int(builtin("threadIdx.x")), self._trip(len(offsets) - 1), symbols)
            offsets = (*offsets[:-1], column)
        return window_offset(window, offsets, symbols)

    def _elements(self, accesses: Expr) -> Expr:
        return accesses if self.together == 1 else binary("*", accesses, IntConst(self.together))

    @property
    def place_in_line(self) -> Expr:
        """The place of an element in a tile whose elements stand in the order in which the threads walk them."""
        return self._elements(self.line)

    def around(self, body: tuple[Stmt, ...], running: Running | None) -> list[Stmt]:
        """Return the loops around what copies one element."""
        walk = copy_walk(self.extents, self.site.shape)
        *outer, last = walk.axes
        fixed = [axis for axis in range(len(self.counters)) if axis not in walk.axes]
        self._settled = [Declare(self.counters[axis].name, INT, IntConst(0)) for axis in fixed]
        self._running = running
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
            first = Declare(self.counters[axis].name, INT, IntConst(0))
            rolled = self._rolled(axis)
            straight = not any(self.ends.values()) and not any(isinstance(stmt, For | If) for stmt in result)
            if rolled and straight:
                result = self._loop(axis, first, IntConst(1), result, copies=LOADS_AHEAD)
            else:
                result = self._loop(axis, first, IntConst(1), result, copies=ROLLED if rolled else 0)
        ends = [Declare(self._end(axis).name, INT, end) for axis, end in self.ends.items() if end is not None]
        return [*ends, *self._settled, *result]

    def _end(self, axis: int) -> Var:
        return Var(f"{self.counters[axis].name}_end", INT)

    def _trip(self, axis: int) -> Var:
        """Return what counts the trips of a thread along an axis."""
        return Var(f"{self.counters[axis].name}_trip", INT)

    def _extent(self, axis: int) -> Expr:
        return whole_code_of(self.extents[axis], self.site.symbols)

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
        self._running = None
        exact = trips_of(elements, threads)
        if exact is not None:
            trips, rest = int(exact.constant_value()), 0
        else:
            trips, rest = divmod(int(elements.constant_value()), int(threads.constant_value()))
        trip = Var(f"{first.name}_trip", INT)
        start, inside = Declare(trip.name, INT, IntConst(0)), binary("<", trip, IntConst(trips))
        step, inner = _advance(trip, IntConst(1)), (*body, *advance)
        whole = (For(start, inside, step, inner, copies=ROLLED if self.in_branch else 0),) if trips else ()
        return (first, *whole, *((If(condition, body),) if rest else ()))

    def _over(self, axis: int, body: tuple[Stmt, ...], lowest: int, highest: int) -> tuple[Stmt, ...]:
        """Spread one axis over the threads of some dimensions."""
        index, count = linear_index(self.site, lowest, highest)
        first = Declare(self.counters[axis].name, INT, as_int(index))
        if self._fills(axis, lowest, highest):
            self._settled.append(first)
            return body
        threads = product(self.site.shape[lowest:highest])
        strips = self._strips(axis, threads)
        if strips is not None:
            return self._in_strips(axis, as_int(index), as_int(count), strips, body)
        if not self._rolled(axis):
            advance = _advance(self.counters[axis], as_int(count))
            return self._counted(first, self._inside(axis), (advance,), body, self.extents[axis], threads)
        return self._loop(axis, first, as_int(count), body, copies=ROLLED)

    def _strips(self, axis: int, threads: Polynomial) -> int | None:
        """Return how many elements of an axis each thread copies, where these are a few, and as many for all."""
        elements = self.extents[axis]
        trips = None if self.site.striding or self.ends.get(axis) is not None else trips_of(elements, threads)
        if trips is None or not trips.is_constant or elements.is_constant:
            return None
        strips = int(trips.constant_value())
        return strips if strips >= 2 and strips * self._copies <= MOST_STRIPS else None

    def _in_strips(self, axis: int, index: Expr, count: Expr, strips: int, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return a loop of constant trips, in each of which all threads copy."""
        trip = self._trip(axis)
        start, inside = Declare(trip.name, INT, IntConst(0)), binary("<", trip, IntConst(strips))
        place = Declare(self.counters[axis].name, INT, binary("+", index, binary("*", trip, count)))
        self._starts[axis] = index
        self._copies *= strips
        if self._running is not None:
            copied = partial(_stripped, self._running, axis, count, strips)
            self._running = None if self._running.counted else replace(self._running, copied=copied)
        return (For(start, inside, _advance(trip, IntConst(1)), (place, *body)),)

    def _loop(self, axis: int, first: Declare, step: Expr, body: tuple[Stmt, ...], *, copies: int) -> tuple[Stmt, ...]:
        """Return the loop of one counter around a body."""
        counter, condition = self.counters[axis], self._inside(axis)
        running, self._running = self._running, None
        before: list[Stmt] = []
        if running is not None and copies:
            assert first.value is not None
            starts = {**self._starts, axis: first.value}
            at = [starts.get(other, value) for other, value in enumerate(self.counters)]
            offsets = _Offsets.of(running, self)
            before = offsets.start(at)
            body = (*offsets.copied(), *offsets.advance({axis: step}))
        return (*before, For(first, condition, _advance(counter, step), body, copies=copies))

    def _as_line(self, rows: int, columns: int, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Spread two axes over all threads, row after row."""
        site, row, column = self.site, self.counters[rows], self.counters[columns]
        length = self.extents[columns] if self.choice is None else self.extents[columns] * self.together
        place = site.rows.place(length, site, self.choice)
        total = self.extents[rows] * self.extents[columns]
        index, count = linear_index(site, 0, site.axes)
        start: list[Stmt] = [Declare(row.name, INT, place.row), Declare(column.name, INT, place.column)]
        first = Declare(self.line.name, INT, as_int(index))
        if site.exactly == total:
            self._settled += [first, *start]
            return body
        elements = whole_code_of(total, site.symbols)
        if self.ends.get(rows) is not None:
            inside: Expr = binary("*", self._end(rows), self._extent(columns))
            inside = inside if inside.type is INT else as_int(inside)
            elements = Conditional(binary("<", IntConst(0), self._end(rows)), inside, IntConst(0), INT)
        condition = binary("<", self.line, elements)
        turn = self._extent(columns) if self.together == 1 and self.choice is None else place.length
        wrap: list[Stmt] = [Assign(column, "-", turn), _advance(row, IntConst(1))]
        steps: list[Stmt] = [_advance(row, place.rows)]
        growth = {rows: place.rows} if place.columns is None else {rows: place.rows, columns: place.columns}
        running, self._running = self._running, None
        if running is not None and self._rolled(rows, columns):
            offsets = _Offsets.of(running, self)
            start += offsets.start(self.counters)
            body = offsets.copied()
            if not running.counted:
                steps, wrap = [], wrap[:1]
            steps += offsets.advance(growth)
            wrap += offsets.wrap(rows, columns, turn)
        if place.columns is not None:
            steps += [_advance(column, place.columns), If(binary(">=", column, turn), tuple(wrap))]
        if not self._rolled(rows, columns):
            every = (_advance(self.line, as_int(count)), *steps)
            return (*start, *self._counted(first, condition, every, body, total, product(site.shape)))
        alike = place.columns is None and self.together > 1
        step = _advance(self.line, as_int(count))
        return (*start, For(first, condition, step, (*body, *steps), copies=VECTORS_AHEAD if alike else ROLLED))


def _stripped(running: Running, axis: int, count: Expr, strips: int, array: Expr, tile: Expr) -> tuple[Stmt, ...]:
    result: list[Stmt] = list(running.copied(array, tile))
    for trip in range(1, strips):
        on = {axis: count if trip == 1 else binary("*", IntConst(trip), count)}
        result += running.copied(binary("+", array, running.array_by(on)), binary("+", tile, running.tile_by(on)))
    return tuple(result)


class _Offsets(Struct):
    """The two offsets of a running copy.

    ``place`` is the one in the tile, ``None`` where the tile lies in the order of the ``line``, which says the place.
    """

    running: Running
    array: Var
    place: Var | None
    line: Expr

    @staticmethod
    def of(running: Running, walk: Walk) -> _Offsets:
        taken = walk.site.rows.taken
        array = Var(fresh(f"{walk.name}_offset", taken), LONG)
        place = None if running.in_line else Var(fresh(f"{walk.name}_place", taken), INT)
        return _Offsets(running, array, place, walk.place_in_line)

    def start(self, counters: Sequence[Expr]) -> list[Stmt]:
        result: list[Stmt] = [Declare(self.array.name, LONG, self.running.array_at(counters))]
        if self.place is not None:
            first = self.running.tile_at(counters)
            result.append(Declare(self.place.name, INT, first if first.type is INT else as_int(first)))
        return result

    def copied(self) -> tuple[Stmt, ...]:
        return self.running.copied(self.array, self.line if self.place is None else self.place)

    def advance(self, growth: Growth) -> list[Stmt]:
        return [_advance(offset, by(growth)) for offset, by in self._running()]

    def wrap(self, rows: int, columns: int, length: Expr) -> list[Stmt]:
        """Go back by the length of a row, and on to the next row."""
        return [
            _advance(offset, binary("-", by({rows: IntConst(1)}), by({columns: length})))
            for offset, by in self._running()
        ]

    def _running(self) -> list[tuple[Var, Callable[[Growth], Expr]]]:
        """Return the offsets that advance, and by what."""
        running = [(self.array, self.running.array_by)]
        return running if self.place is None else [*running, (self.place, self.running.tile_by)]


def _advance(counter: Var, step: Expr) -> Assign:
    return Assign(counter, "+", step)
