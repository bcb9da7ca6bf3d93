void lu_scale(int n, int k, int B, double *a) {
  int i = k + 1 + blockIdx.x * B + threadIdx.x;
  if (i < n) a[i * n + k] = a[i * n + k] / a[k * n + k];
}
void lu_update(int n, int k, int B, double *a) {
  int i = k + 1 + blockIdx.y * B + threadIdx.y, j = k + 1 + blockIdx.x * B + threadIdx.x;
  if (i < n && j < n) a[i * n + j] -= a[i * n + k] * a[k * n + j];
}
void lu_row(int n, int k, int B, int s, double *a) {
  int i = k + 1 + blockIdx.y * B + threadIdx.y;
  if (i < n) {
    double f = a[i * n + k];
    for (int w = 0; w < s; ++w) {
      int j = k + 1 + (blockIdx.x * s + w) * B + threadIdx.x;
      if (j < n) a[i * n + j] -= f * a[k * n + j];
    }
  }
}
