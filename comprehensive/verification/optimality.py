"""Definition 2 (iv) on a finished tree: which counters are optimal at some leaf, and which are not.

Lemma 3 of the paper promises an optimal leaf for each counter, and needs strategies that commute; where they do not, a
counter may have none.  That is no fault of the tree, so it is reported, not failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from comprehensive import registry
from comprehensive.case_discussion.properties import Check, commuting, idempotence, optimality
from comprehensive.tree.schedule_tree import ScheduleTree
from evaluators.counter import Counter
from metafork.algebra.prover import Verdict
from metafork.ir.program import Version
from strategies.strategy import Strategy


def optimality_notes(tree: ScheduleTree) -> tuple[str, ...]:
    """Return a sentence for each counter: the leaf at which it is optimal, or that there is none."""
    notes = []
    for check in optimality_checks(tree):
        if check.verdict is Verdict.YES:
            notes.append(f"{check.name} {check.ground}")
        else:
            notes.append(f"{check.name.replace(' is ', ' is not ')}: {check.ground}")
    return tuple(notes)


def optimality_checks(tree: ScheduleTree) -> list[Check]:
    """Return the verdict of ``properties.optimality`` for each counter of the tree."""
    counters, strategies = _of(tree)
    return optimality(counters, [leaf.version for leaf in tree.leaves], strategies)


def idempotence_checks(tree: ScheduleTree) -> list[Check]:
    """Return, for each strategy, whether applying it to its own result changes a counter, on every leaf's version."""
    counters, strategies = _of(tree)
    return idempotence([leaf.version for leaf in tree.leaves], counters, strategies)


def commuting_check(tree: ScheduleTree) -> Check:
    """Return whether the strategies commute on the input, which Lemma 3 needs."""
    counters, strategies = _of(tree)
    return commuting(Version(tree.program), counters, strategies)


def _of(tree: ScheduleTree) -> tuple[Sequence[Counter], Sequence[Strategy]]:
    return registry.counters([counter.name for counter in tree.counters]), registry.strategies(list(tree.strategies))
