// Eighth-order central differences along `i` of products of six fields, one thread a point, under a guard of six
// comparisons: the shape of the Navier-Stokes kernel of PTXASW's section 8.5 (48 loads, 8 of each field).
// The .ptx file beside this one is `nvcc -ptx -arch=sm_80 -O3 fluxes.cu`.

#define AT(a, d) a[(i + (d)) + nx * (j + ny * k)]
#define DIFFERENCE(F)                                                                                                  \
  (0.8f * (F(1) - F(-1)) - 0.2f * (F(2) - F(-2)) + 0.038f * (F(3) - F(-3)) - 0.0035f * (F(4) - F(-4)))

#define MASS(d) AT(mx, d)
#define MOMENTUM_X(d) (AT(mx, d) * AT(u, d) + AT(p, d))
#define MOMENTUM_Y(d) (AT(my, d) * AT(u, d))
#define MOMENTUM_Z(d) (AT(mz, d) * AT(u, d))
#define ENERGY(d) ((AT(e, d) + AT(p, d)) * AT(u, d))

extern "C" __global__ void fluxes(int nx, int ny, int nz, float scale, const float *__restrict__ mx,
                                  const float *__restrict__ my, const float *__restrict__ mz,
                                  const float *__restrict__ e, const float *__restrict__ u,
                                  const float *__restrict__ p, float *__restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  int k = blockIdx.z * blockDim.z + threadIdx.z;
  int at = i + nx * (j + ny * k), size = nx * ny * nz;
  if (i >= 4 && j >= 1 && k >= 1 && i <= nx - 5 && j <= ny - 2 && k <= nz - 2) {
    out[at] = -scale * DIFFERENCE(MASS);
    out[at + size] = -scale * DIFFERENCE(MOMENTUM_X);
    out[at + 2 * size] = -scale * DIFFERENCE(MOMENTUM_Y);
    out[at + 3 * size] = -scale * DIFFERENCE(MOMENTUM_Z);
    out[at + 4 * size] = -scale * DIFFERENCE(ENERGY);
  }
}
