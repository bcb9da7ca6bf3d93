"""Loads that neighbouring iterations of thread loops share: what several results per thread save."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.memory.block_memory import BlockMemory
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.ir.marks import is_coarsenable, phases
from metafork.ir.program import IntConst, Program

MANY = 1 << 30
"""More iterations than a thread loop has."""

Indices = tuple[Polynomial | None, ...]


def loops_that_share(program: Program, memory: BlockMemory, *, in_loops: bool = False) -> list[int]:
    """Return the outer thread loops whose neighbouring iterations share loads, those first that share the most.

    ``in_loops``: loads in a serial loop of a thread alone.
    """
    saved = {
        loop: saved_loads(program, memory, loop, in_loops=in_loops)
        for loop in range(len(program.grid) - 1)
        if is_coarsenable(program, loop, 2)
    }
    return sorted((loop for loop in saved if saved[loop]), key=lambda loop: (-saved[loop], -loop))


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
        moved = _moved(one.indices, {names[one.phase]: 1})
        # The next iteration's own loops may come to the same elements an iteration earlier.
        loops = [loop.var for loop in one.loops if loop.kind is LoopKind.SERIAL]
        if (one.phase, one.array, moved) in places or any(moved == _moved(one.indices, {loop: 1}) for loop in loops):
            yield one


def loads_per_result(program: Program, memory: BlockMemory, counts: Mapping[int, int]) -> Fraction:
    """Return how many elements in the text a result loads, where a thread runs so many iterations of thread loops."""
    results, total = prod(counts.values()), 0
    for path in memory.paths:
        for number, phase in enumerate(phases(path.program)):
            names = {phase.threads[loop].var: count for loop, count in counts.items()}
            reads = [one for one in path.references if one.reads and one.phase == number]
            total += sum(results for one in reads if None in one.indices)
            known = {(one.array, one.indices) for one in reads if None not in one.indices}
            steps = [dict(zip(names, place, strict=True)) for place in product(*map(range, names.values()))]
            total += len({(array, _moved(indices, step)) for array, indices in known for step in steps})
    return Fraction(total, results)


def _moved(indices: Indices, steps: Mapping[str, int]) -> Indices:
    """Return the indices of an access so many iterations of loops later."""
    later = {name: Polynomial.symbol(name) + step for name, step in steps.items() if step}
    return tuple(None if index is None else index.substitute(later) for index in indices)
