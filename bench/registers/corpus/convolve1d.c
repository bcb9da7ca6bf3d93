void convolve_nine(int n, int B, const float *in, float *out) {
  int i = blockIdx.x * B + threadIdx.x + 4;
  if (i < n - 4)
    out[i] = 0.02f * in[i - 4] + 0.06f * in[i - 3] + 0.12f * in[i - 2] + 0.18f * in[i - 1] + 0.24f * in[i] + 0.18f * in[i + 1] + 0.12f * in[i + 2] + 0.06f * in[i + 3] + 0.02f * in[i + 4];
}
void convolve_cached(int n, int B, int s, const float *in, float *out) {
  extern float t[B * s + 8];
  int u = threadIdx.x;
  for (int e = u; e < B * s + 8; e += B) {
    int g = blockIdx.x * B * s + e;
    if (g < n) t[e] = in[g];
  }
  __syncthreads();
  for (int k = 0; k < s; ++k) {
    int p = k * B + u, g = blockIdx.x * B * s + p;
    if (g < n - 8)
      out[g + 4] = 0.02f * t[p] + 0.06f * t[p + 1] + 0.12f * t[p + 2] + 0.18f * t[p + 3] + 0.24f * t[p + 4] + 0.18f * t[p + 5] + 0.12f * t[p + 6] + 0.06f * t[p + 7] + 0.02f * t[p + 8];
  }
}
