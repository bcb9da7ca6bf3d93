"""Programs for tests: the body of a schedule in a few words of C."""

from metafork.analysis.analyses import Analyses
from metafork.analysis.exactness import with_exactness
from metafork.comprehensive.scheduled import scheduled_unit
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import Program, Version
from metafork.strategies.caching import with_cached_arrays
from metafork.strategies.strategy import Applied
from metafork.strategies.threads.unroll_and_jam import UnrollAndJam


def program(text: str, number: int = 0, name: str = "test.mf") -> Program:
    """Return a schedule of a text, with its directives applied and the cached arrays chosen."""
    unit = scheduled_unit(parse(Source(name, text)))
    return with_cached_arrays(with_exactness(unit.schedules[number].program)).program


def jammed(one: Program, most: int = 4) -> Program:
    """Return a program with up to so many iterations of loops together, as far as ``unroll_and_jam`` finds any."""
    result = UnrollAndJam(most=most).apply(Version(one), Analyses())
    return result.version.program if isinstance(result, Applied) else one


JACOBI = """
void jacobi1d(int T, int N, int s, int B, int a[2 * N]) {
  int dim = (N - 2) / (s * B);
  for (int t = 0; t < T; ++t)
    meta_schedule cache(a) {
      meta_for (int i = 0; i < dim; i++)
        meta_for (int j = 0; j < B; j++)
          for (int k = 0; k < s; ++k) {
            int p = i * s * B + k * B + j;
            int p1 = p + 1;
            int p2 = p + 2;
            int np = N + p;
            int np1 = N + p + 1;
            int np2 = N + p + 2;
            if (t % 2)
              a[p1] = (a[np] + a[np1] + a[np2]) / 3;
            else
              a[np1] = (a[p] + a[p1] + a[p2]) / 3;
          }
    }
}
"""

TRANSPOSE = """
void transpose(int N, int s, int B0, int B1, int a[N][N], int c[N * N]) {
  int dim0 = N / B0, dim1 = N / (s * B1);
  meta_schedule cache(a, c) {
    meta_for (int v0 = 0; v0 < dim0; v0++)
      meta_for (int v1 = 0; v1 < dim1; v1++)
        meta_for (int u0 = 0; u0 < B0; u0++)
          meta_for (int u1 = 0; u1 < B1; u1++)
            for (int k = 0; k < s; ++k) {
              int i = v0 * B0 + u0;
              int j = (v1 * s + k) * B1 + u1;
              c[i * N + j] = a[i][j];
            }
  }
}
"""

MATMUL = """
void matmul(int n, int B0, int ub1, int s, float a[n][n], float b[n][n], float c[n][n]) {
  assert(B0 <= ub1 * s);
  int dim0 = n / B0, dim1 = n / (ub1 * s);
  meta_schedule {
    meta_for (int i = 0; i < dim0; i++)
      meta_for (int j = 0; j < dim1; j++)
        for (int k = 0; k < n / B0; k++)
          meta_for (int v = 0; v < B0; v++)
            meta_for (int u = 0; u < ub1; u++) {
              int p = i * B0 + v;
              int q = j * ub1 * s + u;
              for (int z = 0; z < B0; z++)
                for (int w = 0; w < s; w++) {
                  int x = w * ub1;
                  c[p][q + x] += a[p][B0 * k + z] * b[B0 * k + z][q + x];
                }
            }
  }
}
"""

MATADD = """
void matadd(int N, int B0, int B1, int a[N][N], int b[N][N], int c[N][N]) {
  int dim0 = N / B0, dim1 = N / (2 * B1);
  meta_schedule {
    meta_for (int v = 0; v < dim0; v++)
      meta_for (int p = 0; p < dim1; p++)
        meta_for (int u = 0; u < B0; u++)
          meta_for (int q = 0; q < B1; q++) {
            int i = v * B0 + u;
            int j = p * B1 + q;
            if (i < N && j < N / 2) {
              c[i][j] = a[i][j] + b[i][j];
              c[i][j + N / 2] = a[i][j + N / 2] + b[i][j + N / 2];
            }
          }
  }
}
"""

# A matrix times a vector in tiles, of which each thread walks a row.
ROWS = """
void rows(int n, int B, const ELEMENT a[n][n], const ELEMENT x[n], ELEMENT y[n])
{
  int blocks = n / B;
  meta_schedule cache(a, x) {
    meta_for (int i = 0; i < blocks; i++)
      for (int t = 0; t < n / B; t++)
        meta_for (int u = 0; u < B; u++)
          for (int k = 0; k < B; k++)
            y[i * B + u] += a[i * B + u][t * B + k] * x[t * B + k];
  }
}"""
