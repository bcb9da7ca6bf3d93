"""Stages: the holes of a problem as table constraints between variables, with rotations fused into what they follow.

A variable stands for one cell of one array; cells that a fixed gather copies share a variable.  A stage says that
variable ``outputs[c]`` equals variable ``sources[c, table[locals_[c]]]`` for one table of its options.  A hole whose
only use is a second hole on the same axis is fused with it: the stage's tables are then the first hole's tables behind
the second's.  Where all options together are few they are listed; else they stay in factors (``factors``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct

from metafork.swizzle.model.factors import Bools, Ints, Met, Part, Presences, meeting, surviving
from metafork.swizzle.model.options import Tables, fingerprint_weights, fingerprints, first_of_each
from metafork.swizzle.model.problem import Hole
from metafork.swizzle.search.memory import MemoryBudget

# Composed tables up to this many entries are kept in full.
_FULL_TABLE = 6_000_000
# What a test leaves of a factored stage is listed up to this many entries; else the stage stays in factors.
_MOST_LISTED = 48_000_000
_DROP_CHUNK = 1 << 18
_BLOCK_ENTRIES = 1 << 20


class Candidates(Struct, frozen=True):
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
    parts: tuple[Part, ...]
    order: Ints = field(init=False)
    starts: Ints = field(init=False)
    everything: Candidates | None = field(init=False, default=None)
    reads: Bools = field(init=False)

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
        return sum(part.count for part in self.parts)

    def prepare(self, budget: MemoryBudget) -> None:
        """Compose small factors in full, and note which values each local may take."""
        width = self.sources.shape[1]
        if self.count * self.local_count <= _FULL_TABLE or (len(self.parts) == 1 and len(self.parts[0].turns) == 1):
            size = 4 * self.count * self.local_count
            budget.reserve(size, f"the composed options of {self.name}")
            self.everything = self.selected([_every_pair(part) for part in self.parts])
            budget.release(size - 2 * len(self.everything) * self.local_count)
        self.reads = np.zeros((self.local_count, width), dtype=bool)
        for part in self.parts:
            self.reads |= part.reads(width)

    def narrow(self, now: Candidates | None, allowed: Bools) -> Candidates | None:
        """Keep the options that read an allowed value at every local; ``None`` stands for all options of a factored
        stage, and is given back when the allowed values are too many to filter by."""
        selective = self._selective(allowed)
        if now is not None:
            return now.only(surviving(now.tables, now.rows, selective, allowed))
        if selective.size == 0:
            return None
        if selective.size == self.local_count and bool((allowed.sum(axis=1) == 1).all()):
            values = allowed.argmax(axis=1)
            return self.selected([part.find(values) for part in self.parts])
        return self._filtered(lambda part, turn: part.rows_allowed(turn, selective, allowed))

    def with_presence(self, now: Candidates | None, presences: Sequence[Presences]) -> Candidates | None:
        """Keep the options that meet every presence."""
        if now is not None:
            return now.only(meeting(now.tables, now.rows, presences))
        if not presences:
            return None
        met: dict[int, Met] = {id(part): {} for part in self.parts}
        return self._filtered(lambda part, turn: part.rows_meeting(turn, presences, met[id(part)]))

    def blocks(self, allowed: Bools) -> Iterator[Candidates]:
        """Yield the options of a factored stage that read allowed values, a block at a time; equal ones may repeat."""
        selective = self._selective(allowed)
        for number, part in enumerate(self.parts):
            for turn in range(part.turns.shape[0]):
                rows = part.rows_allowed(turn, selective, allowed)
                step = max(1, _BLOCK_ENTRIES // self.local_count)
                for start in range(0, rows.size, step):
                    some = rows[start : start + step]
                    chosen = [(some[:0], some[:0])] * len(self.parts)
                    chosen[number] = some, np.full(some.size, turn)
                    yield self.selected(chosen)

    def membership(self, now: Candidates | None) -> Callable[[Ints], Bools]:
        """Return what says of tables whether they are among the remaining options.

        A wrong yes is possible, a wrong no is not.
        """
        if now is None:
            return lambda tables: np.logical_or.reduce([part.contains(tables) for part in self.parts])
        return self._known([now.tables[now.rows[start : start + 1024]] for start in range(0, len(now), 1024)])

    def membership_on(self, now: Candidates | None, locals_: Ints) -> Callable[[Ints], Bools] | None:
        """Return what says of parts of tables, at these locals, whether an option has them; ``None`` where they are too
        many to list."""
        if now is not None:
            return self._known([now.tables[now.rows[:, None], locals_]])
        if self.count * locals_.size > _FULL_TABLE:
            return None
        return self._known([part.tables[:, turn[locals_]] for part in self.parts for turn in part.turns])

    @staticmethod
    def _known(tables: Sequence[Tables]) -> Callable[[Ints], Bools]:
        weights = fingerprint_weights(tables[0].shape[1])
        known = np.unique(np.concatenate([fingerprints(some, weights) for some in tables]))
        return lambda some: np.isin(fingerprints(some, weights), known)

    def values(self, now: Candidates | None, allowed: Bools) -> Bools:
        """Return which values the remaining options take at each local (an over-approximation when they are many)."""
        if now is None or len(now) * self.local_count > _DROP_CHUNK:
            return allowed & self.reads
        result = np.zeros_like(self.reads)
        result[np.arange(self.local_count)[None, :], now.tables[now.rows]] = True
        return result

    def selected(self, chosen: Sequence[tuple[Ints, Ints]]) -> Candidates:
        """Return the distinct tables of the given rows and turns of each part, simplest first option first."""
        tables, first, second = [], [], []
        for part, (rows, turns) in zip(self.parts, chosen, strict=True):
            order = np.lexsort((turns, rows))
            rows, turns = rows[order], turns[order]
            tables.append(part.tables[rows[:, None], part.turns[turns]])
            first.append(part.first[rows] + part.added[turns])
            second.append(part.second[turns])
        stacked = np.concatenate(tables)
        kept = first_of_each(stacked) if stacked.shape[0] else np.zeros(0, dtype=np.int64)
        return Candidates(
            stacked[kept], np.concatenate(first)[kept], np.concatenate(second)[kept], np.arange(kept.size)
        )

    def _selective(self, allowed: Bools) -> Ints:
        """Return the locals at which the allowed values exclude some, the most selective first."""
        selective = np.flatnonzero((allowed | ~self.reads).sum(axis=1) < allowed.shape[1])
        return selective[np.argsort(allowed[selective].sum(axis=1), kind="stable")]

    def _filtered(self, rows_of: Callable[[Part, int], Ints]) -> Candidates | None:
        """List what a test leaves of a factored stage; ``None`` where that is too much to list."""
        chosen, size = [], 0
        for part in self.parts:
            rows = []
            for turn in range(part.turns.shape[0]):
                rows.append(rows_of(part, turn))
                size += rows[-1].size * self.local_count
                if size > _MOST_LISTED:
                    return None
            turns = np.repeat(np.arange(len(rows)), [one.size for one in rows])
            chosen.append((np.concatenate(rows), turns))
        return self.selected(chosen)


def _every_pair(part: Part) -> tuple[Ints, Ints]:
    rows, turns = np.divmod(np.arange(part.count), part.turns.shape[0])
    return rows, turns


def fusion(first: Hole, second: Hole) -> tuple[Ints, Ints, Ints] | None:
    """Return how ``second`` rotates the locals of ``first``: the fused locals, their sources and the turns.

    ``turns[option, local]`` is the local of ``first`` that a fused local uses.  ``None`` where the two do not act on
    the same axis, or where what ``first`` reads would depend on the option of ``second``.
    """
    axis = second.value_axis
    if axis is None or axis not in first.local_axes or not set(second.local_axes) <= set(first.local_axes):
        return None
    if (
        (first.locals_ < 0).any()
        or (second.locals_ < 0).any()
        or second.options.tables.min(initial=0) < 0
        or second.options.composition
    ):
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
