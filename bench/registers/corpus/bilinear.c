void bilinear_plain(int h, int w, int oh, int ow, int B0, int B1, float sy, float sx, const float *in, float *out) {
  int y = blockIdx.y * B0 + threadIdx.y, x = blockIdx.x * B1 + threadIdx.x;
  if (y < oh && x < ow) {
    float fy = y * sy, fx = x * sx;
    int iy = (int)fy, ix = (int)fx;
    float ay = fy - iy, ax = fx - ix;
    int jy = iy + 1 < h ? iy + 1 : iy, jx = ix + 1 < w ? ix + 1 : ix;
    out[y * ow + x] = (1.0f - ay) * ((1.0f - ax) * in[iy * w + ix] + ax * in[iy * w + jx]) + ay * ((1.0f - ax) * in[jy * w + ix] + ax * in[jy * w + jx]);
  }
}
void bilinear_three(int h, int w, int oh, int ow, int B0, int B1, float sy, float sx, const float *in, float *out) {
  int y = blockIdx.y * B0 + threadIdx.y, x = blockIdx.x * B1 + threadIdx.x;
  if (y < oh && x < ow) {
    float fy = y * sy, fx = x * sx;
    int iy = (int)fy, ix = (int)fx;
    float ay = fy - iy, ax = fx - ix;
    int jy = iy + 1 < h ? iy + 1 : iy, jx = ix + 1 < w ? ix + 1 : ix;
    for (int c = 0; c < 3; ++c)
      out[(y * ow + x) * 3 + c] = (1.0f - ay) * ((1.0f - ax) * in[(iy * w + ix) * 3 + c] + ax * in[(iy * w + jx) * 3 + c]) + ay * ((1.0f - ax) * in[(jy * w + ix) * 3 + c] + ax * in[(jy * w + jx) * 3 + c]);
  }
}
