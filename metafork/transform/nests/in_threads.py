"""What a block does for one iteration of a grid loop, done by its threads for several, one after the other.

``before --> after``, for the iterations ``j`` of a tile::

    int first = j * B;                       for (int k = 0; k < m; k++)
    for (int k = 0; k < m; k++)                meta_for (int u = 0; u < B; u++)
      meta_for (int u = 0; u < B; u++)   -->     for (each j of the tile) {
        S(k, first + u);                           int first = j * B;
                                                   S(k, first + u);
                                                 }

Blocks touch nothing of each other's that one of them writes, by what ``meta_for`` promises, so that several may run as
one, in any order that keeps that within each.  What the threads of a block do together must be the same for all of
them: loops and conditions there may not depend on the grid variable; scalars that do are computed in each thread (what
they read is not written in the schedule: the language asks for that).
"""

from __future__ import annotations

from collections.abc import Callable

from metafork.ir.messages.source import Span
from metafork.ir.program import BlockArray, Declare, Expr, For, Phase, PrivateArray, Stmt, walk_statements
from metafork.ir.rewriting import assigned_variables, names_in, substitute_body, variables
from metafork.ir.visitor import Body, Rewriter, changed
from metafork.transform.directive import Refused


def in_threads(body: Body, variable: str, tile: Callable[[Body], Body], taken: set[str]) -> Body | Refused:
    """Return block-level code each of whose phases runs ``tile`` of what it did for one ``variable``.

    ``taken`` grows by new names.
    """
    try:
        return _Moved(variable, tile, taken, assigned_variables(body)).body(body)
    except _DependsError as error:
        return error.refused


class _DependsError(Exception):
    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.refused = Refused(reason, span)


class _Moved(Rewriter):
    """Its scope is the scalars that depend on the variable: they move into phases."""

    scope: dict[str, Declare]

    def __init__(self, variable: str, tile: Callable[[Body], Body], taken: set[str], assigned: frozenset[str]) -> None:
        self.scope = {}
        self._variable, self._tile, self._taken, self._assigned = variable, tile, taken, assigned
        self._declared: set[str] = set()

    def inner(self) -> dict[str, Declare]:
        return dict(self.scope)

    def expression(self, expr: Expr) -> Expr:
        if self._depends(expr):
            reason = f"the threads of a block do this together, and it depends on `{self._variable}`"
            raise _DependsError(reason, expr.span)
        return expr

    def declare(self, node: Declare) -> Stmt | Body:
        if node.value is None or not self._depends(node.value):
            return node
        if node.name in self._assigned:
            raise _DependsError(f"`{node.name}` depends on `{self._variable}`, and is assigned", node.span)
        self.scope[node.name] = node
        return ()

    def loop(self, node: For) -> Stmt | Body:
        if isinstance(node.init, Declare) and node.init.value is not None:
            self.expression(node.init.value)
        return super().loop(node)

    def array(self, node: BlockArray | PrivateArray) -> Stmt | Body:
        reason = f"the block keeps `{node.array.name}`, of which each iteration would need its own"
        raise _DependsError(reason, node.span)

    def phase(self, node: Phase) -> Phase:
        for loop in node.threads:
            self.expression(loop.extent)
        for stmt in walk_statements(node.body):
            if isinstance(stmt, PrivateArray):
                raise _DependsError(f"a thread keeps `{stmt.array.name}`, an array of its own", stmt.span)
        tile = self._tile((*self.scope.values(), *node.body))
        # Each phase has its own names: those that are declared twice would be read back as others.
        own = substitute_body(tile, {}, self._taken, renaming=self._declared)
        self._taken.update(names_in(own))
        self._declared.update(stmt.name for stmt in walk_statements(tile) if isinstance(stmt, Declare))
        return changed(node, body=own)

    def _depends(self, expr: Expr) -> bool:
        return not variables(expr).isdisjoint({self._variable, *self.scope})
