"""A program as isl sees it: every statement that writes memory, with its domain, its order and what it touches.

Some parameters are fixed to numbers (those of the block shape, which multiply loop variables otherwise); the others
stay symbols, and loop variables are parameters of isl too, each with a tag, so that two programs, or two instances of
one, stand in one space.  ``affine`` reads integer expressions.

Data are not looked at: a statement's ``shape`` is its value with every access replaced by a mark; two statements with
equal shapes that read equal elements compute the same.  Locals that are declared once and never assigned give way to
their values; others are memory of their own, one cell for each run of their declaration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from metafork.analysis.facts import program_facts
from metafork.analysis.reference_walk import kept_within
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.comprehensive.verification.translation.affine import AffineScope, NotAffineError, is_number, number_of
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import common_type

MOST_UNROLLED = 64
"""Iterations of a loop with known numbers, whatever its step, that are taken apart."""


class Loop(Struct, frozen=True):
    """A loop variable: isl's name of it, the program's, and where the loop stands."""

    symbol: str
    name: str
    kind: LoopKind


Time = tuple[int | Loop, ...]
"""When something happens: places in bodies and loop variables, outermost first."""


class Access(Struct, frozen=True):
    """One access: the element as isl functions, after those that say which copy of a local it is (``copy``)."""

    array: str
    local: bool
    copy: tuple[Any, ...]
    element: tuple[Any, ...]
    writes: bool
    time: Time


class Statement(Struct, frozen=True):
    """One write with the reads that it is computed from, in the order of ``shape``; the write is the last.

    ``ranges`` are the loops' alone, ``domain`` with conditions; both are isl sets of parameter values.
    """

    shape: object
    accesses: tuple[Access, ...]
    values: tuple[Any, ...]
    loops: tuple[Loop, ...]
    ranges: Any
    domain: Any


class Dataflow(Struct, frozen=True):
    """A program's statements; ``context`` is what holds of the parameters."""

    statements: tuple[Statement, ...]
    context: Any


def dataflow(program: ir.Program, fixed: Mapping[str, int], tag: str) -> Dataflow:
    """Return the statements of a program under ``fixed`` parameters.  Raises ``NotAffineError``."""
    return _Reader(program, fixed, tag).read()


class _Data(Struct, frozen=True):
    """A value that is computed from memory: its shape, reads and integer operands."""

    shape: object
    reads: tuple[Access, ...] = ()
    values: tuple[Any, ...] = ()


class _Cell(Struct, frozen=True):
    """A local that is memory: its name here, and the loops around its declaration."""

    name: str
    loops: tuple[Loop, ...]


