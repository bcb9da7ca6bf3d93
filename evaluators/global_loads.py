"""global_loads: how many loads from global memory a thread executes for one block of the grid, a cost.

Counted on the kernel as it is lowered (``kernel_walk``), copies into shared memory included, and never too low: the
loops by which all threads fill a window together count with elements / threads rounded up.  What a compiler merges is
not seen; ``cse`` merges it in the program.

A version with ``shuffle`` is counted on its PTX, as a warp runs it whose lanes are all there, in a launch that covers
the grid, away from the ends of rows of threads: the loads that no shuffle or register has replaced, on all branches
together.  Lanes at the ends of a warp or a row, warps that are not full, and launches with fewer blocks make their
original loads besides; they are not counted.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from msgspec import Struct

from metafork.algebra.polynomial import ONE, ZERO, Polynomial
from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.evaluators.kernel_walk import KernelWalk, UnknownCountError
from metafork.evaluators.kernels import kernel_of
from metafork.evaluators.leaf_ptx import ptx_of
from metafork.ir import program as ir
from metafork.ir.ir_strategies import SHUFFLE
from metafork.ir.kernel import Kernel
from metafork.llvm.leaf_ptx import covering_only, load_places, made
from metafork.llvm.ptx_target import TargetError
from metafork.ptx.text.source import PtxError


class GlobalLoads(Struct, frozen=True):
    """Loads from global memory of a thread and a block; accepted when at most the target ``L``."""

    name: str = "global_loads"
    kind: Literal["resource", "performance"] = "performance"
    symbol: str = "L"
    less_is_better: bool = True
    default_target: Fraction | None = Fraction(8)

    def evaluate(self, version: ir.Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the loads as a polynomial in parameters and derived symbols."""
        return global_loads(version, analyses)


def global_loads(version: ir.Version, analyses: Analyses) -> CounterValue | NotKnown:
    """Return the value of the counter."""
    return analyses.of(_global_loads, version)


def _global_loads(version: ir.Version, analyses: Analyses) -> CounterValue | NotKnown:
    kernel = kernel_of(version.program, analyses)
    if isinstance(kernel, NotKnown):
        return kernel
    if SHUFFLE in version.ir_strategies:
        return _remaining(kernel, version, analyses)
    try:
        walk = _Loads(kernel, analyses.facts(version.program))
        total = walk.total()
    except UnknownCountError as reason:
        return NotKnown(str(reason))
    return CounterValue(total, derived=walk.needed(total))


def _remaining(kernel: Kernel, version: ir.Version, analyses: Analyses) -> CounterValue | NotKnown:
    """Count the loads that stay on the way of launches that cover the grid, from the PTX."""
    code = ptx_of(version, analyses)
    if isinstance(code, NotKnown):
        return NotKnown(f"no PTX to count: {code.reason}")
    try:
        _, straight = made(covering_only(kernel), version.ir_strategies)
        places, alone = load_places(code.plain), load_places(straight)
    except (TargetError, PtxError) as error:
        return NotKnown(f"no PTX to count: {error}")
    if places is None or alone is None:
        return NotKnown("the PTX has a cycle with two entries")
    if alone[1]:
        return NotKnown(
            "loads of its PTX stand in loops of a thread, and which of them shuffles replace is not counted"
        )
    if len(alone[0]) != len(places[0]):
        return NotKnown("its PTX does not part the launches that cover the grid from the others")
    assert code.report is not None
    replaced = {shuffle.span for shuffle in (*code.report.shuffles, *code.report.reuses)}
    return CounterValue(Polynomial.constant(len(places[0] - replaced)))


class _Loads(KernelWalk):
    """Loads from global memory: one for each element read there."""

    def access(self, element: ir.Element, *, stored: bool) -> Polynomial:
        return ONE if not stored and element.array in self.in_global_memory else ZERO

    def matters(self, loop: ir.For | ir.While) -> bool:
        """Say whether a loop reads global memory at all."""
        for stmt in ir.walk_statements((loop,)):
            stored = stmt.target if isinstance(stmt, ir.Assign) and not stmt.op else None
            for expr in ir.expressions_of(stmt):
                for part in ir.walk_expression(expr):
                    if isinstance(part, ir.Element) and part.array in self.in_global_memory and part is not stored:
                        return True
        return False


COUNTER = GlobalLoads()
