"""The code of structures: a warp moves its structures in the order of memory, and shuffles hand out their fields.

Where all 32 lanes of a warp take part and its structures lie inside the array, it loads them as ``stride`` rows of 32
neighbouring elements, and rotations and shuffles (``metafork.analysis.memory.lane_transpose``) bring each lane its
own.  Other warps load directly.  Stores go the other way, at the end of the phase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from metafork.algebra.polynomial import ONE, Polynomial
from metafork.algebra.ranges import stays_within
from metafork.analysis.memory.lane_transpose import WARP, LaneTranspose
from metafork.analysis.memory.structures import Structure
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import promoted
from metafork.ir.kernel import SHUFFLE, builtin
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import LONG, code_of, conjunction
from metafork.lowering.copies.copy import INT, Site, as_int, as_long, zero


@dataclass(slots=True)
class StructureCode:
    """A structure under the name of its array of registers in the kernel; ``taken`` are the names in use."""

    structure: Structure
    name: str
    taken: set[str]
    transpose: LaneTranspose = field(init=False)

    def __post_init__(self) -> None:
        self.transpose = LaneTranspose(self.structure.stride)

    def access(self, reference: Reference, symbols: Mapping[str, ir.Expr]) -> ir.Element:
        """Return the register that a reference means."""
        (member,) = [one for one in self.structure.members if one.reference.number == reference.number]
        return self._own(code_of(member.offset, symbols))

    def load(self, warp: Warp, site: Site) -> list[ir.Stmt]:
        """Return what fills the registers."""
        structure = self.structure
        if not structure.loaded:
            return []
        at, stride = ir.Var(self._fresh("at"), LONG), structure.stride
        code: list[ir.Stmt] = [
            ir.Declare(at.name, LONG, ir.binary("-", self._first(site), _times(stride - 1, warp.lane)))
        ]
        rows = self._declare(code, "row", [self._row(at, register, warp.lane) for register in self.transpose.order])
        rows = self._rotated(code, rows, _remainder(warp.lane, stride), -1)
        sources = [self._source(warp.lane, turn) for turn in range(stride)]
        fields = self._declare(code, "field", [self._taken(*pair) for pair in zip(rows, sources, strict=True)])
        if self.transpose.turns > 1:
            fields = self._rotated(code, fields, self._turn(warp.lane), -1, self.transpose.turns)
        code += [ir.Assign(self._own(ir.IntConst(number)), "", fields[number]) for number in structure.fields]
        return [ir.If(self._inside(warp, site), tuple(code), tuple(self._directly(site)))]

    def store(self, warp: Warp, site: Site) -> list[ir.Stmt]:
        """Return what writes the registers back; every lane has written every field."""
        structure = self.structure
        if not structure.stored:
            return []
        at, stride = ir.Var(self._fresh("at"), LONG), structure.stride
        code: list[ir.Stmt] = [
            ir.Declare(at.name, LONG, ir.binary("-", self._first(site), _times(stride - 1, warp.lane)))
        ]
        fields: list[ir.Expr] = [self._own(ir.IntConst(number)) for number in range(stride)]
        if self.transpose.turns > 1:
            fields = self._rotated(code, fields, self._turn(warp.lane), 1, self.transpose.turns)
        sources = [self._source_back(warp.lane, turn) for turn in range(stride)]
        rows = self._declare(code, "row", [self._taken(*pair) for pair in zip(fields, sources, strict=True)])
        rows = self._rotated(code, rows, _remainder(warp.lane, stride), 1)
        for register, row in zip(self.transpose.order, rows, strict=True):
            code.append(ir.Assign(self._outside(_plus(at, WARP * register)), "", row))
        direct = [
            ir.Assign(self._outside(_plus(self._first(site), number)), "", self._own(ir.IntConst(number)))
            for number in range(stride)
        ]
        return [ir.If(self._inside(warp, site), tuple(code), tuple(direct))]

    # Addresses.

    def _own(self, index: ir.Expr) -> ir.Element:
        return ir.Element(self.name, (index,), self.structure.array.element)

    def _outside(self, offset: ir.Expr) -> ir.Element:
        return ir.Element(self.structure.array.name, (offset,), self.structure.array.element)

    def _first(self, site: Site) -> ir.Expr:
        """Return the offset of the thread's own structure in the array, in elements."""
        return code_of(self.structure.base, site.symbols, wide=True)

    def _row(self, at: ir.Expr, register: int, lane: ir.Expr) -> ir.Expr:
        """Return the element of a row that a lane loads; beyond the last structure's last field there may be none."""
        element = self._outside(_plus(at, WARP * register))
        stride = self.structure.stride
        lanes = stride * (WARP - 1) + self.structure.span - WARP * register
        if lanes >= WARP:
            return element
        return ir.Conditional(
            ir.binary("<", lane, ir.IntConst(lanes)), element, zero(element.type), promoted(element.type)
        )

    def _directly(self, site: Site) -> list[ir.Stmt]:
        result: list[ir.Stmt] = []
        for number in self.structure.fields:
            offset = _plus(self._first(site), number)
            own = self._own(ir.IntConst(number))
            move: ir.Stmt = ir.Assign(own, "", self._outside(offset))
            low, high = (True, True) if number in self.structure.sure else self._proved(number, site)
            guard = conjunction(self._bounds(None if low else offset, None if high else offset, site))
            result += [move] if guard is None else [ir.Assign(own, "", zero(own.type)), ir.If(guard, (move,))]
        return result

    def _inside(self, warp: Warp, site: Site) -> ir.Expr:
        """Return when a warp moves its structures together: it is whole, and all of them lie in the array."""
        structure, first = self.structure, self._first(site)
        ends = (0, structure.span - 1)
        proved = [end in structure.sure or self._proved(end, site)[side] for side, end in enumerate(ends)]
        start = ir.binary("-", first, _times(structure.stride, warp.lane))
        low = None if proved[0] else start
        high = None if proved[1] else _plus(start, structure.stride * (WARP - 1) + structure.span - 1)
        inside = conjunction([warp.whole, *self._bounds(low, high, site)])
        assert inside is not None
        return inside

    def _bounds(self, low: ir.Expr | None, high: ir.Expr | None, site: Site) -> list[ir.Expr]:
        conditions: list[ir.Expr] = []
        if low is not None:
            conditions.append(ir.binary("<=", ir.IntConst(0), low))
        if high is not None:
            elements: ir.Expr | None = None
            for extent in site.extent_code[self.structure.array.name]:
                elements = as_long(extent) if elements is None else ir.binary("*", elements, extent)
            assert elements is not None
            conditions.append(ir.binary("<", high, elements))
        return conditions

    def _proved(self, number: int, site: Site) -> tuple[bool, bool]:
        """Say whether a field is proved to lie above the start, and below the end, of the array in every thread."""
        extents = site.extents[self.structure.array.name]
        elements: Polynomial | None = ONE
        for extent in extents:
            elements = None if elements is None or extent is None else elements * extent
        if elements is None:
            return False, False
        loops = [loop for loop in self.structure.members[0].reference.loops if loop.kind is not LoopKind.SERIAL]
        return stays_within(self.structure.base + number, elements, loops, site.prover, site.prover.certifies)

    # Rotations and shuffles.

    def _turn(self, lane: ir.Expr) -> ir.Expr:
        return ir.binary("/", lane, ir.IntConst(self.transpose.period))

    def _source(self, lane: ir.Expr, turn: int) -> ir.Expr:
        """Return the lane to take from on the way to structure order."""
        own: ir.Expr = ir.IntConst(turn)
        if self.transpose.turns > 1:
            own = _remainder(_plus(self._turn(lane), turn), self.structure.stride)
        first = _times(self.structure.stride, lane)
        return _low_bits(first if own == ir.IntConst(0) else ir.binary("+", first, own), WARP)

    def _source_back(self, lane: ir.Expr, turn: int) -> ir.Expr:
        """Return the lane to take from on the way to memory order (``LaneTranspose.inverse``)."""
        transpose = self.transpose
        if transpose.turns == 1:
            return _low_bits(_times(transpose.inverse, _plus(lane, WARP - turn)), WARP)
        turns = _low_bits(_plus(lane, WARP - turn), transpose.turns)
        own = _remainder(_plus(turns, turn), self.structure.stride)
        rest = ir.binary("/", ir.binary("-", _plus(lane, WARP), own), ir.IntConst(transpose.turns))
        return ir.binary(
            "+", _times(transpose.period, turns), _low_bits(_times(transpose.inverse, rest), transpose.period)
        )

    def _taken(self, value: ir.Expr, lane: ir.Expr) -> ir.Expr:
        """Return the value that another lane hands in; elements below 32 bits travel as ``int``."""
        if value.type.size >= 4:
            return ir.Call(SHUFFLE, (value, lane), value.type)
        return ir.Cast(value.type, ir.Call(SHUFFLE, (ir.Cast(INT, value), lane), INT))

    def _rotated(
        self, code: list[ir.Stmt], values: Sequence[ir.Expr], amount: ir.Expr, sign: int, amounts: int | None = None
    ) -> list[ir.Expr]:
        """Return registers in which number r is the former ``(r + sign*amount) mod stride``; ``amount < amounts``."""
        stride = self.structure.stride
        by = ir.Var(self._fresh("turn"), INT)
        code.append(ir.Declare(by.name, INT, amount))
        result = list(values)
        bit = 1
        while bit < (amounts or stride):
            moves = ir.binary("&", by, ir.IntConst(bit))
            result = self._declare(
                code,
                "turned",
                [
                    ir.Conditional(
                        moves, result[(number + sign * bit) % stride], result[number], promoted(result[number].type)
                    )
                    for number in range(stride)
                ],
            )
            bit *= 2
        return result

    def _declare(self, code: list[ir.Stmt], what: str, values: Sequence[ir.Expr]) -> list[ir.Expr]:
        result: list[ir.Expr] = []
        for value in values:
            variable = ir.Var(self._fresh(what), self.structure.array.element)
            code.append(ir.Declare(variable.name, variable.type, value))
            result.append(variable)
        return result

    def _fresh(self, what: str) -> str:
        return fresh(f"{self.structure.array.name}_{what}", self.taken)


