"""instructions: how many instructions of PTX a warp executes, on average, in one sample launch; a cost.

The PTX is the one that LLVM makes under the version's IR strategies.  For a leaf that nvcc compiles it is that of the
standard pipeline, with nvcc's unrolling: over the kernels of ``bench/gpucc.py`` it has 1.05 times the instructions of
nvcc's own PTX, at the geometric mean.  It is run by the interpreter at the sample of ``evaluators.sample_launch``, so
the value is a number, and says of what.  Loops count by their iterations there; arrays are zero.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.evaluators.kernels import kernel_of
from metafork.evaluators.registers.model import NVCC_PASSES, NVCC_UNROLLS_BY
from metafork.evaluators.sample_launch import executed
from metafork.ir.program import Version
from metafork.llvm.leaf_ptx import leaf_ptx
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import TargetError, emit_ptx, optimize
from metafork.llvm.targets import Nvptx
from metafork.ptx.text.source import PtxError


class Instructions(Struct, frozen=True):
    """Instructions of a warp; accepted when at most the target ``I``."""

    name: str = "instructions"
    kind: Literal["resource", "performance"] = "performance"
    symbol: str = "I"
    less_is_better: bool = True
    default_target: Fraction | None = Fraction(256)

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the number, with the sample that it was counted on."""
        found = instructions(version, analyses)
        if isinstance(found, NotKnown):
            return found
        count, sample = found
        said = f"counted in a launch with {sample}" if sample else "counted in a launch"
        return CounterValue(Polynomial.constant(count), sampled=said)


def instructions(version: Version, analyses: Analyses) -> tuple[int, str] | NotKnown:
    """Return the instructions of a warp, and the sample."""
    return analyses.of(_instructions, version)


def _instructions(version: Version, analyses: Analyses) -> tuple[int, str] | NotKnown:
    kernel = kernel_of(version.program, analyses)
    if isinstance(kernel, NotKnown):
        return kernel
    try:
        if version.ir_strategies:
            ptx = leaf_ptx(kernel, version.ir_strategies, memory=analyses).text
        else:
            ptx = emit_ptx(optimize(module_text(kernel, Nvptx(unroll=NVCC_UNROLLS_BY)), NVCC_PASSES))
    except (TargetError, PtxError) as error:
        return NotKnown(f"no code: {error}")
    return executed(ptx, kernel, version.program, analyses)


COUNTER = Instructions()
