void matmul_cached(int n, int B0, int ub1, int s, const float *a, const float *b, float *c) {
  extern float ta[B0 * B0];
  extern float tb[B0 * ub1 * s];
  int i = blockIdx.y, j = blockIdx.x, v = threadIdx.y, u = threadIdx.x;
  for (int k = 0; k < n / B0; ++k) {
    for (int e = u; e < B0; e += ub1) ta[v * B0 + e] = a[(i * B0 + v) * n + B0 * k + e];
    for (int e = u; e < ub1 * s; e += ub1) tb[v * ub1 * s + e] = b[(B0 * k + v) * n + j * ub1 * s + e];
    __syncthreads();
    for (int z = 0; z < B0; ++z)
      for (int w = 0; w < s; ++w) c[(i * B0 + v) * n + j * ub1 * s + u + w * ub1] += ta[v * B0 + z] * tb[z * ub1 * s + u + w * ub1];
    __syncthreads();
  }
}
void matmul_kept(int n, int B0, int ub1, int s, const float *a, const float *b, float *c) {
  extern float ta[B0 * B0];
  extern float tb[B0 * ub1];
  float kept[1];
  int i = blockIdx.y, j = blockIdx.x, v = threadIdx.y, u = threadIdx.x;
  kept[0] = c[(i * B0 + v) * n + j * ub1 + u];
  for (int k = 0; k < n / B0; ++k) {
    for (int e = u; e < B0; e += ub1) ta[v * B0 + e] = a[(i * B0 + v) * n + B0 * k + e];
    tb[v * ub1 + u] = b[(B0 * k + v) * n + j * ub1 + u];
    __syncthreads();
    for (int z = 0; z < B0; ++z) kept[0] += ta[v * B0 + z] * tb[z * ub1 + u];
    __syncthreads();
  }
  c[(i * B0 + v) * n + j * ub1 + u] = kept[0];
}
void matmul_plain(int n, int B0, int ub1, int s, const float *a, const float *b, float *c) {
  int p = blockIdx.y * B0 + threadIdx.y, q = blockIdx.x * ub1 + threadIdx.x;
  for (int k = 0; k < n / B0; ++k)
    for (int z = 0; z < B0; ++z) c[p * n + q] += a[p * n + B0 * k + z] * b[(B0 * k + z) * n + q];
}
void matmul_four(int n, int B0, int ub1, const float *a, const float *b, float *c) {
  float kept[4];
  int p = blockIdx.y * B0 + threadIdx.y, q = blockIdx.x * ub1 * 4 + threadIdx.x;
  for (int w = 0; w < 4; ++w) kept[w] = 0.0f;
  for (int k = 0; k < n; ++k)
    for (int w = 0; w < 4; ++w) kept[w] += a[p * n + k] * b[k * n + q + w * ub1];
  for (int w = 0; w < 4; ++w) c[p * n + q + w * ub1] = kept[w];
}
