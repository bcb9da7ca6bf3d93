"""multiple: how near a number is to a multiple of another: rows in whole groups, rows of arrays in whole vectors."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.values.scope import Scope
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.ir.program import Expr, Version
from metafork.printing.expressions import expression


class Multiple(Struct, frozen=True):
    """``number``, and ``of`` more, over the next multiple of ``of`` from there on: 1 where it is one, else less.

    A ratio; variants need it (``Need``), it takes no part in other ways.  ``number`` is an expression in parameters.
    """

    number: Expr
    of: int
    kind: Literal["resource", "performance"] = "performance"
    symbol: str = "M"
    less_is_better: bool = False
    default_target: Fraction | None = None

    @property
    def name(self) -> str:
        """The counter's name, which tells it from those of other numbers."""
        return f"multiple_of_{self.of}_{expression(self.number)}"

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the ratio; not known where the number is no polynomial in parameters."""
        scope = Scope.of(analyses.facts(version.program))
        value = scope.polynomial(self.number)
        groups = None if value is None else scope.quotient("ceiling", value, Polynomial.constant(self.of))
        if value is None or groups is None:
            return NotKnown(f"{expression(self.number)} is no polynomial in parameters")
        return CounterValue(value + self.of, (groups + 1) * self.of, tuple(scope.derived))  # never over 0
