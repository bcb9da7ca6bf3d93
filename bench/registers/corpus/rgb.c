void rgb_gray(int n, int B, const unsigned char *in, unsigned char *out) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) out[i] = (299 * in[3 * i] + 587 * in[3 * i + 1] + 114 * in[3 * i + 2]) / 1000;
}
void rgb_gain(int n, int B, float gain, const unsigned char *in, unsigned char *out) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n)
    for (int c = 0; c < 3; ++c) {
      float v = in[3 * i + c] * gain;
      out[3 * i + c] = v > 255.0f ? 255 : (unsigned char)v;
    }
}
