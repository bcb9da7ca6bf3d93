"""Which loads nvcc sends through the read-only cache, where they may pass stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluators.registers.ptx_registers import PtxBlock, PtxInstruction


def with_read_only_loads(blocks: Sequence[PtxBlock]) -> list[PtxBlock]:
    """Let loads from arrays that the kernel never stores to go through the read-only cache, as nvcc does.

    That takes pointers that do not alias, as those of generated kernels; an array is known by the argument that the
    address comes from.
    """
    instructions = [one for block in blocks for one in block.instructions]
    origin: dict[str, set[str]] = {}
    changed = True
    while changed:
        changed = False
        for one in instructions:
            if one.loads or not one.defines or not one.defines[0].startswith("%rd"):
                continue
            if one.opcode.startswith("ld.param"):
                found = {one.operands.partition("[")[2]}
            else:
                found = {source for name in one.uses for source in origin.get(name, ())}
            known = origin.setdefault(one.defines[0], set())
            if not found <= known:
                known |= found
                changed = True

    def arrays(one: PtxInstruction) -> set[str]:
        return {source for name in one.address for source in origin.get(name, ())}

    stored = {source for one in instructions if one.opcode.startswith("st.global") for source in arrays(one)}

    def cached(one: PtxInstruction) -> PtxInstruction:
        if not one.opcode.startswith("ld.global") or one.opcode.startswith("ld.global.nc"):
            return one
        sources = arrays(one)
        if not sources or sources & stored:
            return one
        return replace(one, opcode=one.opcode.replace("ld.global", "ld.global.nc", 1))

    return [PtxBlock(tuple(map(cached, block.instructions)), block.successors) for block in blocks]
