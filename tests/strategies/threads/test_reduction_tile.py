"""Tiles of sums: which loops have them, that nothing is asked in them, and kernels at sizes with ends of all kinds."""

import pytest

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import block_memory
from metafork.comprehensive.optimize import optimize
from metafork.ir import program as ir
from metafork.ir.program import Version, walk_statements
from metafork.lowering.lowering import lower
from metafork.printing.metafork_text import metafork_text
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.threads.reduction_tile import STRATEGY, ReductionTile
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program
from tests.strategies.running import running

TEXT = """
#include <math.h>
void {name}(int n, int m, int l, int B0, int B1, float f, const float a[n][l], const float b[l][m], const float t[l][n],
            const double w[l], const int k[n], const int q[n][l], const float e[n][m][l], float c[n][m])
{{
  meta_schedule meta_block(B0, B1) {{
    meta_for (int i = 0; i < n; i++)
      meta_for (int j = 0; j < m; j++) {{ {body} }}
  }}
}}"""
TAKEN = {
    "a_product": ("float s = 0; for (int z = 0; z < l; z++) s += a[i][z] * b[z][j]; c[i][j] = s;", ["a", "b"]),
    "transposed": ("float s = f; for (int z = 0; z < l; z++) s += t[z][i] * b[z][j]; c[i][j] = s;", ["b", "t"]),
    "in_scalars_of_another_type": (
        "double s = c[i][j]; for (int z = 0; z < l; z++) s += (double)a[i][z] * b[z][j]; c[i][j] = (float)s;",
        ["a", "b"],
    ),
    "a_triangle": (
        "if (j <= i) { float s = 0; for (int z = 0; z < l; z++) s += a[i][z] * b[z][j]; c[i][j] = s; }",
        ["a", "b"],
    ),
    "a_band": (
        "if (j <= i + 2 && i < j + 3) { float s = 0; for (int z = 0; z < l; z++) s += a[i][z] * b[z][j];"
        " c[i][j] = s; }",
        ["a", "b"],
    ),
    "two_sums": (
        "float s = 0, r = 1; for (int z = 0; z < l; z++) { float d = a[i][z] - b[z][j]; s += d * d; r = fmaxf(r, d); }"
        " c[i][j] = s / r;",
        ["a", "b"],
    ),
    "for_all_threads_too": (
        "float s = 0; for (int z = 0; z < l; z++) s += a[i][z] * b[z][j] * (float)w[z]; c[i][j] = s;",
        ["a", "b", "w"],
    ),
    "from_a_constant_to_the_last": (
        "float s = f; for (int z = 2; z <= l - 1; z++) s = s * 0.5f + a[i][z] * b[z][j]; c[i][j] = s;",
        ["a", "b"],
    ),
    "neighbours": (
        "float s = 0; for (int z = 1; z < l; z++) s += a[i][z] * b[z - 1][j] - a[i][z - 1]; c[i][j] = s;",
        ["a", "b"],
    ),
    "work_around": (
        "float s = i * f, x = s + j; for (int z = 0; z < l; z++) s += a[i][z] * b[z][j] + x; c[i][j] += s * x;",
        ["a", "b"],
    ),
}  # fmt: skip
LEFT = {
    "integers": ("int s = 0; for (int z = 0; z < l; z++) s += q[i][z] * k[j % n]; c[i][j] = s;", "floating"),
    "integer_operands": ("float s = 0; for (int z = 0; z < l; z++) s += q[i][z] * b[z][j]; c[i][j] = s;", "floating"),
    "own_elements": ("float s = 0; for (int z = 0; z < l; z++) s += e[i][j][z] * b[z][j]; c[i][j] = s;", "no rows"),
    "rows_alone": ("float s = 0; for (int z = 0; z < l; z++) s += a[i][z]; c[i][j] = s;", "no rows and columns"),
    "any_place": ("float s = 0; for (int z = 0; z < l; z++) s += a[i * z % n][z] * b[z][j]; c[i][j] = s;", "not known"),
    "a_condition_in_it": (
        "float s = 0; for (int z = 0; z < l; z++) if (z != i) s += a[i][z] * b[z][j]; c[i][j] = s;",
        "more than add up",
    ),
    "stores": ("for (int z = 0; z < l; z++) c[i][j] = a[i][z] * b[z][j];", "more than add up"),
    "own_end": ("float s = 0; for (int z = 0; z < i; z++) s += a[i][z % l] * b[z % l][j]; c[i][j] = s;", "no loop"),
    "few": ("float s = 0; for (int z = 0; z < 8; z++) s += a[i][z] * b[z][j]; c[i][j] = s;", "few iterations"),
    "an_integer_beside": (
        "float s = 0; for (int z = 0; z < l; z++) { int y = z * z; s += a[i][z] * b[z][j] * y; } c[i][j] = s;",
        "a path of their own",
    ),
    "no_value": ("float s; if (f > 0) s = 0; else s = 1; for (int z = 0; z < l; z++) s += a[i][z] * b[z][j];"
                 " c[i][j] = s;", "no value before"),
}  # fmt: skip


