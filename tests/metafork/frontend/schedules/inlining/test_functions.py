"""Functions, results by pointer and blocks of other dimensions than the grid: every leaf against the serial elision."""

import pytest

from metafork.comprehensive.verification import Options, verify
from metafork.frontend import parse
from metafork.frontend.text import syntax
from metafork.ir.messages.source import Source

PROGRAM = """
#include <assert.h>
#include <math.h>
#define SWAP(type, x, y) do { type kept = x; x = y; y = kept; } while (0)

static int across(int a, int b) { return (a + b - 1) / b; }
static float row(int m, const float x[m])
{
  float sum = 0;
  for (int k = 0; k < m; k++) {
    if (x[k] < -0.5f) return -sum;
    sum += x[k];
  }
  return sum;
}
static void order(float *x, float *y) { if (*x <= *y) return; SWAP(float, *x, *y); }

void rows(int n, int m, int B, const float a[n][m], float c[n])
{
  meta_schedule {
    meta_for (int i = 0; i < across(n, B); i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p >= n) continue;
        float x = row(m, a[p]), y = a[p][0];
        order(&x, &y);
        c[p] = fmaxf(-INFINITY, x) + 2 * y;
      }
  }
}

void products(int n, int m, int B, const float a[n][m], const float b[m][m], float c[n][m])
{
  assert(m % B == 0);
  meta_schedule {
    meta_for (int i = 0; i < n; i++)
      meta_for (int j = 0; j < across(m, B); j++)
        for (int z = 0; z < m / B; z++)
          meta_for (int u = 0; u < B; u++)
            for (int k = 0; k < B; k++)
              c[i][j * B + u] += a[i][z * B + k] * b[z * B + k][j * B + u];
  }
}

#pragma metafork extents(x[n * m])
void longest(const float *x, int n, int m, float *most)
{
  meta_schedule {
    meta_for (int i = 0; i < 1; i++) {
      float best[n];
      meta_for (int p = 0; p < n; p++)
        meta_for (int one = 0; one < 1; one++)
          best[p] = row(m, x + p * m);
      meta_for (int p = 0; p < 1; p++)
        meta_for (int one = 0; one < 1; one++) {
          *most = best[0];
          for (int k = 1; k < n; k++) { if (best[k] <= most[0]) continue; most[0] = best[k]; }
        }
    }
  }
}
"""


@pytest.mark.slow
def test_every_leaf_computes_what_the_serial_elision_does():
    found = verify(
        PROGRAM,
        counters=("threads_per_block", "shared_memory"),
        options=Options(points=8, jobs=1, optimization="-O0", dataflow_seconds=0),
        machine="all",
    )
    assert [failure.text() for failure in found.failures] == []
    assert {row.schedule for row in found.rows} == {f"input_k{number}" for number in range(3)}
    assert all(row.points for row in found.rows)
    assert any("caching" in row.strategies for row in found.rows if row.schedule == "input_k1")


LIBRARY = """
#include <math.h>
void f(int n, int B, const double x[n], double y[n])
{
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++) {
      double w = 4.7;
      y[i] = pow(x[i], 2) + x[i] * tgamma(w);
    }
  }
}
"""


@pytest.mark.slow
def test_no_compiler_computes_a_function_of_the_library_itself():
    # gcc makes x * x of the power, and a number of tgamma(4.7) whose last bits are others, but not at every level.
    options = Options(points=12, jobs=1, dataflow_seconds=0)
    found = verify(LIBRARY, counters=("threads_per_block",), strategies=(), options=options, machine="all")
    assert found.passed, found.table()


CALLS = """
#include <math.h>
static int get(const int *x, int i, int *out) { if (x[i] < 0) return 0; *out = x[i]; return 1; }
static unsigned next(unsigned *s) { *s = *s * 1664525u + 1013904223u; return *s >> 8; }
static float gauss(unsigned *s) { return (float)(next(s) % 1000) / 500 - 1; }
static int small(int i) { int k = i; k = k * 2; return k > 4; }
typedef struct { float x, y, z, r; } Sphere;
static int hit(Sphere s, float ox, float oy, float *t) {
  float dx = ox - s.x, dy = oy - s.y, d = s.r * s.r - dx * dx - dy * dy;
  if (d < 0) return 0;
  *t = s.z - sqrtf(d);
  return *t > 0;
}
void f(int n, int m, int B, const int x[n], int y[n], const Sphere s[m], float depth[n])
{
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++) {
      int v, w = 0; unsigned seed = i;
      if (get(x, i, &v)) y[i] = v;
      if (small(i) && get(x, i / 2, &w) && w > 3) y[i] += w; else y[i] -= w;
      if (!get(x, n - 1 - i, &w) || w == 5) y[i] += 7 * w;
      int rounds = 0;
      while (next(&seed) % 7 != 0) rounds++;
      y[i] += rounds;
      do { rounds--; } while (next(&seed) % 3 != 0 && rounds > 0);
      y[i] += rounds;
      float best = 1e30f, t, S = 1;
      for (int k = 0; k < m; k++)
        if (hit(s[k], i, 2, &t) && t < best) best = t;
      S *= expf(0.1f + 0.2f * gauss(&seed));
      depth[i] = best + S;
    }
  }
}
"""


@pytest.mark.slow
def test_calls_that_write_may_stand_where_a_condition_has_an_order():
    options = Options(points=12, jobs=1, dataflow_seconds=0, optimization="-O0")
    found = verify(CALLS, counters=("threads_per_block",), strategies=(), options=options, machine="all")
    assert found.passed, found.table()


LARGE = """
#define N 30000
void smooth(const float a[N], float b[N])
{
  meta_schedule meta_block(256) { meta_for (int i = 1; i < N - 1; i++) b[i] = (a[i - 1] + a[i] + a[i + 1]) / 3; }
}
"""


@pytest.mark.slow
def test_sizes_in_the_text_may_be_large():
    options = Options(points=12, jobs=1, dataflow_seconds=0, optimization="-O0")
    found = verify(LARGE, counters=("threads_per_block",), strategies=(), options=options, machine="all")
    assert found.passed, found.table()
    assert all(0 < row.points <= 3 for row in found.rows)


def test_a_body_is_looked_through_as_often_however_many_parameters_it_has(monkeypatch):
    walked = []
    walk = syntax.expressions_in
    monkeypatch.setattr(syntax, "expressions_in", lambda body: walked.append(body) or walk(body))
    counts = set()
    for many in (3, 30):
        walked.clear()
        parameters = ", ".join(f"int a{number}" for number in range(many))
        terms = " + ".join(f"a{number}" for number in range(many))
        values = ", ".join(f"i * {number}" for number in range(many))
        parse(
            Source(
                "terms.mf",
                f"""
                static int all({parameters}) {{ return {terms}; }}
                void terms(int n, int x[n])
                {{
                  meta_schedule meta_block(64) {{
                    meta_for (int i = 0; i < n; i++)
                      x[i] = all({values});
                  }}
                }}
                """,
            )
        )
        counts.add(len(walked))
    assert len(counts) == 1
