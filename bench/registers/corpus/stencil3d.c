void stencil3d_plain(int n, int B, const double *a, double *b) {
  int i = blockIdx.z * B + threadIdx.z + 1, j = blockIdx.y * B + threadIdx.y + 1, k = blockIdx.x * B + threadIdx.x + 1;
  if (i < n - 1 && j < n - 1 && k < n - 1)
    b[(i * n + j) * n + k] = 0.4 * a[(i * n + j) * n + k] + 0.1 * (a[((i - 1) * n + j) * n + k] + a[((i + 1) * n + j) * n + k] + a[(i * n + j - 1) * n + k] + a[(i * n + j + 1) * n + k] + a[(i * n + j) * n + k - 1] + a[(i * n + j) * n + k + 1]);
}
void stencil3d_march(int n, int B, int s, const double *a, double *b) {
  int j = blockIdx.y * B + threadIdx.y + 1, k = blockIdx.x * B + threadIdx.x + 1;
  if (j < n - 1 && k < n - 1) {
    double below = a[(blockIdx.z * s * n + j) * n + k];
    double here = a[((blockIdx.z * s + 1) * n + j) * n + k];
    for (int q = 1; q <= s; ++q) {
      int i = blockIdx.z * s + q;
      if (i >= n - 1) break;
      double above = a[((i + 1) * n + j) * n + k];
      b[(i * n + j) * n + k] = 0.4 * here + 0.1 * (below + above + a[(i * n + j - 1) * n + k] + a[(i * n + j + 1) * n + k] + a[(i * n + j) * n + k - 1] + a[(i * n + j) * n + k + 1]);
      below = here;
      here = above;
    }
  }
}
