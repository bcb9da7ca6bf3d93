import pytest

from metafork.analysis.races.diagnostics import check_races
from metafork.analysis.races.proof import RaceKind
from metafork.analysis.races.races import race_report
from metafork.comprehensive.reading import parse as read
from metafork.frontend import parse
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.messages.diagnostics import DiagnosticsError, Severity
from metafork.ir.messages.source import Source
from metafork.ir.program import IntConst, Var, binary
from tests.metafork import programs
from tests.sampling import sampled


def unit_of(body, arrays="float a[n]", parameters="int n, int B", between=""):
    text = (
        f"void f({parameters}, {arrays})\n{{\n  int d = n / B;\n  meta_schedule {{\n"
        f"    meta_for (int i = 0; i < d; i++) {{\n      {between}\n"
        f"      meta_for (int u = 0; u < B; u++) {{\n        {body}\n      }}\n    }}\n  }}\n}}\n"
    )
    return parse(Source("f.mf", text))


def report_of(*args, **rest):
    return race_report(unit_of(*args, **rest).schedules[0].program)


def touched(reference, iteration, parameters):
    values = {**parameters, **iteration}
    values |= {loop.var: values[loop.var] - int(loop.low.evaluate(values)) for loop in reference.loops}
    return tuple(int(index.evaluate(values)) for index in reference.indices)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("a[i] = 1;", RaceKind.THREADS),
        ("a[u] = 1;", RaceKind.GRID),
        ("int p = i * B + u; if (p + 1 < n) a[p] = a[p + 1];", RaceKind.GRID),
        ("int p = i * B + u; if (p + 1 < n) a[p] = a[p + 1];", RaceKind.THREADS),
        ("for (int k = 0; k < B; k++) a[i * B + k] = u;", RaceKind.THREADS),
    ],
)
def test_a_race_comes_with_two_iterations_that_really_meet(body, kind):
    report = report_of(body)
    races = [race for race in report.races if race.kind is kind]
    assert races
    for race in races:
        assert race.first.writes or race.second.writes
        assert race.first_iteration != race.second_iteration
        assert touched(race.first, race.first_iteration, race.parameters) == race.element
        assert touched(race.second, race.second_iteration, race.parameters) == race.element


@pytest.mark.parametrize(
    ("body", "arrays"),
    [
        ("a[i * B + u] += 1;", "float a[n]"),
        ("a[2 * (i * B + u)] = a[2 * (i * B + u) + 1];", "float a[2 * n]"),
        ("for (int k = 0; k < n; k++) a[k][i * B + u] += a[k][i * B + u];", "float a[n][n]"),
        ("for (int k = 0; k < n; k++) a[(i * B + u) * n + k] = 0;", "float a[n * n]"),
        ("int p = i * B + u; b[p] = a[p] + a[(p + 1) % 2];", "float a[n], float b[n]"),
    ],
)
def test_independent_iterations_are_proved_so(body, arrays):
    report = report_of(body, arrays=arrays)
    assert report.races == ()
    assert report.unproved == ()


def test_data_dependent_indices_are_left_open_with_a_warning():
    unit = unit_of("a[k[i * B + u]] = 1;", arrays="float a[n], int k[n]")
    (warning,) = {one.code: one for one in check_races(unit)}.values()
    assert (warning.code, warning.severity, warning.span.line, warning.span.column) == (
        "MF0403",
        Severity.WARNING,
        8,
        9,
    )
    with pytest.raises(DiagnosticsError) as error:
        check_races(unit, strict=True)
    assert {one.code for one in error.value.diagnostics} == {"MF0403"}


