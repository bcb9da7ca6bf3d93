void transpose_cached(int N, int s, int B0, int B1, const float *a, float *c) {
  extern float ta[s * B0 * B1];
  extern float tc[s * B0 * B1];
  int i = blockIdx.y, j = blockIdx.x, v = threadIdx.y, u = threadIdx.x;
  for (int k = 0; k < s; ++k) ta[v * s * B1 + k * B1 + u] = a[(i * B0 + v) * N + j * s * B1 + k * B1 + u];
  __syncthreads();
  for (int k = 0; k < s; ++k) tc[(k * B1 + u) * B0 + v] = ta[v * s * B1 + k * B1 + u];
  __syncthreads();
  for (int k = 0; k < s; ++k) c[(j * s * B1 + k * B1 + u) * N + i * B0 + v] = tc[(k * B1 + u) * B0 + v];
}
void transpose_one(int N, int s, int B0, int B1, const float *a, float *c) {
  extern float ta[B0 * B1];
  int i = blockIdx.y, j = blockIdx.x, v = threadIdx.y, u = threadIdx.x;
  ta[v * B1 + u] = a[(i * B0 + v) * N + j * B1 + u];
  __syncthreads();
  c[(j * B1 + u) * N + i * B0 + v] = ta[v * B1 + u];
}
void transpose_plain(int N, int s, int B0, int B1, const float *a, float *c) {
  int p = blockIdx.y * B0 + threadIdx.y;
  for (int k = 0; k < s; ++k) {
    int q = blockIdx.x * s * B1 + k * B1 + threadIdx.x;
    c[q * N + p] = a[p * N + q];
  }
}
