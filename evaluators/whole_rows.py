"""whole_rows: the share of a thread's rows that a block has, where one thread runs several of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_shape import UnknownShapeError, in_groups
from metafork.analysis.values.scope import Scope
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.ir.marks import phases, rows_of
from metafork.ir.program import Version


class WholeRows(Struct, frozen=True):
    """Iterations of the coarsened thread loop over those of whole groups: 1 where every thread has all of its rows.

    A ratio; variants need it (``Need``), it takes no part in other ways.
    """

    name: str = "whole_rows"
    kind: Literal["resource", "performance"] = "performance"
    symbol: str = "W"
    less_is_better: bool = False
    default_target: Fraction | None = None

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the share; not known where phases differ in their rows, or a thread has one."""
        several = rows_of(version.program)
        if several is None:
            return NotKnown("a thread has one row")
        loop, count = several
        scope = Scope.of(analyses.facts(version.program))
        extents = {scope.polynomial(phase.threads[loop].extent) for phase in phases(version.program)}
        extent = extents.pop()
        if extents or extent is None:
            return NotKnown("phases differ in their rows, or they are no polynomial in parameters")
        try:
            groups = in_groups(extent, count, scope, phases(version.program)[0].threads[loop].var)
        except UnknownShapeError as reason:
            return NotKnown(str(reason))
        return CounterValue(extent, Polynomial.constant(count) * groups, tuple(scope.derived))


COUNTER = WholeRows()
