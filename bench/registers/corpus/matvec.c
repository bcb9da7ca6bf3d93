void matvec_plain(int n, int m, int B, const float *a, const float *x, float *y) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    float sum = y[i];
    for (int j = 0; j < m; ++j) sum += a[i * m + j] * x[j];
    y[i] = sum;
  }
}
void matvec_cached(int n, int m, int B, const float *a, const float *x, float *y) {
  extern float tx[B];
  int i = blockIdx.x * B + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < m; k += B) {
    if (k + (int)threadIdx.x < m) tx[threadIdx.x] = x[k + threadIdx.x];
    __syncthreads();
    if (i < n)
      for (int j = 0; j < B && k + j < m; ++j) sum += a[i * m + k + j] * tx[j];
    __syncthreads();
  }
  if (i < n) y[i] = sum;
}
void matvec_double(int n, int m, int B, const double *a, const double *x, double *y) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    double sum = 0.0;
    for (int j = 0; j < m; ++j) sum += a[i * m + j] * x[j];
    y[i] = sum;
  }
}
