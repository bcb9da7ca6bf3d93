"""grow: what it makes of a nest that meta_block cut, where it refuses, and results at odd sizes."""

import pytest

from metafork.analysis.analyses import Analyses
from metafork.ir import program as ir
from metafork.printing.metafork_text import metafork_text
from metafork.transform.directive import Refused, applied
from metafork.transform.schedule import schedule_of
from tests.metafork.interpreter import program, results

TEXT = """
void f(int n, int m, int B0, int B1, const float a[n][m], float b[n][m], int k[n])
{{
  meta_schedule {clause} {{
    meta_for (int i = 1; i < n - 1; i++)
      meta_for (int j = 0; j < m; j++) {{ {body} }}
  }}
}}
"""
POINTS = [dict(zip(("n", "m", "B0", "B1"), one, strict=True)) for one in ((9, 7, 1, 2), (5, 20, 3, 1), (2, 3, 2, 2))]
GROWN = {
    "a stencil": "b[i][j] = a[i - 1][j] + a[i + 1][j];",
    "a condition": "if (j < i) b[i][j] = a[j % n][i % m];",
    "a loop": "float s = 0; for (int t = 0; t < j; t++) s += a[i][t]; b[i][j] = s;",
}


def grown(text, schedule="grow(i_thread, 4); grow(j_thread, 2)"):
    return applied(program(text), schedule_of(schedule), Analyses())


@pytest.mark.parametrize("name", GROWN)
def test_a_block_computes_more(name):
    text = TEXT.format(clause="meta_block(B0, B1)", body=GROWN[name])
    first, more = program(text), grown(text)
    assert not isinstance(more, Refused), more.reason
    again = program(metafork_text(more))
    assert again == more
    for seed, point in enumerate(POINTS):
        assert results(first, point, seed) == results(again, point, seed)


@pytest.mark.parametrize("block", ["B0", "2, B0"])
@pytest.mark.parametrize("name", GROWN)
def test_a_block_computes_what_the_grid_alone_walked(block, name):
    text = (
        TEXT.format(clause=f"meta_block({block})", body=GROWN[name])
        .replace("(int i = 1", "(int g = 0; g < 3; g++) meta_for (int i = 1")
        .replace("float b[n][m]", "float b[3][n][m]")
        .replace("b[i]", "b[g][i]")
    )
    schedule = "grow(one, 2); grow(one_1, 4)" if block == "B0" else "grow(one, 2); grow(i_thread, 4)"
    first, more = program(text), grown(text, schedule)
    assert not isinstance(more, Refused), more.reason
    again = program(metafork_text(more))
    assert again == more
    for seed, point in enumerate(POINTS):
        assert results(first, point, seed) == results(again, point, seed)


NESTS = """
#include <assert.h>
void f(int n, int B, const float a[n], float b[n])
{{
  assert({known});
  meta_schedule {{
    meta_for (int i = 0; i < {extent}; i++)
      meta_for (int u = 0; u < B; u++) {{
        {body}
      }}
  }}
}}
"""


FAR = "n <= 1000000 && B <= 1024"
PLACE = "int x = i * B + u;"


@pytest.mark.parametrize(
    ("extent", "body", "why"),
    [
        ("n", "b[i * B + u] = a[i * B + u];", "no condition is known"),
        ("(n + B - 1) / B", f"{PLACE} if (x < n) b[x] = a[u];", "in another way"),
        ("(n + B - 1) / B", "int x = u * ((n + B - 1) / B) + i; if (x < n) b[x] = a[x];", "in another way"),
    ],
)
def test_other_nests_stay(extent, body, why):
    found = grown(NESTS.format(extent=extent, body=body, known=FAR), "grow(u, 4)")
    assert isinstance(found, Refused)
    assert why in found.reason


@pytest.mark.parametrize(
    ("extent", "body", "known"),
    [
        ("n / B", "b[i * B + u] = a[i * B + u];", "n > 0"),
        ("n / B", "int x = 1 + i * B + u; if (a[x - 1] > 0.5f) b[x - 1] = a[x - 1];", "n > 0"),
        ("n / B", f"{PLACE} if (x % 3) b[x] = a[x]; else b[x] = 2 * a[x];", "n > 0"),
        ("(n + B - 1) / B", f"{PLACE} if (x < n) b[x] = 1;", "n > 0"),
        ("(n + B - 1) / B", "if (i * B + u < n) b[i * B + u] = 1;", "n > 0"),
        ("(n + B - 1) / B", f"{PLACE} int y = 2140 * x; if (x < n) b[x] = y;", FAR),
        ("(n + B - 1) / B", f"{PLACE} int y = -2147 * x; if (x < n) b[x] = y;", FAR),
        ("(n + B - 1) / B", f"{PLACE} int y = x * x; if (x < n) b[x] = y;", "n <= 40000 && B <= 1024"),
    ],
)
def test_a_condition_leaves_out_what_lies_behind_the_last_block(extent, body, known):
    text = NESTS.format(extent=extent, body=body, known=known)
    first, more = program(text), grown(text, "grow(u, 4)")
    assert not isinstance(more, Refused), more.reason
    (phase,) = more.body
    assert isinstance(phase.body[0], ir.If)
    assert program(metafork_text(more)) == more
    for seed, (n, size) in enumerate([(9, 2), (40, 5), (23, 3), (8, 8), (3, 4)]):
        if n >= size or "B - 1" in extent:
            point = {"n": n, "B": size}
            assert results(first, point, seed) == results(more, point, seed)


@pytest.mark.parametrize("body", [PLACE, f"{PLACE} int y = 2000 * x, z = -x;", f"int y = 2 * n; {PLACE}"])
def test_nests_that_people_wrote_grow_where_all_is_proved(body):
    text = NESTS.format(extent="(n + B - 1) / B", body=f"{body} if (x < n) b[x] = a[x];", known=FAR)
    assert not isinstance(grown(text, "grow(u, 4)"), Refused)


def test_loops_of_the_grid_do_not_grow():
    found = grown(TEXT.format(clause="meta_block(B0, B1)", body=GROWN["a stencil"]), "grow(i_block, 4)")
    assert isinstance(found, Refused)
    assert "no thread loop" in found.reason
