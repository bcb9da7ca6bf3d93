"""Loads of the preferred kernel that do not coalesce are named first, others are not."""

import pytest

from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.tree.remarks import in_one_line

NEST = (
    "void f(int n, int m, int B, {given}) {{ meta_schedule meta_block(B) {{ "
    "meta_for (int i = 0; i < n; i++) {{ {body} }} }} }}"
)
ROWS = "float s = 0; for (int k = 0; k < m; k++) s += {}; y[i] = s;"
CASES = {
    "a row a thread": ("const float *x, float *y", ROWS.format("x[i * m + k]"), {"x": "m apart"}),
    "a row of two dimensions": ("const float x[n][m], float *y", ROWS.format("x[i][k]"), {"x": "m apart"}),
    "several rows": ("const float *x, float *y", ROWS.format("x[2 * i * m + k]"), {"x": "2*m apart"}),
    "lines of their own": ("const float *x, float *y", "y[i] = x[32 * i];", {"x": "32 apart"}),
    "bytes of lines of their own": ("const char *x, float *y", "y[i] = x[128 * i];", {"x": "128 apart"}),
    "backwards": ("const float *x, float *y", "y[i] = x[m * (n - 1 - i)];", {"x": "-m apart"}),
    "columns": ("const float *x, float *y", ROWS.format("x[k * n + i]"), {}),
    "neighbours": ("const float *x, float *y", "y[i] = x[i] + x[i + 1];", {}),
    "the same element": ("const float *x, float *y", ROWS.format("x[k]"), {}),
    "parts of lines": ("const float *x, float *y", "y[i] = x[3 * i] + x[3 * i + 1];", {}),
    "an index from memory": ("const int *c, const float *x, float *y", "y[i] = x[c[i]];", {}),
    "what is only written": ("const float *x, float *y", "y[i * 64] = x[i];", {}),
    "what is in shared memory": ("const float x[n], float y[n]", "y[i] = x[n - 1 - i];", {}),
}


@pytest.mark.parametrize("name", CASES)
def test_loads_that_do_not_coalesce_come_first(name):
    given, body, wanted = CASES[name]
    result = optimize(NEST.format(given=given, body=body), counters=("shared_memory",))
    remarks = result.schedules[0].remarks
    found = {one.subject: one.reason for one in remarks if one.topic == "coalescing"}
    assert {subject: reason.endswith(wanted.get(subject, "?")) for subject, reason in found.items()} == dict.fromkeys(
        wanted, True
    )
    assert in_one_line(remarks).startswith("loads do not coalesce: x; ") is bool(wanted)
    if wanted:
        first = next(line for line in result.to_report().splitlines() if line.startswith("- "))
        assert first.startswith("- x is read by loads that do not coalesce (line 1): threads that are neighbours read")


def test_what_a_tile_in_shared_memory_reads_is_left_aside():
    text = (
        "void transpose(int n, int B, const float a[n][n], float c[n][n]) { meta_schedule cache(a) {"
        " meta_for (int i = 0; i < n / B; i++) meta_for (int j = 0; j < n / B; j++) meta_for (int u = 0; u < B; u++)"
        " meta_for (int v = 0; v < B; v++) c[j * B + u][i * B + v] = a[i * B + v][j * B + u]; } }"
    )
    cached = optimize(text, order="paper").schedules[0]
    assert not any(one.topic == "coalescing" for one in cached.remarks)
    plain = optimize(text.replace("cache(a)", "cache()")).schedules[0]
    assert [one.subject for one in plain.remarks if one.topic == "coalescing"] == ["a"]
