"""One family of a stage's options in two factors: a table behind a turn, which is never multiplied out.

Option (row, turn) of a part reads ``tables[row, turns[turn, local]]`` at a local.  A listed hole has one turn, the
identity; a rotation behind it, or a family of ``compositions``, gives more.  Options are found by fingerprints of the
*anchor*, locals at which few turns differ, and compared in full where those agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from metafork.swizzle.model.options import Tables, fingerprint_weights

# Requirements are only tested while they pay: if so many look-ups drop less than three tenths, the rest is left out.
_IDLE_LOOKUPS = 3_000_000

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Presences = Sequence[tuple[Ints, Bools]]


@dataclass(slots=True)
class Part:
    """``first[row] + added[turn]`` is the option of the stage's first hole, ``second[turn]`` that of its second."""

    tables: Tables
    turns: NDArray[np.integer]
    first: Ints
    added: Ints
    second: Ints
    anchor: Ints
    _classes: list[Ints] = field(init=False, default_factory=list)
    _prints: tuple[NDArray[np.complex128], Ints] | None = field(init=False, default=None)

    @property
    def count(self) -> int:
        """How many options there are, equal ones included."""
        return int(self.tables.shape[0]) * int(self.turns.shape[0])

    def reads(self, width: int) -> Bools:
        """Return which values some option takes at each local."""
        inner = np.zeros((self.tables.shape[1], width), dtype=bool)
        for start in range(0, self.tables.shape[0], 1024):
            inner[np.arange(self.tables.shape[1])[None, :], self.tables[start : start + 1024]] = True
        result = np.zeros((self.turns.shape[1], width), dtype=bool)
        for turn in self.turns:
            result |= inner[turn]
        return result

    def rows_allowed(self, turn: int, selective: Ints, allowed: Bools) -> Ints:
        """Return the rows that read an allowed value at every selective local behind a turn."""
        return surviving(self.tables, np.arange(self.tables.shape[0]), self.turns[turn], selective, allowed)

    def rows_meeting(self, turn: int, presences: Presences) -> Ints:
        """Return the rows that meet every presence behind a turn; gives up when these stop dropping rows."""
        return meeting(self.tables, np.arange(self.tables.shape[0]), self.turns[turn], presences)

    def find(self, values: Ints) -> tuple[Ints, Ints]:
        """Return the rows and turns whose option is exactly this table."""
        prints, order = self._sorted_prints()
        needle = self._needles(values[None])[0]
        low, high = np.searchsorted(prints, needle, "left"), np.searchsorted(prints, needle, "right")
        rows, turns = [], []
        for position in order[low:high].tolist():
            row, number = divmod(position, len(self._classes))
            members = self._classes[number]
            same = members[(self.tables[row][self.turns[members]] == values).all(axis=1)]
            rows.append(np.full(same.size, row))
            turns.append(same)
        empty = np.zeros(0, dtype=np.int64)
        return (np.concatenate(rows), np.concatenate(turns)) if rows else (empty, empty)

    def contains(self, tables: Ints) -> Bools:
        """Say of each table whether it is an option; one that only agrees in its fingerprint may count as one."""
        prints, _ = self._sorted_prints()
        needles = self._needles(tables)
        at = np.minimum(np.searchsorted(prints, needles), prints.size - 1)
        known: Bools = prints[at] == needles
        if self.anchor.size < self.turns.shape[1]:
            for number in np.flatnonzero(known).tolist():
                known[number] = self.find(tables[number])[0].size > 0
        return known

    def _needles(self, tables: Ints) -> NDArray[np.complex128]:
        sums = (tables[:, self.anchor].astype(np.float64) + 1.0) @ fingerprint_weights(self.anchor.size)
        result: NDArray[np.complex128] = sums[:, 0] + 1j * sums[:, 1]
        return result

    def _sorted_prints(self) -> tuple[NDArray[np.complex128], Ints]:
        """Fingerprint every row behind every turn by one product: a turn permutes the weights, not the tables."""
        if self._prints is None:
            different, inverse = np.unique(self.turns[:, self.anchor], axis=0, return_inverse=True)
            order = np.argsort(inverse.ravel(), kind="stable")
            self._classes = np.split(order, np.cumsum(np.bincount(inverse.ravel()))[:-1])
            inner, count = self.tables.shape[1], different.shape[0]
            weights = fingerprint_weights(self.anchor.size)
            permuted = np.zeros((2, inner, count))
            for number, turn in enumerate(different):
                for part in (0, 1):
                    permuted[part, :, number] = np.bincount(turn, weights[:, part], minlength=inner)
            prints = np.empty((self.tables.shape[0], count), dtype=np.complex128)
            for start in range(0, self.tables.shape[0], 512):
                block = self.tables[start : start + 512].astype(np.float64) + 1.0
                prints[start : start + 512] = block @ permuted[0] + 1j * (block @ permuted[1])
            flat = prints.ravel()
            order = np.argsort(flat, kind="stable")
            self._prints = flat[order], order
        return self._prints


def surviving(tables: Tables, rows: Ints, turn: NDArray[np.integer], selective: Ints, allowed: Bools) -> Ints:
    """Return the rows that read an allowed value at every selective local."""
    for local in selective:
        rows = rows[allowed[local][tables[rows, turn[local]]]]
        if rows.size == 0:
            break
    return rows


def meeting(tables: Tables, rows: Ints, turn: NDArray[np.integer], presences: Presences) -> Ints:
    """Return the rows that meet the requirements; gives up when these stop dropping rows."""
    lookups, size = 0, rows.size
    for locals_, satisfying in presences:
        columns = turn[locals_]
        lookups += rows.size * columns.size
        rows = rows[_present(tables[rows[:, None], columns[None, :]], satisfying)]
        if rows.size == 0:
            break
        if lookups > _IDLE_LOOKUPS:
            if rows.size > 0.7 * size:
                break
            lookups, size = 0, rows.size
    return rows


def _present(values: Tables, satisfying: Bools) -> Bools:
    hits: Bools = satisfying[np.arange(satisfying.shape[0])[None, :], values]
    any_hit: Bools = np.logical_or.reduce(hits, axis=1)
    return any_hit
