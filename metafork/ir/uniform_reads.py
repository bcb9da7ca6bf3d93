"""Which reads of arrays have indices that are the same for all threads of a block.

Constant memory hands one element a cycle to a whole warp: it serves indices that do not depend on the thread.  A
scalar depends on it where a value that it is given does, or where it is given one under a condition that does, or in a
loop that threads leave one by one, and was declared outside of that; so does what is read at such an index, or from an
array of the thread.  The variable of such a loop does not: the threads that stay count together.
"""

from __future__ import annotations

from collections.abc import Collection

from metafork.ir import program as ir
from metafork.ir.rewriting import private_arrays
from metafork.ir.visitor import Visitor


def reads_by_thread(body: tuple[ir.Stmt, ...], names: Collection[str]) -> dict[str, ir.Element]:
    """Return, of these arrays, those with a read whose index depends on the thread, each with its first such read."""
    search = _Search(private_arrays(body))
    size = -1
    while len(search.varying) != size:
        size = len(search.varying)
        search.body(body)
    found: dict[str, ir.Element] = {}
    for part in ir.parts_of(body):
        if isinstance(part, ir.Element) and part.array in names and any(map(search.varies, part.indices)):
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

    def varies(self, expr: ir.Expr) -> bool:
        """Say whether a value may be another one in another thread."""
        return any(
            (isinstance(part, ir.Var) and part.name in self.varying)
            or (isinstance(part, ir.Element) and part.array in self._own)
            for part in ir.walk_expression(expr)
        )

    def _parts_threads(self, stmt: ir.Stmt) -> bool:
        """Say whether threads may take different branches, or leave a loop or an iteration of it one by one."""
        match stmt:
            case ir.If(condition=condition):
                return self.varies(condition)
            case ir.For(condition=condition, body=body) | ir.While(condition=condition, body=body):
                return (condition is not None and self.varies(condition)) or any(
                    isinstance(one, ir.If)
                    and self.varies(one.condition)
                    and any(isinstance(jump, ir.Break | ir.Continue) for jump in ir.walk_statements((one,)))
                    for one in ir.walk_statements(body)
                )
            case _:
                return False

    def statement(self, stmt: ir.Stmt) -> None:
        around = self.scope
        if self._parts_threads(stmt):
            self.scope = frozenset()
        super().statement(stmt)
        if not isinstance(stmt, ir.Declare):
            self.scope = around

    def declare(self, node: ir.Declare) -> None:
        if self.scope is not None:
            self.scope |= {node.name}
        if node.value is not None and self.varies(node.value):
            self.varying.add(node.name)

    def assign(self, node: ir.Assign) -> None:
        if isinstance(node.target, ir.Var):
            apart = self.scope is not None and node.target.name not in self.scope
            if apart or self.varies(node.value):
                self.varying.add(node.target.name)

    def phase(self, node: ir.Phase) -> None:
        self.varying.update(loop.var for loop in node.threads)
        self.scope = None
        super().phase(node)
