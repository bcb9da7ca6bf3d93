import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metafork.analysis.analyses import Analyses
from metafork.ir.invariants import check_program
from metafork.ir.program import Version
from metafork.printing.metafork_text import metafork_text
from metafork.strategies.cse import STRATEGIES
from metafork.strategies.granularity import STRATEGY as GRANULARITY
from metafork.strategies.strategy import Applied, NotApplied
from metafork.transform import cse
from tests.metafork.interpreter import UndefinedBehaviourError, program, results
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE
from tests.metafork.random_code import BODIES, nest

CSE1, CSE2 = STRATEGIES


def applied(strategy, text):
    result = strategy.apply(Version(program(text)), Analyses())
    assert isinstance(result, Applied), result
    return result.version.program


def inner_lines(program):
    """Return the thread code, a line each."""
    lines = [line.strip() for line in metafork_text(program).splitlines()]
    first = next(place for place, line in enumerate(lines) if line.startswith("meta_for") and line.endswith("{"))
    return lines[first + 1 : -3]


def test_the_names():
    assert [strategy.name for strategy in STRATEGIES] == ["cse1", "cse2"]
    assert all(strategy.at_leaf and not strategy.on_ir for strategy in STRATEGIES)


def test_the_first_case_of_figure_7():
    after = applied(CSE1, JACOBI)
    assert inner_lines(after)[1:9] == [
        "int p = i * s * B + k * B + j;",
        "int t1 = p + 1;",
        "int p1 = t1;",
        "int t2 = p + 2;",
        "int p2 = t2;",
        "int np = N + p;",
        "int np1 = N + t1;",
        "int np2 = N + t2;",
    ]


def test_the_second_case_of_figure_7_whatever_comes_first():
    version = Version(program(JACOBI))
    first = GRANULARITY.apply(CSE1.apply(version, Analyses()).version, Analyses()).version.program
    second = CSE1.apply(GRANULARITY.apply(version, Analyses()).version, Analyses()).version.program
    assert first == second


def test_level_1_stays_in_its_basic_block():
    after = applied(CSE1, MATADD)
    assert [line for line in inner_lines(after) if "N / 2" in line] == [
        "if (i < N && j < N / 2) {",
        "int t1 = j + N / 2;",
    ]


def test_level_2_follows_the_dominator_tree():
    after = CSE2.apply(CSE1.apply(Version(program(MATADD)), Analyses()).version, Analyses()).version.program
    assert [line for line in inner_lines(after) if "t2" in line] == [
        "int t2 = N / 2;",
        "if (i < N && j < t2) {",
        "int t1 = j + t2;",
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("c[j] = N*s + s*N;", ["int t1 = N * s;", "c[j] = t1 + t1;"]),
        ("c[j] = (s + N) + (N + s) * 2;", ["int t1 = s + N;", "c[j] = t1 + t1 * 2;"]),
        ("int p = j + 1; c[p] = 1; c[j + 1] += 1;", ["int t1 = j + 1;", "int p = t1;", "c[p] = 1;", "c[t1] += 1;"]),
        ("float x = a[j] * 2; c[j] = j % 2; c[i * 2 + j] = j % 2;", None),
        ("c[j] = N - s; c[i] = N - s + j;", ["int t1 = N - s;", "c[j] = t1;", "c[i] = t1 + j;"]),
        ("c[j] = N - s; c[i] = j - s + N;", ["int t1 = N - s;", "c[j] = t1;", "c[i] = j + t1;"]),
    ],
)
def test_sums_and_products_are_found_in_any_order(body, expected):
    after = applied(CSE1, nest(body))
    if expected is not None:
        assert inner_lines(after) == expected
    point = {"N": 5, "s": 3, "B": 2}
    assert results(after, point, 1) == results(program(nest(body)), point, 1)


@pytest.mark.parametrize(
    "body",
    [
        "c[j] = N - s; c[j + 2] = s - N;",
        "int x = j; c[x + 1] = 1; x = i; c[x + 1] = 2;",
        "c[j] = j / N; c[j + 2] = N / j;",
        "float x = a[j] + a[j + 2]; a[j] = x; a[j + 4] = a[j] + a[i];",
        "a[j] = (a[3] + a[4]) + a[5];",
        "if (j < N) c[j] = 1; if (j < N) c[j + 2] = 1;",
        "for (int z = 0; z < N * s; z++) c[z] = N * s;",
    ],
)
def test_what_is_different_is_not_shared(body):
    for strategy in STRATEGIES:
        assert isinstance(strategy.apply(Version(program(nest(body))), Analyses()), NotApplied)


def test_floating_sums_are_shared_only_as_they_stand():
    text = """
    void f(float x, float y, float z, float a[8]) {
      meta_schedule {
        meta_for (int i = 0; i < 2; i++)
          meta_for (int j = 0; j < 2; j++) {
            a[j] = x + y;
            a[j + 2] = x + y + z;
            a[j + 4] = z + x + y;
            a[j + 6] = y + x;
          }
      }
    }
    """
    after = applied(CSE1, text)
    assert inner_lines(after) == [
        "float t1 = x + y;",
        "a[j] = t1;",
        "a[j + 2] = t1 + z;",
        "a[j + 4] = z + x + y;",
        "a[j + 6] = y + x;",
    ]


