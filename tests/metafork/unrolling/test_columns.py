"""Columns: a thread with several neighbours in x computes what the program means, with vector accesses where it may."""

import pytest
from msgspec.structs import replace

from metafork.ir.marks import with_results
from metafork.ir.program import (
    Assign,
    Declare,
    Element,
    For,
    If,
    IntConst,
    Part,
    expressions_of,
    walk_expression,
    walk_statements,
)
from metafork.lowering.lowering import lower
from metafork.printing.cuda import kernel_text
from tests.metafork.kernel_runs import Case, build, wrong
from tests.metafork.programs import program

TEXT = """
void {name}(int n, int m, int B, int C, const {type} a[n + 2][m + 2], const int p[n + 2], {type} c[n + 4][m],
            int d[n][m], int e[(n + 4) * (m + 16)])
{{
  int down = (n + B - 1) / B, across = (m + C - 1) / C;
  meta_schedule cache() {{
    meta_for (int i = 0; i < down; i++)
      meta_for (int j = 0; j < across; j++)
        meta_for (int v = 0; v < B; v++)
          meta_for (int u = 0; u < C; u++) {{
            int y = i * B + v, x = j * C + u;
            {body}
          }}
  }}
}}"""
VECTORS = {
    "a_factor": "if (y < n && x < m) c[y][x] *= a[y][0];",
    "taps": "if (y < n && x < m) { float s = 0; for (int k = 0; k < 3; k++) s += a[y][x + k] * p[k]; c[y][x] = s; }",
    "taps_of_rows": "float s = 0; if (y < n && x < m) { for (int l = 0; l < 3; l++) for (int k = 0; k < 3; k++)"
    " s += a[y + l][x + k]; c[y][x] = s; }",
    "in_place": "if (x < m && y < n) c[y][x] -= a[y][0] * c[y][x];",
    "a_loop": "if (x < m && y < n) { float s = c[y][x]; for (int k = 0; k < y; k++) s += a[k][0]; c[y][x] = s; }",
    "two_loops_of_one_name": "if (x < m && y < n) { float s = 0; for (int k = 0; k < 2; k++) s += a[y][k];"
    " for (int k = 2; k < y; k++) s -= p[k] * d[y][x]; c[y][x] = s; }",
    "backwards": "if (x < m && y < n) c[y][x] = d[y][m - 1 - x] + p[y];",
    "stored_twice": "if (x < m && y < n) { c[y][x] = p[y]; c[y][x] += c[y][x]; d[y][x] = p[y] << 1; }",
    "read_after_a_store": "if (x < m && y < n) { d[y][x] = p[y]; c[y][x] = d[y][x] + p[y + 1]; }",
    "a_scalar_of_both": "int z = y * m + x; if (x < m && y < n) e[z] = p[y];",
    "a_test_of_both": "if (x < m && y < n && x + y < m) d[y][x] = p[y];",
    "the_least": "if (x < m && y < n && x != 5 && y != 3) { int t = p[y] + d[3][x]; if (t < d[y][x]) d[y][x] = t; }",
    "the_greatest": "if (x < m && y < n && n != x) { float t = a[y][0]; if (d[y][x] < t) d[y][x] = t * 2; }",
    "one_side_after_another": "if (x < m && y < n) { if (d[y][x] > 9) d[y][x] = p[y];"
    " if (d[y][x] < 5) d[y][x] = p[y + 1]; }",
    "divided_behind_one": "if (x < m && y < n && x > 5) { int t = d[y][x] / (x - 5); e[y * m + x] = t + p[y]; }",
    "divided_but_for_one": "if (x < m && y < n && x != 5) { int t = d[y][x] / (x - 5); e[y * m + x] = t + p[y]; }",
    "from_its_own_place_on": "if (x < m && y < n) { int s = 0; for (int k = x; k < m; k += C) s += d[y][k];"
    " c[y][x] = s + p[y]; }",
    "from_there_on_by_twos": "if (x < m && y < n) { int s = 0; for (int k = x + 4; k < m; k += 2 * C) s += d[y][k];"
    " c[y][x] = s + p[y]; }",
    "all_but_two": "if (x < m && y < n && x != 5 && x != 2) d[y][x] += p[y];",
    "all_but_one": "if (x < m && y < n && x != n) d[y][x] += p[y];",
}
LEFT_OUT = {
    "the_row_before": "if (x < m && y < n && y != 0) c[y][x] = a[y - 1][0] * a[y][0];",
    "the_last_row": "if (x < m && y < n && n - 1 - y != 0) d[y][x] = d[n - 1][x] / 3 - p[y + 2];",
    "all_but_the_diagonal": "if (x < m && y < n && x != y) d[y][x] += p[y];",
    "all_but_two_rows": "if (x < m && y < n && y != 1 && y != 2) d[y][x] += p[y];",
    "shortest": "if (x < m && y < n && x != 2 && y != 3) { int t = d[y][2] + d[3][x]; if (t < d[y][x]) d[y][x] = t; }",
    "in_doubles": "if (x < m && y < n && x != 2 && 9 - 2 * y != 3) c[y][x] *= a[y][x % 2];",
    "two_stores": "if (x < m && y < n && x != 2 && y != 3) { d[y][x] += p[y]; e[y * m + x] = 3 - p[y]; }",
    "rows_by_a_scalar": "int k = n / 3; if (x < m && y < n && y != k) d[y][x] = d[k][x] - p[y];",
}
"""Rows that a test leaves out."""
BEHIND = {
    "a_column": "if (x < m && y < n && x > B) d[y][x] += p[y];",
    "a_difference": "if (x < m && y < n && n - 9 <= x) { int t = p[y] + d[3][x]; if (t < d[y][x]) d[y][x] = t; }",
    "a_double": "if (2 * x >= n && x < m && y < n) c[y][x] *= a[y][0];",
    "a_row_too": "if (y >= 2 && y < n && x < m && 3 - x < 0) { d[y][x] -= p[y]; e[y * m + x] = x; }",
    "a_row_that_counts_down": "if (n - y > 1 && y > 0 && x < m && x >= 5) d[y][x] += d[0][x] * p[y];",
    "nothing_but_rows": "if (x >= 6 && x < m && y < n - 1) d[y][x] = p[y];",
}
"""Columns, from one on that need not begin a vector."""
AHEAD = {
    "of_rows": "if (x < m && y < n) { float s = 0; for (int k = 0; k < n; k++) s += p[k] * d[k][x]; c[y][x] = s; }",
    "several_arrays": "if (x < m && y < n) { float s = 0; for (int k = 0; k < m; k++) { int z = y * m + k + 4;"
    " float t = e[z]; if (t > 9) s += t * x; else s -= a[y][k]; s *= a[y][k]; } c[y][x] = s; }",
    "in_a_loop": "if (x < m && y < n) { float s = 0; for (int l = 0; l < y; l++) for (int k = 0; k < n - l; k++)"
    " s = s * p[k] + d[l][x]; c[y][x] = s; }",
    "from_a_tile_on": "if (x < m && y < n) { float s = 0; for (int l = 0; l < n - 12; l += 4)"
    " for (int k = 0; k < 9 + l % 3; k++) s = s / 2 + p[l + k]; c[y][x] = s; }",
    "constants": "if (x < m && y < n) { int s = x; for (int k = 0; k < 16; k++) s = s % 9 * 3 + e[k];"
    " for (int k = 0; k < 11; k++) s = s % 9 * 3 + e[k]; d[y][x] = s; }",
}
"""Loops of which four iterations run together."""
IN_TURN = {
    "stored_to": "if (x < m && y < n && y > 0) for (int k = 0; k < m; k++) d[y][x] += d[0][k];",
    "on_a_condition": "if (x < m && y < n) { int s = p[y]; for (int k = 0; k < n; k++) if (k > x) s += p[k];"
    " d[y][x] = s; }",
    "every_other": "if (x < m && y < n) { int s = p[y]; for (int k = 0; 2 * k < n; k++) s += p[2 * k]; d[y][x] = s; }",
    "of_neighbours": "if (x < m && y < n) { int s = p[y]; for (int k = 0; k < n - y; k++) s += d[k][x] - p[y + 1];"
    " c[y][x] = s; }",
    "from_one_on": "if (x < m && y < n) { int s = p[y]; for (int k = 1; k < n; k++) s += p[k]; d[y][x] = s; }",
    "a_limit_that_moves": "if (x < m && y < n) { int s = p[y], z = n; for (int k = 0; k < z; k++)"
    " { s += p[k]; z -= k; } d[y][x] = s; }",
    "found_by_the_thread": "if (x < m && y < n) { int s = p[y], z = p[y] & 1; for (int k = 0; k < n; k++)"
    " s += p[z + k]; d[y][x] = s; }",
    "few": "if (x < m && y < n) { int s = p[y]; for (int k = 0; k < 8; k++) { s += e[k]; s ^= d[y][x]; }"
    " d[y][x] = s; }",
}
"""Loops of columns side by side that run as they stand."""
ONE_BY_ONE = {
    "columns_of_a_row_apart": "if (2 * x < m && y < n) c[y][2 * x] = p[y];",
    "the_next_column": "if (x + 1 < m && y < n) c[y][x + 1] = p[y];",
    "wrapped": "if (y < n && x < m) c[y][(x + 1) % m] = p[y];",
    "transposed": "if (y < n && x < m && x < n && y < m) c[x][y] = p[y];",
    "found_in_memory": "if (y < n && x < m) c[y][p[0] & 1] += 0.0f;",
    "a_name_of_a_parameter": "if (y < n && x < m) { int q = m; { int m = q - q % 2 - 1; if (x < m)"
    " e[y * m + x] = p[y]; } }",
    "read_on_a_condition": "if (x < m && y < n) c[y][x] = p[y] > 2 ? d[y][x] : -d[y][x];",
    "atomic": "if (y < n && x < m) { meta_atomic d[y][x] += p[y]; }",
    "left_early": "if (y < n && x < m) for (int k = 0; k < 9; k++) { if (k > y) break; c[y][x] += p[y]; }",
    "an_array_of_its_own": "float t[2]; t[0] = x; t[1] = y; if (y < n && x < m) c[y][x] = t[y % 2];",
    "stored_in_places": "if (y < n && x < m) { if (p[y] > x) d[y][x] = p[y]; }",
}
POINTS = [
    {"n": n, "m": m, "B": B, "C": C}
    for n, m, B, C in ((16, 8, 8, 4), (17, 12, 8, 8), (9, 7, 4, 4), (6, 16, 3, 6), (5, 3, 2, 1), (12, 20, 12, 16))
]


