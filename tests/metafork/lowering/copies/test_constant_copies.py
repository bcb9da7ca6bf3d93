"""Copies of windows whose elements and threads are constants: loops of constant trips, and a condition for the rest."""

import re

import pytest

from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from tests.metafork.kernel_runs import Case, run
from tests.metafork.programs import program

ROW = """
void row_WIDTH_REACH(int n, const int a[n], int b[n]) {
  int dim = (n - REACH) / WIDTH;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int u = 0; u < WIDTH; u++)
        b[i * WIDTH + u] = a[i * WIDTH + u] + 3 * a[i * WIDTH + u + REACH];
  }
}
"""
TILE = """
void tile_ROWS_COLUMNS(int n, const int a[n][n], int b[n][n]) {
  int down = n / ROWS, across = n / (3 * COLUMNS);
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < down; i++)
      meta_for (int j = 0; j < across; j++)
        meta_for (int u = 0; u < ROWS; u++)
          meta_for (int v = 0; v < COLUMNS; v++)
            for (int k = 0; k < 3; k++)
              b[j * 3 * COLUMNS + k * COLUMNS + v][i * ROWS + u] = a[i * ROWS + u][j * 3 * COLUMNS + k * COLUMNS + v];
  }
}
"""


def texts():
    rows = [(4, 4), (4, 1), (4, 7), (3, 12), (1, 2)]
    tiles = [(2, 4), (4, 2), (5, 2), (1, 3), (3, 3)]
    yield from (ROW.replace("WIDTH", str(width)).replace("REACH", str(reach)) for width, reach in rows)
    yield from (TILE.replace("ROWS", str(rows)).replace("COLUMNS", str(columns)) for rows, columns in tiles)


@pytest.mark.parametrize("grid_limit", [0, 1])
def test_what_is_left_over_is_copied_too(tmp_path, grid_limit):
    assert run([Case(text, [{"n": n} for n in (1, 9, 20, 31)]) for text in texts()], tmp_path, grid_limit) == {}


def test_trips_are_constants_where_all_sizes_are():
    for text in texts():
        emitted = kernel_text(lower(program(text), "k"))
        rolled = re.findall(r"METAFORK_ROLLED\n.*", emitted)  # beside a copy of several elements by an access
        assert all(re.search(r"_trip < \d+; ", loop) for loop in rolled)
        assert not rolled or "METAFORK_ALIGNED()" in emitted
        assert "_trip < " in emitted
