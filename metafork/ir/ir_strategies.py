"""What IR strategies leave behind in a version: its lambda (section 3.6 of the paper), in the order of application.

A ``Pipeline`` stands for LLVM passes that replace the standard ones; each starts from the kernel's own IR, so of
several the last decides.  ``SHUFFLE`` rewrites the PTX that LLVM makes.  A strategy appends one of these, and whoever
counts, lowers or prints a leaf reads from it what to do: no name is looked up anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

STANDARD = ("O3",)
"""What is run on the IR of a leaf without a pipeline of its own."""


class Pipeline(Struct, frozen=True):
    """LLVM passes by the names of ``metafork.llvm.ptx_target``; ``name`` is for people.

    ``without`` are optimizations of ``metafork.llvm.switches`` that LLVM leaves out, in the passes and in its code
    generator.
    """

    name: str
    passes: tuple[str, ...]
    without: tuple[str, ...] = ()


class Shuffles(Struct, frozen=True):
    """Loads of the finished PTX become warp shuffles (``metafork.llvm.leaf_ptx``)."""

    name: str = "shuffle"


IrStrategy = Pipeline | Shuffles

SHUFFLE = Shuffles()


WHOLE = Pipeline("standard", STANDARD)
"""The pipeline of a leaf without one of its own."""


def pipeline_of(ir_strategies: Sequence[IrStrategy]) -> Pipeline:
    """Return what LLVM does: the last pipeline, the standard one where there is none.

    Raises ``TypeError`` for what is no IR strategy, such as a name.
    """
    for strategy in ir_strategies:
        if not isinstance(strategy, Pipeline | Shuffles):
            raise TypeError(f"{strategy!r} in ir_strategies is neither a Pipeline nor SHUFFLE")
    pipelines = [strategy for strategy in ir_strategies if isinstance(strategy, Pipeline)]
    return pipelines[-1] if pipelines else WHOLE


def passes_of(ir_strategies: Sequence[IrStrategy]) -> tuple[str, ...]:
    """Return the passes for LLVM: those of ``pipeline_of``."""
    return pipeline_of(ir_strategies).passes
