void mandelbrot_float(int w, int h, int limit, int B, float x0, float y0, float scale, int *out) {
  int px = blockIdx.x * B + threadIdx.x, py = blockIdx.y * B + threadIdx.y;
  if (px < w && py < h) {
    float cx = x0 + px * scale, cy = y0 + py * scale, x = 0.0f, y = 0.0f;
    int k = 0;
    while (k < limit && x * x + y * y < 4.0f) {
      float t = x * x - y * y + cx;
      y = 2.0f * x * y + cy;
      x = t;
      k++;
    }
    out[py * w + px] = k;
  }
}
void mandelbrot_double(int w, int h, int limit, int B, double x0, double y0, double scale, int *out) {
  int px = blockIdx.x * B + threadIdx.x, py = blockIdx.y * B + threadIdx.y;
  if (px < w && py < h) {
    double cx = x0 + px * scale, cy = y0 + py * scale, x = 0.0, y = 0.0;
    int k = 0;
    while (k < limit && x * x + y * y < 4.0) {
      double t = x * x - y * y + cx;
      y = 2.0 * x * y + cy;
      x = t;
      k++;
    }
    out[py * w + px] = k;
  }
}
