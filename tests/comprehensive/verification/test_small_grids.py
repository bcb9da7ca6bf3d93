"""Points with small grids belong to every leaf, so that its blocks walk the grid where it runs."""

from pathlib import Path

import pytest

from comprehensive.optimize import optimize
from comprehensive.verification.point_choice import chosen_points
from comprehensive.verification.points import TOGETHER, WALKS, Points

EXAMPLES = Path(__file__).parents[3] / "examples"
ONE_BLOCK = """
void one(int B, int a[B]) {
  meta_schedule {
    meta_for (int i = 0; i < 1; i++)
      meta_for (int u = 0; u < B; u++)
        a[u] += 1;
  }
}
"""


@pytest.mark.parametrize("example", ["smooth", "blur", "transpose"])
def test_every_leaf_has_points_with_small_grids(example):
    result = optimize(EXAMPLES / f"{example}.mf", counters=("threads_per_block", "shared_memory"), order="paper")
    for tree in result.schedules:
        for points in chosen_points(Points(tree), 12, 3000).values():
            walking = [point for point in points if point.walks]
            assert points[0].walks
            assert sum(TOGETHER in point.marks for point in points) >= 4
            assert len(walking) < len(points)
            axes = {mark[-1] for point in points for mark in point.marks if mark.startswith(WALKS)}
            assert axes == set("xyz"[: len(tree.program.grid)])
            assert all("grid_dim_" in point.text() for point in walking)


def test_a_grid_of_one_block_is_not_walked():
    (tree,) = optimize(ONE_BLOCK, counters=("threads_per_block",), strategies=()).schedules
    (points,) = chosen_points(Points(tree), 12, 300).values()
    assert points
    assert not any(point.walks for point in points)


def test_grids_of_scalars_that_a_strategy_defined_are_walked():
    names = ("granularity_groups", "thread_coarsening", "caching", "granularity")
    result = optimize(EXAMPLES / "matmul.mf", counters=("threads_per_block", "shared_memory"), strategies=names)
    (tree,) = result.schedules
    own = {leaf.id for leaf in tree.leaves if len(leaf.version.program.derived) > len(tree.program.derived)}
    assert own
    points = chosen_points(Points(tree), 12, 3000)
    assert all(any(point.walks for point in points[leaf]) for leaf in own)
