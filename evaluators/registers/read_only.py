"""Which loads nvcc sends through the read-only cache, where they may pass stores."""

from __future__ import annotations

from msgspec.structs import replace

from metafork.evaluators.registers.code import PtxBlock, PtxCode, PtxInstruction
from metafork.ptx.text.syntax import Address


def with_read_only_loads(code: PtxCode) -> PtxCode:
    """Let loads from arrays that the kernel never stores to go through the read-only cache, as nvcc does.

    That takes pointers that do not alias, as those of generated kernels; an array is known by the argument that the
    address comes from.
    """
    instructions = code.instructions()
    origin: dict[int, set[str]] = {}
    # What computes an address, or may.
    wide = [one for one in instructions if one.defines and code.sizes[one.defines[0]] == 8 and not one.form.loads]
    read: set[int] = set()
    changed = True
    while changed:
        changed = False
        for one in wide:
            read.update(one.uses)
            if one.form.opcode == "ld":
                found = {str(operand) for operand in one.operands if isinstance(operand, Address)}
            else:
                found = {source for name in one.uses for source in origin.get(name, ())}
            known = origin.setdefault(one.defines[0], set())
            if not found <= known:
                known |= found
                changed = changed or one.defines[0] in read

    def arrays(one: PtxInstruction) -> set[str]:
        return {source for name in one.address for source in origin.get(name, ())}

    stored = {
        source for one in instructions if one.form.stores and one.form.space == "global" for source in arrays(one)
    }

    def cached(one: PtxInstruction) -> PtxInstruction:
        if not one.form.loads or one.form.space != "global" or one.cached:
            return one
        sources = arrays(one)
        return one.through_cache() if sources and not sources & stored else one

    blocks = (PtxBlock(tuple(map(cached, block.instructions)), block.successors) for block in code.blocks)
    return replace(code, blocks=tuple(blocks))
