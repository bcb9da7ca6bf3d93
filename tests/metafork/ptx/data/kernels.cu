// Eleven stencil and linear-algebra kernels: one thread an `i`, `i` fastest, A[i + nx*j + nx*ny*k].
// The .ptx files beside this one are `nvcc -ptx -arch=sm_80 -O3 kernels.cu`, one kernel a file:
// nvcc -ptx -arch=sm_80 -O3 -DKERNEL_jacobi -o jacobi.ptx kernels.cu

#define AT2(a, i, j) a[(i) + nx * (j)]
#define AT3(a, i, j, k) a[(i) + nx * (j) + nx * ny * (k)]

#ifdef KERNEL_vecadd
extern "C" __global__ void vecadd(int nx, int ny, int nz, const float *__restrict__ w0, const float *__restrict__ w1,
                                  float *__restrict__ w2) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y, k = blockIdx.z;
  if (i >= nx)
    return;
  AT3(w2, i, j, k) = AT3(w0, i, j, k) + AT3(w1, i, j, k);
}
#endif

#ifdef KERNEL_jacobi
extern "C" __global__ void jacobi(int nx, int ny, float c0, float c1, float c2, const float *__restrict__ w0,
                                  float *__restrict__ w1) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 1, j = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (i >= nx - 1 || j >= ny - 1)
    return;
  AT2(w1, i, j) =
      c0 * AT2(w0, i, j) +
      c1 * (AT2(w0, i - 1, j) + AT2(w0, i, j - 1) + AT2(w0, i + 1, j) + AT2(w0, i, j + 1)) +
      c2 * (AT2(w0, i - 1, j - 1) + AT2(w0, i - 1, j + 1) + AT2(w0, i + 1, j - 1) + AT2(w0, i + 1, j + 1));
}
#endif

#ifdef KERNEL_gameoflife
extern "C" __global__ void gameoflife(int nx, int ny, const float *__restrict__ u0, float *__restrict__ u1) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 1, j = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (i >= nx - 1 || j >= ny - 1)
    return;
  float live = AT2(u0, i - 1, j - 1) + AT2(u0, i, j - 1) + AT2(u0, i + 1, j - 1) + AT2(u0, i - 1, j) +
               AT2(u0, i + 1, j) + AT2(u0, i - 1, j + 1) + AT2(u0, i, j + 1) + AT2(u0, i + 1, j + 1);
  AT2(u1, i, j) = 1.0f / (1.0f + (AT2(u0, i, j) + live - 3.0f) * (live - 3.0f) * 1e20f);
}
#endif

#ifdef KERNEL_gaussblur
extern "C" __global__ void gaussblur(int nx, int ny, float s0, float s1, float s2, float s4, float s5, float s8,
                                     const float *__restrict__ w0, float *__restrict__ w1) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 2, j = blockIdx.y * blockDim.y + threadIdx.y + 2;
  if (i >= nx - 2 || j >= ny - 2)
    return;
  float f = 1.0f / (s0 + 4.0f * (s1 + s2 + s4 + s8) + 8.0f * s5);
  AT2(w1, i, j) =
      f * (s0 * AT2(w0, i, j) +
           s1 * (AT2(w0, i - 1, j) + AT2(w0, i + 1, j) + AT2(w0, i, j - 1) + AT2(w0, i, j + 1)) +
           s2 * (AT2(w0, i - 1, j - 1) + AT2(w0, i + 1, j - 1) + AT2(w0, i - 1, j + 1) + AT2(w0, i + 1, j + 1)) +
           s4 * (AT2(w0, i - 2, j) + AT2(w0, i + 2, j) + AT2(w0, i, j - 2) + AT2(w0, i, j + 2)) +
           s5 * (AT2(w0, i - 2, j - 1) + AT2(w0, i - 1, j - 2) + AT2(w0, i + 1, j - 2) + AT2(w0, i + 2, j - 1) +
                 AT2(w0, i - 2, j + 1) + AT2(w0, i - 1, j + 2) + AT2(w0, i + 1, j + 2) + AT2(w0, i + 2, j + 1)) +
           s8 * (AT2(w0, i - 2, j - 2) + AT2(w0, i + 2, j - 2) + AT2(w0, i - 2, j + 2) + AT2(w0, i + 2, j + 2)));
}
#endif

#ifdef KERNEL_gradient
extern "C" __global__ void gradient(int nx, int ny, int nz, float alpha, float beta, float gamma,
                                    const float *__restrict__ u, float *__restrict__ ux, float *__restrict__ uy,
                                    float *__restrict__ uz) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 1, j = blockIdx.y + 1, k = blockIdx.z + 1;
  if (i >= nx - 1)
    return;
  AT3(ux, i, j, k) = alpha * (AT3(u, i + 1, j, k) - AT3(u, i - 1, j, k));
  AT3(uy, i, j, k) = beta * (AT3(u, i, j + 1, k) - AT3(u, i, j - 1, k));
  AT3(uz, i, j, k) = gamma * (AT3(u, i, j, k + 1) - AT3(u, i, j, k - 1));
}
#endif

