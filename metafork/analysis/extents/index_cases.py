"""Accesses whose index has several forms, each as an access of its own: to find out what they may touch, not to run.

``before --> after``::

    int up = i == 0 ? 0 : i - 1, right = (j + 1) % m;
    s += a[up * m + right];
    -->
    for (int turn = 0; turn < m; turn++)
      if (i == 0) float probe = a[0 * m + turn];
      else float probe = a[(i - 1) * m + turn];
    s += 0;

Locals are written out that are set once, or changed behind that, ``l = l < 0 ? 0 : l;``, ``if (l < 0) l += m;``, with
or without an ``else``.  A remainder is any number below the divisor, and a choice is either side under its condition;
what else decides whether the access is made is left out, so that more may be touched, never less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial
from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import fresh_name, map_expression, names_of, substitute

MOST_WRITTEN_OUT = 100
"""Operands and operations of the longest value of a local that is written out."""


class _Cases(Struct):
    arrays: Collection[str]
    taken: set[str]
    assigned: Mapping[str, int]
    probes: list[ir.Stmt] = field(default_factory=list)

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
            result += [*self.probes, changed]
            self.probes.clear()
            again = _change(stmt)
            if again is not None and again.local.name in known:
                value = substitute(again.value, known)
                known[again.local.name] = value
                if sum(1 for _ in ir.walk_expression(value)) > MOST_WRITTEN_OUT:
                    del known[again.local.name]
            elif isinstance(stmt, ir.Declare) and stmt.value and self.assigned[stmt.name] == 1 + changes[stmt.name]:
                known[stmt.name] = _as(stmt.type, substitute(stmt.value, known))
        return tuple(result)

    def statement(self, stmt: ir.Stmt, known: Mapping[str, ir.Expr]) -> ir.Stmt:
        """Return a statement without the accesses that have several forms; those are put down as probes."""

        def read(expr: ir.Expr) -> ir.Expr:
            return map_expression(expr, lambda part: self.probed(part, known))

        match stmt:
            case ir.Declare(value=value):
                return stmt if value is None else replace(stmt, value=read(value))
            case ir.Assign(target=target, value=value):
                value = read(value)
                if isinstance(target, ir.Element) and (other := self.probed(target, known)) is not None:
                    return ir.Declare(self.fresh("probe"), target.type, ir.binary("+", other, value))
                return replace(stmt, value=value)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                condition = read(condition)
                before, self.probes = self.probes, []
                stmt = replace(stmt, condition=condition, then=self.body(then, known))
                stmt = replace(stmt, otherwise=self.body(otherwise, known))
                self.probes = before
                return stmt
            case ir.For(body=inner) | ir.While(body=inner) | ir.Phase(body=inner):
                return replace(stmt, body=self.body(inner, known))
            case ir.Break() | ir.Continue() | ir.Barrier() | ir.BlockArray() | ir.PrivateArray():
                return stmt
            case _:
                assert_never(stmt)

    def probed(self, part: ir.Expr, known: Mapping[str, ir.Expr]) -> ir.Expr | None:
        """Put an access down as a probe where its index has several forms; return what stands in its place then."""
        if not isinstance(part, ir.Element) or part.array not in self.arrays:
            return None
        written = substitute(part, known)
        assert isinstance(written, ir.Element)
        if not any(_splits(one) for index in written.indices for one in ir.walk_expression(index)):
            return None
        turns: list[tuple[ir.Var, ir.Expr]] = []

        def any_turn(expr: ir.Expr) -> ir.Expr | None:
            if not isinstance(expr, ir.Binary) or expr.op != "%":
                return None
            turn = ir.Var(self.fresh("turn"), expr.type)
            turns.append((turn, expr.right))
            return turn

        (index,) = (map_expression(one, any_turn) for one in written.indices)
        if any(isinstance(one, ir.Element | ir.Call) for one in ir.walk_expression(index)):
            return None
        probe = self.cases(replace(written, indices=(index,)))
        for turn, period in turns:
            one = ir.IntConst(1)
            start = ir.Declare(turn.name, turn.type, ir.IntConst(0))
            probe = ir.For(start, ir.binary("<", turn, period), ir.Assign(turn, "+", one), (probe,))
        self.probes.append(probe)
        return ir.Cast(part.type, ir.IntConst(0))

    def cases(self, element: ir.Element) -> ir.Stmt:
        """Return an access under the conditions of the choices in its index."""
        (index,) = element.indices
        choices = (one for one in ir.walk_expression(index) if isinstance(one, ir.Conditional))
        choice = next((one for one in choices if not _has_choices(one.condition)), None)
        if choice is None:
            return ir.Declare(self.fresh("probe"), element.type, element)
        then, otherwise = (
            self.cases(replace(element, indices=(map_expression(index, partial(_instead, choice, side)),)))
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
    return side if part == choice else None


def _has_choices(expr: ir.Expr) -> bool:
    return any(isinstance(one, ir.Conditional) for one in ir.walk_expression(expr))


def _splits(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Conditional) or (isinstance(expr, ir.Binary) and expr.op == "%")


def with_cases(program: ir.Program, arrays: Collection[str]) -> ir.Program:
    """Return a program that touches at least the elements of some one-dimensional arrays that a program does."""
    assigned: Counter[str] = Counter()
    for stmt in ir.walk_statements(program.body):
        match stmt:
            case ir.Declare(name=name) | ir.Assign(target=ir.Var(name=name)):
                assigned[name] += 1
            case _:
                pass
    cases = _Cases(arrays, set(names_of(program)), assigned)
    return replace(program, body=cases.body(program.body, {}))
