"""What a way out names as an assertion proves the accesses apart, and can be written where it says."""

import re

import pytest

from metafork.analysis.exactness import exact_unit
from metafork.analysis.races.diagnostics import check_races
from metafork.comprehensive.reading import parse
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source

VIEW = "struct view { int rows, cols; float *data; };"


def plane(parameters, *loops):
    """Return a function with loops, each a head of which the last has a body."""
    *heads, body = loops
    return f"void f({parameters})\n{{\n  meta_schedule meta_block(B) {{\n{' '.join(heads)} {{ {body} }} }}\n}}"


PAIRS = "a = x[{0}], b = x[{1}]; x[{0}] = a - b; x[{1}] = a + b;"
ROWS = "meta_for (int i = 0; i < n; i++)"

NAMED = {
    "rows of pairs": (
        plane(
            "int n, int d, int B, float x[n * d]",
            ROWS,
            "meta_for (int j = 0; j < d; j += 2)",
            "float " + PAIRS.format("i * d + j", "i * d + j + 1"),
        ),
        "d % 2 == 0",
    ),
    "a checkerboard whose border wraps": (
        plane(
            "int n, int c, float x[n * n]",
            ROWS,
            "meta_for (int j = 0; j < n; j++)",
            "if ((i + j) % 2 == c) { int up = i == 0 ? n - 1 : i - 1, left = j == 0 ? n - 1 : j - 1; "
            "x[i * n + j] = x[up * n + j] + x[i * n + left]; }",
        ).replace("meta_block(B)", "meta_block(8, 32)"),
        "n % 2 == 0",
    ),
    "a pitch": (
        plane("int n, int m, int pitch, int B, float y[n * pitch]", ROWS, "meta_for (int j = 0; j < m; j++)",
              "y[i * pitch + j] = 1;"),
        "pitch >= m",
    ),
    "a pitch of size_t": (
        plane("size_t n, size_t m, size_t pitch, size_t B, float y[n * pitch]", "meta_for (size_t i = 0; i < n; i++)",
              "meta_for (size_t j = 0; j < m; j++)", "y[i * pitch + j] = 1;"),
        "pitch >= m",
    ),
    "a pitch with a border": (
        plane("int n, int m, int pitch, int B, float y[n * pitch]", ROWS, "meta_for (int j = 0; j < m; j++)",
              "y[i * pitch + j] = y[i * pitch + j + 2];"),
        "",
    ),
    "both halves of a row": (
        plane("int n, int s, int h, int B, float x[n * s]", ROWS, "meta_for (int k = 0; k < h; k++)",
              "float " + PAIRS.format("i * s + k", "i * s + k + h")),
        "s >= 2 * h",
    ),
    "a distance": (
        plane("int n, int k, int B, float x[n + k]", ROWS, "x[i] = x[i + k];"),
        "k >= n",
    ),
    "members": (
        VIEW + plane("struct view a, struct view b, int B", "meta_for (int i = 0; i < a.cols; i++)",
                     "a.data[i] = a.data[i + b.cols];"),
        "b.cols >= a.cols",
    ),
    "members of pointers": (
        VIEW + plane("const struct view *a, const struct view *b, int B", "meta_for (int i = 0; i < a->cols; i++)",
                     "a->data[i] = a->data[i + b->cols];"),
        "b->cols >= a->cols",
    ),
    "rows by members": (
        VIEW + plane("struct view a, struct view b, int B", "meta_for (int u = 0; u < b.rows; u++)",
                     "for (int k = 0; k < a.cols; k++) a.data[u * b.cols + k] += 1;"),
        "b.cols >= a.cols",
    ),
    "a stride": (
        plane("int n, int s, int B, float y[n * s + 1]", ROWS, "y[i * s] = 1;"),
        "s >= 1",
    ),
    "rows of fours": (
        plane(
            "int n, int d, int B, float x[n * d]",
            ROWS,
            "meta_for (int j = 0; j < d; j += 4)",
            "float " + PAIRS.format("i * d + j", "i * d + j + 3"),
        ),
        "d % 4 == 0",
    ),
    "two pitches": (
        plane("int n, int m, int l, int p, int q, int B, float y[n * p * q]", ROWS, "meta_for (int j = 0; j < m; j++)",
              "meta_for (int k = 0; k < l; k++)", "y[(i * p + j) * q + k] = 1;"),
        "q >= l && p >= m",
    ),
}  # fmt: skip

NONE = {
    "memory says where": plane("int n, int B, const int k[n], float y[n]", ROWS, "y[k[i]] = 1;"),
    "a product": plane("int n, int B, float y[n * n]", ROWS, "meta_for (int j = 0; j < n; j++)", "y[i * j] += 1;"),
    "a sum": plane("int n, int m, int B, float y[n + m]", ROWS, "meta_for (int j = 0; j < m; j++)", "y[i + j] += 1;"),
}


def reported(text):
    """Return what is said of races in a text."""
    unit = exact_unit(parse(Source("f.mf", text)))
    try:
        return check_races(unit)
    except DiagnosticsError as error:
        return error.diagnostics


@pytest.mark.sampled(len(NAMED) - 2)
@pytest.mark.parametrize("name", NAMED)
def test_the_assertion_that_is_named_proves_it(name):
    text, wanted = NAMED[name]
    ways = [one.way_out for one in reported(text)]
    assert ways
    said = {tuple(re.findall(r"assert\((.*?)\);", way)) for way in ways}
    assert said == {(wanted,) if wanted else ()}
    if wanted:
        assert reported(text.replace("  meta_schedule", f"  assert({wanted});\n  meta_schedule")) == ()


@pytest.mark.parametrize("name", NONE)
def test_where_none_is_known_none_is_named(name):
    for one in reported(NONE[name]):
        assert "assert(" not in one.way_out
