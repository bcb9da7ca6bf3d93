"""When a directive may change the order in which a program does its work (DESIGN section 5)."""

from __future__ import annotations

from metafork.analysis.analyses import Analyses
from metafork.analysis.independence import iterations_independent
from metafork.analysis.references import left_early
from metafork.ir.hidden_names import shadowed_name
from metafork.ir.program import (
    Assign,
    BlockArray,
    Declare,
    Element,
    For,
    If,
    Phase,
    PrivateArray,
    Program,
    Stmt,
    expressions_of,
    walk_statements,
)
from metafork.ir.rewriting import assigned_variables, private_arrays, variables
from metafork.transform.directive import Refused
from metafork.transform.loops import SerialLoop

Body = tuple[Stmt, ...]


def to_its_end(loop: SerialLoop) -> Refused | None:
    """Return a refusal where an iteration may leave the loop, or go on to the next one, by a jump."""
    if left_early(loop.stmt.body):
        return Refused(f"the loop over `{loop.variable}` is left early", loop.stmt.span)
    return None


def independent(program: Program, loop: SerialLoop, analyses: Analyses) -> Refused | None:
    """Return a refusal where it is not proved that the iterations of a loop may run in any order."""
    if refused := to_its_end(loop):
        return refused
    if hidden := shadowed_name(program):
        return Refused(f"a local declaration hides another `{hidden[0]}`", hidden[1])
    body = loop.stmt.body
    inside = list(walk_statements(body))
    declared = {stmt.name for stmt in inside if isinstance(stmt, Declare)}
    own = {stmt.array.name for stmt in inside if isinstance(stmt, BlockArray | PrivateArray)}
    written = {stmt.target.array for stmt in inside if isinstance(stmt, Assign) and isinstance(stmt.target, Element)}
    shared = sorted((assigned_variables(body) - declared) | (written & private_arrays(program.body) - own))
    if shared:
        return Refused(f"iterations of `{loop.variable}` hand on `{shared[0]}`", loop.stmt.span)
    proof = iterations_independent(program, loop.variable, analyses, frozenset(own), in_place=True)
    if proof:
        return None
    return Refused(proof.reason, loop.stmt.span if proof.access is None else proof.access.element.span)


def same_for_all(body: Body, variable: str) -> Refused | None:
    """Return a refusal where what a block does together depends on ``variable``: code outside of phases.

    Phases may: their threads do it one by one.
    """
    for stmt in body:
        if isinstance(stmt, BlockArray):
            return Refused(
                f"the block keeps `{stmt.array.name}`, of which each iteration would need its own", stmt.span
            )
        own = () if isinstance(stmt, Phase) else expressions_of(stmt)
        extents = [loop.extent for loop in stmt.threads] if isinstance(stmt, Phase) else []
        heads = [one for one in (stmt.init, stmt.step) if one is not None] if isinstance(stmt, For) else []
        asked = [*own, *extents, *(expr for head in heads for expr in expressions_of(head))]
        if any(variable in variables(expr) for expr in asked):
            return Refused(f"the threads of a block do this together, and it depends on `{variable}`", stmt.span)
        inner: tuple[Body, ...] = ()
        if isinstance(stmt, If):
            inner = (stmt.then, stmt.otherwise)
        elif isinstance(stmt, For):
            inner = (stmt.body,)
        for part in inner:
            if refused := same_for_all(part, variable):
                return refused
    return None
