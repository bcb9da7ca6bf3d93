"""Where accesses of a path lie: in windows, registers, structures, arrays of threads and blocks, or global memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from metafork.algebra.polynomial import ONE, Polynomial
from metafork.analysis.delinearization import coordinates
from metafork.analysis.memory.block_memory import PathPlan
from metafork.analysis.memory.interleaving import digits
from metafork.analysis.memory.tile_layout import place_in_line, place_in_tile
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import promoted
from metafork.ir.mapping import ROW_BY_ROW
from metafork.ir.polynomial_code import LONG, code_of
from metafork.lowering.copies.copy import INT, as_int, kept_column, linear_offset, offset_inside, window_offset
from metafork.lowering.private import PrivateCode
from metafork.lowering.thread_memory import ThreadMemory

if TYPE_CHECKING:  # few programs have structures, and every run would load it
    from metafork.lowering.structures import StructureCode


class Places:
    """The places of a path's references, by their numbers; ``symbols`` grows with the scopes of the path.

    ``held`` are references into windows in shared memory, ``own`` those to registers; ``buffers`` says where the buffer
    of a window begins that has several.
    """

    def __init__(
        self,
        plan: PathPlan,
        extents: Mapping[str, tuple[ir.Expr, ...]],
        names: Mapping[int, str],
        block_arrays: Mapping[str, str],
        private: Sequence[PrivateCode],
        structures: Sequence[StructureCode],
        threads: ThreadMemory,
        symbols: Mapping[str, ir.Expr],
    ) -> None:
        self._references = {ref.number: ref for ref in plan.references}
        self.held = {ref.number: (held, ref) for held in plan.windows for ref in held.window.references}
        self.own = {ref.number: code for code in private for ref in code.window.references}
        self._fields = {member.reference.number: code for code in structures for member in code.structure.members}
        self.tables = frozenset(table.array.name for table in plan.program.tables)
        self.buffers: dict[int, ir.Var] = {}
        self._mapping, self._extents, self._symbols = plan.program.mapping, extents, symbols
        self._names, self._block_arrays, self._threads = names, block_arrays, threads

    def element(self, node: ir.Element, number: int) -> ir.Element | ir.Var:
        """Return what stands for an access, whose indices are those of the kernel."""
        if node.array in self.tables:
            return self.unmoved(node)
        if node.array in self._threads:
            return self._threads.element(node, node.indices)
        reference = self._references[number]
        own = self.own.get(number)
        if own is not None:
            return own.access(reference, self._symbols)
        code = self._fields.get(number)
        if code is not None:
            return code.access(reference, self._symbols)
        if number not in self.held:
            return self.unmoved(node)
        held, reference = self.held[number]
        window = held.window
        symbols = self._symbols
        for axis, range_ in reference.distances:
            value = node.indices[axis]
            sides = (value if promoted(value.type) is INT else ir.Cast(LONG, value)), code_of(range_.low, symbols)
            symbols = {**symbols, range_.var: ir.binary("-", *(sides if range_.step == ONE else reversed(sides)))}
        offsets: list[ir.Expr] = []
        for index, low, stride in zip(coordinates(reference, window.factors), window.lows, window.strides, strict=True):
            offset = (index - low).divide_exactly(Polynomial.constant(stride))
            assert offset is not None
            offsets.append(code_of(offset, symbols))
        if window.kept is not None:
            x, serial = digits(window, reference)
            offsets[-1] = kept_column(window.kept, symbols[x.var], symbols[serial.var], symbols)
        place = window_offset(window, tuple(offsets), symbols)
        if id(held) in self.buffers:
            place = ir.binary("+", self.buffers[id(held)], place)
        return ir.Element(self._names[id(held)], (place,), node.type)

    def unmoved(self, element: ir.Element) -> ir.Element:
        """Return an element where its array lies, in a table, in global memory or among the arrays of the block."""
        indices = element.indices
        extents = self._extents[element.array]
        name = self._block_arrays.get(element.array, element.array)
        layout = self._mapping.layout(element.array) if element.array in self._block_arrays else ROW_BY_ROW
        if layout == ROW_BY_ROW:
            return ir.Element(name, (offset_inside(indices, extents),), element.type)
        if len(indices) == 1:
            place = place_in_line(layout, element.type, as_int(indices[0]), extents[0], self._symbols)
            return ir.Element(name, (place,), element.type)
        row, column = as_int(linear_offset(indices[:-1], extents[:-1])), as_int(indices[-1])
        offset = place_in_tile(layout, element.type, row, column, extents[-1], self._symbols)
        return ir.Element(name, (offset,), element.type)
