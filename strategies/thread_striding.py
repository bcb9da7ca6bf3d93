"""thread_striding: fewer threads than the thread loops ask for, each walking several of their iterations.

``before --> after``::

    meta_for (int v = 0; v < B0; v++)                   meta_for (int t = 0; t < 256; t++)
      meta_for (int u = 0; u < B1; u++)        -->        for (int x = t; x < B0 * B1; x += 256) {
        S(v, u);                                            int v = x / B1, u = x % B1;
                                                            S(v, u);
                                                          }

Every phase is walked by itself, and the barriers stay where they were.  Legal always: the iterations of the thread
loops of one phase are independent (that is what ``meta_for`` promises), scalars of thread code live within one
iteration, and scalars of block level are the same for all threads.  Elements that a thread kept in registers across a
block-level loop go back to global memory, since no one thread is alone with them any more.

Two sizes: 256 threads, and one warp for machines (or register limits) that have no room for more.  With the latter
every machine that can run a warp has a leaf as far as threads are concerned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from metafork.ir import Version
from strategies.strategy import Applied, NotApplied


@dataclass(frozen=True, slots=True)
class ThreadStriding:
    """Give a block ``threads`` threads, whatever its thread loops ask for.

    ``meta_for (v < B0) meta_for (u < B1) S  -->  meta_for (t < threads) for (x = t; x < B0*B1; x += threads) S``
    """

    name: str
    threads: int
    improves: frozenset[str] = frozenset({"threads_per_block", "registers_per_block"})
    on_ir: bool = False
    at_leaf: bool = False

    def apply(self, version: Version) -> Applied | NotApplied:
        """Return the version with fewer threads."""
        now = version.program.striding
        if now is not None and now <= self.threads:
            return NotApplied(f"{now} threads walk the block already")
        program = replace(version.program, striding=self.threads)
        return Applied(replace(version, program=program), f"{self.threads} threads walk the thread loops of a block")


STRATEGIES = (ThreadStriding("thread_striding", 256), ThreadStriding("thread_striding_warp", 32))
