"""Condition and partition holes: which cells are kept, and which register is read (Swizzle Inventor, 5.1 and 5.2).

A condition compares two indices, ``a op (c ± b)``, with ``op`` one of ``= != < <= > >=`` and ``c`` one of a few
constants.  A partition into ``p`` values is an ordered list of ``p - 1`` conditions with a fall-through: the value is
the position of the first condition that holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from metafork.swizzle.model.index import (
    Binary,
    Compare,
    Comparison,
    Index,
    Interval,
    Name,
    Number,
    binary,
    choose,
    evaluate,
    operations,
    reduce,
)
from metafork.swizzle.model.options import OptionSet, Tables, first_of_each

_COMPARISONS: tuple[Comparison, ...] = ("==", "!=", "<", "<=", ">", ">=")
# What a partition may list before its tables are deduplicated; more is refused rather than silently cut.
MOST_PARTITIONS = 4_000_000
DROPPED = -1


def conditions(lengths: Sequence[int], constants: Sequence[int], *, always: bool) -> tuple[Tables, list[Index]]:
    """Return the distinct conditions over indices ``d0, d1, …`` of the given lengths, as 0/1 tables, simplest first.

    ``always`` adds the two constant conditions.
    """
    names = [Name(f"d{axis}") for axis in range(len(lengths))]
    raw: list[Index] = [Number(1), Number(0)] if always else []
    for constant, minus in product(constants, (False, True)):
        for left, right in product(names, names):
            side = binary("-" if minus else "+", Number(constant), right)
            if minus and constant == 0:
                side = Binary("-", Number(0), right)
            raw.extend(Compare(op, left, _tidied(side)) for op in _COMPARISONS)
    ranges: dict[str, Interval] = {f"d{axis}": (0, length - 1) for axis, length in enumerate(lengths)}
    simple = sorted((reduce(one, ranges) for one in raw), key=operations)
    if not always:
        simple = [reduce(one, {}) for one in sorted(raw, key=operations)]
    grids = [grid.ravel() for grid in np.meshgrid(*(np.arange(length) for length in lengths), indexing="ij")]
    values = {f"d{axis}": grid for axis, grid in enumerate(grids)}
    tables = np.empty((len(simple), grids[0].size), dtype=np.int16)
    for row, condition in enumerate(simple):
        tables[row] = evaluate(condition, values)
    kept = first_of_each(tables)
    return tables[kept], [simple[int(row)] for row in kept]


def _tidied(side: Index) -> Index:
    """Spell ``-1 + d`` as ``d - 1``."""
    match side:
        case Binary("+", Number(value), right) if value < 0:
            return Binary("-", right, Number(-value))
        case Binary("+", Number() as constant, right):
            return Binary("+", right, constant)
        case _:
            return side


def keeps(lengths: Sequence[int], constants: Sequence[int]) -> OptionSet:
    """Return the keep options: value 0 reads the cell itself, ``DROPPED`` reads zero."""
    tables, expressions = conditions(lengths, constants, always=True)
    return OptionSet(np.where(tables != 0, 0, DROPPED).astype(np.int16), expressions.__getitem__)


def partitions(lengths: Sequence[int], constants: Sequence[int], parts: int) -> OptionSet:
    """Return the partitions into ``parts`` values by ``parts - 1`` conditions in order, distinct by table.

    Raises ``ValueError`` when there are more than ``MOST_PARTITIONS`` lists of conditions.
    """
    tables, expressions = conditions(lengths, constants, always=False)
    count, tests = len(expressions), parts - 1
    if tests < 1:
        raise ValueError("a partition needs at least two registers to choose from")
    if count**tests > MOST_PARTITIONS:
        raise ValueError(f"{count} conditions in lists of {tests} are more than {MOST_PARTITIONS}")
    # From the last condition to the first: a list is its head's condition in front of the rest's values plus one.
    result = np.where(tables != 0, 0, 1).astype(np.int16)
    lists = np.arange(count, dtype=np.int32)[:, None]
    holds = tables != 0
    for _ in range(tests - 1):
        kept_blocks: list[Tables] = []
        kept_lists = []
        for head in range(count):
            block = np.where(holds[head], 0, result + 1).astype(np.int16)
            rows = first_of_each(block)
            kept_blocks.append(block[rows])
            kept_lists.append(np.concatenate([np.full((len(rows), 1), head, np.int32), lists[rows]], axis=1))
        result, lists = np.concatenate(kept_blocks), np.concatenate(kept_lists)
        rows = first_of_each(result)
        result, lists = result[rows], lists[rows]

    def expression(option: int) -> Index:
        spelled: Index = Number(tests)
        for position in range(tests - 1, -1, -1):
            spelled = choose(expressions[int(lists[option, position])], Number(position), spelled)
        return spelled

    return OptionSet(result, expression)
