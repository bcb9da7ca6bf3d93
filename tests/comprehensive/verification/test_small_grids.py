"""Points with small grids belong to every leaf, so that its blocks walk the grid where it runs."""

from pathlib import Path

import pytest

from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification.point_choice import chosen_points
from metafork.comprehensive.verification.points import TOGETHER, WALKS, Points
from metafork.ir.marks import results_of

EXAMPLES = Path(__file__).parents[3] / "examples"
FIVE_POINTS = Path(__file__).parents[3] / "bench" / "programs" / "jacobi2d_time.mf"
ONE_BLOCK = """
void one(int B, int a[B]) {
  meta_schedule {
    meta_for (int i = 0; i < 1; i++)
      meta_for (int u = 0; u < B; u++)
        a[u] += 1;
  }
}
"""


def keys(tree, of):
    """Return leaf and number of the variants of some kind."""
    return [(leaf.id, one.number) for leaf in tree.leaves for one in leaf.variants if of(one)]


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
    names = ("granularity_groups", "register_tile", "caching", "granularity")
    result = optimize(EXAMPLES / "matmul.mf", counters=("threads_per_block", "shared_memory"), strategies=names)
    (tree,) = result.schedules
    own = keys(tree, lambda one: len(one.version.program.derived) > len(tree.program.derived))
    assert own
    finder = Points(tree)
    points = chosen_points(finder, 12, 3000)
    assert all(any(point.walks for point in points[key]) for key in own)
    # Where a variant has only large points, it has the smallest of them: n*n*n steps stay in the millions.
    assert all(finder.size(point) < 400_000 for key in points for point in points[key])


def test_a_variant_that_only_full_blocks_reach_has_points():
    names = ("register_tile",)
    tree = optimize(FIVE_POINTS, counters=("threads_per_block",), strategies=names).schedules[0]
    tall = keys(tree, lambda one: 16 in results_of(one.version.program))
    assert tall
    finder = Points(tree)
    small = {
        (found.leaf, found.variant)
        for point in finder.parameter_points(600)
        for leaf, intervals in finder.leaves_at(point)
        for found in finder.at(point, leaf, intervals)
    }
    assert small
    assert not small & set(tall)
    points = chosen_points(Points(tree), 4, 600)
    assert points.keys() == set(keys(tree, lambda one: True))
    assert all(points.values())
    for key in tall:
        assert all(point.parameters["B0"] * point.parameters["B1"] >= 992 for point in points[key])


@pytest.mark.slow
def test_a_variant_that_few_blocks_reach_has_its_points_beside_instances():
    tree = optimize(EXAMPLES / "heat3d.mf", static="auto").schedules[0]
    planes = keys(tree, lambda one: results_of(one.version.program)[:2] == (8, 4) and not one.values)
    points = chosen_points(Points(tree), 24, 3000)
    assert planes
    assert all(len(points[key]) == 24 for key in planes)
    assert all(len({point.text() for point in points[key]}) == 24 for key in planes)
