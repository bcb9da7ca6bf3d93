"""The accesses of a block to its shared memory: by threads in phases, and by the copies that move windows.

Each access is a row and a column of a tile, polynomials in the thread variables ``THREADS`` (x, y, z), in sampled loop
symbols and in parameters.  The lowering makes the same accesses of the same plan
(``metafork.analysis.memory.block_memory``), and copies follow the same ``metafork.analysis.memory.copy_walk``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, less_than
from metafork.analysis.analyses import Analyses
from metafork.analysis.delinearization import coordinates
from metafork.analysis.memory.block_memory import BlockMemory, HeldWindow, PathPlan
from metafork.analysis.memory.block_shape import block_shape
from metafork.analysis.memory.copy_walk import copy_walk
from metafork.analysis.memory.interleaving import interleaving
from metafork.analysis.memory.window_store import Store
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.mapping import Layout
from metafork.ir.marks import several_results
from metafork.ir.program import Program

THREADS = ("thread.x", "thread.y", "thread.z")
"""Symbols of the thread variables; no names of C."""
ROW, COLUMN = "copy.row", "copy.column"
"""Symbols of where a thread stands in rows that all threads walk as one line."""


class LineWalk(Struct, frozen=True):
    """A walk along rows of one ``length``: ``ROW`` and ``COLUMN`` are quotient and remainder of the place by it."""

    place: Polynomial
    length: Polynomial


class SharedAccess(Struct, frozen=True):
    """One access of all threads of a block to one tile.

    Element (row, column) of a tile with so many ``columns`` is accessed; what has one dimension
    (``line``) is row 0.  ``block`` are the extents (x, y, z) in which threads are numbered, ``threads`` those of the
    loops that have work; ``loops`` are the other loops around, outermost first; ``conditions`` hold where the
    access happens; ``walk`` defines ``ROW`` and ``COLUMN`` where these occur.
    """

    array: str
    element: ScalarType
    layout: Layout
    row: Polynomial
    column: Polynomial
    columns: Polynomial
    line: bool
    block: tuple[Polynomial, ...]
    threads: tuple[Polynomial | None, ...]
    loops: tuple[LoopRange, ...]
    conditions: tuple[Constraint, ...]
    walk: LineWalk | None = None

    def polynomials(self, layout: Layout) -> tuple[Polynomial, ...]:
        """Return everything whose value must be known to say where the access goes under a layout."""
        known = tuple(extent for extent in self.threads if extent is not None)
        columns = () if self.line and layout.turn == "none" else (self.columns,)
        lengths = () if self.walk is None else (self.walk.length,)
        return (self.row, self.column, *self.block, *known, *columns, *lengths)


class UnknownAccessError(Exception):
    """An access goes no one knows where; the message names the array."""


def shared_accesses(program: Program, memory: BlockMemory, analyses: Analyses) -> tuple[SharedAccess, ...]:
    """Return the accesses of a block to shared memory, equal ones once.

    Raises ``UnknownAccessError``, and ``UnknownShapeError`` where a thread extent is no polynomial.
    """
    scope = Scope.of(memory.facts)
    scope.derived.extend(symbol for symbol in memory.derived if symbol not in scope.derived)
    shape = block_shape(program, scope, analyses.prover(memory.facts.constraints, memory.facts.derived))
    if several_results(program):
        raise UnknownAccessError("a thread runs several iterations of a thread loop")
    found: list[SharedAccess] = []
    for plan in memory.paths:
        for held in plan.windows:
            if interleaving(held.window, program, shape, analyses.prover(memory.facts.constraints, ())):
                raise UnknownAccessError(f"rows of {held.window.array.name} are kept thread by thread")
        found += _of_threads(plan, scope, shape)
        for held in plan.windows:
            found += _of_copies(held, shape)
    return tuple(dict.fromkeys(found))


def _of_threads(plan: PathPlan, scope: Scope, shape: tuple[Polynomial, ...]) -> Iterator[SharedAccess]:
    held = {ref.number: (one.window, ref) for one in plan.windows for ref in one.window.references}
    own = {array.name: array for array, _ in plan.block_arrays}
    for reference in plan.references:
        if reference.phase is None:
            continue  # all threads read one element
        if reference.number in held:
            window, access = held[reference.number]
            place = tuple(
                (index - low) * _inverse(stride)
                for index, low, stride in zip(
                    coordinates(access, window.factors), window.lows, window.strides, strict=True
                )
            )
            yield _threads_access(access, window.layout, place, window.extents, shape, plan.program)
        elif reference.array in own:
            extents = tuple(scope.polynomial(extent) for extent in own[reference.array].extents)
            indices = reference.indices
            if any(value is None for value in (*indices, *extents)):
                raise UnknownAccessError(f"an index of {reference.array} is no known polynomial")
            place, sizes = tuple(i for i in indices if i is not None), tuple(e for e in extents if e is not None)
            layout = plan.program.mapping.layout(reference.array)
            yield _threads_access(reference, layout, place, sizes, shape, plan.program)


def _inverse(stride: int) -> Polynomial:
    inverse = ONE.divide_exactly(Polynomial.constant(stride))
    assert inverse is not None
    return inverse


def _threads_access(
    reference: Reference,
    layout: Layout,
    place: Sequence[Polynomial],
    extents: Sequence[Polynomial],
    shape: tuple[Polynomial, ...],
    program: Program,
) -> SharedAccess:
    threads = [loop for loop in reversed(reference.loops) if loop.kind is LoopKind.THREAD]
    names = {loop.var: Polynomial.symbol(name) for loop, name in zip(threads, THREADS, strict=False)}
    others = tuple(
        replace(loop, trips=None if loop.trips is None else loop.trips.substitute(names))
        for loop in reference.loops
        if loop.kind is not LoopKind.THREAD
    )
    trips = tuple(loop.trips for loop in threads)
    block = shape
    if program.striding is not None:
        if any(extent is None for extent in trips):
            raise UnknownAccessError(f"the threads that access {reference.array} are not known")
        block = tuple(extent for extent in trips if extent is not None)
    conditions = tuple(
        Constraint(c.left.substitute(names), c.relation, c.right.substitute(names))
        for c in (
            *(c for loop in reference.loops for c in loop.inside),
            *(c for guard in reference.guards for c in guard.constraints),
        )
    )
    row, column, columns = _tile(tuple(index.substitute(names) for index in place), extents)
    element = reference.element.type
    return SharedAccess(
        reference.array, element, layout, row, column, columns, len(place) == 1, block, trips, others, conditions
    )


def _tile(place: Sequence[Polynomial], extents: Sequence[Polynomial]) -> tuple[Polynomial, Polynomial, Polynomial]:
    row = ZERO
    for index, extent in zip(place[:-1], extents[:-1], strict=True):
        row = row * extent + index
    return row, place[-1], extents[-1]


def _of_copies(held: HeldWindow, shape: tuple[Polynomial, ...]) -> Iterator[SharedAccess]:
    window = held.window
    if window.reads or held.store is Store.NONE:
        yield _copy(held, (ZERO,) * len(window.extents), window.extents, shape)
    for box in held.boxes:
        shifts = tuple(
            (low - start) * _inverse(stride)
            for low, start, stride in zip(box.lows, window.lows, window.strides, strict=True)
        )
        yield _copy(held, shifts, box.extents, shape)


def _copy(
    held: HeldWindow, shifts: Sequence[Polynomial], extents: Sequence[Polynomial], shape: tuple[Polynomial, ...]
) -> SharedAccess:
    """Return the access of a copy by a block of that shape."""
    window = held.window
    walk = copy_walk(extents, shape)
    x, *others = (Polynomial.symbol(name) for name in THREADS[: len(shape)])
    outer, count = ZERO, ONE
    for thread, size in zip(others, shape[1:], strict=True):
        outer, count = outer + thread * count, count * size
    loops = [LoopRange(f"copy.{axis}", None, LoopKind.SERIAL) for axis in range(len(extents))]
    turns = [Polynomial.symbol(loop.var) for loop in loops]
    counters = [ZERO] * len(extents)
    *between, last = walk.axes
    line = None
    if not between:
        counters[last] = x + shape[0] * (outer + turns[last] * count)
    elif walk.flat:
        rows = between.pop()
        line = LineWalk(x + shape[0] * (outer + turns[last] * count), extents[last])
        counters[rows], counters[last] = Polynomial.symbol(ROW), Polynomial.symbol(COLUMN)
    else:
        rows = between.pop()
        counters[last] = x + shape[0] * turns[last]
        counters[rows] = outer + turns[rows] * count
    for axis in between:
        counters[axis] = turns[axis]
    conditions = tuple(less_than(counter, extent) for counter, extent in zip(counters, extents, strict=True))
    place = [counter + shift for counter, shift in zip(counters, shifts, strict=True)]
    row, column, columns = _tile(place, window.extents)
    return SharedAccess(window.array.name, window.array.element, window.layout, row, column, columns, len(place) == 1,
                        shape, shape, tuple(loops), conditions, line)  # fmt: skip
