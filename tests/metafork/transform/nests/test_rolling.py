import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from metafork.analysis.facts import program_facts
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Declare, Var
from metafork.printing.expressions import expression
from metafork.printing.statements import statements
from metafork.transform.nests.rolling import definition_of, rolled_bodies, shift_between
from tests.metafork.interpreter import program, results


def thread_code(body):
    return program(f"""
    void f(int N, int s, int B, float a[9 * N + 99], float b[9 * N + 99]) {{
      int d = N / B;
      meta_schedule {{
        meta_for (int i = 0; i < d; i++)
          meta_for (int j = 0; j < B; j++) {{ {body} }}
      }}
    }}
    """)


def rolled(body):
    """Return the program before, and those with its thread code rolled in each possible way."""
    before = thread_code(body)
    (phase,) = before.body
    bodies = rolled_bodies(phase.body, "k", program_facts(before), {})
    return before, [replace(before, body=(replace(phase, body=new),)) for new in bodies]


def texts(program):
    return [line.strip() for line in statements(program.body[0].body, 0)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "a[j] = b[j]; a[j + N/2] = b[j + N/2];",
            ["for (int k = 0; k < 2; k++) {", "a[j + k * (N / 2)] = b[j + k * (N / 2)];", "}"],
        ),
        (
            "a[j] += 1; a[j + s] += 1; a[j + 2*s] += 1; a[j + 3*s] += 1;",
            ["for (int k = 0; k < 4; k++) {", "a[j + k * s] += 1;", "}"],
        ),
        ("a[0] = 1; a[2] = 1; a[4] = 1;", ["for (int k = 0; k < 3; k++) {", "a[k * 2] = 1;", "}"]),
        ("a[5] = 1; a[4] = 1;", ["for (int k = 0; k < 2; k++) {", "a[5 - k] = 1;", "}"]),
        (
            "float x = b[j]; a[j] = x * x; float y = b[j + N]; a[j + N] = y * y;",
            ["for (int k = 0; k < 2; k++) {", "float x = b[j + k * N];", "a[j + k * N] = x * x;", "}"],
        ),
        (
            "int p = j + 1; a[p] = 2; int q = j + 3; a[q] = 2;",
            ["for (int k = 0; k < 2; k++) {", "int p = j + 1 + k * 2;", "a[p] = 2;", "}"],
        ),
        (
            "a[j] = 1; int t1 = j + N; a[t1] = 1;",
            ["for (int k = 0; k < 2; k++) {", "a[j + k * N] = 1;", "}"],
        ),
        (
            "if (b[j] > 0) { a[j] = 1; } else { a[j] = 2; } if (b[j + N] > 0) { a[j + N] = 1; } else { a[j + N] = 2; }",
            [
                "for (int k = 0; k < 2; k++) {",
                "if (b[j + k * N] > 0) {",
                "a[j + k * N] = 1;",
                "} else {",
                "a[j + k * N] = 2;",
                "}",
                "}",
            ],
        ),
        (
            "for (int z = 0; z < s; z++) a[j + z] += 1; for (int y = 0; y < s; y++) a[j + y + N] += 1;",
            ["for (int k = 0; k < 2; k++) {", "for (int z = 0; z < s; z++) {", "a[j + z + k * N] += 1;", "}", "}"],
        ),
        (
            "float x = b[i]; a[j] = b[j] + x; a[j + N] = b[j + s] + x;",
            ["float x = b[i];", "for (int k = 0; k < 2; k++) {", "a[j + k * N] = b[j + k * s] + x;", "}"],
        ),
        ("a[j] = 1; a[j] = 1;", ["for (int k = 0; k < 2; k++) {", "a[j] = 1;", "}"]),
    ],
)
def test_repetitions_become_a_loop(body, expected):
    before, after = rolled(body)
    assert texts(after[0]) == expected
    for new in after:
        for point in ({"N": 12, "s": 3, "B": 3}, {"N": 7, "s": 1, "B": 2}):
            assert results(new, point, 5) == results(before, point, 5)


@pytest.mark.parametrize(
    "body",
    [
        "a[j] = b[j]; a[j + 1] = b[j + 1]; a[j + 3] = b[j + 3];",
        "a[j] = b[j]; a[j + N] = b[j + N] + 1;",
        "a[j] = b[j]; a[j + N] += b[j + N];",
        "a[j] = b[j]; b[j + N] = a[j + N];",
        "a[j] = 1; a[j + N] = 2;",
        "a[j] = j; a[j + N] = j + N;",
        "int p = j - 1; a[p + 1] = 2; int q = j + 3; a[q + 1] = 2 + b[0];",
        "a[j] = 1;",
    ],
)
def test_what_differs_otherwise_is_no_repetition(body):
    _, after = rolled(body)
    assert after == []


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("j", "j + N / 2", (False, "N / 2")),
        ("j + 2 * N", "j + N", (True, "N")),
        ("p + 1", "p + 3", (False, "2")),
        ("3 * j", "5 * j + 4", (False, "2 * j + 4")),
        ("j", "N", None),
        ("j + 1", "1 + j", None),
    ],
)
def test_shifts_are_read_off_the_terms(first, second, expected):
    before = thread_code(f"int p = i; a[{first}] = 1; a[{second}] = 1;")
    one, two = (stmt.target.indices[0] for stmt in before.body[0].body[-2:])
    shift = shift_between(one, two)
    assert (shift and (shift[0], expression(shift[1]))) == expected


PIECES = ["a[j{0}] = b[j{0}];", "a[j{0}] += b[{0} + 1];", "float x{1} = b[i{0}]; a[j{0}] = x{1} + a[i];"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=2),
    st.sampled_from([" + {r}*N", " + {r}*s", " + {r}*2", " + 6 - {r}*2"]),
    st.integers(2, 4),
    st.integers(3, 9),
)
def test_rolling_keeps_the_order_of_the_statements(pieces, shift, repetitions, n):
    parts = []
    for r in range(repetitions):
        parts += [piece.format(shift.format(r=r), f"{r}_{place}") for place, piece in enumerate(pieces)]
    before, after = rolled(" ".join(parts))
    point = {"N": n, "s": 2, "B": 1}
    for new in after:
        assert results(new, point, n) == results(before, point, n)


def test_floating_scalars_are_no_definitions():
    """They stay where they stand: only integers are moved before the groups, and put into shifts."""
    _, after = rolled("a[j] = 1; float t = 2.0f * s; a[j + N] = 1;")
    assert after == []
    _, [loop] = rolled("a[j] = 1; int t = 2 * s; a[j + N] = 1;")
    assert any("for (int k = 0; k < 2" in line for line in texts(loop))
    for name, type_ in (("t", ScalarType.FLOAT), ("n", ScalarType.INT)):
        declared = Declare(name, type_, Var("s", type_))
        assert (definition_of(declared) is None) == type_.floating
