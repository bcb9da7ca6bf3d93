"""Which arrays of a thread stand in registers: those of which every index is a number once some loops are unrolled.

Registers have no index.  Where all indices of an array are constants, or made of the counters of loops that run from
constants to constants, unrolling these loops leaves constants only; any other array, and a large one, lies in the
thread's local memory, which is global memory behind a cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from metafork.analysis.counted_loops import counted_loop
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.rewriting import arrays_read, assigned_variables, private_arrays, variables

MOST_REGISTERS = 64
"""Most 4-byte registers for one array: a thread has 255 at most, and needs others."""
MOST_COPIES = 256
"""Most copies of a statement that unrolling makes."""


class ThreadArray(Struct, frozen=True):
    """An array of a thread.  ``reason`` says why it has no registers, empty where it has; ``fault`` is the access."""

    array: ir.Array
    reason: str = ""
    fault: ir.Element | None = None

    @property
    def in_registers(self) -> bool:
        """Whether its elements are registers."""
        return not self.reason


class ThreadArrays(Struct, frozen=True):
    """The arrays of a program's threads by name, and the ``id``s of the loops that make numbers of their indices."""

    arrays: Mapping[str, ThreadArray]
    unrolled: frozenset[int]


def thread_arrays(program: ir.Program) -> ThreadArrays:
    """Return where the arrays of the threads stand, and which loops are to be unrolled for them."""
    names = private_arrays(program.body)
    if not names:
        return ThreadArrays({}, frozenset())
    search = _Search(names, assigned_outside_heads(program.body))
    search.body(program.body, {}, 1)
    arrays: dict[str, ThreadArray] = {}
    for stmt in ir.walk_statements(program.body):
        if isinstance(stmt, ir.PrivateArray):
            arrays[stmt.array.name] = search.judged(stmt.array)
    kept = [name for name, array in arrays.items() if array.in_registers]
    return ThreadArrays(arrays, frozenset(loop for name in kept for loop in search.loops.get(name, ())))


def assigned_outside_heads(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """Return the scalars that are assigned otherwise than by the step of the loop that declares them."""
    steps = {
        id(stmt.step)
        for stmt in ir.walk_statements(body)
        if isinstance(stmt, ir.For) and isinstance(stmt.init, ir.Declare) and stmt.step is not None
    }
    others = tuple(stmt for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Assign) and id(stmt) not in steps)
    return assigned_variables(others)


_Known = dict[str, frozenset[int]]
"""Scalars that are numbers once the loops with these ``id``s are unrolled."""


class _Search(Struct):
    """One walk over a program: the accesses whose indices stay unknown, and the loops that the others need."""

    names: frozenset[str]
    assigned: frozenset[str]
    unknown: dict[str, ir.Element] = field(default_factory=dict)
    loops: dict[str, set[int]] = field(default_factory=dict)

    def judged(self, array: ir.Array) -> ThreadArray:
        registers = math.prod(_number(extent) for extent in array.extents) * max(1, array.element.size // 4)
        access = self.unknown.get(array.name)
        if access is not None:
            return ThreadArray(array, "an index is no constant, nor the counter of a loop of constant trips", access)
        if registers > MOST_REGISTERS:
            return ThreadArray(array, f"its elements would take {registers} registers, {MOST_REGISTERS} are the most")
        return ThreadArray(array)

    def body(self, body: tuple[ir.Stmt, ...], known: _Known, copies: int) -> None:
        known = dict(known)
        for stmt in body:
            self._statement(stmt, known, copies)

    def _statement(self, stmt: ir.Stmt, known: _Known, copies: int) -> None:
        if not isinstance(stmt, ir.For):
            self._accesses(ir.expressions_of(stmt), known)
        match stmt:
            case ir.Declare(name=name, value=value):
                known.pop(name, None)
                needed = None if value is None or name in self.assigned else self._number_of(value, known)
                if needed is not None:
                    known[name] = needed
            case ir.If(then=then, otherwise=otherwise):
                self.body(then, known, copies)
                self.body(otherwise, known, copies)
            case ir.For():
                self._for(stmt, known, copies)
            case ir.While(body=inner) | ir.Phase(body=inner):
                self.body(inner, known, copies)
            case _:
                pass

    def _for(self, loop: ir.For, outer: _Known, copies: int) -> None:
        known = dict(outer)
        if loop.init is not None:
            self._statement(loop.init, known, copies)
        if isinstance(loop.init, ir.Declare):
            known.pop(loop.init.name, None)
            trips = self._trips(loop, outer)
            if trips is not None and trips[0] * copies <= MOST_COPIES:
                copies *= trips[0]
                known[loop.init.name] = trips[1] | {id(loop)}
        parts = [part for part in (loop.condition, loop.step) if part is not None]
        for part in parts:
            self._accesses(ir.expressions_of(part) if isinstance(part, ir.Assign) else (part,), known)
        self.body(loop.body, known, copies)

    def _trips(self, loop: ir.For, known: _Known) -> tuple[int, frozenset[int]] | None:
        """Return how often a loop runs at most, and which loops around it must be unrolled for that to be known."""
        view = counted_loop(loop)
        limit = None if view is None else view.only_limit()
        if view is None or limit is None or not isinstance(view.step, ir.IntConst) or view.step.value < 1:
            return None
        if view.variable.name in self.assigned or limit[0] not in (("<", "<=") if not view.down else (">", ">=")):
            return None
        needed = [self._number_of(end, known) for end in (view.first, limit[1])]
        if needed[0] is None or needed[1] is None:
            return None
        try:
            span = abs(integer_value(limit[1], {}) - integer_value(view.first, {})) + (len(limit[0]) - 1)
        except NoValueError:
            return 1, needed[0] | needed[1]  # as the loops around it say; they are few
        return max(1, -(-span // view.step.value)), needed[0] | needed[1]

    def _number_of(self, expr: ir.Expr, known: _Known) -> frozenset[int] | None:
        """Return the loops after whose unrolling an expression is a number, ``None`` where it is none."""
        if arrays_read(expr) or not expr.type.integer:
            return None
        loops = [known.get(name) for name in variables(expr)]
        if None in loops:
            return None
        return frozenset().union(*(one for one in loops if one is not None))

    def _accesses(self, expressions: tuple[ir.Expr, ...], known: _Known) -> None:
        for part in _elements(expressions):
            if part.array not in self.names:
                continue
            for index in part.indices:
                needed = self._number_of(index, known)
                if needed is None:
                    self.unknown.setdefault(part.array, part)
                else:
                    self.loops.setdefault(part.array, set()).update(needed)


def _elements(expressions: tuple[ir.Expr, ...]) -> Iterator[ir.Element]:
    for expr in expressions:
        for part in ir.walk_expression(expr):
            if isinstance(part, ir.Element):
                yield part


def _number(extent: ir.Expr) -> int:
    assert isinstance(extent, ir.IntConst)
    return extent.value
