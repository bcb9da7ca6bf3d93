"""Guards: every point of Start has exactly one leaf or listed region, and every leaf has a point.

The proofs are Z3's (``comprehensive.case_discussion.properties``); the integer point of a system is one that was found
and checked.  That the tree and the systems that it shows name the same leaf is tested at samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metafork.algebra.prover import Verdict
from metafork.comprehensive.case_discussion.properties import (
    EFFORT,
    Check,
    Judge,
    Subject,
    consistent,
    covers_start,
    disjoint,
)
from metafork.comprehensive.tree.schedule_tree import ScheduleTree
from metafork.comprehensive.verification.points import Point, Points


def guard_checks(tree: ScheduleTree, effort: int = EFFORT) -> list[Check]:
    """Return what was proved, refuted or left unknown of the leaves' systems and the listed regions."""
    subject = Subject.of_tree(tree)
    judge = Judge(subject, effort)
    return [*consistent(subject, judge), *disjoint(subject, judge), *covers_start(subject, judge)]


def point_checks(finder: Points, points: Mapping[tuple[int, int], Sequence[Point]], tries: int) -> list[Check]:
    """Return, for each leaf, whether an integer point is known, and where tree and displayed systems disagree."""
    checks = []
    names = {leaf.id: leaf.name for leaf in finder.tree.leaves}
    for leaf in finder.tree.leaves:
        verdict, ground = Verdict.UNKNOWN, "no integer point was found"
        own = next((one for variant in leaf.variants for one in points[leaf.id, variant.number]), None)
        if own is not None:
            verdict, ground = Verdict.YES, f"holds at {own.text()}"
        elif leaf.witness is not None:
            verdict, ground = Verdict.YES, f"holds at {_shown(leaf.witness)}"
        name = f"{names[leaf.id]} has an integer point"
        checks.append(Check(name, verdict, ground, leaves=frozenset({leaf.id})))
    name = "the tree and the displayed systems name the same leaves"
    tried = 0
    for point in finder.parameter_points(tries):
        for leaf_id, intervals in finder.leaves_at(point):
            for machine, shown in finder.disagreements(point, leaf_id, intervals):
                where = {**{p.name: point[p.name] for p in finder.tree.program.parameters}, **machine}
                displayed = " and ".join(names[leaf] for leaf in shown) or "none"
                ground = f"the tree gives {names[leaf_id]}, the systems {displayed}, at {_shown(where)}"
                return [*checks, Check(name, Verdict.NO, ground, where)]
            tried += 1
    ground = f"at {tried} regions of sampled parameters, on their boundaries"
    return [*checks, Check(name, Verdict.YES if tried else Verdict.UNKNOWN, ground, sampled=True)]


def _shown(point: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())
