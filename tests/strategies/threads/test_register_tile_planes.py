"""Rows of several planes in one thread: which programs have them, and their kernels at odd sizes."""

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.scheduled import scheduled_unit
from metafork.evaluators.registers_per_thread import registers
from metafork.frontend import parse
from metafork.ir.invariants import InvariantError, check_program
from metafork.ir.ir_strategies import Pipeline
from metafork.ir.marks import results_of, with_results
from metafork.ir.messages.source import Source
from metafork.ir.program import Version
from metafork.lowering.lowering import lower
from metafork.printing.metafork_text import metafork_text
from metafork.strategies.strategy import Applied, NotApplied
from metafork.strategies.threads.register_tile import RegisterTile
from tests.metafork.kernel_runs import Case, grid, run
from tests.metafork.programs import program

STRATEGY = RegisterTile(shapes=("planes",))
DEEP = RegisterTile(shapes=("deep",))

TEXT = """
void {name}(int n, int B, int C, int D, const float a[n + 2][n + 2][n + 2], float c[n + 2][n + 2][n + 2], int d[n + 2])
{{
  int e0 = (n + B - 1) / B, e1 = (n + C - 1) / C, e2 = (n + D - 1) / D;
  meta_schedule cache({cached}) {{
    meta_for (int i = 0; i < e0; i++) meta_for (int j = 0; j < e1; j++) meta_for (int k = 0; k < e2; k++) {{
      meta_for (int p = 0; p < B; p++) meta_for (int q = 0; q < C; q++) meta_for (int r = 0; r < D; r++) {{
        int z = i * B + p, y = j * C + q, x = k * D + r;
        if (x < n && y < n && z < n) {{
          {body}
        }}
      }}
    }}
  }}
}}"""
SEVEN = (
    "c[z + 1][y + 1][x + 1] = a[z + 1][y + 1][x + 1] + a[z][y + 1][x + 1] + a[z + 2][y + 1][x + 1] + a[z + 1][y][x + 1]"
    " + a[z + 1][y + 2][x + 1] + a[z + 1][y + 1][x] + a[z + 1][y + 1][x + 2];"
)
LEFT = {
    "one_direction": "c[z][y][x] = a[z][y][x] + a[z + 1][y][x];",
    "nothing_shared": "c[z][y][x] = a[z][y][x];",
    "hardly_less": " + ".join(
        ["c[z][y][x] = a[z + 1][y][x] + a[z][y][x]", *(f"a[0][y + {k}][{k} * z]" for k in (0, 9))]
    )
    + ";",
    "left_early": f"for (int t = 0; t < 2; t++) {{ if (z > t) break; {SEVEN} }}",
}
BODIES = {
    "seven": SEVEN,
    "in_place": "c[z][y][x] -= a[z][0][x] * c[z][y][x] + a[0][y][x];",
    "scalars_and_loops": "float s = 0.0f; "
    "for (int t = 0; t < 3; t++) { s += a[z + t % 2][y][x] * t; s -= a[z][y][t % n]; } c[z][y][x] = s + y * z;",
    "rows_but_one": "if (y != n / 2 && z != x) c[z][y][x] = a[z][y][x] + a[z + 1][y + 1][x];",
    "two_sides": "if ((y + z) % 2 == 0) c[z][y][x] = 1.0f; else { int t = y; t += z; c[z][y][x] += a[y][z][x] * t; }",
    "atomic": "meta_atomic d[z] += x - y;",
}


BLOCKED = """
void {name}(int l, int m, int n, int B, int C, int D, const float a[l + 2][m + 2][n + 2],
            float c[l + 2][m + 2][n + 2], int d[l + 2])
{{
  meta_schedule meta_block({block}) {{
    meta_for (int z = 0; z < l; z++) meta_for (int y = 0; y < m; y++) meta_for (int x = 0; x < n; x++) {{
      {body}
    }}
  }}
}}"""
NOT_DEEP = {
    "nothing_shared": LEFT["nothing_shared"],
    "one_direction": LEFT["one_direction"],
    "in_loops": "float s = 0.0f; for (int t = 0; t < n; t++) s += a[z][y][t] + a[z + 1][y][t] + a[z][y + 1][t];"
    " c[z][y][x] = s;",
    "no_vectors": SEVEN.replace("x +", "2 * x +"),
}


def blocked(body, block="B, C", name="f"):
    return BLOCKED.format(name=name, body=body, block=block)


def has_planes(found):
    return isinstance(found, Applied) and results_of(found.version.program)[0] > 1


def text(body, name="f", cached=""):
    return TEXT.format(name=name, body=body, cached=cached)


def applied(body, cached=""):
    return STRATEGY.apply(Version(program(text(body, cached=cached))), Analyses())


def test_both_directions_share_loads():
    found = applied(SEVEN)
    assert results_of(found.version.program) == (8, 4, 1)
    assert "3.75 loads per result instead of 5.25" in found.note
    assert isinstance(STRATEGY.apply(found.version, Analyses()), NotApplied)


@pytest.mark.parametrize("name", LEFT)
def test_where_rows_of_planes_load_hardly_less_threads_stay(name):
    assert isinstance(applied(LEFT[name]), NotApplied)


def test_where_blocks_keep_something_or_registers_are_short_threads_stay():
    assert isinstance(applied("c[z][y][x] = a[z][y][x] + a[z + 1][y][x] + a[z][y + 1][x];"), Applied)
    assert isinstance(applied(SEVEN, cached="a"), NotApplied)
    short = Version(program(text(SEVEN)), (Pipeline("rolled", ("O3-rolled",)),))
    assert isinstance(STRATEGY.apply(short, Analyses()), NotApplied)


