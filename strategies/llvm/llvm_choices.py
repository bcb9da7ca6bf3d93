"""What LLVM may do or leave out, where it trades instructions for registers (after gpucc, paper 002, section 3).

``program, lambda --> program, lambda + pipeline``

- ``sink`` and ``rematerialize`` lower ``registers_per_thread``, and may raise ``instructions``.  ``sink`` computes
  nothing ahead of the branch that needs it.  ``rematerialize`` computes values anew where they are used: nothing is
  kept in common or moved out of loops, no address is made from another, and loops stay rolled.
- ``straight_line``, ``speculate`` and ``unroll`` lower ``instructions``, and may raise ``registers_per_thread``: each
  puts back into a pipeline what it lacks.  The standard pipeline has all of them, and so has nvcc.

The leaf becomes PTX; each is kept only where it lowers its counter.  They combine: each starts from the last pipeline.

Legality: LLVM's passes keep the meaning of the IR, and no flag allows them to regroup or contract floating-point
operations.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.instructions import instructions
from metafork.evaluators.leaf_ptx import why_no_ptx
from metafork.evaluators.registers_per_thread import registers
from metafork.ir.ir_strategies import STANDARD, Pipeline, pipeline_of
from metafork.ir.program import Version
from metafork.llvm.switches import SHARING, SPECULATION, STRAIGHT_LINE, UNROLLING
from metafork.strategies.strategy import Applied, Effect, NotApplied, Strategy

_INSTRUCTIONS = frozenset({"instructions"})
_REGISTERS = frozenset({"registers_per_thread", "registers_per_block", "occupancy"})
_SINKING = (*STANDARD, "sink")


class Choice(Strategy, frozen=True):
    """One choice: optimizations that it puts back, and others that it leaves out.

    ``effect`` says of a leaf what was done, in a few words.
    """

    name: str
    improves: frozenset[str]
    effect: str
    back: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    on_ir: ClassVar[bool] = True

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version whose pipeline has the choice, where that lowers the counter."""
        before = pipeline_of(version.ir_strategies)
        without = tuple(one for one in before.without if one not in self.back)
        if self.back and without == before.without:
            return NotApplied(f"LLVM does all of it already: {', '.join(self.back)}")
        if self.out and {*self.out} <= {*without}:
            return NotApplied(f"LLVM leaves it out already: {', '.join(self.out)}")
        without = (*without, *(one for one in self.out if one not in without))
        passes = _SINKING if self.out else before.passes
        pipeline = Pipeline(self.name, passes, without)
        changed = replace(version, ir_strategies=(*version.ir_strategies, pipeline))
        reason = why_no_ptx(version.program, analyses)
        if reason is not None:
            return NotApplied(reason)
        counts = _counts(self.improves, version, changed, analyses)
        if isinstance(counts, NotKnown):
            return NotApplied(counts.reason)
        (old, new), what = counts
        if new >= old:
            return NotApplied(f"LLVM's code would take {new} {what}, no fewer than {old}")
        return Applied(changed, f"takes {new} {what} instead of {old}", Effect(self.effect), schedule=())


def _counts(
    improves: frozenset[str], version: Version, changed: Version, analyses: Analyses
) -> tuple[tuple[int, int], str] | NotKnown:
    """Return what is counted of the versions before and after, and in what."""
    if improves == _REGISTERS:
        old, new = registers(version, analyses), registers(changed, analyses)
        if isinstance(old, NotKnown):
            return old
        return new if isinstance(new, NotKnown) else ((old, new), "registers per thread")
    before, after = instructions(version, analyses), instructions(changed, analyses)
    if isinstance(before, NotKnown):
        return before
    if isinstance(after, NotKnown):
        return after
    return (before[0], after[0]), f"instructions a warp, in a launch with {after[1]}"


STRATEGIES = (
    Choice("straight_line", _INSTRUCTIONS, "straight-line code", back=(*STRAIGHT_LINE, SHARING)),
    Choice("speculate", _INSTRUCTIONS, "speculation", back=(SPECULATION,)),
    Choice("unroll", _INSTRUCTIONS, "unrolled", back=(UNROLLING,)),
    Choice("sink", _REGISTERS, "sunk", out=(SPECULATION,)),
    Choice("rematerialize", _REGISTERS, "rematerialized", out=(*STRAIGHT_LINE, SPECULATION, UNROLLING, SHARING)),
)
