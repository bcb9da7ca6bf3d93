"""The straight-line code of one thread: instructions in SSA form, then stores.

Every instruction maps to one or a few LLVM instructions (a shuffle to ``llvm.nvvm.shfl.sync.idx``); index expressions
are over ``lane`` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from metafork.swizzle.model.index import Index, Interval, Name
from metafork.swizzle.model.problem import Literal

LANE = Name("lane")


class NotLowerableError(Exception):
    """The sketch is not one of threads and registers, and the message says why."""


class Load(Struct, frozen=True):
    """Element ``index`` of an input's tile, or zero where the guard fails."""

    memory: str
    index: Index
    guard: Index | None


class Shuffle(Struct, frozen=True):
    """The value of another thread of the group."""

    value: int
    lane: Index


class Select(Struct, frozen=True):
    """``condition ? yes : no`` on values."""

    condition: Index
    yes: int
    no: int


class Zero(Struct, frozen=True):
    """The neutral element of sums."""


class Integral(Struct, frozen=True):
    """An integer that the thread knows, as an element."""

    index: Index


class Given(Struct, frozen=True):
    """A register that the caller of a device function gives: one of an array's, in row-major order."""

    array: str
    number: int


class Put(Struct, frozen=True):
    """Write a value to element ``index`` of the group's array in shared memory; defines nothing."""

    memory: str
    index: Index
    value: int


class Sync(Struct, frozen=True):
    """Wait until every thread of the warp has put its part of an array; defines nothing."""

    memory: str


class Combine(Struct, frozen=True):
    """``left op right``, with ``op`` an operator of folds or ``-``."""

    op: str
    left: int
    right: int


class Store(Struct, frozen=True):
    """Write a value to the output's tile."""

    index: Index
    value: int


Instruction = Load | Shuffle | Select | Zero | Integral | Given | Put | Sync | Combine


class ThreadCode(Struct, frozen=True):
    """The code of one thread: instruction ``n`` defines value ``n``; then the stores.

    A device function has ``results``: arrays with their numbers of registers, of which the stores' indices are the
    numbers, one array behind the other; ``given`` are the arrays whose registers it takes.
    """

    name: str
    lanes: int
    inputs: tuple[Literal, ...]
    output_size: int
    instructions: tuple[Instruction, ...]
    stores: tuple[Store, ...]
    given: tuple[tuple[str, int], ...] = ()
    results: tuple[tuple[str, int], ...] = ()
    # Arrays that the code itself puts into shared memory, with their elements.
    staged: tuple[tuple[str, int], ...] = ()

    @property
    def shared_elements(self) -> int:
        """How many elements of shared memory one group of threads needs."""
        inputs = sum(prod(literal.shape) for literal in self.inputs if literal.shared)
        return inputs + sum(count for _, count in self.staged)

    @property
    def ranges(self) -> dict[str, Interval]:
        """The interval of ``lane``."""
        return {"lane": (0, self.lanes - 1)}


def operands(instruction: Instruction) -> tuple[int, ...]:
    """Return the values an instruction uses."""
    match instruction:
        case Shuffle(value) | Put(value=value):
            return (value,)
        case Select(_, yes, no):
            return yes, no
        case Combine(_, left, right):
            return left, right
        case Load() | Zero() | Integral() | Given() | Sync():
            return ()
        case _:
            assert_never(instruction)


def renamed(instruction: Instruction, number: Mapping[int, int]) -> Instruction:
    """Return the instruction with other numbers for the values it uses."""
    match instruction:
        case Shuffle(value, lane):
            return Shuffle(number[value], lane)
        case Put(memory, index, value):
            return Put(memory, index, number[value])
        case Select(condition, yes, no):
            return Select(condition, number[yes], number[no])
        case Combine(op, left, right):
            return Combine(op, number[left], number[right])
        case Load() | Zero() | Integral() | Given() | Sync():
            return instruction
        case _:
            assert_never(instruction)


def without_dead_code(code: ThreadCode) -> ThreadCode:
    """Drop the instructions that no store needs."""
    used = [False] * len(code.instructions)
    for store in code.stores:
        used[store.value] = True
    read: set[str] = set()
    for position in range(len(code.instructions) - 1, -1, -1):
        instruction = code.instructions[position]
        if isinstance(instruction, Put | Sync):
            used[position] = instruction.memory in read
        elif isinstance(instruction, Load) and used[position]:
            read.add(instruction.memory)
        if used[position]:
            for operand in operands(code.instructions[position]):
                used[operand] = True
    number: dict[int, int] = {}
    kept: list[Instruction] = []
    for position, instruction in enumerate(code.instructions):
        if used[position]:
            number[position] = len(kept)
            kept.append(renamed(instruction, number))
    stores = tuple(Store(store.index, number[store.value]) for store in code.stores)
    staged = tuple(one for one in code.staged if one[0] in read)
    return replace(code, instructions=tuple(kept), stores=stores, staged=staged)
