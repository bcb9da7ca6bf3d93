"""Pointers have as many elements as malloc has given them, where their accesses do not say how many."""

import pytest

from metafork.comprehensive.reading import parse
from metafork.ir.messages.source import Source
from metafork.printing.expressions import expression


def program(memory, before="", head=""):
    return f"""#include <stdlib.h>
void f(int n, int m, int B, const int k[n], float y[n])
{{
  {head}
  {memory}
  for (int i = 0; i < n; i++) t[i] = i;
  {before}
  meta_schedule meta_block(B) {{
    meta_for (int i = 0; i < n; i++) if (k[i] > 0) y[i] = t[k[i]];
  }}
  free(t);
}}
"""


GIVEN = {
    "float *t = malloc(n * sizeof *t);": "n",
    "float *t = (float *)malloc(sizeof(float) * (n + m));": "n + m",
    "float *t; t = malloc(2 * n * sizeof(t[0]));": "2 * n",
    "float *t = calloc(n, sizeof(float));": "n",
    "float *t = calloc(sizeof *t, n);": "n",
}


@pytest.mark.parametrize("memory", GIVEN)
def test_memory_that_is_given_says_the_extent(memory):
    (schedule,) = parse(Source("f.mf", program(memory))).schedules
    arrays = {array.name: array for array in schedule.program.arrays}
    assert expression(arrays["t"].extents[0]) == GIVEN[memory]


@pytest.mark.parametrize(
    ("memory", "before", "head"),
    [
        ("float *t = malloc(n * sizeof(double));", "", ""),
        ("float *t = malloc(n);", "", ""),
        ("float *t = malloc(n * sizeof *t);", "t = t + 1;", ""),
        ("float *t = malloc(n * sizeof *t);", "if (m > 3) t = realloc(t, m * sizeof *t);", ""),
        ("float *t = malloc(c * sizeof *t);", "c = 2 * c;", "int c = n;"),
        ("float *t = 0; if (m > 0) t = malloc(n * sizeof *t);", "", ""),
    ],
)
def test_what_may_have_changed_says_nothing(memory, before, head):
    (warning,) = parse(Source("f.mf", program(memory, before, head))).warnings
    assert warning.message == "it is not known how many elements `t` has"
