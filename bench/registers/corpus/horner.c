void horner_eight(int n, int B, const double *x, double *y) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    double t = x[i];
    y[i] = (((((((0.125 * t + 0.5) * t - 0.25) * t + 1.5) * t - 2.25) * t + 0.75) * t + 3.0) * t - 1.0) * t + 0.5;
  }
}
void horner_loop(int n, int d, int B, const double *c, const double *x, double *y) {
  int i = blockIdx.x * B + threadIdx.x;
  if (i < n) {
    double t = x[i], sum = 0.0;
    for (int k = 0; k <= d; ++k) sum = sum * t + c[k];
    y[i] = sum;
  }
}
