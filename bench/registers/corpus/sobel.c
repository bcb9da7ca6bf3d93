void sobel_float(int h, int w, int B0, int B1, const float *in, float *out) {
  int y = blockIdx.y * B0 + threadIdx.y, x = blockIdx.x * B1 + threadIdx.x;
  if (y > 0 && y < h - 1 && x > 0 && x < w - 1) {
    float a = in[(y - 1) * w + x - 1], b = in[(y - 1) * w + x], c = in[(y - 1) * w + x + 1];
    float d = in[y * w + x - 1], f = in[y * w + x + 1];
    float g = in[(y + 1) * w + x - 1], i = in[(y + 1) * w + x], j = in[(y + 1) * w + x + 1];
    float gx = c + 2.0f * f + j - a - 2.0f * d - g, gy = g + 2.0f * i + j - a - 2.0f * b - c;
    out[y * w + x] = sqrtf(gx * gx + gy * gy);
  }
}
void sobel_bytes(int h, int w, int B0, int B1, const unsigned char *in, unsigned char *out) {
  int y = blockIdx.y * B0 + threadIdx.y, x = blockIdx.x * B1 + threadIdx.x;
  if (y > 0 && y < h - 1 && x > 0 && x < w - 1) {
    int a = in[(y - 1) * w + x - 1], b = in[(y - 1) * w + x], c = in[(y - 1) * w + x + 1];
    int d = in[y * w + x - 1], f = in[y * w + x + 1];
    int g = in[(y + 1) * w + x - 1], i = in[(y + 1) * w + x], j = in[(y + 1) * w + x + 1];
    int gx = c + 2 * f + j - a - 2 * d - g, gy = g + 2 * i + j - a - 2 * b - c;
    int m = abs(gx) + abs(gy);
    out[y * w + x] = m > 255 ? 255 : m;
  }
}
