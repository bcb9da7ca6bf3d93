"""Addresses with or without their constants apart: the better of two codes that LLVM can make of a kernel.

LLVM's pointer arithmetic reassociation takes constants out of 64-bit addresses, and for that extends the sides of
32-bit sums one by one.  Where many addresses differ in other terms (stencils in three dimensions) there are then more
64-bit sums than it saves: on sm_80 a quarter of a kernel's instructions.  So both are made, and the one is taken that
executes fewer instructions, each loop counted as eight trips.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from metafork.ir.ir_strategies import IrStrategy, pipeline_of
from metafork.ir.kernel import Kernel
from metafork.llvm.ptx_target import TargetError
from metafork.llvm.switches import POINTERS
from metafork.llvm.whole_grids import whole_grid_ptx
from metafork.ptx.text.cfg import build_cfg
from metafork.ptx.text.flatten import flatten
from metafork.ptx.text.parser import parse

_TRIPS = 8


def whole_grid_ptx_of_choice(kernel: Kernel, ir_strategies: Sequence[IrStrategy], target: str) -> str | None:
    """Return the PTX for whole grids (``whole_grids.whole_grid_ptx``) whose addresses take fewer instructions."""
    plain = whole_grid_ptx(kernel, ir_strategies, target)
    pipeline = pipeline_of(ir_strategies)
    if plain is None or POINTERS in pipeline.without:
        return plain
    try:
        other = whole_grid_ptx(kernel, (replace(pipeline, without=(*pipeline.without, POINTERS)),), target)
    except TargetError:
        return plain  # there is no choice where LLVM cannot do without
    assert other is not None
    return min(plain, other, key=weighed_instructions)


def weighed_instructions(ptx: str) -> int:
    """Return the instructions of the one kernel of PTX, those of a loop as often as its trips are taken to be."""
    (kernel,) = parse(ptx).kernels()
    body = flatten(kernel)
    cfg = build_cfg(body)
    depths = [sum(number in loop.blocks for loop in cfg.loops.values()) for number in range(len(cfg.blocks))]
    return sum((block.end - block.start) * _TRIPS**depth for block, depth in zip(cfg.blocks, depths, strict=True))
