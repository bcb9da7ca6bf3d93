"""Names and substitution: replace variables in expressions and statements, with C's scopes respected.

The passes that move statements between scopes (path specialisation, granularity, CSE) all need the same three things:
which names are about, a fresh one, and a substitution that neither captures nor touches a shadowed variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from operator import is_

from msgspec.structs import replace

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import (
    INT,
    Assign,
    Binary,
    BlockArray,
    Cast,
    Declare,
    Element,
    Expr,
    FloatConst,
    IntConst,
    Phase,
    PrivateArray,
    Program,
    Stmt,
    Var,
    parts_of,
    subexpressions,
    walk_expression,
    walk_statements,
)
from metafork.ir.visitor import Rewriter, changed, same
from metafork.ir.visitor import with_operands as with_operands

_LEAVES = (Var, IntConst, FloatConst)


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
    return _Mapping(change).body(body)


class _Mapping(Rewriter):
    def __init__(self, change: Callable[[Expr], Expr | None]) -> None:
        self._change = change

    def expression(self, expr: Expr) -> Expr:
        return map_expression(expr, self._change)

    def extent(self, expr: Expr) -> Expr:
        return expr


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
    for part in parts_of(body):
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
    return _Substitution(set(taken) | names_in(body), renaming, values).body(body)


class _Substitution(Rewriter):
    """Its scope is the values of the variables that are replaced there."""

    scope: dict[str, Expr]

    def __init__(self, taken: set[str], renaming: Set[str], values: Mapping[str, Expr]) -> None:
        self._taken = taken
        self._renaming = renaming
        self.scope = dict(values)

    def inner(self) -> dict[str, Expr]:
        return dict(self.scope)

    def expression(self, expr: Expr) -> Expr:
        return substitute(expr, self.scope)

    def target(self, node: Var | Element) -> Var | Element:
        new = self.expression(node)
        if not isinstance(new, Var | Element):
            raise ValueError(f"an assigned variable cannot become {new}")
        return new

    def _renamed(self, name: str, type_: ScalarType = INT) -> str:
        """Enter a declaration into the scope and return its name from here on."""
        self.scope.pop(name, None)
        if name in self._renaming or any(name in variables(value) for value in self.scope.values()):
            new = fresh_name(name, self._taken)
            self._taken.add(new)
            self.scope[name] = Var(new, type_)
            return new
        return name

    def declare(self, node: Declare) -> Declare:
        # C puts the new name into scope before its initialiser, but reading it there is undefined.
        value = None if node.value is None else self.expression(node.value)
        return changed(node, value=value, name=self._renamed(node.name, node.type))

    def array(self, node: BlockArray | PrivateArray) -> Stmt:
        extents = same(map(self.expression, node.array.extents), node.array.extents)
        return changed(node, array=changed(node.array, name=self._renamed(node.array.name), extents=extents))

    def phase(self, node: Phase) -> Phase:
        extents = [self.expression(loop.extent) for loop in node.threads]
        around, self.scope = self.scope, self.inner()
        pairs = zip(node.threads, extents, strict=True)
        threads = same(
            (changed(loop, var=self._renamed(loop.var, loop.type), extent=e) for loop, e in pairs), node.threads
        )
        body = self.body(node.body)
        self.scope = around
        return changed(node, threads=threads, body=body)


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
