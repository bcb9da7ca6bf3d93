"""taller_columns: columns of a thread with twice the rows, where a result then takes fewer sectors.

``before --> after``, for 8 rows of 4 columns::

    meta_for (int v = 0; v < B0; v++)              meta_for (int t = 0; t < (B0 + 7) / 8; t++)
      meta_for (int u = 0; u < B1; u++)     -->      meta_for (int q = 0; q < (B1 + 3) / 4; q++)
        S(v, u);                                       for (int v = 8 * t; v < B0 && v < 8 * t + 8; v++)
                                                         for (int u = 4 * q; u < B1 && u < 4 * q + 4; u++)
                                                           S(v, u);

It is ``thread_columns`` with twice the results.  A stencil reads two rows more than it has results: a five-point one
takes 18 rows for 16 results below each other instead of 10 for 8, a convolution of 3 by 3 weights 10 for 8 instead of
6 for 4.  What is loaded is counted before anything is lowered (``strategies.threads.sectors``).

The kernel is fast where all rows of a thread run.  So it needs blocks whose rows are whole groups of them; where these
are not there, the next variant has ``thread_columns``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from msgspec.structs import replace

from evaluators.registers_per_thread import registers
from evaluators.whole_rows import COUNTER as WHOLE_ROWS
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import block_memory
from metafork.ir.invariants import is_coarsenable
from metafork.ir.program import Version
from metafork.lowering.lowering import CannotLowerError, lower
from strategies.strategy import Applied, Effect, Need, NotApplied, Strategy
from strategies.threads.needs import FULL_WARP
from strategies.threads.thread_coarsening import iterations
from strategies.threads.thread_columns import ThreadColumns

WORTH = Fraction(9, 10)
"""What sectors of loads have to fall to for the registers of twice the results to pay."""
MOST_REGISTERS = 168
"""With more, a multiprocessor of 65,536 registers has fewer than twelve warps, three for each of its schedulers."""


class TallerColumns(Strategy, frozen=True):
    """Let a thread run up to ``results`` iterations of two thread loops: columns with twice their rows."""

    name: str = "taller_columns"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    needs: ClassVar[tuple[Need[Version], ...]] = (FULL_WARP, Need(WHOLE_ROWS, 1))
    results: int = 32

    def __post_init__(self) -> None:
        if not 8 <= self.results <= 64:
            raise ValueError(f"results is from 8 to 64, not {self.results}")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with fewer threads that do more, or why there is none."""
        if not any(is_coarsenable(version.program, loop) for loop in range(len(version.program.grid))):
            return NotApplied("there are no rows")
        shorter = ThreadColumns(results=self.results // 2).apply(version, analyses)
        if isinstance(shorter, NotApplied):
            return shorter
        mapping = shorter.version.program.mapping
        if mapping.coarsened is None or mapping.columns is None:
            return NotApplied("rows of columns share no loads")
        (loop, few), columns = mapping.coarsened, mapping.columns
        rows = 2 * few
        if rows > iterations(version.program, loop):
            return NotApplied(f"there are fewer than {rows} rows")
        plain, more = registers(version, analyses), registers(shorter.version, analyses)
        if not isinstance(plain, int) or not isinstance(more, int):
            return NotApplied("how many registers a thread takes is not known")
        if 2 * more - plain > MOST_REGISTERS:
            taken = f"some {2 * more - plain} registers per thread"
            return NotApplied(f"{rows} rows of {columns} columns would take {taken}")
        from strategies.threads.sectors import sectors_of_loads  # few columns get this far

        memory = block_memory(version.program, analyses)
        before, after = (sectors_of_loads(memory, loop, count, columns) for count in (few, rows))
        if after > before * WORTH:
            return NotApplied(f"{rows} rows of {columns} columns load hardly less than {few}")
        mapped = shorter.version.program.mapped(columns=columns, coarsened=(loop, rows))
        try:
            kernel = lower(mapped, mapped.name, analyses)
        except CannotLowerError as reason:
            return NotApplied(str(reason))
        if not kernel.aligned:
            return NotApplied("what neighbours in x access does not lie side by side in vectors")
        note = (
            f"a thread runs {columns} neighbouring iterations of the innermost thread loop and {rows} of thread loop "
            f"{loop}, in vectors: loads take {float(after):.4g} sectors per result instead of {float(before):.4g}"
        )
        return Applied(replace(version, program=mapped), note, Effect("taller columns per thread"))


STRATEGY = TallerColumns()