@pytest.mark.parametrize("block", ["B", "B, C", "B, C, D", "8, 32"])
def test_blocks_get_planes_that_only_the_grid_has(block):
    found = DEEP.apply(Version(program(blocked(SEVEN, block))), Analyses())
    grown = found.version.program
    assert results_of(grown) == (8, 4, 2)
    alone = 3 - len(block.split(","))
    assert [getattr(loop.extent, "value", None) for loop in grown.body[0].threads[:alone]] == [8, 4][:alone]
    asked = [need.counter.name for need in found.needs]
    assert [f"extent_{name}_over_1" in asked for name in "lm"] == [alone > 0, alone > 1]
    kernel = lower(grown, "k")
    assert kernel.aligned
    assert kernel.bounds == ((256, 4) if block == "8, 32" else (1024, 1))
    assert registers(found.version, Analyses()) == 64


ROWS_ALONE = {
    "stencil": (
        (8, 2),
        "c[y + 1][x + 1] = a[y][x + 1] + a[y + 1][x] + a[y + 2][x + 1] + a[y + 1][x + 1] + a[y + 1][x + 2];",
    ),
    "window": ((8, 2), "float s = 0; for (int q = 0; q < 3; q++) s += a[y + q][x] * d[q]; c[y][x] = s;"),
    "nothing_shared": ((1, 2), "c[y][x] = a[y][x];"),
}
FLAT = """
void {name}(int m, int n, int B, const float a[m + 2][n + 2], float c[m + 2][n + 2], const float d[3])
{{
  meta_schedule meta_block(B) {{
    meta_for (int y = 0; y < m; y++) meta_for (int x = 0; x < n; x++) {{
      {body}
    }}
  }}
}}"""


@pytest.mark.parametrize("name", ROWS_ALONE)
def test_blocks_get_rows_that_only_the_grid_has(name):
    counts, body = ROWS_ALONE[name]
    found = RegisterTile().apply(Version(program(FLAT.format(name=name, body=body))), Analyses())
    assert results_of(found.version.program) == counts
    assert ("extent_m_over_1" in [need.counter.name for need in found.needs]) == (counts[0] > 1)


@pytest.mark.parametrize("name", NOT_DEEP)
def test_without_shared_loads_and_vectors_in_straight_code_no_planes_of_columns(name):
    assert not has_planes(DEEP.apply(Version(program(blocked(NOT_DEEP[name]))), Analyses()))


def test_planes_of_wide_elements_have_no_registers():
    doubles = program(blocked(SEVEN).replace("float", "double"))
    assert not has_planes(DEEP.apply(Version(doubles), Analyses()))


def test_small_blocks_have_fewer_rows_of_columns():
    """Where there are columns, planes with rows alone would need more threads than these."""
    (tree,) = optimize(text(SEVEN), counters=("threads_per_block",), strategies=("register_tile",)).schedules
    (leaf,) = tree.leaves
    shapes = [results_of(one.version.program) for one in leaf.variants]
    assert shapes == [(8, 4, 2), (8, 4, 2), (1, 2, 2), (8, 1, 2), (1, 1, 1)]


def test_a_thread_has_its_rows_whatever_is_printed_and_read_back():
    found = applied(SEVEN).version.program
    printed = metafork_text(found)
    assert "#pragma metafork schedule(coarsen(p, 8); coarsen(q, 4))" in printed
    (schedule,) = scheduled_unit(parse(Source("f.mf", printed))).schedules
    assert results_of(schedule.program) == results_of(found) == (8, 4, 1)


@pytest.mark.parametrize("counts", [{2: 5}, {0: 0}])
def test_marks_that_no_lowering_carries_out_are_noticed(counts):
    with pytest.raises(InvariantError):
        check_program(with_results(program(text(SEVEN)), counts))


def test_threads_are_as_many_as_groups():
    one = program(text(SEVEN).replace("int B, int C, ", "").replace("B", "16").replace("C", "8"))
    kernel = lower(with_results(one, {1: 4, 0: 8}), "k")
    assert [getattr(extent, "value", None) for extent in kernel.block] == [None, 2, 2]


@pytest.mark.slow
def test_kernels_at_sizes_that_leave_rows_and_planes_over(tmp_path):
    points = grid(n=(5, 9), B=(1, 5), C=(4, 6), D=(2,)) + grid(n=(11,), B=(8, 16), C=(4, 9), D=(3,))
    cases = []
    for number, (name, body) in enumerate(BODIES.items()):
        source = text(body, name)
        one = with_results(program(source), {0: 2, 1: 3} if number % 2 else {1: 4, 0: 3})
        cases.append(Case(source, points, program=one))
        one = with_results(program(source), {0: 2, 1: 3, 2: 2} if number % 2 else {2: 4, 1: 2, 0: 3})
        cases.append(Case(source, points, program=one, label=f"{name}_of_columns"))
    cases.append(Case(cases[0].text, points, program=applied(SEVEN).version.program, label="chosen"))
    around = grid(l=(2, 8, 17), m=(3, 9), n=(7, 8, 20), B=(2, 5), C=(4,), D=(3,))
    for number, block in enumerate(("B", "B, C", "B, C, D")):
        source = blocked(SEVEN, block, f"planes_{number}")
        planes = DEEP.apply(Version(program(source)), Analyses()).version.program
        cases.append(Case(source, around, program=planes))
    for name, (_, body) in ROWS_ALONE.items():
        source = FLAT.format(name=f"alone_{name}", body=body)
        rows = RegisterTile().apply(Version(program(source)), Analyses()).version.program
        cases.append(Case(source, grid(m=(3, 8, 17), n=(7, 8, 20), B=(3, 4)), program=rows))
    assert run(cases, tmp_path) == {}
