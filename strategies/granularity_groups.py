"""granularity_groups: iterations of a granularity loop in groups of four, so that their results have registers.

``before --> after``, for matmul's ``w`` in registers across the block-level loop over ``k``::

                                                   int jw_full = dim * s / 4;
    meta_for (int j = 0; j < dim; j++)         meta_for (int jw_o = 0; jw_o < dim * s - 3 * jw_full; jw_o++)
      for (int k = 0; k < n / B; k++)            if (jw_o < jw_full) {
        meta_for (int u = 0; u < B; u++)           for (int k = 0; k < n / B; k++)
          for (int w = 0; w < s; w++)                meta_for (int u = 0; u < B; u++)
            S(k, j * s + w, u);           -->          for (int jw_i = 0; jw_i < 4; jw_i++)
                                                         S(k, 4 * jw_o + jw_i, u);
                                                 } else
                                                   for (int k = 0; k < n / B; k++)
                                                     meta_for (int u = 0; u < B; u++)
                                                       S(k, 3 * jw_full + jw_o, u);

A thread keeps elements across a block-level loop where their number is a constant
(``metafork.analysis.memory.private_windows``): where a loop over ``s`` says how many they are, each step of ``k`` reads
and writes them in global memory.  The loop joins the grid first (``strategies.granularity``, which proves that it may);
then ``tile(jw, 4, tail=peel)`` gives a block four neighbours of the new grid loop, and each of those that are left
over a block of its own.
Two loops may do so (``s0`` rows by ``s1`` columns).  It is done where what a thread keeps has registers afterwards that
had none before.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import BlockMemory, UnknownSizeError, block_memory
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.ir.program import Program, Version
from metafork.strategies.granularity import Step, reduced_once
from metafork.strategies.strategy import Applied, Effect, NotApplied, Strategy
from metafork.strategies.threads.needs import not_untouched
from metafork.transform.directive import Refused, Schedule, applied
from metafork.transform.tile import Tail, Tile

MOST_LOOPS = 2
"""Granularity loops that are taken: rows and columns of a thread's results."""


class GranularityGroups(Strategy, frozen=True):
    """Let a block take ``most`` neighbouring iterations of a granularity loop."""

    name: str = "granularity_groups"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    most: int = 4

    def __post_init__(self) -> None:
        if not 2 <= self.most <= 16:
            raise ValueError(f"most is from 2 to 16, not {self.most}")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version whose blocks take groups of iterations, or why there is none."""
        program = version.program
        if (split := not_untouched(version)) is not None:
            return split
        try:
            if not _kept_in_global_memory(block_memory(program, analyses)):
                return NotApplied("no element that a thread updates across a block-level loop lacks a register")
        except UnknownSizeError as unknown:
            return NotApplied(str(unknown))
        joined, positions, names, reason = program, list[int](), list[str](), ""
        schedule: Schedule = ()
        while len(names) < MOST_LOOPS:
            step = analyses.of(reduced_once, joined)
            if not isinstance(step, Step):
                return NotApplied(reason or f"no granularity loop joins the grid: {step.reason}", step.span)
            changed = [
                number
                for number, (old, new) in enumerate(zip(joined.grid, step.program.grid, strict=True))
                if old != new
            ]
            joined, schedule = step.program, (*schedule, *step.schedule)
            positions += [number for number in changed if number not in positions]
            names.append(step.extent)
            tiles = tuple(Tile(joined.grid[one].var, self.most, tail=Tail.PEEL) for one in positions)
            grouped = applied(joined, tiles, analyses)
            if not isinstance(grouped, Refused) and self._in_registers(grouped, analyses):
                note = (
                    f"a thread computes {self.most} neighbours of {' and of '.join(names)}, and keeps them in registers"
                )
                return Applied(
                    replace(version, program=grouped),
                    note,
                    Effect(f"{', '.join(names)} by {self.most}"),
                    schedule=(*schedule, *tiles),
                )
            reason = f"with {self.most} neighbours of {' and of '.join(names)} a thread would keep no more in registers"
        return NotApplied(reason)

    def _in_registers(self, program: Program, analyses: Analyses) -> bool:
        try:
            return not _kept_in_global_memory(block_memory(program, analyses))
        except UnknownSizeError:
            return False


def _kept_in_global_memory(memory: BlockMemory) -> bool:
    """Say whether an array is updated across a block-level loop in global memory."""
    return any(
        one.writes and any(loop.kind is LoopKind.BLOCK for loop in one.loops)
        for path in memory.paths
        for one in path.references
        if not any(window.array.name == one.array for window in path.private)
        and not any(held.window.array.name == one.array for held in path.windows)
        and one.array in {array.name for array in path.program.arrays}
    )


STRATEGY = GranularityGroups()
