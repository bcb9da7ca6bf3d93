"""scalar_replacement: elements that loops of a thread update are kept in scalars (``metafork.transform.promote``)."""

from __future__ import annotations

from typing import ClassVar

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import UnknownSizeError
from metafork.ir.messages.source import NOWHERE
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied, Effect, NotApplied, Remark, Strategy, after
from metafork.transform.promote import Promote, promotion_of


class ScalarReplacement(Strategy, frozen=True):
    """Keep elements that a loop updates in scalars.  It lowers the loads from global memory."""

    name: str = "scalar_replacement"
    improves: frozenset[str] = frozenset({"global_loads"})
    at_leaf: ClassVar[bool] = True

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with scalars instead of elements, or that no loop updates one element."""
        program = version.program
        try:
            findings = analyses.of(promotion_of, program).findings
        except UnknownSizeError as reason:
            return NotApplied(str(reason), program.span)
        names = tuple(dict.fromkeys(one.array for one in findings if one.kept))
        remarks = tuple(
            dict.fromkeys(
                Remark("registers", one.array, one.kept, one.reason, program.array(one.array).span, one.access.span)
                for one in findings
                if one.kept or one.array not in names
            )
        )
        if not names:
            span = remarks[0].fault if remarks else NOWHERE
            return NotApplied("no loop of a thread updates one element of global memory", span, remarks)
        note = "; ".join(remark.reason for remark in remarks if remark.taken)
        return after(version, (Promote(names),), analyses, note, Effect(f"{', '.join(names)} in scalars"), remarks)


STRATEGY = ScalarReplacement()
