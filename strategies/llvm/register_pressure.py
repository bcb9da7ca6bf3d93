"""register_pressure, levels 1 to 3: LLVM pass pipelines that keep fewer values alive (DESIGN section 5).

``program, lambda --> program, lambda + register_pressure<k>``

A leaf with such a strategy is no longer text for nvcc: it is the PTX that LLVM makes of its IR, and it is counted as
such.  Level 1 runs LLVM's -O3 without unrolling; level 2 also hoists nothing out of loops and keeps addresses as
induction variables; level 3 computes each address where it is used.  The levels replace each other (each starts from
the kernel's own IR), and each is kept only where it lowers ``registers_per_thread``.

Legality: LLVM's passes keep the meaning of the IR, and no flag allows them to regroup or contract floating-point
operations; the PTX spells out the rounding of each one.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.leaf_ptx import why_no_ptx
from metafork.evaluators.registers_per_thread import registers
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied, Effect, NotApplied, Sign, Strategy

PIPELINES = (
    Pipeline("register_pressure1", ("O3-rolled", "sink")),
    Pipeline(
        "register_pressure2",
        (
            "sroa",
            "simplifycfg",
            "instcombine",
            "loop-simplify",
            "lcssa",
            "loop-rotate",
            "loop-reduce",
            "instcombine",
            "simplifycfg",
            "dce",
            "sink",
        ),
    ),
    Pipeline("register_pressure3", ("sroa", "simplifycfg", "instcombine", "simplifycfg", "dce", "sink")),
)

STEM = "register_pressure"
"""The levels' names without their numbers."""


class RegisterPressure(Strategy, frozen=True):
    """One level: the LLVM passes that make its code."""

    pipeline: Pipeline
    on_ir: ClassVar[bool] = True
    sign: ClassVar[Sign] = Sign(denies="1")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with this level appended to its IR strategies, where that lowers the count."""
        if self.pipeline in version.ir_strategies:
            return NotApplied("it is applied already")
        changed = replace(version, ir_strategies=(*version.ir_strategies, self.pipeline))
        before, after = registers(version, analyses), registers(changed, analyses)
        if isinstance(before, NotKnown):
            return NotApplied(before.reason)
        if isinstance(after, NotKnown):
            return NotApplied(after.reason)
        if after >= before:
            return NotApplied(f"LLVM's code would take {after} registers per thread, no fewer than {before}")
        # Only now: whether the leaf could be emitted at all costs a lowering of its own.
        reason = why_no_ptx(version.program, analyses)
        if reason is not None:
            return NotApplied(reason)
        note = f"takes {after} registers per thread instead of {before}, by LLVM's own passes"
        return Applied(changed, note, Effect("fewer registers", f"level {self.name.removeprefix(STEM)}"), schedule=())


_REGISTERS = frozenset({"registers_per_thread", "registers_per_block", "occupancy"})
STRATEGIES = tuple(RegisterPressure(pipeline.name, _REGISTERS, pipeline) for pipeline in PIPELINES)
"""The levels, mildest first."""
