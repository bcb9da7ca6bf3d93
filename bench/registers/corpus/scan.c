void scan_block(int n, int B, const int *a, int *out) {
  extern int t[2 * B];
  int x = threadIdx.x, i = blockIdx.x * B + x, from = 0;
  t[x] = i < n ? a[i] : 0;
  __syncthreads();
  for (int d = 1; d < B; d *= 2) {
    int to = 1 - from;
    t[to * B + x] = t[from * B + x] + (x >= d ? t[from * B + x - d] : 0);
    from = to;
    __syncthreads();
  }
  if (i < n) out[i] = t[from * B + x];
}
void scan_serial(int n, int s, int B, const int *a, int *out) {
  int i = (blockIdx.x * B + threadIdx.x) * s, sum = 0;
  for (int k = 0; k < s && i + k < n; ++k) {
    sum += a[i + k];
    out[i + k] = sum;
  }
}
