"""Thread coarsening: a thread with several rows computes what the program means, and loads once what rows share."""

import pytest
from msgspec.structs import replace

from metafork.comprehensive.scheduled import scheduled_unit
from metafork.frontend import parse
from metafork.ir.kernel import Space
from metafork.ir.marks import results_of, with_results
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.ir.program import (
    ROLLED,
    Assign,
    Declare,
    Element,
    For,
    If,
    expressions_of,
    walk_expression,
    walk_statements,
)
from metafork.lowering.lowering import lower
from tests.metafork.kernel_runs import Case, run
from tests.metafork.programs import program

TEXT = """
void {name}(int n, int m, int B, int C, const float a[n + 2][m + 2], const int p[n + 2], float c[n][m], int d[n][m])
{{
  int down = (n + B - 1) / B, across = (m + C - 1) / C;
  meta_schedule cache({cached}) {{
    meta_for (int i = 0; i < down; i++)
      meta_for (int j = 0; j < across; j++) {{
        {before}
        meta_for (int v = 0; v < B; v++)
          meta_for (int u = 0; u < C; u++) {{
            int y = i * B + v, x = j * C + u;
            {body}
          }}
      }}
  }}
}}"""
SUM = "a[y][x] + a[y + 1][x] + a[y + 2][x + 1]"
TOGETHER = {
    "stencil": f"if (y < n && x < m) c[y][x] = {SUM};",
    "in_place": "if (x < m && y < n) c[y][x] -= a[y][0] * c[y][x];",
    "no_guard": "float t = a[y % n][x % m]; if (y < n) { int z = x; if (z < m) { c[y][x] = t; d[y][x] = (int)t; } }",
    "scalars_of_a_guard": "int q = y + 1, r = q * 2; if (r < n * 2 && x < m) { d[y][x] += r; c[y][x] *= 2.0f; }",
    "a_scalar_changes": f"int q = x; q += y; if (y < n && x < m) {{ float x1 = {SUM}; c[y][x] = x1 * q; q = 0; }}",
    "a_guard_in_memory": "if (x < m && y < n && p[y] % 2 == 0) d[y][x] = p[y];",
    "a_guard_of_what_is_written": "if (y < n && x < m) if (d[y][x] > 2) d[y][x] = d[y][x] - x;",
    "a_guard_that_divides": "if (x < m && y < n && p[y] != 0 && 60 / p[y] > x) d[y][x] ^= p[y];",
    "scalars_that_grow": "int q0 = y & 7; "
    + " ".join(f"int q{k + 1} = (q{k} ^ 5) - (q{k} & {k});" for k in range(40))
    + " if (y < n && x < m && q40 < x) d[y][x] = q39;",
    "two_sides": "if (y < n && x < m) { if (y % 2 == 0) c[y][x] = 1.0f; else c[y][x] += a[y][x]; }",
    "otherwise": "if (y >= n || x >= m) { int w = x; w += 1; } else { c[y][x] = a[y][x]; }",
    "loops": "float s = 0.0f; if (y < n && x < m) { for (int k = 0; k < 3; k++) s += a[y][x] * k; c[y][x] = s; }",
    "a_loop_of_its_own": "if (y < n && x < m) for (int k = 0; k < y; k++) c[y][x] += a[y][k % 3];",
    "a_name_twice": "if (y < n && x < m) { { int x1 = 3; d[y][x] = x1; } { float x1 = a[y][x]; c[y][x] = x1; } }",
    "hidden": "float t = a[0][x % m]; if (y < n && x < m) { float s = t; { float t = s + 1.0f; c[y][x] = t; } }",
    "atomic": "if (y < n && x < m) { meta_atomic d[y][0] += x; }",
    "taps": "if (y < n && x < m) { float s = 0.0f; for (int k = 0; k < 3; k++) s += k * a[y + k][x]; c[y][x] = s; }",
    "two_loops_of_taps": "if (y < n && x < m) { for (int j1 = 0; j1 < y; j1++) for (int k = 0; k < 2; k++) c[y][x] += "
    "a[(j1 + y + k) % n][x] + a[y + k][x]; for (int j1 = 0; j1 < x; j1++) c[y][x] -= a[j1 % n][x] + a[y][x]; }",
    "read_again_after_a_store": "if (y < n && x < m && x > 0) { d[y][x] += d[y][0]; d[y][x] *= d[y][0] + d[y][x]; }",
    "an_index_in_memory": "if (y < n && x < m) c[y][x] = a[p[y] & 3 & n][x] + a[p[y] & 3 & n][x + 1];",
    "read_on_one_side": "if (y < n && x < m) c[y][x] = (p[y] > 0 ? a[y + 1][x] : 1) + (x > 2 ? a[y + 1][x] : a[y][x]);",
    "rows_but_one": "if (y != m && x < m && y < n) d[y][x] = y;",
    "upwards_and_downwards": "int q = 3 - y; if (q != x && 2 * y <= n + x && q >= -n && x < m && y < n) d[y][x] = q;",
    "odd_rows": "if (y < n && x < m && (y - x) * 2 != y && y * x < n) d[y][x] = y; ",
    "several_stores": "if (y < n && x < m) { c[y][x] = a[y][x]; c[y][x] += c[y][x]; d[y][x] = d[y][x] << 1; }",
}
ONE_BY_ONE = {
    "left_early": "if (y < n && x < m) for (int k = 0; k < 9; k++) { if (k > y) break; c[y][x] += a[y][x]; }",
    "while": "int k = y; if (y < n && x < m) while (k > 0) { c[y][x] += a[y][x]; k -= 2; }",
    "an_array_of_its_own": "float t[2]; t[0] = x; t[1] = y; if (y < n && x < m) c[y][x] = t[y % 2];",
    "a_loop_that_skips": "if (y < n && x < m) for (int k = 0; k < 9; k++) { c[y][x] += a[y][x]; k += y; }",
}
BEFORE = {
    "two_phases": "meta_for (int v = 0; v < B + 1; v++) meta_for (int u = 0; u < C; u++)"
    " { int y = i * B + v, x = j * C + u; if (v < B && y < n && x < m) d[y][x] = x; }",
    "of_the_block": "float t[B][C]; meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < C; u++) t[v][u] = v * u;",
}
POINTS = [
    {"n": n, "m": m, "B": B, "C": C} for n, m, B, C in ((16, 6, 8, 3), (17, 5, 8, 5), (9, 4, 1, 4), (30, 2, 11, 1))
]


