"""thread_columns: several neighbours in x of the innermost thread loop in one thread, with vector accesses.

``before --> after``::

    meta_for (int v = 0; v < B0; v++)              meta_for (int t = 0; t < (B0 + 3) / 4; t++)
      meta_for (int u = 0; u < B1; u++)     -->      meta_for (int q = 0; q < (B1 + 3) / 4; q++)
        S(v, u);                                       for (int v = 4 * t; v < B0 && v < 4 * t + 4; v++)
                                                         for (int u = 4 * q; u < B1 && u < 4 * q + 4; u++)
                                                           S(v, u);

Legal always, by what ``meta_for`` promises; ``metafork.lowering.columns`` does it and says how.  It pays where
neighbours in x share loads (a row's factor, an element of a vector, columns of a stencil that the next result needs
too) and where their own elements lie side by side, so that those of a thread are one access of 16 bytes: a warp then
has no more requests than one with a result a thread, and asks for no more sectors (``metafork.lowering.vectors`` counts
them).  Where an outer thread loop shares loads too, a thread runs several of its iterations with it.

Where vectors are not aligned as the program stands, its tiles begin at a multiple instead, if that computes the same
(``strategies.loops.aligned_start``).

Blocks that keep something in shared memory, or elements of a thread in registers across a block-level loop, stay as
they are: there the threads that share a window are what saves loads.  As with ``thread_coarsening``, leaves are split
in two.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_shape import phases
from metafork.ir.invariants import has_columns
from metafork.ir.program import Program, Version
from metafork.lowering.lowering import CannotLowerError, lower
from strategies.loops.aligned_start import with_aligned_start
from strategies.strategy import Applied, Effect, Need, NotApplied, Strategy
from strategies.threads.needs import FULL_WARP
from strategies.threads.thread_coarsening import (
    MANY,
    iterations,
    memory_of_lone_threads,
    rows_that_share,
    saved_loads,
)

COLUMNS = (4, 2)
"""How many columns are tried: an access of 16 bytes has four, or two of 8 bytes."""


class ThreadColumns(Strategy, frozen=True):
    """Let a thread run four or two iterations of the innermost thread loop, up to ``results`` with an outer one."""

    name: str = "thread_columns"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    needs: ClassVar[tuple[Need[Version], ...]] = (FULL_WARP,)
    results: int = 16

    def __post_init__(self) -> None:
        if not 4 <= self.results <= 64:
            raise ValueError(f"results is from 4 to 64, not {self.results}")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with fewer threads that do more, or why there is none."""
        program = version.program
        memory = memory_of_lone_threads(version, analyses)
        if isinstance(memory, NotApplied):
            return memory
        if any(path.windows or path.private for path in memory.paths):
            return NotApplied("threads share what the block keeps, or keep elements across a block-level loop")
        if not has_columns(program):
            return NotApplied("innermost thread loops do not all count int")
        if not saved_loads(program, memory, len(phases(program)[0].threads) - 1):
            return NotApplied("neighbouring iterations of the innermost thread loop share no loads")
        loop = rows_that_share(program, memory)
        for begins in (program, analyses.of(_from_multiples, program)):
            if begins is None:
                break
            for columns in (one for one in COLUMNS if one <= iterations(program, -1)):
                rows = min(self.results // columns, MANY if loop is None else iterations(program, loop))
                several = None if loop is None or rows == 1 else (loop, rows)
                mapped = begins.mapped(columns=columns, coarsened=several)
                try:
                    kernel = lower(mapped, program.name, analyses)
                except CannotLowerError as refused:
                    return NotApplied(str(refused))
                if kernel.aligned:
                    note = f"a thread runs {columns} neighbouring iterations of the innermost thread loop"
                    note += "" if several is None else f" and {rows} of thread loop {loop}"
                    note += ", in vectors" if begins is program else f", in vectors, from a multiple of {COLUMNS[0]} on"
                    return Applied(replace(version, program=mapped), note, Effect("columns per thread"))
        return NotApplied("what neighbours in x access does not lie side by side in vectors")


def _from_multiples(program: Program, analyses: Analyses) -> Program | None:
    return with_aligned_start(program, COLUMNS[0], analyses.facts(program))


STRATEGY = ThreadColumns()
