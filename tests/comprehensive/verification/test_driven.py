"""``verify`` calls functions of every kind: static ones, and such whose sizes or results are no parameters."""

import re

import pytest
from msgspec.structs import replace

from metafork.comprehensive.verification import Options, plain_code, verify

SUM = """
  int sum = 0;
  meta_schedule meta_block(B) {
    meta_reduction(+: sum)
    meta_for (int i = 0; i < n; i++)
      sum += x[i];
  }
"""
PROGRAM = f"""
#include <stddef.h>
int GS = 4;
static const int W = 8;
static int shift;
#define HALF (GS / 2)
typedef struct {{ float most; int count; }} range;
#pragma metafork extents(s[n / GS])
void by_a_variable(int n, int B, const float *s, float y[n], float z[n][W])
{{
  meta_schedule meta_block(B) {{ meta_for (int i = 0; i < n / GS; i++) y[i] = s[i] + shift + z[i][W - 1]; }}
}}
#pragma metafork extents(s[n * HALF + shift + 1])
static void by_two(int n, int B, const float *s, float y[n])
{{
  meta_schedule meta_block(B) {{ meta_for (int i = 0; i < n; i++) y[i] = s[i * HALF + shift]; }}
}}
void pointed(int n, int B, const int *x, int *result) {{ {SUM} *result = sum; }}
static inline range several(int n, int B, const int x[n], range *out, double *const restrict more, const size_t *scale,
                            unsigned char ends[static 2])
{{ {SUM}
  range r = {{sum, n}};
  out[1] = r, more[0] = sum * (double)*scale, ends[1] = sum;
  return r;
}}
static int returned(int n, int B, const int x[n]) {{ {SUM} return sum; }}
"""
OPTIONS = Options(points=2, dataflow_seconds=0, optimization="-O0", races=False)


def verified(text, **more):
    return verify(text, counters=("threads_per_block",), strategies=(), machine="all", options=OPTIONS, **more)


@pytest.mark.slow
def test_functions_of_every_kind_are_called():
    found = verified(PROGRAM)
    assert found.passed, found.table()
    assert all(row.points for row in found.rows), found.table()
    assert len(found.rows) == 5


def test_what_only_the_host_gets_is_compared():
    def wrong(leaf):
        plain = plain_code(leaf)
        return replace(plain, text=re.sub(r"(int \w+ = |[+]= )x\[(.*?)\];", r"\1x[\2] + 1;", plain.text))

    text = f"""
void pointed(int n, int B, const int *x, int *result) {{ {SUM} *result = sum; }}
static int returned(int n, int B, const int x[n]) {{ {SUM} return sum; }}
"""
    found = verified(text, code_of=wrong)
    told = {failure.schedule: failure.message for failure in found.failures}
    assert "result differs at element 0" in told["input_k0"]
    assert "what is returned differs" in told["input_k1"]


TABLES = """
void sums(int n, int m, int B, float **x, float *const out[2]) {
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++) {
      float s = 0;
      for (int k = 0; k < m; k++) s += x[i][k];
      out[1][i] = s;
    }
  }
}
void steps(int n, int B, double **r) {
  for (int s = 0; s < 3; s++) {
    meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) r[1][i] = r[0][i] + s; }
    double *t = r[0]; r[0] = r[1]; r[1] = t;
  }
}
"""


def test_tables_of_pointers_lead_to_rows():
    def wrong(leaf):
        plain = plain_code(leaf)
        return replace(plain, text=re.sub(r"(r_0\w*\[\w+\] \+ s)", r"\1 + 1", plain.text))

    found = verified(TABLES)
    assert found.passed, found.table()
    assert all(row.points for row in found.rows), found.table()
    found = verified(TABLES.replace("n; i++) r[1]", "n - 1; i++) r[1]"), code_of=wrong)
    assert [failure.schedule for failure in found.failures][:1] == ["input_k1"], found.table()
