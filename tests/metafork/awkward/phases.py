"""Phases that exchange values, arrays of the block, accumulators, tiles that walk."""

from tests.metafork.kernel_runs import Case, grid

PHASES = [
    # Phases that exchange values through a cached global array.
    Case(
        """
void phases_global(int N, int B, float a[N], float b[N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++) {
      meta_for (int j = 0; j < B; j++)
        a[i * B + j] = 2.0f * b[i * B + j] + a[i * B + j];
      meta_for (int j = 0; j < B; j++)
        b[i * B + j] = a[i * B + (B - 1 - j)];
    }
  }
}""",
        grid(N=[8, 11], B=[1, 4, 8]),
    ),
    # Phases with different numbers of threads, around an array of the block.
    Case(
        """
void phases_uneven(int N, int B, const int a[N], int b[N]) {
  int dim = N / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++) {
      int sums[B + 1];
      meta_for (int j = 0; j < B + 1; j++)
        sums[j] = j < B ? a[i * B + j] : 0;
      meta_for (int j = 0; j < B; j++)
        b[i * B + j] = sums[j] + sums[j + 1];
    }
  }
}""",
        grid(N=[8, 11], B=[1, 4, 8]),
    ),
    # Block arrays of several types, one of them two-dimensional and narrow.
    Case(
        """
void block_arrays(int N, int B, const unsigned char a[N], double b[N]) {
  int dim = N / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++) {
      char tile[B][3];
      double total[B];
      short one[1];
      meta_for (int j = 0; j < B; j++) {
        for (int k = 0; k < 3; k++)
          tile[j][k] = (char)(a[i * B + j] / (k + 1));
        total[j] = 0.5;
        if (j == 0) one[0] = (short)(i - 300);
      }
      meta_for (int j = 0; j < B; j++)
        for (int k = 0; k < 3; k++)
          total[j] += tile[B - 1 - j][k] + one[0];
      meta_for (int j = 0; j < B; j++)
        b[i * B + j] = total[j] + total[(j + 1) % B];
    }
  }
}""",
        grid(N=[8, 11], B=[1, 3, 5, 8]),
    ),
    # Narrow cached types: bytes and shorts side by side, rounded up to words.
    Case(
        """
void narrow(int N, int B, unsigned char a[N], short b[N], const long long c[N], float d[N]) {
  int dim = (N + B - 1) / B;
  meta_schedule cache(a, b, c, d) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p < N) {
          a[p] += 200;
          b[p] = (short)(b[p] * 700 + a[p]);
          d[p] = d[p] + (float)c[p] / 3;
        }
      }
  }
}""",
        grid(N=[1, 5, 16], B=[1, 3, 4, 7]),
    ),
    # matmul's accumulator with constant granularity, so that it is kept in registers.
    Case(
        """
void private_const(int n, int B, const float a[n][n], const float b[n][n], float c[n][n]) {
  int dim0 = n / B, dim1 = n / (2 * B);
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim0; i++)
      meta_for (int j = 0; j < dim1; j++)
        for (int k = 0; k < n / B; k++)
          meta_for (int v = 0; v < B; v++)
            meta_for (int u = 0; u < B; u++)
              for (int w = 0; w < 2; w++)
                for (int z = 0; z < B; z++)
                  c[i * B + v][j * 2 * B + w * B + u] += a[i * B + v][k * B + z] * b[k * B + z][j * 2 * B + w * B + u];
  }
}""",
        grid(n=[4, 8, 9], B=[1, 2, 3]),
    ),
    # A private window under a guard, and a last partial block.
    Case(
        """
void private_guarded(int m, int n, int B, const double A[m][n], const double x[n], double y[m]) {
  int blocks = (m + B - 1) / B;
  meta_schedule cache(x) {
    meta_for (int i = 0; i < blocks; i++)
      for (int t = 0; t < (n + B - 1) / B; t++)
        meta_for (int u = 0; u < B; u++) {
          int row = i * B + u;
          if (row < m)
            for (int k = 0; k < B; k++) {
              int column = t * B + k;
              if (column < n)
                y[row] += A[row][column] * x[column];
            }
        }
  }
}""",
        grid(m=[1, 5, 8], n=[1, 7, 8], B=[1, 3, 4, 9]),
    ),
    # The accumulator is set in one phase, summed in a loop of phases and used in a last one.
    Case(
        """
void private_phases(int n, int B, const float a[n][n], float c[n]) {
  int dim = n / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++) {
      meta_for (int u = 0; u < B; u++)
        c[i * B + u] = 1.5f;
      for (int k = 0; k < n; k++)
        meta_for (int u = 0; u < B; u++)
          c[i * B + u] += a[k][i * B + u];
      meta_for (int u = 0; u < B; u++)
        c[i * B + u] = c[i * B + u] * c[i * B + u];
    }
  }
}""",
        grid(n=[3, 8], B=[1, 2, 3]),
    ),
    # Looks private, but a later phase reads the neighbour's element.
    Case(
        """
void private_not(int n, int B, const float a[n][n], float c[n], float d[n]) {
  int dim = n / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++) {
      for (int k = 0; k < n; k++)
        meta_for (int u = 0; u < B; u++)
          c[i * B + u] += a[k][i * B + u];
      meta_for (int u = 0; u < B; u++)
        d[i * B + u] = c[i * B + (u + 1) % B];
    }
  }
}""",
        grid(n=[4, 8], B=[1, 2, 4]),
    ),
    # A block-level loop that walks tiles, its window moving along.
    Case(
        """
void tiles(int n, int B, const float a[n], float c[n]) {
  int dim = n / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 0; k < n / B; k++)
        meta_for (int u = 0; u < B; u++)
          for (int z = 0; z < B; z++)
            c[i * B + u] += a[k * B + z] * (float)(z + 1);
  }
}""",
        grid(n=[6, 11], B=[1, 2, 3, 5]),
    ),
    # The window of a block-level loop is written: a wave that moves through memory.
    Case(
        """
void wave(int n, int B, float a[n + 1][n + 64]) {
  int dim = n / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 0; k < n; k++)
        meta_for (int u = 0; u < B; u++)
          a[k + 1][i * B + u] = a[k][i * B + u] + 1.0f;
  }
}""",
        grid(n=[4, 7], B=[1, 2, 3]),
    ),
    # Two phases in a block-level loop, shifting the array of the block.
    Case(
        """
void shifting(int n, int T, int B, int a[n]) {
  int dim = n / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++) {
      int row[B];
      int next[B];
      meta_for (int u = 0; u < B; u++)
        row[u] = a[i * B + u];
      for (int t = 0; t < T; t++) {
        meta_for (int u = 0; u < B; u++)
          next[u] = row[u] + row[(u + 1) % B];
        meta_for (int u = 0; u < B; u++)
          row[u] = next[u] % 1000;
      }
      meta_for (int u = 0; u < B; u++)
        a[i * B + u] = row[u];
    }
  }
}""",
        grid(n=[6, 11], T=[0, 1, 4], B=[1, 3, 5]),
    ),
]
