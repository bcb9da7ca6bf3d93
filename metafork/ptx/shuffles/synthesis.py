"""Writes a plan into a kernel (PTXASW section 5.2, Listing 6).

``before``::

    ld.global.nc.f32 %f4, [%rd31+12];
    ld.global.nc.f32 %f7, [%rd31+4];

``after`` (N = −2)::

    ld.global.nc.f32 %f4, [%rd31+12];
    mov.b32 %copy, %f4;
    activemask.b32 %mask;
    setp.ne.s32 %incomplete, %mask, -1;
    setp.lt.u32 %corner, %below, 2;
    or.pred %corner, %corner, %incomplete;
    shfl.sync.up.b32 %f7, %copy, 2, 0, %mask;
    @%corner ld.global.nc.f32 %f7, [%rd31+4];

``%below`` and ``%above`` are the numbers of lanes before and after this one *in its warp and its row of threads*:
min(%laneid, %tid.x) and min(31 − %laneid, %ntid.x − 1 − %tid.x), computed once at the kernel's head.  So a block of
several dimensions, or one whose rows are no multiple of 32, never takes a value from another row; a warp with
missing or diverged lanes makes its original loads.  64-bit values go through two shuffles; N = 0 is a ``mov``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from metafork.ptx.emulation.evaluate import type_width
from metafork.ptx.shuffles.detection import Plan, Replacement
from metafork.ptx.text.flatten import FlatBody
from metafork.ptx.text.opcodes import names_in
from metafork.ptx.text.source import NOWHERE
from metafork.ptx.text.syntax import (
    Address,
    Declaration,
    Declarator,
    Function,
    Guard,
    Immediate,
    Instruction,
    Name,
    Operand,
    Pair,
    Scope,
    Statement,
    Vector,
)

PREFIX = "%shuffle_"
"""What the names of new registers start with."""


class Variant(Enum):
    """What to write; the last two compute wrong results and are for measuring only (section 6)."""

    FULL = "full"
    NO_LOAD = "no-load"
    """Covered loads are dropped, nothing replaces them."""
    NO_CORNER = "no-corner"
    """Covered loads are shuffles without their corner cases."""

    @property
    def valid(self) -> bool:
        """Whether the code computes what the original does."""
        return self is Variant.FULL


@dataclass(frozen=True, slots=True)
class _Fresh:
    """Names that the function does not use: ``prefix`` and a number."""

    prefix: str

    def __call__(self, what: str, position: int | None = None) -> Name:
        return Name(f"{self.prefix}{what}" if position is None else f"{self.prefix}{what}{position}")


def synthesize(body: FlatBody, plan: Plan, variant: Variant = Variant.FULL) -> Function:
    """Return the function with the plan's loads replaced; a plan without replacements gives the function itself."""
    if not plan.replacements:
        return body.function
    writer = _Writer(body, plan, variant)
    return replace(body.function, body=writer.write())


