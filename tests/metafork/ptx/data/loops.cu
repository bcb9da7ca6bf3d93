// Stencils in loops that lanes leave in different passes, and guards inside of loops.
// The .ptx file beside this one is `nvcc -ptx -arch=sm_80 -O3 loops.cu`.

extern "C" __global__ void nest(int nx, int ny, int nz, const float *__restrict__ a, float *__restrict__ b) {
  for (int k = 1 + blockIdx.z * blockDim.z + threadIdx.z; k < nz - 1; k += gridDim.z * blockDim.z)
    for (int j = 1 + blockIdx.y * blockDim.y + threadIdx.y; j < ny - 1; j += gridDim.y * blockDim.y)
      for (int i = 1 + blockIdx.x * blockDim.x + threadIdx.x; i < nx - 1; i += gridDim.x * blockDim.x) {
        float sum = 0;
        for (int dk = -1; dk <= 1; dk++)
          for (int dj = -1; dj <= 1; dj++)
            for (int di = -1; di <= 1; di++)
              sum = 0.5f * sum + a[(i + di) + nx * ((j + dj) + ny * (k + dk))];
        b[i + nx * (j + ny * k)] = sum;
      }
}
extern "C" __global__ void outer(int nx, int ny, const float *__restrict__ a, float *__restrict__ b) {
  for (int i = 1 + blockIdx.x * blockDim.x + threadIdx.x; i < nx - 1; i += gridDim.x * blockDim.x)
    for (int j = 1; j < ny - 1; j++)
        b[i + nx * j] = a[i-1 + nx * j] + a[i + nx * j]*a[i+1 + nx * j] + a[i-1+nx*(j-1)]*a[i+1+nx*(j-1)];
}
extern "C" __global__ void strips(int nx, int ny, const float *__restrict__ a, float *__restrict__ b) {
  for (int block = blockIdx.x; block < (nx + 4 * blockDim.x - 1) / (4 * blockDim.x); block += gridDim.x)
    for (int s = 0; s < 4; s++) {
      int i = (block * 4 + s) * blockDim.x + threadIdx.x;
      if (i >= 1 && i < nx - 1)
        b[i] = a[i - 1] + a[i] * a[i + 1];
    }
}
extern "C" __global__ void guarded(int nx, int ny, const float *__restrict__ a, float *__restrict__ b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 1; j < ny - 1; j++)
      if (i >= 1 && i < nx - 1)
        b[i + nx * j] = a[i-1 + nx * j] + a[i + nx * j]*a[i+1 + nx * j] + a[i-1+nx*(j-1)]*a[i+1+nx*(j-1)];
}
