"""thread_extent: how many iterations a thread loop of one phase has."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from msgspec import Struct

from metafork.analysis.analyses import Analyses
from metafork.analysis.values.scope import Scope
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.ir.marks import phases
from metafork.ir.program import Version


class ThreadExtent(Struct, frozen=True):
    """Iterations of thread loop ``loop``, counted from the outermost, of phase ``phase``.

    Variants need it (``Need``), it takes no part in other ways.
    """

    loop: int
    phase: int
    kind: Literal["resource", "performance"] = "performance"
    symbol: str = "E"
    less_is_better: bool = False
    default_target: Fraction | None = None

    @property
    def name(self) -> str:
        """The counter's name, which tells it from those of other loops."""
        return f"thread_extent_{self.phase}_{self.loop}"

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the extent as a polynomial in program parameters."""
        facts = analyses.facts(version.program)
        scope = Scope.of(facts)
        loop = phases(version.program)[self.phase].threads[self.loop]
        extent = scope.polynomial(loop.extent)
        if extent is None:
            return NotKnown(f"the extent of {loop.var} is no polynomial in parameters")
        return CounterValue(extent, derived=tuple(scope.derived))
