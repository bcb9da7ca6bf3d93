// Kernels of test_rig.py.
#include <cuda_runtime.h>

__global__ void numbers(int n, const float *x, const double *d, const int *k, float *single, double *twice, int *whole) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    single[i] = sqrtf(x[i]) / (x[(i + 1) % n] + 0.1f) - x[i] * 3.0f + (float)k[i];
    twice[i] = sqrt(d[i]) / (d[(i + 1) % n] + 0.1) - d[i] * 3.0 + (double)x[i] + (double)k[i];
    whole[i] = k[i] / 7 + k[i] % 11 + (int)(d[i] * 1000.0) - (int)(x[i] * 1000.0f) + (x[i] < 0.5f ? 1 : (int)floor(d[i]));
}

__global__ void exponentials(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = expf(x[i]);
}

template <int PITCH> __device__ void transposed(const float *a, float *b) {
    __shared__ float tile[32][PITCH];
    tile[threadIdx.y][threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    b[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void conflicts(const float *a, float *b) { transposed<32>(a, b); }
__global__ void padded(const float *a, float *b) { transposed<33>(a, b); }

__global__ void asynchronous(const float4 *a, float4 *b) {
    __shared__ float4 tile[64];
    const unsigned to = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;" ::"r"(to),
                 "l"(a + threadIdx.x)
                 : "memory");
    __syncthreads();
    b[threadIdx.x] = tile[63 - threadIdx.x];
}

// Lanes leave the loop one after the other, and meet again for the sum.
__global__ void divergent(const int *a, int *b) {
    int steps = 0;
    for (int v = a[threadIdx.x]; v != 1; steps++) v = v % 2 == 0 ? v / 2 : 3 * v + 1;
    for (int k = 16; k > 0; k /= 2) steps += __shfl_xor_sync(~0u, steps, k);
    b[threadIdx.x] = steps;
}

__global__ void first_warp(int n, const int *a, int *b) {
    if (threadIdx.x < 32) {
        int sum = 0;
        for (int i = threadIdx.x; i < n; i += 32) sum += a[i];
        for (int k = 16; k > 0; k /= 2) {
            const int other = __shfl_sync(~0u, sum, threadIdx.x + k);
            if (threadIdx.x < k) sum += other;
        }
        b[threadIdx.x] = sum;
    }
    __syncthreads();
}

__global__ void neighbours(const float *a, float *b) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = a[i] + a[i + 8];
}

__global__ void outside(int at, float *a) { a[at] = 1; }
__global__ void atomic(int *a) { atomicAdd(a, 1); }

extern "C" {
void run_numbers(int n, const float *x, const double *d, const int *k, float *single, double *twice, int *whole) {
    numbers<<<(n + 63) / 64, 64>>>(n, x, d, k, single, twice, whole);
}
void run_exponentials(int n, const float *x, float *y) { exponentials<<<(n + 63) / 64, 64>>>(n, x, y); }
void run_neighbours(const float *a, float *b) { neighbours<<<2, 32>>>(a, b); }
void run_conflicts(const float *a, float *b) { conflicts<<<1, dim3(32, 32)>>>(a, b); }
void run_padded(const float *a, float *b) { padded<<<1, dim3(32, 32)>>>(a, b); }
void run_asynchronous(const float *a, float *b) { asynchronous<<<1, 64>>>((const float4 *)a, (float4 *)b); }
void run_first_warp(int n, const int *a, int *b) { first_warp<<<1, 64>>>(n, a, b); }
void run_divergent(const int *a, int *b) { divergent<<<1, 32>>>(a, b); }
void run_outside(int at, float *a) { outside<<<1, 1>>>(at, a); }
void run_atomic(int *a) { atomic<<<1, 1>>>(a); }
}