class _Reader:
    def __init__(self, program: ir.Program, fixed: Mapping[str, int], tag: str) -> None:
        self._program = program
        self._fixed = fixed
        self._tag = tag
        self._affine = AffineScope(kept_within(program, program_facts(program)))
        """Its names also hold ``_Data`` and ``_Cell``s, and ``None`` for what has no value yet."""
        self._loops: list[Loop] = []
        self._time: list[int | Loop] = []
        self._context = self._affine.domain
        self._ranges = self._affine.domain
        self._statements: list[Statement] = []
        self._count = 0
        self._assigned = _assigned(program.body)
        self._own: dict[str, tuple[Loop, ...]] = {}

    def read(self) -> Dataflow:
        program = self._program
        for parameter in program.parameters:
            if parameter.name in self._fixed:
                self._affine.names[parameter.name] = {(): self._affine.constant(self._fixed[parameter.name])}
            else:
                value = self._affine.symbols[parameter.name] = self._affine.symbol(parameter.name)
                self._affine.names[parameter.name] = {(): value}
                self._context = self._context.intersect(value.ge_set(self._affine.constant(0)))
                greatest = self._affine.constant(parameter.type.greatest)
                self._context = self._context.intersect(value.le_set(greatest))
        for value_argument in program.values:
            self._affine.names[value_argument.name] = _Data(("value", value_argument.name))
        self._affine.domain = self._ranges = self._context
        for derived in program.derived:
            self._affine.names[derived.name] = self._affine.known(derived.definition, derived.type)
        for assumption in program.assumptions:
            try:
                self._context = self._context.intersect(self._affine.condition(assumption))
            except NotAffineError:
                continue  # one premise less
        self._affine.domain = self._ranges = self._context
        for loop in program.grid:
            self._enter(loop.var, LoopKind.GRID, self._affine.constant(0), self._affine.value(loop.extent), 1)
        self._body(program.body)
        return Dataflow(tuple(self._statements), self._context)

    # --- data ---------------------------------------------------------------------------------------------------

    def _data(self, expr: ir.Expr) -> _Data:
        if expr.type.integer and not any(isinstance(part, ir.Element | ir.Call) for part in ir.walk_expression(expr)):
            parts = self._affine.known(expr)
            if parts is not None:
                return _Data(("integer", expr.type, tuple(parts)), (), tuple(parts.values()))
        match expr:
            case ir.Element():
                return _Data(("read", expr.array), (self._access(expr, writes=False),))
            case ir.Var(name=name):
                known = self._affine.names.get(name)
                if isinstance(known, _Data):
                    return known
                if isinstance(known, _Cell):
                    return _Data(("local",), (self._local(known, writes=False),))
                raise NotAffineError(f"{name} is not determined by parameters and loop variables")
            case ir.FloatConst(text=text, type=type_):
                return _Data(("constant", text, type_))
            case ir.Unary(op=op, operand=operand):
                return self._joined((op, expr.type), operand)
            case ir.Cast(type=type_, operand=operand):
                return self._joined(("cast", type_), operand)
            case ir.Binary(op=op, left=left, right=right):
                return self._joined((op, expr.type), left, right)
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                return self._joined(("?", expr.type), condition, then, otherwise)
            case ir.Call(name=name, arguments=arguments):
                return self._joined(("call", name, expr.type), *arguments)
            case ir.IntConst():
                raise AssertionError("constants are integers")

    def _joined(self, mark: tuple[object, ...], *operands: ir.Expr) -> _Data:
        parts = [self._data(operand) for operand in operands]
        return _Data(
            (*mark, *((operand.type, part.shape) for operand, part in zip(operands, parts, strict=True))),
            tuple(read for part in parts for read in part.reads),
            tuple(value for part in parts for value in part.values),
        )

    def _now(self) -> Time:
        self._count += 1
        return (*self._time, self._count)

    def _access(self, element: ir.Element, *, writes: bool) -> Access:
        coordinates: list[Any] = []
        for index in element.indices:
            if any(isinstance(part, ir.Element) for part in ir.walk_expression(index)):
                raise NotAffineError(f"an index of {element.array} is read from memory")
            coordinates += self._affine.coordinates(index)
        copy = tuple(self._affine.symbol(loop.symbol) for loop in self._own.get(element.array, ()))
        local = element.array in self._own
        return Access(element.array, local, copy, tuple(coordinates), writes, self._now())

    def _local(self, cell: _Cell, *, writes: bool) -> Access:
        copy = tuple(self._affine.symbol(loop.symbol) for loop in cell.loops)
        return Access(cell.name, True, copy, (), writes, self._now())

    # --- statements ---------------------------------------------------------------------------------------------

    def _enter(self, name: str, kind: LoopKind, low: Any, high: Any, step: int) -> None:
        self._count += 1
        loop = Loop(f"{self._tag}{self._count}_{name}", name, kind)
        value = self._affine.symbol(loop.symbol)
        inside = value.ge_set(low).intersect(value.lt_set(high))
        if step > 1:
            inside = inside.intersect(value.sub(low).mod_val(step).eq_set(self._affine.constant(0)))
        self._loops.append(loop)
        self._time.append(loop)
        self._affine.names[name] = {(): value}
        self._ranges = self._ranges.intersect(inside)
        self._affine.domain = self._affine.domain.intersect(inside)

    def _body(self, body: Sequence[ir.Stmt]) -> None:
        names = dict(self._affine.names)
        for position, stmt in enumerate(body):
            self._time.append(position)
            self._statement(stmt)
            self._time.pop()
        self._affine.names = names

    def _statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Declare():
                self._declare(stmt)
            case ir.Assign(atomic=True):
                raise NotAffineError("atomic updates have no order")
            case ir.Assign(target=target, op=op, value=value):
                self._write(target, ir.binary(op, target, value) if op else value)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                if any(isinstance(part, ir.Element) for part in ir.walk_expression(condition)):
                    raise NotAffineError("a condition reads memory")
                holds, before = self._affine.condition(condition), self._affine.domain
                for number, (where, body) in enumerate(
                    ((before.intersect(holds), then), (before.subtract(holds), otherwise))
                ):
                    self._affine.domain = where
                    self._time.append(number)
                    self._body(body)
                    self._time.pop()
                self._affine.domain = before
            case ir.For():
                self._for(stmt)
            case ir.Phase(threads=threads, body=body):
                saved = (self._affine.domain, self._ranges, dict(self._affine.names), len(self._loops), len(self._time))
                for loop in threads:
                    self._enter(loop.var, LoopKind.THREAD, self._affine.constant(0), self._affine.value(loop.extent), 1)
                self._body(body)
                self._affine.domain, self._ranges, self._affine.names = saved[:3]
                del self._loops[saved[3] :], self._time[saved[4] :]
            case ir.BlockArray(array=array) | ir.PrivateArray(array=array):
                self._own[array.name] = tuple(self._loops)
            case ir.While() | ir.Break() | ir.Continue() | ir.Barrier():
                raise NotAffineError(f"a {type(stmt).__name__.lower()} has no affine domain")

    def _declare(self, stmt: ir.Declare) -> None:
        if stmt.name in self._assigned:
            self._count += 1
            self._affine.names[stmt.name] = _Cell(f"{stmt.name} {self._count}", tuple(self._loops))
            if stmt.value is not None:
                self._write(ir.Var(stmt.name, stmt.type), stmt.value)
            return
        if stmt.value is None:
            self._affine.names[stmt.name] = None
            return
        known = self._affine.known(stmt.value, stmt.type)
        if known is None:
            value = stmt.value if stmt.value.type == stmt.type else ir.Cast(stmt.type, stmt.value)
            self._affine.names[stmt.name] = self._data(value)
        else:
            self._affine.names[stmt.name] = known

    def _write(self, target: ir.Var | ir.Element, value: ir.Expr) -> None:
        data = self._data(value if value.type == target.type else ir.Cast(target.type, value))
        if isinstance(target, ir.Element):
            write, mark = self._access(target, writes=True), target.array
        else:
            cell = self._affine.names.get(target.name)
            if not isinstance(cell, _Cell):
                raise NotAffineError(f"{target.name} is assigned")
            write, mark = self._local(cell, writes=True), ""
        self._statements.append(
            Statement(
                (mark, data.shape),
                (*data.reads, write),
                data.values,
                tuple(self._loops),
                self._ranges,
                self._affine.domain,
            )
        )

    def _for(self, loop: ir.For) -> None:
        match loop:
            case ir.For(
                init=ir.Declare(name=name, type=type_, value=start)
                | ir.Assign(target=ir.Var(name=name, type=type_), op="", value=start),
                condition=ir.Binary(op=("<" | "<=") as op, left=ir.Var(name=tested), right=limit),
                step=ir.Assign(target=ir.Var(name=stepped), op="+", value=by),
            ) if start is not None and name == tested == stepped and name not in _assigned(loop.body):
                compared = common_type(type_, limit.type)
                low = self._affine.known(ir.Cast(type_, start), compared)
                high, width = self._affine.known(limit, compared), self._affine.known(by)
                if low and high and width and all(set(part) == {()} for part in (low, high, width)):
                    number = number_of(width[()])
                    if number is not None and number >= 1:
                        end = high[()] if op == "<" else high[()].add(self._affine.constant(1))
                        self._counted(loop, name, low[()], end, number)
                        return
        self._unrolled(loop)

    def _counted(self, loop: ir.For, name: str, low: Any, high: Any, step: int) -> None:
        saved = (self._affine.domain, self._ranges, dict(self._affine.names))
        kind = LoopKind.SERIAL if any(one.kind is LoopKind.THREAD for one in self._loops) else LoopKind.BLOCK
        self._enter(name, kind, low, high, step)
        self._body(loop.body)
        self._loops.pop()
        self._time.pop()
        self._affine.domain, self._ranges, self._affine.names = saved
        if not isinstance(loop.init, ir.Declare):
            self._affine.names[name] = None

    def _unrolled(self, loop: ir.For) -> None:
        """Play through a loop whose variable takes values that are known numbers, whatever its step."""
        init, condition, step = loop.init, loop.condition, loop.step
        if not isinstance(init, ir.Declare) or init.value is None or condition is None or step is None:
            raise NotAffineError("a loop is not counted")
        if not isinstance(step.target, ir.Var) or step.target.name != init.name or init.name in _assigned(loop.body):
            raise NotAffineError("a loop is not counted")
        names = dict(self._affine.names)
        value = self._affine.value(init.value)
        for number in range(MOST_UNROLLED):
            self._affine.names[init.name] = {(): value}
            holds = self._affine.condition(condition)
            if self._affine.domain.intersect(holds).is_empty():
                self._affine.names = names
                return
            if not is_number(value) or not self._affine.domain.is_subset(holds):
                break
            self._time.append(number)
            self._body(loop.body)
            self._time.pop()
            value = self._affine.value(ir.binary(step.op, step.target, step.value) if step.op else step.value)
        raise NotAffineError("a loop is not counted, and how often it runs depends on more than fixed numbers")


def _assigned(body: Sequence[ir.Stmt]) -> frozenset[str]:
    """Return the scalars that are assigned otherwise than by the heads of their own loops."""
    heads: set[int] = set()
    for stmt in ir.walk_statements(tuple(body)):
        if isinstance(stmt, ir.For):
            heads |= {id(clause) for clause in (stmt.init, stmt.step) if isinstance(clause, ir.Assign)}
    return frozenset(
        stmt.target.name
        for stmt in ir.walk_statements(tuple(body))
        if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Var) and id(stmt) not in heads
    )
