"""Build a problem by calls: the same statements as in a ``*.swz`` file, checked for shapes as they are made.

>>> sketch = Sketch("crc", warp=1)
>>> x = sketch.input("x", (96,))
>>> loaded = sketch.gather("loaded", (32, 3), lambda i, j: x[i + 32 * j])
>>> s1 = sketch.transform("s1", loaded, axis=1, secondary=0)

The specification is an array of terms, or a sequential function over symbols (Swizzle Inventor, section 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from metafork.swizzle.grammar import conditions, transformation
from metafork.swizzle.grammar.holes import axis_hole, choice_hole, keep_hole, numbered_names, shift_hole, vector_hole
from metafork.swizzle.grammar.levels import transformations
from metafork.swizzle.model.index import Index, Name, Number, compare, evaluate
from metafork.swizzle.model.names import kernel_name
from metafork.swizzle.model.options import MOST_ENTRIES, OptionSet
from metafork.swizzle.model.problem import (
    ZERO_CELL,
    Case,
    Fold,
    Gather,
    Literal,
    Problem,
    Read,
    Shape,
    Statement,
    Wanted,
)
from metafork.swizzle.model.specification import SketchError, Symbolic, SymbolicArray, shape_text
from metafork.swizzle.model.terms import OPERATORS, Terms

# A group of threads with more registers than this is no sketch of a kernel.
MOST_CELLS = 1 << 16
_MOST_PLACES = 1 << 24
Positions = NDArray[np.signedinteger[Any]]


class Sketch(Struct):
    """A problem under construction; arrays are referred to by name."""

    name: str
    warp: int = 1
    terms: Terms = field(default_factory=Terms)
    statements: dict[str, Statement] = field(default_factory=dict)
    goals: dict[str, Wanted] = field(default_factory=dict)
    # Of the holes so far, by what they were made of: many have the same options.
    transformations: dict[tuple[int, int, int, bool, bool], OptionSet] = field(default_factory=dict)

    def shape(self, name: str) -> Shape:
        """Return the shape of an array; raises ``SketchError`` for an unknown one."""
        if name not in self.statements:
            known = ", ".join(self.statements) or "none"
            raise SketchError(f"there is no array '{name}'", f"arrays defined before this line: {known}")
        return self.statements[name].shape

    def _add(self, statement: Statement) -> str:
        if statement.name in self.statements:
            raise SketchError(f"'{statement.name}' is defined twice", "every array is defined once; use another name")
        self.require_room(statement.name, statement.shape)
        self.statements[statement.name] = statement
        return statement.name

    def require_room(self, name: str, shape: Shape) -> None:
        """Raise ``SketchError`` for a shape that is empty or too large, before anything is made of it."""
        if any(length < 1 for length in shape):
            raise SketchError(f"'{name}' would have the shape {shape_text(shape)}, which is empty")
        if prod(shape) > MOST_CELLS:
            raise SketchError(
                f"'{name}' of shape {shape_text(shape)} has {prod(shape)} elements, more than {MOST_CELLS}"
            )

    def input(self, name: str, shape: Shape, *, step: int | None = None, shared: bool = False) -> str:
        """Add an array of fresh symbols.  ``step`` is how many elements the next tile's array starts later."""
        self.require_room(name, shape)
        size = prod(shape)
        atoms = [self.terms.atom(name, position) for position in range(size)]
        return self._add(
            Literal(name, shape, np.array(atoms, dtype=np.int32), True, size if step is None else step, shared)
        )  # fmt: skip

    def literal(self, name: str, shape: Shape, terms: Sequence[int]) -> str:
        """Add an array of given terms."""
        if len(terms) != prod(shape):
            raise SketchError(f"{len(terms)} values do not fill the shape {shape_text(shape)} of '{name}'")
        return self._add(Literal(name, shape, np.array(terms, dtype=np.int32)))

    def gather(self, name: str, shape: Shape, arguments: Sequence[str], cases: Sequence[Case], title: str = "") -> str:
        """Add a fixed data movement given by cases over the output indices ``d0, d1, …``.

        Raises ``SketchError`` when a case reads outside its argument.
        """
        grids = [grid.ravel() for grid in np.indices(shape)]
        values = {f"d{axis}": grid for axis, grid in enumerate(grids)}
        size = prod(shape)
        table = np.full(size, ZERO_CELL, dtype=np.int64)
        open_ = np.ones(size, dtype=bool)
        offsets = np.cumsum([0, *(prod(self.shape(argument)) for argument in arguments)])
        for case in cases:
            holds = open_ if case.guard is None else open_ & (_spread(evaluate(case.guard, values), size) != 0)
            if case.read is not None:
                cells = np.flatnonzero(holds)
                read_from = self.shape(arguments[case.read.argument])
                flat = self._flat(name, arguments[case.read.argument], read_from, case.read.indices, values, cells)
                table[cells] = flat + offsets[case.read.argument]
            open_ = open_ & ~holds
        return self._add(Gather(name, shape, tuple(arguments), table.astype(np.int32), tuple(cases), title or "gather"))

    def share(self, name: str, argument: str) -> str:
        """Add a copy of an array in shared memory, where every thread may read every cell."""
        shape = self.shape(argument)
        own = tuple(Name(f"d{axis}") for axis in range(len(shape)))
        table = np.arange(prod(shape), dtype=np.int32)
        return self._add(Gather(name, shape, (argument,), table, (Case(None, Read(0, own)),), "shared", shared=True))

    def _flat(
        self,
        name: str,
        argument: str,
        shape: Shape,
        indices: Sequence[Index],
        values: dict[str, Positions],
        cells: Positions,
    ) -> Positions:  # fmt: skip
        if len(indices) != len(shape):
            raise SketchError(
                f"'{argument}' has the shape {shape_text(shape)}, so it takes {len(shape)} indices, not {len(indices)}"
            )
        size = next(iter(values.values())).size if values else 1
        flat = np.zeros(cells.size, dtype=np.int64)
        for axis, (index, length) in enumerate(zip(indices, shape, strict=True)):
            at = _spread(evaluate(index, values), size)[cells]
            wrong = np.flatnonzero((at < 0) | (at >= length))
            if wrong.size:
                cell = int(cells[wrong[0]])
                where = shape_text(tuple(int(grid[cell]) for grid in values.values()))
                raise SketchError(
                    f"'{name}' at {where} reads '{argument}' at index {int(at[wrong[0]])} of axis {axis}, which has "
                    f"{length} elements (shape {shape_text(shape)})",
                    "guard the read, as in: i < 3 ? x[i] : 0",
                )
            flat = flat * length + at
        return flat

    def fold(self, name: str, argument: str, op: str, *, axes: int = 1) -> str:
        """Add the reduction of the last ``axes`` axes."""
        shape = self.shape(argument)
        if op not in OPERATORS:
            raise SketchError(f"'{op}' is no fold operator", f"fold operators are {' '.join(sorted(OPERATORS))}")
        if axes < 1 or axes >= len(shape):
            raise SketchError(f"cannot fold {axes} axes of '{argument}', whose shape is {shape_text(shape)}")
        return self._add(Fold(name, shape[:-axes], argument, op, axes))

    def product(self, name: str, left: str, right: str, op: str = "*") -> str:
        """Add the elementwise product (or sum, ...) of two arrays of one shape."""
        return self.elementwise(name, (left, right), op)

    def elementwise(self, name: str, operands: Sequence[str | int], op: str) -> str:
        """Add the elementwise reduction of arrays of one shape, and constants, by an operator."""
        arrays = [one for one in operands if isinstance(one, str)]
        if not arrays:
            raise SketchError(f"'{name}' combines constants only", "an array of constants is a list, as in [1, 2, 4]")
        first = self.shape(arrays[0])
        for other in arrays[1:]:
            if self.shape(other) != first:
                raise SketchError(
                    f"'{arrays[0]}' has the shape {shape_text(first)} and '{other}' {shape_text(self.shape(other))}; "
                    "a product needs equal shapes"
                )
        axes = tuple(Name(f"d{axis}") for axis in range(len(first)))
        named = [
            one if isinstance(one, str) else self.constant(f"{name}.{number}", first, one)
            for number, one in enumerate(operands)
        ]
        last = Name(f"d{len(first)}")
        cases = [
            Case(compare("==", last, Number(number)) if number < len(named) - 1 else None, Read(number, axes))
            for number in range(len(named))
        ]
        pair = self.gather(f"{name}.pair", (*first, len(named)), named, cases, "stack")
        return self.fold(name, pair, op)

    def constant(self, name: str, shape: Shape, values: int | Positions) -> str:
        """Add an array of integer constants: one for all cells, or one a cell in row-major order."""
        listed = np.broadcast_to(np.asarray(values), (prod(shape),)).tolist()
        return self.literal(name, shape, [self.terms.constant(value) for value in listed])

    def transform(
        self,
        name: str,
        argument: str,
        *,
        shape: Shape | None = None,
        axis: int,
        secondary: int,
        level: int = 3,
        outside: bool = False,
        primary: int | None = None,
    ) -> str:
        """Add a transformation hole: index ``axis`` of the argument is ``X(i, k)``, ``k`` the index on ``secondary``.

        ``primary`` (the axis by default) says which output axis is ``i``.  A one-dimensional argument may be read into
        a larger shape: then ``X`` is its only index.
        """
        source = self.shape(argument)
        out = source if shape is None else shape
        main = axis if primary is None else primary
        self._axis(name, out, main)
        self._axis(name, out, secondary)
        pick = len(source) == 1 and len(out) > 1
        if not pick:
            self._same_but(name, argument, out, source, ())
        length = source[0] if pick else source[axis]
        if not pick and out[main] != length:
            raise SketchError(
                f"axis {main} of '{name}', shape {shape_text(out)}, and axis {axis} of '{argument}', shape "
                f"{shape_text(source)}, differ in length"
            )
        if pick and out[main] > length:
            raise SketchError(
                f"axis {main} of '{name}', shape {shape_text(out)}, is longer than '{argument}', shape "
                f"{shape_text(source)}"
            )
        # A picked array is the same for every index but the last: its identity reads at the last index.
        spread = pick and secondary == len(out) - 1 and out[secondary] <= length
        key = length, out[secondary], level, outside, spread
        try:
            if key not in self.transformations:
                self.transformations[key] = transformations(*key[:3], outside=outside, spread=spread)
        except ValueError as fault:
            raise SketchError(f"'{name}': {fault}") from fault
        options = self.transformations[key]
        return self._axis_hole(
            name, argument, out, options, (main, secondary), None if pick else axis, "transform", ("i", "k")
        )

    def rotate(self, name: str, argument: str, *, shape: Shape | None = None, axis: int, level: int = 3) -> str:
        """Add a rotation hole on an axis; the output may have fewer elements there."""
        source = self.shape(argument)
        out = source if shape is None else shape
        self._axis(name, out, axis)
        self._same_but(name, argument, out, source, (axis,))
        try:
            options = transformation.rotations(source[axis], out[axis], level)
        except ValueError as fault:
            raise SketchError(f"'{name}': {fault}") from fault
        return self._axis_hole(name, argument, out, options, (axis,), axis, "rotate", ("i",))

    def exchange(self, name: str, argument: str, *, axis: int) -> str:
        """Add a hole that exchanges indices on an axis: ``i ^ c`` for a constant; the axis is a power of two."""
        shape = self.shape(argument)
        self._axis(name, shape, axis)
        if shape[axis] & (shape[axis] - 1):
            raise SketchError(
                f"axis {axis} of '{argument}', shape {shape_text(shape)}, is no power of two", "use ?rotate or ?shift"
            )
        options = transformation.exchanges(shape[axis])
        return self._axis_hole(name, argument, shape, options, (axis,), axis, "exchange", ("i",))

    def shift(self, name: str, argument: str, *, axis: int) -> str:
        """Add a hole that moves an axis by a constant; what comes from outside is zero."""
        shape = self.shape(argument)
        self._axis(name, shape, axis)
        return self._add(shift_hole(name, argument, shape, transformation.shifts(shape[axis]), axis))

    def select(
        self,
        name: str,
        argument: str,
        *,
        shape: Shape,
        axis: int,
        over: Sequence[int] | None = None,
        constants: Sequence[int] | None = None,
        level: int = 3,
    ) -> str:
        """Add a partition hole: the index on ``axis`` of the argument is chosen by conditions on the axes ``over``."""
        source = self.shape(argument)
        self._axis(name, shape, axis)
        self._same_but(name, argument, shape, source, (axis,))
        axes = tuple(range(len(shape)) if over is None else over)
        for one in axes:
            self._axis(name, shape, one)
        numbers = self._constants(shape, constants, level)
        try:
            options = conditions.partitions([shape[one] for one in axes], numbers, source[axis])
        except ValueError as fault:
            raise SketchError(f"'{name}': {fault}") from fault
        return self._axis_hole(name, argument, shape, options, axes, axis, "select", numbered_names(len(axes)))

    def keep(
        self,
        name: str,
        argument: str,
        *,
        where: Sequence[tuple[int, int]] = (),
        over: Sequence[int] | None = None,
        constants: Sequence[int] | None = None,
        level: int = 3,
    ) -> str:
        """Add a condition hole: each cell is kept or becomes zero; ``where`` restricts it to some (axis, index)."""
        shape = self.shape(argument)
        fixed = dict(where)
        for axis, index in fixed.items():
            self._axis(name, shape, axis)
            if not 0 <= index < shape[axis]:
                raise SketchError(f"axis {axis} of '{name}', shape {shape_text(shape)}, has no index {index}")
        axes = tuple(one for one in range(len(shape)) if one not in fixed) if over is None else tuple(over)
        for axis in axes:
            self._axis(name, shape, axis)
        numbers = self._constants(shape, constants, level)
        options = conditions.keeps([shape[one] for one in axes], numbers)
        return self._add(keep_hole(name, argument, shape, options, axes, fixed))

    def accumulate(
        self, name: str, argument: str, *, count: int, constants: Sequence[int] | None = None, level: int = 3
    ) -> str:  # fmt: skip
        """Give every accumulator its own condition on every contribution.

        ``[lanes, k, …]`` becomes ``[lanes, count, k, …]``; there is one condition hole over (lane, k) for each
        accumulator and each index of the remaining axes (Swizzle Inventor's ``accumulate``, section 4.2).
        """
        source = self.shape(argument)
        if len(source) < 2 or count < 1:
            raise SketchError(f"cannot accumulate '{argument}', whose shape is {shape_text(source)}, {count} times")
        out = (source[0], count, *source[1:])
        self.require_room(name, out)
        axes = [Name(f"d{axis}") for axis in range(len(out))]
        last = self.gather(f"{name}.copies", out, [argument], [Case(None, Read(0, (axes[0], *axes[2:])))], "broadcast")
        places = [(accumulator, inner) for accumulator in range(count) for inner in np.ndindex(*source[2:])]
        for number, (accumulator, inner) in enumerate(places):
            where = [(1, accumulator), *((axis + 3, index) for axis, index in enumerate(inner))]
            label = "_".join(str(one) for one in (accumulator, *inner))
            this = name if number == len(places) - 1 else f"{name}.{label}"
            last = self.keep(this, last, where=where, over=(0, 2), constants=constants, level=level)
        return last

    def append_vector(self, name: str, argument: str, *, first: int | None = None, mux: bool = False) -> str:
        """Add a vector hole: append a register made of two of the first ``first`` registers of the argument.

        ``mux`` adds ``vmux`` to its instructions.
        """
        source = self.shape(argument)
        if len(source) != 2:
            raise SketchError(
                f"'{argument}' has the shape {shape_text(source)}; vector instructions take [registers, n]"
            )
        registers, lanes = source
        usable = registers if first is None else first
        if not 1 <= usable <= registers:
            raise SketchError(f"'{argument}' has {registers} registers, not {usable}")
        if 2 * usable**2 * lanes**2 > MOST_ENTRIES:
            raise SketchError(f"'{name}' would choose among too many instructions on {usable} vectors of {lanes}")
        return self._add(vector_hole(name, argument, registers, lanes, usable, mux=mux))

    def choose(self, name: str, argument: str, shape: Shape, choices: Sequence[tuple[str, Sequence[Case]]]) -> str:
        """Add a hole with a user-defined set of gathers, each given by its cases."""
        tables = []
        for number, (label, cases) in enumerate(choices):
            probe = Sketch(self.name, self.warp, self.terms, dict(self.statements))
            probe.gather(f"{name}.{number}", shape, (argument,), cases, label)
            made = probe.statements[f"{name}.{number}"]
            assert isinstance(made, Gather)
            tables.append(made.table)
        return self._add(choice_hole(name, argument, shape, prod(self.shape(argument)), choices, tables))

    def goal(self, name: str, terms: Sequence[int], place: Index | None = None) -> None:
        """Say which terms the array ``name`` must hold, in row-major order; of several goals, all must be met.

        ``place`` is where in a tile's output a cell goes, over ``d0, d1, …``.  Raises ``SketchError`` where two cells
        would go to one place.
        """
        shape = self.shape(name)
        if name in self.goals:
            raise SketchError(f"'{name}' has a goal already", "an array has one goal; another array may have another")
        if len(terms) != prod(shape):
            raise SketchError(f"the goal has {len(terms)} terms, and '{name}' has the shape {shape_text(shape)}")
        self.goals[name] = Wanted(name, np.array(terms, dtype=np.int32), place)
        taken = self.problem().positions()
        order = np.argsort(taken, kind="stable")
        if int(taken.min()) < 0 or int(taken.max()) >= _MOST_PLACES:
            wrong = int(taken.min()) if int(taken.min()) < 0 else int(taken.max())
            raise SketchError(f"the goal '{name}' goes to out[{wrong}], which is not from 0 to {_MOST_PLACES - 1}")
        twice = taken[order][1:][np.diff(taken[order]) == 0]
        if twice.size:
            raise SketchError(
                f"two cells of the goals go to out[{int(twice[0])}]", "every cell needs a place of its own"
            )

    def goal_function(self, name: str, function: Callable[..., Symbolic], inputs: Sequence[str] = ()) -> None:
        """Say what ``name`` must hold by a function from its indices (after the input arrays) to a symbolic value."""
        arrays = [self.symbols(one) for one in inputs]
        grid = np.indices(self.shape(name)).reshape(len(self.shape(name)), -1).T
        self.goal(name, [function(*arrays, *(int(one) for one in cell)).term for cell in grid])

    def symbols(self, name: str) -> SymbolicArray:
        """Return an input array for use in a sequential specification."""
        one = self.statements[name]
        if not isinstance(one, Literal):
            raise SketchError(f"'{name}' is computed by the sketch; a specification reads inputs only")
        return SymbolicArray(self.terms, one)

    def problem(self) -> Problem:
        """Return the finished problem; raises ``SketchError`` where there is no goal."""
        if not self.goals:
            raise SketchError("the sketch has no goal", "add a line as: goal out = \\i. x[i]")
        statements, goals = tuple(self.statements.values()), tuple(self.goals.values())
        return Problem(kernel_name(self.name), self.terms, statements, goals, self.warp)

    def _axis(self, name: str, shape: Shape, axis: int) -> None:
        if not 0 <= axis < len(shape):
            raise SketchError(f"'{name}' has the shape {shape_text(shape)}, so there is no axis {axis}")

    def _same_but(self, name: str, argument: str, out: Shape, source: Shape, free: Sequence[int]) -> None:
        same = len(out) == len(source) and all(
            one == two for axis, (one, two) in enumerate(zip(out, source, strict=True)) if axis not in free
        )
        if not same:
            but = f" but for axis {free[0]}" if free else ""
            raise SketchError(
                f"'{name}' has the shape {shape_text(out)} and '{argument}' {shape_text(source)}; "
                f"this hole needs equal shapes{but}"
            )

    def _constants(self, shape: Shape, constants: Sequence[int] | None, level: int) -> Sequence[int]:
        if constants is not None:
            return constants
        return (0,) if level <= 1 else (0, 1, -1, shape[0], -shape[0])

    def _axis_hole(
        self,
        name: str,
        argument: str,
        out: Shape,
        options: OptionSet,
        local_axes: tuple[int, ...],
        value_axis: int | None,
        kind: str,
        names: tuple[str, ...],
    ) -> str:  # fmt: skip
        source = self.shape(argument)
        return self._add(axis_hole(name, argument, out, source, options, local_axes, value_axis, kind, names))


def _spread(value: object, size: int) -> Positions:
    array = np.asarray(value)
    return np.full(size, int(array)) if array.ndim == 0 else array