#ifdef KERNEL_divergence
extern "C" __global__ void divergence(int nx, int ny, int nz, float alpha, float beta, float gamma,
                                      float *__restrict__ u, const float *__restrict__ ux,
                                      const float *__restrict__ uy, const float *__restrict__ uz) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 1, j = blockIdx.y + 1, k = blockIdx.z + 1;
  if (i >= nx - 1)
    return;
  AT3(u, i, j, k) = alpha * (AT3(ux, i + 1, j, k) - AT3(ux, i - 1, j, k)) +
                    beta * (AT3(uy, i, j + 1, k) - AT3(uy, i, j - 1, k)) +
                    gamma * (AT3(uz, i, j, k + 1) - AT3(uz, i, j, k - 1));
}
#endif

#ifdef KERNEL_tricubic
__device__ static void weights(float t, float w[4]) {
  w[0] = t * (t + 1.0f) * (t + 2.0f) / 6.0f;
  w[1] = -(t - 1.0f) * (t + 1.0f) * (t + 2.0f) / 2.0f;
  w[2] = (t - 1.0f) * t * (t + 2.0f) / 2.0f;
  w[3] = -(t - 1.0f) * t * (t + 1.0f) / 6.0f;
}

extern "C" __global__ void tricubic(int nx, int ny, int nz, const float *__restrict__ u0, float *__restrict__ u1,
                                    const float *__restrict__ a, const float *__restrict__ b,
                                    const float *__restrict__ c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 1, j = blockIdx.y + 1, k = blockIdx.z + 1;
  if (i >= nx - 2)
    return;
  float wx[4], wy[4], wz[4], sum = 0.0f;
  weights(AT3(a, i, j, k), wx);
  weights(AT3(b, i, j, k), wy);
  weights(AT3(c, i, j, k), wz);
#pragma unroll
  for (int dk = 0; dk < 4; dk++)
#pragma unroll
    for (int dj = 0; dj < 4; dj++)
#pragma unroll
      for (int di = 0; di < 4; di++)
        sum += wx[di] * wy[dj] * wz[dk] * AT3(u0, i + di - 1, j + dj - 1, k + dk - 1);
  AT3(u1, i, j, k) = sum;
}
#endif

#ifdef KERNEL_tricubic2
__device__ static float between(float t, float f0, float f1, float f2, float f3) {
  return (t * (t + 1.0f) * (t + 2.0f) / 6.0f) * f0 + (-(t - 1.0f) * (t + 1.0f) * (t + 2.0f) / 2.0f) * f1 +
         ((t - 1.0f) * t * (t + 2.0f) / 2.0f) * f2 + (-(t - 1.0f) * t * (t + 1.0f) / 6.0f) * f3;
}

extern "C" __global__ void tricubic2(int nx, int ny, int nz, const float *__restrict__ u0, float *__restrict__ u1,
                                     const float *__restrict__ a, const float *__restrict__ b,
                                     const float *__restrict__ c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 1, j = blockIdx.y + 1, k = blockIdx.z + 1;
  if (i >= nx - 2)
    return;
  float x = AT3(a, i, j, k), y = AT3(b, i, j, k), z = AT3(c, i, j, k), plane[4], row[4];
#pragma unroll
  for (int dk = 0; dk < 4; dk++) {
#pragma unroll
    for (int dj = 0; dj < 4; dj++)
      row[dj] = between(x, AT3(u0, i - 1, j + dj - 1, k + dk - 1), AT3(u0, i, j + dj - 1, k + dk - 1),
                        AT3(u0, i + 1, j + dj - 1, k + dk - 1), AT3(u0, i + 2, j + dj - 1, k + dk - 1));
    plane[dk] = between(y, row[0], row[1], row[2], row[3]);
  }
  AT3(u1, i, j, k) = between(z, plane[0], plane[1], plane[2], plane[3]);
}
#endif

#ifdef KERNEL_matvec
extern "C" __global__ void matvec(int nx, int ny, const float *__restrict__ A, const float *__restrict__ x,
                                  float *__restrict__ y) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= ny)
    return;
  float sum = y[j];
  for (int i = 0; i < nx; i++)
    sum += A[i + nx * j] * x[i];
  y[j] = sum;
}
#endif

#ifdef KERNEL_matmul
extern "C" __global__ void matmul(int nx, int ny, int n, const float *__restrict__ A, const float *__restrict__ B,
                                  float *__restrict__ C) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
  if (i >= nx)
    return;
  float sum = C[i + nx * j];
  for (int k = 0; k < n; k++)
    sum += A[i + nx * k] * B[k + n * j];
  C[i + nx * j] = sum;
}
#endif

#ifdef KERNEL_sincos
extern "C" __global__ void sincos_sum(int nx, int ny, int nz, const float *__restrict__ x,
                                      const float *__restrict__ y, float *__restrict__ xy) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y, k = blockIdx.z;
  if (i >= nx)
    return;
  AT3(xy, i, j, k) = sinf(AT3(x, i, j, k)) + cosf(AT3(y, i, j, k));
}
#endif
