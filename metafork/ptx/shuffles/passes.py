"""Which loops' passes a kernel counts, so that lanes that meet in different ones are noticed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from msgspec import Struct

from metafork.ptx.shuffles.detection import Plan
from metafork.ptx.text.cfg import Cfg


class Passes(Struct, frozen=True):
    """Where passes of loops are counted and compared; loops are named by the position of their header.

    ``compared`` is the position of a block's first shuffle → the loops around it, ``inner`` a loop → those right
    inside it whose counts begin anew, ``outer`` the loops that have none around them.
    """

    compared: Mapping[int, tuple[int, ...]]
    inner: Mapping[int, tuple[int, ...]]
    outer: tuple[int, ...]

    @classmethod
    def of(cls, cfg: Cfg, plan: Plan) -> Passes:
        """Return which loops have to be counted for the shuffles of a plan."""
        first: dict[int, int] = {}
        for replacement in plan.replacements:
            if replacement.checked:
                block = next(n for n in cfg.order if cfg.blocks[n].start <= replacement.position < cfg.blocks[n].end)
                first[block] = min(replacement.position, first.get(block, replacement.position))
        compared: dict[int, tuple[int, ...]] = {}
        inner: dict[int, list[int]] = {}
        outer: dict[int, None] = {}
        for block, position in first.items():
            nest = tuple(cfg.blocks[loop.header].start for loop in cfg.loops_around(block))
            compared[position] = nest
            outer[nest[0]] = None
            for loop in nest:
                inner.setdefault(loop, [])
            for around, loop in pairwise(nest):
                if loop not in inner[around]:
                    inner[around].append(loop)
        return cls(compared, {loop: tuple(loops) for loop, loops in inner.items()}, tuple(outer))
