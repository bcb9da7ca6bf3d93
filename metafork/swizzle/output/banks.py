"""Bank conflicts of shared memory, by simulation, and layouts of a tile that are free of them.

Shared memory has 32 banks of one word.  The accesses of a warp to different words of one bank are served one after
another; the *bank degree* of an access is the largest number of different words asked of one bank (1: no conflict;
threads that read the same word are served together).  Elements of 8 bytes are served half a warp at a time, those of 16
bytes a quarter, and the degree is that of the worst part.  A tile that is written by rows and read by columns needs a
layout in which both degrees are 1; a rotation or an exclusive or of the column by the row does that without padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, assert_never

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from metafork.swizzle.model.index import Index, Name, Number, binary, evaluate, operations

BANKS = 32
WARP = 32
# Bytes of a word, and of the elements that a thread may access at once.
WORD = 4
SIZES = (4, 8, 16)
Words = NDArray[np.int64]


def bank_degree(elements: Sequence[int] | Words, *, banks: int = BANKS, size: int = WORD) -> int:
    """Return the bank degree of one access of a warp.

    ``elements`` are the addresses of its active threads in order, in elements of ``size`` bytes (4, 8 or 16).
    """
    return max(_degrees(elements, banks, size), default=0)


def passes(elements: Sequence[int] | Words, *, banks: int = BANKS, size: int = WORD) -> int:
    """Return how many times shared memory is asked for one access of a warp: the degrees of its parts, summed."""
    return sum(_degrees(elements, banks, size))


def _degrees(elements: Sequence[int] | Words, banks: int, size: int) -> list[int]:
    """Return the bank degree of each part of a warp that is served at once."""
    if size not in SIZES:
        raise ValueError(f"an access has {', '.join(map(str, SIZES))} bytes, not {size}")
    width = size // WORD
    words = np.asarray(elements, dtype=np.int64)[:, None] * width + np.arange(width)
    parts = [words[start : start + WARP // width] for start in range(0, len(words), WARP // width)]
    return [int(np.bincount(np.unique(part) % banks, minlength=banks).max()) for part in parts]


def worst_degree(accesses: Words, *, banks: int = BANKS, size: int = WORD) -> int:
    """Return the largest bank degree of several accesses, one a row; 0 for none."""
    return max((bank_degree(row, banks=banks, size=size) for row in accesses), default=0)


class TileLayout(Struct, frozen=True):
    """Where element (row, column) of a tile stands: ``row * pitch + place``, in elements.

    ``place`` is the column turned by ``(a*row + row/d) mod columns``, or combined by exclusive or with
    ``(row / d) mod m``, ``m`` a power of two.
    """

    rows: int
    columns: int
    kind: Literal["plain", "rotate", "xor"]
    factor: int
    step: int
    pitch: int

    @property
    def words(self) -> int:
        """The shared memory of the tile, in elements (words where these have four bytes)."""
        return self.rows * self.pitch

    def address(self) -> Index:
        """Spell the address over ``row`` and ``column``."""
        row, column = Name("row"), Name("column")
        base = binary("*", row, Number(self.pitch))
        match self.kind:
            case "plain":
                place: Index = column
            case "rotate":
                turn = binary("*", Number(self.factor), row)
                if self.step < self.rows:
                    turn = binary("+", turn, binary("/", row, Number(self.step)))
                place = binary("%", binary("+", column, turn), Number(self.columns))
            case "xor":
                mask = binary("%", binary("/", row, Number(self.step)), Number(self.factor))
                place = binary("^", column, mask)
            case _:
                assert_never(self.kind)
        return binary("+", base, place)

    def addresses(self) -> Words:
        """Return the address of every element, rows by columns."""
        row, column = np.indices((self.rows, self.columns))
        result = evaluate(self.address(), {"row": row, "column": column})
        return np.asarray(result, dtype=np.int64)

    def degrees(self, *, size: int = WORD) -> tuple[int, int]:
        """Return the worst bank degrees of the accesses by rows and by columns, for elements of ``size`` bytes."""
        addresses = self.addresses()
        rows, columns = row_accesses(addresses), row_accesses(addresses.T)
        return worst_degree(rows, size=size), worst_degree(columns, size=size)


def row_accesses(addresses: Words) -> Words:
    """Split an array of addresses into accesses of a warp: 32 consecutive elements of a row.

    Threads past the end of a row are inactive; their entries repeat the last thread's element, which costs nothing.
    """
    columns = addresses.shape[1]
    last = np.minimum(np.arange(-(-columns // WARP) * WARP), columns - 1)
    return addresses[:, last].reshape(-1, WARP)


def layouts(rows: int, columns: int) -> Iterator[TileLayout]:
    """Yield the layouts without padding that are tried: plain, exclusive ors, rotations; simple ones first."""
    yield TileLayout(rows, columns, "plain", 0, rows, columns)
    steps = [step for step in range(1, rows + 1) if rows % step == 0]
    widths = [1 << bit for bit in range(1, columns.bit_length()) if columns % (1 << bit) == 0]
    for step in steps:
        for width in reversed(widths):
            yield TileLayout(rows, columns, "xor", width, step, columns)
    for step in reversed(steps):
        for factor in range(columns):
            yield TileLayout(rows, columns, "rotate", factor, step, columns)


def conflict_free_layout(rows: int, columns: int, *, size: int = WORD) -> TileLayout | None:
    """Return the cheapest layout without padding whose row and column accesses have no conflicts; ``None`` if none.

    Elements have ``size`` bytes.

    Cheapest is by the operations of its address, then by the order of ``layouts``.
    """
    best: tuple[int, TileLayout] | None = None
    for layout in layouts(rows, columns):
        effort = operations(layout.address())
        if best is not None and effort >= best[0]:
            continue
        if _is_permutation(layout) and layout.degrees(size=size) == (1, 1):
            best = effort, layout
    return None if best is None else best[1]


def _is_permutation(layout: TileLayout) -> bool:
    addresses = layout.addresses()
    flat = np.sort(addresses.ravel())
    return bool((flat[1:] != flat[:-1]).all()) and int(flat[-1]) < layout.words


def padded_layout(rows: int, columns: int, *, size: int = WORD) -> TileLayout:
    """Return the plain layout with the fewest elements of padding a row that has no conflicts."""
    for pitch in range(columns, columns + BANKS + 1):
        layout = TileLayout(rows, columns, "plain", 0, rows, pitch)
        if layout.degrees(size=size) == (1, 1):
            return layout
    raise ValueError(f"no padding below {BANKS + 1} words frees a {rows} x {columns} tile of conflicts")
