"""Where the loops of LLVM's IR are left, and with what: most are left at one place, and their counters stay in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ctypes import addressof

import llvmlite.binding as llvm

from metafork.ptx.text import graph

_INTEGER_BEHIND_A_LOOP = re.compile(r" = phi (?:i\d+|ptr) \[[^\[\]]*\](?:, !.*)?$", re.MULTILINE)


def keep_counters(module: llvm.ModuleRef) -> bool:
    """Say whether no integer and no address that a loop computes is used behind it, in IR that ``lcssa`` was run on.

    In that form such a value has a ``phi`` with one origin behind the loop.
    """
    return _INTEGER_BEHIND_A_LOOP.search(str(module)) is None


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
