"""Which reads of arrays have indices that are the same for all threads of a block.

Constant memory hands one element a cycle to a whole warp: it serves indices that do not depend on the thread.  A
scalar depends on it where a value that it is given does, or where it is given one under a condition that does, or in a
loop that threads leave one by one, and was declared outside of that; so does what is read at such an index, or from an
array of the thread.  The variable of such a loop does not: the threads that stay count together.
"""

from __future__ import annotations

from collections.abc import Collection

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
    parts_of,
    walk_expression,
    walk_statements,
)
from metafork.ir.rewriting import private_arrays
from metafork.ir.visitor import Visitor


def reads_by_thread(body: tuple[Stmt, ...], names: Collection[str]) -> dict[str, Element]:
    """Return, of these arrays, those with a read whose index depends on the thread, each with its first such read."""
    search = _Search(private_arrays(body))
    size = -1
    while len(search.varying) != size:
        size = len(search.varying)
        search.body(body)
    found: dict[str, Element] = {}
    for part in parts_of(body):
        if isinstance(part, Element) and part.array in names and any(map(search.varies, part.indices)):
            found.setdefault(part.array, part)
    return found


class _Search(Visitor):
    """Finds the scalars that depend on the thread; arrays of a thread are ``own``.

    Its scope are the scalars of the innermost condition that depends on the thread; ``None`` where there is none.
    """

    scope: frozenset[str] | None = None

    def __init__(self, own: frozenset[str]) -> None:
        self._own = own
        self.varying: set[str] = set()

    def varies(self, expr: Expr) -> bool:
        """Say whether a value may be another one in another thread."""
        return any(
            (isinstance(part, Var) and part.name in self.varying)
            or (isinstance(part, Element) and part.array in self._own)
            for part in walk_expression(expr)
        )

    def _parts_threads(self, stmt: Stmt) -> bool:
        """Say whether threads may take different branches, or leave a loop or an iteration of it one by one."""
        match stmt:
            case If(condition=condition):
                return self.varies(condition)
            case For(condition=condition, body=body) | While(condition=condition, body=body):
                return (condition is not None and self.varies(condition)) or any(
                    isinstance(one, If)
                    and self.varies(one.condition)
                    and any(isinstance(jump, Break | Continue) for jump in walk_statements((one,)))
                    for one in walk_statements(body)
                )
            case _:
                return False

    def statement(self, stmt: Stmt) -> None:
        around = self.scope
        if self._parts_threads(stmt):
            self.scope = frozenset()
        super().statement(stmt)
        if not isinstance(stmt, Declare):
            self.scope = around

    def declare(self, node: Declare) -> None:
        if self.scope is not None:
            self.scope |= {node.name}
        if node.value is not None and self.varies(node.value):
            self.varying.add(node.name)

    def assign(self, node: Assign) -> None:
        if isinstance(node.target, Var):
            apart = self.scope is not None and node.target.name not in self.scope
            if apart or self.varies(node.value):
                self.varying.add(node.target.name)

    def phase(self, node: Phase) -> None:
        self.varying.update(loop.var for loop in node.threads)
        self.scope = None
        super().phase(node)
