"""The spine of a program: the chain of constructs around all its work.

At each level of the spine stand declarations of pure scalars and one more statement, which is the next level: a
serial loop, an ``if`` with work in one branch, or a phase.  A loop on the spine holds all the work of a block, so that
its iterations can be given to different blocks: what stands outside it only computes scalars, which every block can
compute for itself.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from metafork.analysis.counted_loops import counted_loop
from metafork.analysis.references import left_early
from metafork.ir import program as ir
from metafork.ir.rewriting import arrays_read, assigned_variables
from metafork.ir.visitor import Rewriter

Body = tuple[ir.Stmt, ...]


class Spine(Struct, frozen=True):
    """``loops``: the counted loops on the spine, outside in; ``innermost``: the body where the spine ends.

    ``work`` is what of it is no declaration of pure scalars.
    ``declarations`` are those of the levels around it, outside in.  ``uncounted`` are the loops on the spine that
    do not count from 0 by ones, or are left early.
    """

    loops: tuple[ir.For, ...]
    uncounted: tuple[ir.For, ...]
    innermost: Body
    work: Body
    declarations: tuple[ir.Declare, ...]


class _Purity:
    """Says what only computes scalars: it reads no array that the program writes, and changes nothing that lasts."""

    def __init__(self, program: ir.Program) -> None:
        self._written = frozenset(
            stmt.target.array
            for stmt in ir.walk_statements(program.body)
            if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element)
        )
        self._assigned = assigned_variables(program.body)

    def pure(self, expr: ir.Expr | None) -> bool:
        return expr is None or not arrays_read(expr) & self._written

    def declaration(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Declare(name=name, value=value):
                return name not in self._assigned and self.pure(value)
            case ir.BlockArray() | ir.PrivateArray():
                return True
            case _:
                return False

    def head(self, loop: ir.For) -> bool:
        """Say whether a loop's head does the same in every block: only its own variable changes."""
        match loop:
            case ir.For(
                init=ir.Declare(name=name, value=start), step=ir.Assign(target=ir.Var(name=stepped), value=step)
            ):
                return (
                    name == stepped
                    and name not in assigned_variables(loop.body)
                    and all(self.pure(part) for part in (start, loop.condition, step))
                )
            case _:
                return False


def counted_extent(loop: ir.For) -> ir.Expr | None:
    """Return e of a loop ``for (int k = 0; k < e; k++)`` whose body does not assign k, else ``None``."""
    view = counted_loop(loop)
    limit = None if view is None else view.only_limit()
    if view is None or limit is None or not view.declared or view.down or not view.unit:
        return None
    return limit[1] if limit[0] == "<" and view.first == ir.IntConst(0) else None


def spine_of(program: ir.Program) -> Spine:
    """Return the spine of a program."""
    purity = _Purity(program)
    loops: list[ir.For] = []
    uncounted: list[ir.For] = []
    declarations: list[ir.Declare] = []
    body = program.body
    while True:
        inner = _inner(body, purity)
        if inner is None:
            work = tuple(stmt for stmt in body if not purity.declaration(stmt))
            return Spine(tuple(loops), tuple(uncounted), body, work, tuple(declarations))
        declarations += [stmt for stmt in body if isinstance(stmt, ir.Declare)]
        stmt, body = inner
        if isinstance(stmt, ir.For):
            counted = counted_extent(stmt) is not None and not left_early(stmt.body)
            (loops if counted else uncounted).append(stmt)


def _inner(body: Body, purity: _Purity) -> tuple[ir.Stmt, Body] | None:
    """Return the one statement of a level that is no pure declaration, and the body that is the next level."""
    work = [stmt for stmt in body if not purity.declaration(stmt)]
    if len(work) != 1:
        return None
    match work[0]:
        case ir.Phase(body=inner):
            return work[0], inner
        case ir.For(body=inner) as loop if purity.head(loop) and not left_early(inner):
            return loop, inner
        case ir.If(condition=condition, then=then, otherwise=otherwise) if purity.pure(condition):
            if not otherwise:
                return work[0], then
            return (work[0], otherwise) if not then else None
        case _:
            return None


def replaced_on_spine(body: Body, old: ir.Stmt, new: Callable[[Body, int], Body]) -> Body:
    """Return ``body`` with the level in which ``old`` stands (by identity) mapped by ``new(level, position)``."""
    return _Replaced(old, new).body(body)


class _Replaced(Rewriter):
    def __init__(self, old: ir.Stmt, new: Callable[[Body, int], Body]) -> None:
        self._old = old
        self._new = new

    def body(self, body: Body) -> Body:
        for position, stmt in enumerate(body):
            if stmt is self._old:
                return self._new(body, position)
        return super().body(body)
