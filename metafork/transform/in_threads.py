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

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.ir.program import (
    BlockArray,
    Declare,
    Expr,
    For,
    If,
    Phase,
    PrivateArray,
    Stmt,
    expressions_of,
    walk_statements,
)
from metafork.ir.rewriting import assigned_variables, names_in, substitute_body, variables
from metafork.transform.directive import Refused
from metafork.transform.loops import Body


def in_threads(body: Body, variable: str, tile: Callable[[Body], Body], taken: set[str]) -> Body | Refused:
    """Return block-level code each of whose phases runs ``tile`` of what it did for one ``variable``.

    ``taken`` grows by new names.
    """
    try:
        return _Moved(variable, tile, taken, assigned_variables(body)).body(body, {})
    except _DependsError as error:
        return error.refused


class _DependsError(Exception):
    def __init__(self, reason: str, stmt: Stmt) -> None:
        super().__init__(reason)
        self.refused = Refused(reason, stmt.span)


class _Moved(Struct, frozen=True):
    variable: str
    tile: Callable[[Body], Body]
    taken: set[str]
    assigned: frozenset[str]
    declared: set[str] = field(default_factory=set)

    def body(self, body: Body, around: Mapping[str, Declare]) -> Body:
        """Move scalars that depend on the variable into phases; ``around`` are those of the scopes around."""
        scalars = dict(around)
        result: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Phase():
                    result.append(self._phase(stmt, scalars))
                case Declare(name=name) if self._depends((stmt,), scalars):
                    if name in self.assigned:
                        raise _DependsError(f"`{name}` depends on `{self.variable}`, and is assigned", stmt)
                    scalars[name] = stmt
                case For(init=init, condition=condition, step=step, body=inner):
                    self._same([one for one in (init, step) if one is not None], scalars, stmt)
                    self._same([] if condition is None else [condition], scalars, stmt)
                    result.append(replace(stmt, body=self.body(inner, scalars)))
                case If(condition=condition, then=then, otherwise=otherwise):
                    self._same([condition], scalars, stmt)
                    first, second = self.body(then, scalars), self.body(otherwise, scalars)
                    result.append(replace(stmt, then=first, otherwise=second))
                case BlockArray(array=array):
                    raise _DependsError(
                        f"the block keeps `{array.name}`, of which each `{self.variable}` needs one", stmt
                    )
                case _:
                    self._same([stmt], scalars, stmt)
                    result.append(stmt)
        return tuple(result)

    def _phase(self, phase: Phase, scalars: Mapping[str, Declare]) -> Phase:
        self._same([loop.extent for loop in phase.threads], scalars, phase)
        for stmt in walk_statements(phase.body):
            if isinstance(stmt, PrivateArray):
                raise _DependsError(f"a thread keeps `{stmt.array.name}`, an array of its own", stmt)
        tile = self.tile((*scalars.values(), *phase.body))
        # Each phase has its own names: those that are declared twice would be read back as others.
        own = substitute_body(tile, {}, self.taken, renaming=self.declared)
        self.taken.update(names_in(own))
        self.declared.update(stmt.name for stmt in walk_statements(tile) if isinstance(stmt, Declare))
        return replace(phase, body=own)

    def _same(self, parts: Sequence[Stmt | Expr], scalars: Mapping[str, Declare], where: Stmt) -> None:
        if self._depends(parts, scalars):
            raise _DependsError(f"the threads of a block do this together, and it depends on `{self.variable}`", where)

    def _depends(self, parts: Sequence[Stmt | Expr], scalars: Mapping[str, Declare]) -> bool:
        names = {self.variable, *scalars}
        stmts = walk_statements(tuple(part for part in parts if isinstance(part, Stmt)))
        exprs = [part for part in parts if isinstance(part, Expr)]
        return any(names & variables(expr) for expr in (*exprs, *(e for stmt in stmts for e in expressions_of(stmt))))