def case(name, body, columns=4, rows=4, type_="float"):
    text = TEXT.format(name=f"{name}_{columns}_{rows}_{type_}".replace(" ", "_"), body=body, type=type_)
    one = with_results(program(text), {0: rows, 1: columns})
    return Case(text, POINTS, program=one, label=f"{name} {columns} {rows} {type_}")


def parts(kernel):
    """The elements of vector accesses."""
    exprs = [expr for stmt in walk_statements(kernel.body) for expr in expressions_of(stmt)]
    return [part for expr in exprs for part in walk_expression(expr) if isinstance(part, Element) and part.part]


@pytest.mark.parametrize("name", VECTORS)
def test_neighbours_are_accessed_together(name):
    kernel = lower(case(name, VECTORS[name]).program, "k")
    assert kernel.aligned
    assert parts(kernel)
    assert "metafork_load(&" in kernel_text(kernel) or "metafork_store(&" in kernel_text(kernel)


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_what_does_not_lie_side_by_side_is_accessed_one_by_one(name):
    kernel = lower(case(name, ONE_BY_ONE[name]).program, "k")
    assert not kernel.aligned
    assert not parts(kernel)


def test_an_element_that_neighbours_share_is_loaded_once():
    kernel = lower(case("taps", VECTORS["taps"], rows=1).program, "k")
    loads = [one for one in walk_statements(kernel.body) if isinstance(one, Declare) and isinstance(one.value, Element)]
    assert len({one.value for one in loads if one.value.array == "a"}) == 6
    stores = [one for one in walk_statements(kernel.body) if isinstance(one, Assign) and one.target in parts(kernel)]
    assert [one.target.part.place for one in stores] == [0, 1, 2, 3]


