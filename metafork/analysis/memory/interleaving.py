"""Windows whose rows are kept thread by thread, so that a thread reads its elements of a row by one access.

A thread of a product computes ``s`` columns that lie ``B`` apart, as coalescing wants them: column ``w*B + u`` for
thread ``u`` and ``w < s``.  From shared memory it would read them one by one.  Where they are kept at ``u*s + w``, they
are neighbours, which the compiler reads by accesses of 8 or 16 bytes; what more than 16 bytes have is kept in groups::

    column w*B + u   -->   place (w / V)*(B*V) + u*V + w % V        V the largest power of two that divides s, 16 bytes

The copy into the window has the same digits: x walks a row with ``B`` threads, and a thread's trips are its ``w``.
That is done where every access has this form, so that no division is needed, where register tiles are wanted, and
where it pays: a thread's trips store words that lie V apart, by V passes of shared memory at worst, and each of V reads
is saved by one of V together; so a block must read each element V times.
"""

from __future__ import annotations

from collections.abc import Sequence

from metafork.algebra.polynomial import ONE, Constraint, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.delinearization import coordinates
from metafork.analysis.memory.copy_walk import copy_walk
from metafork.analysis.memory.windows import Interleaving, Window
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.ir.mapping import ROW_BY_ROW
from metafork.ir.marks import rows_of
from metafork.ir.program import Program

VECTOR = 16
"""Bytes of the widest access of a thread."""
MOST_TRIPS = 16
"""Most trips of a loop that compilers are sure to unroll; one by one, accesses that lie apart meet in a bank."""
FEW_TRIPS = 4
"""Trips of an outer loop that run side by side."""


def interleaving(window: Window, program: Program, shape: Sequence[Polynomial], prover: Prover) -> Interleaving | None:
    """Return how a window that is only read is kept, in a block of that shape (x first); ``None`` for row by row."""
    apart, element = shape[0], window.array.element
    if (
        not program.mapping.wide
        or program.striding is not None
        or window.layout != ROW_BY_ROW
        or window.writes
        or any(window.periods)
    ):
        return None
    walk = copy_walk(window.extents, shape)
    turns = window.extents[-1].divide_exactly(apart)
    if turns is None or not turns.is_constant or window.strides[-1] != 1 or (len(walk.axes) == 1 and len(shape) > 1):
        return None
    trips = turns.constant_value()
    if trips.denominator != 1 or trips > MOST_TRIPS:
        return None
    together = 1
    while trips % (2 * together) == 0 and 2 * together * element.size <= VECTOR:
        together *= 2
    if together == 1 or not all(_fits(one, window, apart, int(trips)) for one in window.references):
        return None
    goals = ((one, at_most(window.elements * together, _reads(one))) for one in window.references)
    if not any(prover.with_premises(_rows(one, program)).certifies(goal) for one, goal in goals):
        return None
    return Interleaving(apart, int(trips), together)


def digits(window: Window, reference: Reference) -> tuple[LoopRange, LoopRange]:
    """Return the loops of the digits ``u`` and ``w`` of an access to an interleaved window."""
    assert window.kept is not None
    found = _digits(reference, coordinates(reference, window.factors)[-1], window.kept.apart)
    assert found is not None
    return found


def _digits(reference: Reference, column: Polynomial, apart: Polynomial) -> tuple[LoopRange, LoopRange] | None:
    threads = [loop for loop in reference.loops if loop.kind is LoopKind.THREAD]
    x = [loop for loop in threads[-1:] if loop.trips == apart and column.coefficient(loop.var) == ONE]
    serial = [loop for loop in reference.loops if loop.kind is LoopKind.SERIAL and loop.var in column.symbols]
    if not x or len(serial) != 1 or column.coefficient(serial[0].var) != apart:
        return None
    return x[0], serial[0]


def _fits(reference: Reference, window: Window, apart: Polynomial, trips: int) -> bool:
    """Say whether an access has the column ``w*apart + u`` of a row, of thread u in x, with all w side by side.

    They are where w is the innermost loop, or an outer one of few trips, which is unrolled into those inside.
    """
    column = coordinates(reference, window.factors)[-1]
    found = _digits(reference, column, apart)
    if found is None or reference.clamped:
        return False
    x, serial = found
    return (
        (reference.loops[-1] == serial or trips <= FEW_TRIPS)
        and column - window.lows[-1] == Polynomial.symbol(x.var) + apart * Polynomial.symbol(serial.var)
        and serial.trips == Polynomial.constant(trips)
        and not serial.low
        and serial.step == ONE
    )


def _rows(reference: Reference, program: Program) -> tuple[Constraint, ...]:
    """Return that a block has as many rows as a thread takes: in smaller blocks of such threads little is gained."""
    several = rows_of(program)
    if several is None:
        return ()
    number, count = several
    rows = [loop.trips for loop in reference.loops if loop.kind is LoopKind.THREAD][number]
    return () if rows is None else (at_most(count, rows),)


def _reads(reference: Reference) -> Polynomial:
    """Return how often the threads of a block access a window between two copies, 0 where that is not known."""
    times = ONE
    for loop in reference.loops:
        if loop.kind in (LoopKind.THREAD, LoopKind.SERIAL):
            times = times * (Polynomial() if loop.trips is None or loop.inside else loop.trips)
    return times
