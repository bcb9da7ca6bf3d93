// Copies, transposition, sums of matrices and vectors.
#include <cuda_runtime.h>

namespace {

__global__ void copy(int n, const int *__restrict__ a, int *__restrict__ c) {
    const int at = (blockIdx.y * 8 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x;
    c[at] = a[at];
}

// A tile of 32 x 32 with a padded row, so that its columns lie in different banks; 4 rows a thread.
__global__ void transpose(int n, const int *__restrict__ a, int *__restrict__ c) {
    __shared__ int tile[32][33];
    const int from = (blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x;
    const int to = (blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = a[from + k * n];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; k += 8) c[to + k * n] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void matadd(int n, const int *__restrict__ a, const int *__restrict__ b, int *__restrict__ c) {
    const int at = (blockIdx.y * 8 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x;
    c[at] = a[at] + b[at];
}

__global__ void axpy(float alpha, const float4 *__restrict__ x, float4 *__restrict__ y) {
    const int at = blockIdx.x * 256 + threadIdx.x;
    const float4 p = x[at];
    float4 q = y[at];
    q.x += alpha * p.x, q.y += alpha * p.y, q.z += alpha * p.z, q.w += alpha * p.w;
    y[at] = q;
}

}  // namespace

extern "C" void expert_copy(int N, const int *a, int *c) { copy<<<dim3(N / 32, N / 8), dim3(32, 8)>>>(N, a, c); }
extern "C" void expert_transpose(int N, const int *a, int *c) { transpose<<<dim3(N / 32, N / 32), dim3(32, 8)>>>(N, a, c); }
extern "C" void expert_matadd(int N, const int *a, const int *b, int *c) { matadd<<<dim3(N / 32, N / 8), dim3(32, 8)>>>(N, a, b, c); }
extern "C" void expert_axpy(int n, float alpha, const float *x, float *y) { axpy<<<n / 1024, 256>>>(alpha, (const float4 *)x, (float4 *)y); }