def wide_stores(kernel):
    """The stores of vectors."""
    return [one for one in walk_statements(kernel.body) if isinstance(one, Assign) and one.target in parts(kernel)]


@pytest.mark.parametrize("name", ["all_but_one", "one_column"])
def test_a_column_that_does_not_run_does_not_hold_up_its_neighbours(name):
    """Where the stores of one access all happen, and where each pair has a condition, are the two sides of a choice."""
    body = VECTORS.get(name, "if (x < m && y < n && x != 2) d[y][x] += p[y];")
    kernel = lower(case(name, body).program, "k")
    choices = [one for one in walk_statements(kernel.body) if isinstance(one, If) and one.otherwise]
    (choice,) = [one for one in choices if len(one.then) == 16]
    assert all(isinstance(stmt, Assign) and stmt.target.part.lanes == 4 for stmt in choice.then)
    assert len(choice.otherwise) == 8
    for pair in choice.otherwise:
        assert [stmt.target.part for stmt in pair.then] == [Part(2, 0), Part(2, 1)]
        assert [stmt.then[0].target.part for stmt in pair.otherwise] == [None, None]


@pytest.mark.parametrize("name", ["the_row_before", "rows_by_a_scalar", "the_last_row", "two_stores"])
def test_a_row_that_does_not_run_does_not_hold_up_its_neighbours(name):
    kernel = lower(case(name, LEFT_OUT[name]).program, "k")
    lanes = [one.target.part.lanes for one in wide_stores(kernel)]
    stores = 2 if name == "two_stores" else 1
    assert lanes.count(4) == 32 * stores
    of_rows = [one.then for one in walk_statements(kernel.body) if isinstance(one, If) and not one.otherwise]
    stored = [one for one in of_rows if all(isinstance(stmt, Assign) and stmt.target.part for stmt in one)]
    assert [len(one) for one in stored] == [4] * 4 * stores


