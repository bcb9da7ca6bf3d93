void wave_step(int n, int m, int B0, int B1, double c, const double *u, const double *v, double *w) {
  int i = blockIdx.y * B0 + threadIdx.y + 2, j = blockIdx.x * B1 + threadIdx.x + 2;
  if (i < n - 2 && j < m - 2) {
    double lap = -5.0 * v[i * m + j] + 1.3333 * (v[(i - 1) * m + j] + v[(i + 1) * m + j] + v[i * m + j - 1] + v[i * m + j + 1]) - 0.0833 * (v[(i - 2) * m + j] + v[(i + 2) * m + j] + v[i * m + j - 2] + v[i * m + j + 2]);
    w[i * m + j] = 2.0 * v[i * m + j] - u[i * m + j] + c * lap;
  }
}
void wave_rows(int n, int m, int s, int B1, double c, const double *u, const double *v, double *w) {
  int j = blockIdx.x * B1 + threadIdx.x + 2;
  if (j < m - 2) {
    for (int k = 0; k < s; ++k) {
      int i = blockIdx.y * s + k + 2;
      if (i < n - 2) {
        double lap = -5.0 * v[i * m + j] + 1.3333 * (v[(i - 1) * m + j] + v[(i + 1) * m + j] + v[i * m + j - 1] + v[i * m + j + 1]) - 0.0833 * (v[(i - 2) * m + j] + v[(i + 2) * m + j] + v[i * m + j - 2] + v[i * m + j + 2]);
        w[i * m + j] = 2.0 * v[i * m + j] - u[i * m + j] + c * lap;
      }
    }
  }
}
