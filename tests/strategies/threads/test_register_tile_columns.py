import ctypes
import subprocess

import numpy as np
import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.optimize import optimize
from metafork.ir import program as ir
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.marks import results_of
from metafork.ir.program import Version
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.threads.register_tile import RegisterTile
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program

STRATEGY = RegisterTile(shapes=("columns",))

TEXT = """
void f(int n, int m, int B, int C, const {type} a[n + 2][m + 2], const {type} w[m], {type} c[n][m])
{{
  int down = n / B, across = m / C;
  meta_schedule cache({cached}) {{
    meta_for (int i = 0; i < down; i++) meta_for (int j = 0; j < across; j++)
      meta_for (int v = 0; v < B; v++) meta_for ({x} u = 0; u < C; u++) {{
        int y = i * B + v, x = j * C + u;
        {body}
      }}
  }}
}}"""
TAKEN = {
    "a_factor_of_rows": (4, 4, "float", "c[y][x] *= a[y][0] + w[x];"),
    "a_stencil": (2, 8, "float", "c[y][x] = a[y][x] + a[y + 1][x + 1] + a[y][x + 2] + a[y + 1][x] + a[y][x + 1];"),
    "one_column_further": (
        2,
        8,
        "float",
        "if (x + 1 < m) c[y][x + 1] = a[y][x + 1] + a[y + 1][x] + a[y + 1][x + 1] + a[y + 1][x + 2] + a[y + 2][x + 1];",
    ),
    "one_column_further_in_pieces_that_lie_apart": (
        2,
        1,
        "float",
        "for (int k = 0; k < 4; k++)"
        " c[y][256 * k + x + 1] = a[y][256 * k + x] + a[y][256 * k + x + 1] + a[y][256 * k + x + 2];",
    ),
    "nothing_shared": (2, 1, "float", "c[y][x] = 2 * a[y][x];"),
    "nothing_shared_in_a_loop": (2, 1, "float", "for (int k = 0; k < 4; k++) c[y][256 * k + x] += a[y][256 * k + x];"),
    "shared_by_rows": (2, 8, "float", "c[y][x] = a[y][x] + a[y + 1][x];"),
    "nothing_shared_by_rows": (4, 1, "int", "c[y][x] += a[y][0];"),
    "eight_bytes": (2, 8, "double", "c[y][x] *= a[y][0] + w[x];"),
}
LEFT = {
    "nothing_shared_and_much_computed": "c[y][x] = ((((a[y][x] + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2;",
    "one_side_of_a_stencil": "c[y][x] = a[y][x + 1] + a[y + 1][0];",
    "columns_of_a_matrix": "if (x < n && y < m) c[x][y] = a[x][0] * w[y];",
    "left_early": "for (int k = 0; k < 2; k++) { if (y > k) break; c[y][x] += w[0]; }",
}
PRODUCT = """
void product(int m, int n, int B, const float a[m][n], const float x[m], float y[n])
{
  int blocks = n / B;
  meta_schedule {
    meta_for (int j = 0; j < blocks; j++)
      meta_for (int u = 0; u < B; u++) {
        float sum = y[j * B + u];
        for (int i = 0; i < m; i++)
          sum += a[i][j * B + u] * x[i];
        y[j * B + u] = sum;
      }
  }
}
"""


def applied(body, type_="float", cached="", x="int"):
    return STRATEGY.apply(Version(program(TEXT.format(body=body, type=type_, cached=cached, x=x))), Analyses())


@pytest.mark.parametrize("name", TAKEN)
def test_neighbours_that_share_loads_and_lie_side_by_side(name):
    columns, rows, type_, body = TAKEN[name]
    found = applied(body, type_)
    assert isinstance(found, Applied)
    assert results_of(found.version.program) == (rows, columns)
    assert isinstance(STRATEGY.apply(found.version, Analyses()), NotApplied)


@pytest.mark.parametrize("name", LEFT)
def test_where_nothing_is_saved_or_vectors_would_cost_threads_stay(name):
    assert isinstance(applied(LEFT[name]), NotApplied)


def test_where_threads_share_or_count_otherwise_they_stay():
    _, _, type_, body = TAKEN["a_factor_of_rows"]
    assert isinstance(applied(body, type_, cached="w"), NotApplied)
    assert isinstance(applied(body, type_, x="long"), NotApplied)
    version = Version(program(TEXT.format(body=body, type=type_, cached="", x="int")))
    assert isinstance(
        STRATEGY.apply(Version(version.program, (Pipeline("rolled", ("O3-rolled",)),)), Analyses()), NotApplied
    )


