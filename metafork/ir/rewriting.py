"""Names and substitution: replace variables in expressions and statements, with C's scopes respected.

The passes that move statements between scopes (path specialisation, granularity, CSE) all need the same three things:
which names are about, a fresh one, and a substitution that neither captures nor touches a shadowed variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from operator import is_
from typing import assert_never

from msgspec.structs import replace

from metafork.ir.program import (
    Array,
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
    MetaFor,
    Phase,
    PrivateArray,
    Program,
    Stmt,
    Unary,
    Var,
    While,
    expressions_of,
    subexpressions,
    walk_expression,
    walk_statements,
)

_LEAVES = (Var, IntConst, FloatConst)


def with_operands(expr: Expr, operands: Sequence[Expr]) -> Expr:
    """Return ``expr`` with other direct operands, as many as it has; itself where they are the same objects."""
    old = subexpressions(expr)
    if len(old) != len(operands):
        raise ValueError(f"{len(operands)} operands for {expr}")
    if all(map(is_, operands, old)):
        return expr
    match expr:
        case Binary():
            return Binary(expr.op, operands[0], operands[1], expr.type, expr.span)
        case Element():
            return Element(expr.array, tuple(operands), expr.type, expr.span, expr.part)
        case Cast():
            return Cast(expr.type, operands[0], expr.span)
        case Unary():
            return Unary(expr.op, operands[0], expr.type, expr.span)
        case Call():
            return Call(expr.name, tuple(operands), expr.type, expr.span)
        case Conditional():
            return Conditional(operands[0], operands[1], operands[2], expr.type, expr.span)
        case IntConst() | FloatConst() | Var():
            return expr
        case _:
            assert_never(expr)


def map_expression(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Return ``expr`` with every part that ``change`` maps to an expression replaced, parents first.

    ``change`` gives ``None`` for "look inside".  An expression in which nothing changes is returned itself.
    """
    changed = change(expr)
    if changed is not None:
        return changed
    if isinstance(expr, Binary):
        left, right = map_expression(expr.left, change), map_expression(expr.right, change)
        same = left is expr.left and right is expr.right
        return expr if same else Binary(expr.op, left, right, expr.type, expr.span)
    if isinstance(expr, _LEAVES):
        return expr
    operands = subexpressions(expr)
    return with_operands(expr, [map_expression(operand, change) for operand in operands]) if operands else expr


def map_body(body: tuple[Stmt, ...], change: Callable[[Expr], Expr | None]) -> tuple[Stmt, ...]:
    """Return a body with ``map_expression`` applied to its expressions and targets; extents of loops stay."""

    def mapped(expr: Expr) -> Expr:
        return map_expression(expr, change)

    def one(stmt: Stmt) -> Stmt:
        match stmt:
            case Declare(value=value):
                new = None if value is None else mapped(value)
                return stmt if new is value else Declare(stmt.name, stmt.type, new, stmt.span)
            case Assign():
                return assignment(stmt)
            case If(condition=condition, then=then, otherwise=otherwise):
                return replace(
                    stmt,
                    condition=mapped(condition),
                    then=map_body(then, change),
                    otherwise=map_body(otherwise, change),
                )
            case For(init=init, condition=condition, step=step, body=inner):
                first = init
                if isinstance(init, Assign):
                    first = assignment(init)
                elif init is not None and init.value is not None:
                    first = replace(init, value=mapped(init.value))
                test = None if condition is None else mapped(condition)
                again = None if step is None else assignment(step)
                return replace(stmt, init=first, condition=test, step=again, body=map_body(inner, change))
            case While(condition=condition, body=inner):
                return replace(stmt, condition=mapped(condition), body=map_body(inner, change))
            case Phase(body=inner):
                return replace(stmt, body=map_body(inner, change))
            case BlockArray() | PrivateArray() | Break() | Continue() | Barrier():
                return stmt
            case _:
                assert_never(stmt)

    def assignment(stmt: Assign) -> Assign:
        target, value = mapped(stmt.target), mapped(stmt.value)
        if target is stmt.target and value is stmt.value:
            return stmt
        assert isinstance(target, Var | Element)
        return replace(stmt, target=target, value=value)

    return tuple(one(stmt) for stmt in body)


def variables(expr: Expr) -> frozenset[str]:
    """Return the names of the scalars that an expression reads."""
    return frozenset([part.name for part in walk_expression(expr) if isinstance(part, Var)])


