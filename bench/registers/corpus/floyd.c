void floyd_step(int n, int k, int B0, int B1, int *d) {
  int i = blockIdx.y * B0 + threadIdx.y, j = blockIdx.x * B1 + threadIdx.x;
  if (i < n && j < n) {
    int t = d[i * n + k] + d[k * n + j];
    if (t < d[i * n + j]) d[i * n + j] = t;
  }
}
void floyd_strip(int n, int k, int s, int B0, int B1, int *d) {
  int i = blockIdx.y * B0 + threadIdx.y;
  for (int w = 0; w < s; ++w) {
    int j = (blockIdx.x * s + w) * B1 + threadIdx.x;
    if (i < n && j < n) {
      int t = d[i * n + k] + d[k * n + j];
      if (t < d[i * n + j]) d[i * n + j] = t;
    }
  }
}
