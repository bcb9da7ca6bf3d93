"""Control flow: loops in unusual forms, exits, conditions of a block, loops that run no time."""

from tests.metafork.kernel_runs import Case, grid

CONTROL = [
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
]
