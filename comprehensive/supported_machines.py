"""Which leaves no machine of today's CUDA can choose: what ``--machine FIRST..LAST`` leaves out of a tree."""

from __future__ import annotations

from collections.abc import Sequence

from comprehensive.options import machine_limits
from comprehensive.systems.start import Start, within
from comprehensive.systems.systems import Systems
from comprehensive.tree.schedule_tree import Leaf
from metafork.algebra.polynomial import Constraint
from metafork.runtime.machine import SUPPORTED, Between


def leaves_for_no_machine(start: Start, leaves: Sequence[Leaf], systems: Systems) -> tuple[int, ...]:
    """Return the numbers of leaves that are proved empty on all machines between the supported presets."""
    limits: list[Constraint] = []
    for name, limit in machine_limits(SUPPORTED).items():
        if name in start.machine:
            limits += within(start.machine[name], limit if isinstance(limit, Between) else Between(limit, limit))
    *others, last = limits
    return tuple(
        leaf.id
        for leaf in leaves
        if not any(systems.consistent((*system, *others), last).kept for system in leaf.systems)
    )
