"""Accesses whose index chooses between values, each value as an access of its own: to find out what they touch.

``before --> after``::

    int up = i == 0 ? 0 : i - 1;
    s += c ? a[up] : 1;
    -->
    if (c) if (i == 0) float probe = a[0]; else float probe = a[i - 1];
    s += c ? unknown : 1;

The program behind it, which is not to be run, touches the same elements in the same iterations.  Locals are written out
that are set once, or changed behind that, ``l = l < 0 ? 0 : l;``, ``if (l < 0) l += m;``, with or without an ``else``.
What an index reads is a local of its own: ``a[at[i]]`` becomes ``int r = at[i]; a[r]``.  ``do S while (c)`` becomes
``S`` and ``while (c) S``; a condition of a loop that reads stands in front of it, too: it is tested whether there are
iterations or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.analysis.references import left_early
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import arrays_read, fresh_name, map_expression, names_of, substitute

MOST_WRITTEN_OUT = 100
"""Operands and operations of the longest value of a local that is written out."""


class _Cases(Struct):
    arrays: Collection[str]
    taken: set[str]
    assigned: Mapping[str, int]
    probes: list[ir.Stmt] = field(default_factory=list)
    reads: list[ir.Stmt] = field(default_factory=list)

    def fresh(self, name: str) -> str:
        name = fresh_name(name, self.taken)
        self.taken.add(name)
        return name

    def body(self, body: tuple[ir.Stmt, ...], known: Mapping[str, ir.Expr]) -> tuple[ir.Stmt, ...]:
        result: list[ir.Stmt] = []
        known = dict(known)
        changes: Counter[str] = Counter()
        for again in map(_change, body):
            if again is not None:
                changes[again.local.name] += again.assignments
        for stmt in body:
            changed = self.statement(stmt, known)
            result += [*self.probes, *changed]
            self.probes.clear()
            again = _change(stmt)
            if again is not None and again.local.name in known:
                known |= self.kept(again.local.name, substitute(again.value, known))
            elif isinstance(stmt, ir.Declare) and self.assigned[stmt.name] == 1 + changes[stmt.name]:
                value = self.unknown(stmt.type) if stmt.value is None else stmt.value
                known |= self.kept(stmt.name, _as(stmt.type, substitute(value, known)))
            result += self.reads
            self.reads.clear()
        return tuple(result)

    def kept(self, name: str, value: ir.Expr) -> Mapping[str, ir.Expr]:
        """Return what a local is: its value, where that is short and of what stays; what it reads, by locals."""
        value = map_expression(value, lambda part: self.any(part.type) if _reads(part) else None)
        parts = list(ir.walk_expression(value))
        stays = all(self.assigned[one.name] <= 1 for one in parts if isinstance(one, ir.Var))
        return {name: value if stays and len(parts) <= MOST_WRITTEN_OUT else self.unknown(value.type)}

    def any(self, type_: ScalarType) -> ir.Var:
        """Return a local behind the statement that may have any value of its type, and keeps it."""
        local = ir.Declare(self.fresh("read"), type_, self.unknown(type_))
        self.reads.append(local)
        return ir.Var(local.name, type_)

    def unknown(self, type_: ScalarType) -> ir.Var:
        """Return a value of which nothing is known."""
        return ir.Var(self.fresh("unknown"), type_)

    def statement(self, stmt: ir.Stmt, known: Mapping[str, ir.Expr]) -> tuple[ir.Stmt, ...]:
        """Return a statement without the accesses that have several forms; those are put down as probes."""
        read = partial(self.read, known=known)
        match stmt:
            case ir.Declare(type=type_, value=ir.Element(type=narrow) as value) if (
                narrow is not type_ and narrow.integer
            ):
                first = ir.Declare(self.fresh("read"), narrow, read(value))  # it is bounded by its own type
                return first, replace(stmt, value=ir.Var(first.name, narrow))
            case ir.Declare(value=value):
                return (stmt if value is None else replace(stmt, value=read(value)),)
            case ir.Assign(target=target, value=value):
                written = read(target)
                assert isinstance(written, ir.Var | ir.Element)
                return (replace(stmt, target=written, value=read(value)),)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                condition = read(condition)
                before, self.probes = self.probes, []
                stmt = replace(stmt, condition=condition, then=self.body(then, known))
                stmt = replace(stmt, otherwise=self.body(otherwise, known))
                self.probes = before
                return (stmt,)
            case ir.While(condition=ir.IntConst(), body=(*first, ir.If(condition=ends, then=(ir.Break(),)))) if not (
                left_early(tuple(first))
            ):
                again = ir.While(ir.Unary("!", ends, ir.INT), tuple(first))
                return (*self.body(tuple(first), known), replace(again, body=self.body(again.body, known)))
            case ir.For(body=inner) | ir.While(body=inner) | ir.Phase(body=inner):
                tests = [one for test in self.first_test(stmt) for one in self.statement(test, known)]
                before, self.probes = self.probes, []
                stmt = replace(stmt, body=self.body(inner, known))
                self.probes = before
                return (*tests, stmt)
            case ir.Break() | ir.Continue() | ir.Barrier() | ir.BlockArray() | ir.PrivateArray():
                return (stmt,)
            case _:
                assert_never(stmt)

    def first_test(self, loop: ir.For | ir.While | ir.Phase) -> Iterator[ir.Stmt]:
        """Yield a read of the condition of a loop as it is in front of it, if pointers are read there."""
        condition = None if isinstance(loop, ir.Phase) else loop.condition
        if condition is None or not arrays_read(condition) & {*self.arrays}:
            return
        match loop:
            case ir.For(init=ir.Declare(name=name, type=type_, value=value)) if value is not None:
                condition = substitute(condition, {name: _as(type_, value)})
            case ir.For(init=ir.Assign(target=ir.Var(name=name, type=type_), op="", value=value)):
                condition = substitute(condition, {name: _as(type_, value)})
            case ir.For(init=init) if init is not None:
                return
            case _:
                pass
        yield ir.Declare(self.fresh("probe"), condition.type, condition)

    def read(self, expr: ir.Expr, known: Mapping[str, ir.Expr], where: tuple[ir.Expr, ...] = ()) -> ir.Expr:
        """Return an expression without the accesses that have several forms; it is evaluated ``where`` these hold."""

        def changed(part: ir.Expr) -> ir.Expr | None:
            match part:
                case ir.Element():
                    return self.probed(part, known, where)
                case ir.Binary(op="&&" | "||", left=left, right=right):
                    holds = left if part.op == "&&" else ir.Unary("!", left, ir.INT)
                    left = self.read(left, known, where)
                    return replace(part, left=left, right=self.read(right, known, (*where, holds)))
                case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                    return replace(
                        part,
                        condition=self.read(condition, known, where),
                        then=self.read(then, known, (*where, condition)),
                        otherwise=self.read(otherwise, known, (*where, ir.Unary("!", condition, ir.INT))),
                    )
                case _:
                    return None

        return map_expression(expr, changed)

    def probed(self, part: ir.Element, known: Mapping[str, ir.Expr], where: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """Put an access down as a probe where its index has several forms; return what stands in its place then."""
        written = substitute(part, known)
        assert isinstance(written, ir.Element)
        reads = any(_reads(one) for index in part.indices for one in ir.walk_expression(index))
        if part.array not in self.arrays or reads == _has_choices(written.indices[0]):
            return None
        probe = self.with_locals(part, known) if reads else (self.cases(written),)
        for condition in reversed(where):
            probe = (ir.If(condition, probe, ()),)
        self.probes += probe
        return self.unknown(part.type)

    def with_locals(self, element: ir.Element, known: Mapping[str, ir.Expr]) -> tuple[ir.Stmt, ...]:
        """Return an access behind locals that hold what its first index reads."""
        outer, self.probes = self.probes, []

        def local(part: ir.Expr) -> ir.Expr | None:
            if not isinstance(part, ir.Element):
                return None
            name = self.fresh("read")
            self.probes.append(ir.Declare(name, part.type, self.read(part, known)))
            return ir.Var(name, part.type)

        index = map_expression(element.indices[0], local)
        probe = replace(element, indices=(index, *element.indices[1:]))
        before, self.probes = self.probes, outer
        return (*before, ir.Declare(self.fresh("probe"), element.type, probe))

    def cases(self, element: ir.Element) -> ir.Stmt:
        """Return an access under the conditions of the choices in its first index."""
        index, *inner = element.indices
        choices = (one for one in ir.walk_expression(index) if isinstance(one, ir.Conditional))
        choice = next((one for one in choices if not _has_choices(one.condition)), None)
        if choice is None:
            return ir.Declare(self.fresh("probe"), element.type, element)
        then, otherwise = (
            self.cases(replace(element, indices=(map_expression(index, partial(_instead, choice, side)), *inner)))
            for side in (choice.then, choice.otherwise)
        )
        return ir.If(choice.condition, (then,), (otherwise,))


class _Change(Struct, frozen=True):
    """The new value of a local, by means of its old one, and how many assignments give it."""

    local: ir.Var
    value: ir.Expr
    assignments: int


def _change(stmt: ir.Stmt) -> _Change | None:
    """Return what a statement changes of a local, where it does nothing else: ``if (l < 0) l = 0; else l -= 1;``."""
    match stmt:
        case ir.If(condition=condition, then=(only,), otherwise=otherwise) if len(otherwise) <= 1:
            changes = [_change(one) for one in (only, *otherwise)]
            first, second = changes[0], changes[-1]
            if first is None or second is None or first.local.name != second.local.name:
                return None
            other = second.value if otherwise else first.local
            value = ir.Conditional(condition, first.value, other, first.local.type)
            return _Change(first.local, value, sum(one.assignments for one in changes if one is not None))
        case ir.Assign(target=ir.Var() as local, op=op, value=value) if local.type.integer:
            return _Change(local, _as(local.type, ir.binary(op, local, value) if op else value), 1)
        case _:
            return None


def _as(type_: ScalarType, value: ir.Expr) -> ir.Expr:
    return value if value.type is type_ else ir.Cast(type_, value)


def _instead(choice: ir.Expr, side: ir.Expr, part: ir.Expr) -> ir.Expr | None:
    return _as(choice.type, side) if part == choice else None


def _has_choices(expr: ir.Expr) -> bool:
    return any(map(_chooses, ir.walk_expression(expr)))


def _reads(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Element | ir.Call)


def _chooses(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Conditional)


def with_cases(program: ir.Program, arrays: Collection[str]) -> ir.Program:
    """Return a program that touches the elements of some one-dimensional arrays that a program does."""
    assigned: Counter[str] = Counter()

    def count(body: tuple[ir.Stmt, ...]) -> None:
        for stmt in body:
            match stmt:
                case ir.Declare(name=name) | ir.Assign(target=ir.Var(name=name)):
                    assigned[name] += 1
                case ir.If(then=then, otherwise=otherwise):
                    count((*then, *otherwise))
                case ir.For(init=init, body=inner):
                    if isinstance(init, ir.Assign):
                        count((init, init))  # it may have another value in front of the loop
                    count(inner)
                case ir.While(body=inner) | ir.Phase(body=inner):
                    count(inner)
                case _:
                    pass

    count(program.body)
    cases = _Cases(arrays, set(names_of(program)), assigned)
    return replace(program, body=cases.body(program.body, {}))
