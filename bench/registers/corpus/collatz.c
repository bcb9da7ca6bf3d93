void collatz_steps(int n, int limit, int B, int *out) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    long x = i + 1;
    int k = 0;
    while (x != 1 && k < limit) {
      if (x % 2 == 0) x /= 2;
      else x = 3 * x + 1;
      k++;
    }
    out[i] = k;
  }
}
void collatz_gcd(int n, int B, const int *a, const int *b, int *out) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    int x = a[i], y = b[i];
    while (y != 0) {
      int r = x % y;
      x = y;
      y = r;
    }
    out[i] = x;
  }
}
