void cubic_sixteen(int n, int w, int B, const float *in, const float *t, float *out) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    float f = t[i];
    float a0 = in[i], a1 = in[i + 1], a2 = in[i + 2], a3 = in[i + 3];
    float b0 = in[i + w], b1 = in[i + w + 1], b2 = in[i + w + 2], b3 = in[i + w + 3];
    float c0 = in[i + 2 * w], c1 = in[i + 2 * w + 1], c2 = in[i + 2 * w + 2], c3 = in[i + 2 * w + 3];
    float d0 = in[i + 3 * w], d1 = in[i + 3 * w + 1], d2 = in[i + 3 * w + 2], d3 = in[i + 3 * w + 3];
    float w0 = ((-0.5f * f + 1.0f) * f - 0.5f) * f, w1 = (1.5f * f - 2.5f) * f * f + 1.0f;
    float w2 = ((-1.5f * f + 2.0f) * f + 0.5f) * f, w3 = (0.5f * f - 0.5f) * f * f;
    float r0 = w0 * a0 + w1 * a1 + w2 * a2 + w3 * a3, r1 = w0 * b0 + w1 * b1 + w2 * b2 + w3 * b3;
    float r2 = w0 * c0 + w1 * c1 + w2 * c2 + w3 * c3, r3 = w0 * d0 + w1 * d1 + w2 * d2 + w3 * d3;
    out[i] = w0 * r0 + w1 * r1 + w2 * r2 + w3 * r3;
  }
}
void cubic_kept(int n, int w, int B, const double *in, double *out) {
  double p[16];
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    for (int k = 0; k < 16; ++k) p[k] = in[i + k / 4 * w + k % 4];
    double sum = 0.0;
    for (int k = 0; k < 16; ++k) sum += p[k] * p[15 - k] * p[(k + 5) % 16];
    out[i] = sum;
  }
}
