"""The order by cost: which version goes first where several are possible at the same points.

A strategy ``by_choice`` may make a cheaper kernel where no limit asks for it (an array read from global memory and
served by the first-level cache does without a copy and its barriers).  Its version goes first where it is proved, of
all parameters within Start with which the loops of threads run, that a block of it does less work and asks for no more
sectors (``evaluators.work``), or no more of both, and that fewer of its tiles have columns with bank conflicts.
What is not proved stays as the paper's algorithm has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial, at_most, less_than
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import block_memory
from metafork.analysis.memory.thread_use import with_column_conflicts
from metafork.comprehensive.case_discussion.quintuple import Precedence
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.work import Work, work
from metafork.ir.program import Program, Version
from metafork.strategies.strategy import Applied, Strategy


class ByCost(Struct, frozen=True):
    """Compares what blocks do; ``symbols`` is the order in which parameters are printed."""

    analyses: Analyses
    symbols: tuple[str, ...]

    @staticmethod
    def of(program: Program, analyses: Analyses) -> ByCost:
        """Return the order of the versions of a program."""
        return ByCost(analyses, tuple(parameter.name for parameter in program.parameters))

    def precedence(self, version: Version, others: Sequence[Version]) -> Precedence:
        """Say whether a version does less than each of the others."""
        reasons = []
        for other in others:
            one = self._compared(version, other)
            if not one.first:
                return one
            reasons.append(one.reason)
        return Precedence(True, "; and ".join(dict.fromkeys(reasons)))

    def _compared(self, version: Version, other: Version) -> Precedence:
        own, its = work(version, self.analyses), work(other, self.analyses)
        if isinstance(own, NotKnown):
            return Precedence(False, f"what a block does is not known: {own.reason}")
        if isinstance(its, NotKnown):
            return Precedence(False, f"what a block of the latter does is not known: {its.reason}")
        facts = self.analyses.facts(version.program)
        running = (*facts.running, *self.analyses.facts(other.program).running)
        known = frozenset(name for one in facts.constraints for name in one.symbols)
        running = tuple(one for one in running if one.symbols <= known)
        prover = self.analyses.prover((*facts.constraints, *running), facts.derived)
        cached = [set(one.program.mapping.cached) for one in (version, other)]
        same = {array.name for array in version.program.arrays if len({array.name in names for names in cached}) == 1}
        own, its = own.apart_from(its, same), its.apart_from(own, same)
        sectors = f"`{self._text(own.sectors)} <= {self._text(its.fewest_sectors)}`"
        if not prover.proves(at_most(own.sectors, its.fewest_sectors)):
            return Precedence(
                False, f"that it asks for no more sectors is not proved, in elements per block: {sectors}"
            )
        less = f"`{self._text(own.total)} < {self._text(its.total)}`"
        if not prover.proves(less_than(own.total, its.total)):
            columns = self._columns(other) - self._columns(version)
            if self._columns(version) < self._columns(other) and prover.proves(at_most(own.total, its.total)):
                free = f"columns of {', '.join(sorted(columns))} have no bank conflicts"
                return Precedence(True, f"a block does no more, and {free}")
            return Precedence(False, f"that it does less work is not proved, by accesses and operations: {less}")
        return Precedence(
            True,
            f"a block does less, {less} ({self._parts(own)} against {self._parts(its)}), "
            f"and asks for no more sectors, in elements {sectors}",
        )

    def _columns(self, version: Version) -> frozenset[str]:
        return with_column_conflicts(block_memory(version.program, self.analyses))

    def _parts(self, done: Work) -> str:
        parts = {
            "accesses to global memory": done.global_memory,
            "to shared memory": done.shared_memory,
            "barriers of threads": done.barriers,
            "operations": done.operations,
        }
        return ", ".join(f"{self._text(count)} {what}" for what, count in parts.items() if count)

    def _text(self, count: Polynomial) -> str:
        return count.text(self.symbols)


def at_its_leaf(version: Version, strategies: Sequence[Strategy], analyses: Analyses, proposing: bool) -> Version:
    """Return a version with the strategies that are applied at leaves, and with those that propose variants."""
    for strategy in strategies:
        if strategy.at_leaf or (proposing and strategy.proposes):
            applied = analyses.of(strategy.apply, version)
            version = applied.version if isinstance(applied, Applied) else version
    return version