def case(name, body, most=4, cached="", before=""):
    text = TEXT.format(name=f"{name}_{most}", body=body, cached=cached, before=before)
    one = with_results(program(text), {0: most})
    return Case(text, POINTS, program=one, label=f"{name} {most}")


def parts(kernel):
    """The statements of a kernel where all rows run, and those that run row by row."""
    choices = [one for one in walk_statements(kernel.body) if isinstance(one, If)]
    (choice,) = [one for one in choices if any(isinstance(two, For) and two.copies == ROLLED for two in one.otherwise)]
    return choice.then, choice.otherwise


def stores(body):
    return [one for one in walk_statements(body) if isinstance(one, Assign) and isinstance(one.target, Element)]


@pytest.mark.parametrize("name", TOGETHER)
def test_rows_run_side_by_side(name):
    side, alone = parts(lower(case(name, TOGETHER[name]).program, "k"))
    assert len(stores(side)) == 4 * len(stores(alone))


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_what_cannot_stand_side_by_side_runs_row_by_row(name):
    kernel = lower(case(name, ONE_BY_ONE[name]).program, "k")
    assert any(isinstance(one, For) and one.copies == ROLLED for one in walk_statements(kernel.body))
    assert len(stores(kernel.body)) == len(
        stores(lower(with_results(case(name, ONE_BY_ONE[name]).program, {0: 1}), "k").body)
    )


def test_rows_load_before_any_of_them_stores():
    side, _ = parts(lower(case("in_place", TOGETHER["in_place"]).program, "k"))
    first = next(number for number, one in enumerate(side) if one in stores(side))
    read = [part for one in side[first:] for expr in expressions_of(one) for part in walk_expression(expr)]
    assert sum(isinstance(part, Element) and part.array == "c" for part in read) == 4  # the targets
    assert all(isinstance(one, Declare) for one in side[:first])


def test_what_rows_have_in_common_is_loaded_once():
    side, _ = parts(lower(case("taps", TOGETHER["taps"]).program, "k"))
    read = [part for one in walk_statements(side) for expr in expressions_of(one) for part in walk_expression(expr)]
    assert sum(isinstance(part, Element) and part.array == "a" for part in read) == 6


def test_where_the_extent_is_a_multiple_no_row_is_guarded():
    text = TEXT.format(name="f", body="c[y][x] = a[y][x] + a[y + 1][x];", cached="", before="")
    one = with_results(program(text.replace("int B, ", "").replace("v < B;", "v < 8;").replace("B", "8")), {0: 4})
    kernel = lower(one, "k")
    assert not any(isinstance(stmt, If) for stmt in walk_statements(kernel.body))
    assert kernel.block[1].value == 2


@pytest.mark.slow
def test_kernels_with_several_rows_a_thread_compute_what_the_program_means(tmp_path):
    every = enumerate((TOGETHER | ONE_BY_ONE).items())
    cases = [case(name, body, (3, 8)[number % 2]) for number, (name, body) in every]
    cases += [case(name, TOGETHER["stencil"], 4, before=before) for name, before in BEFORE.items()]
    cases += [case("cached", TOGETHER["stencil"], 4, cached="a"), case("written", TOGETHER["in_place"], 4, cached="c")]
    assert run([replace(one, _parsed=[]) for one in cases], tmp_path) == {}


