"""Option sets: what may fill a hole, as tables, deduplicated, each with the simplest expression of its class.

An option is a function from *locals* (the index combinations that the hole's expression may look at) to *values*
(which source to read).  Two expressions with equal tables are one option.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from metafork.swizzle.model.index import Index

Tables = NDArray[np.int16]
# Weights below 2**33 times at most 2**9 values over 2**11 locals stay below 2**53: sums in doubles are exact.
_WEIGHT_BITS = 33
_BLOCK_ENTRIES = 1 << 20
_MIXER = 0x5851F42D4C957F2D
# Entries of all tables of a hole before they are deduplicated, roughly; 64 by 32 elements have 50 million.
MOST_ENTRIES = 200_000_000


class Composition(Struct, frozen=True):
    """Options too many to list, in two factors: option ``row * len(turns) + turn`` is ``tables[row][turns[turn]]``.

    ``turns`` give the inner local of each local; ``expression(row, turn)`` spells an option.
    """

    tables: Tables
    turns: Tables
    expression: Callable[[int, int], Index]

    def __len__(self) -> int:
        return int(self.tables.shape[0] * self.turns.shape[0])


class OptionSet(Struct, frozen=True):
    """``tables[option, local]`` is the value read; ``spelled(option)`` spells it over the hole's local names.

    The options of a ``composition`` follow those that are listed.
    """

    tables: Tables
    spelled: Callable[[int], Index]
    composition: Composition | None = None

    def __len__(self) -> int:
        return self.listed + (0 if self.composition is None else len(self.composition))

    @property
    def listed(self) -> int:
        """How many options are listed in ``tables``."""
        return int(self.tables.shape[0])

    @property
    def bytes_held(self) -> int:
        """The memory of the tables and factors, in bytes."""
        composed = self.composition
        return self.tables.nbytes + (0 if composed is None else composed.tables.nbytes + composed.turns.nbytes)

    def table(self, option: int) -> Tables:
        """Return the table of an option."""
        if self.composition is None or option < self.listed:
            listed: Tables = self.tables[option]
            return listed
        row, turn = divmod(option - self.listed, self.composition.turns.shape[0])
        composed: Tables = self.composition.tables[row][self.composition.turns[turn]]
        return composed

    def expression(self, option: int) -> Index:
        """Spell an option."""
        if self.composition is None or option < self.listed:
            return self.spelled(option)
        return self.composition.expression(*divmod(option - self.listed, self.composition.turns.shape[0]))


def fingerprint_weights(count: int, seed: int = 1) -> NDArray[np.float64]:
    """Return fixed pseudo-random integer weights, one a local, two columns, as exact doubles."""
    generator = np.random.Generator(np.random.PCG64(seed))
    return generator.integers(1, 1 << _WEIGHT_BITS, size=(count, 2)).astype(np.float64)


def fingerprints(tables: NDArray[np.integer], weights: NDArray[np.float64] | None = None) -> NDArray[np.complex128]:
    """Return two exact 53-bit sums a table, as one complex number that sorts and compares as the pair."""
    columns = fingerprint_weights(tables.shape[1]) if weights is None else weights
    count = tables.shape[0]
    result = np.empty(count, dtype=np.complex128)
    step = max(1, _BLOCK_ENTRIES // tables.shape[1])
    for start in range(0, count, step):
        block = (tables[start : start + step].astype(np.float64) + 1.0) @ columns
        result[start : start + step] = block[:, 0] + 1j * block[:, 1]
    return result


def first_of_each(tables: Tables) -> NDArray[np.int64]:
    """Return the rows that have no equal row before them, in their order."""
    first, _ = classes(tables)
    return first


def classes(
    tables: NDArray[np.integer], prints: NDArray[np.generic] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each class of equal rows, in their order, and the class of every row.

    Equal rows have equal ``prints``; by default, these are the fingerprints of a table.
    """
    if prints is None:
        pairs = fingerprints(tables)
        # Sorted as integers: equal ones are compared below.
        prints = pairs.real.astype(np.int64) * _MIXER + pairs.imag.astype(np.int64)
    _, first, inverse = np.unique(prints, return_index=True, return_inverse=True)
    representative = first[inverse.ravel()]
    repeated = np.flatnonzero(representative != np.arange(tables.shape[0]))
    step = max(1, _BLOCK_ENTRIES // tables.shape[1])
    for start in range(0, repeated.size, step):
        rows = repeated[start : start + step]
        if not np.array_equal(tables[rows], tables[representative[rows]]):
            # Two different tables with equal fingerprints: compare whole rows instead.
            _, first, inverse = np.unique(tables, axis=0, return_index=True, return_inverse=True)
            break
    order = np.argsort(first, kind="stable")
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.arange(order.size)
    return first[order], number[inverse.ravel()]


def from_expressions(expressions: Sequence[Index], tables: Tables) -> OptionSet:
    """Deduplicate; ``expressions`` come simplest first, so the first of a class is its simplest."""
    kept = first_of_each(tables)
    chosen = [expressions[int(row)] for row in kept]
    return OptionSet(tables[kept], chosen.__getitem__)


def joined_sets(sets: Sequence[OptionSet]) -> OptionSet:
    """Join listed option sets over the same locals; of equal tables, the first one is kept."""
    tables = sets[0].tables if len(sets) == 1 else np.concatenate([one.tables for one in sets])
    starts = np.cumsum([0, *(len(one) for one in sets)])
    kept = first_of_each(tables)

    def expression(option: int) -> Index:
        row = int(kept[option])
        owner = int(np.searchsorted(starts, row, "right")) - 1
        return sets[owner].spelled(row - int(starts[owner]))

    return OptionSet(tables if kept.size == tables.shape[0] else tables[kept], expression)
