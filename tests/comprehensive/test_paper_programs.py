"""The papers' programs: Figures 2, 7 and 8, on the path where registers are accepted before any strategy."""

import pytest

from metafork.comprehensive.optimize import optimize
from metafork.ir.program import Assign, Element, walk_statements

COUNTERS = ["registers_per_thread", "shared_memory"]


def printed_cases(tree, order):
    """The leaves' shared-memory systems where the registers were accepted first."""
    cases = []
    for leaf in tree.leaves:
        for system in leaf.systems:
            texts = [constraint.text(order) for constraint in system]
            if not any(text.startswith("R < ") for text in texts):
                cases.append((leaf, [text for text in texts if not text.endswith(" <= R")]))
    return cases


@pytest.mark.parametrize(
    ("name", "systems"),
    [
        ("jacobi1d", [["2*s*B + 2 <= Z"], ["2*B + 2 <= Z", "Z < 2*s*B + 2"], ["Z < 2*B + 2"]]),
        ("transpose", [["2*s*B0*B1 <= Z"], ["2*B0*B1 <= Z", "Z < 2*s*B0*B1"], ["Z < 2*B0*B1"]]),
    ],
)
def test_figures_7_and_8(name, systems):
    result = optimize(f"examples/{name}.mf", counters=COUNTERS, order="paper")
    tree = result.schedules[0]
    cases = printed_cases(tree, result.document.schedules[0].order)
    assert [texts for _, texts in cases] == systems
    kept, reduced, uncached = (leaf for leaf, _ in cases)
    assert not {"granularity", "caching"} & set(kept.own.strategies)
    assert "granularity" in reduced.own.strategies
    assert {"granularity", "caching"} <= set(uncached.own.strategies)
    assert kept.trace[:3] == ("1", "4a", "3a")
    assert reduced.trace[:3] == ("1", "3b", "4a")
    assert uncached.trace[:3] == ("1", "3b", "4b")
    assert not uncached.version.program.mapping.cached


def test_matrix_addition_splits_on_registers():
    result = optimize("examples/matadd.mf", counters=COUNTERS, order="paper")
    [tree] = result.schedules
    first, second = tree.leaves[:2]
    writes = [
        sum(isinstance(s, Assign) and isinstance(s.target, Element) for s in walk_statements(leaf.version.program.body))
        for leaf in (first, second)
    ]
    assert writes == [2, 1]
    [[accepted]] = first.systems
    [[lower, upper]] = second.systems
    assert accepted.negated() == upper
    assert lower.left.constant_value() < accepted.left.constant_value()
    assert tree.root.counter == "registers_per_thread"


def test_matrix_multiplication_has_the_papers_words():
    result = optimize("examples/matmul.mf", counters=COUNTERS, machine="all")
    [tree] = result.schedules
    first = next(leaf for leaf in tree.leaves if "granularity_groups" not in leaf.own.strategies)
    order = ("B0", "ub1", "s")
    assert first.counters["shared_memory"].numerator.text(order) == "B0*ub1*s + B0*B0"
