"""double_buffering: the window of the next step of a loop is copied while a block computes this step.

``before --> after``, for a window of a block-level loop::

    for (k < steps) {                     tile[0] = a[..0..];
      tile = a[..k..];                    for (k < steps) {
      barrier;                              wait; barrier;
      ... tile ...                 -->      if (k + 1 < steps) tile[(k + 1) % 2] = a[..k + 1..];
      barrier;                              ... tile[k % 2] ...
    }                                     }

From compute capability 8.0 on the copies are asynchronous (``cp.async``: no register holds the elements on their way);
older hardware, and code that LLVM or OpenCL makes, copies into the same two buffers at once.  Such a window takes twice
its shared memory, and a step one barrier instead of two.  ``metafork.analysis.memory.stages`` says what is proved,
``metafork.lowering.copies.staged`` how it is lowered.
"""

from __future__ import annotations

from typing import ClassVar

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import UnknownSizeError, block_memory
from metafork.evaluators.shared_memory import COUNTER as SHARED_MEMORY
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied, Effect, Need, NotApplied, Strategy, after
from metafork.transform.placement import Stages


class DoubleBuffering(Strategy, frozen=True):
    """Give windows of a block-level loop two buffers: ``tile  -->  tile[2]``."""

    name: str = "double_buffering"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version whose copies run a step ahead, or why none may."""
        program = version.program
        if version.ir_strategies:
            return NotApplied("registers are short: the leaf is PTX, whose copies are not asynchronous")
        if program.mapping.stages > 1:
            return NotApplied("windows have two buffers already")
        staged = program.mapped(stages=2)
        try:
            windows = [held for path in block_memory(staged, analyses).paths for held in path.windows]
        except UnknownSizeError as reason:
            return NotApplied(str(reason))
        ahead = dict.fromkeys(held.window.array.name for held in windows if held.stages > 1)
        others = dict.fromkeys(held.one_buffer for held in windows if held.stages == 1)
        if not ahead:
            return NotApplied("; ".join(others) or "nothing is in shared memory")
        note = f"the next windows of {', '.join(ahead)} are copied while a block uses these, into two buffers in turn"
        note = "; ".join([note, *others])
        needs = (Need(SHARED_MEMORY, 1),)
        return after(version, (Stages(2),), analyses, note, Effect("copies a step ahead"), needs=needs)


STRATEGY = DoubleBuffering()
