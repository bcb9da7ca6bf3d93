"""The transformation hole: fan, rotation, grouping, wrap and broadcast of an axis (Swizzle Inventor, section 5.3).

``X(i, k)`` is the source index on an axis of length ``n``; ``k`` is a secondary index of length ``m``.  With group
size ``g``, ``i' = i mod g``, fan factor ``cf`` and ``df = g / gcd(g, |cf|)``:

    fan:        F = (cf*i' + i'/df) mod g
    rotation:   R = cr*k + k/dr
    X           = g*(i/g) + (F + R) mod g
    with wrap:  X = g*(i/g) + G*(F/G) + (F + R) mod G       where G = g/df

``outside`` wraps as Swizzleflow's release does, with the rotation added outside: ``g*(i/g) + (F + R mod G) mod g``;
its option counts are the published ones, but it is no permutation, and CRC 2 and 4 have no solution in it.  Levels 1
and 2 take ``g = n`` without wrap, level 0 without ``k/dr`` too; level 3 takes all of it; ``grammar`` adds the families
of level 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from metafork.swizzle.model.index import Index, Interval, Name, Number, binary, evaluate, reduce
from metafork.swizzle.model.options import MOST_ENTRIES, OptionSet, Tables, first_of_each, joined_sets

PRIMARY, SECONDARY = Name("i"), Name("k")
_BLOCK = 256


class Transformation(Struct, frozen=True):
    """The parameters of one instance of the template."""

    group: int
    fan: int
    rotate: int
    every: int
    wrap: bool

    def expression(self, length: int, secondary: int, *, outside: bool = False) -> Index:
        """Spell the source index over ``i`` (below ``length``) and ``k`` (below ``secondary``), simplified."""
        ranges: dict[str, Interval] = {"i": (0, length - 1), "k": (0, secondary - 1)}
        group = Number(self.group)
        common = gcd(self.group, abs(self.fan))
        inside = binary("%", PRIMARY, group)
        # The remainder inside the fan matters only where i'/df is not zero.
        spread = PRIMARY if common == 1 or common == self.group else inside
        fan = binary("*", Number(self.fan % self.group), spread)
        if common != 1:
            fan = binary("+", fan, binary("/", inside, Number(self.group // common)))
        turn = binary("*", Number(self.rotate % self.group), SECONDARY)
        if self.every < secondary:
            turn = binary("+", turn, binary("/", SECONDARY, Number(self.every)))
        start = binary("*", group, binary("/", PRIMARY, group))
        if self.wrap and outside:
            wrapped = binary("%", turn, Number(common))
            inner = binary("%", binary("+", fan, wrapped), group)
        elif self.wrap:
            position = binary("%", fan, group)
            unit = Number(common)
            high = binary("*", unit, binary("/", position, unit))
            inner = binary("+", high, binary("%", binary("+", fan, turn), unit))
        else:
            inner = binary("%", binary("+", fan, turn), group)
        return reduce(binary("+", start, inner), ranges)


def parameters(length: int, secondary: int, level: int) -> Iterator[Transformation]:
    """Yield every instance of the template at a restriction level, ungrouped first."""
    groups = [g for g in range(length, 1, -1) if length % g == 0 and (g == length or level >= 3)] or [length]
    steps = [d for d in range(secondary, 1, -1) if secondary % d == 0] or [2]
    if level == 0:
        steps = steps[:1]  # no k/dr
    for group in groups:
        constants = range(group)  # the papers' -1 is group - 1
        for wrap in (False, True) if level >= 3 else (False,):
            for every in steps:
                for rotate in constants:
                    for fan in constants:
                        if wrap and gcd(group, abs(fan)) == 1:
                            continue  # a wrapped rotation modulo 1 does nothing: the fan alone, found without wrap
                        yield Transformation(group, fan, rotate, every, wrap)


class _Pieces(Struct, frozen=True):
    """Tables in pieces: ``base[option, i] + (place[option, i] + turn[option, k]) mod modulus[option]``."""

    base: Tables
    place: Tables
    turn: Tables
    modulus: Tables

    def tables(self, rows: NDArray[np.int64]) -> Tables:
        """Return ``[option, i*secondary + k]``, the source index of each cell, of some options."""
        length, secondary = self.place.shape[1], self.turn.shape[1]
        result = np.empty((rows.size, length, secondary), dtype=np.int16)
        for start in range(0, rows.size, _BLOCK):
            some, block = rows[start : start + _BLOCK], result[start : start + _BLOCK]
            np.add(self.place[some][:, :, None], self.turn[some][:, None, :], out=block)
            block -= self.modulus[some][:, None, None] * (block >= self.modulus[some][:, None, None])
            block += self.base[some][:, :, None]
        return result.reshape(rows.size, -1)


def _pieces(chosen: list[Transformation], length: int, secondary: int, *, outside: bool) -> _Pieces:
    parts = np.array([(one.group, one.fan, one.rotate, one.every, one.wrap) for one in chosen], dtype=np.int64)
    group, fan, rotate, every, wrap = (part[:, None] for part in parts.T)
    i, k = np.arange(length), np.arange(secondary)
    common = np.gcd(group, fan)
    inside = i % group
    position = (fan * inside + inside // (group // common)) % group
    unit = np.where(wrap != 0, common, group)
    modulus = group if outside else unit
    pieces = (
        group * (i // group) + position - position % modulus,
        position % modulus,
        (rotate * k + k // every) % unit,
        modulus[:, 0],
    )
    return _Pieces(*(one.astype(np.int16) for one in pieces))


def instances(length: int, secondary: int, level: int, *, outside: bool = False) -> OptionSet:
    """Return the instances of the template, the identity first; a table may be there more than once."""
    identity = Transformation(length, 1, 0, max(secondary, 2), False)
    chosen = [identity, *parameters(length, secondary, level)]
    chosen.sort(key=lambda one: _complexity(one, length, secondary))
    pieces = _pieces(chosen, length, secondary, outside=outside)
    # Most instances that are equal are equal piece by piece.
    kept = first_of_each(np.concatenate([pieces.base, pieces.place, pieces.turn, pieces.modulus[:, None]], axis=1))
    basis = [chosen[int(row)] for row in kept]
    return OptionSet(
        pieces.tables(kept), lambda option: basis[option].expression(length, secondary, outside=outside)
    )  # fmt: skip


def template(length: int, secondary: int, level: int, *, outside: bool = False) -> OptionSet:
    """Return the distinct instances of the template, the identity first."""
    return joined_sets([instances(length, secondary, level, outside=outside)])


def broadcasts(length: int, secondary: int, level: int) -> OptionSet:
    """Return the broadcasts ``g*(i/g) + (cr*k + k/dr + c) mod g``: one element for all indices of a group.

    In the papers' template they are the fan factor 0, where the place is the rotation's.
    """
    groups = [g for g in range(length, 1, -1) if length % g == 0 and (g == length or level >= 3)] or [length]
    steps = [d for d in range(secondary, 0, -1) if secondary % d == 0]
    chosen = [
        (group, every, rotate, constant)
        for group in groups
        for every in steps
        for rotate in range(group)
        for constant in range(group)
    ]
    group, every, rotate, constant = np.array(chosen, dtype=np.int32).reshape(-1, 4).T[:, :, None, None]
    i = np.arange(length, dtype=np.int32)[None, :, None]
    k = np.arange(secondary, dtype=np.int32)[None, None, :]
    places = ((rotate * k + np.where(every < secondary, k // every, 0) + constant) % group).astype(np.int16)
    # Broadcasts of the whole axis are told apart by one row of their tables.
    first = first_of_each(np.concatenate([group[:, :, 0].astype(np.int16), places[:, 0]], axis=1))
    starts = (group[first] * (i // group[first])).astype(np.int16)
    tables = (starts + places[first]).reshape(first.size, -1)

    def spell(option: int) -> Index:
        group_, every_, rotate_, constant_ = chosen[int(first[option])]
        turn = binary("*", Number(rotate_), SECONDARY)
        if every_ < secondary:
            turn = binary("+", turn, binary("/", SECONDARY, Number(every_)))
        start = binary("*", Number(group_), binary("/", PRIMARY, Number(group_)))
        place = binary("%", binary("+", turn, Number(constant_)), Number(group_))
        return reduce(binary("+", start, place), {"i": (0, length - 1), "k": (0, secondary - 1)})

    return OptionSet(tables, spell)


def _complexity(one: Transformation, length: int, secondary: int) -> tuple[int, int, int, int, int]:
    """Order instances by how many pieces their expression has, then by their constants."""
    common = gcd(one.group, abs(one.fan))
    pieces = (one.group != length) + 2 * one.wrap + (one.fan % one.group != 1) + (one.rotate % one.group != 0)
    pieces += (common != 1) + (one.every < secondary)
    return pieces, -one.group, one.rotate % one.group, one.fan % one.group, -one.every


def evaluated(expressions: list[Index], length: int, secondary: int) -> tuple[Tables, list[Index]]:
    """Return the tables of expressions over ``i`` and ``k``."""
    i, k = (part.ravel() for part in np.meshgrid(np.arange(length), np.arange(secondary), indexing="ij"))
    result = np.empty((len(expressions), length * secondary), dtype=np.int16)
    for row, expression in enumerate(expressions):
        result[row] = evaluate(expression, {"i": i, "k": k})
    return result, expressions


def rotations(length: int, cells: int, level: int) -> OptionSet:
    """Return the rotations ``g*(i/g) + (i + c) mod g`` of the first ``cells`` indices, and the identity.

    Raises ``ValueError`` for axes whose rotations are too many to list.
    """
    groups = [g for g in range(length, 1, -1) if length % g == 0 and (g == length or level >= 3)] or [length]
    if sum(groups) * cells > MOST_ENTRIES:
        raise ValueError(f"{sum(groups)} rotations of {cells} elements are too many to list")
    expressions: list[Index] = [PRIMARY] if cells <= length else []
    for group in groups:
        start = binary("*", Number(group), binary("/", PRIMARY, Number(group)))
        for constant in range(group):
            turned = binary("%", binary("+", PRIMARY, Number(constant)), Number(group))
            expressions.append(reduce(binary("+", start, turned), {"i": (0, cells - 1)}))
    tables, expressions = evaluated(expressions, cells, 1)
    kept = first_of_each(tables)
    chosen = [expressions[int(row)] for row in kept]
    return OptionSet(tables[kept], chosen.__getitem__)


def exchanges(length: int) -> OptionSet:
    """Return the exchanges ``i ^ c`` of an axis whose length is a power of two."""
    tables, expressions = evaluated([binary("^", PRIMARY, Number(one)) for one in range(length)], length, 1)
    return OptionSet(tables, expressions.__getitem__)


def shifts(length: int) -> OptionSet:
    """Return the movements ``i - c`` of an axis, small ones first; -1 where that lies outside."""
    moves = [0, *(sign * step for step in range(1, length) for sign in (1, -1))]
    place = np.arange(length)[None, :] - np.array(moves)[:, None]
    tables = np.where((place >= 0) & (place < length), place, -1).astype(np.int16)
    expressions = [binary("-" if move > 0 else "+", PRIMARY, Number(abs(move))) for move in moves]
    return OptionSet(tables, expressions.__getitem__)
