void gemver_rank(int n, int B, const double *u1, const double *v1, const double *u2, const double *v2, double *a) {
  int i = blockIdx.y * B + threadIdx.y, j = blockIdx.x * B + threadIdx.x;
  if (i < n && j < n) a[i * n + j] = a[i * n + j] + u1[i] * v1[j] + u2[i] * v2[j];
}
void gemver_column(int n, int B, double beta, const double *a, const double *y, const double *z, double *x) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    double sum = x[i];
    for (int j = 0; j < n; ++j) sum += beta * a[j * n + i] * y[j];
    x[i] = sum + z[i];
  }
}
