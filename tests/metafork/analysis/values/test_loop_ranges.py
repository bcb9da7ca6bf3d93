"""What a loop's head says of its variable, against the loop run with C's arithmetic."""

import pytest

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.facts import program_facts
from metafork.analysis.reference_walk import references
from tests.metafork.programs import program

M, T, J = (Polynomial.symbol(name) for name in "mTj")


def loop_range(head, before="", kind="int", body=""):
    """Return the range of a serial loop, the expected variable is k."""
    text = f"""
    void loops({kind} m, {kind} T, int N, const float a[N], float b[N]) {{
      meta_schedule {{
        meta_for (int i = 0; i < N / T; i++)
          meta_for (int j = 0; j < T; j++) {{
            float x = 0;
            {before}
            for ({head}) {{ x += a[k]; {body} }}
            b[i * T + j] = x;
          }}
      }}
    }}"""
    schedule = program(text)
    found = references(schedule, program_facts(schedule))
    (read,) = (reference for reference in found if reference.array == "a")
    ranges = [loop for loop in read.loops if loop.var == "k"]
    return ranges[0] if ranges else None


HEADS = [
    "int k = 0; k < m; k++",
    "int k = 3; k < m; k += T",
    "int k = j; k < m; k += T",
    "int k = m; k > T; k -= 2",
    "int k = m - 1; k >= 0; k = k - T",
    "int k = 0; k < T && k < m; k++",
    "int k = 0; m > k + 2; k += 3",
    "int k = 0; k * T < m; k++",
    "int k = 0; k + T <= m; k += T",
    "int k = 0; k <= (m < T ? m : T); k += 2",
    "int k = j > 1 ? j - 1 : 0; k < m; k++",
    "int k = (m > T ? T : m); k > 0; k--",
    "int k = 0; k != m; k++",
    "int k = m; 0 != k; --k",
    "int k = 0; k < 9; k += 4",
]


@pytest.mark.parametrize("head", HEADS)
def test_a_range_has_the_values_that_the_loop_takes(head):
    found = loop_range(head)
    assert found is not None
    assert found.dense
    for m in range(6):
        for t in range(1, 4):
            for j in range(t):
                point = {"m": m, "T": t, "j": j, "N": 8}
                assert values(found, point) == taken(head, point), point


def values(found, point):
    """Return the values of the loop variable that a range allows."""
    result = []
    for number in range(12):
        at = {**point, "k": number}
        known = [constraint for constraint in found.constraints() if constraint.symbols <= at.keys()]
        if all(constraint.holds(at) for constraint in known):  # a quotient says nothing that no other one says
            result.append(int(found.value.evaluate(at)))
    return result


def taken(head, point):
    """Run a loop."""
    first, condition, step = (part.strip() for part in head.removeprefix("int k =").split(";"))

    def python(text):
        text = text.replace("&&", " and ")
        if "?" not in text:
            return text
        if "(" in text:
            before, choice = text.split("(")
            return f"{before}({python(choice.rstrip(')'))})"
        test, rest = text.split("?")
        then, otherwise = rest.split(":")
        return f"{then} if {test} else {otherwise}"

    step = {"k++": "k += 1", "k--": "k -= 1", "--k": "k -= 1"}.get(step, step)
    at = {**point, "k": eval(python(first), dict(point))}
    result = []
    while eval(python(condition), dict(at)):
        result.append(at["k"])
        exec(step, {}, at)
    return result


def test_the_least_trip_count_is_taken_and_the_other_bounds_hold_besides():
    found = loop_range("int k = j; k < j + T && k < m; k++")
    assert found.trips == T
    assert len(found.inside) == 1


def test_a_bound_in_a_local_or_corrected_by_a_condition():
    for before in (
        "int end = j + T < m ? j + T : m;",
        "int end = j + T; if (end > m) end = m;",
        "int end = m; if (j + T <= m) end = j + T;",
        "int end; if (j + T < m) end = j + T; else end = m;",
    ):
        assert loop_range("int k = j; k < end; k++", before).trips == T
    forgotten = "int end = j + T < m ? j + T : m; if (a[0] > 0) end = m + 5;"
    found = loop_range("int k = j; k < end; k++", forgotten.replace("a[0]", "b[0]"))
    assert found.trips is None


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("int k = 0; k < m; k *= 2", ""),
        ("int k = 0; k < m; k += m - T", ""),
        ("int k = 0; k > m; k += 1", ""),
        ("int k = 0; k != m && k < 100; k++", "if (x > 3) break;"),
        ("unsigned char k = 0; k < 250; k += 100", ""),
        ("unsigned k = m; k >= 0; k--", "if (x > 3) break;"),
    ],
)
def test_what_is_no_count_or_may_wrap_has_no_exact_range(head, body):
    found = loop_range(head, body=body)
    assert found is None or not found.dense


def test_a_bound_that_the_body_changes_bounds_nothing():
    assert loop_range("int k = 0; k < end; k++", "int end = 2;", body="if (k < 3) end = end + 1;").trips is None


def test_a_condition_on_memory_ends_a_loop_early():
    found = loop_range("int k = 0; k < m && b[k] > 0; k++")
    assert (found.trips, found.dense) == (M, False)


@pytest.mark.parametrize(
    "head",
    [
        "int k = 0; k < m && k * k < T; k++",
        "int k = 0; k < m && k * j < T; k++",
        "int k = (m > T ? T : m); k > 0; k -= 2",
        "int k = (m > T ? m : T); k < 8; k += 3",
    ],
)
def test_what_no_range_says_exactly_holds_of_the_values_that_the_loop_takes(head):
    found = loop_range(head)
    assert not found.dense
    for m in range(6):
        for t in range(1, 4):
            for j in range(t):
                point = {"m": m, "T": t, "j": j, "N": 8}
                assert set(taken(head, point)) <= set(values(found, point)), point
