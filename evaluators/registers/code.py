"""The PTX of a kernel as its registers are estimated: blocks of instructions with what they define and use.

Registers are numbers, as they are declared (``reading``).  Passes over the code (``loops``, ``read_only``) give
instructions other ones, so these stand beside the operands that were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from functools import cache
from typing import TypeAlias

from msgspec import Struct

from metafork.ptx.text.syntax import Operand


class Slow(Enum):
    """Operations that ``ptxas`` makes subroutines or long sequences of, with temporaries of their own."""

    DIVIDE_DOUBLE = auto()
    RECIPROCAL_DOUBLE = auto()
    DIVIDE_FLOAT = auto()
    DIVIDE_INT = auto()
    CALL = auto()


_SLOW = {
    "div.rn.f64": Slow.DIVIDE_DOUBLE,
    "sqrt.rn.f64": Slow.DIVIDE_DOUBLE,
    "rcp.rn.f64": Slow.RECIPROCAL_DOUBLE,
    **dict.fromkeys(("div.rn.f32", "sqrt.rn.f32", "rcp.rn.f32"), Slow.DIVIDE_FLOAT),
    **{f"{name}.{sign}{bits}": Slow.DIVIDE_INT for name in ("div", "rem") for sign in "su" for bits in (16, 32, 64)},
}
_WAITS = frozenset({"bar", "barrier", "call"})
_QUOTIENTS = frozenset({"div", "rem", "sqrt", "rcp"})


class Form(Struct, frozen=True, eq=False):
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


class PtxInstruction(Struct, frozen=True, eq=False):
    """One instruction: the registers it defines and uses; ``address`` are the used ones that form an address.

    ``special`` are the special registers it reads; ``cached`` tells that it loads through the read-only cache, where it
    may pass stores, ``guarded`` that it may not run.  ``operands`` are as they were read.
    """

    form: Form
    defines: Sequence[int]
    uses: Sequence[int]
    address: Sequence[int]
    special: Sequence[str]
    cached: bool
    guarded: bool
    operands: tuple[Operand, ...]

    def with_registers(self, defines: Sequence[int], uses: Sequence[int], address: Sequence[int]) -> PtxInstruction:
        """Return it with other registers for its values."""
        return PtxInstruction(self.form, defines, uses, address, self.special, self.cached, self.guarded, self.operands)

    def through_cache(self) -> PtxInstruction:
        """Return the load through the read-only cache."""
        return PtxInstruction(
            self.form, self.defines, self.uses, self.address, self.special, True, self.guarded, self.operands
        )


_SPACES = frozenset({"param", "const", "global", "local", "shared"})
_APPROXIMATE = frozenset({"approx", "full"})


class PtxBlock(Struct, frozen=True):
    """Instructions that run one after the other, and the positions of the blocks that may follow."""

    instructions: tuple[PtxInstruction, ...]
    successors: tuple[int, ...]


class PtxCode(Struct, frozen=True):
    """The blocks of a kernel in the order of the text, the names of its registers, and their bytes (0: predicates)."""

    blocks: tuple[PtxBlock, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def instructions(self) -> list[PtxInstruction]:
        """Return all instructions in the order of the text."""
        return [one for block in self.blocks for one in block.instructions]


def live_before(body: Sequence[PtxInstruction], live_out: Iterable[int]) -> set[int]:
    """Return the registers that live before straight-line code, of those that live after it."""
    live = set(live_out)
    for one in reversed(body):
        if one.guarded:
            live.update(one.defines)  # where the guard does not hold, the old values stay
        else:
            live.difference_update(one.defines)
        live.update(one.uses)
    return live


Liveness: TypeAlias = tuple[list[set[int]], list[set[int]]]


def liveness(blocks: Sequence[PtxBlock]) -> Liveness:
    """Return the registers that live where each block begins, and where it ends."""
    live_in: list[set[int]] = []
    defined: list[set[int]] = []
    for block in blocks:
        used: set[int] = set()
        written: set[int] = set()
        for one in block.instructions:
            # Where a guard does not hold, the old values stay.
            for name in (*one.uses, *one.defines) if one.guarded else one.uses:
                if name not in written:
                    used.add(name)
            if not one.guarded:
                written.update(one.defines)
        live_in.append(used)
        defined.append(written)
    before: list[list[int]] = [[] for _ in blocks]
    for index, block in enumerate(blocks):
        for successor in block.successors:
            before[successor].append(index)
    live_out: list[set[int]] = [set() for _ in blocks]
    # What lives where a block begins, and was not yet told to those before it.
    fresh = [set(live) for live in live_in]
    pending = [index for index, live in enumerate(live_in) if live]
    while pending:
        index = pending.pop()
        news, fresh[index] = fresh[index], set()
        for earlier in before[index]:
            out = news - live_out[earlier]
            live_out[earlier] |= out
            out -= defined[earlier]
            out -= live_in[earlier]
            if out:
                live_in[earlier] |= out
                if not fresh[earlier]:
                    pending.append(earlier)
                fresh[earlier] |= out
    return live_in, live_out
