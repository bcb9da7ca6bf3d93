"""The code of one variant: its kernel form, its text, and the PTX where IR strategies were applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.tree.schedule_tree import Variant
from metafork.ir.ir_strategies import IrStrategy
from metafork.ir.kernel import Kernel, Space


class LeafCode(Struct, frozen=True):
    """``text`` is CUDA C++, or what a target prints in its place.

    ``ptx`` is set where the kernel is what LLVM made of its IR (``ir`` is that IR); ``whole`` is then the PTX for
    launches whose grid is the program's and whose offsets are short (``None``: ``ptx`` is for them too).  The CPU build
    runs ``text`` in both cases.  ``compiled`` is the text that is compiled at run time for any values of ``statics``,
    the names of parameters.
    """

    kernel: Kernel
    text: str
    ir: str | None = None
    ptx: str | None = None
    whole: str | None = None
    compiled: LeafCode | None = None
    statics: tuple[str, ...] = ()


def argument_bytes(kernel: Kernel, numbers: int = 1) -> int:
    """Return how many bytes a kernel's arguments take, each at a multiple of its size; arrays so many ``numbers``."""
    arrays = sum(one.space is Space.GLOBAL for one in kernel.memories)
    total = 0
    for size in (*(one.type.size for one in kernel.scalars), *(arrays * numbers * (8,))):
        total = -(-total // size) * size + size
    return total


EMBEDDED_TARGET = "sm_75"
"""What embedded PTX is made for: the oldest GPU that CUDA 13 knows; drivers compile it for every later one."""

CodeOf = Callable[[Variant], LeafCode]
WholeGridPtx = Callable[[Kernel, Sequence[IrStrategy], str], str | None]


def kernel_of(variant: Variant, analyses: Analyses | None = None) -> Kernel:
    """Lower a variant's program under the name of its kernel; an instance's text tells what it knows of its blocks."""
    from metafork.lowering import lowering

    program = variant.version.program
    kernel = lowering.lower(program, variant.kernel, analyses)
    return replace(kernel, told=bool(variant.values), line=program.span.line)


def leaf_code(variant: Variant, analyses: Analyses | None = None) -> LeafCode:
    """Lower a variant's program and print it."""
    from metafork.printing import cuda

    kernel = kernel_of(variant, analyses)
    text = cuda.kernel_text(kernel)
    strategies = variant.version.ir_strategies
    if not strategies:
        return LeafCode(kernel, text)
    return LeafCode(kernel, text, *ptx_code(kernel, strategies, EMBEDDED_TARGET, analyses))


def ptx_code(
    kernel: Kernel,
    ir_strategies: tuple[IrStrategy, ...],
    target: str,
    analyses: Analyses | None = None,
    whole: WholeGridPtx | None = None,
) -> tuple[str, str, str | None]:
    """Return the IR of a kernel, its PTX, and that for whole grids, made by ``whole`` where it is given.

    Raises as ``metafork.llvm.leaf_ptx.leaf_ptx``.
    """
    from metafork.llvm.leaf_ptx import leaf_ptx
    from metafork.llvm.whole_grids import whole_grid_ptx

    code = leaf_ptx(kernel, ir_strategies, target, analyses)
    return code.ir, code.text, (whole or whole_grid_ptx)(kernel, ir_strategies, target)
