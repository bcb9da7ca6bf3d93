import pytest

from metafork.algebra.polynomial import at_most
from metafork.analysis.analyses import WARP_SIZE, Analyses
from metafork.comprehensive.optimize import optimize
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.marks import results_of
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.threads.register_tile import RegisterTile
from tests.metafork.programs import program

STRATEGY = RegisterTile(shapes=("rows",))

TEXT = """
void f(int n, int B, int C, int D, const float a[n + 2][n + 2][n + 2], float c[n + 2][n + 2][n + 2])
{{
  int e0 = n / B, e1 = n / C, e2 = n / D;
  meta_schedule cache({cached}) {{
    meta_for (int i = 0; i < e0; i++) meta_for (int j = 0; j < e1; j++) meta_for (int k = 0; k < e2; k++) {{
      {before}
      meta_for (int p = 0; p < B; p++) meta_for (int q = 0; q < C; q++) meta_for ({x} r = 0; r < D; r++) {{
        int z = i * B + p, y = j * C + q, x = k * D + r;
        {body}
      }}
    }}
  }}
}}"""
TAKEN = {
    "the_innermost_of_equals": (1, "c[z][y][x] = a[z][y][x] + a[z + 1][y][x] + a[z][y + 1][x];"),
    "the_one_that_shares_most": (1, "c[z][y][x] = a[z][y][x] + a[z + 1][y][x] + a[z][y + 1][x] + a[z][y + 2][x];"),
    "a_factor": (1, "c[z][y][x] *= a[z][0][x];"),
    "a_window_that_slides": (1, "float s = 0.0f; for (int k = 0; k < 3; k++) s += a[z][y + k][x]; c[z][y][x] = s;"),
    "written_and_read": (0, "if (z > 0) c[z][y][x] -= c[0][y][x] * a[z][y][x];"),
}
LEFT = {
    "nothing_shared": "c[z][y][x] = a[z][y][x];",
    "shared_along_x": "c[z][y][x] = a[z][y][x] + a[z][y][x + 1];",
    "left_early": "for (int k = 0; k < 2; k++) { if (z > k) break; c[z][y][x] += a[0][0][x]; }",
    "an_array_of_its_own": "float t[2]; t[0] = a[0][0][x]; t[1] = t[0]; c[z][y][x] = t[y % 2];",
}


def applied(body, cached="", before="", x="int"):
    return STRATEGY.apply(Version(program(TEXT.format(body=body, cached=cached, before=before, x=x))), Analyses())


@pytest.mark.parametrize("name", TAKEN)
def test_the_loop_whose_iterations_share_the_most_loads(name):
    loop, body = TAKEN[name]
    found = applied(body)
    assert isinstance(found, Applied)
    assert results_of(found.version.program) == tuple(8 if axis == loop else 1 for axis in range(3))
    assert isinstance(STRATEGY.apply(found.version, Analyses()), NotApplied)


@pytest.mark.parametrize("name", LEFT)
def test_where_nothing_is_saved_or_rows_do_not_run_side_by_side_threads_stay(name):
    assert isinstance(applied(LEFT[name]), NotApplied)


def test_blocks_that_keep_something_stay():
    body = TAKEN["a_factor"][1]
    tile = (
        "float t[D]; meta_for (int p = 0; p < B; p++) meta_for (int q = 0; q < C; q++) meta_for (int r = 0; r < D; r++)"
    )
    assert isinstance(applied(body, before=f"{tile} if (p + q == 0) t[r] = 1.0f;"), NotApplied)


TILES = """
void f(int n, int K, int B, const float a[n][K], const float b[K][n], float c[n][n])
{{
  assert(B <= K);
  int blocks = n / B, across = n / ({width} * B);
  meta_schedule cache({cached}) {{
    meta_for (int i = 0; i < blocks; i++) meta_for (int j = 0; j < across; j++)
      for (int k = 0; k < K / B; k++)
        meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < B; u++)
          for (int z = 0; z < B; z++) for (int w = 0; w < {width}; w++) {{
            int y = i * B + v, x = (j * {width} + w) * B + u;
            c[y][x] += a[y][k * B + z] * b[k * B + z][x];
          }}
  }}
}}"""


@pytest.mark.parametrize(("width", "rows"), [(1, 4), (4, 4), (5, 2), (8, 2), (9, None), (16, None)])
def test_of_tiles_as_many_iterations_as_have_registers(width, rows):
    version = Version(program(TILES.format(width=width, cached="a, b")))
    found = STRATEGY.apply(version, Analyses())
    if rows is None:
        assert isinstance(found, NotApplied)
        assert "registers" in found.reason
    else:
        assert results_of(found.version.program) == (rows, 1)


def test_of_a_tile_that_is_read_outside_of_loops_threads_stay():
    found = applied(TAKEN["the_innermost_of_equals"][1], cached="a")
    assert isinstance(found, NotApplied)
    assert "in a loop of a thread" in found.reason
    assert isinstance(applied(TAKEN["a_window_that_slides"][1], cached="a"), Applied)


def test_without_tiles_what_a_thread_keeps_across_a_loop_stays():
    found = STRATEGY.apply(Version(program(TILES.format(width=4, cached=""))), Analyses())
    assert isinstance(found, NotApplied)
    assert "no tile" in found.reason


def test_where_registers_are_short_threads_stay():
    version = Version(program(TEXT.format(body=TAKEN["a_factor"][1], cached="", before="", x="int")))
    short = Version(version.program, (Pipeline("rolled", ("O3-rolled",)),))
    assert isinstance(STRATEGY.apply(short, Analyses()), NotApplied)


def test_several_results_go_first_where_the_threads_and_the_registers_are():
    text = TEXT.format(body=TAKEN["a_factor"][1], cached="", before="", x="long")
    chosen = {"counters": ("threads_per_block", "registers_per_thread"), "strategies": ("register_tile",)}
    (tree,) = optimize(text, machine="all", **chosen).schedules
    (leaf,) = tree.leaves
    several = leaf.variants[0]
    assert [results_of(one.version.program) for one in leaf.variants] == [(1, 8, 1), (1, 8, 1), (1, 1, 1)]
    warp, tile, registers = several.limits
    assert tile.text(("B0", "B1", "B2")).startswith("8 <= ")
    assert warp == at_most(WARP_SIZE, several.counters["threads_per_block"].numerator)
    assert registers.left == several.counters["registers_per_thread"].numerator