@pytest.mark.parametrize(
    ("body", "arrays", "reason"),
    [
        (
            "a[k[i * B + u]] = 1;",
            "float a[n], int k[n]",
            "the index `k[i * B + u]` comes from memory. Two threads may find the same number there.",
        ),
        (
            "int p = i * B + u; a[p] = a[k[p]];",
            "float a[n], int k[n]",
            "the index `k[p]` comes from memory. Two threads may find the same number there.",
        ),
        (
            "int p = i * B + u; a[k[p]] = a[k[p] + 1];",
            "float a[n], int k[n]",
            "the indices `k[p] + 1` and `k[p]` come from memory. Two threads may find the same number there.",
        ),
        (
            "int p = i * B + u; a[u][k[p]] = 1;",
            "float a[n][n], int k[n]",
            "it is not proved that different iterations touch different elements of `a`. The index `k[p]` comes from "
            "memory. Two threads may find the same number there.",
        ),
        (
            "if (k[0]) a[u] = 1;",
            "float a[n], int k[n]",
            "it is not proved that different iterations touch different elements of `a`.",
        ),
    ],
)
def test_a_warning_names_the_indices_that_are_not_known(body, arrays, reason):
    warnings = check_races(unit_of(body, arrays=arrays))
    assert {warning.reason for warning in warnings} == {reason}


TWO_PHASES = """
void f(int n, int B, float a[n], int k_1[n]) {
  int d = n / B;
  meta_schedule {
    meta_for (int i = 0; i < d; i++) {
      float t[B];
      meta_for (int u = 0; u < B; u++) t[u] = a[i * B + u];
      meta_for (int u = 0; u < B; u++) WHAT = t[u];
    }
  }
}
"""


def test_variables_have_the_names_of_the_text():
    with pytest.raises(DiagnosticsError) as error:
        check_races(parse(Source("f.mf", TWO_PHASES.replace("WHAT", "a[i * B]"))))
    (one,) = error.value.diagnostics
    assert "i = 0, u = 0 and i = 0, u = 1 both write it" in one.reason
    warnings = check_races(parse(Source("f.mf", TWO_PHASES.replace("WHAT", "a[k_1[i * B + u]]"))))
    assert {warning.reason for warning in warnings} == {
        "the index `k_1[i * B + u]` comes from memory. Two threads may find the same number there."
    }


def test_indices_are_unknown_on_one_axis_of_each_access():
    unit = unit_of("int p = i * B + u; a[k[p]][p] = a[p][k[p]];", arrays="float a[n][n], int k[n]")
    assert {warning.reason for warning in check_races(unit)} >= {
        "the index `k[p]` comes from memory. Two threads may find the same number there."
    }


def test_a_certain_race_is_an_error_at_its_access():
    unit = unit_of("a[i] = 1;")
    with pytest.raises(DiagnosticsError) as error:
        check_races(unit)
    (one,) = error.value.diagnostics
    assert (one.code, one.span.line, one.span.column) == ("MF0402", 8, 9)
    assert one.message == "two threads write `a[0]` at the same time: a race"
    assert "i = 0, u = 0 and i = 0, u = 1 both write it" in one.reason


def test_accesses_that_may_not_happen_refute_nothing():
    report = report_of("if (a[u] > 0) a[0] = 1;")
    assert report.races == ()
    assert report.unproved


def test_values_at_which_an_access_is_outside_of_its_array_refute_nothing():
    # With m = 0 all rows are one, but then no row has a third element.
    apart = report_of("a[(i * B + u) * m + 2] += a[n * m];", "float a[n * m + 1]", "int n, int m, int B")
    assert all(race.parameters["m"] > 0 for race in apart.races)
    inside = report_of("a[(i * B + u) * m] += 1;", "float a[n * m + 1]", "int n, int m, int B")
    assert {race.parameters["m"] for race in inside.races} == {0}


def test_a_path_that_may_not_be_taken_refutes_nothing():
    report = report_of("if (r > 0.5f) a[0] = 1;", parameters="int n, int B, float r")
    assert report.races == ()
    assert report.unproved


def test_phases_are_separated_by_barriers():
    text = """
    void f(int n, int B, float a[n], float b[n]) {
      int d = n / B;
      meta_schedule {
        meta_for (int i = 0; i < d; i++) {
          float t[B];
          meta_for (int u = 0; u < B; u++) t[u] = a[i * B + u];
          meta_for (int w = 0; w < B; w++) b[i * B + w] = t[B - 1 - w];
        }
      }
    }
    """
    report = race_report(parse(Source("f.mf", text)).schedules[0].program)
    assert report.races == ()
    assert report.unproved == ()


