"""swizzle: tiles of shared memory laid out so that the threads of a warp do not wait for each other's banks.

``before --> after``::

    tile[row * columns + column]   -->   tile[row * columns + (column ^ (bits of row))]
                                   or    tile[row * (columns + 1) + column]

A tile that some threads access by rows and others by columns (a transposition writes rows and copies columns) has
conflicts in one of the two when it is laid out as C does.  Combining the column with bits of the row frees both, with
no word more of shared memory; a column of padding is tried last, and the counter for shared memory is asked again
afterwards like all others.  A window of one dimension counts as a tile of 32 words a row: an array of structures that
is copied in the order of memory and read at a constant stride has conflicts for even strides, and loses them.  Legal
always: every layout is one-to-one for every extent (``metafork.tile_layout``), and no address of shared memory is seen
outside the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluators.bank_degree import bank_accesses
from evaluators.bank_simulation import Listed, UnknownDegreeError, access_degree
from evaluators.shared_accesses import SharedAccess, UnknownAccessError
from metafork.block_memory import UnknownSizeError
from metafork.block_shape import UnknownShapeError
from metafork.ir import Layout, Version
from strategies.strategy import Applied, NotApplied

TILES = (Layout(), Layout("row"), Layout("reversed"), Layout(padding=1))
"""Layouts that are tried for a tile; the first of the best is taken."""
LINES = (Layout(), *(Layout("row", bits) for bits in range(1, 6)), Layout("reversed"))
"""Layouts that are tried for what has one dimension."""


@dataclass(frozen=True, slots=True)
class SwizzleLayout:
    """Give each tile of shared memory the layout with the fewest bank conflicts.

    ``tile[row][column]  -->  tile[row][column ^ (bits of row)]``
    """

    name: str = "swizzle"
    improves: frozenset[str] = frozenset({"bank_degree"})
    on_ir: bool = False
    at_leaf: bool = False

    def apply(self, version: Version) -> Applied | NotApplied:
        """Return the version with new layouts for the tiles that have conflicts."""
        try:
            listed, accesses = bank_accesses(version.program)
            chosen = _chosen(listed, accesses)
        except (UnknownSizeError, UnknownShapeError, UnknownAccessError, UnknownDegreeError) as reason:
            return NotApplied(str(reason))
        if not chosen:
            return NotApplied("no layout of a tile has fewer bank conflicts")
        layouts = {**dict(version.program.layouts), **{array: layout for array, layout, _, _ in chosen}}
        program = replace(version.program, layouts=tuple(layouts.items()))
        notes = [f"{array} ({_described(layout)}): {before} to {after}" for array, layout, before, after in chosen]
        return Applied(replace(version, program=program), f"bank degrees of tiles: {'; '.join(notes)}")


def _chosen(listed: Listed, accesses: Sequence[SharedAccess]) -> list[tuple[str, Layout, int, int]]:
    """Return (array, layout, degree before, degree after) for the arrays that another layout makes better."""
    result: list[tuple[str, Layout, int, int]] = []
    for array in dict.fromkeys(access.array for access in accesses):
        own = [access for access in accesses if access.array == array]
        before = max(access_degree(access, access.layout, listed) for access in own)
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
