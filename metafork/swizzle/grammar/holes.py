"""The holes of a problem, made of their option sets: which cells an option decides, and where each value reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from msgspec.structs import replace

from metafork.swizzle.grammar import vector
from metafork.swizzle.model.index import Index, Name, Number, compare, substitute, to_text
from metafork.swizzle.model.options import OptionSet, from_expressions
from metafork.swizzle.model.problem import ZERO_CELL, Case, Cells, Hole, Read, Shape


def numbered_names(count: int) -> tuple[str, ...]:
    """Return ``d0, d1, …``."""
    return tuple(f"d{axis}" for axis in range(count))


def axis_hole(
    name: str,
    argument: str,
    out: Shape,
    source: Shape,
    options: OptionSet,
    local_axes: tuple[int, ...],
    value_axis: int | None,
    kind: str,
    names: tuple[str, ...],
) -> Hole:
    """Return the hole whose value replaces the index on one axis (``None``: the only index of the argument)."""
    grid = np.indices(out).reshape(len(out), -1)
    lengths = tuple(out[one] for one in local_axes)
    locals_ = np.ravel_multi_index(tuple(grid[one] for one in local_axes), lengths).astype(np.int32)
    if value_axis is None:
        columns = [np.full(grid.shape[1], value, dtype=np.int32) for value in range(source[0])]
    else:
        columns = []
        for value in range(source[value_axis]):
            at = list(grid)
            at[value_axis] = np.full(grid.shape[1], value)
            columns.append(np.ravel_multi_index(tuple(at), source).astype(np.int32))
    places: dict[str, Index] = {own: Name(f"d{axis}") for own, axis in zip(names, local_axes, strict=True)}

    def cases(option: int) -> tuple[Case, ...]:
        value = substitute(options.expression(option), places)
        if value_axis is None:
            return (Case(None, Read(0, (value,))),)
        at = [value if axis == value_axis else Name(f"d{axis}") for axis in range(len(out))]
        return (Case(None, Read(0, tuple(at))),)

    return Hole(
        name, out, argument, kind, options, locals_, np.stack(columns, axis=1), local_axes, value_axis, names, cases
    )  # fmt: skip


def shift_hole(name: str, argument: str, shape: Shape, options: OptionSet, axis: int) -> Hole:
    """Return the hole that moves an axis by a constant, with zero from outside."""
    moved = axis_hole(name, argument, shape, shape, options, (axis,), axis, "shift", ("i",))

    def cases(option: int) -> tuple[Case, ...]:
        (case,) = moved.cases(option)
        assert case.read is not None
        at = case.read.indices[axis]
        table = options.tables[option]
        if not (table < 0).any():
            return (case,)
        inside = compare(">=", at, Number(0)) if table[0] < 0 else compare("<", at, Number(shape[axis]))
        return Case(inside, case.read), Case(None, None)

    return replace(moved, value_axis=None, cases=cases)


def keep_hole(
    name: str, argument: str, shape: Shape, options: OptionSet, axes: tuple[int, ...], fixed: Mapping[int, int]
) -> Hole:
    """Return the hole that keeps or drops the cells at the ``fixed`` indices, and copies the others."""
    grid = np.indices(shape).reshape(len(shape), -1)
    active = np.ones(grid.shape[1], dtype=bool)
    for axis, index in fixed.items():
        active &= grid[axis] == index
    locals_ = np.ravel_multi_index(tuple(grid[one] for one in axes), tuple(shape[one] for one in axes))
    locals_ = np.where(active, locals_, -1).astype(np.int32)
    sources = np.arange(prod(shape), dtype=np.int32)[:, None]
    own = Read(0, tuple(Name(f"d{axis}") for axis in range(len(shape))))
    outside: Index = Number(0)
    for axis, index in fixed.items():
        outside = compare("||", outside, compare("!=", Name(f"d{axis}"), Number(index)))
    places: dict[str, Index] = {f"d{position}": Name(f"d{axis}") for position, axis in enumerate(axes)}

    def cases(option: int) -> tuple[Case, ...]:
        kept = compare("||", outside, substitute(options.expression(option), places))
        return Case(kept, own), Case(None, None)

    names = numbered_names(len(axes))
    return Hole(name, shape, argument, "keep", options, locals_, sources, axes, None, names, cases)


def vector_hole(name: str, argument: str, registers: int, lanes: int, usable: int, *, mux: bool = False) -> Hole:
    """Return the hole that appends a register made of two of the first ``usable`` ones, by ``vmux`` too if asked."""
    options = vector.pairings(usable, lanes, mux=mux)
    copied = np.arange(registers * lanes, dtype=np.int32)
    locals_ = np.concatenate([np.full(copied.size, -1, np.int32), np.arange(lanes, dtype=np.int32)])
    sources = np.concatenate(
        [np.repeat(copied[:, None], usable * lanes, axis=1), np.tile(copied[: usable * lanes], (lanes, 1))]
    )
    shape = registers + 1, lanes

    def cases(option: int) -> tuple[Case, ...]:
        return vector.cases(options.expression(option), registers, lanes)

    return Hole(name, shape, argument, "vector", options, locals_, sources, (1,), None, ("d1",), cases)


def choice_hole(
    name: str,
    argument: str,
    shape: Shape,
    argument_cells: int,
    choices: Sequence[tuple[str, Sequence[Case]]],
    tables: Sequence[Cells],
) -> Hole:
    """Return the hole of a user's set of gathers, each with its label, its cases and its table."""
    stacked = np.stack(tables)
    values = np.where(stacked == ZERO_CELL, -1, stacked).astype(np.int16)
    options = from_expressions([Name(label) for label, _ in choices], values)
    by_label = {label: tuple(cases) for label, cases in choices}
    labels = [to_text(options.expression(option)) for option in range(len(options))]
    cells = prod(shape)
    sources = np.tile(np.arange(argument_cells, dtype=np.int32), (cells, 1))
    locals_ = np.arange(cells, dtype=np.int32)
    axes = tuple(range(len(shape)))
    names = numbered_names(len(shape))

    def cases(option: int) -> tuple[Case, ...]:
        return by_label[labels[option]]

    return Hole(name, shape, argument, "choice", options, locals_, sources, axes, None, names, cases)