KEPT = """
void {name}(int n, int m, int K, int B, int C, const float a[n][K], const float b[K][2 * m], float c[n][2 * m])
{{
  assert(2 <= K);
  int e0 = n / B, e1 = m / C;
  meta_schedule cache(a, b) {{
    meta_for (int i = 0; i < e0; i++) meta_for (int j = 0; j < e1; j++)
      for (int k = 0; k < K / 2; k++) {{
        meta_for (int v = 0; v < {rows}; v++) meta_for (int u = 0; u < C; u++) {{ {body} }}
        {after}
      }}
  }}
}}"""
PRODUCT = """for (int z = 0; z < 2; z++) for (int w = 0; w < 2; w++)
  c[i * B + v][2 * j * C + w * C + u] += a[i * B + v][2 * k + z] * b[2 * k + z][2 * j * C + w * C + u];"""
ONE = "c[i * B + v][j * C + u] {op} a[i * B + v][2 * k] * b[2 * k][j * C + u];"
LARGER = "meta_for (int v = 0; v < B + 2; v++) meta_for (int u = 0; u < C; u++) { int own = v + u; }"
ROWS_KEPT = {
    "two_results": (PRODUCT, "B", ""),
    "one_result": (ONE.format(op="+="), "B", ""),
    "more_threads_than_rows": (PRODUCT, "B", LARGER),
    "written_first": ("if (k >= 0) { " + ONE.format(op="=") + " }", "B", ""),
    "not_always_written": ("if (k != 1) { " + ONE.format(op="=") + " }", "B", ""),
    "one_by_one": ("int x = 2; while (x > 0) { " + ONE.format(op="+=") + " x -= v + 1; }", "B", ""),
    "a_constant": (PRODUCT, "4", ""),
}


def kept(name, most):
    body, rows, after = ROWS_KEPT[name]
    text = KEPT.format(name=f"{name}_{most}", body=body, rows=rows, after=after)
    if rows == "4":
        text = text.replace("int B, ", "").replace("B", "4")
    sizes = [{"n": 9, "m": 8, "K": 6, "B": 4, "C": 2}, {"n": 7, "m": 3, "K": 5, "B": 3, "C": 3}, {"n": 5, "m": 2}]
    points = [{"K": 2, "B": 5, "C": 1} | point for point in sizes]
    points = [{key: value for key, value in point.items() if key != "B" or rows == "B"} for point in points]
    one = with_results(program(text), {0: most})
    return Case(text, points, program=one, label=f"{name} {most}")


@pytest.mark.slow
def test_rows_whose_elements_stay_in_registers_across_a_block_level_loop(tmp_path):
    cases = [kept(name, most) for name in ROWS_KEPT for most in (2, 4)]
    registers = {}
    for one in cases:
        private = [memory for memory in lower(one.program, "k").memories if memory.space is Space.PRIVATE]
        registers[one.label] = [memory.extent.value for memory in private]
    assert registers["two_results 4"] == registers["more_threads_than_rows 4"] == [8]
    assert registers["one_result 2"] == [2]
    assert registers["not_always_written 4"] == []
    cases += [kept(name, 1) for name in ROWS_KEPT]
    assert run(cases, tmp_path) == {}


def test_no_loop_over_rows_is_left_whose_elements_stay_in_registers():
    statements = list(walk_statements(lower(kept("two_results", 4).program, "k").body))
    assert any(isinstance(one, Element) and one.array == "own_c" for one in map(_target, statements))
    assert not any(isinstance(stmt, For) and stmt.init.name == "v" for stmt in statements)


def _target(stmt):
    return stmt.target if isinstance(stmt, Assign) else None


def test_the_middle_loop_of_three(tmp_path):
    text = """
void f(int n, int B0, int B1, int B2, const float a[n][n + 1][n], float c[n][n][n])
{
  int e0 = n / B0, e1 = n / B1, e2 = n / B2;
  meta_schedule cache() {
    meta_for (int i = 0; i < e0; i++) meta_for (int j = 0; j < e1; j++) meta_for (int k = 0; k < e2; k++)
      meta_for (int p = 0; p < B0; p++) meta_for (int q = 0; q < B1; q++) meta_for (int r = 0; r < B2; r++) {
        int z = i * B0 + p, y = j * B1 + q, x = k * B2 + r;
        c[z][y][x] = a[z][y][x] + a[z][y + 1][x];
      }
  }
}"""
    points = [{"n": 6, "B0": 2, "B1": 3, "B2": 2}, {"n": 4, "B0": 1, "B1": 4, "B2": 2}]
    assert run([Case(text, points, program=with_results(program(text), {1: 2}))], tmp_path) == {}


@pytest.mark.parametrize(("item", "works"), [("v, 8", True), ("u, 8", False), ("v, 1", False), ("w, 4", False)])
def test_the_schedule_of_a_printed_leaf_is_read_where_it_makes_sense(item, works):
    text = TEXT.format(name="f", body=TOGETHER["stencil"], cached="", before="")
    text = text.replace("meta_schedule", f"\n#pragma metafork schedule(coarsen({item}))\n  meta_schedule")
    unit = parse(Source("f.mf", text))
    if works:
        (schedule,) = scheduled_unit(unit).schedules
        assert results_of(schedule.program) == (8, 1)
    else:
        with pytest.raises(DiagnosticsError, match=r"MF060[12]"):
            scheduled_unit(unit)
