import pytest

from metafork.diagnostics import DiagnosticsError, Severity
from metafork.evaluation import NoValueError, integer_value
from metafork.frontend import parse
from metafork.ir import IntConst, Var, binary
from metafork.race_diagnostics import check_races
from metafork.races import RaceKind, race_report
from metafork.source import Source
from tests.metafork import programs


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


def test_a_certain_race_is_an_error_at_its_access():
    unit = unit_of("a[i] = 1;")
    with pytest.raises(DiagnosticsError) as error:
        check_races(unit)
    (one,) = error.value.diagnostics
    assert (one.code, one.span.line, one.span.column) == ("MF0402", 8, 9)
    assert "i = 0, u = 0" in one.message
    assert "i = 0, u = 1" in one.message


def test_accesses_that_may_not_happen_refute_nothing():
    report = report_of("if (a[u] > 0) a[0] = 1;")
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


def test_expressions_have_the_values_of_c():
    x = Var("x")
    assert integer_value(binary("/", x, IntConst(2)), {"x": -7}) == -3
    assert integer_value(binary("%", x, IntConst(4)), {"x": -7}) == -3
    with pytest.raises(NoValueError):
        integer_value(binary("/", x, IntConst(0)), {"x": 1})
    with pytest.raises(NoValueError):
        integer_value(binary("*", x, x), {"x": 2**30})
