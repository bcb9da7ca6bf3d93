"""The PTX of a kernel as its registers are estimated: blocks of instructions with what they define and use.

The text is read by ``metafork.ptx``; what is added here are views of it.  Passes over the code (``loops``,
``read_only``) give instructions other names of values, so these stand beside the instruction that was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto

from metafork.lazy_dataclass import dataclass
from metafork.ptx.text.cfg import basic_blocks
from metafork.ptx.text.flatten import FlatBody, flatten
from metafork.ptx.text.graph import EXIT
from metafork.ptx.text.opcodes import names_in, written
from metafork.ptx.text.parser import parse
from metafork.ptx.text.syntax import TYPE_BYTES, Address, Instruction, Name


class Slow(Enum):
    """Operations that ``ptxas`` makes subroutines or long sequences of, with temporaries of their own."""

    DIVIDE_DOUBLE = auto()
    RECIPROCAL_DOUBLE = auto()
    DIVIDE_FLOAT = auto()
    DIVIDE_LONG = auto()
    DIVIDE_INT = auto()
    CALL = auto()


_SLOW = {
    "div.rn.f64": Slow.DIVIDE_DOUBLE,
    "sqrt.rn.f64": Slow.DIVIDE_DOUBLE,
    "rcp.rn.f64": Slow.RECIPROCAL_DOUBLE,
    **dict.fromkeys(("div.rn.f32", "sqrt.rn.f32", "rcp.rn.f32"), Slow.DIVIDE_FLOAT),
    **{f"{name}.{sign}64": Slow.DIVIDE_LONG for name in ("div", "rem") for sign in "su"},
    **{f"{name}.{sign}{bits}": Slow.DIVIDE_INT for name in ("div", "rem") for sign in "su" for bits in (16, 32)},
}
_WAITS = frozenset({"bar", "barrier", "call"})
_QUOTIENTS = frozenset({"div", "rem", "sqrt", "rcp"})


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """One instruction: the registers it defines and uses; ``address`` are the used ones that form an address.

    ``code`` is the instruction as it was read, ``mnemonic`` its opcode with modifiers; ``special`` the special
    registers it reads; ``cached`` tells that it loads through the read-only cache, where it may pass stores.
    """

    code: Instruction
    mnemonic: str
    defines: tuple[str, ...]
    uses: tuple[str, ...]
    address: tuple[str, ...]
    special: tuple[str, ...]
    cached: bool

    @property
    def opcode(self) -> str:
        """The opcode without modifiers."""
        return self.code.opcode

    @property
    def guarded(self) -> bool:
        """Whether it may not run."""
        return self.code.guard is not None

    @property
    def loads(self) -> bool:
        """Whether it reads global, shared or private memory (arguments are no memory)."""
        return self.code.opcode == "ld" and self.space != "param"

    @property
    def stores(self) -> bool:
        """Whether it writes memory."""
        return self.code.opcode == "st" and self.space != "param"

    @property
    def space(self) -> str:
        """The state space that an access names, ``generic`` where it names none."""
        return next((one for one in self.code.modifiers if one in _SPACES), "generic")

    @property
    def waits(self) -> bool:
        """Whether it is a barrier or a call, which nothing passes."""
        return self.code.opcode in _WAITS

    @property
    def is_sequence(self) -> bool:
        """Whether it is a long sequence or a subroutine, a barrier or a call."""
        return self.waits or (self.is_quotient and not self.approximate)

    @property
    def is_quotient(self) -> bool:
        """Whether it divides or takes a root."""
        return self.code.opcode in _QUOTIENTS

    @property
    def approximate(self) -> bool:
        """Whether it is a division or a root that the hardware approximates."""
        return not _APPROXIMATE.isdisjoint(self.code.modifiers)

    @property
    def slow(self) -> Slow | None:
        """Which slow operation it is."""
        return Slow.CALL if self.code.opcode == "call" else _SLOW.get(self.mnemonic)

    def with_names(self, defines: Sequence[str], uses: Sequence[str], address: Sequence[str]) -> PtxInstruction:
        """Return it with other names of its values."""
        return PtxInstruction(
            self.code, self.mnemonic, tuple(defines), tuple(uses), tuple(address), self.special, self.cached
        )


_SPACES = frozenset({"param", "const", "global", "local", "shared"})
_APPROXIMATE = frozenset({"approx", "full"})


@dataclass(frozen=True, slots=True)
class PtxBlock:
    """Instructions that run one after the other, and the positions of the blocks that may follow."""

    instructions: tuple[PtxInstruction, ...]
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PtxCode:
    """The blocks of a kernel in the order of the text, and the bytes of its registers, 0 for predicates."""

    blocks: tuple[PtxBlock, ...]
    sizes: Mapping[str, int]

    def instructions(self) -> list[PtxInstruction]:
        """Return all instructions in the order of the text."""
        return [one for block in self.blocks for one in block.instructions]


def read_code(ptx: str) -> PtxCode:
    """Return the code of the one kernel in a PTX module.

    Raises ``ValueError`` where there is not exactly one, ``PtxError`` (a ``ValueError``) for text that is no PTX.
    """
    kernels = parse(ptx).kernels()
    if len(kernels) != 1:
        raise ValueError(f"the PTX has {len(kernels)} kernels")
    body = flatten(kernels[0])
    instructions = [_instruction(one, body) for one in body.instructions]
    blocks = tuple(
        PtxBlock(
            tuple(instructions[block.start : block.end]),
            tuple(dict.fromkeys(one for one in block.successors if one != EXIT)),
        )
        for block in basic_blocks(body)
    )
    return PtxCode(blocks, {name: TYPE_BYTES.get(kind, 0) for name, kind in body.registers.items()})


def _instruction(code: Instruction, body: FlatBody) -> PtxInstruction:
    registers = body.registers
    defines = tuple(name.text for name in written(code) if name.text in registers)
    # What is written comes first among the operands.
    rest = code.operands[1:] if defines else code.operands
    names = [name for name in names_in(rest) if name.text in registers or name.text.startswith("%")]
    uses = [name.text for name in names if name.text in registers]
    if code.guard is not None:
        uses.append(code.guard.name.text)
    return PtxInstruction(
        code,
        code.mnemonic,
        defines,
        tuple(uses),
        tuple(
            operand.base.text
            for operand in rest
            if isinstance(operand, Address) and isinstance(operand.base, Name) and operand.base.text in registers
        ),
        tuple(name.text for name in names if name.text not in registers),
        code.opcode == "ld" and "nc" in code.modifiers,
    )


def liveness(blocks: Sequence[PtxBlock]) -> tuple[list[set[str]], list[set[str]]]:
    """Return the registers that live where each block begins, and where it ends."""
    used: list[set[str]] = []
    defined: list[set[str]] = []
    for block in blocks:
        uses: set[str] = set()
        defines: set[str] = set()
        for one in block.instructions:
            uses.update(name for name in one.uses if name not in defines)
            if one.guarded:
                uses.update(name for name in one.defines if name not in defines)
            defines.update(one.defines)
        used.append(uses)
        defined.append(defines)
    live_in = [set(uses) for uses in used]
    live_out: list[set[str]] = [set() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for index in range(len(blocks) - 1, -1, -1):
            out = live_out[index]
            size = len(out)
            for successor in blocks[index].successors:
                out |= live_in[successor]
            if len(out) != size:
                changed = True
                live_in[index] |= out - defined[index]
    return live_in, live_out
