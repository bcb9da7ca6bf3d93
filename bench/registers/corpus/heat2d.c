void heat_plain(int n, int m, int B0, int B1, float alpha, const float *u, float *w) {
  int i = blockIdx.y * B0 + threadIdx.y + 1, j = blockIdx.x * B1 + threadIdx.x + 1;
  if (i < n - 1 && j < m - 1)
    w[i * m + j] = u[i * m + j] + alpha * (u[(i - 1) * m + j] + u[(i + 1) * m + j] + u[i * m + j - 1] + u[i * m + j + 1] - 4.0f * u[i * m + j]);
}
void heat_strip(int n, int m, int B0, int B1, int s, float alpha, const float *u, float *w) {
  int i = blockIdx.y * B0 + threadIdx.y + 1;
  for (int k = 0; k < s; ++k) {
    int j = blockIdx.x * B1 * s + k * B1 + threadIdx.x + 1;
    if (i < n - 1 && j < m - 1)
      w[i * m + j] = u[i * m + j] + alpha * (u[(i - 1) * m + j] + u[(i + 1) * m + j] + u[i * m + j - 1] + u[i * m + j + 1] - 4.0f * u[i * m + j]);
  }
}
void heat_cached(int n, int m, int B0, int B1, float alpha, const float *u, float *w) {
  extern float t[(B0 + 2) * (B1 + 2)];
  int y = threadIdx.y, x = threadIdx.x, i = blockIdx.y * B0, j = blockIdx.x * B1;
  for (int r = y; r < B0 + 2; r += B0)
    for (int q = x; q < B1 + 2; q += B1)
      if (i + r < n && j + q < m) t[r * (B1 + 2) + q] = u[(i + r) * m + j + q];
  __syncthreads();
  if (i + y + 1 < n - 1 && j + x + 1 < m - 1) {
    int o = (y + 1) * (B1 + 2) + x + 1;
    w[(i + y + 1) * m + j + x + 1] = t[o] + alpha * (t[o - B1 - 2] + t[o + B1 + 2] + t[o - 1] + t[o + 1] - 4.0f * t[o]);
  }
}
