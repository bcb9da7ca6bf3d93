"""Programs that are easy to get wrong, each with points to run it at (only points within Start)."""

from tests.metafork.kernel_runs import Case


def grid(**ranges):
    """Return the points of a small grid of values."""
    points = [{}]
    for name, values in ranges.items():
        points = [{**point, name: value} for point in points for value in values]
    return points


AWKWARD = [
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
    # A uniform condition with windows of different sizes on its two sides.
    Case(
        """
void uniform(int N, int t, int B, const int a[2 * N], int b[N]) {
  int dim = (N - 2) / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (t % 3 == 1)
          b[p] = a[p] + a[p + 1] + a[p + 2];
        else
          b[p] = a[2 * p];
        if (i > 1)
          b[p] += 5;
      }
  }
}""",
        grid(N=[7, 14], t=[0, 1, 2], B=[1, 3, 5]),
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
    # Loops in unusual forms: starting late, steps of three, <=, downwards, and without a declaration.
    Case(
        """
void odd_loops(int N, int B, int m, const int a[4 * N + 64], int b[N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        int sum = 0;
        int w;
        for (int k = 2; k < m + 2; k++) sum += a[p + k];
        for (int k = 1; k <= m; k += 3) sum += a[p + k] * k;
        for (int k = m; k > 0; k--) sum += 3 * a[p + k];
        for (w = 0; w < m; w++) sum -= a[p + w];
        b[p] = sum + w;
      }
  }
}""",
        grid(N=[6, 13], B=[1, 4], m=[1, 2, 5]),
    ),
    # Triangular loops: the trip count depends on the thread and on an outer loop.
    Case(
        """
void triangular(int N, int B, const int a[N][N], int b[N]) {
  int dim = N / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        int sum = 0;
        for (int k = 0; k <= p; k++)
          for (int l = k; l < N; l++)
            sum += a[k][l];
        b[p] = sum;
      }
  }
}""",
        grid(N=[5, 8], B=[1, 2, 3]),
    ),
    # while, break and continue in a thread, writes after the exits.
    Case(
        """
void early_exits(int N, int B, const int a[N], int b[N], int c[N]) {
  int dim = N / B;
  meta_schedule cache(a, b, c) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        int x = a[p];
        while (x > 7) {
          x = x % 2 ? 3 * x / 5 : x / 2;
          if (x == 20) break;
          b[p] += x;
        }
        for (int k = 0; k < 4; k++) {
          if (k == x % 4) continue;
          if (x > 3 && k == 2) break;
          c[p] = c[p] + k + x;
        }
      }
  }
}""",
        grid(N=[6, 13], B=[1, 4, 6]),
    ),
    # Block-level ifs: uniform over the block, on the grid and on memory that the block reads.
    Case(
        """
void block_ifs(int N, int B, const int a[N], int b[N]) {
  int dim = N / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++) {
      int row[B];
      meta_for (int j = 0; j < B; j++)
        row[j] = a[i * B + j];
      if (i % 2 == 0) {
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] = row[B - 1 - j];
      } else if (a[i * B] > 50) {
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] = row[j] + 1;
      }
      if (a[i * B + B - 1] % 2) {
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] += 100;
      }
    }
  }
}""",
        grid(N=[8, 13], B=[1, 2, 4]),
    ),
    # A block-level while, scalar and break, steered by shared memory.
    Case(
        """
void block_while(int N, int B, const int a[N], int b[N]) {
  int dim = N / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++) {
      int row[B];
      int count = 0;
      meta_for (int j = 0; j < B; j++)
        row[j] = a[i * B + j];
      while (a[i * B] > 10 * count) {
        meta_for (int j = 0; j < B; j++)
          row[j] = row[j] / 2;
        count = count + 1;
        if (count > 4)
          break;
      }
      for (int r = 1; r < B; r *= 2) {
        if (r == 2)
          continue;
        meta_for (int j = 0; j < B; j++)
          if (j % (2 * r) == 0 && j + r < B)
            row[j] += row[j + r];
      }
      meta_for (int j = 0; j < B; j++)
        b[i * B + j] = row[j] + count;
    }
  }
}""",
        grid(N=[8, 13], B=[1, 2, 4, 8]),
    ),
    # A scalar of the block, computed in the loop and used by the threads after it.
    Case(
        """
void block_scalar(int N, int B, const int a[N], int b[N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++) {
      int shift = i % 2;
      for (int k = 0; k < 3; k++) {
        int at = k + shift;
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] = b[i * B + j] * 2 + a[i * B + j] * at;
        shift = 1 - shift;
      }
    }
  }
}""",
        grid(N=[8, 13], B=[1, 2, 4]),
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
    # unsigned and long long parameters, 64-bit indices.
    Case(
        """
void wide_types(long long N, unsigned B, unsigned long s, const float a[N], float b[N]) {
  long long dim = N / (B * s);
  meta_schedule cache(a, b) {
    meta_for (long long i = 0; i < dim; i++)
      meta_for (unsigned j = 0; j < B; j++)
        for (unsigned long k = 0; k < s; k++) {
          long long p = i * s * B + k * B + j;
          b[p] = a[p] + 1.0f;
        }
  }
}""",
        grid(N=[12, 17], B=[1, 2, 4], s=[1, 2, 3]),
    ),
    # Value arguments of several types, and a condition on one of them.
    Case(
        """
void values(int N, int B, float alpha, double beta, short gamma, float a[N], const double b[N]) {
  int dim = N / B;
  meta_schedule cache(b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (alpha > 0.5f)
          a[p] = a[p] * alpha + (float)(b[p] * beta) + gamma;
        else
          a[p] = -a[p];
      }
  }
}""",
        grid(N=[6, 13], B=[1, 4], alpha=[0.25, 0.75], beta=[1.5], gamma=[-7]),
    ),
    # Shadowed names, and names of the device.
    Case(
        """
void shadows(int N, int B, const int a[N], int Shared[N]) {
  int dim = N / B;
  meta_schedule cache(a, Shared) {
    meta_for (int block_x = 0; block_x < dim; block_x++)
      meta_for (int x = 0; x < B; x++) {
        int p = block_x * B + x;
        int shared_a = a[p];
        {
          int p = shared_a + 1;
          shared_a = p * 2;
        }
        for (int p = 0; p < 2; p++)
          shared_a += p;
        Shared[p] = shared_a;
      }
  }
}""",
        grid(N=[6, 13], B=[1, 4]),
    ),
    # A reassigned index scalar: its later value is another one.
    Case(
        """
void reassigned(int N, int B, const int a[2 * N + 4], int b[N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        int q = p;
        int x = a[q];
        q = q + 1;
        x += a[q] * 2;
        if (x % 2)
          q += 2;
        x += a[q] * 3;
        b[p] = x;
      }
  }
}""",
        grid(N=[6, 13], B=[1, 4]),
    ),
    # Indices that are read from memory.
    Case(
        """
void gather(int N, int B, const int index[N], const float a[256], float b[N]) {
  int dim = N / B;
  meta_schedule cache(index, b, a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++)
        b[i * B + j] = a[index[i * B + j]] + a[2 * j] * 0.5f;
  }
}""",
        grid(N=[6, 13], B=[1, 4]),
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
    # Every thread writes the same element: the value must come out all the same.
    Case(
        """
void one_for_all(int N, int B, const int a[N], int b[N], int c[N]) {
  int dim = N / B;
  meta_schedule cache(a, b, c) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        if (j == B / 2)
          b[i] = a[i * B + j];
        c[i * B + j] = a[i * B];
      }
  }
}""",
        grid(N=[6, 13], B=[1, 3, 4]),
    ),
    # Loops that may run no time at all around writes.
    Case(
        """
void perhaps(int N, int B, int m, const int a[N], int b[N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      for (int r = 0; r < m; r++)
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] = a[i * B + j] + r;
  }
}""",
        grid(N=[6, 13], B=[1, 3, 4], m=[0, 1, 3]),
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
    # An unsigned index wraps at zero, and the guard relies on it.
    Case(
        """
void unsigned_wraps(int N, int B, const int a[N], int b[N]) {
  int dim = (N + B) / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        unsigned p = i * B + j - 1;
        if (p < N)
          b[p] = a[p] + 1;
      }
  }
}""",
        grid(N=[4, 7], B=[1, 2, 3, 8]),
    ),
    # The comparison is unsigned because one side is.
    Case(
        """
void unsigned_compared(unsigned N, int B, const int a[N], int b[N]) {
  int dim = (N + B) / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j - 1;
        if (p < N)
          b[p] = a[p] + 1;
      }
  }
}""",
        grid(N=[4, 7], B=[1, 2, 3, 8]),
    ),
    # Indices kept in narrow types lose their high bits.
    Case(
        """
void narrow_indices(int N, int B, const int a[N], int b[N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        unsigned char p = i * B + j;
        signed char q = i * B + j;
        b[i * B + j] = a[p] + (q < 0 ? 1000 : 0);
      }
  }
}""",
        grid(N=[300, 330], B=[1, 7, 64]),
    ),
    # A loop that is left after a write: the elements of later iterations are not written.
    Case(
        """
void left_after_write(int N, int B, const int a[N], int b[4 * N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        for (int k = 0; k < 4; k++) {
          b[4 * p + k] = k;
          if (a[p] > 30 * k)
            break;
        }
      }
  }
}""",
        grid(N=[5, 12], B=[1, 4]),
    ),
    # The same, through an inner block and with continue.
    Case(
        """
void skipped_writes(int N, int B, const int a[N], int b[4 * N], int c[4 * N]) {
  int dim = N / B;
  meta_schedule cache(a, b, c) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        for (int k = 0; k < 4; k++) {
          if (a[p] % 4 == k) {
            b[4 * p + k] = 9;
            continue;
          }
          if (a[p] > 20 * k) {
            c[4 * p + k] = 8;
            for (int l = 0; l < 2; l++) {
              if (l) break;
            }
          }
          b[4 * p + k] += k;
        }
      }
  }
}""",
        grid(N=[5, 12], B=[1, 4]),
    ),
    # Parameters with the names that lowering might take for itself.
    Case(
        """
void taken_names(int block_x, int shared_a_0, int own_b_written, const int a[block_x], int b[block_x]) {
  int shared_a = block_x / shared_a_0;
  meta_schedule cache(a) {
    meta_for (int shared_b = 0; shared_b < shared_a; shared_b++)
      for (int shared_a_0_at = 0; shared_a_0_at < own_b_written; shared_a_0_at++)
        meta_for (int own_b = 0; own_b < shared_a_0; own_b++)
          if (a[shared_b * shared_a_0 + own_b] > 20)
            b[shared_b * shared_a_0 + own_b] += a[shared_b * shared_a_0 + own_b] + shared_a_0_at;
  }
}""",
        grid(block_x=[6, 13], shared_a_0=[1, 4], own_b_written=[1, 3]),
    ),
    # Two arrays of the block with one name, in different scopes.
    Case(
        """
void sibling_arrays(int N, int B, const int a[N], int b[N]) {
  int dim = N / B;
  meta_schedule {
    meta_for (int i = 0; i < dim; i++) {
      for (int k = 0; k < 2; k++) {
        int row[B];
        meta_for (int j = 0; j < B; j++)
          row[j] = a[i * B + j] + k;
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] += row[B - 1 - j];
      }
      for (int k = 0; k < 2; k++) {
        double row[2 * B];
        meta_for (int j = 0; j < B; j++) {
          row[j] = a[i * B + j] * 0.5;
          row[B + j] = k;
        }
        meta_for (int j = 0; j < B; j++)
          b[i * B + j] += (int)(row[B - 1 - j] + row[2 * B - 1 - j]);
      }
    }
  }
}""",
        grid(N=[6, 13], B=[1, 4]),
    ),
    # Remainders of what may be negative, and shifts.
    Case(
        """
void remainders(int N, int B, const int a[2 * N + 8], int b[N]) {
  int dim = N / B;
  meta_schedule cache(a, b) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        int odd = (p - 3) % 2;
        b[p] = a[(p << 1) + odd + 1] + a[p / 2] + a[p % B] - odd;
        if ((p - 5) / 3 == 0)
          b[p] = b[p] + 77;
      }
  }
}""",
        grid(N=[9, 12], B=[1, 4, 5]),
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
