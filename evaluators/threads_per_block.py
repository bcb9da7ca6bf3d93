"""threads_per_block: the product of the thread extents (DESIGN section 4)."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

from msgspec import Struct

from metafork.algebra.polynomial import ONE
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_shape import UnknownShapeError, block_shape
from metafork.analysis.values.scope import Scope
from metafork.evaluators.counter import CounterValue, Details, NotKnown
from metafork.ir.program import Version


class ThreadsPerBlock(Struct, frozen=True):
    """Threads of a block; a resource, limited by ``T``.

    Where phases have different extents, each dimension counts as the largest of them.
    """

    name: str = "threads_per_block"
    kind: Literal["resource", "performance"] = "resource"
    symbol: str = "T"
    less_is_better: bool = True
    default_target: Fraction | None = None
    details: ClassVar[Details] = Details("threads")

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the number of threads as a polynomial in program parameters."""
        facts = analyses.facts(version.program)
        scope = Scope.of(facts)
        try:
            shape = block_shape(version.program, scope, analyses.prover(facts.constraints, facts.derived))
        except UnknownShapeError as reason:
            return NotKnown(str(reason))
        threads = ONE
        for extent in shape:
            threads = threads * extent
        return CounterValue(threads, derived=tuple(scope.derived))


COUNTER = ThreadsPerBlock()
