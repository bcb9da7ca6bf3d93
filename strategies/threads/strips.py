"""Loops that a block may walk in strips (``metafork.transform.strips``), and whether that is worth it."""

from __future__ import annotations

from collections.abc import Sequence

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import UnknownSizeError, block_memory
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.ir import program as ir
from metafork.strategies.window_worth import Growth
from metafork.transform.nests.steady_loops import LARGEST_BLOCK, Nest
from metafork.transform.strips import why_not_in_parts


def read_in(nest: Nest, references: Sequence[Reference]) -> list[Reference] | str:
    """Return the accesses of a loop that is worth strips, or why it is not."""
    variable = nest.view.variable.name
    if (parts := why_not_in_parts(nest)) is not None:
        return parts
    inside = {part for part in ir.parts_of((nest.loop,)) if isinstance(part, ir.Element)}
    found: list[Reference] = []
    for one in references:
        ranges = [loop for loop in one.loops if loop.var == variable and loop.kind is LoopKind.SERIAL]
        if one.element not in inside or not ranges:
            continue
        trips = ranges[0].trips
        if trips is not None and trips.is_constant and trips.constant_value() <= LARGEST_BLOCK:
            return f"the loop over {variable} has few iterations"
        found.append(one)
    return found


def not_known(one: Reference, variable: str) -> str | None:
    """Say that it is not known which elements of an array a loop comes to, where that is so."""
    if None in one.indices or one.clamped or one.wrapped:
        return f"the elements of {one.array} that the loop over {variable} comes to are not known"
    return None


def why_no_room(mined: ir.Program, analyses: Analyses) -> str | None:
    """Say why the strips of a program have no place in shared memory."""
    try:
        memory = block_memory(mined, analyses)
    except UnknownSizeError as reason:
        return str(reason)
    if memory.left_out:
        return memory.left_out[0].reason
    growth, known = Growth.of(mined, analyses), (*memory.facts.derived, *memory.derived)
    wide = [held.window.array.name for path in memory.paths for held in path.windows if growth.grows(held.words, known)]
    return f"a strip of {wide[0]} grows with the data" if wide else None
