"""thread_extent: how many iterations a thread loop of one phase has, or how many times as many as another one."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from msgspec import Struct

from metafork.algebra.polynomial import ONE, Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.values.scope import Scope
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.ir.marks import phases
from metafork.ir.program import Version


class ThreadExtent(Struct, frozen=True):
    """Iterations of thread loop ``loop``, counted from the outermost, of phase ``phase``; by those of loop ``over``.

    Variants need it (``Need``), it takes no part in other ways.
    """

    loop: int
    phase: int
    over: int | None = None
    kind: Literal["resource", "performance"] = "performance"
    symbol: str = "E"
    less_is_better: bool = False
    default_target: Fraction | None = None

    @property
    def name(self) -> str:
        """The counter's name, which tells it from those of other loops."""
        return f"thread_extent_{self.phase}_{self.loop}" + ("" if self.over is None else f"_over_{self.over}")

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the extent as a polynomial in program parameters, or the ratio of both."""
        facts = analyses.facts(version.program)
        scope = Scope.of(facts)
        loops = phases(version.program)[self.phase].threads
        extents: list[Polynomial] = []
        for loop in [loops[self.loop], *([] if self.over is None else [loops[self.over]])]:
            extent = scope.polynomial(loop.extent)
            if extent is None:
                return NotKnown(f"the extent of {loop.var} is no polynomial in parameters")
            extents.append(extent)
        numerator, denominator = extents if len(extents) > 1 else (*extents, ONE)
        return CounterValue(numerator, denominator, tuple(scope.derived))
