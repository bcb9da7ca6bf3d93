"""A tree without some of its leaves: the others keep their order, and are numbered anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msgspec.structs import replace

from comprehensive.tree.schedule_tree import Leaf, LeafReference, Node, NoLeaf, ScheduleTree, Tree


def without_leaves(tree: ScheduleTree, reasons: Mapping[int, str]) -> ScheduleTree:
    """Return a tree that has no leaf, for the given reason, where those of these numbers were; itself where none is.

    Kernels of later leaves get the names of their new numbers.
    """
    if not reasons:
        return tree
    kept = [leaf for leaf in tree.leaves if leaf.id not in reasons]
    numbers = {leaf.id: number for number, leaf in enumerate(kept, 1)}
    subjects = {_instances(old): _instances(new) for old, new in numbers.items()}
    dropped = {_instances(old) for old in reasons}

    def without(part: Tree) -> Tree:
        match part:
            case LeafReference(leaf=leaf):
                return NoLeaf(reasons[leaf]) if leaf in reasons else LeafReference(numbers[leaf])
            case Node(accept=accept, refuse=refuse):
                return replace(part, accept=without(accept), refuse=without(refuse))
            case _:
                return part

    return dataclasses.replace(
        tree,
        root=without(tree.root),
        leaves=tuple(_numbered(leaf, numbers[leaf.id]) for leaf in kept),
        notes=tuple((subjects.get(subject, subject), said) for subject, said in tree.notes if subject not in dropped),
    )


def _instances(leaf: int) -> str:
    """Return the subject of the notes about the instances of a leaf."""
    return f"instances of leaf {leaf}"


def _numbered(leaf: Leaf, number: int) -> Leaf:
    if leaf.id == number:
        return leaf
    stem = leaf.kernel.removesuffix(str(leaf.id))
    instances = tuple(
        replace(one, kernel=f"{stem}{number}{one.kernel.removeprefix(leaf.kernel)}") for one in leaf.instances
    )
    return replace(leaf, id=number, kernel=f"{stem}{number}", instances=instances)
