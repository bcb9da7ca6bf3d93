"""A program that adds floating-point numbers to elements which indices from memory choose."""

SCATTER = """
void scatter(int n, int m, int B, const int c[n], const float v[n], float x[m], double y[m])
{
  meta_schedule {
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p >= n) continue;
        meta_atomic x[(unsigned)c[p] % m] += v[p] * 0.1;
        meta_atomic x[p % m] -= v[p];
        meta_atomic y[p % m] = y[p % m] + v[p];
      }
  }
}
"""
QUICK = {"counters": ("shared_memory",), "strategies": (), "reassociate": True}
POINTS = [("", {"n": n, "m": m, "B": B}) for n, m, B in ((1, 1, 1), (100, 3, 32), (3000, 1, 7))]
