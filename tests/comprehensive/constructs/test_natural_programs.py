"""Programs as a new user writes them, with pointers and early ends: accepted at first try, and right on all leaves."""

import pytest

from metafork.analysis.exactness import exact_unit
from metafork.analysis.races.diagnostics import check_races
from metafork.comprehensive.reading import parse
from metafork.comprehensive.verification import Options, verify
from metafork.ir.messages.source import Source

PROGRAMS = {
    "srad": """
#include <math.h>
#define BLOCK 16
#define IDX(i, j) ((i) * cols + (j))
void srad(int rows, int cols, int B, float q0sqr, const float *J, float *c, float *dN)
{
  meta_schedule {
    meta_for (int bi = 0; bi < (rows + BLOCK - 1) / BLOCK; bi++)
      meta_for (int bj = 0; bj < (cols + BLOCK - 1) / BLOCK; bj++)
        meta_for (int ti = 0; ti < BLOCK; ti++)
          meta_for (int tj = 0; tj < BLOCK; tj++) {
            const int i = bi * BLOCK + ti;
            const int j = bj * BLOCK + tj;
            if (i < rows && j < cols) {
              int iN = i == 0 ? 0 : i - 1, iS = i == rows - 1 ? i : i + 1;
              int jW = j == 0 ? 0 : j - 1, jE = (j == cols - 1) ? j : j + 1;
              const float Jc = J[IDX(i, j)];
              float n = J[IDX(iN, j)] - Jc, s = J[IDX(iS, j)] - Jc, w = J[IDX(i, jW)] - Jc, e = J[IDX(i, jE)] - Jc;
              float G2 = (n * n + s * s + w * w + e * e) / (Jc * Jc);
              float L = (n + s + w + e) / Jc;
              float num = (0.5f * G2) - ((1.0f / 16.0f) * (L * L));
              float den = 1 + (.25f * L);
              float qsqr = num / (den * den);
              den = (qsqr - q0sqr) / (q0sqr * (1 + q0sqr));
              float r = 1.0f / (1.0f + den);
              if (r < 0) r = 0; else if (r > 1) r = 1;
              c[IDX(i, j)] = r;
              dN[IDX(i, j)] = n;
            }
          }
  }
}
""",
    "assignment of k-means": """
#include <float.h>
int kmeans(int npoints, int nfeatures, int nclusters, int B, const float *features, const float *clusters,
           int *membership)
{
  int delta = 0;
  int nblocks = (npoints + B - 1) / B;
  meta_schedule {
    meta_reduction(+: delta)
    meta_for (int b = 0; b < nblocks; b++)
      meta_for (int t = 0; t < B; t++) {
        int id = b * B + t;
        if (id >= npoints) continue;
        int index = -1;
        float min_dist = FLT_MAX;
        for (int i = 0; i < nclusters; i++) {
          float ans = 0.0;
          for (int l = 0; l < nfeatures; l++)
            ans += (features[id * nfeatures + l] - clusters[i * nfeatures + l]) *
                   (features[id * nfeatures + l] - clusters[i * nfeatures + l]);
          if (ans < min_dist) { min_dist = ans; index = i; }
        }
        if (membership[id] != index) delta++;
        membership[id] = index;
      }
  }
  return delta;
}
""",
    "lattice on a torus": """
enum { C = 0, N, S, E, W, DIRS };
static inline int wrap(int i, int n) { return i < 0 ? i + n : i >= n ? i - n : i; }
void stream(int nx, int ny, int B, const double *restrict f, double *restrict g)
{
  meta_schedule {
    meta_for (int y = 0; y < ny; y++)
      meta_for (int bx = 0; bx < (nx + B - 1) / B; bx++)
        meta_for (int one = 0; one < 1; one++)
        meta_for (int tx = 0; tx < B; tx++) {
          int x = bx * B + tx;
          if (x >= nx) continue;
          int up = (y + 1) % ny, down = (y + ny - 1) % ny;
          int left = wrap(x - 1, nx), right = wrap(x + 1, nx);
          g[(y * nx + x) * DIRS + C] = f[(y * nx + x) * DIRS + C];
          g[(y * nx + x) * DIRS + N] = f[(down * nx + x) * DIRS + N];
          g[(y * nx + x) * DIRS + S] = f[(up * nx + x) * DIRS + S];
          g[(y * nx + x) * DIRS + E] = f[(y * nx + left) * DIRS + E];
          g[(y * nx + x) * DIRS + W] = f[(y * nx + right) * DIRS + W];
        }
  }
}
""",
    "option prices": """
#include <math.h>
#define INV_SQRT2 0.70710678118654752440f
static float cnd(float d)
{
  const float A1 = 0.31938153f, A2 = -0.356563782f;
  float K = 1.0f / (1.0f + 0.2316419f * fabsf(d));
  float r = (A1 * K + A2 * K * K);
  if (d > 0) r = 1.0f - r;
  return r;
}
static void price(float *call, float *put, float S, float X, float T, float R, float V)
{
  float sqrtT = sqrtf(T), d1 = (S / X + (R + 0.5f * V * V) * T) / (V * sqrtT), d2 = d1 - V * sqrtT;
  float c1 = cnd(d1), c2 = cnd(d2), e = 1 / (1 + R * T);
  *call = S * c1 - X * e * c2;
  *put = X * e * (1.0f - c2) - S * (1.0f - c1);
}
void options(unsigned n, unsigned B, const float *S, const float *X, const float *T, float R, float V,
             float *call, float *put)
{
  meta_schedule
    meta_for (unsigned b = 0; b < (n + B - 1) / B; b++)
      meta_for (unsigned t = 0; t < B; ++t) {
        unsigned opt = b * B + t;
        if (opt < n) price(&call[opt], &put[opt], S[opt], X[opt], T[opt], R, V);
      }
}
""",
    "softmax": """
#include <math.h>
void softmax(int rows, int cols, int B, const float *in, float *out)
{
  meta_schedule {
    meta_for (int r = 0; r < rows; r++) {
      float top = -INFINITY;
      meta_reduction(max: top)
      meta_for (int t = 0; t < B; t++)
        for (int c = t; c < cols; c += B)
          top = fmaxf(top, in[r * cols + c]);
      float sum = 0.0f;
      meta_reduction(+: sum)
      meta_for (int t = 0; t < B; t++)
        for (int c = t; c < cols; c += B)
          sum += 1 / (1 + top - in[r * cols + c]);
      meta_for (int t = 0; t < B; t++)
        for (int c = t; c < cols; c += B)
          out[r * cols + c] = 1 / (1 + top - in[r * cols + c]) / sum;
    }
  }
}
""",
    "convolution of rows": """
#define R 3
static const float kernel[2 * R + 1] = {0.03125f, 0.109375f, 0.21875f, 0.28125f, 0.21875f, 0.109375f, 0.03125f};
void convolve(int h, int w, int B, const unsigned char *src, unsigned char *dst)
{
  meta_schedule meta_grid(2) {
    meta_for (int y = 0; y < h; y++)
      meta_for (int bx = 0; bx < (w + B - 1) / B; bx++) {
        float tile[B + 2 * R];
        meta_for (int t = 0; t < B; t++)
          for (int k = t; k < B + 2 * R; k += B) {
            int x = bx * B + k - R;
            tile[k] = x < 0 || x >= w ? 0 : src[y * w + x];
          }
        meta_for (int t = 0; t < B; t++) {
          float sum = 0;
          for (int k = -R; k <= R; k++) sum += kernel[k + R] * tile[t + k + R];
          if (bx * B + t < w) dst[y * w + bx * B + t] = (unsigned char)(sum + 0.5f);
        }
      }
  }
}
""",
    "product of pointers": """
#include <math.h>
#define TS 16
typedef float real;
void sgemm(int M, int N, int K, real alpha, const real *A, const real *B, real beta, real *C)
{
  meta_schedule {
    meta_for (int by = 0; by < (M + TS - 1) / TS; by++)
      meta_for (int bx = 0; bx < (N + TS - 1) / TS; bx++) {
        real As[TS][TS], Bs[TS][TS], acc[TS][TS];
        meta_for (int ty = 0; ty < TS; ty++)
          meta_for (int tx = 0; tx < TS; tx++)
            acc[ty][tx] = 0;
        for (int t = 0; t < (K + TS - 1) / TS; t++) {
          meta_for (int ty = 0; ty < TS; ty++)
            meta_for (int tx = 0; tx < TS; tx++) {
              int row = by * TS + ty, col = bx * TS + tx;
              As[ty][tx] = (row < M && t * TS + tx < K) ? A[row * K + t * TS + tx] : 0;
              Bs[ty][tx] = (t * TS + ty < K && col < N) ? B[(t * TS + ty) * N + col] : 0;
            }
          meta_for (int ty = 0; ty < TS; ty++)
            meta_for (int tx = 0; tx < TS; tx++)
              for (int k = 0; k < TS; k++)
                acc[ty][tx] += As[ty][k] * Bs[k][tx];
        }
        meta_for (int ty = 0; ty < TS; ty++)
          meta_for (int tx = 0; tx < TS; tx++) {
            int row = by * TS + ty, col = bx * TS + tx;
            if (row < M && col < N) C[row * N + col] = alpha * acc[ty][tx] + beta * C[row * N + col];
          }
      }
  }
}
""",
    "game of life": """
#define ALIVE 1
int life(int h, int w, int BX, int BY, const unsigned char *restrict now, unsigned char *restrict next)
{
  int alive = 0;
  meta_schedule {
    meta_reduction(+: alive)
    meta_for (int by = 0; by < (h + BY - 1) / BY; by++)
      meta_for (int bx = 0; bx < (w + BX - 1) / BX; bx++)
        meta_for (int ty = 0; ty < BY; ty++)
          meta_for (int tx = 0; tx < BX; tx++) {
            int y = by * BY + ty, x = bx * BX + tx;
            if (y < h && x < w) {
              int n = 0;
              for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++)
                  if (dx || dy)
                    n += now[((y + dy + h) % h) * w + (x + dx + w) % w];
              unsigned char self = now[y * w + x];
              next[y * w + x] = n == 3 || (n == 2 && self == ALIVE);
              if (n == 3 || (n == 2 && self)) alive++;
            }
          }
  }
  return alive;
}
""",
    "scan": """
void scan(int n, int B, const int *in, int *out, int *sums)
{
  meta_schedule {
    meta_for (int b = 0; b < (n + B - 1) / B; b++) {
      int buf[2][B];
      int cur = 0;
      meta_for (int t = 0; t < B; t++)
        buf[0][t] = b * B + t < n ? in[b * B + t] : 0;
      for (int d = 1; d < B; d *= 2) {
        meta_for (int t = 0; t < B; t++)
          buf[1 - cur][t] = t >= d ? buf[cur][t] + buf[cur][t - d] : buf[cur][t];
        cur = 1 - cur;
      }
      meta_for (int t = 0; t < B; t++) {
        if (b * B + t < n) out[b * B + t] = buf[cur][t];
        if (t == B - 1) sums[b] = buf[cur][t];
      }
    }
  }
}
""",
    "states of generators": """
static unsigned next(unsigned *state) { *state = *state * 1664525u + 1013904223u; return *state >> 8; }
void fill(int n, int per, unsigned *states, float *out)
{
  meta_schedule meta_block(64)
    meta_for (int i = 0; i < n; i++)
      for (int k = 0; k < per; k++)
        out[i * per + k] = next(&states[i]) * (1.0f / 16777216);
}
""",
    "norm": """
double norm(int n, int B, const double *x)
{
  double total = 0, most = 0;
  meta_schedule
    meta_reduction(+: total) meta_reduction(max: most)
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int t = 0; t < B; t++)
        if (i * B + t < n) { total += x[i * B + t] * x[i * B + t]; if (x[i * B + t] > most) most = x[i * B + t]; }
  return most > 0 ? total / most : total;
}
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sampled(4)
def test_accepted_without_a_warning(name):
    unit = exact_unit(parse(Source("natural.mf", PROGRAMS[name]), reassociate=True))
    assert check_races(unit, strict=True) == ()


@pytest.mark.slow
def test_every_leaf_is_right():
    text = "\n".join(PROGRAMS[name] for name in ("lattice on a torus", "softmax"))
    options = Options(points=3, races=False, dataflow_seconds=0, optimization="-O0")
    found = verify(
        text, counters=("shared_memory",), strategies=("caching",), reassociate=True, options=options, machine="all"
    )
    assert found.passed, found.table()
    assert all(row.points for row in found.rows)
