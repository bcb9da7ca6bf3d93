void butterfly_stage(int n, int half, int B, const float *wr, const float *wi, float *re, float *im) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n / 2) {
    int k = i % half, p = i / half * 2 * half + k, q = p + half;
    float c = wr[k * (n / 2 / half)], s = wi[k * (n / 2 / half)];
    float tr = c * re[q] - s * im[q], ti = c * im[q] + s * re[q];
    re[q] = re[p] - tr;
    im[q] = im[p] - ti;
    re[p] = re[p] + tr;
    im[p] = im[p] + ti;
  }
}
void butterfly_four(int n, int B, const double *wr, const double *wi, double *re, double *im) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n / 4) {
    double ar = re[i], ai = im[i], br = re[i + n / 4], bi = im[i + n / 4], cr = re[i + n / 2], ci = im[i + n / 2], dr = re[i + 3 * (n / 4)], di = im[i + 3 * (n / 4)];
    double sr = ar + cr, si = ai + ci, tr = ar - cr, ti = ai - ci, ur = br + dr, ui = bi + di, vr = bi - di, vi = dr - br;
    re[i] = sr + ur;
    im[i] = si + ui;
    double xr = tr + vr, xi = ti + vi, yr = sr - ur, yi = si - ui, zr = tr - vr, zi = ti - vi;
    re[i + n / 4] = xr * wr[i] - xi * wi[i];
    im[i + n / 4] = xr * wi[i] + xi * wr[i];
    re[i + n / 2] = yr * wr[2 * i] - yi * wi[2 * i];
    im[i + n / 2] = yr * wi[2 * i] + yi * wr[2 * i];
    re[i + 3 * (n / 4)] = zr * wr[3 * i] - zi * wi[3 * i];
    im[i + 3 * (n / 4)] = zr * wi[3 * i] + zi * wr[3 * i];
  }
}
