"""Leaves are proved to have the dataflow of their source; wrong ones are refuted, and never proved."""

from pathlib import Path

import pytest

from metafork.algebra.prover import Verdict
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification.translation.translation import validate, validations
from tests.metafork.frontend.marked import program_of
from tests.sampling import sampled

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*.mf"))


QUICK = {path.stem for path in EXAMPLES} - {"heat3d", "matmul", "matmul_tile"}


@pytest.mark.parametrize("path", sampled({path.stem: path for path in EXAMPLES}, QUICK))
def test_every_leaf_of_the_examples_is_proved(path):
    result = optimize(
        path, counters=["shared_memory"], strategies=["cse1", "cse2", "granularity", "caching"], order="paper"
    )
    for tree in result.schedules:
        found = validations(tree, shapes=1, points=2, seconds=120)
        assert found.keys() == {(leaf.id, leaf.own.number) for leaf in tree.leaves}
        for key, one in found.items():
            assert one.verdict is Verdict.YES, (tree.program.name, key, one.detail)
            assert one.points == 2
            assert one.kernel_points >= 2
            assert one.detail.startswith("proved for ")


def program(body, parameters="int n, int s, int B, const float x[n], float y[n]", scalars=""):
    return program_of(f"#include <math.h>\nvoid f({parameters})\n{{\n  {scalars}\n  meta_schedule {{ {body} }}\n}}\n")


GRID = "meta_for (int i = 0; i < blocks; i++)"
THREADS = "meta_for (int u = 0; u < B; u++)"

SMOOTH = program(
    f"{GRID} {THREADS} for (int k = 0; k < s; k++) {{ int p = (i * s + k) * B + u; y[p + 1] = x[p] + x[p + 2]; }}",
    scalars="int blocks = (n - 2) / (s * B);",
)


def smooth(code, grid="blocks", kept="for (int k = 0; k < s; k++)"):
    return program(
        f"meta_for (int i = 0; i < {grid}; i++) {THREADS} {kept} {{ {code} }}",
        scalars="int blocks = (n - 2) / (s * B);",
    )


GUARDED = "int blocks = (n + B - 1) / B;"
COPY = program(f"{GRID} {THREADS} {{ int p = i * B + u; if (p < n) y[p] = x[p]; }}", scalars=GUARDED)
BRANCHES = program(
    f"{GRID} {THREADS} {{ int p = i * B + u; if (p < n) {{ if (p % 2) y[p] = x[p]; else y[p] = x[p] + 1.0f; }} }}",
    scalars=GUARDED,
)
ROWS = "int n, int s, int B, const float A[n][s], float y[n]"
SUM = program(
    f"{GRID} {THREADS} for (int k = 0; k < s; k++) y[i * B + u] += A[i * B + u][k];",
    parameters=ROWS,
    scalars="int blocks = n / B;",
)
PHASES = program(
    f"{GRID} {{ float t[B]; {THREADS} t[u] = x[i * B + u]; {THREADS} y[i * B + u] = t[B - 1 - u]; }}",
    scalars="int blocks = n / B;",
)
SCALED = program(
    f"{GRID} {THREADS} {{ int p = i * B + u; float t = x[p] * 2.0f; float v = 0.0f; v += t; v += x[p]; y[p] = v; }}",
    scalars="int blocks = n / B;",
)

TRIPLE = program(
    f"{GRID} {THREADS} for (int k = 0; k < s; k++) for (int l = 0; l < 2; l++) y[(i * B + u) * 2 + l] += x[k];",
    scalars="int blocks = n / (2 * B);",
)


def summed(body, before="", after="y[p] = v;"):
    """SUM with a scalar: what stands around and in its loop."""
    code = f"int p = i * B + u; {before} float v = y[p]; for (int k = 0; k < s; k++) {{ {body} }} {after}"
    return program(f"{GRID} {THREADS} {{ {code} }}", parameters=ROWS, scalars="int blocks = n / B;")


def tripled(order, after="y[(i * B + u) * 2 + l] = v;"):
    first = "for (int l = 0; l < 2; l++) { float v = y[(i * B + u) * 2 + l];"
    return program(
        f"{GRID} {THREADS} {first} for (int k = 0; k < s; k++) v += x[{order}]; {after} }}",
        scalars="int blocks = n / (2 * B);",
    )