def test_a_stencil_that_stores_one_column_further_runs_at_odd_sizes(tmp_path):
    """Its inner elements are read two at a time and stored one by one."""
    text = TEXT.format(body=TAKEN["one_column_further"][3], type="float", cached="", x="int").replace(
        "a[n + 2]", "a[n + 3]"
    )
    points = grid(n=(8, 17, 40), m=(16, 17, 36), B=(8, 16), C=(6, 16))
    assert (
        run([Case(text, points, program=STRATEGY.apply(Version(program(text)), Analyses()).version.program)], tmp_path)
        == {}
    )


ANY_GRID = "int down = n / B, across = m / C;"
"""Without it, extents of the grid are parameters: their products with those of a block may be no ints."""


def variants(name, text=TEXT):
    text = text.format(body=TAKEN[name][3], type=TAKEN[name][2], cached="", x="int")
    (tree,) = optimize(text, strategies=("register_tile",)).schedules
    (leaf,) = tree.leaves
    return text, [one.version.program for one in leaf.variants]


def test_small_blocks_have_fewer_rows_of_columns():
    text = TEXT.replace(ANY_GRID, "").replace("int C,", "int C, int down, int across,")
    _, found = variants("a_factor_of_rows", text)
    assert [results_of(one) for one in found] == [(4, 4), (2, 4), (2, 2), (1, 1)]


@pytest.mark.parametrize("name", ["a_factor_of_rows", "a_stencil", "one_column_further"])
def test_small_blocks_compute_more_where_they_can(name, tmp_path):
    text = TEXT.replace("a[n + 2]", "a[n + 3]")
    text, (first, larger, *_) = variants(name, text)
    assert results_of(larger) == results_of(first)
    before, after = (one.body[0].threads for one in (first, larger))
    assert after[0].extent == ir.binary("*", ir.IntConst(before[0].results), before[0].extent)
    assert after[1].extent == before[1].extent
    points = grid(n=(8, 17, 40), m=(16, 17, 36), B=(1, 3, 8), C=(6, 16))
    assert run([Case(text, points, program=larger)], tmp_path) == {}


@pytest.fixture(scope="module")
def launch(tmp_path_factory):
    folder = tmp_path_factory.mktemp("product")
    result, out = optimize(PRODUCT), folder / "out"
    write_outputs(result, out)
    name = result.unit.name
    flags = [
        "-O1",
        "-w",
        "-ffp-contract=off",
        "-fPIC",
        "-DMETAFORK_CPU",
        "-DMETAFORK_CHECK",
        f"-I{out}",
        f"-I{out}/include",
    ]
    subprocess.run(
        ["g++", "-std=c++17", *flags, "-x", "c++", "-c", out / f"{name}.cu", "-o", folder / "k.o"], check=True
    )
    subprocess.run(["gcc", "-std=gnu11", *flags, "-c", out / f"{name}_host.c", "-o", folder / "h.o"], check=True)
    subprocess.run(
        ["g++", "-shared", folder / "k.o", folder / "h.o", "-lm", "-pthread", "-o", folder / "lib.so"], check=True
    )
    return getattr(ctypes.CDLL(str(folder / "lib.so")), f"{name}_k0_launch")


@pytest.mark.parametrize(("n", "size", "shift"), [(256, 128, 0), (256, 128, 1), (258, 129, 0), (264, 132, 2)])
@pytest.mark.slow
def test_memory_that_no_vector_may_touch_is_accessed_one_by_one(launch, n, size, shift, capfd, monkeypatch):
    """The first leaf runs from device pointers that are aligned or not: with checks of every vector access."""
    m, random = 5, np.random.default_rng(3)
    a, x, y = (
        np.concatenate([np.zeros(shift, np.float32), random.random(count, np.float32)])[shift:]
        for count in (m * n, m, n)
    )
    want = y.copy()
    for i in range(m):
        want += a.reshape(m, n)[i] * x[i]
    monkeypatch.setenv("METAFORK_TRACE", "1")
    launch.argtypes = [ctypes.c_int, ctypes.c_void_p, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 3]
    assert launch(1, None, m, n, size, a.ctypes.data, x.ctypes.data, y.ctypes.data) == 0
    assert np.array_equal(y, want)
    aligned = all(one.ctypes.data % 16 == 0 for one in (a, x, y))
    assert (" large" in capfd.readouterr().err) is not aligned
    assert aligned or shift


@pytest.mark.parametrize(("rows", "several"), [(1, 1), (2, 2), (3, 3), (64, 4)])
def test_a_thread_has_no_more_rows_than_its_loop_has_iterations(rows, several):
    columns, _, type_, body = TAKEN["a_factor_of_rows"]
    text = TEXT.format(type=type_, cached="", x="int", body=body).replace("v < B", f"v < {rows}")
    applied = STRATEGY.apply(Version(program(text)), Analyses())
    assert isinstance(applied, Applied)
    assert results_of(applied.version.program) == (several, columns)