@pytest.mark.parametrize("text", [programs.JACOBI, programs.MATADD, programs.MATMUL, programs.TRANSPOSE])
def test_the_papers_programs_are_proved_free_of_races(text):
    report = race_report(parse(Source("f.mf", text)).schedules[0].program)
    assert report.races == ()
    assert report.unproved == ()


def pivoted(guard, body="d[i][j] = min_of;"):
    """Return Floyd-Warshall with a guard around the update."""
    text = f"""
    void fw(int n, int B, int m, float d[n][n]) {{
      int q = n / B;
      for (int k = 0; k < n; k++)
        meta_schedule {{
          meta_for (int bi = 0; bi < q; bi++)
            meta_for (int bj = 0; bj < q; bj++)
              meta_for (int u = 0; u < B; u++)
                meta_for (int v = 0; v < B; v++) {{
                  int i = bi * B + u, j = bj * B + v;
                  {guard} {{
                    float min_of = d[i][k] + d[k][j];
                    {body}
                  }}
                }}
        }}
    }}
    """
    return parse(Source("fw.mf", text))


@pytest.mark.parametrize(
    ("guard", "body"),
    [
        ("if (i != k && j != k)", "if (min_of < d[i][j]) d[i][j] = min_of;"),
        ("if (i != k && j != k)", "d[i][j] = min_of;"),
        ("if (i != k) if (k != j)", "d[i][j] = min_of;"),
        ("if (!(i == k) && j != k && i != j)", "d[i][j] = min_of;"),
        ("if (i == k || j == k) ; else", "d[i][j] = min_of;"),
        ("if ((i < k || k < i) && (j < k || k + 1 <= j))", "d[i][j] = min_of;"),
        ("if (i != m && i != k && j != k && j != m)", "d[i][j] = min_of;"),
    ],
)
def test_floyd_warshall_needs_no_warning_where_guards_keep_the_pivots_unwritten(guard, body):
    report = race_report(pivoted(guard, body).schedules[0].program)
    assert report.races == ()
    assert report.unproved == ()


@pytest.mark.parametrize(
    "guard",
    [
        "if (i != k)",
        "if (i != k || j != k)",
        "if (i != k && i != j)",
        "if (i != k && j != k + 1)",
        "if (i == k || j != k)",
        "if (!(i != k && j != k))",
        "if (i != m && j != m)",
    ],
)
def test_a_wrong_guard_around_the_pivots_is_found_to_race(guard):
    report = race_report(pivoted(guard).schedules[0].program)
    assert {race.kind for race in report.races} == {RaceKind.GRID, RaceKind.THREADS}
    for race in report.races:
        assert touched(race.first, race.first_iteration, race.parameters) == race.element
        assert touched(race.second, race.second_iteration, race.parameters) == race.element
        assert all(
            guard.meaning.holds({**race.parameters, **iteration})
            for access, iteration in ((race.first, race.first_iteration), (race.second, race.second_iteration))
            for guard in access.guards
        )


@pytest.mark.parametrize("guard", ["if (i != k && d[i][j] != k)", "if (i != k || d[0][0] > 0)"])
def test_a_wrong_guard_that_reads_memory_still_warns(guard):
    unit = pivoted(guard, "if (min_of < d[i][j]) d[i][j] = min_of;")
    assert {warning.code for warning in check_races(unit)} == {"MF0403"}


@pytest.mark.slow
def test_many_guards_end_in_a_warning_and_not_in_many_cases():
    guard = "if (" + " && ".join(f"i != {number} * j + m" for number in range(2, 14)) + ")"
    report = race_report(pivoted(guard, "if (min_of < d[i][j]) d[i][j] = min_of;").schedules[0].program)
    assert {(pair.kind, pair.compared) for pair in report.unproved} == {(RaceKind.GRID, True), (RaceKind.THREADS, True)}


