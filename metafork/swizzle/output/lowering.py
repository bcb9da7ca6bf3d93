"""From a solution to straight-line code of one thread: loads, shuffles, selects, folds and stores, in SSA form.

The first axes of an array (the sketch's ``warp`` of them) are threads, the others registers, all unrolled.  Register
indices are static: a dynamic one becomes a select over the registers that occur, or, where every thread rotates its
registers, a barrel rotation in steps of powers of two (Swizzle Inventor, section 6.3).  Every instruction maps to one
or a few LLVM instructions (a shuffle to ``llvm.nvvm.shfl.sync.idx``); index expressions are over ``lane`` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import assert_never

import numpy as np
from msgspec import Struct, field

from metafork.swizzle.model.factors import Bools, Ints
from metafork.swizzle.model.index import (
    Index,
    Interval,
    Name,
    Number,
    binary,
    choose,
    compare,
    evaluate,
    reduce,
    substitute,
    total,
)
from metafork.swizzle.model.problem import ZERO_CELL, Case, Fold, Gather, Hole, Literal, Problem, Read, Shape, Statement
from metafork.swizzle.model.terms import NEUTRAL_ZERO
from metafork.swizzle.output.fused_moves import fused
from metafork.swizzle.output.instructions import (
    LANE,
    Combine,
    Given,
    Instruction,
    Integral,
    Load,
    NotLowerableError,
    Put,
    Select,
    Shuffle,
    Store,
    Sync,
    ThreadCode,
    Zero,
)
from metafork.swizzle.search.search import Solution


def spelled_cases(problem: Problem, solution: Solution) -> dict[str, tuple[Case, ...]]:
    """Return every gather and completed hole as cases over its output indices."""
    result: dict[str, tuple[Case, ...]] = {}
    for one in problem.statements:
        if isinstance(one, Gather):
            result[one.name] = one.cases
        elif isinstance(one, Hole):
            result[one.name] = one.cases(solution.options[one.name])
    return result


def lower(problem: Problem, solution: Solution, *, registers: bool = False) -> ThreadCode:
    """Lower a solution; raises ``NotLowerableError`` where an array has no axis of threads.

    ``registers`` asks for a device function: the arrays that are loaded are given in registers, and so are the results.
    """
    return _Lowering(problem, solution, registers).code()


_MINUS = Integral(Number(-1))
Registers = dict[tuple[int, ...], int]


class _Lowering(Struct):
    problem: Problem
    solution: Solution
    in_registers: bool
    threads: Shape = ()
    own_places: tuple[Index, ...] = ()
    ranges: dict[str, Interval] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    known: dict[Instruction, int] = field(default_factory=dict)
    arrays: dict[str, Registers] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    staged: dict[str, int] = field(default_factory=dict)
    spread: dict[Index, Ints] = field(default_factory=dict)
    substituted: dict[tuple[Index, tuple[int, ...]], Index] = field(default_factory=dict)

    def code(self) -> ThreadCode:
        problem = self.problem
        self.threads = problem.statement(problem.goals[0].array).shape[: problem.warp]
        lanes = prod(self.threads)
        self.ranges = {"lane": (0, lanes - 1)}
        self.own_places = tuple(self._simple(place) for place in self._places())
        cases = spelled_cases(problem, self.solution)
        for one in problem.statements:
            match one:
                case Literal(name, shape):
                    if not one.is_input:
                        if any(problem.terms.value(term) is None for term in one.terms.tolist()):
                            raise NotLowerableError(f"'{name}' is a table of terms, which has no place in a thread")
                    elif shape[: problem.warp] == self.threads and self._read_across(name):
                        self.arrays[name] = self._input(one)
                case Gather(name, shape, arguments, shared=True):
                    self._share(name, shape, self._registers(shape, name, cases[name], arguments))
                case Gather(name, shape) if self.in_registers and self._is_load(one):
                    self.arrays[name] = self._taken(name, shape, one.table != ZERO_CELL)
                case Gather(name, shape, arguments):
                    self.arrays[name] = self._registers(shape, name, cases[name], arguments)
                case Hole(name, shape, argument):
                    rotated = self._barrel(one, cases[name])
                    self.arrays[name] = rotated or self._registers(shape, name, cases[name], (argument,))
                case Fold(name, shape, argument, op):
                    self.arrays[name] = self._fold(shape, argument, op)
                case _:
                    assert_never(one)
        inputs = tuple(one for one in problem.statements if isinstance(one, Literal) and one.is_input)
        if self.in_registers:
            return fused(self._device(lanes, inputs))
        stores = []
        for goal, place in zip(problem.goals, problem.places(), strict=True):
            for registers, value in self._wanted(goal.array).items():
                stores.append(Store(reduce(substitute(place, self._at(registers)), self.ranges), value))
        return fused(
            ThreadCode(
                problem.name,
                lanes,
                inputs,
                problem.output_size,
                tuple(self.instructions),
                tuple(stores),
                staged=tuple(self.staged.items()),
            )
        )

    def _share(self, name: str, shape: Shape, values: Registers) -> None:
        """Put a thread's registers of an array into shared memory, in row-major order, for all threads of the group."""
        self.staged[name] = prod(shape)
        for registers, value in values.items():
            index: Index = Number(0)
            for at, length in zip((*self._places(), *map(Number, registers)), shape, strict=True):
                index = binary("+", binary("*", index, Number(length)), at)
            self._emit(Put(name, reduce(index, self.ranges), value))
        self._emit(Sync(name))

    def _device(self, lanes: int, inputs: tuple[Literal, ...]) -> ThreadCode:
        """Return the device function: the results are registers, and pointers are left for what is not given."""
        stores: list[Store] = []
        results: dict[str, int] = {}
        for goal in self.problem.goals:
            values = self._wanted(goal.array).values()
            results[goal.array] = len(values)
            stores += [Store(Number(len(stores) + number), value) for number, value in enumerate(values)]
        read = {one.memory for one in self.instructions if isinstance(one, Load)}
        return ThreadCode(
            f"{self.problem.name}_registers", lanes, tuple(one for one in inputs if one.name in read), len(stores),
            tuple(self.instructions), tuple(stores), tuple(self.given.items()), tuple(results.items()),
            tuple(self.staged.items()),
        )  # fmt: skip

    def _wanted(self, name: str) -> Registers:
        """Return the registers of a goal's array; an input may be one, and is loaded for it."""
        if name not in self.arrays:
            self.arrays[name] = self._input(self.problem.statement(name))
        return self.arrays[name]

    def _input(self, one: Statement) -> Registers:
        """Return a thread's own elements of an array in memory: given, or read."""
        if self.in_registers and isinstance(one, Literal) and one.is_input and not one.shared:
            return self._taken(one.name, one.shape, np.ones(prod(one.shape), dtype=bool))
        whole = Case(None, Read(0, _axes(one.shape)))
        return self._registers(one.shape, one.name, (whole,), (one.name,))

    def _is_load(self, gather: Gather) -> bool:
        """Say whether a gather reads inputs in global memory and nothing else: a caller has loaded that already."""
        read = [self.problem.statement(name) for name in gather.arguments if name not in self.arrays]
        inputs = [one for one in read if isinstance(one, Literal) and one.is_input and not one.shared]
        return len(inputs) == len(gather.arguments) > 0

    def _taken(self, name: str, shape: Shape, filled: Bools) -> Registers:
        """Take an array's registers from the caller; cells that are not filled are zero whatever the caller gives."""
        if shape[: len(self.threads)] != self.threads:
            raise NotLowerableError(
                f"'{name}' has the shape {list(shape)}, and its first axes are not the threads {list(self.threads)}"
            )
        inner = shape[len(self.threads) :]
        self.given[name] = prod(inner)
        result: Registers = {}
        for number, registers in enumerate(np.ndindex(*inner)):
            held = filled.reshape(shape)[(..., *registers)].ravel(order="F")
            value = self._emit(Given(name, number))
            if not held.all():
                condition = reduce(_spelled(range(held.size), held.astype(int).tolist()), self.ranges)
                value = self._select(condition, value, self._emit(Zero()))
            result[registers] = value
        return result

    def _read_across(self, name: str) -> bool:
        """Say whether an input is read by a hole, as registers of other threads, rather than from memory."""
        literal = self.problem.statement(name)
        assert isinstance(literal, Literal)
        return not literal.shared and any(hole.argument == name for hole in self.problem.holes())

    def _shuffle(self, value: int, lane: Index) -> int:
        """Emit a shuffle; a shuffle of a shuffled value is one shuffle."""
        earlier = self.instructions[value]
        if isinstance(earlier, Shuffle):
            lane = reduce(substitute(earlier.lane, {"lane": lane}), self.ranges)
            value = earlier.value
        if bool((self._spread(lane) == np.arange(prod(self.threads))).all()):
            return value
        return self._emit(Shuffle(value, lane))

    def _emit(self, instruction: Instruction) -> int:
        if instruction not in self.known:
            self.known[instruction] = len(self.instructions)
            self.instructions.append(instruction)
        return self.known[instruction]

    def _places(self) -> tuple[Index, ...]:
        """The thread's index on each thread axis; the first axis runs fastest."""
        places: list[Index] = []
        below = 1
        for axis, length in enumerate(self.threads):
            place = binary("/", LANE, Number(below))
            places.append(place if axis == len(self.threads) - 1 else binary("%", place, Number(length)))
            below *= length
        return tuple(places)

    def _at(self, registers: Sequence[int]) -> dict[str, Index]:
        indices = (*self._places(), *(Number(one) for one in registers))
        return {f"d{axis}": index for axis, index in enumerate(indices)}

    def _spread(self, index: Index) -> Ints:
        if index not in self.spread:
            value = np.asarray(evaluate(index, {"lane": np.arange(prod(self.threads))}), dtype=np.int64)
            self.spread[index] = np.broadcast_to(value, (prod(self.threads),))
        return self.spread[index]

    def _placed(self, index: Index, registers: tuple[int, ...], places: dict[str, Index]) -> Index:
        """Put the thread's places and a register's numbers into an index, and simplify."""
        key = index, registers
        if key not in self.substituted:
            self.substituted[key] = self._simple(total(substitute(index, places), self.ranges))
        return self.substituted[key]

    def _simple(self, index: Index) -> Index:
        """Reduce an index by the range of ``lane``, and to a number where all threads agree."""
        values = self._spread(index)
        return Number(int(values[0])) if bool((values == values[0]).all()) else reduce(index, self.ranges)

    def _registers(self, shape: Shape, name: str, cases: Sequence[Case], arguments: Sequence[str]) -> Registers:
        if shape[: len(self.threads)] != self.threads:
            raise NotLowerableError(
                f"'{name}' has the shape {list(shape)}, and its first axes are not the threads {list(self.threads)}"
            )
        inner = shape[len(self.threads) :]
        return {registers: self._cell(registers, cases, arguments) for registers in np.ndindex(*inner)}

    def _cell(self, registers: tuple[int, ...], cases: Sequence[Case], arguments: Sequence[str]) -> int:
        """Emit one register of a gather: the first case whose guard holds."""
        places = self._at(registers)
        open_: Bools = np.ones(prod(self.threads), dtype=bool)
        parts: list[tuple[Index, int]] = []
        for case in cases:
            guard = Number(1) if case.guard is None else self._placed(case.guard, registers, places)
            if not parts and isinstance(guard, Number) and guard.value and case.read is not None:
                return self._read(arguments[case.read.argument], case.read, registers, places, open_)
            holds = open_ & (self._spread(guard) != 0)
            if not holds.any():
                continue
            if case.read is None:
                value = self._emit(Zero())
            else:
                value = self._read(arguments[case.read.argument], case.read, registers, places, holds)
            open_ = open_ & ~holds
            parts.append((guard, value))
            if not open_.any():
                break
        result = parts[-1][1] if not open_.any() else self._emit(Zero())
        for guard, value in reversed(parts if open_.any() else parts[:-1]):
            result = self._select(guard, value, result)
        return result

    def _select(self, condition: Index, yes: int, no: int) -> int:
        if yes == no or isinstance(condition, Number):
            return yes if yes == no or condition != Number(0) else no
        return self._emit(Select(condition, yes, no))

    def _read(
        self, argument: str, read: Read, cell: tuple[int, ...], places: dict[str, Index], holds: Bools
    ) -> int:  # fmt: skip
        indices = [self._placed(index, cell, places) for index in read.indices]
        count = len(self.threads)
        if argument in self.arrays and tuple(indices[:count]) == self.own_places:
            fixed = tuple(index.value for index in indices[count:] if isinstance(index, Number))
            if len(fixed) == len(indices) - count:
                return self.arrays[argument][fixed]
        statement = self.problem.statement(argument)
        if argument not in self.arrays:
            index: Index = Number(0)
            for at, length in zip(indices, statement.shape, strict=True):
                index = binary("+", binary("*", index, Number(length)), at)
            if isinstance(statement, Literal) and not statement.is_input:
                return self._constant(statement, index, holds)
            return self._load(argument, index, holds)
        source: Index = Number(0)
        for at, length in zip(reversed(indices[:count]), reversed(self.threads), strict=True):
            source = binary("+", binary("*", source, Number(length)), at)
        lanes = self._spread(source)
        own = bool((lanes == np.arange(lanes.size))[holds].all())
        stored = self.arrays[argument]
        inner = [self._spread(index) for index in indices[count:]]
        wanted = list(dict.fromkeys(zip(*(one[holds].tolist() for one in inner), strict=True))) if inner else [()]
        source = reduce(source, self.ranges)
        values = []
        for registers in wanted:
            value = stored[registers]
            values.append(value if own else self._shuffle(value, self._inside(source, holds)))
        result = values[-1]
        for registers, value in zip(reversed(wanted[:-1]), reversed(values[:-1]), strict=True):
            test: Index = Number(1)
            for index, taken, register in zip(indices[count:], inner, registers, strict=True):
                if not bool((taken[holds] == register).all()):
                    test = compare("&&", test, compare("==", index, Number(register)))
            result = self._select(test, value, result)
        return result

    def _inside(self, source: Index, holds: Bools) -> Index:
        """Keep the lane of a shuffle within the group for threads that do not use the result."""
        lanes = self._spread(source)
        if bool(((lanes >= 0) & (lanes < lanes.size)).all()):
            return source
        assert not holds[(lanes < 0) | (lanes >= lanes.size)].any()
        return binary("%", source, Number(lanes.size))

    def _constant(self, literal: Literal, index: Index, holds: Bools) -> int:
        """Emit what each thread reads of an array of constants; threads that do not hold read anything."""
        lanes = np.flatnonzero(holds)
        terms = literal.terms[self._spread(index)[lanes]].tolist()
        values = [self.problem.terms.value(term) or 0 for term in terms]
        spelled = reduce(_spelled(lanes.tolist(), values), self.ranges)
        return self._emit(Zero() if spelled == Number(0) else Integral(spelled))

    def _load(self, argument: str, index: Index, holds: Bools) -> int:
        at = self._spread(index)
        size = prod(self.problem.statement(argument).shape)
        outside = (at < 0) | (at >= size)
        guard = None
        if outside.any():
            assert not outside[holds].any()
            guard = compare("<", index, Number(size)) if not (at < 0).any() else compare(
                "&&", compare(">=", index, Number(0)), compare("<", index, Number(size))
            )  # fmt: skip
        return self._emit(Load(argument, reduce(index, self.ranges), guard))

    def _fold(self, shape: Shape, argument: str, op: str) -> Registers:
        inner = shape[len(self.threads) :]
        zero = Zero()
        groups: dict[tuple[int, ...], list[int]] = {registers: [] for registers in np.ndindex(*inner)}
        for registers, value in self.arrays[argument].items():
            if not (op in NEUTRAL_ZERO and self.instructions[value] == zero):
                groups[registers[: len(inner)]].append(value)
        result: Registers = {}
        for registers, values in groups.items():
            total = values[0] if values else self._emit(zero)
            for value in values[1:]:
                total = self._combined(op, total, value)
            result[registers] = total
        return result

    def _combined(self, op: str, left: int, right: int) -> int:
        one, two = self.instructions[left], self.instructions[right]
        if op == "+" and isinstance(two, Combine) and two.op == "*" and self.instructions[two.left] == _MINUS:
            return self._emit(Combine("-", left, two.right))
        if op == "+" and isinstance(one, Combine) and one.op == "*" and self.instructions[one.left] == _MINUS:
            return self._emit(Combine("-", right, one.right))
        return self._emit(Combine(op, left, right))

    def _barrel(self, hole: Hole, cases: Sequence[Case]) -> Registers | None:
        """Rotate a thread's registers by an amount of its own, where that is what the hole does and it pays."""
        axis = hole.value_axis
        source = self.problem.statement(hole.argument).shape
        count = len(self.threads)
        if axis is None or axis < count or source != hole.shape or hole.argument not in self.arrays:
            return None
        read, size = cases[0].read, hole.shape[axis]
        assert read is not None
        result: Registers = {}
        others = [range(1) if one == axis else range(length) for one, length in enumerate(hole.shape)][count:]
        for rest in np.ndindex(*(len(one) for one in others)):
            line = [(*rest[: axis - count], place, *rest[axis - count + 1 :]) for place in range(size)]
            spelled = [substitute(read.indices[axis], self._at(registers)) for registers in line]
            tables = np.stack([self._spread(index) for index in spelled])
            amount = (tables[0] - tables[0, 0]) % size
            steps = max(1, int(amount.max()).bit_length())
            rotates = np.array_equal(tables, (tables[:, :1] + amount) % size)
            distinct = sum(len(np.unique(row)) - 1 for row in tables)
            if not rotates or not amount.any() or size * steps > distinct:
                return None
            turn = binary("%", binary("+", spelled[0], Number((size - int(tables[0, 0])) % size)), Number(size))
            values = [self.arrays[hole.argument][registers] for registers in line]
            for step in range(steps):
                bit = binary("%", binary("/", self._simple(turn), Number(1 << step)), Number(2))
                condition = self._simple(compare("!=", bit, Number(0)))
                values = [
                    self._select(condition, values[(place + (1 << step)) % size], values[place])
                    for place in range(size)
                ]  # fmt: skip
            for registers, first in zip(line, tables[:, 0].tolist(), strict=True):
                result[registers] = values[first]
        return result


def _axes(shape: Shape) -> tuple[Index, ...]:
    return tuple(Name(f"d{axis}") for axis in range(len(shape)))


def _spelled(lanes: Sequence[int], values: Sequence[int]) -> Index:
    """Return an expression over ``lane`` with the given values at some ascending lanes."""
    step, odd = divmod(values[1] - values[0], lanes[1] - lanes[0]) if len(values) > 1 else (0, 0)
    if not odd and all(
        value == values[0] + step * (lane - lanes[0]) for lane, value in zip(lanes, values, strict=True)
    ):
        return binary("+", binary("*", Number(step), LANE), Number(values[0] - step * lanes[0]))
    result: Index = Number(values[-1])
    for lane, before, after in zip(reversed(lanes[1:]), reversed(values[:-1]), reversed(values[1:]), strict=True):
        if before != after:
            result = choose(compare("<", LANE, Number(lane)), Number(before), result)
    return result
