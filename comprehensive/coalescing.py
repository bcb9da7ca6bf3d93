"""Loads of a kernel whose warps touch a line of memory for each thread: what is said of a kernel before all else.

Threads that are neighbours in x read elements so far apart that each of them has a line of its own, or a number of
elements apart that only run time says (``x[i * m + k]`` with a row a thread).  Arrays in shared memory are left aside:
copies run along rows.  Where an index is no polynomial nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from metafork.algebra.polynomial import ONE, ZERO, Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.analysis.values.scope import Scope
from metafork.ir.program import Array, Program
from metafork.strategies.strategy import Remark

LINE = 128
"""Bytes of a line of memory."""


def loads_by_lines(program: Program, analyses: Analyses) -> Iterator[Remark]:
    """Yield a remark for each array of which a warp's load touches as many lines as it has threads."""
    facts = analyses.facts(program)
    scope = Scope.of(facts)
    arrays = {array.name: array for array in program.arrays if array.name not in program.mapping.cached}
    said: set[str] = set()
    for reference in analyses.references(program, facts):
        array = arrays.get(reference.array)
        if array is None or not reference.reads or reference.atomic or array.name in said:
            continue
        apart = _apart(reference, array, scope)
        if apart is None or (apart.is_constant and abs(apart.constant_value()) * array.element.size < LINE):
            continue
        said.add(array.name)
        reason = f"threads that are neighbours read elements {apart} apart"
        yield Remark("coalescing", array.name, False, reason, array.span, reference.element.span)


def _apart(reference: Reference, array: Array, scope: Scope) -> Polynomial | None:
    """Return how many elements lie between those of two neighbours, ``None`` where it is not known."""
    threads = [loop for loop in reference.loops if loop.kind is LoopKind.THREAD and loop.trips != ONE]
    if not threads:
        return None
    total = ZERO
    row: Polynomial | None = ONE
    for index, extent in zip(reversed(reference.indices), reversed(array.extents), strict=True):
        step = None if index is None else index.coefficient(threads[-1].var)
        if step is None or row is None:
            return None
        total += step * row
        inner = scope.polynomial(extent)
        row = None if inner is None else row * inner
    return total