class Warp(Struct, frozen=True):
    """What the structures of a phase share: the variable ``lane``, and when all lanes of the warp run the phase."""

    lane: ir.Expr
    whole: ir.Expr

    @staticmethod
    def of(phase: ir.Phase, taken: set[str]) -> tuple[list[ir.Stmt], Warp]:
        """Return the declarations that a phase starts with, after those of its thread variables.

        Lanes are neighbours in x: where a block has rows, they are made of whole warps.
        """
        loop = phase.threads[-1]
        thread = ir.Var(loop.var, loop.type)
        lane = ir.Var(fresh("lane", taken), INT)
        whole: ir.Expr = ir.binary("<", ir.binary("|", thread, ir.IntConst(WARP - 1)), loop.extent)
        if len(phase.threads) > 1:
            rows = ir.binary("==", _low_bits(as_int(builtin("blockDim.x")), WARP), ir.IntConst(0))
            whole = ir.binary("&&", rows, whole)
        number = _low_bits(thread if loop.type is INT else as_int(thread), WARP)
        return [ir.Declare(lane.name, INT, number)], Warp(lane, whole)


def _plus(value: ir.Expr, number: int) -> ir.Expr:
    return ir.binary("+", value, ir.IntConst(number)) if number else value


def _times(number: int, value: ir.Expr) -> ir.Expr:
    return ir.binary("*", ir.IntConst(number), value) if number != 1 else value


def _remainder(value: ir.Expr, divisor: int) -> ir.Expr:
    return ir.binary("%", value, ir.IntConst(divisor))


def _low_bits(value: ir.Expr, power: int) -> ir.Expr:
    return ir.binary("&", value, ir.IntConst(power - 1))