@pytest.mark.parametrize("name", BEHIND)
def test_a_vector_of_which_the_first_columns_do_not_run_is_loaded_as_one(name):
    """What is left of it is stored by one and by two; rows at the end of a group do not hold up the others."""
    kernel = lower(case(name, BEHIND[name]).program, "k")
    stores = 8 if name == "a_row_too" else 4
    choices = [one for one in walk_statements(kernel.body) if isinstance(one, If) and one.otherwise]
    whole = next(one for one in choices if all(isinstance(stmt, Assign) and stmt.target.part for stmt in one.then))
    assert [stmt.target.part.lanes for stmt in whole.then] == [4] * 4 * stores
    second, rest = whole.otherwise
    assert [stmt.target.part for stmt in second.then] == [None] * stores
    assert {stmt.target.part for stmt in rest.then} == {Part(2, 0), Part(2, 1)}
    assert [stmt.target.part for stmt in rest.otherwise] == [None] * stores
    by_row = [one for one in choices if all(isinstance(stmt, If) and not stmt.otherwise for stmt in one.then)]
    assert {len(one.then) for one in by_row} == {stores}


@pytest.mark.parametrize("name", ["all_but_two_rows", "all_but_the_diagonal"])
def test_rows_that_may_not_run_are_tested_where_there_are_more_of_them(name):
    kernel = lower(case(name, LEFT_OUT[name]).program, "k")
    assert len(wide_stores(kernel)) == 16


