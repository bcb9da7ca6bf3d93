"""to_grid: the iterations of a serial loop become blocks of their own."""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.dependence.independence import iterations_independent
from metafork.analysis.references import left_early
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.messages.source import NOWHERE
from metafork.ir.rewriting import (
    assigned_variables,
    declared_here,
    fresh_name,
    joining_scope,
    names_in,
    names_of,
    private_arrays,
    substitute_body,
    variables,
)
from metafork.transform import legality
from metafork.transform.directive import Refused
from metafork.transform.nests.grid_index import join
from metafork.transform.nests.grid_tile import Joining
from metafork.transform.nests.normal_form import from_zero
from metafork.transform.nests.spine import Body, counted_extent, replaced_on_spine, spine_of

UNKNOWN_EXTENT = "its extent is no known quantity of parameters"


class ToGrid(Struct, frozen=True):
    """Give the iterations of a *granularity loop* to blocks of their own (the paper's Figures 7 and 8, second cases).

    to_grid(k)::

        meta_for (int i = 0; i < dim; i++)              meta_for (int i = 0; i < dim * s; i++)
          meta_for (int j = 0; j < B; j++)        -->     meta_for (int j = 0; j < B; j++) {
            for (int k = 0; k < s; k++) {                   int p = i * B + j;
              int p = i*s*B + k*B + j;                      ...
              ...

    The loop is on the program's spine (``metafork.transform.nests.spine``), in thread code or at block level; its
    variable joins the grid as ``metafork.transform.nests.grid_index`` describes.

    Legal where the extent is known in parameters, and iterations are proved independent.  Let (i, k) be a grid point
    and an iteration.  The new program runs, for every (i, k) in a block of its own, what the old block i runs with all
    other iterations left out, in the old order.  What stands on the spine outside the loop only computes scalars, the
    same in every copy, and no scalar is carried from one iteration to another; a serial loop around (Figure 3's ``z``
    around ``w``) does for each k all its iterations, in order.  So only the order between accesses of different (i, k)
    changes.  For different i, ``meta_for`` promises that they touch nothing of each other's that is written.  For one i
    and different k, this is what is proved; for the threads of one phase run, two different threads need no proof, for
    that promise holds of them too until the next barrier, and of one phase run the new program keeps, for each k, a
    part.  So every element that is written at all is touched by one (i, k) only, in the old order: each floating-point
    operation has the operands it had.
    """

    loop: str

    def apply(self, program: ir.Program, analyses: Analyses) -> ir.Program | Refused:
        """Return the program in which the loop is part of the grid."""
        if refused := legality.distinct(program):
            return refused
        spine = spine_of(program)
        for loop in (*spine.loops, *spine.uncounted):
            if isinstance(loop.init, ir.Declare) and loop.init.name == self.loop:
                normal = with_normal_form(program, loop, analyses)
                if normal is None:
                    return Refused(f"how often the loop over `{self.loop}` runs is not known", loop.span)
                joined = in_grid(*normal, analyses)
                return joined if isinstance(joined, Refused) else joined.program
        return Refused(f"no loop over `{self.loop}` holds all the work of a block", program.span)


class InGrid(Struct, frozen=True):
    """A program with one granularity loop less, and how its variable joined that of the grid, in words."""

    program: ir.Program
    how: str


def with_normal_form(program: ir.Program, loop: ir.For, analyses: Analyses) -> tuple[ir.Program, ir.For] | None:
    """Return a program whose loop on the spine counts from 0 by ones, and the loop; ``None`` where it cannot."""
    if counted_extent(loop) is not None and not left_early(loop.body):
        return program, loop
    normal = None if left_early(loop.body) else from_zero(loop, program, Scope.of(analyses.facts(program)))
    if normal is None:
        return None
    return replace(program, body=replaced_on_spine(program.body, loop, partial(_put, normal))), normal


def _put(loop: ir.For, level: Body, position: int) -> Body:
    return (*level[:position], loop, *level[position + 1 :])


def in_grid(program: ir.Program, loop: ir.For, analyses: Analyses) -> InGrid | Refused:
    """Return the program in which a loop of the spine, which counts from 0 by ones, is part of the grid."""
    extent = counted_extent(loop)
    assert extent is not None
    assert isinstance(loop.init, ir.Declare)
    variable = loop.init.name
    uniform = {scalar.name for scalar in program.parameters} | {scalar.name for scalar in program.derived}
    if not variables(extent) <= uniform or Scope.of(analyses.facts(program)).polynomial(extent) is None:
        return Refused(UNKNOWN_EXTENT, extent.span)
    carried = assigned_variables(loop.body) - _declared_below(loop.body)
    if carried:
        where = next(stmt.span for stmt in ir.walk_statements(loop.body) if _assigns(stmt, carried))
        return Refused(f"{', '.join(sorted(carried))} is carried from one iteration to the next", where)
    threads = (private_arrays(program.body) - private_arrays(loop.body)) & names_in(loop.body)
    if threads:
        where = next(stmt.span for stmt in ir.walk_statements(loop.body) if names_in((stmt,)) & threads)
        return Refused(f"{', '.join(sorted(threads))}, a thread's own, serves more than one iteration", where)
    private = frozenset(stmt.array.name for stmt in ir.walk_statements(loop.body) if isinstance(stmt, ir.BlockArray))
    proof = iterations_independent(program, variable, analyses, private)
    if not proof:
        return Refused(proof.reason, NOWHERE if proof.access is None else proof.access.element.span)
    taken = set(names_of(program))
    inner = loop.body
    index = variable
    if variable in names_in(replace(program, body=replaced_on_spine(program.body, loop, _dropped)).body):
        # Another loop has a variable of this name, and this one is about to be declared for all of the block.
        index = fresh_name(variable, taken)
        taken.add(index)
        inner = substitute_body(inner, {variable: ir.Var(index, loop.init.type)}, taken)

    def opened(level: Body, position: int) -> Body:
        others: Body = (*level[:position], *level[position + 1 :])
        return (*level[:position], *joining_scope(inner, declared_here(others), taken), *level[position + 1 :])

    opened_program = replace(program, body=replaced_on_spine(program.body, loop, opened))
    return InGrid(*join(Joining(opened_program, index, loop.init.type, extent)))


def _assigns(stmt: ir.Stmt, names: frozenset[str]) -> bool:
    return isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Var) and stmt.target.name in names


def _dropped(level: Body, position: int) -> Body:
    return (*level[:position], *level[position + 1 :])


def _declared_below(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    return frozenset(stmt.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Declare))
