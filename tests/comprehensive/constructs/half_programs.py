"""Programs whose arrays are of small floating types: each form of reading, storing and declaring them."""

FORMS = """
struct pixel { _Float16 r, g, b; };
struct mixed { int id; _Float16 w; float v; };
static float mean(int m, const _Float16 *row) { float s = 0; for (int k = 0; k < m; k++) s += row[k]; return s / m; }
void forms(int n, int B, double d, const struct pixel *p, struct mixed *q, const __bf16 *x, __bf16 *y,
           _Float16 *rows, float *out)
{
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++) {
      __bf16 tile[B];
      meta_for (int u = 0; u < B; u++) tile[u] = x[i * B + u];
      meta_for (int u = 0; u < B; u++) {
        int e = i * B + u;
        _Float16 h = p[e].r * 0.3f + p[e].g * d;
        h += p[e].b;
        _Float16 w[3] = {1, 2, 0.1};
        h = -h > 2 || !p[e].r ? h : w[e % 3];
        q[e].w = q[e].v + h++;
        q[e].v = (_Float16)(q[e].v / 3) + sizeof(h);
        y[e] = tile[B - 1 - u];
        y[e] *= 3;
        out[e] = sqrtf(fabsf(rows[e * 2])) + mean(2, rows + e * 2) + h;
        rows[e * 2 + 1] = out[e] > 1 ? rows[e * 2] : 7;
      }
    }
  }
}
"""
PRODUCT = """
#define T 4
void product(int n, const __half a[n][n], const __half b[n][n], nv_bfloat16 c[n][n])
{
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < n / T; i++)
      meta_for (int j = 0; j < n / T; j++)
        for (int k0 = 0; k0 < n; k0 += T)
          meta_for (int u = 0; u < T; u++)
            meta_for (int v = 0; v < T; v++)
              for (int k = k0; k < k0 + T && k < n; k++)
                c[i * T + u][j * T + v] += a[i * T + u][k] * b[k][j * T + v];
  }
}
"""
CONVERSIONS = """
void conversions(int n, int B, const half *x, const bfloat16 *y, float *from_half, float *from_bfloat16,
                 const float *v, half *to_half, bfloat16 *to_bfloat16)
{
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++) {
      from_half[i] = x[i];
      from_bfloat16[i] = y[i];
      to_half[i] = v[i];
      to_bfloat16[i] = v[i];
    }
  }
}
"""
"""Names of CUDA and of nobody in particular."""

HOSTS = """
#include <stdlib.h>
#include <string.h>
static const half table[4] = {1, 0.1f, -2.5, 65504};
static half twice(half h) { return h * 2; }
static float norm(const half *p, int m)
{
  float s = 0;
  for (const half *q = p; q < p + m; q++) s += *q * *q;
  return s;
}
void hosts(int n, int B, const float *x, half *y, unsigned short *bits)
{
  half *t = malloc(n * sizeof(half));
  meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) t[i] = x[i] * table[i % 4]; }
  if (n > 1) t[0] = t[1];
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++) {
      half h = twice(t[i]);
      y[i] = h;
      y[i] += norm(t + i, 1);
      unsigned short u;
      memcpy(&u, &h, sizeof u);
      u ^= bits[i];
      memcpy(&h, &u, 2);
      bits[i] = u + (h > 1);
    }
  }
  free(t);
}
"""
"""Code of the host copies such numbers: any compiler can."""

CASES = {
    "forms": (FORMS, [("", {"n": 12, "B": 4, "d": 0.37}), ("", {"n": 33, "B": 11, "d": -2.5})]),
    "product": (PRODUCT, [("", {"n": 16}), ("", {"n": 8})]),
    "hosts": (HOSTS, [("", {"n": 100, "B": 32})]),
    "conversions": (CONVERSIONS, [("", {"n": 100, "B": 32})]),
}
