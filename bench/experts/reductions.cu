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

// A row of 512 a warp, in registers.
__global__ void layer_norm(int n, float eps, const float *__restrict__ x, const float *__restrict__ gain, const float *__restrict__ shift, float *__restrict__ y) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float4 *const from = (const float4 *)(x + row * n);
    float4 v[4];
    float sum = 0, squares = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        v[k] = from[k * 32 + lane];
        sum += v[k].x + v[k].y + v[k].z + v[k].w;
    }
    const float mean = warp_sum(sum) / n;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        v[k] = make_float4(v[k].x - mean, v[k].y - mean, v[k].z - mean, v[k].w - mean);
        squares += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
    }
    const float scale = 1 / sqrtf(warp_sum(squares) / n + eps);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float4 p = ((const float4 *)gain)[k * 32 + lane], q = ((const float4 *)shift)[k * 32 + lane];
        const float4 each = {v[k].x * scale * p.x + q.x, v[k].y * scale * p.y + q.y, v[k].z * scale * p.z + q.z, v[k].w * scale * p.w + q.w};
        ((float4 *)(y + row * n))[k * 32 + lane] = each;
    }
}

// A row of 512 a block of B threads, in registers: warps add up, and each thread adds what the warps found.
template <int B> struct __align__(512 / B < 4 ? 2048 / B : 16) Part {
    static constexpr int WIDE = 512 / B < 4 ? 512 / B : 4, PARTS = 512 / B / WIDE;
    float at[WIDE];
};

template <int B, class Of> __device__ float over_block(float *ends, float v, Of of) {
#pragma unroll
    for (int k = 16; k > 0; k /= 2) v = of(v, __shfl_xor_sync(~0u, v, k));
    if (threadIdx.x % 32 == 0) ends[threadIdx.x / 32] = v;
    __syncthreads();
    float each[B / 32];
#pragma unroll
    for (int k = 0; k < B / 32; k += B < 128 ? 2 : 4) {
        if (B < 128) *(float2 *)each = *(const float2 *)ends;
        else *(float4 *)(each + k) = *(const float4 *)(ends + k);
    }
    v = each[0];
#pragma unroll
    for (int k = 1; k < B / 32; k++) v = of(v, each[k]);
    return v;
}

template <int B> __global__ void softmax_by_blocks(int n, const float *__restrict__ x, float *__restrict__ y) {
    using P = Part<B>;
    __shared__ __align__(16) float ends[2][B / 32];
    const P *const from = (const P *)(x + blockIdx.x * n) + threadIdx.x;
    P v[P::PARTS];
    float most = -INFINITY, sum = 0;
#pragma unroll
    for (int k = 0; k < P::PARTS; k++) {
        v[k] = from[k * B];
#pragma unroll
        for (int c = 0; c < P::WIDE; c++) most = fmaxf(most, v[k].at[c]);
    }
    most = over_block<B>(ends[0], most, [](float p, float q) { return fmaxf(p, q); });
#pragma unroll
    for (int k = 0; k < P::PARTS; k++)
#pragma unroll
        for (int c = 0; c < P::WIDE; c++) sum += v[k].at[c] = expf(v[k].at[c] - most);
    sum = __fdividef(1, over_block<B>(ends[1], sum, [](float p, float q) { return p + q; }));
#pragma unroll
    for (int k = 0; k < P::PARTS; k++) {
#pragma unroll
        for (int c = 0; c < P::WIDE; c++) v[k].at[c] *= sum;
        ((P *)(y + blockIdx.x * n) + threadIdx.x)[k * B] = v[k];
    }
}

template <int B>
__global__ void layer_norm_by_blocks(int n, float share, float eps, const float *__restrict__ x, const float *__restrict__ gain,
                                     const float *__restrict__ shift, float *__restrict__ y) {
    using P = Part<B>;
    __shared__ __align__(16) float ends[2][B / 32];
    const P *const from = (const P *)(x + blockIdx.x * n) + threadIdx.x;
    P v[P::PARTS];
    float sum = 0, squares = 0;
#pragma unroll
    for (int k = 0; k < P::PARTS; k++) {
        v[k] = from[k * B];
#pragma unroll
        for (int c = 0; c < P::WIDE; c++) sum += v[k].at[c];
    }
    const auto plus = [](float p, float q) { return p + q; };
    const float mean = over_block<B>(ends[0], sum, plus) * share;
#pragma unroll
    for (int k = 0; k < P::PARTS; k++)
#pragma unroll
        for (int c = 0; c < P::WIDE; c++) v[k].at[c] -= mean, squares += v[k].at[c] * v[k].at[c];
    const float scale = rsqrtf(over_block<B>(ends[1], squares, plus) * share + eps);
#pragma unroll
    for (int k = 0; k < P::PARTS; k++) {
        const P p = ((const P *)gain)[k * B + threadIdx.x], q = ((const P *)shift)[k * B + threadIdx.x];
#pragma unroll
        for (int c = 0; c < P::WIDE; c++) v[k].at[c] = v[k].at[c] * scale * p.at[c] + q.at[c];
        ((P *)(y + blockIdx.x * n) + threadIdx.x)[k * B] = v[k];
    }
}

