"""Directed graphs with an entry: reverse postorder, dominators, natural loops.

A graph maps each node to the nodes that follow it, or is the list of those; ``EXIT`` is the end of the thread, a node
without followers that need not be listed.  The method is textbook: dominators by iteration over reverse postorder,
natural loops from back edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

EXIT = -1
Successors: TypeAlias = Mapping[int, Sequence[int]] | Sequence[Sequence[int]]


def reverse_postorder(successors: Successors, entry: int = 0, end: int | None = EXIT) -> tuple[int, ...]:
    """Return the nodes that are reached from the entry, each before those that follow it but for back edges.

    The node ``end`` is left out, with what could only be reached through it.
    """
    postorder: list[int] = []
    seen = {entry}
    stack = [(entry, iter(successors[entry]))]
    while stack:
        node, following = stack[-1]
        for successor in following:
            if successor != end and successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(successors[successor])))
                break
        else:
            postorder.append(node)
            stack.pop()
    return tuple(reversed(postorder))


def predecessors(successors: Successors, order: Sequence[int]) -> dict[int, list[int]]:
    """Return which nodes of ``order`` each of them follows; edges to ``EXIT`` are left out."""
    found: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for successor in dict.fromkeys(successors[node]):
            if successor != EXIT:
                found[successor].append(node)
    return found


def dominators(order: Sequence[int], before: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return the immediate dominator of each node; the first node of ``order`` is its own.

    ``order`` is a reverse postorder, ``before`` has the predecessors.
    """
    if not order:
        return {}
    position = {node: index for index, node in enumerate(order)}
    immediate = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            best: int | None = None
            for predecessor in before[node]:
                if predecessor not in immediate:
                    continue
                if best is None:
                    best = predecessor
                    continue
                left, right = best, predecessor
                while left != right:
                    while position[left] > position[right]:
                        left = immediate[left]
                    while position[right] > position[left]:
                        right = immediate[right]
                best = left
            if best is not None and immediate.get(node) != best:
                immediate[node] = best
                changed = True
    return immediate


def dominates(immediate: Mapping[int, int], above: int, below: int) -> bool:
    """Say whether every way to ``below`` comes through ``above``."""
    while below != above:
        parent = immediate[below]
        if parent == below:
            return False
        below = parent
    return True


class NaturalLoops(Struct, frozen=True):
    """``members`` maps the header of each natural loop to its nodes, the header included; loops that share a header are
    one.  ``reducible`` tells whether every cycle is a natural loop."""

    members: Mapping[int, frozenset[int]]
    reducible: bool


def natural_loops(successors: Successors, order: Sequence[int]) -> NaturalLoops:
    """Find the natural loops; ``order`` is a reverse postorder."""
    before = predecessors(successors, order)
    immediate = dominators(order, before)
    position = {node: index for index, node in enumerate(order)}
    members: dict[int, set[int]] = {}
    reducible = True
    for node in order:
        for header in successors[node]:
            if header == EXIT or position[header] > position[node]:
                continue
            if not dominates(immediate, header, node):
                reducible = False
                continue
            inside = members.setdefault(header, {header})
            pending = [node]
            while pending:
                member = pending.pop()
                if member not in inside:
                    inside.add(member)
                    pending.extend(before[member])
    return NaturalLoops({header: frozenset(inside) for header, inside in members.items()}, reducible)
