"""tiles: what is used once along rows leaves shared memory, and tiles that are walked by columns get odd rows."""

import pytest

import metafork
from metafork.analysis.analyses import Analyses
from metafork.comprehensive.tree.selection import select
from metafork.ir.mapping import Layout
from metafork.ir.program import Version
from metafork.runtime.machine import PRESETS
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.tiles import STRATEGY
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program


def tiled(name, target, source, element="int", clause="cache(a, c)"):
    """A tile of B0 by s*B1 elements of ``a`` is moved to ``c``; the indices are i and j."""
    return f"""
void {name}(int n, int s, int B0, int B1, const {element} a[n][n], {element} c[n][n])
{{
  int down = n / B0, across = n / (B1 * s);
  meta_schedule {clause} {{
    meta_for (int v = 0; v < down; v++) meta_for (int w = 0; w < across; w++)
      meta_for (int y = 0; y < B0; y++) meta_for (int x = 0; x < B1; x++)
        for (int k = 0; k < s; k++) {{
          int i = v * B0 + y, j = (w * s + k) * B1 + x;
          c{target} = a{source};
        }}
  }}
}}"""


PERMUTATION = """
void permutation(int n, int B0, int B1, const float a[n][n][n], float c[n][n][n])
{
  int down = n / B0, across = n / B1;
  meta_schedule cache(a, c) {
    meta_for (int p = 0; p < n; p++) meta_for (int w = 0; w < across; w++)
      for (int v = 0; v < down; v++)
        meta_for (int y = 0; y < B0; y++) meta_for (int x = 0; x < B1; x++)
          c[w * B1 + x][p][v * B0 + y] = a[p][v * B0 + y][w * B1 + x] + 1;
  }
}"""
LINES = """
void lines(int n, int B, const float a[n * n], float c[n * n])
{
  int strips = n / B;
  meta_schedule cache(a, c) {
    meta_for (int v = 0; v < strips; v++) meta_for (int w = 0; w < strips; w++)
      meta_for (int y = 0; y < B; y++) meta_for (int x = 0; x < B; x++)
        c[(v * B + y) * n + w * B + x] += a[(w * B + x) * n + v * B + y];
  }
}"""
MATVEC = """
void matvec(int m, int n, int B, const float a[m][n], const float x[n], float c[m])
{
  int rows = m / B, steps = n / B;
  meta_schedule cache(a, x, c) {
    meta_for (int i = 0; i < rows; i++)
      for (int k = 0; k < steps; k++)
        meta_for (int u = 0; u < B; u++)
          for (int j = 0; j < B; j++)
            c[i * B + u] += a[i * B + u][k * B + j] * x[k * B + j];
  }
}"""
POINTS = grid(n=[13, 24], s=[1, 3], B0=[1, 3, 4], B1=[1, 2, 8])
MOVES = {
    "transposition": (tiled("transposition", "[j][i]", "[i][j]"), POINTS, {"c"}, {"c"}),
    "from columns": (tiled("from_columns", "[i][j]", "[j][i]"), POINTS, {"a"}, {"a"}),
    "updated": (tiled("updated", "[j][i]", "[i][j] + c[j][i]", "double"), POINTS, {"c"}, {"c"}),
    "narrow": (tiled("narrow", "[j][i]", "[i][j]", "char"), POINTS, {"c"}, {"c"}),
    "permutation": (PERMUTATION, grid(n=[9, 10], B0=[1, 3], B1=[2, 4]), {"c"}, {"c"}),
    "linear": (LINES, grid(n=[12, 21], B=[1, 3, 4]), {"a"}, {"a"}),
    "matrix and vector": (MATVEC, grid(m=[4, 13], n=[9], B=[1, 3, 4]), {"a", "x", "c"}, {"a"}),
}


def applied(text):
    return STRATEGY.apply(Version(program(text)), Analyses())


@pytest.mark.parametrize(("text", "kept", "padded"), [(one[0], *one[2:]) for one in MOVES.values()], ids=MOVES)
def test_what_stays_in_shared_memory(text, kept, padded):
    after = applied(text)
    assert isinstance(after, Applied), after.reason
    mapping = after.version.program.mapping
    assert (set(mapping.cached), dict(mapping.layouts)) == (kept, dict.fromkeys(padded, Layout(padding=1)))
    assert isinstance(STRATEGY.apply(after.version, Analyses()), NotApplied)


@pytest.mark.parametrize("grid_limit", [0, 1])
@pytest.mark.sampled(1)
def test_kernels_compute_what_the_program_means(tmp_path, grid_limit):
    cases = [Case(text, points, program=applied(text).version.program) for text, points, _, _ in MOVES.values()]
    assert run(cases, tmp_path, grid_limit) == {}


SHARED = tiled("shared", "[j][i]", "[i][j] + a[i][j + 1]").replace("(B1 * s)", "(B1 * s + 1)")
CONSTANT = tiled("constant", "[j][i]", "[v][j]")
COPY = tiled("copy", "[i][j]", "[i][j]")
MIRROR = tiled("mirror", "[j][i]", "[i][across * s * B1 - 1 - j]")


@pytest.mark.parametrize(
    ("text", "direct"),
    [(SHARED, set()), (CONSTANT, set()), (MIRROR, set())],
    ids=["two threads use an element", "rows of threads share a row", "backwards"],
)
def test_what_is_used_more_often_or_otherwise_stays(text, direct):
    after = applied(text)
    assert isinstance(after, Applied)
    assert set(after.version.program.mapping.cached) == {"a", "c"} - direct


def test_where_nothing_needs_shared_memory_caching_takes_all_out():
    assert "no array that goes through shared memory needs to" in applied(COPY).reason
    assert "no array goes through" in applied(COPY.replace("cache(a, c)", "cache()")).reason


@pytest.mark.parametrize(
    ("text", "values", "title"),
    [
        (MOVES["transposition"][0], "n=512 s=4 B0=8 B1=32", "c in shared memory, a in global memory, c padded"),
        (MOVES["from columns"][0], "n=512 s=4 B0=8 B1=32", "a in shared memory, c in global memory, a padded"),
        (MOVES["permutation"][0], "n=64 B0=8 B1=32", "c in shared memory, a in global memory, c padded"),
        (MATVEC, "m=512 n=512 B=64", "a, x, c in shared memory, a padded"),
        (MOVES["transposition"][0].replace("cache(a, c)", ""), "n=512 s=4 B0=8 B1=32", "c in shared memory, c padded"),
    ],
    ids=["transposition", "from columns", "permutation", "matrix and vector", "without a clause"],
)
def test_the_leaf_that_an_sm_80_takes(tmp_path, text, values, title):
    source = tmp_path / "case.mf"
    source.write_text(text)
    numbers = {name: int(number) for name, number in (word.split("=") for word in values.split())}
    counted = {"counters": ["threads_per_block", "shared_memory"], "strategies": ["granularity", "caching", "tiles"]}
    for order in ("cost", "paper"):
        tree = metafork.optimize(source, order=order, **counted).document.schedules[0]
        machine = {symbol: PRESETS["sm_80"].fields()[field] for symbol, field in tree.fields.items()}
        chosen = select(tree, {name: numbers[name] for name in (*tree.data, *tree.program)} | machine)
        assert chosen.leaf == 1
        assert (tree.leaves[0].title == title) == (order == "cost"), tree.leaves[0].title
