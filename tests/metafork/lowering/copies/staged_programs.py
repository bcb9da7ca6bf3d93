"""Programs whose windows are copied a step ahead, and when the CPU build makes the copies."""

from tests.metafork.programs import program

PRODUCT = """
void NAME(int n, int m, int K, int B, const ELEMENT a[n][m], const ELEMENT b[m][n], ELEMENT c[n][n])
{
  int down = (n + B - 1) / B;
  meta_schedule cache(a, b) {
    meta_for (int v = 0; v < down; v++) meta_for (int w = 0; w < down; w++)
      HEAD
        meta_for (int y = 0; y < B; y++) meta_for (int x = 0; x < B; x++)
          for (int z = 0; z < K; z++) {
            int i = v * B + y, j = w * B + x, k = AT + z;
            if (i < n && j < n && k < m)
              c[i][j] += a[i][k] * b[k][j];
          }
  }
}"""
HEADS = {
    "counted": ("for (int t = 0; t < (m + K - 1) / K; t++)", "t * K"),
    "whole_tiles": ("for (int t = 0; t < m / K; t++)", "t * K"),
    "strided": ("for (int t = 0; t < m; t += K)", "t"),
    "downward": ("for (int t = m / K; t > 0; t--)", "(t - 1) * K"),
    "from_one": ("for (int t = 1; t * K <= m; t++)", "(t - 1) * K"),
    "two_conditions": ("for (int t = 0; t < m / K && t < n; t = t + 1)", "t * K"),
    "wide_counter": ("for (long t = 0; t < m / K; t++)", "(int)t * K"),
    "unsigned_counter": ("for (unsigned t = 0; t < (unsigned)(m / K); t++)", "(int)t * K"),
    "every_other": ("for (int t = 0; t < m / K; t += 2)", "t * K"),
}

BESIDE_ANOTHER = """
void beside_another(int n, int B, int s, const double a[n], const short e[n], double b[n], double c[n])
{
  int blocks = (n - 2) / (s * B);
  meta_schedule cache(a, b, e) {
    meta_for (int i = 0; i < blocks; i++)
      for (int k = 0; k < s; k++) {
        int p = (i * s + k) * B;
        meta_for (int u = 0; u < B; u++)
          b[p + u] = b[p + u] / 2 + e[p + u];
        meta_for (int u = 0; u < B; u++)
          c[p + u] = a[p + u] + a[p + u + 1] + a[p + u + 2] + b[p + B - 1 - u];
      }
  }
}"""


def product(kind, element="float"):
    head, at = HEADS[kind]
    text = PRODUCT.replace("NAME", f"{kind}_{element}").replace("ELEMENT", element)
    return text.replace("HEAD", head).replace("AT", at)


def staged(text):
    return program(text).mapped(stages=2)


LATE, EARLY = {"METAFORK_CPU_COPIES": "late"}, {"METAFORK_CPU_COPIES": "early"}
