"""Loops of one iteration are not tiled; a tile gives way at run time where a loop has fewer iterations than it."""

import pytest

from comprehensive.optimize import optimize
from comprehensive.tree.selection import select

PLAIN = "b[z][y][x] = 2 * a[z][y][x];"
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


def schedule(shape, body):
    """Return the one schedule of a program, and its tree."""
    result = optimize(TEXT.format(shape=shape, body=body))
    (document,), (tree,) = result.document.schedules, result.schedules
    return document, tree


def tiled(variant):
    """Return the thread loops of which a thread of a kernel runs several iterations, outermost first."""
    mapping = variant.version.program.mapping
    rows = {one[0] for one in (mapping.coarsened, mapping.crossed) if one is not None}
    return rows | ({2} if mapping.columns else set())


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
    _, tree = schedule(shape, body)
    variants = [tiled(one) for leaf in tree.leaves for one in leaf.variants]
    assert not any(0 in loops for loops in variants)
    assert any(variants) == (body is not PLAIN)


@pytest.mark.parametrize(
    ("block", "loops"),
    [
        ((4, 8, 32), {0, 2}),
        ((3, 8, 32), {1, 2}),
        ((1, 16, 32), {1, 2}),
        ((1, 8, 32), {1}),
        ((1, 3, 256), set()),
        ((1, 1, 256), set()),
        ((8, 32, 3), {0}),
        ((8, 3, 32), {0, 2}),
    ],
)
def test_a_tile_gives_way_where_a_loop_is_short(block, loops):
    document, tree = schedule("meta_block(B0, B1, B2)", SEVEN)
    point = {"n": 66, **dict(zip(("B0", "B1", "B2"), block, strict=True)), "Z": 40000}
    taken = select(document, point).variant
    (variant,) = (one for leaf in tree.leaves for one in leaf.variants if one.kernel == taken.kernel)
    assert tiled(variant) == loops
