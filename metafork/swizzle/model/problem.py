"""A synthesis problem: arrays of constant shape, gathers, holes, folds, and the array that must be reached.

Built by ``sketch`` (from calls) or ``elaborate`` (from text).  Cells of an array are numbered in row-major order; a
gather or hole reads cells of one argument, or ``ZERO_CELL`` or ``UNDEFINED_CELL``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from metafork.swizzle.model.index import Index, Name, Number, binary, evaluate
from metafork.swizzle.model.options import OptionSet
from metafork.swizzle.model.terms import UNDEFINED, ZERO, Terms

Shape = tuple[int, ...]
Cells = NDArray[np.int32]
ZERO_CELL = -1
UNDEFINED_CELL = -2


class Literal(Struct, frozen=True):
    """An array of given terms.  An input symbol has a name and a tile step: how far the next tile starts."""

    name: str
    shape: Shape
    terms: Cells
    is_input: bool = False
    step: int = 0
    shared: bool = False


class Read(Struct, frozen=True):
    """Where an output cell comes from, spelled: indices of one argument over ``d0, d1, …``, under a guard."""

    argument: int
    indices: tuple[Index, ...]


class Case(Struct, frozen=True):
    """One case of a gather: under ``guard`` (always for ``None``) read ``read`` (zero for ``None``)."""

    guard: Index | None
    read: Read | None


class Gather(Struct, frozen=True):
    """A fixed data movement; ``table[cell]`` counts cells of all arguments in a row, ``cases`` spell it.

    A ``shared`` one is a copy that stands in shared memory.
    """

    name: str
    shape: Shape
    arguments: tuple[str, ...]
    table: Cells
    cases: tuple[Case, ...]
    title: str = "gather"
    shared: bool = False


class Hole(Struct, frozen=True):
    """A data movement to be found.

    ``locals_[cell]`` is the local of the option's table that decides where the cell comes from, -1 for cells that
    every option copies; ``sources[cell, value]`` is the cell read for a value (value -1 reads zero).
    ``local_axes`` are the output axes that make up the local, in order; ``value_axis`` the argument's axis that the
    value replaces (None when sources are arbitrary); ``cases(option)`` spells an option as a gather.
    """

    name: str
    shape: Shape
    argument: str
    kind: str
    options: OptionSet
    locals_: Cells
    sources: Cells
    local_axes: tuple[int, ...]
    value_axis: int | None
    local_names: tuple[str, ...]
    cases: Callable[[int], tuple[Case, ...]]


class Fold(Struct, frozen=True):
    """The reduction of the last ``axes`` axes by an operator."""

    name: str
    shape: Shape
    argument: str
    op: str
    axes: int = 1


Statement = Literal | Gather | Hole | Fold


class Wanted(Struct, frozen=True):
    """A goal: the terms that an array must hold, in row-major order.

    ``place`` is where in a tile's output a cell goes, over ``d0, d1, …`` (``None``: behind the goals before).
    """

    array: str
    terms: Cells
    place: Index | None = None


class Problem(Struct, frozen=True):
    """Statements in order and the goals, all of which must be met; ``warp`` is how many leading axes are threads.

    The output of the code is the goals' arrays, one behind the other, or where their places say.
    """

    name: str
    terms: Terms
    statements: tuple[Statement, ...]
    goals: tuple[Wanted, ...]
    warp: int = 1

    @property
    def goal_terms(self) -> Cells:
        """The terms of the whole output."""
        return np.concatenate([goal.terms for goal in self.goals])

    def places(self) -> tuple[Index, ...]:
        """Return for each goal where in the output its cells go, over ``d0, d1, …``."""
        result: list[Index] = []
        before = 0
        for goal in self.goals:
            at: Index = Number(0)
            for axis, length in enumerate(self.statement(goal.array).shape):
                at = binary("+", binary("*", at, Number(length)), Name(f"d{axis}"))
            result.append(binary("+", at, Number(before)) if goal.place is None else goal.place)
            before += goal.terms.size
        return tuple(result)

    def positions(self) -> NDArray[np.int64]:
        """Return the place in the output of every cell of ``goal_terms``."""
        parts = []
        for goal, place in zip(self.goals, self.places(), strict=True):
            grids = np.indices(self.statement(goal.array).shape).reshape(-1, goal.terms.size)
            value = evaluate(place, {f"d{axis}": grid for axis, grid in enumerate(grids)})
            parts.append(np.broadcast_to(np.asarray(value, dtype=np.int64), (goal.terms.size,)))
        return np.concatenate(parts)

    @property
    def output_size(self) -> int:
        """How many elements of the output a tile has: up to the last place, and at least one a cell."""
        positions = self.positions()
        return max(int(positions.size), int(positions.max()) + 1)

    def statement(self, name: str) -> Statement:
        """Return the statement that defines ``name``; raises ``KeyError``."""
        for one in self.statements:
            if one.name == name:
                return one
        raise KeyError(name)

    def holes(self) -> tuple[Hole, ...]:
        """Return the holes in order."""
        return tuple(one for one in self.statements if isinstance(one, Hole))


def hole_table(hole: Hole, option: int) -> Cells:
    """Return the gather of one option: the argument's cell that each output cell reads."""
    values = hole.options.table(option).astype(np.int32)
    return apply_values(hole, values)


def apply_values(hole: Hole, values: Cells) -> Cells:
    """Return the gather that a table of values (one a local) makes of a hole."""
    local = np.maximum(hole.locals_, 0)
    chosen = np.where(hole.locals_ >= 0, values[local], 0)
    read = np.take_along_axis(hole.sources, np.maximum(chosen, 0)[:, None], axis=1)[:, 0]
    return np.where(chosen < 0, np.int32(ZERO_CELL), read).astype(np.int32)


def execute(problem: Problem, choice: dict[str, Cells]) -> dict[str, Cells]:
    """Run the program on its symbols; ``choice`` gives the gather of each hole.  Returns the terms of every array."""
    arrays: dict[str, Cells] = {}
    for one in problem.statements:
        match one:
            case Literal():
                arrays[one.name] = one.terms
            case Gather():
                joined = np.concatenate([arrays[name] for name in one.arguments])
                arrays[one.name] = _take(joined, one.table)
            case Hole():
                arrays[one.name] = _take(arrays[one.argument], choice[one.name])
            case Fold():
                count = prod(one.shape)
                groups = arrays[one.argument].reshape(count, -1).tolist()
                folded = [problem.terms.fold(one.op, group) for group in groups]
                arrays[one.name] = np.array(folded, dtype=np.int32)
    return arrays


def _take(values: Cells, table: Cells) -> Cells:
    result = values[np.maximum(table, 0)]
    result = np.where(table == ZERO_CELL, np.int32(ZERO), result)
    return np.where(table == UNDEFINED_CELL, np.int32(UNDEFINED), result).astype(np.int32)


def solves(problem: Problem, choice: dict[str, Cells]) -> bool:
    """Say whether every goal array of the completed program equals its specification, term by term."""
    arrays = execute(problem, choice)
    return all(np.array_equal(arrays[goal.array], goal.terms) for goal in problem.goals)
