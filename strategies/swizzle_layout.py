"""swizzle: data laid out so that the threads of a warp do not wait for each other's banks of shared memory.

*Tiles.*  ``before --> after``::

    tile[row * columns + column]   -->   tile[row * columns + (column ^ (bits of row))]
                                   or    tile[row * (columns + 1) + column]

A tile that some threads access by rows and others by columns (a transposition writes rows and copies columns) has
conflicts in one of the two when it is laid out as C does.  Combining the column with bits of the row frees both, with
no word more of shared memory; a column of padding is tried last, and the counter for shared memory is asked again
afterwards like all others.  A window of one dimension counts as a tile of 32 words a row.  Legal always: every layout
is one-to-one for every extent (``metafork.analysis.memory.tile_layout``), and no address of shared memory is seen
outside the kernel.

*Structures.*  An array whose neighbouring elements a thread touches, at a constant distance of 2 to 31 from lane to
lane, needs no shared memory at all: a warp moves its structures between registers and global memory in the order of
memory, and shuffles transpose them (``metafork.analysis.memory.lane_transpose``)::

    tile[stride*j + field]   -->   field of the thread's own registers

This is done for all that is in shared memory where all of it is made of structures, else for the structures that have
conflicts.  ``metafork.analysis.memory.structures`` says when it is legal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import UnknownSizeError, block_memory
from metafork.analysis.memory.block_shape import UnknownShapeError
from metafork.evaluators.bank_degree import bank_accesses
from metafork.evaluators.banks.shared_accesses import SharedAccess, UnknownAccessError
from metafork.evaluators.banks.simulation import Listed, UnknownDegreeError, access_degree
from metafork.ir.mapping import Layout
from metafork.ir.program import Program, Version
from metafork.strategies.strategy import Applied, Effect, NotApplied, Strategy, after
from metafork.transform.directive import Schedule
from metafork.transform.placement import LayOut, Transpose

TILES = (Layout(), Layout("row"), Layout("reversed"), Layout(padding=1))
"""Layouts that are tried for a tile; the first of the best is taken."""
LINES = (Layout(), *(Layout("row", bits) for bits in range(1, 6)), Layout("reversed"))
"""Layouts that are tried for what has one dimension."""


class SwizzleLayout(Strategy, frozen=True):
    """Give structures to the registers of a warp, and each other tile of shared memory its best layout.

    ``tile[row][column]  -->  tile[row][column ^ (bits of row)]``
    """

    name: str = "swizzle"
    improves: frozenset[str] = frozenset({"bank_degree"})

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with structures in registers, and new layouts for the tiles that have conflicts."""
        program = version.program
        try:
            listed, accesses = bank_accesses(program, analyses)
            degrees = {
                array: max(access_degree(one, one.layout, listed) for one in accesses if one.array == array)
                for array in dict.fromkeys(access.array for access in accesses)
            }
            transposed, left_out = _transposed(program, degrees, analyses)
            tiles = {array: degree for array, degree in degrees.items() if array not in transposed.mapping.transposed}
            chosen = _chosen(listed, accesses, tiles)
        except (UnknownSizeError, UnknownShapeError, UnknownAccessError, UnknownDegreeError) as reason:
            return NotApplied(str(reason))
        if not chosen and transposed == program:
            reasons = "; ".join(left_out) or "nothing goes through shared memory"
            return NotApplied(f"no layout of a tile has fewer bank conflicts, and {reasons}")
        notes = [
            f"{array} (through the registers of a warp): {degrees[array]} to 0"
            for array in degrees
            if array in transposed.mapping.transposed
        ]
        notes += [f"{array} ({_described(layout)}): {before} to {after}" for array, layout, before, after in chosen]
        moved = transposed.mapping.transposed[len(program.mapping.transposed) :]
        schedule: Schedule = tuple(Transpose(array) for array in moved)
        schedule += tuple(LayOut.of(array, layout) for array, layout, _, _ in chosen)
        return after(version, schedule, analyses, f"bank degrees: {'; '.join(notes)}", Effect("fewer bank conflicts"))


def _transposed(program: Program, degrees: Mapping[str, int], analyses: Analyses) -> tuple[Program, list[str]]:
    """Return the program with structures in registers instead of shared memory, and why the other arrays stay.

    Where everything in shared memory is made of structures all of it leaves, else what has conflicts.
    """
    plan = block_memory(_moved(program, program.mapping.cached), analyses)
    left_out = {one.array: one.reason for one in plan.left_out}
    movable = [array for array in degrees if array in program.mapping.cached and array not in left_out]
    if len(movable) < len(degrees):
        movable = [array for array in movable if degrees[array] > 1]
    reasons = [
        f"{array} is not moved through registers: {left_out.get(array, 'it is an array of the block')}"
        for array in degrees
        if array in left_out or array not in program.mapping.cached
    ]
    return _moved(program, movable), reasons


def _moved(program: Program, names: Sequence[str]) -> Program:
    return program.mapped(
        cached=tuple(array for array in program.mapping.cached if array not in names),
        layouts=tuple(pair for pair in program.mapping.layouts if pair[0] not in names),
        transposed=(*program.mapping.transposed, *names),
    )


def _chosen(
    listed: Listed, accesses: Sequence[SharedAccess], degrees: Mapping[str, int]
) -> list[tuple[str, Layout, int, int]]:
    """Return (array, layout, degree before, degree after) for the arrays of ``degrees`` that a layout makes better."""
    result: list[tuple[str, Layout, int, int]] = []
    for array, before in degrees.items():
        own = [access for access in accesses if access.array == array]
        best, least = own[0].layout, before
        for layout in LINES if all(access.line for access in own) else TILES:
            if least <= 1:
                break
            degree = max(access_degree(access, layout, listed) for access in own)
            if degree < least:
                best, least = layout, degree
        if least < before:
            result.append((array, best, before, least))
    return result


def _described(layout: Layout) -> str:
    if layout.padding:
        return "one column more"
    match layout.turn:
        case "none":
            return "row by row"
        case "row":
            return "columns moved by the row's bits"
        case "reversed":
            return "columns moved by the row's bits in reverse"


STRATEGY = SwizzleLayout()
