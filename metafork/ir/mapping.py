"""The mapping of a program onto the device's memories, apart from what it computes.

Two programs that differ in their mappings alone have the same accesses, dependences and facts.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Layout(Struct, frozen=True):
    """Where a tile of shared memory keeps element (row, column): at ``row*(columns + padding) + place``.

    The row is the linear index over all dimensions but the last.  ``place`` is the column, combined by exclusive or
    with low bits of the row (``"row"``), or with those in reverse order (``"reversed"``), as many as permute the
    columns (``metafork.analysis.memory.tile_layout``), and at most ``bits``.  ``padding`` counts elements; one element
    is left out where the columns are odd in number without it.  What has one dimension is a tile of 32 words a row that
    is not padded.
    """

    turn: Literal["none", "row", "reversed"] = "none"
    bits: int = 5
    padding: int = 0


ROW_BY_ROW = Layout()
"""The layout of C."""

FORMS = {
    "rows": ROW_BY_ROW,
    **{"padded" if count == 1 else f"padded{count}": Layout(padding=count) for count in (1, 2, 4)},
    "xor": Layout("row"),
    **{f"xor{bits}": Layout("row", bits) for bits in range(1, 5)},
    "reversed": Layout("reversed"),
}
"""Layouts by their words: columns more in each row, columns combined with all bits of the row, or the lowest, ..."""

FORM_OF = {layout: word for word, layout in FORMS.items()}


class Mapping(Struct, frozen=True):
    """``cached`` names the arrays that go through shared memory.

    ``decided`` is true if a ``cache`` clause or the caching strategy chose the arrays.  ``layouts`` are the
    arrays whose tiles in shared memory are not laid out row by row; ``transposed`` are global ones whose structures
    warps move in the order of memory (``metafork.analysis.memory.structures``).  ``wide`` says that threads read
    neighbours by one access (``metafork.unrolling.shared_vectors``, ``aligned_walks``), for which tiles may be
    interleaved (``metafork.analysis.memory.interleaving``).  ``stages`` is how many buffers those windows have whose
    copies may run ahead of a block-level loop (``metafork.analysis.memory.stages``): 1, or 2 in turn.
    """

    cached: tuple[str, ...] = ()
    decided: bool = False
    layouts: tuple[tuple[str, Layout], ...] = ()
    transposed: tuple[str, ...] = ()
    wide: bool = False
    stages: int = 1

    def layout(self, name: str) -> Layout:
        """Return how the tiles of an array are laid out in shared memory; row by row unless said otherwise."""
        return dict(self.layouts).get(name, ROW_BY_ROW)


UNMAPPED = Mapping()
"""Nothing in shared memory; to be decided."""
