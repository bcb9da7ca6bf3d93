"""A program as isl sees it: every statement that writes memory, with its domain, its order and what it touches.

Some parameters are fixed to numbers (those of the block shape, which multiply loop variables otherwise); the others
stay symbols, and loop variables are parameters of isl too, each with a tag, so that two programs, or two instances of
one, stand in one space.  Integer expressions become piecewise quasi-affine functions: divisions by numbers are exact.

Data are not looked at: a statement's ``shape`` is its value with every access replaced by a mark; two statements with
equal shapes that read equal elements compute the same.  Locals that are declared once and never assigned give way to
their values; others are memory of their own, one cell for each run of their declaration.  An index ``i*N + j`` with a
symbolic factor counts as the two coordinates ``i`` and ``j`` where ``0 <= j < N`` holds throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

from metafork.ir import (
    Assign,
    Barrier,
    Binary,
    BlockArray,
    Break,
    Call,
    Cast,
    Conditional,
    Continue,
    Declare,
    Element,
    Expr,
    FloatConst,
    For,
    If,
    IntConst,
    Phase,
    Program,
    Stmt,
    Unary,
    Var,
    While,
    binary,
    walk_expression,
    walk_statements,
)
from metafork.references import LoopKind

MOST_UNROLLED = 64
"""Iterations of a loop with known numbers, whatever its step, that are taken apart."""
FEW = 4
"""A variable of so many values, from 0, may multiply a symbol: value by value."""


class NotAffineError(Exception):
    """The program is outside of what isl can say; the message names what stands in the way."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop variable: isl's name of it, the program's, and where the loop stands."""

    symbol: str
    name: str
    kind: LoopKind


Time = tuple[int | Loop, ...]
"""When something happens: places in bodies and loop variables, outermost first."""


@dataclass(frozen=True, slots=True)
class Access:
    """One access: the element as isl functions, after those that say which copy of a local it is (``copy``)."""

    array: str
    local: bool
    copy: tuple[Any, ...]
    element: tuple[Any, ...]
    writes: bool
    time: Time


@dataclass(frozen=True, slots=True)
class Statement:
    """One write with the reads that it is computed from, in the order of ``shape``; the write is the last.

    ``ranges`` are the loops' alone, ``domain`` with conditions; both are isl sets of parameter values.
    """

    shape: object
    accesses: tuple[Access, ...]
    values: tuple[Any, ...]
    loops: tuple[Loop, ...]
    ranges: Any
    domain: Any


@dataclass(frozen=True, slots=True)
class Dataflow:
    """A program's statements; ``context`` is what holds of the parameters."""

    statements: tuple[Statement, ...]
    context: Any


def dataflow(program: Program, fixed: Mapping[str, int], tag: str) -> Dataflow:
    """Return the statements of a program under ``fixed`` parameters.  Raises ``NotAffineError``."""
    return _Reader(program, fixed, tag).read()


@dataclass(frozen=True, slots=True)
class _Data:
    """A value that is computed from memory: its shape, reads and integer operands."""

    shape: object
    reads: tuple[Access, ...] = ()
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class _Cell:
    """A local that is memory: its name here, and the loops around its declaration."""

    name: str
    loops: tuple[Loop, ...]


_Parts = dict[tuple[str, ...], Any]
"""An integer value: under each product of symbolic parameters what it is a factor of; the affine part under none."""


