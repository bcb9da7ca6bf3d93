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
missing or diverged lanes makes its original loads.  Where the plan holds for grids of some size only, both are 0 in
larger ones, so that every lane makes its original loads.  64-bit values go through two shuffles, narrow ones through
one of 32 bits, and are extended again as the load does; the elements of a vector each through their own.  N = 0 is a
``mov``.

Where an address is another lane's only away from a border (``emulation.borders``), the comparison that tells is made
where the index is computed, and lanes at the border make their original loads; where the source's address is one, all
lanes of a warp that reaches the border do::

    max.s32 %r7, %r6, 0;
    setp.ne.b32 %border, %r7, %r6;
    ...
    or.pred %corner, %corner, %border;

Where lanes may meet in different passes of loops, each loop gets a count of this lane's passes, set to 0 where a pass
of the loop around it begins (``%pass``), and before the first shuffle of a block the warp compares them::

    activemask.b32 %mask;
    setp.ne.s32 %apart, %mask, -1;
    shfl.sync.idx.b32 %first, %pass, 0, 31, %mask;
    setp.ne.or.s32 %apart, %first, %pass, %apart;
    vote.sync.any.pred %apart, %apart, %mask;

Where ``%apart`` holds, all make their original loads.  From sm_70 on, the counts of two loops are compared at once, and
need no vote::

    mov.b64 %passes, {%pass1, %pass2};
    match.all.sync.b64 %which|%alike, %passes, %mask;
    not.pred %alike, %alike;
    or.pred %apart, %apart, %alike;

A load with a predicate keeps its register where that is false.  Where the source has one, a lane takes its value only
if all lanes of the warp had it (``%held``, a ``vote``), or, for N = 0, if this lane had it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from metafork.ptx.emulation.borders import Check, What
from metafork.ptx.emulation.evaluate import instruction_types, type_width
from metafork.ptx.shuffles.detection import SHUFFLED_BYTES, Plan, Replacement
from metafork.ptx.shuffles.passes import Passes
from metafork.ptx.text.cfg import Cfg
from metafork.ptx.text.flatten import FlatBody
from metafork.ptx.text.opcodes import PREFIX, names_in, targets, written
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
    Negated,
    Operand,
    Pair,
    Scope,
    Statement,
    Vector,
)


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


class _Fresh(Struct, frozen=True):
    """Names that the function does not use: ``prefix`` and a number."""

    prefix: str

    def __call__(self, what: str, position: int | None = None) -> Name:
        return Name(f"{self.prefix}{what}" if position is None else f"{self.prefix}{what}{position}")


def synthesize(cfg: Cfg, plan: Plan, variant: Variant = Variant.FULL) -> Function:
    """Return the function with the plan's loads replaced; a plan without replacements gives the function itself."""
    if not plan.replacements:
        return cfg.body.function
    writer = _Writer(cfg, plan, variant)
    return replace(cfg.body.function, body=writer.write())


