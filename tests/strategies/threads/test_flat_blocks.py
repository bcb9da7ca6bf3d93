"""Loops of one iteration are not tiled; a tile gives way at run time where a loop has fewer iterations than it."""

import pytest

from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.tree.selection import select
from metafork.ir.marks import phases, results_of
from metafork.ir.program import IntConst

PLAIN = "b[z][y][x] = ((((a[z][y][x] + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2;"
FACTORS = "b[z][y][x] = c[z] * a[z][y][x] + c[z + 1];"
SEVEN = """b[z][y][x] = a[z][y][x] + a[z - 1][y][x] + a[z + 1][y][x] + a[z][y - 1][x] + a[z][y + 1][x] +
                       a[z][y][x - 1] + a[z][y][x + 1];"""
TEXT = """
void f(int n, int B0, int B1, int B2, const float a[n][n][n], float b[n][n][n], const float c[n]) {{
  meta_schedule {shape} {{
    meta_for (int z = 1; z < n - 1; z++)
      meta_for (int y = 1; y < n - 1; y++)
        meta_for (int x = 1; x < n - 1; x++)
          {body}
  }}
}}
"""

FIXED = """
void f(int n, int B0, int B1, int B2, const float a[n][n][n], float b[n][n][n]) {
  int m = n - 2;
  meta_schedule {
    meta_for (int zb = 0; zb < (m + B0 - 1) / B0; zb++)
      meta_for (int yb = 0; yb < (m + B1 - 1) / B1; yb++)
        meta_for (int xb = 0; xb < (m + B2 - 1) / B2; xb++)
          meta_for (int v = 0; v < B0; v++)
            meta_for (int u = 0; u < B1; u++)
              meta_for (int t = 0; t < B2; t++) {
                int z = 1 + zb * B0 + v, y = 1 + yb * B1 + u, x = 1 + xb * B2 + t;
                if (z < n - 1 && y < n - 1 && x < n - 1) {
                  SEVEN
                }
              }
  }
}
""".replace("SEVEN", SEVEN)


def schedule(text):
    """Return the one schedule of a program, and its tree."""
    result = optimize(text)
    (document,), (tree,) = result.document.schedules, result.schedules
    return document, tree


def tiled(variant):
    """Return the thread loops of which a thread of a kernel runs several iterations, outermost first."""
    return {loop for loop, count in enumerate(results_of(variant.version.program)) if count > 1}


@pytest.mark.parametrize(
    ("shape", "body"),
    [
        ("meta_block(B1, B2)", PLAIN),
        ("meta_block(B1, B2)", FACTORS),
        ("meta_block(B1, B2)", SEVEN),
        ("meta_block(1, B1, B2)", SEVEN),
    ],
)
def test_a_loop_of_one_iteration_is_not_tiled(shape, body):
    _, tree = schedule(TEXT.format(shape=shape, body=body))
    variants = [one for leaf in tree.leaves for one in leaf.variants]
    loops = [loop for one in variants for loop in phases(one.version.program)[0].threads if loop.results > 1]
    assert not any(loop.extent == IntConst(1) for loop in loops)
    assert any(0 in tiled(one) for one in variants) == (body is SEVEN)  # of which blocks got planes
    assert bool(loops) == (body is not PLAIN)


@pytest.mark.parametrize(
    ("block", "loops"),
    [
        ((4, 8, 32), {1, 2}),
        ((1, 16, 32), {1, 2}),
        ((1, 8, 32), {1, 2}),
        ((1, 3, 256), {1, 2}),
        ((1, 1, 256), {2}),
        ((8, 3, 32), {1, 2}),
        ((8, 32, 3), set()),
    ],
)
def test_a_tile_gives_way_where_a_loop_is_short(block, loops):
    document, tree = schedule(FIXED)
    point = {"n": 66, **dict(zip(("B0", "B1", "B2"), block, strict=True)), "Z": 40000}
    taken = select(document, point).variant
    (variant,) = (one for leaf in tree.leaves for one in leaf.variants if one.kernel == taken.kernel)
    assert tiled(variant) == loops


@pytest.mark.parametrize("block", [(1, 8, 32), (1, 1, 256), (4, 8, 32)])
def test_blocks_of_threads_grow_in_any_direction(block):
    """What ``meta_block`` gives are threads: a thread has planes and rows of its own."""
    document, tree = schedule(TEXT.format(shape="meta_block(B0, B1, B2)", body=SEVEN))
    point = {"n": 66, **dict(zip(("B0", "B1", "B2"), block, strict=True)), "Z": 40000}
    taken = select(document, point).variant
    (variant,) = (one for leaf in tree.leaves for one in leaf.variants if one.kernel == taken.kernel)
    assert tiled(variant) == {0, 1, 2}
    assert not any("of fewer" in one for one in variant.effects)
