"""How the threads of a block walk a box of elements that they copy together.

Neighbouring threads touch neighbouring elements of a row.  Where a row is about as long as the block is wide (a
multiple of its extent in x, or that and a constant border), x walks the row and the other threads walk the rows.  Any
other box is walked as one line, row after row, by all threads in their linear order: so a column, or a tile that is
narrower than the block, keeps all threads busy.  ``metafork.lowering.copies.copy_loops`` has the loops, and the
simulation of bank conflicts asks for the same walk.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from metafork.algebra.polynomial import ONE, Polynomial


class CopyWalk(Struct, frozen=True):
    """The axes of a box that have more than one element, and whether the last two of them are walked as one line.

    The last of ``axes`` is walked by x, the one before it by y and z together, any other by every thread; where
    ``flat`` holds, all threads walk the last two together, and where there is only one, they walk that.
    """

    axes: tuple[int, ...]
    flat: bool


def copy_walk(extents: Sequence[Polynomial], shape: Sequence[Polynomial]) -> CopyWalk:
    """Return the walk of a box with these extents by a block of that shape (x first)."""
    axes = tuple(axis for axis, extent in enumerate(extents) if extent != ONE) or (len(extents) - 1,)
    return CopyWalk(axes, len(axes) > 1 and not _as_long_as(extents[axes[-1]], shape[0]))


def _as_long_as(row: Polynomial, width: Polynomial) -> bool:
    """Say whether a row is a multiple of the width, and at most a constant more."""
    turns, border = row.divide(width)
    return bool(turns) and border.is_constant and whole(turns)


def whole(value: Polynomial) -> bool:
    """Say whether every coefficient is an integer."""
    return all(coefficient.denominator == 1 for coefficient in value.terms().values())


def trips_of(extent: Polynomial, threads: Polynomial) -> Polynomial | None:
    """Return how often so many threads fit into an extent, ``None`` where they do not fit exactly."""
    turns = extent.divide_exactly(threads)
    return turns if turns is not None and whole(turns) else None
