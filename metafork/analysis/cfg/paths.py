"""Paths through a program: its branches that a whole block takes alike, each decided one way or the other.

A condition is *uniform* when it reads only parameters, value arguments, derived scalars, grid variables, and scalars
computed from those and never assigned again: every thread of a block gets the same truth value, at any time.
Figure 7's ``t % 2`` is one.  ``uniform_paths`` resolves the ``if``s on such conditions, at block level and in thread
code, so that an evaluator sees one straight program a path (DESIGN section 4, *Paths*).  Blocks may differ in their
paths where a condition reads a grid variable; ``launch_paths`` decides only what all blocks of a launch have alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.rewriting import (
    assigned_variables,
    declared_here,
    joining_scope,
    names_of,
    substitute,
    variables,
)


class UniformPath(Struct, frozen=True):
    """One outcome of the uniform conditions, and the program with the ``if``s on them resolved.

    The conditions are in the order in which they may be evaluated at the start of a block: a later one may be
    undefined (divide by zero) where an earlier one has another truth value.
    """

    conditions: tuple[tuple[ir.Expr, bool], ...]
    program: ir.Program


def uniform_paths(program: ir.Program, limit: int = 8) -> tuple[UniformPath, ...]:
    """Return every combination of outcomes of the program's uniform conditions.

    The paths exclude each other and cover every block; some may be impossible (``n < 3`` and ``5 < n``).  With more
    than ``limit`` of them the program itself is returned as the only path, with no condition.
    """
    return _bounded(program, limit, frozenset())


def launch_paths(program: ir.Program, limit: int = 8) -> tuple[UniformPath, ...]:
    """Return every combination of outcomes of the conditions that all blocks of a launch have alike.

    As ``uniform_paths``, but what two different blocks do is on one path.
    """
    return _bounded(program, limit, frozenset(loop.var for loop in program.grid))


def _bounded(program: ir.Program, limit: int, varying: frozenset[str]) -> tuple[UniformPath, ...]:
    paths: list[UniformPath] = []
    for path in _paths(program, (), varying):
        paths.append(path)
        if len(paths) > limit:
            return (UniformPath((), program),)
    return tuple(paths)


def _paths(
    program: ir.Program, decided: tuple[tuple[ir.Expr, bool], ...], varying: frozenset[str]
) -> Iterator[UniformPath]:
    walk = _Walk(program, varying)
    walk.body(program.body, walk.outermost, unconditional=True)
    condition = walk.found
    if condition is None:
        yield UniformPath(decided, program)
        return
    constant = _constant(condition)
    if constant is not None:
        yield from _paths(_resolved(program, varying, condition, constant), decided, varying)
        return
    for outcome in (True, False):
        resolved = _resolved(program, varying, condition, outcome)
        yield from _paths(resolved, (*decided, (condition, outcome)), varying)


def _constant(condition: ir.Expr) -> bool | None:
    """Return the outcome of a condition on numbers alone, as functions that are put in line may have."""
    try:
        return integer_value(condition, {}) != 0
    except NoValueError:
        return None


def _resolved(program: ir.Program, varying: frozenset[str], condition: ir.Expr, outcome: bool) -> ir.Program:
    walk = _Walk(program, varying, condition, outcome)
    body = walk.body(program.body, walk.outermost, unconditional=True)
    return replace(program, body=body)


_Scope = dict[str, ir.Expr | None]
"""Visible names: a uniform scalar with its value at the block's start, anything else with ``None``."""


