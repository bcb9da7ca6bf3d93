"""Private windows: what one thread alone touches of an array across a block-level loop (DESIGN section 4).

Such elements (matmul's ``c``) are kept in registers while the block runs, where their number is a constant; elsewhere
they stay in global memory.  That a thread is alone with its elements is proved from its indices: the thread loops, and
the serial loops of constant length that take part, are digits of the coordinates, each of exactly one, and the step of
a digit is at least the span of the digits below it; so no two iterations of them reach the same element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.algebra.radix import is_mixed_radix
from metafork.analysis.delinearization import coordinates, split_factors
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange, all_run
from metafork.ir.mapping import ROW_BY_ROW
from metafork.ir.marks import rows_of, several_results
from metafork.ir.program import Array, BlockArray, Program, Stmt, walk_statements

LARGEST_PRIVATE = 16
"""Most elements of one private window; more would not stay in registers."""
LARGEST_OWN = 64
"""Most elements that a thread has of an array of the block: a tile of 8 by 8 sums."""

THREAD_SYMBOLS = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
"""The thread variables of every phase, innermost first, under one name each."""


class PrivateWindow(Struct, frozen=True):
    """The elements of ``array`` that a thread keeps in registers.

    Coordinate d of element number ``sum of digit * weight`` is ``bases[d] + sum of steps[digit][d] * digit``; ``bases``
    are in grid variables and ``THREAD_SYMBOLS``.  ``digits`` are (trip count, step in each coordinate), lowest first.
    ``threads`` are the extents of its thread loops, innermost first: a block may have more threads, which have no
    element.  Of loop number ``rows[0]`` of these a thread runs ``rows[1]`` iterations, each with its own elements.
    ``certain`` says that every iteration of the thread loops writes every element whenever the block runs; where it is
    false and there are several, a thread writes all of them or none.  ``loaded`` says that elements must be read from
    global memory first.  An array ``of_block`` ends with its block: nothing is read before it or stored behind it.
    """

    array: Array
    factors: tuple[Polynomial, ...]
    bases: tuple[Polynomial, ...]
    digits: tuple[tuple[int, tuple[Polynomial, ...]], ...]
    references: tuple[Reference, ...]
    threads: tuple[Polynomial, ...]
    certain: bool
    loaded: bool
    rows: tuple[int, int] | None = None
    of_block: bool = False

    @property
    def count(self) -> int:
        """The number of elements of an iteration of the thread loops."""
        product = 1
        for trips, _ in self.digits:
            product *= trips
        return product

    @property
    def registers(self) -> int:
        """The number of elements of a thread."""
        return self.count * (1 if self.rows is None else self.rows[1])


def private_windows(program: Program, prover: Prover, found: Sequence[Reference]) -> tuple[PrivateWindow, ...]:
    """Return the private windows of one path, given its references in evaluation order.

    There are none where threads stride over the thread loops, for an element then has no one thread of its own, nor
    where a thread runs several iterations of the innermost one, or of two loops.  Where it does of another, what every
    iteration writes is kept for each of them, if all together is not too much; other elements stay in global memory.
    """
    windows = (one for _, one in _judged(program, prover, found) if isinstance(one, PrivateWindow))
    return _of_rows(program, windows, LARGEST_PRIVATE)


def own_windows(program: Program, prover: Prover, found: Sequence[Reference]) -> tuple[PrivateWindow, ...]:
    """Return those arrays of the block, on one path, of which each thread touches elements of its own alone.

    They need no shared memory.  There are none where ``private_windows`` says that there are none.
    """
    windows = (_own(program, prover, stmt.array, found) for stmt in walk_statements(program.body) if _is_plain(stmt))
    return _of_rows(program, (one for one in windows if one is not None), LARGEST_OWN)


def _is_plain(stmt: Stmt) -> TypeGuard[BlockArray]:
    return isinstance(stmt, BlockArray) and not stmt.array.slots


def _own(program: Program, prover: Prover, array: Array, found: Sequence[Reference]) -> PrivateWindow | None:
    own = [reference for reference in found if reference.array == array.name]
    known = all(one.phase is not None and not one.atomic and None not in one.indices for one in own)
    if not own or not known or program.mapping.layout(array.name) != ROW_BY_ROW:
        return None
    window = _private(program, prover, array, own, of_block=True)
    return window if isinstance(window, PrivateWindow) else None


def _of_rows(program: Program, windows: Iterable[PrivateWindow], most: int) -> tuple[PrivateWindow, ...]:
    """Return the windows of which each thread has few elements, for each of the iterations that it runs."""
    several, of_rows = several_results(program), rows_of(program)
    if program.striding is not None or len(several) > 1 or (several and of_rows is None):
        return ()
    if of_rows is None:
        return tuple(windows)
    loop, rows = of_rows
    each = (replace(one, rows=(len(one.threads) - 1 - loop, rows)) for one in windows if one.certain)
    return tuple(one for one in each if one.registers <= most)


def left_in_global_memory(program: Program, prover: Prover, found: Sequence[Reference]) -> dict[str, str]:
    """Say of arrays whose elements a thread has for itself across a block-level loop why it has no registers for them.

    Arrays of which that is not so are not named.
    """
    if program.striding is not None or several_results(program):
        return {}
    return {array: one for array, one in _judged(program, prover, found) if isinstance(one, str)}


def _judged(
    program: Program, prover: Prover, found: Sequence[Reference]
) -> Iterator[tuple[str, PrivateWindow | str | None]]:
    """Yield the arrays that are written across a block-level loop, each with its window or why there is none.

    The reason is ``None`` where a thread is not known to be alone with its elements.
    """
    for array in program.arrays:
        own = [reference for reference in found if reference.array == array.name]
        across = any(loop.kind is LoopKind.BLOCK for reference in own for loop in reference.loops)
        written = any(reference.writes for reference in own)
        known = all(index is not None for reference in own for index in reference.indices)
        if array.name in (*program.mapping.cached, *program.mapping.transposed) or not (across and written and known):
            continue
        if array.whole or any(reference.phase is None or reference.atomic for reference in own):
            continue
        yield array.name, _private(program, prover, array, own)


_Shape = tuple[tuple[Polynomial, ...], tuple[tuple[int, tuple[Polynomial, ...]], ...]]


def _private(
    program: Program, prover: Prover, array: Array, own: Sequence[Reference], of_block: bool = False
) -> PrivateWindow | str | None:
    factors = split_factors(program, prover, array, own)
    if not all(_alone(reference, factors, prover) for reference in own):
        return None
    shapes: set[_Shape] = set()
    for reference in own:
        shape = _shape(reference, factors)
        if not isinstance(shape, tuple):
            return shape
        shapes.add(shape)
    if len(shapes) != 1:
        return None
    bases, digits = shapes.pop()
    nests = {_thread_extents(reference) for reference in own}
    threads = nests.pop()
    if nests or threads is None:
        return "the thread loops that access it do not all have the same extents"
    certain = of_block or any(reference.writes and _always(reference, prover) for reference in own)
    if array.endless and not certain:
        return "it is not known how many elements it has, and a load may not leave it"
    window = PrivateWindow(
        array,
        factors,
        bases,
        digits,
        tuple(own),
        threads,
        certain,
        not of_block and not (own[0].writes and not own[0].reads and _always(own[0], prover)),
        of_block=of_block,
    )
    most = LARGEST_OWN if of_block else LARGEST_PRIVATE
    if window.count > most:
        return f"a thread's {window.count} elements of it are more than the {most} that have registers"
    if not certain and window.loaded and not all(_alone(one, factors, prover, of_grid=True) for one in own):
        return "a condition leaves out threads whose elements of it may be those of another block"
    if window.count == 1 or certain or all(_all_or_none(one, factors, prover) for one in own if one.writes):
        return window
    return "a condition decides which of a thread's elements of it are written"


def thread_renaming(reference: Reference) -> dict[str, Polynomial]:
    """Return the thread symbols of a reference's phase under their common names."""
    threads = [loop for loop in reference.loops if loop.kind is LoopKind.THREAD]
    return {loop.var: Polynomial.symbol(name) for loop, name in zip(reversed(threads), THREAD_SYMBOLS, strict=False)}


