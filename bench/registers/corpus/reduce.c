void reduce_block(int n, int B, const float *a, float *out) {
  extern float t[B];
  int x = threadIdx.x;
  int i = blockIdx.x * B + x;
  t[x] = i < n ? a[i] : 0.0f;
  __syncthreads();
  for (int d = B / 2; d > 0; d /= 2) {
    if (x < d) t[x] += t[x + d];
    __syncthreads();
  }
  if (x == 0) out[blockIdx.x] = t[0];
}
void reduce_serial(int n, int s, int B, const float *a, float *out) {
  int i = (blockIdx.x * B + threadIdx.x) * s;
  float sum = 0.0f;
  for (int k = 0; k < s; ++k)
    if (i + k < n) sum += a[i + k];
  out[blockIdx.x * B + threadIdx.x] = sum;
}