class _Walk:
    """One walk over a program: finds the first uniform condition, or resolves every ``if`` on a given one.

    The grid variables ``varying`` count as what a condition must not read.
    """

    def __init__(
        self, program: ir.Program, varying: frozenset[str], condition: ir.Expr | None = None, outcome: bool = True
    ) -> None:
        self.found: ir.Expr | None = None
        self._condition = condition
        self._outcome = outcome
        self._assigned = assigned_variables(program.body)
        self._taken = set(names_of(program))
        self.outermost: _Scope = {array.name: None for array in program.arrays}
        scalars = [(scalar.name, scalar.type) for scalar in program.parameters]
        scalars += [(scalar.name, scalar.type) for scalar in program.values]
        scalars += [(scalar.name, scalar.type) for scalar in program.derived]
        self.outermost.update((name, ir.Var(name, type_)) for name, type_ in scalars)
        for loop in program.grid:
            self.outermost[loop.var] = None if loop.var in varying else ir.Var(loop.var, loop.type)

    def body(self, body: tuple[ir.Stmt, ...], scope: _Scope, *, unconditional: bool) -> tuple[ir.Stmt, ...]:
        """Walk the statements of one C scope."""
        scope = dict(scope)
        visible = {*scope, *declared_here(body)}
        result: list[ir.Stmt] = []
        rest = list(reversed(body))
        while rest:
            stmt = rest.pop()
            branch = self._selected_branch(stmt, scope, unconditional) if isinstance(stmt, ir.If) else None
            if branch is None:
                result.append(self._stmt(stmt, scope, unconditional))
                continue
            # The branch's own declarations join this scope: they must not hide a name that is already about.
            branch = joining_scope(branch, visible, self._taken)
            visible |= declared_here(branch)
            rest.extend(reversed(branch))
        return tuple(result)

    def _stmt(self, stmt: ir.Stmt, scope: _Scope, unconditional: bool) -> ir.Stmt:
        match stmt:
            case ir.Declare(name=name):
                scope[name] = None if name in self._assigned else _declared_value(stmt, scope)
                return stmt
            case ir.If(then=then, otherwise=otherwise):
                return replace(
                    stmt,
                    then=self.body(then, scope, unconditional=False),
                    otherwise=self.body(otherwise, scope, unconditional=False),
                )
            case ir.For(init=init, body=inner):
                inside = dict(scope)
                if isinstance(init, ir.Declare):
                    inside[init.name] = None if init.name in self._assigned else _declared_value(init, scope)
                return replace(stmt, body=self.body(inner, inside, unconditional=False))
            case ir.While(body=inner):
                return replace(stmt, body=self.body(inner, scope, unconditional=False))
            case ir.Phase(threads=threads, body=inner):
                inside = {**scope, **dict.fromkeys((loop.var for loop in threads), None)}
                return replace(stmt, body=self.body(inner, inside, unconditional=unconditional))
            case ir.BlockArray(array=array) | ir.PrivateArray(array=array):
                scope[array.name] = None
                return stmt
            case ir.Assign() | ir.Break() | ir.Continue() | ir.Barrier():
                return stmt
            case _:
                assert_never(stmt)

    def _selected_branch(self, stmt: ir.If, scope: _Scope, unconditional: bool) -> tuple[ir.Stmt, ...] | None:
        """Return the branch that the outcome selects, where this ``if`` is on the condition; note a new condition."""
        value = _uniform_value(stmt.condition, scope)
        if value is None:
            return None
        atom, truth = atom_of(value)
        if self._condition is not None:
            if atom != self._condition:
                return None
            return stmt.then if truth == self._outcome else stmt.otherwise
        if self.found is None and (unconditional or not may_be_undefined(atom)):
            self.found = atom
        return None


def _declared_value(stmt: ir.Declare, scope: _Scope) -> ir.Expr | None:
    value = None if stmt.value is None else _uniform_value(stmt.value, scope)
    if value is None or value.type == stmt.type:
        return value
    return ir.Cast(stmt.type, value)


def _uniform_value(expr: ir.Expr, scope: _Scope) -> ir.Expr | None:
    """Return the expression in terms of what is known at the block's start; ``None`` where it is not uniform."""
    if any(isinstance(part, ir.Element) for part in ir.walk_expression(expr)):
        return None
    values: dict[str, ir.Expr] = {}
    for name in variables(expr):
        value = scope.get(name)
        if value is None:
            return None
        values[name] = value
    return substitute(expr, values)


def atom_of(condition: ir.Expr) -> tuple[ir.Expr, bool]:
    """Return a condition and a truth value such that ``condition`` is true exactly when the former has the latter.

    ``!c``, ``c == 0`` and ``c != 0`` lose their comparison, and integer orders become ``<``, so that conditions that
    only spell one test differently are recognised.  Floating orders stay: a NaN makes both ``<`` and ``>=`` false; of
    ``==`` and ``!=`` one holds always.
    """
    match condition:
        case ir.Unary(op="!", operand=operand):
            atom, truth = atom_of(operand)
            return atom, not truth
        case ir.Binary(op="==" | "!=" as op, left=left, right=ir.IntConst(value=0)) if left.type.integer:
            atom, truth = atom_of(left)
            return atom, truth == (op == "!=")
        case ir.Binary(op="!="):
            return replace(condition, op="=="), False
        case ir.Binary(op=op, left=left, right=right) if (
            op in ir.COMPARISONS and left.type.integer and right.type.integer
        ):
            match op:
                case ">":
                    return replace(condition, op="<", left=right, right=left), True
                case "<=":
                    return replace(condition, op="<", left=right, right=left), False
                case ">=":
                    return replace(condition, op="<"), False
                case _:
                    return condition, True
        case _:
            return condition, True


def may_be_undefined(expr: ir.Expr) -> bool:
    """Say whether evaluating an expression where the program does not may divide by zero or shift too far."""
    for part in ir.walk_expression(expr):
        match part:
            case ir.Binary(op="/" | "%", left=left, right=right) if left.type.integer and right.type.integer:
                # -1 is out too: the least integer divided by it overflows.
                if not (isinstance(right, ir.IntConst) and right.value > 0):
                    return True
            case ir.Binary(op="<<" | ">>", right=right):
                if not (isinstance(right, ir.IntConst) and 0 <= right.value < 8 * part.type.size):
                    return True
            case _:
                pass
    return False
