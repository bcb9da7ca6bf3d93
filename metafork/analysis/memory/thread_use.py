"""How threads that are neighbours in x walk through the window of an array: along its rows, or down its columns.

``a[i][u]`` with u in x walks along a row: global memory serves a warp with few sectors.  ``a[u][j]`` walks down a
column: in shared memory, its words lie in one bank where the rows have as many elements as there are banks.
"""

from __future__ import annotations

from metafork.algebra.polynomial import ONE, ZERO
from metafork.algebra.prover import Prover
from metafork.algebra.radix import is_mixed_radix
from metafork.analysis.delinearization import coordinates
from metafork.analysis.memory.block_memory import BlockMemory
from metafork.analysis.memory.windows import Window
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.ir.mapping import ROW_BY_ROW


def used_once_along_rows(window: Window, prover: Prover) -> bool:
    """Say whether it is proved that one thread uses each element, once, and that neighbours in x touch neighbours.

    An access that reads and writes an element (``c[i] += x``) is one use, and so is a second one at the same place.
    """
    first, *others = window.references
    own = coordinates(first, window.factors)
    if any(one.distances for one in window.references):
        return False
    if any(other.loops != first.loops or coordinates(other, window.factors) != own for other in others):
        return False
    x = _in_x(first)
    if x is None or own[-1].coefficient(x.var) != ONE or any(index.coefficient(x.var) != ZERO for index in own[:-1]):
        return False
    varying = [loop for loop in first.loops if loop.var not in window.level and loop.kind in _INSIDE]
    for index in own:
        digits = [loop for loop in varying if loop.var in index.symbols]
        if not is_mixed_radix(index, digits, prover):
            return False
        varying = [loop for loop in varying if loop not in digits]
    return all(loop.trips == ONE for loop in varying)


def with_column_conflicts(memory: BlockMemory) -> frozenset[str]:
    """Return the arrays in shared memory whose columns neighbours in x go down, laid out row by row."""
    return frozenset(
        held.window.array.name
        for plan in memory.paths
        for held in plan.windows
        if held.window.layout == ROW_BY_ROW and any(_goes_down(one, held.window) for one in held.window.references)
    )


def _goes_down(reference: Reference, window: Window) -> bool:
    x = _in_x(reference)
    rows = coordinates(reference, window.factors)[:-1]
    return x is not None and any(row.coefficient(x.var) != ZERO for row in rows)


_INSIDE = (LoopKind.THREAD, LoopKind.SERIAL, LoopKind.BLOCK)


def _in_x(reference: Reference) -> LoopRange | None:
    """Return the thread loop that x walks, ``None`` for an access of the whole block."""
    threads = [loop for loop in reference.loops if loop.kind is LoopKind.THREAD]
    return threads[-1] if threads and reference.phase is not None else None