def arrays_read(expr: Expr) -> frozenset[str]:
    """Return the names of the arrays whose elements an expression names."""
    return frozenset([part.array for part in walk_expression(expr) if isinstance(part, Element)])


def private_arrays(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the names of the arrays that threads declare for themselves somewhere in a body."""
    return frozenset(stmt.array.name for stmt in walk_statements(body) if isinstance(stmt, PrivateArray))


def assigned_variables(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the names of the scalars that some statement assigns (declarations with a value do not count)."""
    return frozenset(
        stmt.target.name for stmt in walk_statements(body) if isinstance(stmt, Assign) and isinstance(stmt.target, Var)
    )


def declared_here(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the names declared in the scope of this very body, not in those inside it."""
    return frozenset(
        stmt.name if isinstance(stmt, Declare) else stmt.array.name
        for stmt in body
        if isinstance(stmt, Declare | BlockArray | PrivateArray)
    )


def names_in(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Return every name, of a scalar or an array, that occurs in a body."""
    names: set[str] = set()
    for stmt in walk_statements(body):
        match stmt:
            case Declare(name=name):
                names.add(name)
            case BlockArray(array=array) | PrivateArray(array=array):
                names.add(array.name)
            case Phase(threads=threads):
                names.update(loop.var for loop in threads)
            case _:
                pass
        for expr in expressions_of(stmt):
            for part in walk_expression(expr):
                if isinstance(part, Var):
                    names.add(part.name)
                elif isinstance(part, Element):
                    names.add(part.array)
    return frozenset(names)


def without_unread(body: tuple[Stmt, ...], names: Set[str]) -> tuple[Stmt, ...]:
    """Return a body without those declarations of its own scope, of these names, that nothing behind them names."""
    kept: list[Stmt] = []
    for stmt in reversed(body):
        if not (isinstance(stmt, Declare) and stmt.name in names and stmt.name not in names_in(tuple(kept))):
            kept.append(stmt)
    return tuple(reversed(kept))


def names_of(program: Program) -> frozenset[str]:
    """Return every name that occurs in a program, its arrays and the names around it included."""
    exprs = [extent for array in program.arrays for extent in array.extents]
    exprs += [*program.assumptions, *(loop.extent for loop in program.grid), *(d.definition for d in program.derived)]
    return frozenset().union(
        names_in(program.body),
        (parameter.name for parameter in program.parameters),
        (value.name for value in program.values),
        (derived.name for derived in program.derived),
        (array.name for array in program.arrays),
        (table.array.name for table in program.tables),
        (loop.var for loop in program.grid),
        *(variables(expr) for expr in exprs),
    )


def fresh_name(base: str, taken: Iterable[str]) -> str:
    """Return ``base``, or ``base`` with the first number that gives a name not ``taken``."""
    used = frozenset(taken)
    name, number = base, 0
    while name in used:
        number += 1
        name = f"{base}{number}"
    return name


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return ``expr`` with variables replaced; an array follows where its name is mapped to a ``Var``.

    An expression in which nothing changes is returned itself.
    """
    if not values:
        return expr
    return _substituted(expr, values)


def _substituted(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    if isinstance(expr, Binary):  # the most frequent ones first: copies of loops are made here
        left, right = _substituted(expr.left, values), _substituted(expr.right, values)
        same = left is expr.left and right is expr.right
        return expr if same else Binary(expr.op, left, right, expr.type, expr.span)
    if isinstance(expr, Var):
        return values.get(expr.name, expr)
    if isinstance(expr, _LEAVES):
        return expr
    if isinstance(expr, Element):
        indices = tuple([_substituted(index, values) for index in expr.indices])
        new = values.get(expr.array)
        name = new.name if isinstance(new, Var) else expr.array
        if name == expr.array and all(map(is_, indices, expr.indices)):
            return expr
        return Element(name, indices, expr.type, expr.span, expr.part)
    if isinstance(expr, Cast):
        operand = _substituted(expr.operand, values)
        return expr if operand is expr.operand else Cast(expr.type, operand, expr.span)
    return with_operands(expr, [_substituted(operand, values) for operand in subexpressions(expr)])


def substitute_body(
    body: tuple[Stmt, ...], values: Mapping[str, Expr], taken: Iterable[str], renaming: Set[str] = frozenset()
) -> tuple[Stmt, ...]:
    """Return ``body`` with free variables replaced.

    Inner declarations of a replaced name hide it, as in C; an inner declaration that would capture a variable of a
    replacement, or of a name in ``renaming``, is renamed to a name that is not ``taken``.  Raises ``ValueError`` where
    an assigned variable is replaced by anything but a ``Var``.
    """
    return _Substitution(set(taken) | names_in(body), renaming).body(body, dict(values))


class _Substitution:
    def __init__(self, taken: set[str], renaming: Set[str]) -> None:
        self._taken = taken
        self._renaming = renaming

    def body(self, body: tuple[Stmt, ...], values: dict[str, Expr]) -> tuple[Stmt, ...]:
        values = dict(values)
        return tuple(self._stmt(stmt, values) for stmt in body)

    def _declared(self, name: str, values: dict[str, Expr]) -> str:
        """Enter a declaration into ``values`` (of its scope) and return its name from here on."""
        values.pop(name, None)
        if name in self._renaming or any(name in variables(value) for value in values.values()):
            new = fresh_name(name, self._taken)
            self._taken.add(new)
            values[name] = Var(new)
            return new
        return name

    def _stmt(self, stmt: Stmt, values: dict[str, Expr]) -> Stmt:
        """Rewrite one statement; ``values`` is that of the enclosing scope and follows its declarations."""
        match stmt:
            case Declare(name=name, type=type_, value=value):
                # C puts the new name into scope before its initialiser, but reading it there is undefined.
                new_value = None if value is None else substitute(value, values)
                new_name = self._declared(name, values)
                if new_name != name:
                    values[name] = Var(new_name, type_)
                return replace(stmt, name=new_name, value=new_value)
            case Assign(target=target, value=value):
                new_target = substitute(target, values)
                if not isinstance(new_target, Var | Element):
                    raise ValueError(f"an assigned variable cannot become {new_target}")
                return replace(stmt, target=new_target, value=substitute(value, values))
            case If(condition=condition, then=then, otherwise=otherwise):
                return replace(
                    stmt,
                    condition=substitute(condition, values),
                    then=self.body(then, values),
                    otherwise=self.body(otherwise, values),
                )
            case For():
                return self._for(stmt, dict(values))
            case While(condition=condition, body=inner):
                return replace(stmt, condition=substitute(condition, values), body=self.body(inner, values))
            case BlockArray(array=array) | PrivateArray(array=array):
                extents = tuple(substitute(extent, values) for extent in array.extents)
                new_name = self._declared(array.name, values)
                return replace(stmt, array=Array(new_name, array.element, extents, array.span))
            case Phase(threads=threads, body=inner):
                inside = dict(values)
                loops = tuple(
                    MetaFor(self._declared(loop.var, inside), substitute(loop.extent, values), loop.type, loop.span)
                    for loop in threads
                )
                return replace(stmt, threads=loops, body=self.body(inner, inside))
            case Break() | Continue() | Barrier():
                return stmt
            case _:
                assert_never(stmt)

    def _for(self, stmt: For, values: dict[str, Expr]) -> For:
        init = None if stmt.init is None else self._stmt(stmt.init, values)
        condition = None if stmt.condition is None else substitute(stmt.condition, values)
        step = None if stmt.step is None else self._stmt(stmt.step, values)
        assert init is None or isinstance(init, Declare | Assign)
        assert step is None or isinstance(step, Assign)
        return replace(stmt, init=init, condition=condition, step=step, body=self.body(stmt.body, values))


def joining_scope(body: tuple[Stmt, ...], visible: Iterable[str], taken: set[str]) -> tuple[Stmt, ...]:
    """Return ``body`` ready to stand in the scope around it: declarations of ``visible`` names are renamed.

    ``taken`` grows by the new names.
    """
    about = frozenset(visible)
    renamed: dict[str, str] = {}
    for name in sorted(declared_here(body) & about):
        renamed[name] = fresh_name(name, about | taken)
        taken.add(renamed[name])
    if not renamed:
        return body
    result: list[Stmt] = []
    active: dict[str, Expr] = {}
    for stmt in body:
        # Uses before the declaration mean an outer variable, and stay.
        (new,) = substitute_body((stmt,), active, taken)
        if isinstance(new, Declare) and new.name in renamed:
            active[new.name] = Var(renamed[new.name], new.type)
            new = replace(new, name=renamed[new.name])
        elif isinstance(new, BlockArray | PrivateArray) and new.array.name in renamed:
            active[new.array.name] = Var(renamed[new.array.name], new.array.element)
            new = replace(new, array=replace(new.array, name=renamed[new.array.name]))
        result.append(new)
    return tuple(result)
