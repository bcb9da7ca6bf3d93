"""Which elements are surely overwritten, whether that is all, and whether none of them is read before."""

import pytest

from metafork.analysis.facts import program_facts
from metafork.analysis.overwriting import overwriting
from metafork.analysis.reference_walk import references
from metafork.frontend import parse
from metafork.ir.messages.source import Source

HEAD = "void f(int n, int m, int B, int T, float x[n], float a[n][m], float y[n], int list[n]) { meta_schedule "
EACH = "meta_block(B) { meta_for (int i = 0; i < n; i++) { BODY } }"
PAIRS = "meta_block(B, B) { meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < m; j++) { BODY } }"


def found(text, array):
    program = parse(Source("f.mf", f"{HEAD}{text} }}")).schedules[0].program
    facts = program_facts(program)
    return overwriting(program, facts, references(program, facts))[array]


def elements(one, **values):
    """The elements of all regions, for numbers of the parameters."""
    known = {**values, **{f"{name}_over_2": number // 2 for name, number in values.items()}}

    def number(polynomial):
        return int(polynomial.evaluate({**dict.fromkeys(polynomial.symbols, 10**6), **known}))

    result = set()
    for region in one.regions:
        numbers = {number(region.first)}
        for span in region.spans:
            steps = range(max([0, *map(number, span.least)]), min(map(number, span.behind)))
            numbers = {before + number(span.step) * step for before in numbers for step in steps}
        result |= numbers
    return result


EXACT = {
    EACH.replace("BODY", "x[i] = y[i];"): range(12),
    EACH.replace("BODY", "if (i > 2 && i < n - 3) x[i] = y[i];"): range(3, 9),
    EACH.replace("BODY", "if (i == 3) x[i] = y[i];"): [3],
    EACH.replace("BODY", "if (m > 100) x[i] = y[i];"): [],
    EACH.replace("BODY", "if (i < n / 2) x[2 * i + 1] = y[i];"): range(1, 12, 2),
    EACH.replace("BODY", "if (i < n / 2) x[n - 1 - i] = y[i];"): range(6, 12),
    EACH.replace("BODY", "x[i] = 0; for (int j = 0; j < m; j++) if (j != i) x[i] += y[j];"): range(12),
    EACH.replace("BODY", "x[i] = 0; if (y[i] > 0) x[i] = 1;"): range(12),
    EACH.replace("BODY", "if (y[i] > 0) x[i] = 1; else x[i] = 2;"): range(12),
    EACH.replace("BODY", "if (y[i] > 0) x[i] = 1; else if (y[i] < -1) x[i] = 2; else x[i] = 3;"): range(12),
    EACH.replace("BODY", "if (i > 2) { if (y[i] > 0) x[i] = 1; else x[i] = 2; }"): range(3, 12),
    "{ meta_for (int b = 0; b < 2; b++) meta_for (int t = 0; t < T; t++)"
    " for (int i = b * T + t; i < n; i += 2 * T) x[i] = 1; }": range(12),
    "{ meta_for (int b = 0; b < n / 2; b++) meta_for (int t = 0; t < 2; t++) x[b * 2 + t] = 1; }": range(12),
}
SURE = {
    EACH.replace("BODY", "for (int j = 0; j < m; j++) { if (y[j] > 0) { x[j] = 1; break; } x[j] = 2; }"): [],
    EACH.replace(
        "BODY", "for (int j = 0; j < m; j++) { if (y[j] > 0) break; if (y[j] < -1) x[j] = 1; else x[j] = 2; }"
    ): [],
    EACH.replace("BODY", "if (y[i] > 0) x[i] = 1; else if (y[i] < -1) x[i] = 2;"): [],
    EACH.replace("BODY", "if (y[i] > 0) x[i] = 1; if (y[i] <= 0) x[i] = 2;"): [],
    EACH.replace("BODY", "if (y[i] > 0) x[i] = 1;"): [],
    EACH.replace("BODY", "x[list[i]] = 1;"): [],
    EACH.replace("BODY", "if (i < 4) x[i] = 1; if (y[i] > 0) x[i + 4] = 1;"): range(4),
    EACH.replace("BODY", "for (int j = 0; j < n; j++) { if (y[j] > 0) break; x[i] = 1; }"): [],
    EACH.replace("BODY", "int k = i; while (k < m) { x[k] = 1; k += n; }"): [],
    EACH.replace("BODY", "if (i != 4) x[i] = 1;"): [],
}


@pytest.mark.parametrize("text", EXACT)
def test_all_that_is_written(text):
    one = found(text, "x")
    assert (one.exact, elements(one, n=12, m=5, B=4, T=3)) == (True, set(EXACT[text]))


@pytest.mark.parametrize("text", SURE)
def test_only_some_is_sure(text):
    one = found(text, "x")
    assert (one.exact, elements(one, n=12, m=5, B=4, T=3)) == (False, set(SURE[text]))


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        ("a[i][j] = 1;", range(60)),
        ("if (j == 2) a[i][j] = 1;", range(2, 60, 5)),
        ("if (i < 2) a[i][j] = 1;", range(10)),
        ("if (j < i) a[i][j] = 1;", None),
        ("if (i + j < n) a[i][j] = 1;", None),
    ],
)
def test_rows_and_columns(body, numbers):
    one = found(PAIRS.replace("BODY", body), "a")
    assert (one.exact, elements(one, n=12, m=5, B=4, T=3)) == (numbers is not None, set(numbers or []))


@pytest.mark.parametrize(
    ("body", "first"),
    [
        ("x[i] = y[i];", True),
        ("x[i] += y[i];", False),
        ("x[i] = 1; y[i] = x[i];", True),
        ("y[i] = x[i]; x[i] = 1;", False),
        ("x[i] = 1; y[i] = x[n - 1 - i];", False),
        ("if (i < 4) x[i] = 1; y[i] = x[i];", False),
        ("if (i < 4) { x[i] = 1; y[i] = x[i]; }", True),
        ("if (y[i] > 0) x[i] = 1; y[i] = x[i];", False),
        ("x[i] = x[i] + 1;", False),
        ("if (y[i] > 0) x[i] = 1; else x[i] = 2; y[i] = x[i];", True),
        ("if (x[i] > 0) x[i] = 1; else x[i] = 2;", False),
    ],
)
def test_whether_it_is_overwritten_before_it_is_read(body, first):
    text = EACH.replace("BODY", body)
    assert found(text, "x").first is first
