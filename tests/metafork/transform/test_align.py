"""Tiles that begin at a multiple compute what they computed from where they began."""

import pytest

from metafork.analysis.analyses import Analyses
from metafork.ir.marks import with_results
from metafork.printing.metafork_text import metafork_text
from metafork.transform.align import with_aligned_start
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program

TEXT = """
void {name}(int n, int m, int k, int B, int C, float a[n][m], float x[n])
{{
  int rest = m - k - 1;
  meta_schedule cache() {{
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int j = 0; j < {blocks}; j++)
        meta_for (int v = 0; v < B; v++)
          meta_for (int u = 0; u < C; u++) {{
            int y = i * B + v;
            {body}
          }}
  }}
}}"""
COVERING = "(rest + C - 1) / C"
UPDATE = "a[y][c] += a[0][k] * x[y];"
MOVED = {
    "columns": (COVERING, f"int c = k + 1 + j * C + u; if (y < n && c < m) {UPDATE}"),
    "the_rest": (COVERING, f"int d = j * C + u, c = k + 1 + d; if (y < n && d < rest) {UPDATE}"),
    "in_place": (COVERING, "if (y < n && k + 1 + j * C + u < m) a[y][k + 1 + j * C + u] *= x[y];"),
    "from_the_right": (COVERING, f"int c = u + C * j + (k + 1); if (m > c && n > y) {UPDATE}"),
    "up_to_the_last": (COVERING, f"int c = k + 1 + j * C + u; if (y < n && c <= m - 1) {UPDATE}"),
    "a_constant": ("(m - 1 + C - 1) / C", "int c = j * C + u + 1; if (y < n && c < m) a[y][c] *= x[y];"),
    "beyond_a_multiple": ("(m - 6 + C - 1) / C", "int c = j * C + u + 6; if (y < n && c < m) a[y][c] *= x[y];"),
    "more_blocks": ("(m + C - 1) / C", f"int c = k + 1 + j * C + u; if (y < n && c < m) {UPDATE}"),
    "an_end_inside": (COVERING, f"int c = k + 1 + j * C + u; if (y < n && c < m - 2) {UPDATE}"),
    "a_neighbour": (COVERING, "int c = k + 1 + j * C + u, e = c + 1; if (y < n && e < m) a[y][c] += x[y] * e;"),
    "a_loop_of_the_thread": (
        COVERING,
        "int c = k + 1 + j * C + u; if (y < n && c < m) { float s = 0; for (int l = 0; l < c; l++) s += x[y] * l;"
        " if (c % 2) a[y][c] = s; else a[y][c] -= s; }",
    ),
}
LEFT = {
    "a_multiple": ("(m - 8 + C - 1) / C", f"int c = j * C + u + 8; if (y < n && c < m) {UPDATE}"),
    "too_few_blocks": ("rest / C", f"int c = k + 1 + j * C + u; if (y < n && c < m) {UPDATE}"),
    "blocks_as_given": ("n", f"int c = k + 1 + j * C + u; if (y < n && c < k + 2) {UPDATE}"),
    "perhaps_before_the_first_column": (
        "(m - k + C - 1) / C",
        f"int c = k - 1 + j * C + u; if (y < n && c < m - 1) {UPDATE}",
    ),
    "no_end": (COVERING, f"int c = k + 1 + j * C + u; if (y < n && c != m) {UPDATE}"),
    "an_end_of_rows": (COVERING, f"int c = k + 1 + j * C + u; if (y < n && c < m - y) {UPDATE}"),
    "otherwise": (COVERING, f"int c = k + 1 + j * C + u; if (y < n && c < m) {UPDATE} else if (y < n) x[y] = 1;"),
    "behind_it": (COVERING, f"int c = k + 1 + j * C + u; if (y < n && c < m) {UPDATE} int z = 0;"),
    "read_before": (
        COVERING,
        "int c = k + 1 + j * C + u; float t = x[y % n]; if (y < n && c < m) a[y][c] += t * a[0][k];",
    ),
    "read_by_the_test": (COVERING, f"int c = k + 1 + j * C + u; if (y < n && x[y] < 1 && c < m) {UPDATE}"),
    "the_thread": (COVERING, "int c = k + 1 + j * C + u; if (y < n && c < m) a[y][c] += x[y] * u;"),
    "the_block": (COVERING, "int c = k + 1 + j * C + u; if (y < n && c < m) a[y][c] += x[y] * (j + 1);"),
    "another_stride": (COVERING, f"int c = k + 1 + j * (C + 0 * B) + 2 * u; if (y < n && c < m) {UPDATE}"),
    "a_start_for_each_row": (
        "(m + C - 1) / C",
        "int c = y + 1 + j * C + u; if (y < n && c < m) a[y][c] += x[y];",
    ),
    "an_unsigned_column": (COVERING, f"unsigned c = k + 1 + j * C + u; if (y < n && c < m) {UPDATE}"),
    "assigned": (COVERING, f"int c = k + 1 + j * C + u; if (y < n && c < m) {{ {UPDATE} c++; }}"),
}
POINTS = grid(n=(3, 8), m=(9, 16, 20), k=(0, 2, 3, 6, 7), B=(4,), C=(3, 8))


def before(name, blocks, body):
    return program(TEXT.format(name=name, blocks=blocks, body=body))


def moved(one, multiple=4):
    return with_aligned_start(one, multiple, Analyses().facts(one))


@pytest.mark.slow
def test_moved_programs_compute_what_they_did(tmp_path):
    """Also where a thread has four columns and rows, and where blocks walk the grid."""
    cases = []
    for name, (blocks, body) in MOVED.items():
        one = moved(before(name, blocks, body))
        assert one is not None, name
        text = TEXT.format(name=name, blocks=blocks, body=body)
        cases += [Case(text, POINTS, program=one, label=name)]
        cases += [Case(text, POINTS, program=with_results(one, {0: 4, 1: 4}), label=f"{name} in vectors")]
    assert run(cases, tmp_path) == {}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_function_of_columns_up_to_an_end_stays(name):
    assert moved(before(name, *LEFT[name])) is None


@pytest.mark.parametrize("multiple", [2, 4])
def test_a_start_is_the_multiple_before_the_first_column(multiple):
    text = metafork_text(moved(before("f", *MOVED["columns"]), multiple))
    assert f"int start = (k + 1) / {multiple} * {multiple};" in text
    assert "int past = C + m;" in text
    assert "j < (past - start - 1) / C;" in text
    assert "if (c >= k + 1 && y < n && c < m)" in text


def test_names_that_are_taken_are_not_given_again():
    text = TEXT.replace("int rest", "int start = 3, rest").format(
        name="f", blocks=COVERING, body="int c = k + 1 + j * C + u; if (y < n && c < m) a[y][c] *= x[y] + start;"
    )
    assert "int start1 = (k + 1) / 4 * 4;" in metafork_text(moved(program(text)))
