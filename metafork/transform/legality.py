"""When a directive may change the order in which a program does its work (DESIGN section 5)."""

from __future__ import annotations

from metafork.analysis.analyses import Analyses
from metafork.analysis.dependence.independence import iterations_independent
from metafork.analysis.references import left_early
from metafork.ir import program as ir
from metafork.ir.hidden_names import shadowed_name
from metafork.ir.marks import factors_of
from metafork.ir.rewriting import assigned_variables, private_arrays
from metafork.transform.directive import Refused
from metafork.transform.loops import SerialLoop

Body = tuple[ir.Stmt, ...]


def distinct(program: ir.Program) -> Refused | None:
    """Return a refusal where a local declaration hides another one: code cannot move then without changing names."""
    if hidden := shadowed_name(program):
        return Refused(f"a local declaration hides another `{hidden[0]}`", hidden[1])
    return None


def unmarked(program: ir.Program) -> Refused | None:
    """Return a refusal where iterations run together already: their loops stay as they are."""
    if factors_of(program) or program.striding is not None:
        return Refused("iterations run together already", program.span)
    return None


def to_its_end(loop: SerialLoop) -> Refused | None:
    """Return a refusal where an iteration may leave the loop, or go on to the next one, by a jump."""
    if left_early(loop.stmt.body):
        return Refused(f"the loop over `{loop.variable}` is left early", loop.stmt.span)
    return None


def independent(
    program: ir.Program, loop: SerialLoop, analyses: Analyses, around: SerialLoop | None = None
) -> Refused | None:
    """Return a refusal where it is not proved that the iterations of a loop may run in any order.

    Those of one iteration of a loop ``around`` it may mix with those of others too.
    """
    if refused := to_its_end(loop):
        return refused
    if refused := distinct(program):
        return refused
    body = loop.stmt.body
    inside = list(ir.walk_statements(body))
    declared = {stmt.name for stmt in inside if isinstance(stmt, ir.Declare)}
    own = {stmt.array.name for stmt in inside if isinstance(stmt, ir.BlockArray | ir.PrivateArray)}
    written = {
        stmt.target.array for stmt in inside if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element)
    }
    shared = sorted((assigned_variables(body) - declared) | (written & private_arrays(program.body) - own))
    if shared:
        return Refused(f"iterations of `{loop.variable}` hand on `{shared[0]}`", loop.stmt.span)
    within = (around or loop).variable
    proof = iterations_independent(program, loop.variable, analyses, frozenset(own), within=within)
    if proof:
        return None
    return Refused(proof.reason, loop.stmt.span if proof.access is None else proof.access.element.span)
