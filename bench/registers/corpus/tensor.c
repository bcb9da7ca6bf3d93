void tensor_contract(int n, int m, int B, const float *a, const float *b, float *c) {
  int i = blockIdx.z * B + threadIdx.z, j = blockIdx.y * B + threadIdx.y, k = blockIdx.x * B + threadIdx.x;
  if (i < n && j < n && k < n) {
    float sum = 0.0f;
    for (int p = 0; p < m; ++p)
      for (int q = 0; q < m; ++q) sum += a[(i * m + p) * m + q] * b[((p * m + q) * n + j) * n + k];
    c[(i * n + j) * n + k] = sum;
  }
}
void tensor_permute(int n, int m, int l, int B, const float *a, float *b) {
  int i = blockIdx.z * B + threadIdx.z, j = blockIdx.y * B + threadIdx.y, k = blockIdx.x * B + threadIdx.x;
  if (i < n && j < m && k < l) b[(k * m + j) * n + i] = a[(i * m + j) * l + k];
}
