"""tiles: only what needs a tile of shared memory has one, and columns of tiles have no bank conflicts.

``before --> after``, for a transposition::

    cache(a, c) { ... c[j][i] = a[i][j] ... }   -->   cache(c), c's rows of odd length { ... c[j][i] = a[i][j] ... }

*Direct.*  An array of which one thread uses each element once, and neighbours in x neighbours in memory, is served best
by global memory itself: its copy would be the same accesses, with those to shared memory and a barrier on top.  It
leaves shared memory where others stay there (``caching`` takes out all).

*Padded.*  Where neighbours in x go down a column of a tile, its rows get an odd number of elements: they then lie in
different banks, whatever the block's shape.

Legal always: the kernel reads and writes global memory where the program says so, and every layout is one-to-one.  No
limit asks for this strategy: its version is preferred where the order by cost finds it better.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from metafork.algebra.prover import Prover
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import BlockMemory, UnknownSizeError, block_memory
from metafork.analysis.memory.thread_use import used_once_along_rows, with_column_conflicts
from metafork.analysis.memory.windows import Window
from metafork.ir.mapping import ROW_BY_ROW
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied, Effect, NotApplied, Strategy, after
from metafork.transform.directive import Schedule
from metafork.transform.placement import LayOut, Uncache


class Tiles(Strategy, frozen=True):
    """``cache(a, c) { c[j][i] = a[i][j] }  -->  cache(c) { c[j][i] = a[i][j] }`` with rows of ``c`` of odd length."""

    name: str = "tiles"
    improves: frozenset[str] = frozenset()
    by_choice: ClassVar[bool] = True

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with arrays accessed directly and with padded tiles."""
        mapping = version.program.mapping
        if not mapping.cached:
            return NotApplied("no array goes through shared memory")
        try:
            memory = block_memory(version.program, analyses)
        except UnknownSizeError as reason:
            return NotApplied(str(reason))
        prover = analyses.prover(memory.facts.constraints, memory.facts.derived)
        direct = tuple(name for name in mapping.cached if _is_direct(name, memory, prover))
        kept = tuple(name for name in mapping.cached if name not in direct)
        if not kept:
            return NotApplied("no array that goes through shared memory needs to")
        columns = with_column_conflicts(memory)
        padded = tuple(name for name in kept if name in columns and mapping.layout(name) == ROW_BY_ROW)
        if not direct and not padded:
            return NotApplied("every array in shared memory is used there, and none by columns")
        notes = (
            [f"took {', '.join(direct)} out of shared memory: each element is used once, along rows"] if direct else []
        )
        notes += [f"rows of {', '.join(padded)} have an odd length: neighbours go down its columns"] if padded else []
        words = [f"{', '.join(direct)} in global memory"] if direct else []
        words += [f"{', '.join(padded)} padded"] if padded else []
        schedule: Schedule = tuple(Uncache(name) for name in direct)
        schedule += tuple(LayOut(name, "padded") for name in padded)
        return after(version, schedule, analyses, "; ".join(notes), Effect(", ".join(words), of_memory=True))


def _is_direct(name: str, memory: BlockMemory, prover: Prover) -> bool:
    windows = list(_windows(name, memory))
    return bool(windows) and all(used_once_along_rows(window, prover) for window in windows)


def _windows(name: str, memory: BlockMemory) -> Iterator[Window]:
    for plan in memory.paths:
        for held in plan.windows:
            if held.window.array.name == name:
                yield held.window


STRATEGY = Tiles()
