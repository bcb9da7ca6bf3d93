"""Bare fragments as the paper prints them: declarations, then the schedule, no function."""

from pathlib import Path

import pytest

from metafork.frontend import parse, read_source
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source
from metafork.ir.program import binary
from tests.metafork.frontend.marked import assert_refused, diagnostics_of

DATA = Path(__file__).parents[1] / "data"
EXAMPLES = Path(__file__).parents[4] / "examples"


def printed(name):
    return (DATA / f"{name}.mf").read_text(encoding="utf-8")


def fragment(text, name="frag.mf"):
    return parse(Source(name, text))


def without_names(program):
    """What two spellings of one program share."""
    return (
        [(one.name, one.kind, one.of_serial_loop) for one in program.parameters],
        program.derived,
        program.assumptions,
        [(one.name, one.element, one.extents) for one in program.arrays],
        program.grid,
        program.body,
        program.mapping,
    )


def test_figure_7_as_printed():
    unit = parse(read_source(DATA / "figure7.mf"))
    (function,) = unit.functions
    text = unit.source.text
    assert function.fragment
    assert (function.name, function.returns) == ("figure7", "void")
    assert [one.declaration for one in function.parameters] == ["int T", "int N", "int s", "int B", "int a[2*N]"]
    assert function.parameters[4].array.extents == (binary("*", ir.IntConst(2), ir.Var("N")),)
    assert (function.span.start, function.span.end) == (0, len(text))
    assert [text[one.start : one.end] for one in function.dropped] == ["int T, N, s, B,", "int a[2*N];"]
    example = parse(read_source(EXAMPLES / "jacobi1d.mf"))
    figure = unit.schedules[0].program.mapped(cached=("a",), decided=True)  # the example says so
    assert without_names(figure) == without_names(example.schedules[0].program)
    assert [one.arrays for one in unit.transfers] == [("a",)]


@pytest.mark.parametrize(
    ("figure", "declarations", "example"),
    [
        ("figure1", "int N, B0, B1; int a[N][N], b[N][N], c[N][N];\n", "matadd.mf"),
        ("figure3", "int n, B0, ub1, s; float a[n][n], b[n][n], c[n][n];\n", "matmul.mf"),
        (
            "figure8",
            "int N, s, B0, B1; int a[N][N], c[N * N];\nint dim0 = N / B0, dim1 = N / (B1 * s);\n",
            "transpose.mf",
        ),
    ],
)
def test_figures_with_declarations(figure, declarations, example):
    unit = fragment(declarations + printed(figure))
    wanted = parse(read_source(EXAMPLES / example))
    assert without_names(unit.schedules[0].program) == without_names(wanted.schedules[0].program)


@pytest.mark.parametrize(
    ("figure", "missing"),
    [
        ("figure1", ["B0", "B1", "N", "c", "a", "b"]),
        ("figure3", ["n", "B0", "ub1", "s", "c", "a", "b"]),
        ("figure8", ["dim0", "dim1", "B0", "B1", "s", "c", "a"]),
    ],
)
def test_figures_as_printed_lack_declarations(figure, missing):
    text = printed(figure)
    found = diagnostics_of(text)
    assert {one.code for one in found} == {"MF0301"}
    assert [text[one.span.start : one.span.end] for one in found] == missing


BODY = "meta_schedule { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < 1; j++) a[i] = alpha; }\n"


@pytest.mark.parametrize(
    ("declarations", "dropped", "left"),
    [
        ("int n; float a[n], alpha;\n", ["int n;", "float a[n], alpha;"], "\n"),
        ("int n, k = 5; float a[n], alpha;\n", ["n, ", "float a[n], alpha;"], "int k = 5; \n"),
        ("int k = 5, n; float a[n], alpha;\n", [", n", "float a[n], alpha;"], "int k = 5; \n"),
        ("int k = 5, n, l = 3; float alpha, a[n];\n", [", n", "float alpha, a[n];"], "int k = 5, l = 3; \n"),
        ("int n; const float a0 = 2; float alpha = a0; float a[n];\n", ["int n;", "float a[n];"], None),
        ("#define M 4\nint n; float a[M * n], alpha;\n", ["int n;", "float a[M * n], alpha;"], None),
    ],
)
def test_dropped_declarations(declarations, dropped, left):
    unit = fragment(declarations + BODY)
    text = unit.source.text
    (function,) = unit.functions
    assert [text[one.start : one.end] for one in function.dropped] == dropped
    rest = declarations
    for one in dropped:
        rest = rest.replace(one, "", 1)
    if left is not None:
        assert rest.strip() == left.strip()
    assert {one.name for one in function.parameters} >= {"n", "a"}


def test_what_the_fragment_computes_is_no_argument():
    unit = fragment(
        "int n, d, t; float a[n], alpha;\nd = n / 2; for (t = 0; t < d; t++)\n" + BODY.replace("a[i]", "a[t]")
    )
    (function,) = unit.functions
    assert [one.name for one in function.parameters] == ["n", "a", "alpha"]
    program = unit.schedules[0].program
    assert [one.name for one in program.parameters] == ["n", "t"]
    assert [(one.name, one.type) for one in program.values] == [("alpha", ScalarType.FLOAT)]


def test_an_argument_cannot_have_a_computed_extent():
    text = "int n, m = 2 * n; float alpha, a[n], b[«m»];\n" + BODY.replace("alpha", "b[i]")
    assert_refused(text, "MF0312")


def test_includes_and_several_schedules():
    unit = fragment("#include <assert.h>\nint n;\nfloat a[n], alpha;\n" + BODY + BODY)
    assert [one.program.name for one in unit.schedules] == ["frag_k0", "frag_k1"]
    behind = fragment("int n;\nfloat a[n], alpha;\n" + BODY + "float b[n];\n" + BODY.replace("a[i]", "b[i]"))
    assert [one.name for one in behind.functions[0].parameters] == ["n", "a", "alpha", "b"]


def test_a_trailing_comma_is_allowed_in_a_fragment_only():
    text = "void f(int n, float a[n], float alpha) { int x, y,\n int z; " + BODY.replace("alpha", "z") + "}"
    assert [one.code for one in diagnostics_of(text)] == ["MF0301"]
    assert_refused(
        "int k = 1, l,\nint n; float a[«n»], alpha;\n" + BODY.replace("i < n", "i < «n»"), "MF0301", "MF0301"
    )
