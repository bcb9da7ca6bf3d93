"""thread_coarsening: several neighbouring results of an outer thread loop in one thread, where they share loads.

``before --> after``::

    meta_for (int v = 0; v < B0; v++)              meta_for (int t = 0; t < (B0 + 7) / 8; t++)
      meta_for (int u = 0; u < B1; u++)     -->      meta_for (int u = 0; u < B1; u++)
        S(v, u);                                       for (int v = 8 * t; v < B0 && v < 8 * t + 8; v++)
                                                         S(v, u);

Legal always, by what ``meta_for`` promises; ``metafork.lowering.coarsening`` does it and says how.  Thread loops are
taken but the innermost, whose threads stay neighbours in memory, and of them the one of whose neighbouring iterations
the most loads are the same: a row's factor, a weight, the rows of a stencil that the next result needs too.  Where
these come from shared memory, in a loop of the thread (a tile of a matrix), a thread runs fewer iterations, so that
what it keeps of all of them across a block-level loop still has registers; a stencil's tile, of which a thread reads
each element once, leaves threads as they are.  So do arrays of a block's own, structures in shared memory, and
elements kept in registers without a tile.

Registers are spent to save loads and indices: a leaf that the strategy applies to is split in two, with it where the
registers are there and a block still fills a warp, and without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import BlockMemory, UnknownSizeError, block_memory
from metafork.analysis.memory.block_shape import phases
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.ir.invariants import is_coarsenable
from metafork.ir.program import IntConst, Program, Version
from metafork.ir.rewriting import private_arrays
from metafork.lowering.coarsening import can_run_together
from metafork.lowering.lowering import CannotLowerError, lower
from strategies.strategy import Applied, Effect, Need, NotApplied, Strategy
from strategies.threads.needs import FULL_WARP

MANY = 1 << 30
"""More iterations than a thread loop has."""

OF_TILES = (4, 2)
"""How many iterations are tried where the loads that they share come from shared memory."""


class ThreadCoarsening(Strategy, frozen=True):
    """Let a thread run ``most`` neighbouring iterations of the thread loop whose iterations share the most loads."""

    name: str = "thread_coarsening"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    needs: ClassVar[tuple[Need[Version], ...]] = (FULL_WARP,)
    most: int = 8

    def __post_init__(self) -> None:
        if not 2 <= self.most <= 64:
            raise ValueError(f"most is from 2 to 64, not {self.most}")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with fewer threads that do more, or why there is none."""
        program = version.program
        memory = memory_of_lone_threads(version, analyses)
        if isinstance(memory, NotApplied):
            return memory
        tiles = any(path.windows for path in memory.paths)
        if not tiles and any(path.private for path in memory.paths):
            return NotApplied("a thread keeps elements in registers across a block-level loop, and no tile is shared")
        best = rows_that_share(program, memory, in_loops=tiles)
        if best is None:
            where = " in a loop of a thread" if tiles else ""
            return NotApplied(f"neighbouring iterations of thread loops but the innermost share no loads{where}")
        most = min(self.most, iterations(program, best))
        for count in [rows for rows in OF_TILES if rows <= most] if tiles else [most]:
            coarsened = program.mapped(coarsened=(best, count))
            try:
                lower(coarsened, program.name, analyses)
                if _in_registers(block_memory(coarsened, analyses)) != _in_registers(memory):
                    continue
            except CannotLowerError as reason:
                return NotApplied(str(reason))
            note = f"a thread runs {count} neighbouring iterations of thread loop {best}, which share loads"
            return Applied(replace(version, program=coarsened), note, Effect("several results per thread"))
        return NotApplied("what a thread keeps across a block-level loop has no registers for several iterations")


def memory_of_lone_threads(version: Version, analyses: Analyses) -> BlockMemory | NotApplied:
    """Return the memory of a block whose threads may run several iterations each, or why they may not."""
    program = version.program
    if version.ir_strategies:
        return NotApplied("registers are short: the leaf is PTX")
    if program.mapping.several_results or program.mapping.striding is not None:
        return NotApplied("a thread runs several iterations of thread loops already")
    try:
        memory = block_memory(program, analyses)
    except UnknownSizeError as reason:
        return NotApplied(str(reason))
    if any(path.structures or path.block_arrays for path in memory.paths):
        return NotApplied("threads share what the block keeps")
    if not all(can_run_together(one.body, private_arrays(one.body)) for one in phases(program)):
        return NotApplied("iterations of a thread loop do not run side by side: one may end early, or has arrays")
    return memory


def _in_registers(memory: BlockMemory) -> list[set[str]]:
    """Return the arrays of which a thread keeps elements across a block-level loop, by path."""
    return [{window.array.name for window in path.private} for path in memory.paths]


def rows_that_share(program: Program, memory: BlockMemory, *, in_loops: bool = False) -> int | None:
    """Return the outer thread loop whose iterations share the most loads; ``None`` where those of none do.

    ``in_loops``: loads in a serial loop of a thread alone.
    """
    saved = {
        loop: saved_loads(program, memory, loop, in_loops=in_loops)
        for loop in range(len(program.grid))
        if is_coarsenable(program, loop)
    }
    best = max(saved, key=lambda loop: saved[loop], default=None)
    return best if best is not None and saved[best] else None


def saved_loads(program: Program, memory: BlockMemory, loop: int, *, in_loops: bool = False) -> int:
    """Return how many loads in the text the next iteration of a thread loop has in common with this one."""
    if iterations(program, loop) < 2:
        return 0  # there is no next one
    names = [phase.threads[loop].var for phase in phases(program)]
    shared = [one for path in memory.paths for one in _shared(path.references, names)]
    return sum(not in_loops or any(around.kind is LoopKind.SERIAL for around in one.loops) for one in shared)


def iterations(program: Program, loop: int) -> int:
    """Return how many iterations a thread loop has at most, where its extent is a number; else very many."""
    extents = [phase.threads[loop].extent for phase in phases(program)]
    return min((one.value for one in extents if isinstance(one, IntConst)), default=MANY)


def _shared(references: Sequence[Reference], names: Sequence[str]) -> Iterator[Reference]:
    reads = [one for one in references if one.reads and one.phase is not None and None not in one.indices]
    places = {(one.phase, one.array, one.indices) for one in reads}
    for one in reads:
        assert one.phase is not None
        moved = _moved(one, names[one.phase])
        # The next iteration's own loops may come to the same elements an iteration earlier.
        loops = [loop.var for loop in one.loops if loop.kind is LoopKind.SERIAL]
        if (one.phase, one.array, moved) in places or any(moved == _moved(one, loop) for loop in loops):
            yield one


def _moved(reference: Reference, variable: str) -> tuple[Polynomial | None, ...]:
    """Return the indices of an access one iteration later."""
    later = {variable: Polynomial.symbol(variable) + ONE}
    return tuple(None if index is None else index.substitute(later) for index in reference.indices)


STRATEGY = ThreadCoarsening()
