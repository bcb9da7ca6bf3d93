"""Types, wrap-around, remainders and names."""

from tests.metafork.kernel_runs import Case, grid

ARITHMETIC = [
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
]
