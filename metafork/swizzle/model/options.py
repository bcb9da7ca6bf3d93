"""Option sets: what may fill a hole, as tables, deduplicated, each with the simplest expression of its class.

An option is a function from *locals* (the index combinations that the hole's expression may look at) to *values*
(which source to read).  Two expressions with equal tables are one option.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metafork.swizzle.model.index import Index

Tables = NDArray[np.int16]
# Weights below 2**33 times at most 2**9 values over 2**11 locals stay below 2**53: sums in doubles are exact.
_WEIGHT_BITS = 33
_BLOCK_ENTRIES = 1 << 20


@dataclass(frozen=True, slots=True)
class OptionSet:
    """``tables[option, local]`` is the value read; ``expression(option)`` spells it over the hole's local names."""

    tables: Tables
    expression: Callable[[int], Index]

    def __len__(self) -> int:
        return int(self.tables.shape[0])


def fingerprint_weights(count: int, seed: int = 1) -> NDArray[np.float64]:
    """Return fixed pseudo-random integer weights, one a local, two columns, as exact doubles."""
    generator = np.random.Generator(np.random.PCG64(seed))
    return generator.integers(1, 1 << _WEIGHT_BITS, size=(count, 2)).astype(np.float64)


def fingerprints(tables: Tables, weights: NDArray[np.float64] | None = None) -> NDArray[np.complex128]:
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
    _, first, inverse = np.unique(fingerprints(tables), return_index=True, return_inverse=True)
    kept = np.sort(first)
    representative = first[inverse]
    step = max(1, _BLOCK_ENTRIES // tables.shape[1])
    for start in range(0, tables.shape[0], step):
        block = slice(start, start + step)
        if not np.array_equal(tables[block], tables[representative[block]]):
            # Two different tables with equal fingerprints: compare whole rows instead.
            _, first = np.unique(tables, axis=0, return_index=True)
            return np.sort(first)
    return kept


def from_expressions(expressions: Sequence[Index], tables: Tables) -> OptionSet:
    """Deduplicate; ``expressions`` come simplest first, so the first of a class is its simplest."""
    kept = first_of_each(tables)
    chosen = [expressions[int(row)] for row in kept]
    return OptionSet(tables[kept], chosen.__getitem__)


def joined_sets(sets: Sequence[OptionSet]) -> OptionSet:
    """Join option sets over the same locals; of equal tables, the one of the first set is kept."""
    tables = np.concatenate([one.tables for one in sets])
    starts = np.cumsum([0, *(len(one) for one in sets)])
    kept = first_of_each(tables)

    def expression(option: int) -> Index:
        row = int(kept[option])
        owner = int(np.searchsorted(starts, row, "right")) - 1
        return sets[owner].expression(row - int(starts[owner]))

    return OptionSet(tables[kept], expression)
