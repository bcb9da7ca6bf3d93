"""Which registers of the PTX take a register of a thread, and how many accesses a kernel has.

Values that all threads of a block share (arguments, block indices and what is computed from them) stand in constant
memory or in uniform registers and take no register of a thread; a 64-bit register whose upper half nobody needs (an
address of shared memory) takes one register; predicates take none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from metafork.evaluators.registers.code import Form, PtxCode, PtxInstruction

_UNIFORM_REGISTERS = frozenset({"%ctaid", "%ntid", "%nctaid"})
# Operations of which the lower half of the result needs the lower halves of the operands only.
_LOW_HALF = frozenset({"add", "sub", "shl", "and", "or", "xor", "mov", "selp", "not", "neg"})
_PRODUCTS = frozenset({"mul", "mad"})
_TO_NARROW = frozenset({"cvt.u32.u64", "cvt.u16.u64"})


class Accesses(Struct, frozen=True):
    """How many instructions load, store, and access shared memory."""

    loads: int
    stores: int
    shared: int


def accesses(code: PtxCode) -> Accesses:
    """Count the accesses of a kernel."""
    body = code.instructions()
    return Accesses(
        sum(one.form.loads for one in body),
        sum(one.form.stores for one in body),
        sum("shared" in one.form.modifiers for one in body),
    )


def weights(code: PtxCode) -> list[int]:
    """Return how many registers of a thread each register of the PTX takes."""
    instructions = code.instructions()
    whole = _needed_whole(instructions, code.sizes)
    uniform = _uniform(instructions)
    return [0 if name in uniform or not size else 2 if name in whole else 1 for name, size in enumerate(code.sizes)]


def _needed_whole(instructions: Sequence[PtxInstruction], sizes: Sequence[int]) -> set[int]:
    """Return the 64-bit registers of which somebody needs the upper half."""
    wide = {name for name, size in enumerate(sizes) if size == 8}
    whole: set[int] = set()
    # What needs the upper halves of its operands where somebody needs that of its result.
    waiting: list[tuple[PtxInstruction, set[int]]] = []
    for one in reversed(instructions):
        used, form = wide.intersection(one.uses), one.form
        if not used:
            continue
        if _needs_low_half(form):
            if whole.isdisjoint(one.defines):
                waiting.append((one, used))
            else:
                whole |= used
        elif form.space == "shared" and form.stores:
            whole |= used.difference(one.address)
        elif not (form.mnemonic in _TO_NARROW or (form.space == "shared" and form.loads)):
            whole |= used
    before = len(waiting) + 1
    while len(waiting) < before:
        before, still = len(waiting), []
        for one, used in waiting:
            if whole.isdisjoint(one.defines):
                still.append((one, used))
            else:
                whole |= used
        waiting = still
    return whole


def _needs_low_half(form: Form) -> bool:
    return form.opcode in _LOW_HALF or (form.opcode in _PRODUCTS and "lo" in form.modifiers)


def _uniform(instructions: Sequence[PtxInstruction]) -> set[int]:
    """Return the registers that hold one value for the whole block, defined once from arguments and block indices."""
    count = Counter([name for one in instructions for name in one.defines])
    several = {name for name, number in count.items() if number > 1}
    uniform: set[int] = set()
    computed: list[PtxInstruction] = []
    for one in instructions:
        if not one.defines or not several.isdisjoint(one.defines):
            continue
        if one.form.opcode == "ld":
            shared = one.form.space == "param" and not one.address
        elif one.special:
            shared = _UNIFORM_REGISTERS.issuperset(one.special)
        else:
            shared = bool(one.uses) and uniform.issuperset(one.uses)
            if one.uses and not shared:
                computed.append(one)
        if shared:
            uniform.update(one.defines)
    changed = True
    while changed:
        waiting = []
        for one in computed:
            if uniform.issuperset(one.uses):
                uniform.update(one.defines)
            else:
                waiting.append(one)
        changed = len(waiting) < len(computed)
        computed = waiting
    return uniform
