"""Where the loops of LLVM's IR are left, read off its text: most loops of kernels are left at one place."""

from __future__ import annotations

import re

from metafork.ptx.text import graph

_LABEL = re.compile(r"([^\s;:\"]+|\"[^\"]*\"):(?: +;.*)?")
_BRANCH = re.compile(r"label %(\"[^\"]*\"|[^\s,]+)")


def leave_once(ir: str) -> bool:
    """Say whether every loop of every function is natural and left by one edge at most.

    ``False`` too where a block ends with anything but a branch or a return.
    """
    blocks: dict[str, list[str] | None] | None = None
    name = last = ""
    for line in ir.splitlines():
        if blocks is None:
            if line.startswith("define "):
                blocks, name, last = {}, "", ""
            continue
        label = _LABEL.fullmatch(line)
        if label is None and line != "}":
            last = line or last
            continue
        if last:
            blocks[name] = _successors(last)
        if label is not None:
            name, last = label[1].strip('"'), ""
            continue
        if not _left_once(blocks):
            return False
        blocks = None
    return blocks is None


def _successors(last: str) -> list[str] | None:
    """Return where a block goes with its last instruction, ``None`` where that is not known."""
    if last.startswith("  br "):
        return [one.strip('"') for one in _BRANCH.findall(last)]
    return [] if last.startswith(("  ret ", "  unreachable")) else None


def _left_once(blocks: dict[str, list[str] | None]) -> bool:
    numbers = {name: number for number, name in enumerate(blocks)}
    successors: list[list[int]] = []
    for following in blocks.values():
        if following is None or not numbers.keys() >= {*following}:
            return False
        successors.append([numbers[name] for name in following])
    loops = graph.natural_loops(successors, graph.reverse_postorder(successors))
    return loops.reducible and all(
        sum(after not in members for block in members for after in successors[block]) <= 1
        for members in loops.members.values()
    )
