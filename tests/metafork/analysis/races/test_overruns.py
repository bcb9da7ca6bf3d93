"""MF0404: accesses that leave their array whatever the parameters are, and none of those that may stay inside."""

from pathlib import Path

import pytest

from metafork.analysis.races.diagnostics import check_races
from metafork.analysis.races.overruns import overruns
from metafork.comprehensive.reading import parse as read
from metafork.ir.messages.source import Source

BLOCKS = "meta_for (int b = 0; b < n / B; b++) meta_for (int u = 0; u < B; u++)"


def nest(loops, statement, parameters="int n, int B, const float x[n], float y[n]", before=""):
    return f"void f({parameters})\n{{\n  {before}meta_schedule {{\n    {loops}\n      {statement}\n  }}\n}}\n"


def found_in(text):
    return [
        (one.access.array, one.element, one.extents)
        for one in overruns(read(Source("f.mf", text)).schedules[0].program)
    ]


BEYOND = {
    "the neighbour of the last": (nest("meta_for (int i = 0; i < n; i++)", "y[i] = x[i + 1];"), "x"),
    "one block too many": (nest(BLOCKS.replace("<", "<=", 1), "y[b * B + u] = 1;"), "y"),
    "the neighbour of the first": (nest(BLOCKS, "y[b * B + u] = x[b * B + u - 1];"), "x"),
    "with a check of another index": (
        nest(BLOCKS.replace("n / B", "(n + B - 1) / B"), "if (b * B + u < n) y[b * B + u + 1] = 1;"),
        "y",
    ),
    "another array's length": (nest(BLOCKS, "y[b * B + u] = x[n + b * B + u];"), "x"),
    "one row too many": (
        nest(
            "meta_for (int i = 0; i <= n; i++) meta_for (int j = 0; j < n; j++)",
            "a[i][j] = 1;",
            "int n, float a[n][n]",
        ),
        "a",
    ),
    "a constant extent": (
        nest(BLOCKS, "y[b * B + u] = t[B % 1 + 4];", "int n, int B, const float t[4], float y[n]"),
        "t",
    ),
}  # fmt: skip
INSIDE = {
    "the right end": nest(BLOCKS, "y[b * B + u] = x[b * B + u];"),
    "blocks that divide the length": nest(BLOCKS.replace("n / B", "(n + B - 1) / B"), "y[b * B + u] = 1;"),
    "an end that the caller gives": nest(
        "meta_for (int i = 0; i < m; i++)", "y[i] = 1;", "int n, int m, float y[n]"
    ).replace("meta_schedule", "meta_schedule meta_block(32)"),
    "a check": nest(BLOCKS, "if (b * B + u + 1 < n) y[b * B + u] = x[b * B + u + 1];"),
    "what memory says": nest(BLOCKS, "if (x[b * B + u] > 0) y[b * B + u + n] = 1;"),
    "an index from memory": nest(
        BLOCKS, "y[p[b * B + u]] = 1;", "int n, int B, const int p[n], float y[n]"
    ),
    "small constants in a large array": nest(
        BLOCKS, "for (int k = 0; k < 64; k++) y[b * B + u] += x[k];"
    ),
    "an index that no int is": nest(BLOCKS, "y[b * B + u] = x[b * B + u + 2147483661LL];"),
    "an order beyond the small values": nest(BLOCKS, "y[b * B + u] = x[u + 500];"),
    "rows behind each other": nest(
        BLOCKS, "y[b * B + u] = a[0][b * B + u];", "int n, int B, const float a[2][n / 2], float y[n]",
        "assert(n % 2 == 0); ",
    ),
    "an extent that nobody knows": nest(
        "meta_for (int i = 0; i < n; i++)", "y[i] = x[i + 1];", "int n, const float *x, float *y"
    ).replace("meta_schedule", "meta_schedule meta_block(32)"),
}  # fmt: skip


@pytest.mark.parametrize("what", BEYOND)
def test_an_overrun_is_seen(what):
    text, array = BEYOND[what]
    if " meta_for" not in text.partition("meta_for")[2]:
        text = text.replace("meta_schedule", "meta_schedule meta_block(B)")
    (found,) = found_in(text)
    assert found[0] == array
    assert any(not 0 <= index < extent for index, extent in zip(*found[1:], strict=True))


@pytest.mark.parametrize("what", INSIDE)
def test_nothing_is_said_of_what_may_be_right(what):
    assert found_in(INSIDE[what]) == []


FILES = sorted([*Path("examples").glob("*.mf"), *Path("tests/end_to_end/suites").glob("*.mf")])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_is_said_of_programs_that_are_right(file):
    unit = read(Source(str(file), file.read_text(), folders=(str(file.parent),)))
    assert [overruns(schedule.program) for schedule in unit.schedules] == [()] * len(unit.schedules)


def test_the_warning_shows_an_iteration_and_a_check():
    text = nest("meta_for (int i = 0; i < n; i++)", "y[i] = x[i + 1] - x[i] + x[i + 2];")
    (found,) = check_races(read(Source("f.mf", text.replace("meta_schedule", "meta_schedule meta_block(B)"))))
    assert (found.code, found.severity.value, found.span.line) == ("MF0404", "warning", 5)
    assert found.message == "`x[i + 1]` goes beyond the end of `x`"
    assert found.reason == "i = 2 touches `x[3]`, and `x` has 3 elements, with n = 3 and B = 2."
    assert found.way_out == (
        "let the loops end earlier, or check the index: `if (i + 1 < n)`.\nif `x` is larger, declare it so."
    )
