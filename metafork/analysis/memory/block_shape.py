"""The shape of a thread-block: how many threads it has in each dimension."""

from __future__ import annotations

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.prover import Prover
from metafork.analysis.memory.block_memory import largest
from metafork.analysis.values.scope import Scope
from metafork.ir.marks import phases
from metafork.ir.program import Declare, Phase, Program


class UnknownShapeError(Exception):
    """A thread extent is no polynomial in parameters; the message names the loop."""


def only_phase(program: Program) -> Phase | None:
    """Return the phase of a block that does one nest of thread loops, behind scalars; ``None`` of another."""
    match program.body:
        case (*scalars, Phase() as phase) if all(isinstance(one, Declare) for one in scalars):
            return phase
        case _:
            return None


SEVERAL_NESTS = "a block does more than one nest of thread loops"
"""What is said where there is no ``only_phase``."""


def block_shape(program: Program, scope: Scope, prover: Prover) -> tuple[Polynomial, ...]:
    """Return the threads of a block in x, y, z order (as many as the nest has thread loops).

    A block that strides over its thread loops has one dimension; in a direction in which a thread runs several
    iterations it has a thread for each group of them.  Phases may differ: a dimension is then the largest of
    their extents, a derived symbol of ``scope`` where no phase is proved to have it.  Raises ``UnknownShapeError``
    where an extent is no polynomial.
    """
    if program.striding is not None:
        return (Polynomial.constant(program.striding),)
    shape: list[Polynomial] = []
    nests = [tuple(reversed(phase.threads)) for phase in phases(program)]
    for axis in range(len(nests[0])):
        extents: list[Polynomial] = []
        for nest in nests:
            extent = scope.polynomial(nest[axis].extent)
            if extent is None:
                raise UnknownShapeError(f"the extent of {nest[axis].var} is no polynomial in parameters")
            extents.append(extent)
        loop = nests[0][axis]
        shape.append(in_groups(largest(prover, scope, extents), loop.results, scope, loop.var))
    return tuple(shape)


def in_groups(extent: Polynomial, count: int, scope: Scope, loop: str) -> Polynomial:
    """Return how many groups of ``count`` a loop has; raises ``UnknownShapeError`` where that has no name."""
    groups = scope.quotient("ceiling", extent, Polynomial.constant(count))
    if groups is None:
        raise UnknownShapeError(f"how many groups of {count} iterations {loop} has is not known")
    return groups
