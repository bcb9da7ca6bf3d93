void stride_two(long rows, long columns, int n, int B0, int B1, const float *a, float *b) {
  for (long i = blockIdx.y; i < rows; i += gridDim.y)
    for (long j = blockIdx.x; j < columns; j += gridDim.x) {
      long p = i * B0 + threadIdx.y, q = j * B1 + threadIdx.x;
      if (p < n && q < n) b[p * n + q] = a[q * n + p];
    }
}
void stride_three(long x, long y, long z, int n, int B, const double *a, double *b) {
  for (long i = blockIdx.z; i < z; i += gridDim.z)
    for (long j = blockIdx.y; j < y; j += gridDim.y)
      for (long k = blockIdx.x; k < x; k += gridDim.x) {
        long p = i * B + threadIdx.z, q = j * B + threadIdx.y, r = k * B + threadIdx.x;
        if (p > 0 && p < n - 1 && q < n && r < n) b[(p * n + q) * n + r] = a[((p - 1) * n + q) * n + r] + a[((p + 1) * n + q) * n + r] + a[(p * n + q) * n + r];
      }
}
