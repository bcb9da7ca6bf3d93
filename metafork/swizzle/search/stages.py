"""Stages: the holes of a problem as table constraints between variables, with rotations fused into what they follow.

A variable stands for one cell of one array; cells that a fixed gather copies share a variable.  A stage says that
variable ``outputs[c]`` equals variable ``sources[c, table[locals_[c]]]`` for one table of its options.  A hole whose
only use is a second hole on the same axis is fused with it: the stage's tables are then the first hole's tables behind
the second's, kept as two factors unless their product is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from metafork.swizzle.model.options import Tables, fingerprint_weights, fingerprints, first_of_each
from metafork.swizzle.model.problem import Hole
from metafork.swizzle.search.memory import MemoryBudget

# Composed tables up to this many entries are kept in full.
_FULL_TABLE = 6_000_000
_DROP_CHUNK = 1 << 18
# Requirements are only tested while they pay: if so many look-ups drop less than three tenths, the rest is left out.
_IDLE_LOOKUPS = 3_000_000

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Some options of a stage: rows of ``tables``; row ``r`` is option ``first[r]`` behind option ``second[r]``."""

    tables: Tables
    first: Ints
    second: Ints
    rows: Ints

    def __len__(self) -> int:
        return int(self.rows.size)

    def only(self, keep: Ints) -> Candidates:
        """Return the candidates at the given rows of ``tables``."""
        return Candidates(self.tables, self.first, self.second, keep)


@dataclass(slots=True)
class Stage:
    """One table constraint; ``value -1`` of a table indexes the last source column, which then is the zero cell."""

    holes: tuple[Hole, ...]
    level: int
    outputs: Ints
    sources: Ints
    locals_: Ints
    local_count: int
    tables: Tables
    turns: Ints | None
    # The hole's option that each row of the tables stands for.
    numbers: Ints
    order: Ints = field(init=False)
    starts: Ints = field(init=False)
    everything: Candidates | None = field(init=False, default=None)
    reads: Bools = field(init=False)
    _prints: tuple[NDArray[np.complex128], Ints] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.order = np.argsort(self.locals_, kind="stable")
        self.starts = np.searchsorted(self.locals_[self.order], np.arange(self.local_count))

    @property
    def name(self) -> str:
        """The names of its holes."""
        return "+".join(hole.name for hole in self.holes)

    @property
    def count(self) -> int:
        """How many options there are, before composed tables are deduplicated."""
        return int(self.tables.shape[0]) * (1 if self.turns is None else self.turns.shape[0])

    def prepare(self, budget: MemoryBudget) -> None:
        """Compose small factors in full, and note which values each local may take."""
        width = self.sources.shape[1]
        if self.turns is None:
            rows = np.arange(self.tables.shape[0])
            self.everything = Candidates(self.tables, rows, np.zeros_like(rows), rows)
        elif self.count * self.local_count <= _FULL_TABLE:
            self.everything = self._compose(budget)
        self.reads = np.zeros((self.local_count, width), dtype=bool)
        locals_ = np.arange(self.local_count)
        if self.everything is not None:
            tables = self.everything.tables
            for start in range(0, tables.shape[0], 4096):
                self.reads[locals_[None, :], tables[start : start + 4096]] = True
        elif self.turns is not None:
            inner = np.zeros((self.tables.shape[1], width), dtype=bool)
            for start in range(0, self.tables.shape[0], 1024):
                inner[np.arange(self.tables.shape[1])[None, :], self.tables[start : start + 1024]] = True
            for turn in self.turns:
                self.reads |= inner[turn]

    def _compose(self, budget: MemoryBudget) -> Candidates:
        assert self.turns is not None
        budget.reserve(4 * self.count * self.local_count, f"the composed options of {self.name}")
        composed = self.tables[:, self.turns].reshape(-1, self.local_count)
        kept = first_of_each(composed)
        budget.release(4 * self.count * self.local_count - 2 * kept.size * self.local_count)
        first, second = np.divmod(kept, self.turns.shape[0])
        return Candidates(composed[kept], first, second, np.arange(kept.size))

    def narrow(self, now: Candidates | None, allowed: Bools) -> Candidates | None:
        """Keep the options that read an allowed value at every local; ``None`` stands for all options of a factored
        stage, and is given back when the allowed values are too many to filter by."""
        selective = np.flatnonzero((allowed | ~self.reads).sum(axis=1) < allowed.shape[1])
        selective = selective[np.argsort(allowed[selective].sum(axis=1), kind="stable")]
        if now is not None:
            return now.only(_surviving(now.tables, now.rows, selective, allowed))
        if selective.size == 0:
            return None
        if selective.size == self.local_count and bool((allowed.sum(axis=1) == 1).all()):
            return self.lookup(allowed.argmax(axis=1))
        return self._narrow_factored(selective, allowed)

    def _narrow_factored(self, selective: Ints, allowed: Bools) -> Candidates:
        assert self.turns is not None
        everyone = np.arange(self.tables.shape[0])
        firsts, seconds = [], []
        for second, turn in enumerate(self.turns):
            rows = everyone
            for local in selective:
                rows = rows[allowed[local][self.tables[rows, turn[local]]]]
                if rows.size == 0:
                    break
            firsts.append(rows)
            seconds.append(np.full(rows.size, second))
        return self.selected(np.concatenate(firsts), np.concatenate(seconds))

    def selected(self, first: Ints, second: Ints) -> Candidates:
        """Return the distinct tables of the given pairs of factors, simplest first option first."""
        assert self.turns is not None
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
        tables = self.tables[first[:, None], self.turns[second]] if first.size else self.tables[:0, : self.local_count]
        kept = first_of_each(tables) if first.size else first
        return Candidates(tables[kept], first[kept], second[kept], np.arange(kept.size))

    def lookup(self, values: Ints) -> Candidates:
        """Return the option of a factored stage with exactly this table, found by its fingerprint."""
        assert self.turns is not None
        prints, order = self._sorted_fingerprints()
        needle = self.fingerprint(values)
        low, high = np.searchsorted(prints, needle, "left"), np.searchsorted(prints, needle, "right")
        first, second = np.divmod(order[low:high], self.turns.shape[0])
        found = self.selected(first, second)
        same = (found.tables == values).all(axis=1)
        return found.only(np.flatnonzero(same))

    def fingerprint(self, values: Ints) -> complex:
        """Return the fingerprint of one table, as in ``fingerprint_set``."""
        inner = self.tables.shape[1]
        wanted = (values.astype(np.float64) + 1.0) @ fingerprint_weights(inner)[: self.local_count]
        return complex(wanted[0], wanted[1])

    def fingerprint_set(self, now: Candidates | None) -> set[complex]:
        """Return the fingerprints of the remaining options."""
        if now is None:
            return set(self._sorted_fingerprints()[0].tolist())
        weights = fingerprint_weights(self.tables.shape[1])[: self.local_count]
        prints: set[complex] = set()
        for start in range(0, len(now), 1024):
            prints.update(fingerprints(now.tables[now.rows[start : start + 1024]], weights).tolist())
        return prints

    def _sorted_fingerprints(self) -> tuple[NDArray[np.complex128], Ints]:
        if self._prints is None:
            prints = self._all_fingerprints()
            order = np.argsort(prints, kind="stable")
            self._prints = prints[order], order
        return self._prints

    def _all_fingerprints(self) -> NDArray[np.complex128]:
        """Fingerprint every composition by one matrix product: a rotation permutes the weights, not the tables."""
        assert self.turns is not None
        inner, count = self.tables.shape[1], self.turns.shape[0]
        weights = fingerprint_weights(inner)[: self.local_count]
        permuted = np.zeros((2, inner, count))
        for second, turn in enumerate(self.turns):
            for part in (0, 1):
                permuted[part, :, second] = np.bincount(turn, weights[:, part], minlength=inner)
        result = np.empty((self.tables.shape[0], count), dtype=np.complex128)
        for start in range(0, self.tables.shape[0], 512):
            block = self.tables[start : start + 512].astype(np.float64) + 1.0
            result[start : start + 512] = block @ permuted[0] + 1j * (block @ permuted[1])
        return result.ravel()

    def values(self, now: Candidates | None, allowed: Bools) -> Bools:
        """Return which values the remaining options take at each local (an over-approximation when they are many)."""
        if now is None or len(now) * self.local_count > _DROP_CHUNK:
            return allowed & self.reads
        result = np.zeros_like(self.reads)
        result[np.arange(self.local_count)[None, :], now.tables[now.rows]] = True
        return result

    def with_presence(self, now: Candidates | None, presences: Sequence[tuple[Ints, Bools]]) -> Candidates | None:
        """Keep the options that meet every presence: a list of locals, and which values satisfy it at each.

        At least one of the locals must read a satisfying value.
        """
        if now is not None:
            return now.only(_meeting(now.tables, now.rows, None, presences))
        assert self.turns is not None
        firsts, seconds = [], []
        for second, turn in enumerate(self.turns):
            rows = _meeting(self.tables, np.arange(self.tables.shape[0]), turn, presences)
            firsts.append(rows)
            seconds.append(np.full(rows.size, second))
        return self.selected(np.concatenate(firsts), np.concatenate(seconds))