class _Writer:
    def __init__(self, body: FlatBody, plan: Plan, variant: Variant) -> None:
        self.body = body
        self.plan = plan
        self.variant = variant
        self.by_position = {r.position: r for r in plan.replacements}
        self.sources = {r.source: self._kind(r.source) for r in plan.replacements}
        self.shuffled = {r.source for r in plan.replacements if r.delta}
        self.hoisted_before: dict[int, list[int]] = {}
        for source, before in plan.hoists.items():
            self.hoisted_before.setdefault(before, []).append(source)
        self.fresh = _Fresh(_free_prefix(body))
        self.registers: dict[str, list[str]] = {}
        self.originals: dict[int, Instruction] = {}
        self.position = 0

    def _kind(self, position: int) -> str:
        """Return the untyped type of a load's register, which may be wider than the access."""
        target = self.body.instructions[position].operands[0]
        assert isinstance(target, Name)
        return f"b{type_width(self.body.registers[target.text])}"

    def register(self, kind: str, what: str, position: int | None = None) -> Name:
        """Declare a fresh register; asking again for the same gives the same."""
        name = self.fresh(what, position)
        names = self.registers.setdefault(kind, [])
        if name.text not in names:
            names.append(name.text)
        return name

    def write(self) -> tuple[Statement, ...]:
        assert self.body.function.body is not None
        self._collect(self.body.function.body, 0)
        statements = self._statements(self.body.function.body)
        head = next(
            (i for i, statement in enumerate(statements) if not isinstance(statement, Declaration)), len(statements)
        )
        lanes = self._lane_distances()
        declarations = [
            Declaration((), "reg", (), None, None, kind, None, tuple(Declarator(n) for n in names))
            for kind, names in sorted(self.registers.items())
        ]
        return (*statements[:head], *declarations, *lanes, *statements[head:])

    def _collect(self, statements: Sequence[Statement], position: int) -> int:
        for statement in statements:
            if isinstance(statement, Scope):
                position = self._collect(statement.statements, position)
            elif isinstance(statement, Instruction):
                self.originals[position] = statement
                position += 1
        return position

    def _statements(self, statements: Sequence[Statement]) -> list[Statement]:
        result: list[Statement] = []
        for statement in statements:
            if isinstance(statement, Scope):
                result.append(replace(statement, statements=tuple(self._statements(statement.statements))))
            elif isinstance(statement, Instruction):
                for source in self.hoisted_before.get(self.position, ()):
                    result.append(self.originals[source])
                    result.extend(self._copies(source))
                if self.position not in self.plan.hoists:
                    result.extend(self._instruction(statement))
                self.position += 1
            else:
                result.append(statement)
        return result

    def _instruction(self, instruction: Instruction) -> Iterable[Instruction]:
        replacement = self.by_position.get(self.position)
        if replacement is None:
            yield instruction
        elif replacement.delta == 0 or self.variant is Variant.NO_LOAD:
            kind = self.sources[replacement.source]
            yield _plain("mov", (kind,), instruction.operands[0], self._copy(replacement.source))
        else:
            yield from self._shuffle(instruction, replacement)
        yield from self._copies(self.position)

    def _copy(self, source: int) -> Name:
        return self.register(self.sources[source], "copy", source)

    def _copies(self, position: int) -> Iterable[Instruction]:
        """Keep a source's value: its register may be written again before the shuffle."""
        if position not in self.sources:
            return
        kind = self.sources[position]
        copy = self._copy(position)
        yield _plain("mov", (kind,), copy, self.originals[position].operands[0])
        if kind == "b64" and position in self.shuffled:
            yield _plain("mov", ("b64",), Vector(self._halves("part", position)), copy)

    def _halves(self, what: str, position: int) -> tuple[Name, Name]:
        return self.register("b32", f"{what}_low", position), self.register("b32", f"{what}_high", position)

    def _shuffle(self, load: Instruction, replacement: Replacement) -> Iterable[Instruction]:
        distance = abs(replacement.delta)
        mask = self.register("b32", "mask")
        corner = self.register("pred", "corner")
        incomplete = self.register("pred", "incomplete")
        target = load.operands[0]
        # A load into its own address register must still find the address after the shuffle.
        address = load.operands[1]
        if isinstance(target, Name) and target in names_in((address,)):
            assert isinstance(address, Address)
            kept = self.register("b64", "address")
            yield _plain("mov", ("b64",), kept, target)
            address = Address(kept, address.offset)
        yield _plain("activemask", ("b32",), mask)
        if self.variant is Variant.FULL:
            lanes = self.register("b32", "above" if replacement.delta > 0 else "below")
            yield _plain("setp", ("ne", "s32"), incomplete, mask, Immediate("-1"))
            yield _plain("setp", ("lt", "u32"), corner, lanes, Immediate(str(distance)))
            yield _plain("or", ("pred",), corner, corner, incomplete)
        direction, clamp = ("down", "31") if replacement.delta > 0 else ("up", "0")

        def move(result: Operand, value: Name) -> Instruction:
            operands = (result, value, Immediate(str(distance)), Immediate(clamp), mask)
            return _plain("shfl", ("sync", direction, "b32"), *operands)

        if replacement.size == 4:
            yield move(target, self._copy(replacement.source))
        else:
            results = self.register("b32", "low"), self.register("b32", "high")
            for result, value in zip(results, self._halves("part", replacement.source), strict=True):
                yield move(result, value)
            yield _plain("mov", ("b64",), target, Vector(results))
        if self.variant is Variant.FULL:
            yield replace(load, guard=Guard(corner, False), operands=(target, address, *load.operands[2:]))

    def _lane_distances(self) -> list[Instruction]:
        """The head of the kernel: how far the warp's lanes of the same row reach below and above."""
        used = self.registers.get("b32", [])
        below, above = self.fresh("below"), self.fresh("above")
        if below.text not in used and above.text not in used:
            return []
        lane, thread = self.register("b32", "lane"), self.register("b32", "thread")
        code = [_plain("mov", ("u32",), lane, Name("%laneid")), _plain("mov", ("u32",), thread, Name("%tid", "x"))]
        if below.text in used:
            code.append(_plain("min", ("u32",), below, lane, thread))
        if above.text in used:
            row = self.register("b32", "row")
            code += [
                _plain("mov", ("u32",), row, Name("%ntid", "x")),
                _plain("sub", ("u32",), row, row, thread),
                _plain("sub", ("u32",), row, row, Immediate("1")),
                _plain("sub", ("u32",), above, Immediate("31"), lane),
                _plain("min", ("u32",), above, above, row),
            ]
        return code


def _plain(opcode: str, modifiers: tuple[str, ...], *operands: Operand) -> Instruction:
    return Instruction(None, opcode, modifiers, operands, NOWHERE)


def _free_prefix(body: FlatBody) -> str:
    """Return a prefix that no name of the function starts with."""
    used = {name.text for instruction in body.instructions for name in names_in(instruction.operands)}
    used |= body.registers.keys() | body.variables.keys()
    used |= {name.first.text for i in body.instructions for name in i.operands if isinstance(name, Pair)}
    prefix = PREFIX
    while any(name.startswith(prefix) for name in used):
        prefix += "_"
    return prefix