@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        ("int p = i * B + u; if (p != k) a[p] += a[k];", "int n, int B, int k"),
        (
            "int p = i * B + u; a[p] = p != k ? a[p] + 1 : 0; if (p != k && p != m) a[p] *= 2;",
            "int n, int B, int k, int m",
        ),
        ("int p = i * B + u; if (p != k && p != m) a[p] = a[k] - a[m];", "int n, int B, int k, int m"),
        ("int p = i * B + u; if (p != n - 1) { if (p < n - 1) a[p] = a[n - 1]; }", "int n, int B"),
        ("if (u == B / 2) a[i] = u;", "int n, int B"),
    ],
)
def test_inequalities_on_one_axis_are_used(body, parameters):
    report = report_of(body, parameters=parameters)
    assert report.races == ()
    assert report.unproved == ()


@pytest.mark.parametrize(
    "body",
    [
        "int p = i * B + u; if (p != k) a[p] += a[k + 1];",
        "int p = i * B + u; if (p != k || p != m) a[p] += a[k];",
        "int p = i * B + u; if (p >= k) a[p] += a[m];",
        "if (u != B / 2) a[i] = u;",
    ],
)
def test_inequalities_that_exclude_nothing_do_not_hide_a_race(body):
    report = report_of(body, parameters="int n, int B, int k, int m")
    assert report.races or report.unproved


BUTTERFLY = """
void butterfly(int n, int h, int B, float x[2 * n * h]) {
  int d = h / B;
  meta_schedule {
    meta_for (int g = 0; g < n; g++)
      meta_for (int t = 0; t < d; t++)
        meta_for (int o = 0; o < 1; o++)
          meta_for (int u = 0; u < B; u++) {
            int p = 2 * h * g + t * B + u;
            float left = x[p], right = x[p + FAR];
            x[p] = left + right;
            x[p + FAR] = left - right;
          }
  }
}
"""


def test_a_linear_index_is_also_split_by_the_rows_of_the_grid():
    report = race_report(parse(Source("f.mf", BUTTERFLY.replace("FAR", "h"))).schedules[0].program)
    assert report.races == ()
    assert report.unproved == ()


@pytest.mark.parametrize("far", ["h - 1", "2 * h", "d", "4 * h"])
def test_rows_that_meet_are_not_proved_apart(far):
    report = race_report(parse(Source("f.mf", BUTTERFLY.replace("FAR", far))).schedules[0].program)
    kinds = {race.kind for race in report.races} | {pair.kind for pair in report.unproved}
    assert RaceKind.GRID in kinds


def test_blocks_that_take_different_branches_are_compared_with_each_other():
    # Block 0 writes elements of block 1: each branch on its own is free of races.
    report = report_of("if (i % 2) a[i * B + u] = 1; else a[(i + 1) * B + u] = 2;", arrays="float a[2 * n]")
    assert [(pair.kind, pair.compared) for pair in report.unproved] == [(RaceKind.GRID, True)]


def test_a_race_between_branches_of_different_blocks_is_refuted():
    report = report_of("if (i == 0) a[B + u] = 1; else a[i * B + u] = 2;", arrays="float a[2 * n]")
    (race,) = report.races
    assert race.kind is RaceKind.GRID
    assert {race.first_iteration["i"], race.second_iteration["i"]} == {0, 1}


def test_threads_of_one_block_take_one_branch():
    report = report_of("if (i % 2) a[i * B + u] = 1; else a[i * B + B - 1 - u] = 2;", arrays="float a[2 * n]")
    assert [pair.kind for pair in report.unproved] == []


def test_expressions_have_the_values_of_c():
    x = Var("x")
    assert integer_value(binary("/", x, IntConst(2)), {"x": -7}) == -3
    assert integer_value(binary("%", x, IntConst(4)), {"x": -7}) == -3
    with pytest.raises(NoValueError):
        integer_value(binary("/", x, IntConst(0)), {"x": 1})
    with pytest.raises(NoValueError):
        integer_value(binary("*", x, x), {"x": 2**30})


