"""Trees over threads whose last steps stay within a warp: who gets them, and that nothing changes but the barriers."""

import pytest

from metafork.frontend import parse
from metafork.ir import program as ir
from metafork.ir.kernel import SHUFFLE, without_warps
from metafork.ir.messages.source import Source
from metafork.lowering.lowering import lower
from tests.metafork.kernel_runs import Case, run

ROWS = """
void {name}(int n, int B0, int B1, const int x[n][B0][B1], int y[n][B0][B1])
{{
  meta_schedule {{
    meta_for (int i = 0; i < n; i++) {{
      int s[{extents}];
      meta_for (int v = 0; v < B0; v++)
        meta_for (int u = 0; u < B1; u++)
          s{own} = x[i][v][u];
      for ({loop})
        meta_for (int v = 0; v < B0; v++)
          meta_for (int u = 0; u < B1; u++)
            {step}
      meta_for (int v = 0; v < B0; v++)
        meta_for (int u = 0; u < B1; u++)
          y[i][v][u] = s{own};
    }}
  }}
}}
"""
HALVED = "int h = B1 / 2; h > 0; h /= 2"
PLAIN = "if (u < h) s[v][u] += s[v][u + h];"
TWICE = "if (u < h) { int t = s[v][u + h]; s[v][u] = s[v][u] > t ? s[v][u] : t + 1; }"
ENDING = "if (h > u && u + h < B1) s[v][u] += s[v][u + h];"
IN_LINE = "if (v * B1 + u < h && v * B1 + u + h < B0 * B1) s[v * B1 + u] += s[v * B1 + u + h];"


def text(name, step=PLAIN, loop=HALVED, extents="B0][B1", own="[v][u]"):
    return ROWS.format(name=name, step=step, loop=loop, extents=extents, own=own)


TREES = {
    "rows": text("rows"),
    "behind_the_end": text("behind_the_end", ENDING, "int h = 256; h >= 1; h = h / 2"),
    "choice": text("choice", TWICE),
    "line": text("line", IN_LINE, "int h = 512; h > 0; h >>= 1", "B0 * B1", "[v * B1 + u]"),
}
OTHERS = {
    "one more": text("k", "if (u <= h && u + h < B1) s[v][u] += s[v][u + h];"),
    "next but one": text("k", "if (u < h) s[v][u] += s[v][u + h + 1 < B1 ? u + h + 1 : 0];"),
    "another row": text("k", "if (u < h) s[v][u] += s[(v + 1) % B0][u + h];"),
    "columns": text("k", "if (v < h && v + h < B0) s[v][u] += s[v + h][u];"),
    "a place of its own": text("k", "if (u < h) s[v][u + h] += s[v][u];"),
    "upwards": text("k", "if (u % (2 * h) == 0 && u + h < B1) s[v][u] += s[v][u + h];", "int h = 1; h < B1; h *= 2"),
    "by thirds": text("k", "if (u < h) s[v][u] += s[v][u + h];", "int h = B1 / 2; h > 0; h /= 3"),
    "a longer array": text("k", PLAIN, HALVED, "B0][B1 + 1"),
    "what memory says": text("k", "if (u < h && x[i][v][u] > 0) s[v][u] += s[v][u + h];"),
}


def kernel(source):
    return lower(parse(Source("case.mf", source)).schedules[0].program, "k")


def shuffles(body):
    return sum(isinstance(part, ir.Call) and part.name == SHUFFLE for part in ir.parts_of(body))


@pytest.mark.parametrize("name", TREES)
def test_the_last_steps_of_a_tree_are_shuffles(name):
    body = kernel(TREES[name]).body
    assert shuffles(body) == 5
    assert shuffles(without_warps(body)) == 0


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_such_tree_stays_as_it_is(name):
    assert shuffles(kernel(OTHERS[name]).body) == 0


def test_trees_compute_what_the_program_means(tmp_path):
    """In blocks with whole warps and without, of powers of two and of other numbers of threads."""
    shapes = [
        (1, 16),
        (1, 32),
        (1, 33),
        (1, 48),
        (1, 64),
        (1, 100),
        (2, 32),
        (3, 64),
        (4, 8),
        (2, 24),
        (5, 96),
        (2, 256),
    ]
    cases = [Case(one, [{"n": 2, "B0": rows, "B1": columns} for rows, columns in shapes]) for one in TREES.values()]
    assert run(cases, tmp_path) == {}
