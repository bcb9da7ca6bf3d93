void life_plain(int h, int w, int B0, int B1, const unsigned char *in, unsigned char *out) {
  int y = blockIdx.y * B0 + threadIdx.y, x = blockIdx.x * B1 + threadIdx.x;
  if (y > 0 && y < h - 1 && x > 0 && x < w - 1) {
    int c = in[(y - 1) * w + x - 1] + in[(y - 1) * w + x] + in[(y - 1) * w + x + 1] + in[y * w + x - 1] + in[y * w + x + 1] + in[(y + 1) * w + x - 1] + in[(y + 1) * w + x] + in[(y + 1) * w + x + 1];
    out[y * w + x] = c == 3 || (c == 2 && in[y * w + x]);
  }
}
void life_column(int h, int w, int s, int B1, const unsigned char *in, unsigned char *out) {
  int x = blockIdx.x * B1 + threadIdx.x;
  if (x > 0 && x < w - 1) {
    for (int k = 0; k < s; ++k) {
      int y = blockIdx.y * s + k + 1;
      if (y < h - 1) {
        int c = in[(y - 1) * w + x - 1] + in[(y - 1) * w + x] + in[(y - 1) * w + x + 1] + in[y * w + x - 1] + in[y * w + x + 1] + in[(y + 1) * w + x - 1] + in[(y + 1) * w + x] + in[(y + 1) * w + x + 1];
        out[y * w + x] = c == 3 || (c == 2 && in[y * w + x]);
      }
    }
  }
}