@pytest.mark.parametrize(
    ("index", "parameters", "said"),
    [
        ("p * ld + r", "int n, int B, int ld, int m", "assert(ld >= m);"),
        ("p * ld", "int n, int B, int ld, int m", "assert(ld >= 1);"),
        ("i * B + r", "int n, int B, int ld, int m", ""),
    ],
)
def test_the_way_out_names_a_condition_that_ends_the_race(index, parameters, said):
    body = f"int p = i * B + u; for (int r = 0; r < m; r++) a[{index}] = r;"
    with pytest.raises(DiagnosticsError) as error:
        check_races(unit_of(body, "float a[100000]", parameters))
    said_of = {one.code: one.way_out for one in error.value.diagnostics}
    if said:
        assert f"say so in front of the schedule: `{said}`" in said_of["MF0401"]
    else:
        assert "assert" not in "".join(said_of.values())


def test_no_condition_is_named_that_cannot_hold():
    text = (
        "void f(int n, int B, float a[n]) { for (int k = 0; k < n; k++) { meta_schedule { "
        "meta_for (int i = 0; i < 1; i++) meta_for (int u = 0; u < B; u++) a[k * u] = 1; } } }"
    )
    with pytest.raises(DiagnosticsError) as error:
        check_races(parse(Source("f.mf", text)))
    assert "k >= n" not in error.value.diagnostics[0].way_out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "void f(int q, int n, int m, int B, float a[q][n][m]) { meta_schedule meta_block(B, B) { "
            "meta_for (int k = 0; k < q; k++) meta_for (int i = 1; i < n; i++) meta_for (int j = m - 1; j > 0; j--) "
            "a[k][i][j] = a[k][i - 1][j - 1] + 1; } }",
            ("k = 0, i = 2, j = 27 reads", "k = 0, i = 1, j = 26 writes"),
        ),
        (
            "void f(int n, int B, float a[n], const int b[n]) { meta_schedule { "
            "meta_for (int i = 0; i < n; i += B) meta_for (int j = i; j < i + B; j++) a[0] = b[j]; } }",
            ("i = 0, j = 0", "i = 1, j = 1"),
        ),
        (
            "int f(int n, int B, float a[n], const int b[n]) { int s = 0; meta_schedule meta_block(B) { "
            "meta_reduction(+: s) meta_for (int i = 0; i < n; i++) { s += b[i]; a[0] = i; } } return s; }",
            ("i = 0", "i = 1"),
        ),
    ],
)
def test_iterations_of_loops_over_elements_are_told_by_their_variables(text, told):
    with pytest.raises(DiagnosticsError) as error:
        check_races(parse(Source("f.mf", text)))
    reason = error.value.diagnostics[0].reason
    assert all(iteration in reason for iteration in told)
    assert not any(made in reason for made in ("_block", "_thread", "_number"))


FREE_OF_RACES = {
    "an image upside down": "void f(int n, int m, int B, int *c, const int *a) { meta_schedule meta_block(B, B) "
    "meta_for (int y = 0; y < n; y++) meta_for (int x = 0; x < m; x++) c[(n - 1 - y) * m + x] = a[y * m + x]; }",
    "an image in the mirror, in place": "void f(int n, int m, int B, int c[n * m]) { meta_schedule meta_block(B, B) "
    "meta_for (int y = 0; y < n; y++) meta_for (int x = 0; x < m / 2; x++) { "
    "int t = c[y * m + x]; c[y * m + x] = c[y * m + m - 1 - x]; c[y * m + m - 1 - x] = t; } }",
    "an image turned round": "void f(int n, int m, int B, int c[n * m]) { meta_schedule meta_block(B, B) "
    "meta_for (int y = 0; y < n; y++) meta_for (int x = 0; x < m; x++) c[x * n + (n - 1 - y)] = x; }",
    "structures in a flat image": "struct p { char r, g, b; }; void f(int n, int m, int B, struct p c[n * m]) { "
    "meta_schedule meta_block(B, B) meta_for (int y = 0; y < n; y++) meta_for (int x = 0; x < m; x++) "
    "c[y * m + x].g = x; }",
    "rows in a flat image": "void f(int n, int m, int B, int c[n * m][3]) { meta_schedule meta_block(B, B) "
    "meta_for (int y = 0; y < n; y++) meta_for (int x = 0; x < m; x++) c[y * m + x][0] = x; }",
    "planes of half the size": "void f(int p, int h, int w, int B, int *c) { int oh = h / 2, ow = w / 2; "
    "meta_schedule meta_block(B, B) meta_for (int k = 0; k < p; k++) meta_for (int y = 0; y < oh; y++) "
    "meta_for (int x = 0; x < ow; x++) c[(k * oh + y) * ow + x] = x; }",
}