def _thread_extents(reference: Reference) -> tuple[Polynomial, ...] | None:
    """Return the extents of the thread loops around an access, innermost first; ``None`` where one is not known."""
    trips = [loop.trips for loop in reversed(reference.loops) if loop.kind is LoopKind.THREAD]
    known = tuple(one for one in trips if one is not None)
    return known if len(known) == len(trips) else None


def digits_of(reference: Reference, factors: Sequence[Polynomial]) -> tuple[LoopRange, ...]:
    """Return the serial loops of a reference that take part in its coordinates, in the order of the window's digits."""
    own = coordinates(reference, factors)
    occurring = {name for index in own for name in index.symbols}
    loops = [loop for loop in reference.loops if loop.kind is LoopKind.SERIAL and loop.var in occurring]

    def key(loop: LoopRange) -> list[str]:
        return [str(index.coefficient(loop.var)) for index in own]

    return tuple(sorted(loops, key=key))


def _shape(reference: Reference, factors: Sequence[Polynomial]) -> _Shape | str | None:
    """Return bases and digits; ``None`` where an index depends on a block-level loop, a reason where none is known."""
    own = coordinates(reference, factors)
    occurring = {name for index in own for name in index.symbols}
    if any(loop.kind is LoopKind.BLOCK and loop.var in occurring for loop in reference.loops):
        return None
    digits: list[tuple[int, tuple[Polynomial, ...]]] = []
    serial = digits_of(reference, factors)
    loop_symbols = {loop.var for loop in reference.loops}
    for loop in serial:
        steps = [index.coefficient(loop.var) for index in own]
        if loop.trips is None or not loop.trips.is_constant or not loop.dense:
            return f"the loop over {loop.var}, which has no constant length, says how many elements of it a thread has"
        if loop.inside:
            return "a condition decides which of a thread's elements of it are written"
        if any(step is None or step.symbols & loop_symbols for step in steps):
            return None
        digits.append((int(loop.trips.constant_value()), tuple(step for step in steps if step is not None)))
    renaming = thread_renaming(reference)
    bases = tuple(index.without(loop.var for loop in serial).substitute(renaming) for index in own)
    return bases, tuple(digits)