def text(body, name="f"):
    return TEXT.format(name=name, body=body)


def applied(body, strategy=STRATEGY, **how):
    return strategy.apply(Version(program(text(body, **how))), Analyses())


@pytest.mark.parametrize("name", TAKEN)
def test_operands_that_rows_and_columns_share_are_walked_in_strips(name):
    body, arrays = TAKEN[name]
    found = applied(body)
    assert isinstance(found, Applied), found.reason
    mined = found.version.program
    assert sorted(mined.mapping.cached) == arrays
    assert {remark.subject for remark in found.remarks if remark.taken} == set(arrays)
    assert isinstance(STRATEGY.apply(found.version, Analyses()), NotApplied)
    assert program(metafork_text(mined)).body == mined.body
    assert all(not path.block_arrays for path in block_memory(mined, Analyses()).paths)


@pytest.mark.parametrize("name", LEFT)
def test_other_loops_stay(name):
    body, why = LEFT[name]
    found = applied(body)
    assert isinstance(found, NotApplied)
    assert why in found.reason


@pytest.mark.parametrize("name", TAKEN)
def test_no_result_is_asked_for_in_a_strip(name):
    """What is left of conditions in loops over a strip are those of a tile as a whole."""
    kernel = lower(applied(TAKEN[name][0]).version.program, "k")
    tiles = [one for one in walk_statements(kernel.body) if isinstance(one, ir.For) and "_place" in one.init.name]
    assert tiles
    assert not [one for one in walk_statements(tuple(tiles)) if isinstance(one, ir.If)]


def test_the_shape_follows_the_room():
    (tree,) = optimize(text(TAKEN["a_product"][0]), static="none", machine="all").schedules
    results = []
    shapes = ((16, 16), (16, 16), (28, 28), (16, 16), (4, 4), (8, 32), (32, 8), (8, 31))
    for room, (rows, columns) in zip((40000, 3000, 40000, 100, *[40000] * 4), shapes, strict=True):
        mined = running(tree, Z=room, n=512, m=512, l=512, B0=rows, B1=columns).version.program
        arrays = [one.array for one in walk_statements(mined.body) if isinstance(one, ir.BlockArray)]
        results.append([tuple(extent.value for extent in one.extents[2:]) for one in arrays])
    assert results == [[(8, 8)], [(4, 4)], [(4, 4)], [], [], [(16, 4)], [(4, 16)], [(8, 8)]]


def test_a_strip_has_a_length():
    with pytest.raises(ValueError, match="from 4 to 64"):
        ReductionTile(strip=2)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(8, 8), (2, 2), (16, 4), (4, 16)])
def test_kernels_at_sizes_with_ends_of_all_kinds(shape, tmp_path):
    points = [{**one, "f": 0.5} for one in grid(n=(1, 5, 20), m=(3, 17), l=(3, 16, 37), B0=(1, 4), B1=(2, 3))]
    strategy = ReductionTile(shapes=(shape,))
    cases = [
        Case(text(body, name), points, program=applied(body, strategy, name=name).version.program)
        for name, (body, _) in TAKEN.items()
    ]
    assert run(cases, tmp_path) == {}