@pytest.mark.parametrize("text", sampled(FREE_OF_RACES, FREE_OF_RACES.keys() - {"an image in the mirror, in place"}))
def test_no_warning_of(text):
    assert check_races(read(Source("f.mf", text)), strict=True) == ()


RACING_FLAT = {
    "rows that overlap": ("c[(n - 1 - y) * m + x]", "c[(n - 1 - y) * m + x + 1]"),
    "a mirror of another width": ("c[y * m + m - 1 - x]", "c[y * m + n - x]"),
    "structures in rows that are too short": ("c[y * m + x].g", "c[y * m + 2 * x].g"),
}


@pytest.mark.parametrize("name", RACING_FLAT)
def test_flat_indices_that_meet_are_not_proved_apart(name):
    head = "struct p { int r, g; }; void f(int n, int m, int B, TYPE c[n * m + m + n]) { "
    loops = "meta_schedule meta_block(B, B) meta_for (int y = 0; y < n; y++) meta_for (int x = 0; x < m; x++) "
    fine, meeting = (f"{head}{loops}{one} = x; }}" for one in RACING_FLAT[name])
    type_ = "struct p" if ".g" in fine else "int"
    assert check_races(read(Source("f.mf", fine.replace("TYPE", type_))), strict=True) == ()
    with pytest.raises(DiagnosticsError):
        check_races(read(Source("f.mf", meeting.replace("TYPE", type_))), strict=True)


COMPUTED = {
    "a table in two halves": "void f(int n, int k, int B, int a[2 * n]) { "
    "int from = (k & 1) * n, to = ((k + 1) & 1) * n; LOOP }",
    "halves that change places": "void f(int n, int k, int B, int a[2 * n]) { int from = 0, to = n; "
    "for (int t = 0; t < k; t++) { LOOP int h = from; from = to; to = h; } }",
    "a stride of the host": "int get(void); void f(int n, int B, int a[n * n]) { int from = 0, to = get(); LOOP }",
}


@pytest.mark.parametrize("name", COMPUTED)
def test_a_race_is_certain_only_where_its_values_are_reached(name):
    loop = "meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) a[to + i] = a[from + i]; }"
    warnings = check_races(parse(Source("f.mf", COMPUTED[name].replace("LOOP", loop))))
    assert {one.code for one in warnings} == {"MF0403"}


def test_a_race_whatever_the_host_computes_is_certain():
    text = "int get(void); void f(int n, int B, int a[n]) { int k = get(), to = n & 3; LOOP }"
    for store in ("a[0] = to;", "a[n - 1] = k;"):
        loop = f"meta_schedule meta_block(B) {{ meta_for (int i = 0; i < n; i++) {store} }}"
        with pytest.raises(DiagnosticsError, match="MF0401"):
            check_races(parse(Source("f.mf", text.replace("LOOP", loop))))


def test_a_race_on_a_path_that_no_value_leads_to_is_none():
    text = (
        "void f(int n, int k, int B, int a[n]) { int to = (k & 1) * n; meta_schedule meta_block(B) { "
        "meta_for (int i = 0; i < n; i++) { if (to > n) a[0] = i; else a[i] = to; } } }"
    )
    assert {one.code for one in check_races(parse(Source("f.mf", text)))} <= {"MF0403"}
