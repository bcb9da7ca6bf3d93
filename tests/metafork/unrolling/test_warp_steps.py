"""Trees over threads whose last steps stay within a warp: who gets them, and that nothing changes but the barriers."""

import pytest

from metafork.frontend import parse
from metafork.ir import program as ir
from metafork.ir.kernel import SHUFFLE, without_warps
from metafork.ir.marks import with_results
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
    "scalars_of_a_step": text(
        "scalars_of_a_step", "if (u < h && u + h < B1) { int t = u + h, o = v; s[o][u] = s[o][u] * 3 - s[v][t]; }"
    ),
    "a_condition_on_elements": text(
        "a_condition_on_elements",
        "if (u < h) { int t = u + h; if (s[v][u] < s[v][t]) s[v][u] = s[v][t]; else s[v][u]++; }",
    ),
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


SUMS = """
void {name}(int n, int m, int B, const {type} x[n][m], {type} y[n][m])
{{
  meta_schedule {{
    meta_for (int i = 0; i < n; i++) {{
      {type} s[B];
      int at[B];
      meta_for (int u = 0; u < B; u++) {{
        {type} sum = 0;
        for (int k = u; k < m; k += B)
          sum += x[i][k];
        s[u] = sum;
        at[u] = u;
      }}
      for (int h = {first}; h > 0; h /= 2)
        meta_for (int u = 0; u < B; u++)
          {step}
      {then}
    }}
  }}
}}
"""
GUARDED = "if (u < h && u + h < B) s[u] += s[u + h];"
UNGUARDED = "if (u < h) s[u] += s[u + h];"
GREATEST = "if (u < h && u + h < B) { if (s[u + h] > s[u]) { s[u] = s[u + h]; at[u] = at[u + h]; } }"
PLACES = "if (u < h && u + h < B) s[u] += s[u + h] * u;"
FIRST_IS_READ = "meta_for (int u = 0; u < B; u++) for (int k = u; k < m; k += B) y[i][k] = x[i][k] + s[0];"
SECOND_IS_READ = "meta_for (int u = 0; u < B; u++) for (int k = u; k < m; k += B) y[i][k] = x[i][k] + s[B > 1];"
PLACE_IS_READ = "meta_for (int u = 0; u < 1; u++) y[i][0] = s[0] + at[0];"
AGAIN = (
    "meta_for (int u = 0; u < B; u++) { float t = s[0]; s[u] = u; } "
    "for (int h = 512; h > 0; h /= 2) meta_for (int u = 0; u < B; u++) " + GUARDED + FIRST_IS_READ
)
HALF_IS_WRITTEN = (
    "meta_for (int u = 0; u < B; u++) if (u % 2 == 0) s[u] = u; "
    "for (int h = 512; h > 0; h /= 2) meta_for (int u = 0; u < B; u++) " + GUARDED + FIRST_IS_READ
)
ONE_BY_ONE = "meta_for (int u = 0; u < 1; u++) for (int k = 0; k < B; k++) y[i][0] += s[k];"


def sums(name, step=GUARDED, then=FIRST_IS_READ, type_="float", first="512"):
    return SUMS.format(name=name, step=step, then=then, type=type_, first=first)


FIRSTS = {
    "floats": sums("floats"),
    "whole numbers": sums("whole_numbers", type_="int"),
    "no end": sums("no_end", UNGUARDED, first="B / 2"),
    "greatest": sums("greatest", GREATEST, PLACE_IS_READ),
    "again": sums("again", then=AGAIN),
}
ALL = {
    "another element": sums("another_element", then=SECOND_IS_READ),
    "elements one by one": sums("one_by_one", then=ONE_BY_ONE),
    "half of it written": sums("half", then=HALF_IS_WRITTEN),
    "places": sums("places", PLACES),
}


def scalars_of_lanes(body):
    """How many elements are read that lie 32 places behind the lane's own."""
    elements = [part for part in ir.parts_of(body) if isinstance(part, ir.Element)]
    return sum(isinstance(one.indices[0], ir.Binary) and one.indices[0].right == ir.IntConst(32) for one in elements)


@pytest.mark.parametrize("name", [*FIRSTS, *ALL])
def test_lanes_have_several_elements_where_only_the_first_is_read_afterwards(name):
    """Lanes of 2, 4 and 8 elements have that one, in each of a program's trees, for each of its arrays."""
    several = {"floats": 3, "whole numbers": 3, "no end": 3, "greatest": 6, "again": 6, "half of it written": 3}
    assert scalars_of_lanes(kernel((FIRSTS | ALL)[name]).body) == several.get(name, 0)


def test_threads_with_several_places_leave_the_tree_to_the_first_warp(tmp_path):
    """Rows of any length, in blocks of any number of places, of which a thread has one, two or four."""
    sizes = [
        (64, 128),
        (256, 128),
        (192, 64),
        (100, 100),
        (33, 128),
        (512, 256),
        (130, 130),
        (64, 32),
        (50, 33),
        (5, 16),
    ]
    sizes += [(600, 512), (1000, 200), (48, 192), (7, 1)]
    points = [{"n": 2, "m": m, "B": places} for m, places in sizes]
    cases = []
    for name, source in (FIRSTS | ALL).items():
        program = parse(Source("case.mf", source)).schedules[0].program
        several = {count: with_results(program, {0: count}) for count in (1, 2, 4)}
        cases += [Case(source, points, program=one, label=f"{name}, {count}") for count, one in several.items()]
    assert run(cases, tmp_path) == {}