def _meeting(tables: Tables, rows: Ints, turn: Ints | None, presences: Sequence[tuple[Ints, Bools]]) -> Ints:
    """Return the rows that meet the requirements; gives up when these stop dropping rows."""
    lookups, size = 0, rows.size
    for locals_, satisfying in presences:
        columns = locals_ if turn is None else turn[locals_]
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


def _surviving(tables: Tables, rows: Ints, selective: Ints, allowed: Bools) -> Ints:
    for local in selective:
        rows = rows[allowed[local][tables[rows, local]]]
        if rows.size == 0:
            break
    return rows


def fusion(first: Hole, second: Hole) -> tuple[Ints, Ints, Ints] | None:
    """Return how ``second`` rotates the locals of ``first``: the fused locals, their sources and the turns.

    ``turns[option, local]`` is the local of ``first`` that a fused local uses.  ``None`` where the two do not act on
    the same axis, or where what ``first`` reads would depend on the option of ``second``.
    """
    axis = second.value_axis
    if axis is None or axis not in first.local_axes or not set(second.local_axes) <= set(first.local_axes):
        return None
    if (first.locals_ < 0).any() or (second.locals_ < 0).any() or (second.options.tables < 0).any():
        return None
    lengths = tuple(second.shape[one] for one in first.local_axes)
    grid = np.indices(second.shape).reshape(len(second.shape), -1)
    fused = np.ravel_multi_index(tuple(grid[one] for one in first.local_axes), lengths)
    cells = np.arange(fused.size)
    turns = np.empty((len(second.options), int(np.prod(lengths))), dtype=np.int64)
    reading = None
    for option, table in enumerate(second.options.tables):
        middle = second.sources[cells, table[second.locals_]]
        turns[option, fused] = first.locals_[middle]
        read = first.sources[middle]
        if reading is not None and not np.array_equal(reading, read):
            return None
        reading = read
    if reading is None:
        return None
    return fused, reading.astype(np.int64), turns
