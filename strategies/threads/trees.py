"""Blocks that go through memory and add up in steps: trees, ``half /= 2``, and sums up to each place, ``reach *= 2``.

Neighbouring places of such sums read neighbours in memory.  A thread that has several of them reads vectors, and the
first warp takes all steps (``metafork.unrolling.warp_steps``, ``warp_scans``): fewer threads have less to wait for.
"""

from __future__ import annotations

from metafork.analysis.counted_loops import doubled, halved
from metafork.ir import program as ir
from metafork.ir.marks import phases
from metafork.strategies.threads.needs import MOST_OPERATIONS


def adds_up_rows(program: ir.Program) -> bool:
    """Say whether blocks of one dimension add up in such steps, and hardly compute on what they read for these."""
    if any(len(phase.threads) != 1 for phase in phases(program)):
        return False
    loops = [
        one for one in ir.walk_statements(program.body) if isinstance(one, ir.For) and (halved(one) or doubled(one))
    ]
    in_steps = {id(phase) for loop in loops for phase in ir.walk_statements(loop.body) if isinstance(phase, ir.Phase)}
    if not in_steps:
        return False
    arrays = {one.name for one in program.arrays}
    accesses = operations = 0
    for phase in phases(program):
        if id(phase) not in in_steps:
            exprs = [expr for stmt in ir.walk_statements(phase.body) for expr in ir.expressions_of(stmt)]
            parts = [part for expr in exprs for part in ir.walk_expression(expr)]
            accesses += len({one for one in parts if isinstance(one, ir.Element) and one.array in arrays})
            operations += sum(isinstance(one, ir.Binary | ir.Call) and not one.type.integer for one in parts)
    return operations <= MOST_OPERATIONS * accesses
