"""The kernel of a version, and what strategies ask of it."""

from __future__ import annotations

from metafork.analysis.analyses import Analyses
from metafork.evaluators.counter import NotKnown
from metafork.ir.kernel import Kernel
from metafork.ir.program import Program
from metafork.lowering.lowering import CannotLowerError, lower
from metafork.unrolling.vectors import wide_in


def kernel_of(program: Program, analyses: Analyses) -> Kernel | NotKnown:
    """Return the kernel of a program, called as it is; not known where there is none."""
    try:
        return lower(program, program.name, analyses)
    except CannotLowerError as error:
        return NotKnown(f"no kernel: {error}")


def has_vectors(program: Program, analyses: Analyses) -> bool | NotKnown:
    """Say whether threads access neighbours in global memory together where arrays are aligned."""
    kernel = kernel_of(program, analyses)
    return kernel if isinstance(kernel, NotKnown) else kernel.aligned


def multiples(program: Program, analyses: Analyses) -> dict[str, int]:
    """Return the parameters that have to be multiples of a number for vectors, and of which; none where there are none.

    Derived scalars are left out.
    """
    kernel = kernel_of(program, analyses)
    names = {one.name for one in program.parameters}
    found = {} if isinstance(kernel, NotKnown) else kernel.multiples
    return {name: number for name, number in found.items() if name in names}


def differ(first: Program, second: Program, analyses: Analyses) -> bool:
    """Say whether two programs have kernels that differ in their code."""
    one, other = kernel_of(first, analyses), kernel_of(second, analyses)
    return not isinstance(one, NotKnown) and not isinstance(other, NotKnown) and one.body != other.body


def read_by_vectors(program: Program, analyses: Analyses) -> frozenset[str]:
    """Return the memories of which a thread reads several elements by one access; none where there is no kernel."""
    kernel = kernel_of(program, analyses)
    return frozenset() if isinstance(kernel, NotKnown) else frozenset(wide_in(kernel.body))
