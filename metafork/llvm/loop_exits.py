"""Where the loops of LLVM's IR are left: most loops of kernels are left at one place."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof

import llvmlite.binding as llvm

from metafork.ptx.text import graph


def leave_once(module: llvm.ModuleRef) -> bool:
    """Say whether every loop of every function is natural and left by one edge at most.

    ``False`` too where a block ends with anything but a branch or a return.
    """
    return all(_left_once(tuple(function.blocks)) for function in module.functions if not function.is_declaration)


def _left_once(blocks: Sequence[llvm.ValueRef]) -> bool:
    numbers = {_identity(block): number for number, block in enumerate(blocks)}
    successors: list[list[int]] = []
    for block in blocks:
        *_, last = block.instructions
        if last.opcode not in ("br", "ret", "unreachable"):
            return False
        successors.append([numbers[_identity(one)] for one in last.operands if _identity(one) in numbers])
    loops = graph.natural_loops(successors, graph.reverse_postorder(successors))
    return loops.reducible and all(
        sum(after not in members for block in members for after in successors[block]) <= 1
        for members in loops.members.values()
    )


def _identity(value: llvm.ValueRef) -> int:
    """Return what two references to one value have in common: blocks need no names."""
    return addressof(value._ptr.contents)
