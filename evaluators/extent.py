"""extent: how many iterations a loop of threads or of the grid has, or how many times as many as another one."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.values.scope import Scope
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.ir.program import Expr, IntConst, Version
from metafork.printing.expressions import expression


class Extent(Struct, frozen=True):
    """``number`` of iterations, by those of another loop; both are expressions in parameters.

    Variants need it (``Need``), it takes no part in other ways.
    """

    number: Expr
    over: Expr = IntConst(1)
    kind: Literal["resource", "performance"] = "performance"
    symbol: str = "E"
    less_is_better: bool = False
    default_target: Fraction | None = None

    @property
    def name(self) -> str:
        """The counter's name, which tells it from those of other loops."""
        return f"extent_{expression(self.number)}_over_{expression(self.over)}"

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the ratio as polynomials in program parameters."""
        scope = Scope.of(analyses.facts(version.program))
        extents: list[Polynomial] = []
        for one in (self.number, self.over):
            extent = scope.polynomial(one)
            if extent is None:
                return NotKnown(f"{expression(one)} is no polynomial in parameters")
            extents.append(extent)
        return CounterValue(extents[0], extents[1], tuple(scope.derived))
