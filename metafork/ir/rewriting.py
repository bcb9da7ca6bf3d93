"""Names and substitution: replace variables in expressions and statements, with C's scopes respected.

The passes that move statements between scopes (path specialisation, granularity, CSE) all need the same three things:
which names are about, a fresh one, and a substitution that neither captures nor touches a shadowed variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from operator import is_

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span
from metafork.ir.visitor import Rewriter, changed, same
from metafork.ir.visitor import with_operands as with_operands

_LEAVES = (ir.Var, ir.IntConst, ir.FloatConst)


def map_expression(expr: ir.Expr, change: Callable[[ir.Expr], ir.Expr | None]) -> ir.Expr:
    """Return ``expr`` with every part that ``change`` maps to an expression replaced, parents first.

    ``change`` gives ``None`` for "look inside".  An expression in which nothing changes is returned itself.
    """
    changed = change(expr)
    if changed is not None:
        return changed
    if isinstance(expr, ir.Binary):
        left, right = map_expression(expr.left, change), map_expression(expr.right, change)
        same = left is expr.left and right is expr.right
        return expr if same else ir.Binary(expr.op, left, right, expr.type, expr.span)
    if isinstance(expr, _LEAVES):
        return expr
    operands = ir.subexpressions(expr)
    return with_operands(expr, [map_expression(operand, change) for operand in operands]) if operands else expr


def map_body(body: tuple[ir.Stmt, ...], change: Callable[[ir.Expr], ir.Expr | None]) -> tuple[ir.Stmt, ...]:
    """Return a body with ``map_expression`` applied to its expressions and targets; extents of loops stay."""
    return _Mapping(change).body(body)


class _Mapping(Rewriter):
    def __init__(self, change: Callable[[ir.Expr], ir.Expr | None]) -> None:
        self._change = change

    def expression(self, expr: ir.Expr) -> ir.Expr:
        return map_expression(expr, self._change)

    def extent(self, expr: ir.Expr) -> ir.Expr:
        return expr


def inlined(expr: ir.Expr, body: tuple[ir.Stmt, ...], values: Mapping[str, ir.Expr]) -> ir.Expr:
    """Return an expression with the scalars that a body declares before it replaced by their values."""
    known = dict(values)
    for one in body:
        if isinstance(one, ir.Declare) and one.value is not None:
            value = substitute(one.value, known)
            known[one.name] = value if value.type is one.type else ir.Cast(one.type, value)
    return substitute(expr, known)


def placed(expr: ir.Expr, span: Span) -> ir.Expr:
    """Return an expression all of whose parts stand at one place."""
    return replace(with_operands(expr, [placed(one, span) for one in ir.subexpressions(expr)]), span=span)


def variables(expr: ir.Expr) -> frozenset[str]:
    """Return the names of the scalars that an expression reads."""
    return frozenset([part.name for part in ir.walk_expression(expr) if isinstance(part, ir.Var)])


def arrays_read(expr: ir.Expr) -> frozenset[str]:
    """Return the names of the arrays whose elements an expression names."""
    return frozenset([part.array for part in ir.walk_expression(expr) if isinstance(part, ir.Element)])


def private_arrays(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """Return the names of the arrays that threads declare for themselves somewhere in a body."""
    return frozenset(stmt.array.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.PrivateArray))


def assigned_variables(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """Return the names of the scalars that some statement assigns (declarations with a value do not count)."""
    return frozenset(
        stmt.target.name
        for stmt in ir.walk_statements(body)
        if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Var)
    )


def declared_here(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """Return the names declared in the scope of this very body, not in those inside it."""
    return frozenset(
        stmt.name if isinstance(stmt, ir.Declare) else stmt.array.name
        for stmt in body
        if isinstance(stmt, ir.Declare | ir.BlockArray | ir.PrivateArray)
    )


def names_in(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """Return every name, of a scalar or an array, that occurs in a body."""
    names: set[str] = set()
    for stmt in ir.walk_statements(body):
        match stmt:
            case ir.Declare(name=name):
                names.add(name)
            case ir.BlockArray(array=array) | ir.PrivateArray(array=array):
                names.add(array.name)
            case ir.Phase(threads=threads):
                names.update(loop.var for loop in threads)
            case _:
                pass
    for part in ir.parts_of(body):
        if isinstance(part, ir.Var):
            names.add(part.name)
        elif isinstance(part, ir.Element):
            names.add(part.array)
    return frozenset(names)


def without_unread(body: tuple[ir.Stmt, ...], names: Set[str] | None = None) -> tuple[ir.Stmt, ...]:
    """Return a body without those declarations of its own scope, of ``names``, that nothing behind them names."""
    kept: list[ir.Stmt] = []
    named: set[str] = set()
    for stmt in reversed(body):
        if isinstance(stmt, ir.Declare) and (names is None or stmt.name in names) and stmt.name not in named:
            continue
        kept.append(stmt)
        named |= names_in((stmt,))
    return tuple(reversed(kept))


def names_of(program: ir.Program) -> frozenset[str]:
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


def substitute(expr: ir.Expr, values: Mapping[str, ir.Expr]) -> ir.Expr:
    """Return ``expr`` with variables replaced; an array follows where its name is mapped to a ``Var``.

    An expression in which nothing changes is returned itself.
    """
    if not values:
        return expr
    return _substituted(expr, values)


def _substituted(expr: ir.Expr, values: Mapping[str, ir.Expr]) -> ir.Expr:
    if isinstance(expr, ir.Binary):  # the most frequent ones first: copies of loops are made here
        left, right = _substituted(expr.left, values), _substituted(expr.right, values)
        same = left is expr.left and right is expr.right
        return expr if same else ir.Binary(expr.op, left, right, expr.type, expr.span)
    if isinstance(expr, ir.Var):
        return values.get(expr.name, expr)
    if isinstance(expr, _LEAVES):
        return expr
    if isinstance(expr, ir.Element):
        indices = tuple([_substituted(index, values) for index in expr.indices])
        new = values.get(expr.array)
        name = new.name if isinstance(new, ir.Var) else expr.array
        if name == expr.array and all(map(is_, indices, expr.indices)):
            return expr
        return ir.Element(name, indices, expr.type, expr.span, expr.part)
    if isinstance(expr, ir.Cast):
        operand = _substituted(expr.operand, values)
        return expr if operand is expr.operand else ir.Cast(expr.type, operand, expr.span)
    return with_operands(expr, [_substituted(operand, values) for operand in ir.subexpressions(expr)])


def substitute_body(
    body: tuple[ir.Stmt, ...], values: Mapping[str, ir.Expr], taken: Iterable[str], renaming: Set[str] = frozenset()
) -> tuple[ir.Stmt, ...]:
    """Return ``body`` with free variables replaced.

    Inner declarations of a replaced name hide it, as in C; an inner declaration that would capture a variable of a
    replacement, or of a name in ``renaming``, is renamed to a name that is not ``taken``.  Raises ``ValueError`` where
    an assigned variable is replaced by anything but a ``Var``.
    """
    return _Substitution(set(taken) | names_in(body), renaming, values).body(body)


class _Substitution(Rewriter):
    """Its scope is the values of the variables that are replaced there."""

    scope: dict[str, ir.Expr]

    def __init__(self, taken: set[str], renaming: Set[str], values: Mapping[str, ir.Expr]) -> None:
        self._taken = taken
        self._renaming = renaming
        self.scope = dict(values)

    def inner(self) -> dict[str, ir.Expr]:
        return dict(self.scope)

    def expression(self, expr: ir.Expr) -> ir.Expr:
        return substitute(expr, self.scope)

    def target(self, node: ir.Var | ir.Element) -> ir.Var | ir.Element:
        new = self.expression(node)
        if not isinstance(new, ir.Var | ir.Element):
            raise ValueError(f"an assigned variable cannot become {new}")
        return new

    def _renamed(self, name: str, type_: ScalarType = ir.INT) -> str:
        """Enter a declaration into the scope and return its name from here on."""
        self.scope.pop(name, None)
        if name in self._renaming or any(name in variables(value) for value in self.scope.values()):
            new = fresh_name(name, self._taken)
            self._taken.add(new)
            self.scope[name] = ir.Var(new, type_)
            return new
        return name

    def declare(self, node: ir.Declare) -> ir.Declare:
        # C puts the new name into scope before its initialiser, but reading it there is undefined.
        value = None if node.value is None else self.expression(node.value)
        return changed(node, value=value, name=self._renamed(node.name, node.type))

    def array(self, node: ir.BlockArray | ir.PrivateArray) -> ir.Stmt:
        extents = same(map(self.expression, node.array.extents), node.array.extents)
        return changed(node, array=changed(node.array, name=self._renamed(node.array.name), extents=extents))

    def phase(self, node: ir.Phase) -> ir.Phase:
        extents = [self.expression(loop.extent) for loop in node.threads]
        around, self.scope = self.scope, self.inner()
        pairs = zip(node.threads, extents, strict=True)
        threads = same(
            (changed(loop, var=self._renamed(loop.var, loop.type), extent=e) for loop, e in pairs), node.threads
        )
        body = self.body(node.body)
        self.scope = around
        return changed(node, threads=threads, body=body)


def joining_scope(body: tuple[ir.Stmt, ...], visible: Iterable[str], taken: set[str]) -> tuple[ir.Stmt, ...]:
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
    result: list[ir.Stmt] = []
    active: dict[str, ir.Expr] = {}
    for stmt in body:
        # Uses before the declaration mean an outer variable, and stay.
        (new,) = substitute_body((stmt,), active, taken)
        if isinstance(new, ir.Declare) and new.name in renamed:
            active[new.name] = ir.Var(renamed[new.name], new.type)
            new = replace(new, name=renamed[new.name])
        elif isinstance(new, ir.BlockArray | ir.PrivateArray) and new.array.name in renamed:
            active[new.array.name] = ir.Var(renamed[new.array.name], new.array.element)
            new = replace(new, array=replace(new.array, name=renamed[new.array.name]))
        result.append(new)
    return tuple(result)
