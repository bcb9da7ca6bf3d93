"""Where memory lies: directives that change the mapping of a program, and nothing of what it computes."""

from __future__ import annotations

from msgspec import Struct

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import UnknownSizeError, block_memory
from metafork.analysis.memory.flat_rows import with_rows
from metafork.ir.mapping import FORM_OF, FORMS, Layout
from metafork.ir.messages.source import NOWHERE
from metafork.ir.program import BlockArray, Program, walk_statements
from metafork.transform.directive import Refused


class Delinearize(Struct, frozen=True):
    """Index flat arrays whose indices are clamped or wrap by rows and columns (``metafork.analysis.memory.flat_rows``).

    delinearize()::

        a[(i + 1) % n * m + left]            -->   a[(i + 1) % n][left]

    Legal where row and column of every access are proved to be so.
    """

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program with arrays of rows."""
        rows = with_rows(program, analyses)
        return Refused("no flat array has rows", program.span) if rows is program else rows


def _unknown(program: Program, array: str) -> Refused | None:
    known = [one.name for one in program.arrays]
    names = ", ".join(f"`{name}`" for name in known)
    return None if array in known else Refused(f"there is no array `{array}`; arrays are {names}", program.span)


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
        if refused := _unknown(program, self.array):
            return refused
        before = program.mapping.cached if program.mapping.decided else ()
        if self.array in before:
            return program
        together = tuple(name for name in (one.name for one in program.arrays) if name in {*before, self.array})
        cached = program.mapped(cached=together, decided=True)
        try:
            left_out = block_memory(cached, analyses).left_out
        except UnknownSizeError as unknown:
            return Refused(str(unknown), program.array(self.array).span)
        for one in left_out:
            if one.array == self.array:
                return Refused(one.reason, NOWHERE if one.access is None else one.access.element.span)
        return cached


class Uncache(Struct, frozen=True):
    """Leave an array in global memory that would go through shared memory.

    uncache(a)::

        meta_schedule cache(a, b) {          -->   meta_schedule cache(b) {

    Legal always: the kernel then reads and writes global memory where the program says so.
    """

    array: str

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program without a copy of the array."""
        mapping = program.mapping
        if self.array not in mapping.cached:
            return Refused(f"`{self.array}` does not go through shared memory", program.span)
        layouts = tuple(pair for pair in mapping.layouts if pair[0] != self.array)
        cached = tuple(name for name in mapping.cached if name != self.array)
        return program.mapped(cached=cached, layouts=layouts, decided=True)


class LayOut(Struct, frozen=True):
    """Give the tile of an array in shared memory another layout (``metafork.ir.mapping.Layout``).

    lay_out(a, padded)::

        a[row * columns + column]            -->   a[row * (columns + 1) + column]

    Legal always: every layout is one-to-one.
    """

    array: str
    form: str

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form is one of {', '.join(FORMS)}, not {self.form}")

    @staticmethod
    def of(array: str, layout: Layout) -> LayOut:
        """Return the directive that gives an array a layout."""
        return LayOut(array, FORM_OF[layout])

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program with the layout."""
        mapping = program.mapping
        block = {one.array.name for one in walk_statements(program.body) if isinstance(one, BlockArray)}
        if self.array not in {*mapping.cached, *block}:
            return Refused(f"`{self.array}` is not in shared memory", program.span)
        others = tuple(pair for pair in mapping.layouts if pair[0] != self.array)
        return program.mapped(layouts=(*others, (self.array, FORMS[self.form])))


class Transpose(Struct, frozen=True):
    """Move the structures of an array through the registers of a warp, which transposes them there.

    transpose(a)::

        meta_schedule cache(a) {             -->   meta_schedule {      // and lanes read a in the order of memory

    Legal where each thread of a phase touches one structure (``metafork.analysis.memory.structures``).
    """

    array: str

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program with the array in registers."""
        if refused := _unknown(program, self.array):
            return refused
        mapping = program.mapping
        moved = program.mapped(
            cached=tuple(name for name in mapping.cached if name != self.array),
            layouts=tuple(pair for pair in mapping.layouts if pair[0] != self.array),
            transposed=(*mapping.transposed, self.array),
        )
        try:
            left_out = {one.array: one.reason for one in block_memory(moved, analyses).left_out}
        except UnknownSizeError as unknown:
            return Refused(str(unknown), program.span)
        return Refused(left_out[self.array], program.span) if self.array in left_out else moved


class Vectorize(Struct, frozen=True):
    """Let threads read elements that they need one after the other by one access; tiles may be interleaved for that.

    vectorize()::

        x0 = tile[k]; x1 = tile[k + 1];      -->   (x0, x1) = tile[k .. k + 1];

    Legal always: where neighbours are not proved to be aligned, a thread reads them one by one.
    """

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program with vectors."""
        return program.mapped(wide=True)


class Stages(Struct, frozen=True):
    """Copy the next window of a block-level loop while a block computes with this one, in ``count`` buffers in turn.

    stages(2)::

        tile                                 -->   tile[2]

    Legal always: windows whose next step is not known, or that the loop writes, keep one buffer.
    """

    count: int

    def __post_init__(self) -> None:
        if self.count != 2:
            raise ValueError(f"count is 2, not {self.count}")

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program with several buffers."""
        return program.mapped(stages=self.count)
