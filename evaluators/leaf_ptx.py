"""The PTX that LLVM makes of a version, and what strategies ask of it."""

from __future__ import annotations

from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.kernels import kernel_of
from metafork.ir.program import Program, Version
from metafork.llvm.leaf_ptx import LeafPtx, leaf_ptx
from metafork.llvm.optimized import external_calls
from metafork.llvm.ptx_target import ExternalFunctionError, TargetError


def ptx_of(version: Version, analyses: Analyses) -> LeafPtx | NotKnown:
    """Return the PTX of a version; not known where LLVM makes none, or none that is exact."""
    return analyses.of(_ptx, version)


def _ptx(version: Version, analyses: Analyses) -> LeafPtx | NotKnown:
    kernel = kernel_of(version.program, analyses)
    if isinstance(kernel, NotKnown):
        return kernel
    try:
        return leaf_ptx(kernel, version.ir_strategies, memory=analyses)
    except ExternalFunctionError as error:
        return NotKnown(_inexact(error.names))
    except TargetError as error:
        return NotKnown(str(error))


def why_no_ptx(program: Program, analyses: Analyses) -> str | None:
    """Return why a leaf of this program cannot be PTX from LLVM; ``None`` where it can."""
    kernel = kernel_of(program, analyses)
    if isinstance(kernel, NotKnown):
        return kernel.reason
    names = external_calls(kernel, analyses)
    return _inexact(names) if names else None


def _inexact(names: tuple[str, ...]) -> str:
    return f"LLVM has no exact code for {', '.join(names)}; nvcc's device library does"
