"""thread_planes: rows of several planes in one thread, where both directions share loads: stencils in three dimensions.

``before --> after``::

    meta_for (int p = 0; p < B0; p++)              meta_for (int s = 0; s < (B0 + 7) / 8; s++)
      meta_for (int q = 0; q < B1; q++)      -->     meta_for (int t = 0; t < (B1 + 3) / 4; t++)
        meta_for (int r = 0; r < B2; r++)              meta_for (int r = 0; r < B2; r++)
          S(p, q, r);                                    for (int p = 8 * s; p < B0 && p < 8 * s + 8; p++)
                                                           for (int q = 4 * t; q < B1 && q < 4 * t + 4; q++)
                                                             S(p, q, r);

A result of a seven-point stencil takes 5.25 loads with eight planes of a row a thread, and 3.75 with four rows of them.
What is loaded is counted: elements that are read by several results of a thread count once.  Legal always, by what
``meta_for`` promises; ``metafork.lowering.coarsening`` does it, once for each loop.  As with ``thread_coarsening``,
leaves are split in two, and blocks that keep something stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import ClassVar

from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import BlockMemory
from metafork.analysis.memory.block_shape import phases
from metafork.ir.invariants import is_coarsenable
from metafork.ir.program import Program, Version
from metafork.lowering.lowering import CannotLowerError, lower
from strategies.strategy import Applied, Effect, Need, NotApplied, Strategy
from strategies.threads.needs import FULL_WARP
from strategies.threads.thread_coarsening import iterations, memory_of_lone_threads, saved_loads

PLANES, ROWS = 8, 4
WORTH = Fraction(9, 10)
"""What loads have to fall to, of those with planes alone, for the registers of more results to pay."""


class ThreadPlanes(Strategy, frozen=True):
    """Let a thread run ``planes`` neighbouring iterations of one thread loop with ``rows`` of another each."""

    name: str = "thread_planes"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    needs: ClassVar[tuple[Need[Version], ...]] = (FULL_WARP,)
    planes: int = PLANES
    rows: int = ROWS

    def __post_init__(self) -> None:
        if not (2 <= self.planes <= 16 and 2 <= self.rows <= 16):
            raise ValueError(f"planes and rows are from 2 to 16, not {self.planes} and {self.rows}")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with fewer threads that do more, or why there is none."""
        program = version.program
        memory = memory_of_lone_threads(version, analyses)
        if isinstance(memory, NotApplied):
            return memory
        if any(path.windows or path.private for path in memory.paths):
            return NotApplied("threads share what the block keeps, or keep elements across a block-level loop")
        loops = [loop for loop in range(len(program.grid)) if is_coarsenable(program, loop)]
        saved = {loop: saved_loads(program, memory, loop) for loop in loops}
        sharing = sorted((loop for loop in loops if saved[loop]), key=lambda loop: -saved[loop])
        if len(sharing) < 2:
            return NotApplied("no two thread loops but the innermost share loads in neighbouring iterations")
        first, second = sharing[:2]
        planes, rows = min(self.planes, iterations(program, first)), min(self.rows, iterations(program, second))
        alone = _loads(program, memory, {first: planes})
        together = _loads(program, memory, {first: planes, second: rows})
        if together > alone * WORTH:
            return NotApplied("rows of several planes load hardly less than planes of one row")
        mapped = program.mapped(coarsened=(first, planes), crossed=(second, rows))
        try:
            lower(mapped, program.name, analyses)
        except CannotLowerError as reason:
            return NotApplied(str(reason))
        note = (
            f"a thread runs {planes} neighbouring iterations of thread loop {first} with {rows} of thread "
            f"loop {second} each: {float(together):.4g} loads per result instead of {float(alone):.4g}"
        )
        return Applied(replace(version, program=mapped), note, Effect("rows of planes per thread"))


def _loads(program: Program, memory: BlockMemory, counts: Mapping[int, int]) -> Fraction:
    """Return how many elements in the text a result loads, where a thread runs so many iterations of thread loops."""
    results = 1
    for count in counts.values():
        results *= count
    total = 0
    for path in memory.paths:
        for number, phase in enumerate(phases(path.program)):
            names = {phase.threads[loop].var: count for loop, count in counts.items()}
            reads = [one for one in path.references if one.reads and one.phase == number]
            total += sum(results for one in reads if None in one.indices)
            places = {(one.array, tuple(index for index in one.indices if index is not None)) for one in reads}
            total += len(
                {
                    (array, tuple(_moved(index, names, steps) for index in indices))
                    for array, indices in places
                    for steps in product(*map(range, names.values()))
                }
            )
    return Fraction(total, results)


def _moved(index: Polynomial, names: Mapping[str, int], steps: Sequence[int]) -> Polynomial:
    """Return an index so many iterations later."""
    return index.substitute(
        {name: Polynomial.symbol(name) + step for name, step in zip(names, steps, strict=True) if step}
    )


STRATEGY = ThreadPlanes()
