"""The PTX of a kernel as its registers are estimated: blocks of instructions with what they define and use.

The text is read by ``metafork.ptx``; what is added here are views of it.  Passes over the code (``loops``,
``read_only``) give instructions other names of values, so these stand beside the instruction that was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from functools import cache

from metafork.lazy_dataclass import dataclass
from metafork.ptx.text.cfg import basic_blocks
from metafork.ptx.text.flatten import flatten
from metafork.ptx.text.graph import EXIT
from metafork.ptx.text.opcodes import SINK, names_in, written
from metafork.ptx.text.parser import parse
from metafork.ptx.text.source import PtxError
from metafork.ptx.text.syntax import TYPE_BYTES, Address, Immediate, Instruction, Module, Name, Operand


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


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """What an opcode with its modifiers says, found out once for each.

    ``loads`` and ``stores`` are those of memory, arguments are none; ``space`` is the state space that an access names,
    ``generic`` where it names none.  ``waits`` tells of a barrier or a call, which nothing passes; ``is_quotient`` of
    what divides or takes a root, ``approximate`` if the hardware approximates it; ``is_sequence`` of long sequences and
    subroutines, barriers and calls; ``cached`` of a load through the read-only cache.
    """

    opcode: str
    modifiers: tuple[str, ...]
    mnemonic: str
    space: str
    loads: bool
    stores: bool
    waits: bool
    is_quotient: bool
    approximate: bool
    is_sequence: bool
    cached: bool
    slow: Slow | None


@cache  # PTX has few, whatever the programs
def form(opcode: str, modifiers: tuple[str, ...]) -> Form:
    """Return what an opcode with its modifiers says."""
    mnemonic = ".".join((opcode, *modifiers))
    space = next((one for one in modifiers if one in _SPACES), "generic")
    waits, is_quotient = opcode in _WAITS, opcode in _QUOTIENTS
    approximate = not _APPROXIMATE.isdisjoint(modifiers)
    return Form(
        opcode,
        modifiers,
        mnemonic,
        space,
        loads=opcode == "ld" and space != "param",
        stores=opcode == "st" and space != "param",
        waits=waits,
        is_quotient=is_quotient,
        approximate=approximate,
        is_sequence=waits or (is_quotient and not approximate),
        cached=opcode == "ld" and "nc" in modifiers,
        slow=Slow.CALL if opcode == "call" else _SLOW.get(mnemonic),
    )


@dataclass(slots=True, eq=False)  # frozen, each would take four times as long to make
class PtxInstruction:
    """One instruction: the registers it defines and uses; ``address`` are the used ones that form an address.

    ``special`` are the special registers it reads; ``cached`` tells that it loads through the read-only cache, where it
    may pass stores, ``guarded`` that it may not run.  ``operands`` are as they were read.
    """

    form: Form
    defines: tuple[str, ...]
    uses: tuple[str, ...]
    address: tuple[str, ...]
    special: tuple[str, ...]
    cached: bool
    guarded: bool
    operands: tuple[Operand, ...]

    def with_names(self, defines: Sequence[str], uses: Sequence[str], address: Sequence[str]) -> PtxInstruction:
        """Return it with other names of its values."""
        return PtxInstruction(
            self.form,
            tuple(defines),
            tuple(uses),
            tuple(address),
            self.special,
            self.cached,
            self.guarded,
            self.operands,
        )

    def through_cache(self) -> PtxInstruction:
        """Return the load through the read-only cache."""
        return PtxInstruction(
            self.form, self.defines, self.uses, self.address, self.special, True, self.guarded, self.operands
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
    try:
        return _code(parse(ptx, placed=False))
    except PtxError:
        return _code(parse(ptx))  # an error says where


def _code(module: Module) -> PtxCode:
    kernels = module.kernels()
    if len(kernels) != 1:
        raise ValueError(f"the PTX has {len(kernels)} kernels")
    body = flatten(kernels[0])
    instructions = [_instruction(one, body.registers) for one in body.instructions]
    blocks = tuple(
        PtxBlock(
            tuple(instructions[block.start : block.end]),
            tuple(dict.fromkeys(one for one in block.successors if one != EXIT)),
        )
        for block in basic_blocks(body)
    )
    return PtxCode(blocks, {name: TYPE_BYTES.get(kind, 0) for name, kind in body.registers.items()})


def _instruction(code: Instruction, registers: Mapping[str, str]) -> PtxInstruction:
    kind, guard, operands = form(code.opcode, code.modifiers), code.guard, code.operands
    defines = [name.text for name in written(code) if name.text in registers]
    uses: list[str] = []
    address: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    # What is written comes first among the operands.
    for operand in operands[1:] if defines else operands:
        if isinstance(operand, Immediate):
            continue
        if isinstance(operand, Name) and operand.text in registers and operand.text != SINK:  # as most are
            uses.append(operand.text)
            continue
        names = [name.text for name in names_in((operand,))]
        found = [name for name in names if name in registers]
        uses += found
        if isinstance(operand, Address):
            address += tuple(found)
        if len(found) < len(names):
            special += tuple([name for name in names if name not in registers and name.startswith("%")])
    if guard is not None:
        uses.append(guard.name.text)
    return PtxInstruction(kind, tuple(defines), tuple(uses), address, special, kind.cached, guard is not None, operands)


def live_before(body: Sequence[PtxInstruction], live_out: Iterable[str]) -> set[str]:
    """Return the registers that live before straight-line code, of those that live after it."""
    live = set(live_out)
    for one in reversed(body):
        if one.guarded:
            live.update(one.defines)  # where the guard does not hold, the old values stay
        else:
            live.difference_update(one.defines)
        live.update(one.uses)
    return live


def liveness(blocks: Sequence[PtxBlock]) -> tuple[list[set[str]], list[set[str]]]:
    """Return the registers that live where each block begins, and where it ends."""
    live_in = [live_before(block.instructions, ()) for block in blocks]
    defined = [{name for one in block.instructions for name in one.defines} for block in blocks]
    before: list[list[int]] = [[] for _ in blocks]
    for index, block in enumerate(blocks):
        for successor in block.successors:
            before[successor].append(index)
    live_out: list[set[str]] = [set() for _ in blocks]
    # What lives where a block begins, and was not yet told to those before it.
    fresh = [set(live) for live in live_in]
    pending = [index for index, live in enumerate(live_in) if live]
    while pending:
        index = pending.pop()
        news, fresh[index] = fresh[index], set()
        for one in before[index]:
            out = news - live_out[one]
            live_out[one] |= out
            out -= defined[one]
            out -= live_in[one]
            if out:
                live_in[one] |= out
                if not fresh[one]:
                    pending.append(one)
                fresh[one] |= out
    return live_in, live_out