class _Reader:
    def __init__(self, program: Program, fixed: Mapping[str, int], tag: str) -> None:
        import islpy as isl  # the border to the untyped library; imported where it is first needed

        self._isl = isl
        self._program = program
        self._fixed = fixed
        self._tag = tag
        self._names: dict[str, _Parts | _Data | _Cell | None] = {}
        self._symbols: dict[str, Any] = {}
        self._loops: list[Loop] = []
        self._time: list[int | Loop] = []
        self._true = isl.Set("{ : }")
        self._context = self._true
        self._ranges = self._true
        self._domain = self._true
        self._statements: list[Statement] = []
        self._count = 0
        self._assigned = _assigned(program.body)
        self._own: dict[str, tuple[Loop, ...]] = {}

    def read(self) -> Dataflow:
        program = self._program
        for parameter in program.parameters:
            if parameter.name in self._fixed:
                self._names[parameter.name] = {(): self._constant(self._fixed[parameter.name])}
            else:
                value = self._symbols[parameter.name] = self._symbol(parameter.name)
                self._names[parameter.name] = {(): value}
                self._context = self._context.intersect(value.ge_set(self._constant(0)))
        for value_argument in program.values:
            self._names[value_argument.name] = _Data(("value", value_argument.name))
        self._domain = self._ranges = self._context
        for derived in program.derived:
            self._names[derived.name] = self._known(derived.definition)
        for assumption in program.assumptions:
            try:
                self._context = self._context.intersect(self._condition(assumption))
            except NotAffineError:
                continue  # one premise less
        self._domain = self._ranges = self._context
        for loop in program.grid:
            self._enter(loop.var, LoopKind.GRID, self._constant(0), self._value(loop.extent), 1)
        self._body(program.body)
        return Dataflow(tuple(self._statements), self._context)

    # --- integers -----------------------------------------------------------------------------------------------

    def _constant(self, value: int) -> Any:
        return self._isl.PwAff(f"{{ [({value})] }}")

    def _symbol(self, name: str) -> Any:
        return self._isl.PwAff(f"[{name}] -> {{ [({name})] }}")

    def _known(self, expr: Expr) -> _Parts | None:
        try:
            return self._parts(expr)
        except NotAffineError:
            return None

    def _value(self, expr: Expr) -> Any:
        return _plain(self._parts(expr), expr)

    def _parts(self, expr: Expr) -> _Parts:
        match expr:
            case IntConst(value=value):
                return {(): self._constant(value)}
            case Var(name=name, type=type_) if type_.integer:
                known = self._names.get(name)
                if isinstance(known, dict):
                    return known
                raise NotAffineError(f"{name} is not determined by parameters and loop variables")
            case Unary(op="+", operand=operand):
                return self._parts(operand)
            case Unary(op="-", operand=operand):
                return {factor: part.neg() for factor, part in self._parts(operand).items()}
            case Cast(type=type_, operand=operand) if type_.integer and operand.type.integer and type_.size >= 4:
                return self._parts(operand)
            case Conditional(condition=condition, then=then, otherwise=otherwise) if expr.type.integer:
                holds = self._condition(condition)
                first = self._value(then).intersect_domain(holds)
                return {(): first.union_add(self._value(otherwise).intersect_domain(holds.complement()))}
            case Binary(op=("+" | "-") as op, left=left, right=right) if expr.type.integer:
                if op == "-" and not expr.type.signed:
                    raise NotAffineError("a difference of unsigned values wraps")
                first_parts, second_parts = self._parts(left), self._parts(right)
                zero = self._constant(0)
                result = {}
                for factor in sorted({*first_parts, *second_parts}):
                    one, other = first_parts.get(factor, zero), second_parts.get(factor, zero)
                    result[factor] = one.add(other) if op == "+" else one.sub(other)
                return result
            case Binary(op="*", left=left, right=right) if expr.type.integer:
                return self._product(self._parts(left), self._parts(right))
            case Binary(op=("/" | "%") as op, left=left, right=right) if expr.type.integer:
                return {(): self._quotient(op, self._value(left), self._value(right))}
        raise NotAffineError(f"{_spelled(expr)} is not affine")

    def _product(self, left: _Parts, right: _Parts) -> _Parts:
        for one, other in ((left, right), (right, left)):
            if set(other) == {()} and _is_number(other[()]):
                return {factor: part.mul(other[()]) for factor, part in one.items()}
        for one, other in ((left, right), (right, left)):
            factor = next((n for n, s in self._symbols.items() if other.keys() == {()} and s.is_equal(other[()])), None)
            if factor is not None:
                moved = {tuple(sorted((*key, factor))): part for key, part in one.items()}
                return {(): self._constant(0), **moved}
        for one, other in ((left, right), (right, left)):
            if one.keys() == other.keys() == {()} and self._few_values(one[()]):
                pieces = [
                    other[()].mul(self._constant(number)).intersect_domain(one[()].eq_set(self._constant(number)))
                    for number in range(FEW)
                ]
                return {(): reduce(lambda first, second: first.union_add(second), pieces)}
        raise NotAffineError("a product of two variables is not affine")

    def _few_values(self, value: Any) -> bool:
        inside = value.ge_set(self._constant(0)).intersect(value.lt_set(self._constant(FEW)))
        return bool(self._domain.is_subset(inside))

    def _quotient(self, op: str, left: Any, right: Any) -> Any:
        if not _is_number(right) or not right.gt_set(self._constant(0)).intersect(self._domain).is_equal(self._domain):
            raise NotAffineError("a divisor is no positive number")
        if self._domain.is_subset(left.ge_set(self._constant(0))):
            quotient = left.div(right).floor()
        else:
            quotient = left.tdiv_q(right)
        return quotient if op == "/" else left.sub(quotient.mul(right))

    def _condition(self, expr: Expr) -> Any:
        match expr:
            case Unary(op="!", operand=operand):
                return self._condition(operand).complement()
            case Binary(op="&&", left=left, right=right):
                return self._condition(left).intersect(self._condition(right))
            case Binary(op="||", left=left, right=right):
                return self._condition(left).union(self._condition(right))
            case Binary(op=("<" | "<=" | ">" | ">=" | "==" | "!=") as op, left=left, right=right):
                if not (left.type.integer and right.type.integer):
                    raise NotAffineError("a condition depends on data")
                if left.type.signed != right.type.signed:
                    raise NotAffineError("a comparison of signed with unsigned")
                first, second = self._value(left), self._value(right)
                names = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
                return getattr(first, f"{names[op]}_set")(second)
            case _:
                return self._value(expr).ne_set(self._constant(0))

    # --- data ---------------------------------------------------------------------------------------------------

    def _data(self, expr: Expr) -> _Data:
        if expr.type.integer and not any(isinstance(part, Element | Call) for part in walk_expression(expr)):
            parts = self._known(expr)
            if parts is not None:
                return _Data(("integer", expr.type, tuple(parts)), (), tuple(parts.values()))
        match expr:
            case Element():
                return _Data(("read", expr.array), (self._access(expr, writes=False),))
            case Var(name=name):
                known = self._names.get(name)
                if isinstance(known, _Data):
                    return known
                if isinstance(known, _Cell):
                    return _Data(("local",), (self._local(known, writes=False),))
                raise NotAffineError(f"{name} is not determined by parameters and loop variables")
            case FloatConst(text=text, type=type_):
                return _Data(("constant", text, type_))
            case Unary(op=op, operand=operand):
                return self._joined((op, expr.type), operand)
            case Cast(type=type_, operand=operand):
                return self._joined(("cast", type_), operand)
            case Binary(op=op, left=left, right=right):
                return self._joined((op, expr.type), left, right)
            case Conditional(condition=condition, then=then, otherwise=otherwise):
                return self._joined(("?", expr.type), condition, then, otherwise)
            case Call(name=name, arguments=arguments):
                return self._joined(("call", name, expr.type), *arguments)
            case IntConst():
                raise AssertionError("constants are integers")

    def _joined(self, mark: tuple[object, ...], *operands: Expr) -> _Data:
        parts = [self._data(operand) for operand in operands]
        return _Data(
            (*mark, *((operand.type, part.shape) for operand, part in zip(operands, parts, strict=True))),
            tuple(read for part in parts for read in part.reads),
            tuple(value for part in parts for value in part.values),
        )

    def _now(self) -> Time:
        self._count += 1
        return (*self._time, self._count)

    def _access(self, element: Element, *, writes: bool) -> Access:
        coordinates: list[Any] = []
        for index in element.indices:
            if any(isinstance(part, Element) for part in walk_expression(index)):
                raise NotAffineError(f"an index of {element.array} is read from memory")
            coordinates += self._coordinates(self._parts(index), index)
        copy = tuple(self._symbol(loop.symbol) for loop in self._own.get(element.array, ()))
        local = element.array in self._own
        return Access(element.array, local, copy, tuple(coordinates), writes, self._now())

    def _coordinates(self, parts: _Parts, index: Expr) -> list[Any]:
        """Split ``(x*N1 + y)*N2 + z`` into x, y, z, where ``0 <= y < N1`` and ``0 <= z < N2`` throughout."""
        products = sorted(parts, key=len)
        coordinates = [parts[products[-1]]]
        for whole, rest in reversed(list(pairwise(products))):
            names = list(rest)
            for name in whole:
                if name in names:
                    names.remove(name)
            if len(rest) != len(whole) + 1 or len(names) != 1:
                break
            digit = parts[whole]
            inside = digit.ge_set(self._constant(0)).intersect(digit.lt_set(self._symbols[names[0]]))
            if not self._domain.is_subset(inside):
                break
            coordinates.append(digit)
        if len(coordinates) == len(products):
            return coordinates
        raise NotAffineError(f"{_spelled(index)} does not split into rows and columns")

    def _local(self, cell: _Cell, *, writes: bool) -> Access:
        copy = tuple(self._symbol(loop.symbol) for loop in cell.loops)
        return Access(cell.name, True, copy, (), writes, self._now())

    # --- statements ---------------------------------------------------------------------------------------------

    def _enter(self, name: str, kind: LoopKind, low: Any, high: Any, step: int) -> None:
        self._count += 1
        loop = Loop(f"{self._tag}{self._count}_{name}", name, kind)
        value = self._symbol(loop.symbol)
        inside = value.ge_set(low).intersect(value.lt_set(high))
        if step > 1:
            inside = inside.intersect(value.sub(low).mod_val(step).eq_set(self._constant(0)))
        self._loops.append(loop)
        self._time.append(loop)
        self._names[name] = {(): value}
        self._ranges = self._ranges.intersect(inside)
        self._domain = self._domain.intersect(inside)

    def _body(self, body: Sequence[Stmt]) -> None:
        names = dict(self._names)
        for position, stmt in enumerate(body):
            self._time.append(position)
            self._statement(stmt)
            self._time.pop()
        self._names = names

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Declare():
                self._declare(stmt)
            case Assign(target=target, op=op, value=value):
                self._write(target, binary(op, target, value) if op else value)
            case If(condition=condition, then=then, otherwise=otherwise):
                if any(isinstance(part, Element) for part in walk_expression(condition)):
                    raise NotAffineError("a condition reads memory")
                holds, before = self._condition(condition), self._domain
                for number, (where, body) in enumerate(
                    ((before.intersect(holds), then), (before.subtract(holds), otherwise))
                ):
                    self._domain = where
                    self._time.append(number)
                    self._body(body)
                    self._time.pop()
                self._domain = before
            case For():
                self._for(stmt)
            case Phase(threads=threads, body=body):
                saved = (self._domain, self._ranges, dict(self._names), len(self._loops), len(self._time))
                for loop in threads:
                    self._enter(loop.var, LoopKind.THREAD, self._constant(0), self._value(loop.extent), 1)
                self._body(body)
                self._domain, self._ranges, self._names = saved[:3]
                del self._loops[saved[3] :], self._time[saved[4] :]
            case BlockArray(array=array):
                self._own[array.name] = tuple(self._loops)
            case While() | Break() | Continue() | Barrier():
                raise NotAffineError(f"a {type(stmt).__name__.lower()} has no affine domain")

    def _declare(self, stmt: Declare) -> None:
        if stmt.name in self._assigned:
            self._count += 1
            self._names[stmt.name] = _Cell(f"{stmt.name} {self._count}", tuple(self._loops))
            if stmt.value is not None:
                self._write(Var(stmt.name, stmt.type), stmt.value)
            return
        if stmt.value is None:
            self._names[stmt.name] = None
            return
        same = stmt.type == stmt.value.type or (stmt.type.integer and stmt.value.type.integer and stmt.type.size >= 4)
        known = self._known(stmt.value) if stmt.type.integer and same else None
        if known is None:
            value = stmt.value if stmt.value.type == stmt.type else Cast(stmt.type, stmt.value)
            self._names[stmt.name] = self._data(value)
        else:
            self._names[stmt.name] = known

    def _write(self, target: Var | Element, value: Expr) -> None:
        data = self._data(value if value.type == target.type else Cast(target.type, value))
        if isinstance(target, Element):
            write, mark = self._access(target, writes=True), target.array
        else:
            cell = self._names.get(target.name)
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
                self._domain,
            )
        )

    def _for(self, loop: For) -> None:
        match loop:
            case For(
                init=Declare(name=name, value=start) | Assign(target=Var(name=name), op="", value=start),
                condition=Binary(op=("<" | "<=") as op, left=Var(name=tested), right=limit),
                step=Assign(target=Var(name=stepped), op="+", value=by),
            ) if start is not None and name == tested == stepped and name not in _assigned(loop.body):
                low, high, width = self._known(start), self._known(limit), self._known(by)
                if low and high and width and all(set(part) == {()} for part in (low, high, width)):
                    number = _number(width[()])
                    if number is not None and number >= 1:
                        end = high[()] if op == "<" else high[()].add(self._constant(1))
                        self._counted(loop, name, low[()], end, number)
                        return
        self._unrolled(loop)

    def _counted(self, loop: For, name: str, low: Any, high: Any, step: int) -> None:
        saved = (self._domain, self._ranges, dict(self._names))
        kind = LoopKind.SERIAL if any(one.kind is LoopKind.THREAD for one in self._loops) else LoopKind.BLOCK
        self._enter(name, kind, low, high, step)
        self._body(loop.body)
        self._loops.pop()
        self._time.pop()
        self._domain, self._ranges, self._names = saved
        if not isinstance(loop.init, Declare):
            self._names[name] = None

    def _unrolled(self, loop: For) -> None:
        """Play through a loop whose variable takes values that are known numbers, whatever its step."""
        init, condition, step = loop.init, loop.condition, loop.step
        if not isinstance(init, Declare) or init.value is None or condition is None or step is None:
            raise NotAffineError("a loop is not counted")
        if not isinstance(step.target, Var) or step.target.name != init.name or init.name in _assigned(loop.body):
            raise NotAffineError("a loop is not counted")
        names = dict(self._names)
        value = self._value(init.value)
        for number in range(MOST_UNROLLED):
            self._names[init.name] = {(): value}
            holds = self._condition(condition)
            if self._domain.intersect(holds).is_empty():
                self._names = names
                return
            if not _is_number(value) or not self._domain.is_subset(holds):
                break
            self._time.append(number)
            self._body(loop.body)
            self._time.pop()
            value = self._value(binary(step.op, step.target, step.value) if step.op else step.value)
        raise NotAffineError("a loop is not counted, and how often it runs depends on more than fixed numbers")


