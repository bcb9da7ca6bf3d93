void matadd_two(int N, int B0, int B1, int dim0, int dim1, const float *a, const float *b, float *c) {
  int i = blockIdx.y, j = blockIdx.x, v = threadIdx.y, u = threadIdx.x;
  int p = i * B0 + v, q = j * B1 + u;
  c[p * N + q] = a[p * N + q] + b[p * N + q];
  c[p * N + q + N / 2] = a[p * N + q + N / 2] + b[p * N + q + N / 2];
}
void matadd_one(int N, int B0, int B1, int dim0, int dim1, const float *a, const float *b, float *c) {
  int v = threadIdx.y, u = threadIdx.x;
  int p = blockIdx.y * B0 + v, q = blockIdx.x % dim1 * B1 + u, k = blockIdx.x / dim1;
  c[p * N + q + k * (N / 2)] = a[p * N + q + k * (N / 2)] + b[p * N + q + k * (N / 2)];
}