class _Writer:
    def __init__(self, cfg: Cfg, plan: Plan, variant: Variant) -> None:
        self.body = body = cfg.body
        self.plan = plan
        self.variant = variant
        checking = variant is Variant.FULL
        self.passes = Passes.of(cfg, plan) if checking else Passes({}, {}, ())
        self.by_position = {r.position: r for r in plan.replacements}
        self.sources: dict[int, set[int]] = {}
        self.shuffled: set[tuple[int, int]] = set()
        for r in plan.replacements:
            elements = range(r.element, r.element + r.elements)
            self.sources.setdefault(r.source, set()).update(elements)
            self.shuffled |= {(r.source, element) for element in elements if r.delta}
        self.checks: dict[int, dict[Check, None]] = {}
        for check in (c for r in plan.replacements if checking for c in (*r.own, *r.asked)):
            self.checks.setdefault(check.position, {})[check] = None
        self.asked = {r.source for r in plan.replacements if r.held and checking}
        self.hoisted_before: dict[int, list[int]] = {}
        for source, before in plan.hoists.items():
            self.hoisted_before.setdefault(before, []).append(source)
        self.fresh = _Fresh(_free_prefix(body))
        self.registers: dict[str, list[str]] = {}
        self.originals: dict[int, Instruction] = {}
        self.position = 0

    def _width(self, position: int, element: int) -> int:
        """Return the bits of the register that a load's element goes to, which may be wider than the access."""
        register = targets(self.body.instructions[position])[element]
        assert isinstance(register, Name)
        return type_width(self.body.registers[register.text])

    def _extension(self, position: int) -> str:
        """Return how a load extends: ``s`` or ``u``."""
        return "s" if instruction_types(self.body.instructions[position])[-1].startswith("s") else "u"

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
        lanes = [*self._lane_distances(), *(self._no_passes(loop) for loop in self.passes.outer)]
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
                result.extend(self._count_pass(self.position))
                for source in self.hoisted_before.get(self.position, ()):
                    result.append(self.originals[source])
                    result.extend(self._copies(source))
                borders = self._borders(statement)
                result.extend(borders[0])
                if self.position not in self.plan.hoists:
                    result.extend(self._instruction(statement))
                result.extend(borders[1])
                self.position += 1
            else:
                result.append(statement)
        return result

    def _instruction(self, instruction: Instruction) -> Iterable[Instruction]:
        replacement = self.by_position.get(self.position)
        if replacement is None:
            yield instruction
        elif replacement.delta == 0 or self.variant is Variant.NO_LOAD:
            yield from self._reuse(instruction, replacement)
        else:
            yield from self._shuffle(instruction, replacement)
        yield from self._copies(self.position)

    def _copy(self, source: int, element: int) -> Name:
        kind = f"b{self._width(source, element)}"
        return self.register(kind, f"copy{_index(element)}", source)

    def _copies(self, position: int) -> Iterable[Instruction]:
        """Keep a source's values: their registers may be written again before the shuffle."""
        if position not in self.sources:
            return
        load = self.originals[position]
        part = instruction_types(load)[-1]
        for element in sorted(self.sources[position]):
            width, copy = self._width(position, element), self._copy(position, element)
            yield _plain("mov", (f"b{width}",), copy, targets(load)[element])
            if (position, element) not in self.shuffled:
                continue
            if type_width(part) == 64:
                yield _plain("mov", ("b64",), Vector(self._halves(f"part{_index(element)}", position)), copy)
            elif width != 32:
                # The low bits of the source's extension, which other lanes extend anew.
                yield _plain("cvt", ("u32", f"u{width}"), self._word(position, element), copy)
        if position in self.asked and load.guard is not None:
            opcode = "not" if load.guard.negated else "mov"
            yield _plain(opcode, ("pred",), self.register("pred", "held", position), load.guard.name)

    def _word(self, source: int, element: int) -> Name:
        """Return the 32 bits that a shuffle takes of an element of at most so many."""
        if self._width(source, element) == 32:
            return self._copy(source, element)
        return self.register("b32", f"word{_index(element)}", source)

    def _halves(self, what: str, position: int) -> tuple[Name, Name]:
        return self.register("b32", f"{what}_low", position), self.register("b32", f"{what}_high", position)

    # --- borders ------------------------------------------------------------------------------------------------

    def _border(self, check: Check) -> Name:
        return self.register("pred", f"border{check.position}_{check.what.name.lower()}{check.number}_")

    def _borders(self, instruction: Instruction) -> tuple[list[Instruction], list[Instruction]]:
        """What tells whether the value that an instruction computes is at a border: before it, and behind it."""
        before: list[Instruction] = []
        after: list[Instruction] = []
        for check in self.checks.get(self.position, ()):
            border = self._border(check)
            match check.what:
                case What.TAKEN | What.NOT_TAKEN:
                    before.append(self._not_chosen(instruction, border, taken=check.what is What.TAKEN))
                case What.NOT_NEGATIVE:
                    operand = instruction.operands[check.number]
                    before.append(_plain("setp", ("lt", "s32"), border, operand, Immediate("0")))
                case What.OPERAND | What.REST | What.CONSTANT:
                    width = type_width(instruction_types(instruction)[-1])
                    kind = f"b{width}"
                    expected: Operand = Immediate(str(check.number))
                    if check.what is What.OPERAND:
                        expected = instruction.operands[check.number]
                    if check.what is What.REST:
                        expected = self.register(kind, f"rest{width}")
                        before.append(_plain("sub", (f"s{width}",), expected, *instruction.operands[1:3]))
                    elif expected in set(written(instruction)):
                        expected = self.register(kind, f"operand{width}")
                        before.append(_plain("mov", (kind,), expected, instruction.operands[check.number]))
                    after.append(_plain("setp", ("ne", kind), border, instruction.operands[0], expected))
                case _:
                    assert_never(check.what)
        return before, after

    @staticmethod
    def _not_chosen(instruction: Instruction, border: Name, *, taken: bool) -> Instruction:
        """The negation of what a predicate chooses: that of a selection, or the one that the instruction is under."""
        predicate, negated = instruction.operands[-1], False
        if instruction.guard is not None:
            predicate, negated = instruction.guard.name, instruction.guard.negated
        return _plain("not" if taken != negated else "mov", ("pred",), border, predicate)

    # --- passes of loops ----------------------------------------------------------------------------------------

    def _no_passes(self, loop: int) -> Instruction:
        return _plain("mov", ("b32",), self.register("b32", "pass", loop), Immediate("0"))

    def _count_pass(self, position: int) -> Iterable[Instruction]:
        """At a loop's header: one more pass of it, and none yet of the loops inside."""
        if position in self.passes.inner:
            count = self.register("b32", "pass", position)
            yield _plain("add", ("s32",), count, count, Immediate("1"))
            yield from map(self._no_passes, self.passes.inner[position])

    def _compare_passes(self, loops: Sequence[int]) -> Iterable[Instruction]:
        mask, first = self.register("b32", "mask"), self.register("b32", "first")
        apart = self.register("pred", "apart")
        yield _plain("activemask", ("b32",), mask)
        yield _plain("setp", ("ne", "s32"), apart, mask, Immediate("-1"))
        paired = len(loops) // 2 * 2 if self.plan.matches else 0
        for at in range(0, paired, 2):
            yield from self._compare_two(loops[at], loops[at + 1], mask, apart)
        if paired == len(loops):
            return
        for loop in loops[paired:]:
            count = self.register("b32", "pass", loop)
            yield _plain("shfl", ("sync", "idx", "b32"), first, count, Immediate("0"), Immediate("31"), mask)
            yield _plain("setp", ("ne", "or", "s32"), apart, first, count, apart)
        yield _plain("vote", ("sync", "any", "pred"), apart, apart, mask)

    def _compare_two(self, outer: int, inner: int, mask: Name, apart: Name) -> Iterable[Instruction]:
        both, which, alike = (
            self.register("b64", "passes"),
            self.register("b32", "which"),
            self.register("pred", "alike"),
        )
        counts = Vector((self.register("b32", "pass", outer), self.register("b32", "pass", inner)))
        yield _plain("mov", ("b64",), both, counts)
        yield _plain("match", ("all", "sync", "b64"), Pair(which, alike), both, mask)
        yield _plain("not", ("pred",), alike, alike)
        yield _plain("or", ("pred",), apart, apart, alike)

    def _reuse(self, load: Instruction, replacement: Replacement) -> Iterable[Instruction]:
        """The value of the same lane; the original load where the source has a predicate that did not hold."""
        load, kept = self._address_kept(load)
        yield from kept
        for index, register in enumerate(targets(load)):
            element = replacement.element + index
            kind = f"b{self._width(replacement.source, element)}"
            copy = self._copy(replacement.source, element)
            yield replace(_plain("mov", (kind,), register, copy), guard=load.guard)
        if replacement.held and self.variant is Variant.FULL:
            corner = self.register("pred", "corner")
            yield _plain("not", ("pred",), corner, self.register("pred", "held", replacement.source))
            yield from self._original(load, corner)

    def _address_kept(self, load: Instruction) -> tuple[Instruction, Iterable[Instruction]]:
        """A load into its own address register must still find the address after the value was written."""
        address = load.operands[1]
        own = next((r for r in targets(load) if isinstance(r, Name) and r in names_in((address,))), None)
        if own is None:
            return load, ()
        assert isinstance(address, Address)
        kept = self.register("b64", "address")
        changed = replace(load, operands=(load.operands[0], Address(kept, address.offset), *load.operands[2:]))
        return changed, (_plain("mov", ("b64",), kept, own),)

    def _original(self, load: Instruction, corner: Name) -> Iterable[Instruction]:
        """The original load, in the lanes of ``corner`` that would have made it."""
        if load.guard is not None:
            wanted = load.guard.name
            if load.guard.negated:
                wanted = self.register("pred", "wanted")
                yield _plain("not", ("pred",), wanted, load.guard.name)
            yield _plain("and", ("pred",), corner, corner, wanted)
        yield replace(load, guard=Guard(corner, False))

    def _shuffle(self, load: Instruction, replacement: Replacement) -> Iterable[Instruction]:
        if replacement.position in self.passes.compared:
            yield from self._compare_passes(self.passes.compared[replacement.position])
        distance = abs(replacement.delta)
        mask = self.register("b32", "mask")
        corner = self.register("pred", "corner")
        incomplete = self.register("pred", "incomplete")
        load, kept = self._address_kept(load)
        yield from kept
        yield _plain("activemask", ("b32",), mask)
        if self.variant is Variant.FULL:
            lanes = self.register("b32", "above" if replacement.delta > 0 else "below")
            yield _plain("setp", ("ne", "s32"), incomplete, mask, Immediate("-1"))
            yield _plain("setp", ("lt", "u32"), corner, lanes, Immediate(str(distance)))
            yield _plain("or", ("pred",), corner, corner, incomplete)
            if replacement.checked:
                yield _plain("or", ("pred",), corner, corner, self.register("pred", "apart"))
            for check in replacement.own:
                yield _plain("or", ("pred",), corner, corner, self._border(check))
            yield from self._ask_sources(replacement, corner, mask)
        for index, register in enumerate(targets(load)):
            yield from self._move(load, replacement, register, replacement.element + index, mask)
        if self.variant is Variant.FULL:
            yield from self._original(load, corner)

    def _ask_sources(self, replacement: Replacement, corner: Name, mask: Name) -> Iterable[Instruction]:
        """Ask all lanes for what their values need; one without it is enough, for whole warps mostly have it."""
        missing: list[Operand] = [self._border(check) for check in replacement.asked]
        if replacement.held:
            missing.append(Negated(self.register("pred", "held", replacement.source)))
        anywhere = self.register("pred", "missing") if missing else corner
        for without in missing:
            yield _plain("vote", ("sync", "any", "pred"), anywhere, without, mask)
            yield _plain("or", ("pred",), corner, corner, anywhere)

    def _move(
        self, load: Instruction, replacement: Replacement, register: Operand, element: int, mask: Name
    ) -> Iterable[Instruction]:
        """One element: the shuffles, and the load's extension where the source's register does not hold it already."""
        source, part = replacement.source, 8 * replacement.part
        direction, clamp = ("down", "31") if replacement.delta > 0 else ("up", "0")

        def shuffle(result: Operand, value: Name) -> Instruction:
            operands = (result, value, Immediate(str(abs(replacement.delta))), Immediate(clamp), mask)
            return _plain("shfl", ("sync", direction, "b32"), *operands)

        if part > 8 * SHUFFLED_BYTES:
            halves = self.register("b32", "low"), self.register("b32", "high")
            for half, value in zip(halves, self._halves(f"part{_index(element)}", source), strict=True):
                yield shuffle(half, value)
            yield replace(_plain("mov", ("b64",), register, Vector(halves)), guard=load.guard)
            return
        width = self._width(self.position, element - replacement.element)
        sign = self._extension(self.position)
        alike = self._width(source, element) == width and (part == width or self._extension(source) == sign)
        value = self._word(source, element)
        ready = width == 32 and (part == 32 or alike)
        if ready and load.guard is None:
            yield shuffle(register, value)
            return
        moved: Operand = self.register("b32", "low")
        yield shuffle(moved, value)
        if not ready:
            moved, word = self.register(f"b{width}", f"extended{width}"), moved
            yield _plain("cvt", (f"{sign}{width}", f"{sign}{part}"), moved, word)
        yield replace(_plain("mov", (f"b{width}",), register, moved), guard=load.guard)

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
        if self.plan.most_blocks is not None:
            grid, large = self.register("b32", "grid"), self.register("pred", "large")
            code.append(_plain("mov", ("u32",), grid, Name("%nctaid", "x")))
            code.append(_plain("setp", ("gt", "u32"), large, grid, Immediate(str(self.plan.most_blocks))))
            for reach in (below, above):
                if reach.text in used:
                    code.append(_plain("selp", ("b32",), reach, Immediate("0"), reach, large))
        return code


def _index(element: int) -> str:
    return f"_{element}_" if element else ""


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
