void jacobi_cached(int N, int s, int B, int t, int *a) {
  extern int w[2 * s * B + 2];
  int i = blockIdx.x;
  for (int e = threadIdx.x; e < s * B + 2; e += blockDim.x) {
    int g = i * s * B + e;
    if (g < N) w[e] = a[t % 2 * N + g];
  }
  __syncthreads();
  for (int k = 0; k < s; ++k) {
    int p = k * B + threadIdx.x;
    w[s * B + 2 + p + 1] = (w[p] + w[p + 1] + w[p + 2]) / 3;
  }
  __syncthreads();
  for (int e = threadIdx.x; e < s * B; e += blockDim.x) a[(1 - t % 2) * N + i * s * B + e + 1] = w[s * B + 3 + e];
}
void jacobi_one(int N, int s, int B, int t, int *a) {
  extern int w[2 * B + 2];
  int i = blockIdx.x, j = threadIdx.x;
  for (int e = j; e < B + 2; e += blockDim.x) w[e] = a[t % 2 * N + i * B + e];
  __syncthreads();
  int p = j;
  if (t % 2) a[p + i * B + 1] = (w[p] + w[p + 1] + w[p + 2]) / 3;
  else a[N + p + i * B + 1] = (w[p] + w[p + 1] + w[p + 2]) / 3;
}
void jacobi_uncached(int N, int s, int B, int t, int *a) {
  int p = blockIdx.x * B + threadIdx.x;
  if (t % 2) {
    a[p + 1] = (a[N + p] + a[N + p + 1] + a[N + p + 2]) / 3;
  } else {
    a[N + p + 1] = (a[p] + a[p + 1] + a[p + 2]) / 3;
  }
}
