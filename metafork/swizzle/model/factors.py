"""One family of a stage's options in two factors: a table behind a turn, which is never multiplied out.

Option (row, turn) of a part reads ``tables[row, turns[turn, local]]`` at a local.  A listed hole has one turn, the
identity; a rotation behind it, or a family of ``compositions``, gives more.  Options are found by fingerprints of the
*anchor*, locals at which few turns differ, and compared in full where those agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from metafork.swizzle.model.options import Tables, classes, fingerprint_weights

# Requirements are only tested while they pay: if so many look-ups drop less than three tenths, the rest is left out.
_IDLE_LOOKUPS = 3_000_000

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
_WORD = 64
# So many values are looked at in one go rather than local by local.
_AT_ONCE = 1 << 14
_BLOCK = 1 << 20


class Presences(Struct, frozen=True):
    """Up to 64 requirements on the same locals: each is met if one of these locals reads a value that satisfies it.

    Bit ``b`` of ``bits[local, value]`` says that the value satisfies requirement ``b`` there; ``all`` has their bits.
    """

    locals_: Ints
    bits: NDArray[np.uint64]
    all: np.uint64

    def met(self, values: NDArray[np.integer]) -> Bools:
        """Say of each column of ``[local, option]`` whether the option meets all of them."""
        seen = np.zeros(values.shape[1], dtype=np.uint64)
        for bits, column in zip(self.bits, np.ascontiguousarray(values), strict=True):
            seen |= bits[column]
        result: Bools = seen == self.all
        return result


def presences_on(locals_: Ints, satisfying: Sequence[Bools]) -> list[Presences]:
    """Join requirements on the same locals; ``satisfying[requirement][local, value]``."""
    result = []
    for start in range(0, len(satisfying), _WORD):
        some = satisfying[start : start + _WORD]
        bits = np.zeros(some[0].shape, dtype=np.uint64)
        for number, one in enumerate(some):
            bits |= one.astype(np.uint64) << np.uint64(number)
        result.append(Presences(locals_, bits, np.uint64((1 << len(some)) - 1)))
    return result


# Which rows meet which presence on which columns; ``None`` where only few rows were asked about so far.
Met = dict[tuple[int, bytes], Bools | None]


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
    _known: dict[int, Tables] = field(init=False, default_factory=dict)
    _columns: dict[bytes, tuple[Tables, Ints] | None] = field(init=False, default_factory=dict)

    @property
    def count(self) -> int:
        """How many options there are, equal ones included."""
        return int(self.tables.shape[0]) * int(self.turns.shape[0])

    def reads(self, width: int) -> Bools:
        """Return which values some option takes at each local."""
        inner = np.zeros((self.tables.shape[1], width), dtype=bool)
        open_ = np.arange(self.tables.shape[1])
        for start in range(0, self.tables.shape[0], 256):
            # A local that takes every value takes no more.
            inner[open_[None, :], self.tables[start : start + 256, open_]] = True
            open_ = open_[~inner[open_].all(axis=1)]
        result = np.zeros((self.turns.shape[1], width), dtype=bool)
        for turn in self.turns:
            result |= inner[turn]
        return result

    def rows_allowed(self, turn: int, selective: Ints, allowed: Bools) -> Ints:
        """Return the rows that read an allowed value at every selective local behind a turn."""
        return _surviving(
            self.tables, self._column, np.arange(self.tables.shape[0]), self.turns[turn], selective, allowed
        )

    def _column(self, rows: Ints, column: int) -> Tables:
        """Return a column of the tables at some rows; columns that are asked for are kept side by side."""
        if column not in self._known:
            self._known[column] = np.ascontiguousarray(self.tables[:, column])
        return self._known[column][rows]

    def rows_meeting(self, turn: int, presences: Sequence[Presences], met: Met) -> Ints:
        """Return the rows that meet every presence behind a turn; gives up when these stop dropping rows.

        ``met`` keeps which rows meet which presence, for turns that agree on its locals.
        """

        def keeps(number: int, rows: Ints) -> Bools:
            one = presences[number]
            columns = self.turns[turn][one.locals_]
            key = number, columns.tobytes()
            if key not in met and 2 * rows.size < self.tables.shape[0]:
                met[key] = None
                return one.met(self.tables[rows[:, None], columns].T)
            known = met.get(key)
            if known is None:
                different, places = np.unique(columns, return_inverse=True)
                found = self._on_columns(different)
                known = one.met(self.tables[:, columns].T) if found is None else one.met(found[0][places])[found[1]]
                met[key] = known
            return known[rows]

        return _dropped(np.arange(self.tables.shape[0]), presences, keeps)

    def _on_columns(self, columns: Ints) -> tuple[Tables, Ints] | None:
        """Return the different rows of the tables on some columns, transposed, and the one of each row.

        Many options agree where a requirement looks, and turns permute the columns.  To find them pays when the
        columns are asked for again: the first time, ``None`` is returned.
        """
        key = columns.tobytes()
        if key not in self._columns:
            self._columns[key] = None
        elif self._columns[key] is None:
            some = self.tables[:, columns]
            first, kind = classes(some)
            self._columns[key] = np.ascontiguousarray(some[first].T), kind
        return self._columns[key]

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


def surviving(tables: Tables, rows: Ints, selective: Ints, allowed: Bools) -> Ints:
    """Return the rows that read an allowed value at every selective local."""
    same = np.arange(tables.shape[1])
    return _surviving(tables, lambda rows, column: tables[rows, column], rows, same, selective, allowed)


def _surviving(
    tables: Tables,
    column: Callable[[Ints, int], Tables],
    rows: Ints,
    turn: NDArray[np.integer],
    selective: Ints,
    allowed: Bools,
) -> Ints:
    for number, local in enumerate(selective):
        rest = selective[number:]
        if rows.size * rest.size <= _AT_ONCE:
            rows = rows[allowed[rest[None], tables[rows[:, None], turn[rest]]].all(axis=1)]
            break
        rows = rows[allowed[local][column(rows, int(turn[local]))]]
    return rows


def meeting(tables: Tables, rows: Ints, presences: Sequence[Presences]) -> Ints:
    """Return the rows that meet the requirements; gives up when these stop dropping rows."""

    def keeps(number: int, rows: Ints) -> Bools:
        one = presences[number]
        step = max(1, _BLOCK // one.locals_.size)
        starts = range(0, rows.size, step)
        return np.concatenate([one.met(tables[rows[start : start + step, None], one.locals_].T) for start in starts])

    return _dropped(rows, presences, keeps)


def _dropped(rows: Ints, presences: Sequence[Presences], keeps: Callable[[int, Ints], Bools]) -> Ints:
    """Drop rows by one presence after the other; ``keeps`` says which rows one of them leaves."""
    lookups, size = 0, rows.size
    for number, one in enumerate(presences):
        lookups += rows.size * one.locals_.size
        rows = rows[keeps(number, rows)]
        if rows.size == 0:
            break
        if lookups > _IDLE_LOOKUPS:
            if rows.size > 0.7 * size:
                break
            lookups, size = 0, rows.size
    return rows
