"""reduction_tile: several sums per thread over operands that rows or columns of threads share, in strips.

``tile(jb, 8); tile(ib, 8); strips(k, size=16); cache(a); cache(b)``, for 8 by 8 sums: a block keeps its threads and
computes more, for each thread has the iterations of several blocks.  An element that a thread loads serves all sums of
its row or column, and comes from shared memory, where the strips lie (``metafork.transform.nests.tile_strips``).

No operand is written.  It is done for floating sums, for then a tile at the end of an array needs no path of its own
(``metafork.analysis.memory.speculation``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.prover import Prover
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import PathPlan, block_memory
from metafork.analysis.memory.block_shape import SEVERAL_NESTS, only_phase
from metafork.analysis.memory.speculation import left_out
from metafork.analysis.references import Reference
from metafork.analysis.values.scope import Scope
from metafork.evaluators.extent import Extent
from metafork.ir import program as ir
from metafork.ir.marks import phases
from metafork.strategies.strategy import Applied, Effect, Need, NotApplied, Remark, Strategy
from metafork.strategies.threads.needs import FULL_WARP, not_untouched
from metafork.strategies.threads.strips import not_known, read_in, why_no_room
from metafork.transform.directive import Refused, Schedule, applied
from metafork.transform.nests.steady_loops import INT, Nest, nests
from metafork.transform.nests.tile_strips import why_not_alone
from metafork.transform.placement import Cache
from metafork.transform.strips import Strips
from metafork.transform.tile import Tile

FLAT = 4
"""How many times as many threads in one direction as in the other make a block flat."""


class ReductionTile(Strategy, frozen=True):
    """Let a thread have rows by columns of sums, and the block walk their loop in strips of ``strip`` iterations.

    Of the ``shapes``, those that are longer in one direction are for blocks that have four times as many threads in the
    other one: under ``meta_block(8, 32)`` 16 by 4 sums make 128 by 128, and 8 by 8 would make 64 by 256.
    """

    name: str = "reduction_tile"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    caches: ClassVar[bool] = True
    shapes: tuple[tuple[int, int], ...] = ((16, 4), (4, 16), (8, 8), (4, 4))
    strip: int = 16

    def __post_init__(self) -> None:
        if not 4 <= self.strip <= 64:
            raise ValueError(f"strip is from 4 to 64, not {self.strip}")

    def apply(self, version: ir.Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version whose threads have several sums, or why there is none."""
        program = version.program
        if (split := not_untouched(version)) is not None:
            return split
        found = _reduction(program, analyses)
        if isinstance(found, str):
            return NotApplied(found)
        (rows, columns), *others = self.shapes
        counts = dict(zip(found.axes, (rows, columns), strict=True))
        variable, arrays = found.nest.view.variable.name, ", ".join(found.operands)
        schedule: Schedule = tuple(Tile(program.grid[axis].var, counts[axis]) for axis in reversed(found.axes))
        schedule += (Strips(variable, self.strip), *(Cache(name) for name in found.operands))
        mined = applied(program, schedule, analyses)
        if isinstance(mined, Refused):
            return NotApplied(mined.reason, mined.span)
        if (unfit := _why_not(mined, analyses)) is not None:
            return NotApplied(unfit)
        (few, wide), (many, narrow) = sorted(zip((rows, columns), found.axes, strict=True))
        threads = [loop.extent for loop in phases(mined)[0].threads]
        flat = [Need(Extent(threads[wide], threads[narrow]), FLAT)] if few < many else []
        shape = f"{rows} x {columns} results per thread"
        note = f"a thread has {shape[: -len(' per thread')]}, and a block walks the loop over {variable} in strips"
        return Applied(
            replace(version, program=mined),
            f"{note}, of which {arrays} go through shared memory",
            Effect(f"{shape}, loop over {variable} in strips"),
            tuple(_remarks(program, found)),
            (FULL_WARP, *flat),
            replace(self, shapes=tuple(others)) if others else None,
            schedule,
        )


class _Reduction(Struct, frozen=True):
    """A loop of sums, the operands that it reads, each with a read, and the two dimensions of the grid to be tiled."""

    nest: Nest
    operands: Mapping[str, ir.Element]
    axes: tuple[int, int]


