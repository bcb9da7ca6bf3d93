"""Copies whose loops advance two offsets: boxes that fit the block or not, that end at a border, and large arrays."""

import pytest
from msgspec.structs import replace

from metafork.ir.arithmetic.evaluation import integer_value
from metafork.ir.mapping import Layout
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from tests.metafork.host_scalars import with_host_scalars
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program

TILES = """
void NAME(int n, int m, int K, int B0, int B1, const ELEMENT a[n][m], ELEMENT c[n][m])
{
  int down = (n + B0 - 1) / B0, across = CEILING / (REACH * B1);
  meta_schedule cache(a, c) {
    meta_for (int v = 0; v < down; v++) meta_for (int w = 0; w < across; w++)
      for (int t = 0; t < K; t++)
        meta_for (int y = 0; y < B0; y++) meta_for (int x = 0; x < B1; x++)
          for (int k = 0; k < REACH; k++) {
            int i = v * B0 + y, j = (w * REACH + k) * B1 + x;
            if (i < n && j < m)
              c[i][j] += a[n - 1 - i][j] * (t + 1);
          }
  }
}"""
ROWS = """
void rows(int n, int K, int B, const int a[n][n], const int b[n * n], int c[n][n])
{
  int steps = n / K, strips = n / B;
  meta_schedule cache(a, b) {
    meta_for (int v = 0; v < strips; v++) meta_for (int w = 0; w < strips; w++)
      for (int t = 0; t < steps; t++)
        meta_for (int y = 0; y < B; y++) meta_for (int x = 0; x < B; x++)
          for (int z = 0; z < K; z++)
            c[v * B + y][w * B + x] += a[v * B + y][t * K + z] * b[(t * K + z) * n + w * B + x];
  }
}"""
PLANES = """
void planes(int n, int B, const float a[n][n][n], float c[n][n][n])
{
  int strips = n / B;
  meta_schedule cache(a, c) {
    meta_for (int v = 0; v < strips; v++) meta_for (int w = 0; w < strips; w++)
      meta_for (int y = 0; y < B; y++) meta_for (int x = 0; x < B; x++)
        for (int k = 0; k < n; k++)
          c[w * B + x][k][v * B + y] = a[k][v * B + y][w * B + x] + 1;
  }
}"""
EVERY_OTHER = """
void every_other(int n, int B, const int a[2 * n + 1][3 * n + 2], int c[n][n])
{
  int strips = n / B;
  meta_schedule cache(a) {
    meta_for (int v = 0; v < strips; v++) meta_for (int w = 0; w < strips; w++)
      meta_for (int y = 0; y < B; y++) meta_for (int x = 0; x < B; x++)
        c[v * B + y][w * B + x] = a[2 * (v * B + y) + 1][3 * (w * B + x) + 2];
  }
}"""
LINE = """
void line(int n, int B, const int a[n], int c[n])
{
  int strips = (n + B - 1) / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < strips; i++) meta_for (int u = 0; u < B; u++) {
      int p = i * B + u;
      if (p < n)
        c[p] = a[p];
    }
  }
}"""
TALLER = """
void taller(int n, int m, int B0, int B1, const int a[n][m], int c[n][m])
{
  int down = (n + 3 * B0 - 1) / (3 * B0), across = m / B1;
  meta_schedule cache(a) {
    meta_for (int v = 0; v < down; v++) meta_for (int w = 0; w < across; w++)
      meta_for (int y = 0; y < B0; y++) meta_for (int x = 0; x < B1; x++)
        for (int k = 0; k < 3; k++) {
          int i = v * 3 * B0 + y + B0 * k;
          if (i < n)
            c[i][w * B1 + x] = a[i][w * B1 + x];
        }
  }
}"""


def tiles(name, reach, ragged, element="int"):
    text = TILES.replace("NAME", name).replace("REACH", str(reach)).replace("ELEMENT", element)
    return text.replace("CEILING", f"(m + {reach} * B1 - 1)" if ragged else "m")


SHAPES = grid(n=[1, 6, 13], m=[8, 17], K=[2], B0=[1, 4], B1=[1, 2, 5])
CASES = [
    Case(tiles("even", 1, False), SHAPES),
    Case(tiles("ragged", 3, True), SHAPES),
    Case(tiles("strips", 4, False, "double"), SHAPES),
    Case(ROWS, grid(n=[12, 14], K=[1, 3, 5], B=[1, 3, 4])),
    Case(PLANES, grid(n=[6, 7], B=[1, 2, 3])),
    Case(EVERY_OTHER, grid(n=[4, 9], B=[1, 3])),
    Case(LINE, grid(n=[4, 9], B=[1, 3, 16])),
    Case(TALLER, grid(n=[4, 9], m=[6], B0=[1, 2, 4], B1=[3])),
]


@pytest.mark.parametrize("grid_limit", [0, 1])
@pytest.mark.sampled(1)
def test_every_element_is_copied(tmp_path, grid_limit):
    cases = [replace(one, program=one.unit.schedules[0].program) for one in CASES]
    padded = [
        replace(one, label="padded", program=one.program.mapped(layouts=tuple((n, Layout(padding=1)) for n in "ac")))
        for one in cases[2:3]
    ]
    assert run([*cases, *padded], tmp_path, grid_limit) == {}


def inner_loops(text):
    """Return the bodies of the loops of copies that have no loop inside."""
    lines = kernel_text(lower(program(text), "k")).splitlines()
    starts = [number + 1 for number, line in enumerate(lines) if line.strip() == "METAFORK_ROLLED"]
    bodies = []
    for start in starts:
        margin = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
        bodies.append("\n".join(lines[start + 1 : lines.index(f"{margin}}}", start)]))
    return [body for body in bodies if "for (" not in body]


@pytest.mark.parametrize("text", [ROWS, PLANES, TALLER], ids=["rows", "planes", "taller"])
def test_loops_compute_no_index(text):
    bodies = inner_loops(text)
    assert bodies
    for body in bodies:
        assert "_at = " not in body
        assert "/" not in body
        assert "%" not in body
        assert all("[" not in line or "if" not in line for line in body.splitlines())


def test_each_thread_copies_a_few_elements_of_a_row_without_a_condition():
    text = tiles("strips", 4, False)
    assert not inner_loops(text)  # as many threads as the box has rows
    assert "_trip < 4" in kernel_text(lower(program(text), "k"))


def test_offsets_that_run_past_the_range_of_int_take_the_large_kernel():
    kernel = lower(program(ROWS), "k")

    def reach(n):
        values = with_host_scalars(kernel, {"n": n, "K": 16, "B": 32})
        return max(integer_value(span, values) for span in kernel.spans)

    assert reach(40000) < 2**31
    assert 46340**2 < 2**31 <= reach(46340)
