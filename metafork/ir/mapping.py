"""The mapping of a program onto the device, apart from what it computes.

``Program`` says what is computed; its ``Mapping`` where elements are kept and how many threads walk a block.  Two
programs that differ in their mappings alone have the same accesses, dependences and facts.
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


class Mapping(Struct, frozen=True):
    """``cached`` names the arrays that go through shared memory.

    ``decided`` says that this is the last word: of a ``cache`` clause, or of the caching strategy.  ``striding`` is the
    least number of threads that a block has where it walks its thread loops with fewer than they ask for, and ``None``
    where it has just those.  ``layouts`` are the arrays whose tiles in shared memory are not laid out row by row;
    ``transposed`` are global ones whose structures warps move in the order of memory
    (``metafork.analysis.memory.structures``).  ``jammed`` is how many iterations of a thread's loop run together where
    that is legal and shares loads (``lowering.unrolling.jam``), and ``None`` where loops run as they stand.
    ``coarsened`` is the number of a thread loop, outermost first, and how many of its iterations, which are neighbours,
    one thread runs (``lowering.unrolling.coarsening``), ``crossed`` those of a second, where no columns are;
    ``columns`` is how many neighbouring ones of the innermost thread loop (``lowering.unrolling.columns``).  ``stages``
    is how many buffers those windows have whose copies may run ahead of a block-level loop
    (``metafork.analysis.memory.stages``): 1, or 2 in turn.
    """

    cached: tuple[str, ...] = ()
    decided: bool = False
    striding: int | None = None
    layouts: tuple[tuple[str, Layout], ...] = ()
    transposed: tuple[str, ...] = ()
    jammed: int | None = None
    coarsened: tuple[int, int] | None = None
    crossed: tuple[int, int] | None = None
    columns: int | None = None
    stages: int = 1

    @property
    def several_results(self) -> bool:
        """Whether a thread runs several iterations of thread loops."""
        return self.coarsened is not None or self.columns is not None

    @property
    def factors(self) -> frozenset[int]:
        """How many iterations run together, by each of its fields."""
        several = [one[1] for one in (self.coarsened, self.crossed) if one is not None]
        return frozenset([*several, *(one for one in (self.columns, self.jammed) if one is not None)])

    def layout(self, name: str) -> Layout:
        """Return how the tiles of an array are laid out in shared memory; row by row unless said otherwise."""
        return dict(self.layouts).get(name, ROW_BY_ROW)


UNMAPPED = Mapping()
"""Nothing in shared memory, and a thread for every iteration of the thread loops; to be decided."""
