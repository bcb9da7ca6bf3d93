"""A dot product and its greatest summand, in the stated order, and the options that allow it."""

DOT = """
void dot(int n, int B, const float x[n], const float y[n], float *sum, double *most)
{
  meta_schedule {
    meta_reduction(+: sum) meta_reduction(max: most)
    meta_for (int i = 0; i < (n + B - 1) / B; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p >= n) continue;
        *sum += x[p] * y[p];
        if (x[p] > *most) *most = x[p];
      }
  }
}
"""

QUICK = {"counters": ("threads_per_block", "shared_memory"), "reassociate": True}
