"""Whether LLVM makes exact PTX of a program: what a strategy on the IR asks before it appends to lambda."""

from __future__ import annotations

from metafork.analysis.analyses import Analyses
from metafork.ir.program import Program
from metafork.llvm.optimized import external_calls
from metafork.lowering.lowering import CannotLowerError, lower


def why_no_ptx(program: Program, analyses: Analyses) -> str | None:
    """Return why a leaf of this program cannot be PTX from LLVM; ``None`` where it can."""
    try:
        kernel = lower(program, program.name, analyses)
    except CannotLowerError as error:
        return f"no kernel: {error}"
    names = external_calls(kernel, analyses)
    return f"LLVM has no exact code for {', '.join(names)}; nvcc's device library does" if names else None