def _assigned(body: Sequence[Stmt]) -> frozenset[str]:
    """Return the scalars that are assigned otherwise than by the heads of their own loops."""
    heads: set[int] = set()
    for stmt in walk_statements(tuple(body)):
        if isinstance(stmt, For):
            heads |= {id(clause) for clause in (stmt.init, stmt.step) if isinstance(clause, Assign)}
    return frozenset(
        stmt.target.name
        for stmt in walk_statements(tuple(body))
        if isinstance(stmt, Assign) and isinstance(stmt.target, Var) and id(stmt) not in heads
    )


def _plain(parts: _Parts, expr: Expr) -> Any:
    if parts.keys() != {()}:
        raise NotAffineError(f"{_spelled(expr)} has a product of a variable and a symbolic parameter")
    return parts[()]


def _number(value: Any) -> int | None:
    """Return the number that a function is everywhere, ``None`` where it is no number."""
    if not value.is_cst() or value.n_piece() != 1:
        return None
    _, function = value.get_pieces()[0]
    constant = function.get_constant_val()
    return int(constant.to_python()) if constant.is_int() else None


def _is_number(value: Any) -> bool:
    return _number(value) is not None


def _spelled(expr: Expr) -> str:
    from metafork.expression_text import expression

    return f"`{expression(expr)}`"
