"""A tree without some of its kernels: the others keep their order, and are numbered anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msgspec.structs import replace

from metafork.comprehensive.tree.schedule_tree import Leaf, LeafReference, Node, NoLeaf, ScheduleTree, Tree, numbered


def without_kernels(tree: ScheduleTree, reasons: Mapping[str, str]) -> ScheduleTree:
    """Return a tree without the variants whose kernels have these names, for the given reasons; itself where none has.

    A leaf whose own variant goes is none any more.  What is left gets the names of its new places.
    """
    if not reasons:
        return tree
    kept = [leaf for leaf in tree.leaves if leaf.kernel not in reasons]
    numbers = {leaf.id: number for number, leaf in enumerate(kept, 1)}
    left_out = {leaf.id: reasons[leaf.kernel] for leaf in tree.leaves if leaf.kernel in reasons}
    subjects = {_instances(old): _instances(new) for old, new in numbers.items()}
    dropped = {_instances(old) for old in left_out}

    def without(part: Tree) -> Tree:
        match part:
            case LeafReference(leaf=leaf):
                return NoLeaf(left_out[leaf]) if leaf in left_out else LeafReference(numbers[leaf])
            case Node(accept=accept, refuse=refuse):
                return replace(part, accept=without(accept), refuse=without(refuse))
            case _:
                return part

    def placed(leaf: Leaf, number: int) -> Leaf:
        variants = [one for one in leaf.variants if one.kernel not in reasons]
        stem = f"{leaf.kernel.removesuffix(str(leaf.id))}{number}"
        return replace(leaf, id=number, variants=numbered(stem, variants))

    return dataclasses.replace(
        tree,
        root=without(tree.root),
        leaves=tuple(placed(leaf, numbers[leaf.id]) for leaf in kept),
        notes=tuple((subjects.get(subject, subject), said) for subject, said in tree.notes if subject not in dropped),
    )


def _instances(leaf: int) -> str:
    """Return the subject of the notes about the instances of a leaf."""
    return f"instances of leaf {leaf}"
