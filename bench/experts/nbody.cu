// Accelerations of bodies by all of them: bodies pass through shared memory, 16 bytes each.
#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 128;

__global__ void __launch_bounds__(THREADS) accelerations(int n, float soft, const float *__restrict__ x, const float *__restrict__ y,
                                                         const float *__restrict__ z, const float *__restrict__ mass, float *__restrict__ ax,
                                                         float *__restrict__ ay, float *__restrict__ az) {
    __shared__ float4 body[THREADS];
    const int own = blockIdx.x * THREADS + threadIdx.x;
    const float px = x[own], py = y[own], pz = z[own];
    float sx = 0, sy = 0, sz = 0;
    for (int tile = 0; tile < n; tile += THREADS) {
        const int other = tile + threadIdx.x;
        body[threadIdx.x] = make_float4(x[other], y[other], z[other], mass[other]);
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < THREADS; j++) {
            const float4 b = body[j];
            const float dx = b.x - px, dy = b.y - py, dz = b.z - pz;
            const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + soft);
            const float pull = b.w * inverse * inverse * inverse;
            sx += pull * dx, sy += pull * dy, sz += pull * dz;
        }
        __syncthreads();
    }
    ax[own] = sx, ay[own] = sy, az[own] = sz;
}

}  // namespace

extern "C" void expert_nbody(int n, float soft, const float *x, const float *y, const float *z, const float *mass, float *ax, float *ay, float *az) {
    accelerations<<<n / THREADS, THREADS>>>(n, soft, x, y, z, mass, ax, ay, az);
}
