"""Small programs that several back ends are tested with: texts, values of parameters, and options."""

TYPES = """
#include <stdbool.h>
void kinds(int n, int B, bool flag, signed char sc, unsigned char uc, short sh, unsigned short us, unsigned u,
           long long ll, unsigned long long ull, float f, double d, const signed char c[n], const short s[n],
           const unsigned long long q[n], signed char rc[n], unsigned short rs[n], long long rl[n], double rd[n]) {
  int blocks = (n + B - 1) / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p < n) {
          rc[p] = (signed char)((c[p] + sc) & 63) + (s[p] > sh && flag);
          rs[p] = (unsigned short)(s[p] * us + uc);
          rl[p] = (long long)(q[p] * ull + u) ^ ll;
          rd[p] = d * f + (flag ? uc : sc) + (double)(q[p] >> 3) / 3;
        }
      }
  }
}
"""

NAMES = """
void class(int n, int stream, int leaf, const float m[n], float middle[n], float out[n]) {
  int blocks = n / leaf;
  meta_schedule cache(m) {
    meta_for (int new = 0; new < blocks; new++)
      meta_for (int this = 0; this < leaf; this++)
        middle[new * leaf + this] = m[new * leaf + this] * stream;
  }
  for (int delete = 0; delete < 2; delete++) {
    meta_schedule cache(middle) {
      meta_for (int new = 0; new < blocks; new++)
        meta_for (int this = 0; this < leaf; this++)
          out[new * leaf + this] = middle[new * leaf + leaf - 1 - this] + delete;
    }
    out[0] += 1;
  }
}
"""

COLUMNS = """
void columns(int n, int B, float A[n][n], float x[n]) {
  for (int s = 0; s < 3; s++) {
    meta_schedule {
      meta_for (int i = 0; i < n; i++)
        meta_for (int j = 0; j < B; j++)
          for (int k = j; k < n; k += B)
            A[i][k] = A[i][k] + x[k];
    }
    for (int i = 0; i < n; i++) A[i][s + 1] = x[i] - A[i][s + 3];
  }
}
"""

NUMBERS = {"sc": -3, "uc": 200, "u": 4294967295, "ull": 98765432109, "f": 0.3, "d": -1.75}

SWIZZLE = {
    "counters": ("threads_per_block", "shared_memory", "bank_degree"),
    "strategies": ("granularity", "caching", "swizzle"),
}
STRIDING = {"counters": ("threads_per_block",), "strategies": ("thread_striding",)}

FLOATS = """
#include <math.h>
void kinds(int n, int B, float f, double d, const float x[n], const double y[n], float a[n], double b[n], int k[n]) {
  int blocks = (n + B - 1) / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p < n) {
          a[p] = x[p] * f + (float)d / (x[p] + 3.0f) - sqrtf(fabsf(x[p])) * x[p];
          b[p] = y[p] * d + y[p] / (x[p] + 2.0) + sqrt(y[p] * y[p] + f) + fma(y[p], d, 1.0) + floor(y[p] * 10);
          k[p] = (int)(x[p] * 100) % 7 + (k[p] >> 2) - (unsigned char)(k[p] * 77) + (x[p] < y[p] ? 3 : k[p] / 3);
        }
      }
  }
}
"""

CALLS = """
#include <math.h>
void roots(int n, int B, const float x[n], float y[n]) {
  int blocks = n / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int j = 0; j < B; j++) y[i * B + j] = sqrtf(x[i * B + j] + 4);
  }
}
void waves(int n, int B, const float x[n], float y[n]) {
  int blocks = n / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int j = 0; j < B; j++) y[i * B + j] = expf(x[i * B + j]) + sinf(y[i * B + j]);
  }
}
"""

COMPLEX = """
#include <complex.h>
void rotated(int n, int m, int B, const float complex x[n], float complex y[n], double complex z[m]) {
  meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) {
    float complex w = x[i] * y[i] - conjf(y[i]) * I;
    for (int k = 0; k < 3; k++) w = w * w / 2 + (crealf(x[i]) - k);
    y[i] = w;
  } }
  meta_schedule meta_block(B) { meta_for (int i = 0; i < m; i++) {
    if (z[i] != 3) z[i] = z[i] * CMPLX(1e300, cimag(z[i]) * 1e308) * 1e100;
  } }
}
"""
