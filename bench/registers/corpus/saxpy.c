void saxpy_plain(int n, int B, float alpha, const float *x, float *y) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) y[i] = alpha * x[i] + y[i];
}
void saxpy_strip(int n, int s, int B, float alpha, const float *x, float *y) {
  for (int k = 0; k < s; ++k) {
    int i = (blockIdx.x * s + k) * B + threadIdx.x;
    if (i < n) y[i] = alpha * x[i] + y[i];
  }
}
void saxpy_stride(long n, int B, float alpha, const float *x, float *y) {
  for (long b = blockIdx.x; b < (n + B - 1) / B; b += gridDim.x) {
    long i = b * B + threadIdx.x;
    if (i < n) y[i] = alpha * x[i] + y[i];
  }
}
