"""thread_striding: fewer threads than the thread loops ask for, each walking several of their iterations.

``before --> after``::

    meta_for (int v = 0; v < B0; v++)                   meta_for (int t = 0; t < threads; t++)
      meta_for (int u = 0; u < B1; u++)        -->        for (int x = t; x < B0 * B1; x += threads) {
        S(v, u);                                            int v = x / B1, u = x % B1;
                                                            S(v, u);
                                                          }

Every phase is walked by itself, and the barriers stay where they were.  Legal always: the iterations of the thread
loops of one phase are independent (that is what ``meta_for`` promises), scalars of thread code live within one
iteration, and scalars of block level are the same for all threads.  Elements that a thread kept in registers across a
block-level loop go back to global memory, since no one thread is alone with them any more.

The kernel runs with any number of threads.  It is counted with the least, one warp, so that every machine that can run
a warp has a leaf as far as threads are concerned; the dispatcher launches it with as many as machine, registers and
work allow (256 at most).
"""

from __future__ import annotations

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import UnknownSizeError, block_memory
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied, Effect, NotApplied, Strategy, after
from metafork.transform.stride import Stride


class ThreadStriding(Strategy, frozen=True):
    """Let a warp, or more threads where there is room, walk the thread loops of a block.

    ``meta_for (v < B0) meta_for (u < B1) S  -->  meta_for (t < threads) for (x = t; x < B0*B1; x += threads) S``
    """

    name: str = "thread_striding"
    improves: frozenset[str] = frozenset({"threads_per_block", "registers_per_block"})

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with fewer threads."""
        if version.program.striding is not None:
            return NotApplied("threads stride over this block already")
        note = "a warp or more threads walk the thread loops of a block"
        try:
            private = {
                held.array.name for path in block_memory(version.program, analyses).paths for held in path.private
            }
        except UnknownSizeError as reason:
            return NotApplied(str(reason))
        if private:
            note += f"; elements of {', '.join(sorted(private))} leave the registers for global memory"
        schedule = (Stride(analyses.hardware.warp_size),)
        return after(version, schedule, analyses, note, Effect("few threads stride over a block"))


STRATEGY = ThreadStriding()
