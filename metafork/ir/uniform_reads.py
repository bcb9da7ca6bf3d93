"""Which reads of arrays have indices that are the same for all threads of a block.

Constant memory hands one element a cycle to a whole warp: it serves indices that do not depend on the thread.  A
scalar depends on it where a value that it is given does, or where it is given one under a condition that does, or in a
loop that threads leave one by one, and was declared outside of that; so does what is read at such an index, or from an
array of the thread.  The variable of such a loop does not: the threads that stay count together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct, field

from metafork.ir.program import (
    Assign,
    Break,
    Continue,
    Declare,
    Element,
    Expr,
    For,
    If,
    Phase,
    Stmt,
    Var,
    While,
    expressions_of,
    walk_expression,
    walk_statements,
)
from metafork.ir.rewriting import private_arrays


def reads_by_thread(body: tuple[Stmt, ...], names: Collection[str]) -> dict[str, Element]:
    """Return, of these arrays, those with a read whose index depends on the thread, each with its first such read."""
    own = private_arrays(body)
    search = _Search(own)
    size = -1
    while len(search.varying) != size:
        size = len(search.varying)
        search.body(body, set(), inside=False)
    found: dict[str, Element] = {}
    for stmt in walk_statements(body):
        for part in _parts(stmt):
            if isinstance(part, Element) and part.array in names and any(map(search.varies, part.indices)):
                found.setdefault(part.array, part)
    return found


def _parts(stmt: Stmt) -> Iterator[Expr]:
    for expr in expressions_of(stmt):
        yield from walk_expression(expr)


class _Search(Struct):
    """The scalars that depend on the thread, as far as they are known; arrays of a thread are ``own``."""

    own: frozenset[str]
    varying: set[str] = field(default_factory=set)

    def varies(self, expr: Expr) -> bool:
        """Say whether a value may be another one in another thread."""
        return any(
            (isinstance(part, Var) and part.name in self.varying)
            or (isinstance(part, Element) and part.array in self.own)
            for part in walk_expression(expr)
        )

    def _left_one_by_one(self, condition: Expr | None, body: tuple[Stmt, ...]) -> bool:
        """Say whether threads may leave a loop, or an iteration of it, in different iterations."""
        if condition is not None and self.varies(condition):
            return True
        return any(
            isinstance(stmt, If)
            and self.varies(stmt.condition)
            and any(isinstance(one, Break | Continue) for one in walk_statements((stmt,)))
            for stmt in walk_statements(body)
        )

    def body(self, body: tuple[Stmt, ...], declared: set[str], *, inside: bool) -> None:
        """Look through statements; ``declared`` are scalars of the innermost condition that depends on the thread."""
        declared = set(declared)
        for stmt in body:
            self._statement(stmt, declared, inside)

    def _statement(self, stmt: Stmt, declared: set[str], inside: bool) -> None:
        match stmt:
            case Declare(name=name, value=value):
                declared.add(name)
                if value is not None and self.varies(value):
                    self.varying.add(name)
            case Assign(target=Var(name=name), value=value):
                if self.varies(value) or (inside and name not in declared):
                    self.varying.add(name)
            case If(condition=condition, then=then, otherwise=otherwise):
                apart = self.varies(condition)
                for side in (then, otherwise):
                    self.body(side, set() if apart else declared, inside=inside or apart)
            case For(init=init, condition=condition, step=step, body=inner):
                around = set(declared)
                if init is not None:
                    self._statement(init, around, inside)
                apart = self._left_one_by_one(condition, inner)
                within = ({init.name} if isinstance(init, Declare) else set()) if apart else around
                if step is not None:
                    self._statement(step, within, inside or apart)
                self.body(inner, within, inside=inside or apart)
            case While(condition=condition, body=inner):
                apart = self._left_one_by_one(condition, inner)
                self.body(inner, set() if apart else declared, inside=inside or apart)
            case Phase(threads=threads, body=inner):
                self.varying.update(loop.var for loop in threads)
                self.body(inner, set(), inside=False)
            case _:
                pass
