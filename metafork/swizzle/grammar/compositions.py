"""The wider grammar of level 4: compositions and the primitives of Swizzle Inventor's section 8.

*fan∘fan∘rot* rotates by the secondary index, then fans twice, each fan grouped or not.  *Column-major linearisation*
``(c*i + (k + R(i)) mod m) mod n`` turns the secondary index by the primary one before it is added, with the inner
modulus that transpositions need whose sizes have a common divisor (Table 3, last row).  A *unit* moves ``u``
neighbours as one.  A *broadcast* reads one element a group, at the rotation's place (section 5.3, fan factor 0).
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

import numpy as np

from metafork.swizzle.grammar.transformation import evaluated, parameters
from metafork.swizzle.model.index import Index, Interval, Name, Number, binary, reduce, substitute
from metafork.swizzle.model.options import OptionSet, Tables, first_of_each

PRIMARY, SECONDARY = Name("i"), Name("k")
# More compositions than this are left out, the ones with the larger constants first.
_MOST_COMPOSED = 40_000


def compositions(length: int, secondary: int) -> list[OptionSet]:
    """Return the families of level 4 for an axis of ``length`` and a secondary index below ``secondary``."""
    return [
        _broadcasts(length, secondary),
        _linearisations(length, secondary),
        _fan_fan_rotations(length, secondary),
        _units(length, secondary),
    ]


def _ranges(length: int, secondary: int) -> dict[str, Interval]:
    return {"i": (0, length - 1), "k": (0, secondary - 1)}


def _lazy(tables: Tables, spell: Callable[[int], Index]) -> OptionSet:
    kept = first_of_each(tables)
    return OptionSet(tables[kept], lambda option: spell(int(kept[option])))


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _broadcasts(length: int, secondary: int) -> OptionSet:
    expressions: list[Index] = []
    for group in (g for g in range(length, 1, -1) if length % g == 0):
        start = binary("*", Number(group), binary("/", PRIMARY, Number(group)))
        for step in reversed(_divisors(secondary)):
            for factor in range(group):
                turn = binary("*", Number(factor), SECONDARY)
                if step < secondary:
                    turn = binary("+", turn, binary("/", SECONDARY, Number(step)))
                place = binary("%", turn, Number(group))
                expressions.append(reduce(binary("+", start, place), _ranges(length, secondary)))
    tables, _ = evaluated(expressions, length, secondary)
    return _lazy(tables, expressions.__getitem__)


def _linearisations(length: int, secondary: int) -> OptionSet:
    steps = _divisors(length)
    choices = [
        (factor, turn, step, sign)
        for factor in dict.fromkeys([secondary % length, *range(length)])
        for sign in (1, -1)
        for step in reversed(steps)
        for turn in range(secondary)
    ]
    i, k = (part.ravel() for part in np.meshgrid(np.arange(length), np.arange(secondary), indexing="ij"))
    columns = np.array(choices, dtype=np.int32).T[:, :, None]
    factor, turn, step, sign = columns
    tables = np.empty((len(choices), length * secondary), dtype=np.int16)
    for start in range(0, len(choices), 2048):
        part = slice(start, start + 2048)
        inner = (k + sign[part] * (turn[part] * i + np.where(step[part] < length, i // step[part], 0))) % secondary
        tables[part] = (factor[part] * i + inner) % length

    def spell(option: int) -> Index:
        factor_, turn_, step_, sign_ = choices[option]
        offset = binary("*", Number(turn_), PRIMARY)
        if step_ < length:
            offset = binary("+", offset, binary("/", PRIMARY, Number(step_)))
        inner_ = binary("%", binary("+" if sign_ > 0 else "-", SECONDARY, offset), Number(secondary))
        whole = binary("%", binary("+", binary("*", Number(factor_), PRIMARY), inner_), Number(length))
        return reduce(whole, _ranges(length, secondary))

    return _lazy(tables, spell)


def _fan(group: int, factor: int) -> Index:
    common = gcd(group, factor)
    index = binary("*", Number(factor), PRIMARY)
    if common != 1:
        index = binary("+", index, binary("/", PRIMARY, Number(group // common)))
    return binary("%", index, Number(group))


def _fans(length: int) -> tuple[Tables, list[Index]]:
    fans: list[Index] = [PRIMARY]
    for group in (g for g in range(length, 1, -1) if length % g == 0):
        start = binary("*", Number(group), binary("/", PRIMARY, Number(group)))
        inside = binary("%", PRIMARY, Number(group))
        fans += [binary("+", start, substitute(_fan(group, factor), {"i": inside})) for factor in range(2, group)]
    tables, fans = evaluated([reduce(fan, _ranges(length, 1)) for fan in fans], length, 1)
    kept = first_of_each(tables)
    return tables[kept], [fans[int(row)] for row in kept]


def _fan_fan_rotations(length: int, secondary: int) -> OptionSet:
    fan_tables, fans = _fans(length)
    turns: list[Index] = []
    for step in reversed(_divisors(secondary)):
        for factor in range(length):
            turn = binary("*", Number(factor), SECONDARY)
            turns.append(binary("+", turn, binary("/", SECONDARY, Number(step))) if step < secondary else turn)
    turned = [binary("%", binary("+", PRIMARY, turn), Number(length)) for turn in turns]
    rotation_tables, rotations = evaluated(
        [reduce(one, _ranges(length, secondary)) for one in turned], length, secondary
    )  # fmt: skip
    kept = first_of_each(rotation_tables)
    rotations, rotation_tables = [rotations[int(row)] for row in kept], rotation_tables[kept]
    twice = fan_tables[:, fan_tables].reshape(-1, length)
    pairs = first_of_each(twice)
    if len(pairs) * len(rotations) > _MOST_COMPOSED:
        pairs = pairs[: max(1, _MOST_COMPOSED // len(rotations))]
    tables = twice[pairs][:, rotation_tables].reshape(-1, length * secondary)

    def spell(option: int) -> Index:
        pair, rotation = divmod(option, len(rotations))
        outer, inner = divmod(int(pairs[pair]), len(fans))
        # fan_tables[outer][fan_tables[inner]]: the inner fan is applied to the index first.
        composed = substitute(substitute(fans[outer], {"i": fans[inner]}), {"i": rotations[rotation]})
        return reduce(composed, _ranges(length, secondary))

    return _lazy(tables, spell)


def _units(length: int, secondary: int) -> OptionSet:
    expressions: list[Index] = []
    for unit in (u for u in _divisors(length) if 1 < u < length):
        quotient, rest = binary("/", PRIMARY, Number(unit)), binary("%", PRIMARY, Number(unit))
        for one in parameters(length // unit, secondary, 1):
            moved = substitute(one.expression(length // unit, secondary), {"i": quotient})
            expressions.append(binary("+", binary("*", moved, Number(unit)), rest))
    tables, _ = evaluated([PRIMARY, *expressions], length, secondary)
    return _lazy(tables, [PRIMARY, *expressions].__getitem__)
