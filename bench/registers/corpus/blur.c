void blur_plain(int h, int w, int B0, int B1, const float *in, float *out) {
  int y = blockIdx.y * B0 + threadIdx.y, x = blockIdx.x * B1 + threadIdx.x;
  if (y >= 1 && y < h - 1 && x >= 1 && x < w - 1) {
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) sum += in[(y + dy) * w + x + dx];
    out[y * w + x] = sum / 9.0f;
  }
}
void blur_weights(int h, int w, int r, int B0, int B1, const float *in, const float *weights, float *out) {
  int y = blockIdx.y * B0 + threadIdx.y, x = blockIdx.x * B1 + threadIdx.x;
  if (y >= r && y < h - r && x >= r && x < w - r) {
    float sum = 0.0f;
    for (int dy = -r; dy <= r; ++dy)
      for (int dx = -r; dx <= r; ++dx) sum += weights[(dy + r) * (2 * r + 1) + dx + r] * in[(y + dy) * w + x + dx];
    out[y * w + x] = sum;
  }
}
void blur_cached(int h, int w, int r, int B0, int B1, const float *in, const float *weights, float *out) {
  extern float t[(B0 + 2 * r) * (B1 + 2 * r)];
  int y0 = blockIdx.y * B0, x0 = blockIdx.x * B1, pitch = B1 + 2 * r;
  for (int e = threadIdx.y * B1 + threadIdx.x; e < (B0 + 2 * r) * pitch; e += B0 * B1) {
    int y = y0 + e / pitch, x = x0 + e % pitch;
    t[e] = y < h && x < w ? in[y * w + x] : 0.0f;
  }
  __syncthreads();
  float sum = 0.0f;
  for (int dy = 0; dy <= 2 * r; ++dy)
    for (int dx = 0; dx <= 2 * r; ++dx) sum += weights[dy * (2 * r + 1) + dx] * t[(threadIdx.y + dy) * pitch + threadIdx.x + dx];
  if (y0 + threadIdx.y + 2 * r < h && x0 + threadIdx.x + 2 * r < w) out[(y0 + threadIdx.y + r) * w + x0 + threadIdx.x + r] = sum;
}
