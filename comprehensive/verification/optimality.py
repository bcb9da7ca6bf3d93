"""Definition 2 (iv) on a finished tree: which counters are optimal at some leaf, and which are not.

Lemma 3 of the paper promises an optimal leaf for each counter, and needs strategies that commute; where they do not, a
counter may have none.  That is no fault of the tree, so it is reported, not failed.  Counters are evaluated for the
hardware of the run (``Result.analyses``).
"""

from __future__ import annotations

from collections.abc import Sequence

from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from metafork.comprehensive.case_discussion.properties import Check, commuting, idempotence, optimality
from metafork.comprehensive.tree.schedule_tree import ScheduleTree
from metafork.evaluators.counter import Counter
from metafork.ir.program import Version
from metafork.strategies.strategy import Strategy


def optimality_notes(
    tree: ScheduleTree, counters: Sequence[Counter], strategies: Sequence[Strategy], analyses: Analyses
) -> tuple[str, ...]:
    """Return a sentence for each counter: the leaf at which it is optimal, or that there is none."""
    notes = []
    checks = optimality_checks(tree, counters, strategies, analyses)
    for counter, check in zip(_taking_part(tree, counters), checks, strict=True):
        verdict = "is optimal" if check.verdict is Verdict.YES else "is not optimal:"
        notes.append(f"{counter.name} {verdict} {check.ground}")
    return tuple(notes)


def optimality_checks(
    tree: ScheduleTree, counters: Sequence[Counter], strategies: Sequence[Strategy], analyses: Analyses
) -> list[Check]:
    """Return the verdict of ``properties.optimality`` for each counter that takes part."""
    names = [leaf.name for leaf in tree.leaves]
    versions = [leaf.version for leaf in tree.leaves]
    return optimality(_taking_part(tree, counters), versions, strategies, names=names, analyses=analyses)


def _taking_part(tree: ScheduleTree, counters: Sequence[Counter]) -> list[Counter]:
    names = [counter.name for counter in tree.counters]
    return sorted((c for c in counters if c.name in names), key=lambda counter: names.index(counter.name))


def idempotence_checks(
    tree: ScheduleTree, counters: Sequence[Counter], strategies: Sequence[Strategy], analyses: Analyses
) -> list[Check]:
    """Return, for each strategy, whether applying it to its own result changes a counter, on every leaf's version."""
    return idempotence([leaf.version for leaf in tree.leaves], counters, strategies, analyses)


def commuting_check(
    tree: ScheduleTree, counters: Sequence[Counter], strategies: Sequence[Strategy], analyses: Analyses
) -> Check:
    """Return whether the strategies commute on the input, which Lemma 3 needs."""
    return commuting(Version(tree.program), counters, strategies, analyses)