def _alone(reference: Reference, factors: Sequence[Polynomial], prover: Prover, *, of_grid: bool = False) -> bool:
    """Say whether different iterations of the thread loops and digits are proved to touch different elements.

    ``of_grid``: in different blocks too.
    """
    kinds = (LoopKind.THREAD, LoopKind.GRID) if of_grid else (LoopKind.THREAD,)
    threads = [loop for loop in reference.loops if loop.kind in kinds]
    digits = [*threads, *digits_of(reference, factors)]
    used: set[str] = set()
    for index in coordinates(reference, factors):
        occurring = [loop for loop in digits if loop.var in index.symbols]
        if used & {loop.var for loop in occurring}:
            return False
        used |= {loop.var for loop in occurring}
        if not is_mixed_radix(index, occurring, prover):
            return False
    return used >= {loop.var for loop in threads if loop.trips != ONE}


def _always(reference: Reference, prover: Prover) -> bool:
    """Say whether the access is proved to happen, for every digit, whenever the block runs."""
    return reference.bounded and not reference.guards and all_run(reference.loops, prover)


def _all_or_none(reference: Reference, factors: Sequence[Polynomial], prover: Prover) -> bool:
    """Say whether a thread that makes the access makes it for every digit.

    What decides whether it is made are then loops alone, and those alike for all digits: no condition, and no loop that
    may run for some digits only.
    """
    digits = {loop.var for loop in digits_of(reference, factors)}
    for loop in reference.loops:
        if loop.trips is None:
            return False
        if any(constraint.left.symbols & digits for constraint in loop.inside):
            return False
        if loop.trips.symbols & digits and not prover.proves(at_most(ONE, loop.trips)):
            return False
    return reference.bounded and not reference.guards