// A row a warp.
__global__ void row_product(int n, const float *__restrict__ a, const float *__restrict__ x, float *__restrict__ y) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float4 *const from = (const float4 *)(a + row * n);
    float sum = 0;
#pragma unroll 4
    for (int k = lane; k < n / 4; k += 32) {
        const float4 p = from[k], q = ((const float4 *)x)[k];
        sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
    }
    sum = warp_sum(sum);
    if (lane == 0) y[row] += sum;
}

// All of a scalar product: 16 elements per thread, one atomic update per block.
__global__ void dot_all(const float4 *__restrict__ x, const float4 *__restrict__ y, float *__restrict__ to) {
    __shared__ float others[8];
    const int at = blockIdx.x * 1024 + threadIdx.x;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 1024; k += 256) {
        const float4 p = x[at + k], q = y[at + k];
        sum += p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) others[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_sum(threadIdx.x < 8 ? others[threadIdx.x] : 0);
    if (threadIdx.x == 0) atomicAdd(to, sum);
}

// A row a warp, an element a lane.
__global__ void csr(const int *__restrict__ first, const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *__restrict__ y) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32, end = first[row + 1];
    float sum = 0;
    for (int k = first[row] + lane; k < end; k += 32) sum += value[k] * x[column[k]];
    sum = warp_sum(sum);
    if (lane == 0) y[row] += sum;
}

// Sums up to each number of a block of 256, one number a thread.
__global__ void scan(const float *__restrict__ x, float *__restrict__ y) {
    __shared__ float ends[8];
    const int at = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = x[at];
#pragma unroll
    for (int reach = 1; reach < 32; reach *= 2) {
        const float left = __shfl_up_sync(~0u, sum, reach);
        if (lane >= reach) sum += left;
    }
    if (lane == 31) ends[warp] = sum;
    __syncthreads();
    float before = 0;
#pragma unroll
    for (int k = 0; k < 7; k++)
        if (k < warp) before += ends[k];
    y[at] = before + sum;
}

}  // namespace

extern "C" void expert_dot(int n, const float *x, const float *y, float *partial) { dot<<<n / 1024, 64>>>((const float4 *)x, (const float4 *)y, partial); }
extern "C" void expert_matvec(int m, int n, const float *A, const float *x, float *y) { matvec<<<m / 16, 128>>>(n, A, x, y); }
extern "C" void expert_matvec_transposed(int m, int n, const float *A, const float *x, float *y) { matvec_transposed<<<n / 128, 32>>>(m, n, A, x, y); }
extern "C" void expert_softmax(int m, int n, const float *x, float *y) { softmax<<<m / 4, 128>>>(n, x, y); }
extern "C" void expert_layer_norm(int m, int n, float eps, const float *x, const float *gain, const float *shift, float *y) {
    layer_norm<<<m / 4, 128>>>(n, eps, x, gain, shift, y);
}
#define BY_BLOCKS(kernel, ...) \
    B == 64 ? kernel<64><<<m, 64>>>(__VA_ARGS__) : B == 128 ? kernel<128><<<m, 128>>>(__VA_ARGS__) : kernel<256><<<m, 256>>>(__VA_ARGS__)
extern "C" void expert_softmax_by_blocks(int m, int n, int B, const float *x, float *y) { BY_BLOCKS(softmax_by_blocks, n, x, y); }
extern "C" void expert_layer_norm_by_blocks(int m, int n, int B, float eps, const float *x, const float *gain, const float *shift, float *y) {
    BY_BLOCKS(layer_norm_by_blocks, n, 1.0f / n, eps, x, gain, shift, y);
}
extern "C" void expert_row_product(int m, int n, const float *a, const float *x, float *y) { row_product<<<m / 4, 128>>>(n, a, x, y); }
extern "C" void expert_dot_all(int n, const float *x, const float *y, float *sum) { dot_all<<<n / 4096, 256>>>((const float4 *)x, (const float4 *)y, sum); }
extern "C" void expert_csr(int m, const int *first, const int *column, const float *value, const float *x, float *y) {
    csr<<<m / 4, 128>>>(first, column, value, x, y);
}
extern "C" void expert_scan(int n, const float *x, float *y) { scan<<<n / 256, 256>>>(x, y); }
