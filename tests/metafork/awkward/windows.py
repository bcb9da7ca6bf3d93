"""Windows of global arrays in shared memory: strides, borders, overlaps, shapes."""

from tests.metafork.kernel_runs import Case, grid

WINDOWS = [
    # Reads below and above a block's own elements.
    Case(
        """
void stencil_negative(int N, int B, const float a[N], float b[N]) {
  int dim = (N - 4) / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j + 2;
        b[p] = a[p - 2] + a[p + 2] * a[p];
      }
  }
}""",
        grid(N=[6, 13, 20], B=[1, 2, 5][:1]) + grid(N=[13, 20], B=[2, 5, 9]),
    ),
    # Guarded borders: the window sticks out of the array on both sides.
    Case(
        """
void stencil_clamped(int N, int B, const int a[N], int b[N]) {
  int dim = (N + B - 1) / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p < N)
          b[p] = (p > 0 ? a[p - 1] : 0) + a[p] + (p + 1 < N ? a[p + 1] : 0);
      }
  }
}""",
        grid(N=[1, 2, 7, 16, 17], B=[1, 3, 4, 16, 20]),
    ),
    # A window with a constant stride, read and written.
    Case(
        """
void strided(int N, int B, float a[3 * N + 3], const float b[N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        a[3 * p + 1] = a[3 * p + 1] * 2.0f + b[p];
      }
  }
}""",
        grid(N=[5, 12], B=[1, 4, 5]),
    ),
    # Two strided windows of one array that interleave and never meet.
    Case(
        """
void interleaved(int N, int B, int a[2 * N]) {
  int dim = N / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        a[2 * p] = a[2 * p] + a[2 * p + 1];
      }
  }
}""",
        grid(N=[6, 11], B=[1, 3, 6]),
    ),
    # Only every other element of the box is written: the rest must keep its old value.
    Case(
        """
void written_gaps(int N, int B, int a[2 * N + 2]) {
  int dim = N / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        a[2 * p] = p;
      }
  }
}""",
        grid(N=[6, 11], B=[1, 3, 6]),
    ),
    # Writes under a guard that only some threads pass.
    Case(
        """
void guarded_writes(int N, int B, int c, int a[N], const int b[N]) {
  int dim = (N + B - 1) / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p < N && b[p] > c && p != 3)
          a[p] = b[p] - c;
      }
  }
}""",
        grid(N=[5, 16, 17], B=[1, 4, 7], c=[0, 60, 200]),
    ),
    # A linear index in three dimensions.
    Case(
        """
void linear3d(int P, int Q, int S, int B0, int B1, int B2, float a[P * Q * S], const float b[P * Q * S]) {
  int d0 = P / B0, d1 = Q / B1, d2 = S / B2;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < d0; i++)
      meta_for (int j = 0; j < d1; j++)
        meta_for (int k = 0; k < d2; k++)
          meta_for (int x = 0; x < B0; x++)
            meta_for (int y = 0; y < B1; y++)
              meta_for (int z = 0; z < B2; z++) {
                int p = i * B0 + x, q = j * B1 + y, r = k * B2 + z;
                if (p < P && q < Q && r < S)
                  a[(p * Q + q) * S + r] = b[p * Q * S + q * S + r] + a[(p * Q + q) * S + r];
              }
  }
}""",
        grid(P=[3, 4], Q=[4, 5], S=[2, 7], B0=[1, 2], B1=[2, 3], B2=[1, 2]),
    ),
    # A linear index whose columns are not proved to stay inside a row.
    Case(
        """
void linear_unproved(int N, int M, int B, const float a[N * M + 64], float b[N * M + 64]) {
  int d0 = N / B, d1 = M / B + 1;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < d0; i++)
      meta_for (int j = 0; j < d1; j++)
        meta_for (int u = 0; u < B; u++)
          meta_for (int v = 0; v < B; v++) {
            int p = i * B + u, q = j * B + v;
            if (q < M)
              b[p * M + q] = a[p * M + q] + a[p * M + q + 1];
          }
  }
}""",
        grid(N=[4, 7], M=[4, 9], B=[1, 2, 3]),
    ),
    # A true transposition through shared memory, with strides that cannot coalesce otherwise.
    Case(
        """
void transposed(int N, int M, int B0, int B1, const double a[N][M], double c[M][N]) {
  int dim0 = (N + B0 - 1) / B0, dim1 = (M + B1 - 1) / B1;
  meta_schedule cache(a, c) {
    meta_for (int v0 = 0; v0 < dim0; v0++)
      meta_for (int v1 = 0; v1 < dim1; v1++)
        meta_for (int u0 = 0; u0 < B0; u0++)
          meta_for (int u1 = 0; u1 < B1; u1++) {
            int i = v0 * B0 + u0, j = v1 * B1 + u1;
            if (i < N && j < M)
              c[j][i] = a[i][j];
          }
  }
}""",
        grid(N=[1, 5, 8], M=[1, 6, 8], B0=[1, 2, 3], B1=[4]),
    ),
    # In place, read and written through overlapping windows within a block only.
    Case(
        """
void in_place(int N, int s, int B, int a[N]) {
  int dim = N / (s * B);
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++)
        for (int k = 0; k < s; k++) {
          int p = i * s * B + j * s + k;
          if (k > 0)
            a[p] = a[p - 1] + 2 * a[p];
        }
  }
}""",
        grid(N=[12, 13, 24], s=[1, 3], B=[1, 2, 4]),
    ),
    # Two windows of one array far apart, the copies of which may overlap at small sizes (rows of a ring).
    Case(
        """
void two_rows(int N, int B, int d, int a[2 * N]) {
  int dim = (N - 2) / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        a[N + p] = a[p] + a[p + 1] - a[p + 2] + d;
      }
  }
}""",
        grid(N=[4, 9, 12], B=[1, 2], d=[3]) + grid(N=[9, 12], B=[5, 7], d=[1]),
    ),
    # A rotated index: the granularity loop is the fastest, with gaps between the threads.
    Case(
        """
void reversed(int N, int s, int B, const float a[N], float b[N]) {
  int dim = N / (s * B);
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++)
        for (int k = 0; k < s; k++)
          b[i * s * B + (B - 1 - j) * s + (s - 1 - k)] = a[i * s * B + j * s + k];
  }
}""",
        grid(N=[12, 17], s=[1, 2, 3], B=[1, 2, 4]),
    ),
    # A constant window that all blocks read, and a scalar result of each block.
    Case(
        """
void constants(int N, int B, const float table[5], const float a[N], float out[N]) {
  int dim = N / B;
  meta_schedule cache(table, a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        float sum = 0.0f;
        for (int k = 0; k < 5; k++)
          sum += table[k] * a[i * B + j];
        out[i * B + j] = sum + table[0];
      }
  }
}""",
        grid(N=[6, 13], B=[1, 3, 4]),
    ),
    # Six meta_fors with halos in every dimension.
    Case(
        """
void halo3d(int n, int B0, int B1, int B2, const double u[n][n][n], double w[n][n][n]) {
  int d0 = (n - 2) / B0, d1 = (n - 2) / B1, d2 = (n - 2) / B2;
  meta_schedule cache(u, w) {
    meta_for (int i = 0; i < d0; i++)
      meta_for (int j = 0; j < d1; j++)
        meta_for (int k = 0; k < d2; k++)
          meta_for (int a = 0; a < B0; a++)
            meta_for (int b = 0; b < B1; b++)
              meta_for (int e = 0; e < B2; e++) {
                int z = i * B0 + a + 1, y = j * B1 + b + 1, x = k * B2 + e + 1;
                w[z][y][x] = u[z - 1][y][x] - u[z + 1][y][x] + u[z][y - 1][x] * u[z][y + 1][x];
                w[z][y][x] += u[z][y][x + 1] / u[z][y][x];
              }
  }
}""",
        grid(n=[4, 7], B0=[1, 2], B1=[1, 2], B2=[1, 2]),
    ),
    # The same array at two levels: a window of the block and one that a block-level loop moves.
    Case(
        """
void two_levels(int N, int B, const float a[N], float b[N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 0; k < N / B; k++)
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] += a[k * B + j] * a[i * B + j] + a[i * B];
  }
}""",
        grid(N=[9, 12], B=[1, 4, 5]),
    ),
    # A block-level loop that starts late and steps by two, with a window that moves along.
    Case(
        """
void block_steps(int N, int m, int B, const float a[N + 2 * m + 4], float b[N]) {
  int dim = N / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 3; k <= m; k += 2)
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] += a[i * B + j + 2 * k];
  }
}""",
        grid(N=[9, 12], m=[1, 3, 6], B=[1, 4, 5]),
    ),
    # Grid indices that run against the index, and an offset by the extent.
    Case(
        """
void backwards(int N, int B, const float a[N], float b[N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++)
        b[N - 1 - (i * B + j)] = a[(dim - 1 - i) * B + j] + a[i * B + B - 1 - j];
  }
}""",
        grid(N=[9, 12], B=[1, 4, 5]),
    ),
    # Only some threads of each phase have an element of a two-dimensional window.
    Case(
        """
void corner(int N, int M, int B, const int a[N][M], int b[N][M]) {
  int d0 = (N + B - 1) / B, d1 = (M + B - 1) / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < d0; i++)
      meta_for (int j = 0; j < d1; j++) {
        meta_for (int u = 0; u < B; u++)
          meta_for (int v = 0; v < B; v++)
            if (i * B + u < N && j * B + v < M && u <= v)
              b[i * B + u][j * B + v] = a[i * B + u][j * B + v] + 1;
        meta_for (int u = 0; u < B; u++)
          meta_for (int v = 0; v < B; v++)
            if (i * B + u < N && j * B + v < M && u > v)
              b[i * B + u][j * B + v] = b[i * B + u][j * B + v] - 1;
      }
  }
}""",
        grid(N=[5, 8], M=[6, 8], B=[1, 3, 4]),
    ),
    # One column of a matrix by a block of one dimension.
    Case(
        """
void column(int N, int M, int B, const float a[N][M], float y[N]) {
  int dim = N / B;
  meta_schedule cache(a, y) {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 0; k < M; k++)
        meta_for (int t = 0; t < B; t++)
          y[i * B + t] -= a[i * B + t][k];
  }
}""",
        grid(N=[6, 15], M=[1, 4], B=[1, 3, 5]),
    ),
    # Rows of a length that has nothing to do with the width of the block.
    Case(
        """
void rows(int N, int M, int B, int K, const float a[N][M], const float x[M], float y[N]) {
  int dim = N / B;
  meta_schedule cache(a, x) {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 0; k < 2; k++)
        meta_for (int t = 0; t < B; t++)
          for (int z = 0; z < K; z++)
            y[i * B + t] += a[i * B + t][k * K + z] * x[k * K + z];
  }
}""",
        grid(N=[8, 15], M=[14], B=[1, 4, 5], K=[1, 2, 3, 7]),
    ),
    # Transposed and guarded, with s elements a thread: the block is as wide as the other side of what it writes.
    Case(
        """
void turned(int N, int M, int B0, int B1, int s, const int a[N][M], int c[M][N]) {
  int d0 = (N + B0 - 1) / B0, d1 = (M + B1 * s - 1) / (B1 * s);
  meta_schedule cache(a, c) {
    meta_for (int i = 0; i < d0; i++)
      meta_for (int j = 0; j < d1; j++)
        meta_for (int v = 0; v < B0; v++)
          meta_for (int u = 0; u < B1; u++)
            for (int w = 0; w < s; w++) {
              int p = i * B0 + v, q = j * B1 * s + w * B1 + u;
              if (p < N && q < M)
                c[q][p] = a[p][q];
            }
  }
}""",
        grid(N=[5, 8], M=[7, 12], B0=[1, 3, 4], B1=[2, 3], s=[1, 2]),
    ),
    # Three dimensions, of which the last two are walked together; rows of a constant length.
    Case(
        """
void short_rows(int N, int B0, int B1, const int a[N][B0][5], int b[N][B0][5][B1]) {
  int dim = N - 1;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int h = 0; h < 1; h++)
        meta_for (int v = 0; v < B0; v++)
          meta_for (int u = 0; u < B1; u++)
            for (int z = 0; z < 5; z++)
              b[i][v][z][u] = a[i][v][z] - a[i + 1][v][4 - z];
  }
}""",
        grid(N=[2, 4], B0=[1, 2, 3], B1=[1, 2, 4, 8]),
    ),
]
