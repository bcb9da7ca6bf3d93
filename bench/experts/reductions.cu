// Sums in another order than the serial programs, except matvec_transposed: warps reduce with shuffles.
#include <cuda_runtime.h>

namespace {

__device__ float warp_sum(float v) {
#pragma unroll
    for (int k = 16; k > 0; k /= 2) v += __shfl_xor_sync(~0u, v, k);
    return v;
}

__global__ void dot(const float4 *__restrict__ x, const float4 *__restrict__ y, float *__restrict__ partial) {
    __shared__ float other;
    const int at = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 256; k += 64) {
        const float4 p = x[at + k], q = y[at + k];
        sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
    }
    sum = warp_sum(sum);
    if (threadIdx.x == 32) other = sum;
    __syncthreads();
    if (threadIdx.x == 0) partial[blockIdx.x] = sum + other;
}

// Four rows a warp.
__global__ void matvec(int n, const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y) {
    const int row = (blockIdx.x * 4 + threadIdx.x / 32) * 4, lane = threadIdx.x % 32;
    const float4 *from = (const float4 *)(a + row * n) + lane;
    float sum[4] = {};
    n /= 4;
#pragma unroll 4
    for (int k = lane; k < n; k += 32, from += 32) {
        const float4 q = ((const float4 *)x)[k];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const float4 p = from[r * n];
            sum[r] += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
        }
    }
#pragma unroll
    for (int r = 0; r < 4; r++) sum[r] = warp_sum(sum[r]);
    if (lane == 0) {
#pragma unroll
        for (int r = 0; r < 4; r++) y[row + r] += sum[r];
    }
}

// Four columns per thread; 4 elements of x at once.
__global__ void matvec_transposed(int m, int n, const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y) {
    const int column = (blockIdx.x * 32 + threadIdx.x) * 4;
    a += column, y += column;
    float4 sum = *(const float4 *)y;
#pragma unroll 4
    for (int i = 0; i < m; i += 4) {
        const float4 p = *(const float4 *)(x + i);
        const float by[4] = {p.x, p.y, p.z, p.w};
#pragma unroll
        for (int r = 0; r < 4; r++, a += n) {
            const float4 v = *(const float4 *)a;
            sum.x += v.x * by[r], sum.y += v.y * by[r], sum.z += v.z * by[r], sum.w += v.w * by[r];
        }
    }
    *(float4 *)y = sum;
}

// A row of 512 a warp, in registers.
__global__ void softmax(int n, const float *__restrict__ x, float *__restrict__ y) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float4 *const from = (const float4 *)(x + row * n);
    float4 v[4];
    float most = -INFINITY, sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        v[k] = from[k * 32 + lane];
        most = fmaxf(most, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
    }
#pragma unroll
    for (int k = 16; k > 0; k /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, k));
#pragma unroll
    for (int k = 0; k < 4; k++) {
        v[k] = make_float4(expf(v[k].x - most), expf(v[k].y - most), expf(v[k].z - most), expf(v[k].w - most));
        sum += v[k].x + v[k].y + v[k].z + v[k].w;
    }
    sum = 1 / warp_sum(sum);
#pragma unroll
    for (int k = 0; k < 4; k++) ((float4 *)(y + row * n))[k * 32 + lane] = make_float4(v[k].x * sum, v[k].y * sum, v[k].z * sum, v[k].w * sum);
}

}  // namespace

extern "C" void expert_dot(int n, const float *x, const float *y, float *partial) { dot<<<n / 1024, 64>>>((const float4 *)x, (const float4 *)y, partial); }
extern "C" void expert_matvec(int m, int n, const float *A, const float *x, float *y) { matvec<<<m / 16, 128>>>(n, A, x, y); }
extern "C" void expert_matvec_transposed(int m, int n, const float *A, const float *x, float *y) { matvec_transposed<<<n / 128, 32>>>(m, n, A, x, y); }
extern "C" void expert_softmax(int m, int n, const float *x, float *y) { softmax<<<m / 4, 128>>>(n, x, y); }
