void fir_loop(int n, int taps, int B, const float *h, const float *x, float *y) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int k = 0; k < taps; ++k)
      if (i - k >= 0) sum += h[k] * x[i - k];
    y[i] = sum;
  }
}
void fir_cached(int n, int taps, int B, const float *h, const float *x, float *y) {
  extern float t[B + taps];
  extern float g[taps];
  int u = threadIdx.x, i = blockIdx.x * B + u;
  for (int e = u; e < B + taps; e += B) {
    int p = (int)(blockIdx.x * B) - taps + e;
    t[e] = p >= 0 && p < n ? x[p] : 0.0f;
  }
  for (int e = u; e < taps; e += B) g[e] = h[e];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < taps; ++k) sum += g[k] * t[u + taps - k];
  if (i < n) y[i] = sum;
}
