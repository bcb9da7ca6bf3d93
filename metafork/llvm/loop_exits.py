"""Where the loops of LLVM's IR are left, and with what: most are left at one place, and their counters stay in them.

Both are read off the text in which LLVM prints a module: each block has a line that names those before it, and going
through its instructions one by one would take longer than the passes that are asked for.
"""

from __future__ import annotations

import re

from metafork.ptx.text import graph

_INTEGER_BEHIND_A_LOOP = re.compile(r" = phi (?:i\d+|ptr) \[[^\[\]]*\](?:, !.*)?$", re.MULTILINE)
_BLOCK = re.compile(r"^([^\s:]+):(?: +; preds = (.*))?", re.MULTILINE)
_END = re.compile(r"^  (?:br|ret|unreachable)\b", re.MULTILINE)


def keep_counters(ir: str) -> bool:
    """Say whether no integer and no address that a loop computes is used behind it, in IR that ``lcssa`` was run on.

    In that form such a value has a ``phi`` with one origin behind the loop.
    """
    return _INTEGER_BEHIND_A_LOOP.search(ir) is None


def leave_once(ir: str) -> bool:
    """Say whether every loop of every function is natural and left by one edge at most.

    ``ir`` is as LLVM prints it.  ``False`` too where a block ends with anything but a branch or a return.
    """
    return all(map(_left_once, ir.split("\ndefine ")[1:]))


def _left_once(function: str) -> bool:
    blocks = _BLOCK.findall(function)
    # The block that a function begins with may have no label, and is before none that has.
    unlabelled = "{\n  " in function
    if len(_END.findall(function)) != len(blocks) + unlabelled:
        return False
    numbers = {f"%{name}": number for number, (name, _) in enumerate(blocks, unlabelled)}
    successors: list[list[int]] = [[] for _ in range(len(blocks) + unlabelled)]
    for name, before in blocks:
        for origin in filter(None, before.split(", ")):
            successors[numbers.get(origin, 0)].append(numbers[f"%{name}"])
    loops = graph.natural_loops(successors, graph.reverse_postorder(successors))
    return loops.reducible and all(
        sum(after not in members for block in members for after in successors[block]) <= 1
        for members in loops.members.values()
    )
