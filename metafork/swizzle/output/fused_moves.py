"""Lane movements done by loads and stores: a thread that is to get another one's load can load for itself.

    v1 = shuffle(load x[lane], (lane + 1) % 32)   -->   v1 = load x[(lane + 1) % 32]
    out[lane] = shuffle(v0, (lane + 31) % 32)     -->   out[(lane + 1) % 32] = v0

Only where the shuffle was the one use of what it moves, so that nothing is loaded twice; the warp touches the same
elements in another order, or fewer of them.  A store is moved by the inverse of its shuffle, which must be a
permutation whose inverse the grammar of transformations spells (Swizzle Inventor, section 7.3: row, column, row).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from msgspec.structs import replace

from metafork.swizzle.grammar.transformation import rotations, template
from metafork.swizzle.model.index import Index, Number, evaluate, reduce, substitute
from metafork.swizzle.model.options import OptionSet
from metafork.swizzle.output.instructions import (
    LANE,
    Instruction,
    Integral,
    Load,
    Select,
    Shuffle,
    Store,
    ThreadCode,
    Zero,
    operands,
    without_dead_code,
)


def fused(code: ThreadCode) -> ThreadCode:
    """Return the code with every such shuffle done by its load or its store, and without dead code."""
    code = without_dead_code(code)
    uses = [0] * len(code.instructions)
    for instruction in code.instructions:
        for operand in operands(instruction):
            uses[operand] += 1
    for store in code.stores:
        uses[store.value] += 1
    moved = _Moved(code, uses)
    for number, instruction in enumerate(code.instructions):
        if isinstance(instruction, Shuffle) and moved.is_movable(instruction.value):
            moved.move(instruction.value, instruction.lane)
            # A shuffle from the thread itself would stay: take the moved value's place.
            moved.instructions[number] = moved.instructions[instruction.value]
    stores = code.stores
    if not code.results:
        stores = tuple(_stored(code, moved.instructions, uses, store) for store in stores)
    return without_dead_code(replace(code, instructions=tuple(moved.instructions), stores=stores))


class _Moved:
    """Values that are computed for another thread, in place: each has one use only."""

    def __init__(self, code: ThreadCode, uses: list[int]) -> None:
        self.instructions = list(code.instructions)
        self._uses, self._ranges = uses, code.ranges

    def is_movable(self, value: int) -> bool:
        """Say whether a value is made of loads and integers, each used once."""
        match self.instructions[value]:
            case Load():
                return self._uses[value] == 1
            case Select(_, yes, no):
                return self._uses[value] == 1 and self.is_movable(yes) and self.is_movable(no)
            case Zero():
                return True
            case Integral():
                return self._uses[value] == 1
            case _:
                return False

    def move(self, value: int, lane: Index) -> None:
        """Compute the value as the thread ``lane`` would."""
        instruction = self.instructions[value]
        match instruction:
            case Load(memory, index, guard):
                there = None if guard is None else self._at(guard, lane)
                self.instructions[value] = Load(memory, self._at(index, lane), there)
            case Select(condition, yes, no):
                self.move(yes, lane)
                self.move(no, lane)
                self.instructions[value] = Select(self._at(condition, lane), yes, no)
            case Integral(index):
                self.instructions[value] = Integral(self._at(index, lane))
            case _:
                pass

    def _at(self, index: Index, lane: Index) -> Index:
        return reduce(substitute(index, {"lane": lane}), self._ranges)


def _stored(code: ThreadCode, instructions: list[Instruction], uses: list[int], store: Store) -> Store:
    instruction = instructions[store.value]
    if not isinstance(instruction, Shuffle) or uses[store.value] != 1:
        return store
    lanes = np.broadcast_to(evaluate(instruction.lane, {"lane": np.arange(code.lanes)}), (code.lanes,))
    inverse = _inverse(tuple(lanes.tolist()))
    if inverse is None:
        return store
    return Store(reduce(substitute(store.index, {"lane": inverse}), code.ranges), instruction.value)


@cache
def _inverse(lanes: tuple[int, ...]) -> Index | None:
    """Spell the inverse of a permutation over ``lane``; ``None`` where it is none, or the grammar has no such one."""
    count = len(lanes)
    if sorted(lanes) != list(range(count)) or count < 2:
        return None
    wanted = np.argsort(np.array(lanes))
    (options, known), turns = _permutations(count), rotations(count, count, 3)
    for option in range(len(turns)):
        turn = turns.table(option)
        before = np.empty(count, dtype=np.int16)
        before[turn] = wanted
        found = known.get(before.tobytes())
        if found is not None:
            rotated = substitute(turns.expression(option), {"i": LANE})
            spelled = substitute(options.expression(found), {"i": rotated, "k": Number(0)})
            return reduce(spelled, {"lane": (0, count - 1)})
    return None


@cache
def _permutations(count: int) -> tuple[OptionSet, dict[bytes, int]]:
    options = template(count, 1, 3)
    return options, {options.table(option).tobytes(): option for option in reversed(range(len(options)))}
