"""cache: an array goes through shared memory."""

from __future__ import annotations

from msgspec import Struct

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import UnknownSizeError, block_memory
from metafork.ir.messages.source import NOWHERE
from metafork.ir.program import Program
from metafork.transform.directive import Refused


class Cache(Struct, frozen=True):
    """Bring what a block touches of an array to shared memory first, and write back from there.

    cache(a)::

        meta_schedule {                      -->   meta_schedule cache(a) {

    Schedules with this directive cache what it names, and nothing else.  Legal where a block's window of the array is
    known: its size is a polynomial in parameters.
    """

    array: str

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program with the array in shared memory."""
        if self.array not in {one.name for one in program.arrays}:
            names = ", ".join(f"`{one.name}`" for one in program.arrays)
            return Refused(f"there is no array `{self.array}`; arrays are {names}", program.span)
        before = program.mapping.cached if program.mapping.decided else ()
        if self.array in before:
            return program
        cached = program.mapped(cached=(*before, self.array), decided=True)
        try:
            left_out = block_memory(cached, analyses).left_out
        except UnknownSizeError as unknown:
            return Refused(str(unknown), program.array(self.array).span)
        for one in left_out:
            if one.array == self.array:
                return Refused(one.reason, NOWHERE if one.access is None else one.access.element.span)
        return cached