def test_a_branch_does_not_serve_what_follows_it():
    text = nest("if (j < N) { c[j * s + 1] = 1; } c[j * s + 1] = 2;")
    assert isinstance(CSE2.apply(Version(program(text)), Analyses()), NotApplied)


def test_a_closed_scope_does_not_serve_what_it_dominates():
    text = nest("for (;;) { c[j * s] = 1; break; } c[j * s] = 2;")
    assert isinstance(CSE2.apply(Version(program(text)), Analyses()), NotApplied)


def test_a_reassignment_on_any_path_ends_a_value():
    text = nest("int x = j; c[x + N] = 1; if (i) { x = 3; } c[x + N] = 2;")
    assert isinstance(CSE2.apply(Version(program(text)), Analyses()), NotApplied)
    text = nest("int x = j; c[x + N] = 1; while (x < 5) { c[x + N] = 2; x++; }")
    assert isinstance(CSE2.apply(Version(program(text)), Analyses()), NotApplied)


def test_a_value_from_before_a_loop_serves_in_it():
    text = nest("c[j + N] = 1; for (int z = 0; z < s; z++) { c[j + N] += z; }")
    after = applied(CSE2, text)
    assert "c[t1] += z;" in inner_lines(after)


def test_what_a_guard_protects_is_not_moved_before_it():
    text = nest("if (s > 0 && N / s > 1) { c[0] = N / s; }")
    assert isinstance(CSE2.apply(Version(program(text)), Analyses()), NotApplied)
    text = nest("if (j < 1 && j + N < 7) { c[0] = j + N; }")
    assert isinstance(CSE2.apply(Version(program(text)), Analyses()), NotApplied)
    text = nest("if (s > 0 && N / 3 > 1) { c[0] = N / 3; }")
    assert "int t1 = N / 3;" in inner_lines(applied(CSE2, text))


def test_a_sum_is_regrouped_only_where_no_part_can_overflow():
    # x may be negative, so that x + x + t could overflow on its way.
    text = nest("int x = i - 1; c[0] = (N + s) % 7; c[1] = (x + x + s + N) % 7;")
    assert isinstance(CSE2.apply(Version(program(text)), Analyses()), NotApplied)
    text = nest("c[N] = (N + s) % 7; c[s] = (i + j + s + N) % 7;")
    assert "c[s] = (i + j + t1) % 7;" in inner_lines(applied(CSE1, text))
    text = nest("int x = i - 1; c[0] = (N + s) % 7; c[1] = (N + x + s + x) % 7;")
    assert "c[1] = (t1 + x + x) % 7;" in inner_lines(applied(CSE1, text))


def test_a_line_is_looked_through_as_often_as_something_in_it_is_reused(monkeypatch):
    looked = []
    sites_of = cse.sites_of
    monkeypatch.setattr(cse, "sites_of", lambda stmt: looked.append(stmt) or sites_of(stmt))
    for lines in (10, 80):
        looked.clear()
        body = " ".join(f"c[i * N + j + {k}] = a[i * N + j + {k}] + a[(i + {k}) * s + j];" for k in range(lines))
        result = CSE2.apply(Version(program(nest(body))), Analyses())
        assert isinstance(result, Applied)
        assert len(looked) <= 8 * lines


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_line_that_is_looked_through_again_takes_nothing_from_below(strategy):
    """The last line makes the first one be looked at again, when the one between them holds ``u + 1`` already."""
    body = "c[0] = (j < N - 3 ? j + 1 : 0) + i * s % 7; c[1] = j + 1; c[2] = i * s % 7 + 5;"
    after = applied(strategy, nest(body))
    check_program(after)
    assert "j < N - 3 ? j + 1 : 0" in " ".join(inner_lines(after))


def test_temporaries_clash_with_nothing():
    after = applied(CSE1, nest("int t1 = j; int t2 = i; c[j + 7] = t1; c[j + 7] += t2;"))
    assert "int t3 = j + 7;" in inner_lines(after)


@pytest.mark.parametrize("text", [JACOBI, MATADD, MATMUL, TRANSPOSE])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_second_application_finds_nothing_and_the_text_can_be_read(text, strategy):
    before = program(text)
    result = strategy.apply(Version(before), Analyses())
    after = result.version.program if isinstance(result, Applied) else before
    assert isinstance(strategy.apply(Version(after), Analyses()), NotApplied)
    assert program(metafork_text(after)) == after


NUMBERS = st.sampled_from([0, 1, 2, 3, 7, 11, 1000, 2**30, 2**31 - 1])


@settings(max_examples=40, deadline=None)
@given(BODIES, NUMBERS, NUMBERS)
@pytest.mark.slow
def test_no_value_changes_and_nothing_new_overflows(body, n, s):
    before = program(nest("int x = 3; int y = j; " + body))
    point = {"N": n, "s": s, "B": 1}
    try:
        expected = results(before, point, 2)
    except UndefinedBehaviourError:
        assume(False)
    version = Version(before)
    for strategy in STRATEGIES:
        result = strategy.apply(version, Analyses())
        if isinstance(result, Applied):
            version = result.version
            assert isinstance(strategy.apply(version, Analyses()), NotApplied)
            assert results(version.program, point, 2) == expected