TWO_LOCALS = "float v = 0.0f; float w = 0.0f; v += x[p]; w -= x[p];"

WRONG = {
    "a scalar that is stored before it is complete": (SUM, summed("v += A[p][k]; y[p] = v; v -= A[p][k];")),
    "a scalar that is never stored": (SUM, summed("v += A[p][k];", after="")),
    "a scalar beside its element": (SUM, summed("v += A[p][k];", after="v += y[p]; y[p] = v;")),
    "a scalar that misses some of the sum": (SUM, summed("if (k > 0) v += A[p][k];")),
    "an interchange that sums backwards": (TRIPLE, tripled("s - 1 - k")),
    "a scalar that is stored elsewhere": (TRIPLE, tripled("k", after="y[(i * B + u) * 2 + 1 - l] = v;")),
    "another local of the same kind": (
        program(
            f"{GRID} {THREADS} {{ int p = i * B + u; {TWO_LOCALS} v += 1.0f; y[p] = w; w += 1.0f; }}",
            scalars="int blocks = n / B;",
        ),
        program(
            f"{GRID} {THREADS} {{ int p = i * B + u; {TWO_LOCALS} v += 1.0f; y[p] = v; w += 1.0f; }}",
            scalars="int blocks = n / B;",
        ),
    ),
    "an operand of another local": (
        program(
            f"{GRID} {THREADS} {{ int p = i * B + u; {TWO_LOCALS} v = v + w * 2.0f; y[p] = v; }}",
            scalars="int blocks = n / B;",
        ),
        program(
            f"{GRID} {THREADS} {{ int p = i * B + u; {TWO_LOCALS} v = v + v * 2.0f; y[p] = v; }}",
            scalars="int blocks = n / B;",
        ),
    ),
    "a shifted write": (SMOOTH, smooth("int p = (i * s + k) * B + u; y[p + 2] = x[p] + x[p + 2];")),
    "a shifted read": (SMOOTH, smooth("int p = (i * s + k) * B + u; y[p + 1] = x[p + 1] + x[p + 2];")),
    "exchanged operands": (SMOOTH, smooth("int p = (i * s + k) * B + u; y[p + 1] = x[p + 2] + x[p];")),
    "another order of operations": (SMOOTH, smooth("int p = (i * s + k) * B + u; y[p + 1] = x[p] - x[p + 2];")),
    "an iteration too few": (
        SMOOTH,
        smooth("int p = (i * s + k) * B + u; y[p + 1] = x[p] + x[p + 2];", kept="for (int k = 0; k < s - 1; k++)"),
    ),
    "a wrong decoding of the grid": (
        SMOOTH,
        smooth("int p = i * s * B + u; y[p + 1] = x[p] + x[p + 2];", grid="blocks * s", kept=""),
    ),
    "a grid that is too small": (
        SMOOTH,
        smooth("int p = i * B + u; y[p + 1] = x[p] + x[p + 2];", grid="blocks", kept=""),
    ),
    "a dropped guard": (
        COPY,
        program(f"{GRID} {THREADS} {{ int p = i * B + u; y[p] = x[p]; }}", scalars=GUARDED),
    ),
    "a guard that is too narrow": (
        COPY,
        program(f"{GRID} {THREADS} {{ int p = i * B + u; if (p < n - 1) y[p] = x[p]; }}", scalars=GUARDED),
    ),
    "a dropped partial block": (
        COPY,
        program(f"{GRID} {THREADS} {{ int p = i * B + u; if (p < n) y[p] = x[p]; }}", scalars="int blocks = n / B;"),
    ),
    "swapped branches": (
        BRANCHES,
        program(
            f"{GRID} {THREADS} {{ int p = i * B + u;"
            " if (p < n) { if (p % 2) y[p] = x[p] + 1.0f; else y[p] = x[p]; } }",
            scalars=GUARDED,
        ),
    ),
    "a collapsed loop whose iterations depend on each other": (
        SUM,
        program(
            f"meta_for (int i = 0; i < blocks * s; i++) {THREADS} y[i / s * B + u] += A[i / s * B + u][i % s];",
            parameters=ROWS,
            scalars="int blocks = n / B;",
        ),
    ),
    "a reversed sum": (
        SUM,
        program(
            f"{GRID} {THREADS} for (int k = 0; k < s; k++) y[i * B + u] += A[i * B + u][s - 1 - k];",
            parameters=ROWS,
            scalars="int blocks = n / B;",
        ),
    ),
    "a missing barrier": (
        PHASES,
        program(
            f"{GRID} {{ float t[B]; {THREADS} {{ t[u] = x[i * B + u]; y[i * B + u] = t[B - 1 - u]; }} }}",
            scalars="int blocks = n / B;",
        ),
    ),
    "a scalar used before its last write": (
        SCALED,
        program(
            f"{GRID} {THREADS} {{ int p = i * B + u; float t = x[p] * 2.0f; float v = 0.0f; v += x[p]; v += t;"
            " y[p] = v; }",
            scalars="int blocks = n / B;",
        ),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_transformations_are_refuted(name):
    source, leaf = WRONG[name]
    found = validate(source, leaf)
    assert found.verdict is Verdict.NO, found.detail
    assert found.detail.startswith("refuted at ")


@pytest.mark.parametrize("name", WRONG)
def test_wrong_transformations_are_never_proved(name):
    """Without a point at which both are played, it is isl alone that must not be taken in."""
    source, leaf = WRONG[name]
    found = validate(source, leaf, points=0)
    assert found.verdict is Verdict.UNKNOWN
    assert found.detail.startswith("not proved: ")


TWICE = program(
    f"{GRID} {THREADS} {{ int p = i * B + u; float v = x[p]; v = v * v; v = v * v; y[p] = v; }}",
    scalars="int blocks = n / B;",
)
SIZED = program(
    f"{GRID} {THREADS} t[i][u] = x[i * B + u];",
    parameters="int n, int B, const float x[n], float t[n][B]",
    scalars="int blocks = n / B;",
)

RIGHT = {
    "equal statements": (TWICE, TWICE),
    "the program itself": (SMOOTH, SMOOTH),
    "a loop that joined the grid": (
        SMOOTH,
        smooth("int p = i * B + u; y[p + 1] = x[p] + x[p + 2];", grid="blocks * s", kept=""),
    ),
    "a loop that joined the grid, decoded": (
        SMOOTH,
        smooth("int p = (i / s * s + i % s) * B + u; y[p + 1] = x[p] + x[p + 2];", grid="blocks * s", kept=""),
    ),
    "names for indices": (
        SMOOTH,
        smooth("int p = (i * s + k) * B + u; int w = p + 1; int r = w + 1; y[w] = x[p] + x[r];"),
    ),
    "an equal guard": (
        COPY,
        program(f"{GRID} {THREADS} {{ int p = i * B + u; if (!(p >= n)) y[p] = x[p]; }}", scalars=GUARDED),
    ),
    "a sum in order": (SUM, SUM),
    "phases": (PHASES, PHASES),
    "locals": (SCALED, SCALED),
    "a sum in a scalar": (SUM, summed("v += A[p][k];")),
    "sums in a scalar after an interchange": (TRIPLE, tripled("k")),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_transformations_are_proved(name):
    source, leaf = RIGHT[name]
    found = validate(source, leaf)
    assert found.verdict is Verdict.YES, found.detail
    assert len(found.shapes) == 3
    assert "all n" in found.detail
    assert f"B={found.shapes[0]['B']}" in found.detail


def test_a_block_size_that_sizes_an_array_is_fixed_too():
    found = validate(SIZED, SIZED)
    assert found.verdict is Verdict.YES
    assert found.detail == "proved for B=2; B=3; B=1 and all n; tested with terms at 8 points"


def test_every_parameter_has_two_values_above_one():
    """A granularity of 1 shows little, and one number alone not whether it is squared or doubled."""
    found = validate(SMOOTH, SMOOTH)
    assert found.detail.startswith("proved for s=2, B=3; s=3, B=2; s=1, B=1 and all n; ")


CUBE = "int n, int m, int B, const float x[n * m * m], float y[n * m * m]"


def cube(index):
    return program(
        "meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < blocks; j++) meta_for (int a = 0; a < 1; a++)"
        f" meta_for (int u = 0; u < B; u++) {{ int c = j * B + u; if (c < m) for (int r = 0; r < m; r++)"
        f" y[{index}] = x[(i * m + r) * m + c]; }}",
        parameters=CUBE,
        scalars="int blocks = (m + B - 1) / B;",
    )


def test_linearised_indices_split_into_rows_and_columns():
    found = validate(cube("(i * m + r) * m + c"), cube("i * m * m + r * m + c"))
    assert found.verdict is Verdict.YES, found.detail
    assert "and all n, m; " in found.detail
    assert validate(cube("(i * m + r) * m + c"), cube("(i * m + c) * m + r"), points=0).verdict is Verdict.UNKNOWN
    assert validate(cube("(i * m + r) * m + c"), cube("(i * m + c) * m + r")).verdict is Verdict.NO
    assert "does not split" in validate(cube("(i * m + r) * m + c + 1"), cube("r"), points=0).detail


def test_a_statement_left_out_of_two_equal_ones_is_refuted():
    once = program(
        f"{GRID} {THREADS} {{ int p = i * B + u; float v = x[p]; v = v * v; y[p] = v; }}",
        scalars="int blocks = n / B;",
    )
    assert validate(TWICE, once).verdict is Verdict.NO
    assert validate(TWICE, once, points=0).verdict is Verdict.UNKNOWN


def computed(value, parameters="int n, int B, const unsigned char x[n], int y[n]"):
    return program(f"{GRID} {THREADS} {{ int p = i * B + u; y[p] = {value}; }}", parameters, "int blocks = n / B;")


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("x[p] * 1", "x[p]"),
        ("1 * x[p]", "x[p]"),
        ("x[p] / 1 + 0", "x[p]"),
        ("0 + (x[p] - 0)", "x[p]"),
        ("x[p] << 0 >> 0", "x[p]"),
        ("x[p] * 0 + 3", "3"),
        ("0 / (x[p] | 1)", "0"),
    ],
)
def test_what_strategies_drop_computes_nothing(written, left):
    """A random program with ``* 1`` was called refuted: the leaf had dropped it."""
    assert validate(computed(written), computed(left)).verdict is not Verdict.NO
    assert validate(computed(left), computed(written)).verdict is not Verdict.NO
    assert validate(computed(written), computed("x[p] + 1")).verdict is Verdict.NO


@pytest.mark.parametrize(
    ("written", "left"), [("x[p] * 1", "1"), ("0 - x[p]", "x[p]"), ("1 / x[p]", "x[p]"), ("x[p] % 1", "x[p]")]
)
def test_what_is_not_neutral_stays(written, left):
    assert validate(computed(written), computed(left)).verdict is Verdict.NO


def test_what_reads_its_indices_from_memory_is_tested_or_open():
    gather = program(
        "meta_for (int i = 0; i < blocks; i++) meta_for (int u = 0; u < B; u++) y[i * B + u] = x[idx[i * B + u]];",
        parameters="int n, int B, const int idx[n], const float x[n], float y[n]",
        scalars="int blocks = n / B;",
    )
    found = validate(gather, gather)
    assert found.verdict is Verdict.UNKNOWN
    assert found.detail == "not proved: an index of x is read from memory (B=2)"


def test_loops_that_depend_on_data_are_open():
    search = program(
        f"{GRID} {THREADS} {{ float v = x[i * B + u]; while (v > 1.0f) v = v / 2.0f; y[i * B + u] = v; }}",
        scalars="int blocks = n / B;",
    )
    found = validate(search, search)
    assert found.verdict is Verdict.UNKNOWN
    assert "has no affine domain" in found.detail


def test_a_limit_of_operations_leaves_it_unknown(monkeypatch):
    monkeypatch.setattr("metafork.comprehensive.verification.translation.translation.OPERATIONS", 20_000)
    found = validate(SMOOTH, SMOOTH)
    assert found.verdict is Verdict.UNKNOWN
    assert "isl gave up at its limit of operations" in found.detail
    monkeypatch.undo()
    assert validate(SMOOTH, SMOOTH).verdict is Verdict.YES


def test_a_limit_of_time_leaves_it_unknown():
    found = validate(SMOOTH, SMOOTH, seconds=0.0)
    assert found.verdict is Verdict.UNKNOWN
    assert "the time ran out" in found.detail