@pytest.mark.parametrize("name", ["divided_but_for_one", "divided_behind_one", "all_but_two"])
def test_what_may_not_be_computed_in_vain_is_not(name):
    kernel = lower(case(name, VECTORS[name]).program, "k")
    stores = [one for one in walk_statements(kernel.body) if isinstance(one, Assign) and one.target in parts(kernel)]
    assert len(stores) == 16
    guarded = [stmt for one in walk_statements(kernel.body) if isinstance(one, If) for stmt in one.then]
    assert sum(isinstance(stmt, Assign) and stmt.target.part is not None for stmt in guarded) == 16


def steps(kernel):
    """By how much loops over `k` count."""
    loops = [one for one in walk_statements(kernel.body) if isinstance(one, For) and one.init.name == "k"]
    return [one.step.value for one in loops]


@pytest.mark.parametrize("name", AHEAD)
def test_four_neighbours_that_all_threads_read_are_one_access(name):
    kernel = lower(case(name, AHEAD[name]).program, "k")
    assert IntConst(4) in steps(kernel)
    alike = {one.array: one.part.lanes for one in reversed(parts(kernel)) if one.array in ("e", "p", "a")}
    assert alike == {"several_arrays": {"e": 4, "a": 2}, "constants": {"e": 4}}.get(name, {"p": 4})


@pytest.mark.parametrize("name", IN_TURN)
def test_loops_that_share_no_neighbours_run_one_iteration_at_a_time(name):
    kernel = lower(case(name, IN_TURN[name]).program, "k")
    assert set(steps(kernel)) == {IntConst(1)}


def test_a_loop_of_a_multiple_of_four_has_no_iterations_left_over():
    kernel = lower(case("constants", AHEAD["constants"], rows=1).program, "k")
    assert steps(kernel) == [IntConst(4), IntConst(1)]  # the second is that of columns one by one


@pytest.mark.parametrize(("type_", "lanes"), [("double", 2), ("short", 0), ("long long", 2), ("unsigned int", 4)])
def test_vectors_have_16_bytes(type_, lanes):
    columns = 2 if lanes == 2 else 4
    kernel = lower(case("a_factor", "if (y < n && x < m) c[y][x] = p[y];", columns, type_=type_).program, "k")
    assert {one.part.lanes for one in parts(kernel)} == ({lanes} if lanes else set())


@pytest.mark.slow
def test_kernels_with_columns_compute_what_the_program_means(tmp_path):
    cases = [case(name, body) for name, body in (VECTORS | ONE_BY_ONE).items()]
    cases += [case(name, body, rows=1) for name, body in list(VECTORS.items())[::3]]
    cases += [case("taps", VECTORS["taps"], columns, 2, type_) for columns, type_ in ((2, "float"), (3, "int"))]
    cases += [case(name, body, rows=1) for name, body in AHEAD.items()]
    cases += [case(name, body, 4, 2) for name, body in LEFT_OUT.items()]
    cases += [case("in_doubles", LEFT_OUT["in_doubles"], 2, 3, "double")]
    cases += [case(name, body, columns) for name, body in BEHIND.items() for columns in (4, 3, 2)]
    cases += [case("of_rows", AHEAD["of_rows"], 2, 3, "double"), case("stored_to", IN_TURN["stored_to"])]
    cases += [case("in_place", VECTORS["in_place"], 2, 3, type_) for type_ in ("double", "short", "long long")]
    cases = [replace(one, _parsed=[]) for one in cases]
    build(cases, tmp_path)
    assert wrong(cases, tmp_path) == {}
    assert wrong(cases, tmp_path, grid_limit=1) == {}