def _reduction(program: ir.Program, analyses: Analyses) -> _Reduction | str:
    """Return the first loop of sums whose operands rows or columns of threads share, or why there is none."""
    phase = only_phase(program)
    if phase is None:
        return SEVERAL_NESTS
    loops = (*program.grid, *phase.threads)
    if any(loop.type is not INT or loop.extent.type is not INT for loop in loops):
        return "the loops of grid and threads do not all count int"
    reason = "a thread has no loop whose ends are the same for all threads"
    facts = analyses.facts(program)
    scope, prover = Scope.of(facts), analyses.prover(facts.constraints, facts.derived)
    for nest in nests(phase):
        operands = _operands(nest, analyses.references(program, facts))
        ending = operands if isinstance(operands, str) else nest.ending(scope, prover)
        axes = operands if isinstance(operands, str) else _shared_axes(program, phase, operands)
        if isinstance(ending, str) or isinstance(axes, str):
            reason = ending if isinstance(ending, str) else str(axes)
        elif not isinstance(operands, str):
            return _Reduction(ending, {one.array: one.element for one in operands}, axes)
    return reason


def _operands(nest: Nest, references: Sequence[Reference]) -> list[Reference] | str:
    """Return what a loop of floating sums reads in each iteration, or why it is none."""
    variable = nest.view.variable.name
    accesses = read_in(nest, references)
    if isinstance(accesses, str):
        return accesses
    if (more := why_not_alone(nest)) is not None:
        return more
    sums = (one.target.type for one in nest.loop.body if isinstance(one, ir.Assign))
    if not all(type_.floating for type_ in sums):
        return f"the loop over {variable} adds up no floating numbers"
    written = {one.array for one in references if one.writes}
    for one in accesses:
        if (unknown := not_known(one, variable)) is not None:
            return unknown
        if one.array in written or not one.element.type.floating:
            return f"{one.array} is written, or holds no floating numbers"
    return accesses or f"the loop over {variable} reads nothing"


def _shared_axes(program: ir.Program, phase: ir.Phase, operands: Sequence[Reference]) -> tuple[int, int] | str:
    """Return the two innermost dimensions along which threads share an operand, and each of which moves another one."""
    moves: list[set[int]] = []
    for one in operands:
        symbols = {name for index in one.indices if index is not None for name in index.symbols}
        pairs = enumerate(zip(program.grid, phase.threads, strict=True))
        moves.append({axis for axis, (block, thread) in pairs if symbols & {block.var, thread.var}})
    shared = [
        axis
        for axis in range(len(program.grid))
        if any(axis in one for one in moves) and any(axis not in one for one in moves)
    ]
    if len(shared) < 2 or not all(set(shared[-2:]) - one for one in moves):
        return "no rows and columns of threads share what they read"
    return shared[-2], shared[-1]


def _remarks(program: ir.Program, found: _Reduction) -> Iterator[Remark]:
    for name, read in found.operands.items():
        reason = f"rows of threads share its elements in the loop over {found.nest.view.variable.name}, in strips"
        yield Remark("shared memory", name, True, reason, program.array(name).span, read.span)


def _why_not(mined: ir.Program, analyses: Analyses) -> str | None:
    """Say why the strips of a program have no place in shared memory, or its sums none in registers."""
    if (full := why_no_room(mined, analyses)) is not None:
        return full
    memory = block_memory(mined, analyses)
    if any(path.block_arrays for path in memory.paths):
        return "the sums of a thread have no registers"
    prover = analyses.prover(memory.facts.constraints, memory.facts.derived)
    if not all(_in_any_case(path, prover) for path in memory.paths):
        return "sums at the end of an array would take a path of their own"
    return None


def _in_any_case(path: PathPlan, prover: Prover) -> bool:
    """Say whether no condition is asked in the loops over strips."""
    known = left_out(path, prover)
    strips = [one.body for one in path.program.body if isinstance(one, ir.For)]
    loops = [one for body in strips for one in ir.walk_statements(body) if isinstance(one, ir.For)]
    return all(id(one) in known for one in ir.walk_statements(tuple(loops)) if isinstance(one, ir.If))


STRATEGY = ReductionTile()
