"""A program whose blocks count in an array of their own, and add that up by atomic updates."""

OWN = """
void own(int n, int m, int B, int s, const int x[n], int h[m], long t[1])
{
  assert(n % (B * s) == 0);
  meta_schedule cache(x) {
    meta_for (int i = 0; i < n / (B * s); i++) {
      int part[m];
      meta_for (int j = 0; j < B; j++)
        for (int k = j; k < m; k += B) part[k] = 0;
      meta_for (int j = 0; j < B; j++)
        for (int k = 0; k < s; k++)
          meta_atomic part[(x[i * B * s + k * B + j] & 0xffff) % m] += 1;
      meta_for (int j = 0; j < B; j++)
        for (int k = j; k < m; k += B) {
          meta_atomic h[k] += part[k];
          meta_atomic t[0] += k * part[k];
        }
    }
  }
}
"""
