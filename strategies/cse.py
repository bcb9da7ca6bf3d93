"""Strategies ``cse1`` and ``cse2``: what was computed once is kept in a temporary (``metafork.transform.cse``)."""

from __future__ import annotations

from typing import ClassVar

from metafork.analysis.analyses import Analyses
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied, Effect, NotApplied, Sign, Strategy, after
from metafork.transform.cse import Cse

REUSED = Effect("common subexpressions reused")


class CommonSubexpressions(Strategy, frozen=True):
    """The strategy; level 1 looks within basic blocks, level 2 along the dominator tree too."""

    level: int
    at_leaf: ClassVar[bool] = True
    sign: ClassVar[Sign] = Sign("2")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version in which every repeated computation is shared, or that there is none."""
        where = "in a basic block" if self.level == 1 else "along the dominator tree"
        note = f"what is computed twice {where} is computed once"
        return after(version, (Cse(self.level),), analyses, note, REUSED)


_REGISTERS = frozenset({"registers_per_thread", "registers_per_block"})
STRATEGIES = tuple(CommonSubexpressions(f"cse{level}", _REGISTERS, level) for level in (1, 2))
