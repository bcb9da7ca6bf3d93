"""Functions, results by pointer and blocks of other dimensions than the grid: every leaf against the serial elision."""

from comprehensive.verification import Options, verify

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


def test_every_leaf_computes_what_the_serial_elision_does():
    found = verify(
        PROGRAM,
        counters=("threads_per_block", "shared_memory"),
        options=Options(points=8, jobs=1, optimization="-O0", dataflow_seconds=0),
    )
    assert [failure.text() for failure in found.failures] == []
    assert {row.schedule for row in found.leaves} == {f"input_k{number}" for number in range(3)}
    assert all(row.points for row in found.leaves)
    assert any("caching" in row.strategies for row in found.leaves if row.schedule == "input_k1")


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


def test_no_compiler_computes_a_function_of_the_library_itself():
    # gcc makes x * x of the power, and a number of tgamma(4.7) whose last bits are others, but not at every level.
    options = Options(points=12, jobs=1, dataflow_seconds=0)
    found = verify(LIBRARY, counters=("threads_per_block",), strategies=(), options=options)
    assert found.passed, found.table()
