"""Loops by name, and what stands in their place.

A loop is addressed by its variable, which no other loop of a program has: the second one over ``k`` in a text is over
``k_1``, as ``metafork apply`` prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from metafork.analysis.counted_loops import counted_loop
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.visitor import Body, Rewriter
from metafork.transform.directive import Refused

INT = ScalarType.INT


class GridLoop(Struct, frozen=True):
    """A loop of the grid, by its number from the outermost."""

    axis: int
    head: ir.MetaFor


class ThreadLoop(Struct, frozen=True):
    """A thread loop of a phase, by its number from the outermost."""

    axis: int
    head: ir.MetaFor


class SerialLoop(Struct, frozen=True):
    """A loop ``for (int k = 0; k < extent; k++)`` whose extent stays what it is while it runs."""

    stmt: ir.For
    variable: str
    extent: ir.Expr


def loop_named(program: ir.Program, name: str) -> GridLoop | ThreadLoop | SerialLoop | Refused:
    """Return the loop of a name, or why there is none that a directive can take."""
    every = dict(_loops(program))
    if name not in every:
        known = ", ".join(f"`{variable}`" for variable in every)
        return Refused(f"there is no loop over `{name}`; loops are over {known}", program.span)
    loop = every[name]
    if isinstance(loop, ir.For):
        return _serial(loop, name)
    if loop.head.type is not INT or loop.head.extent.type is not INT:
        return Refused(f"the loop over `{name}` does not count `int`", loop.head.span)
    return loop


def _serial(loop: ir.For, variable: str) -> SerialLoop | Refused:
    view = counted_loop(loop)
    limits = [] if view is None else list(view.limits())
    if (
        view is None or view.others or view.down or not view.declared or not view.unit or view.first != ir.IntConst(0)
        or len(limits) != len(view.conditions) or len(limits) != 1 or limits[0][0] != "<"
        or view.variable.type is not INT or limits[0][1].type is not INT
    ):  # fmt: skip
        reason = f"the loop over `{variable}` is not `for (int {variable} = 0; {variable} < limit; {variable}++)`"
        return Refused(f"{reason} with a limit that stays", loop.span)
    return SerialLoop(loop, variable, limits[0][1])


def _loops(program: ir.Program) -> Iterator[tuple[str, GridLoop | ThreadLoop | ir.For]]:
    for axis, head in enumerate(program.grid):
        yield head.var, GridLoop(axis, head)
    for stmt in ir.walk_statements(program.body):
        if isinstance(stmt, ir.For) and isinstance(stmt.init, ir.Declare):
            yield stmt.init.name, stmt
        elif isinstance(stmt, ir.Phase):
            for axis, head in enumerate(stmt.threads):
                yield head.var, ThreadLoop(axis, head)


def counting(variable: str, first: ir.Expr, extent: ir.Expr, body: Body) -> ir.For:
    """Return ``for (int variable = first; variable < extent; variable++) body``."""
    counter = ir.Var(variable, INT)
    return ir.For(
        ir.Declare(variable, INT, first), ir.binary("<", counter, extent), ir.Assign(counter, "+", ir.IntConst(1)), body
    )


def each_replaced(body: Body, change: Callable[[ir.Stmt], Body | None]) -> Body:
    """Return a body with the outermost statements replaced for which ``change`` gives others."""
    return _Replaced(change).body(body)


class _Replaced(Rewriter):
    def __init__(self, change: Callable[[ir.Stmt], Body | None]) -> None:
        self._change = change

    def statement(self, stmt: ir.Stmt) -> ir.Stmt | Body:
        new = self._change(stmt)
        return super().statement(stmt) if new is None else new
