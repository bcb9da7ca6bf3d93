"""Blocks that go through memory and add up by trees, ``for (half = B / 2; half > 0; half /= 2)``: sums of rows.

Neighbouring places of such a tree read neighbours in memory.  A thread that has several of them reads vectors, and the
first warp takes all steps of the tree (``metafork.unrolling.warp_steps``), so that fewer threads have less to wait for.
"""

from __future__ import annotations

from metafork.analysis.counted_loops import halved
from metafork.ir import program as ir
from metafork.ir.marks import phases
from metafork.strategies.threads.needs import MOST_OPERATIONS


def adds_up_rows(program: ir.Program) -> bool:
    """Say whether blocks of one dimension have trees, and hardly compute on what they read for these."""
    if any(len(phase.threads) != 1 for phase in phases(program)):
        return False
    loops = [one for one in ir.walk_statements(program.body) if isinstance(one, ir.For) and halved(one) is not None]
    in_trees = {id(phase) for loop in loops for phase in ir.walk_statements(loop.body) if isinstance(phase, ir.Phase)}
    if not in_trees:
        return False
    arrays = {one.name for one in program.arrays}
    accesses = operations = 0
    for phase in phases(program):
        if id(phase) not in in_trees:
            exprs = [expr for stmt in ir.walk_statements(phase.body) for expr in ir.expressions_of(stmt)]
            parts = [part for expr in exprs for part in ir.walk_expression(expr)]
            accesses += len({one for one in parts if isinstance(one, ir.Element) and one.array in arrays})
            operations += sum(isinstance(one, ir.Binary | ir.Call) and not one.type.integer for one in parts)
    return operations <= MOST_OPERATIONS * accesses
