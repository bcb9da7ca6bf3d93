// Plain versions of what `examples/swizzle` does in registers: through shared memory, or straight from memory.
#include <cuda_runtime.h>

namespace {

// Neighbours through shared memory, one result per thread; tiles of 32 results.
template <int K, bool WEIGHTED>
__global__ void line(const float *x, const float *w, float *out) {
    __shared__ float tile[128 + K - 1];
    const int first = blockIdx.x * 128, t = threadIdx.x;
    tile[t] = x[first + t];
    if (t < K - 1) tile[128 + t] = x[first + 128 + t];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < K; k++) sum += WEIGHTED ? w[k] * tile[t + k] : tile[t + k];
    out[first + t] = sum;
}

// Eight tiles of 4 by 4 results a block, each with an array of its own.
template <int K, bool WEIGHTED>
__global__ void plane(const float *x, const float *w, float *out) {
    constexpr int M = K + 3;
    __shared__ float tile[8][M * M];
    const int g = threadIdx.x / 16, t = threadIdx.x % 16, at = blockIdx.x * 8 + g;
    for (int e = t; e < M * M; e += 16) tile[g][e] = x[at * M * M + e];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < K; i++)
#pragma unroll
        for (int j = 0; j < K; j++) {
            const float v = tile[g][(t / 4 + i) * M + t % 4 + j];
            sum += WEIGHTED ? w[i * K + j] * v : v;
        }
    out[at * 16 + t] = sum;
}

// Products of polynomials over two elements, of 32 words.
__global__ void field(const unsigned *a, const unsigned *b, unsigned *out) {
    __shared__ unsigned s[4][2][32];
    const int g = threadIdx.x / 32, i = threadIdx.x % 32, at = blockIdx.x * 4 + g;
    s[g][0][i] = a[at * 32 + i], s[g][1][i] = b[at * 32 + i];
    __syncthreads();
    unsigned low = 0, high = 0;
#pragma unroll
    for (int j = 0; j < 32; j++) {
        if (j <= i) low ^= s[g][0][j] & s[g][1][i - j];
        else high ^= s[g][0][j] & s[g][1][32 + i - j];
    }
    out[(at * 32 + i) * 2] = low, out[(at * 32 + i) * 2 + 1] = high;
}

// Structures of S words, straight from memory: their sum, or their words one array a tile.
template <int S>
__global__ void structures(const float *x, float *out, bool apart) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    float v[S], sum = 0;
#pragma unroll
    for (int j = 0; j < S; j++) v[j] = x[i * S + j], sum += v[j];
    if (!apart) out[i] = sum;
    else
#pragma unroll
        for (int j = 0; j < S; j++) out[(i / 32 * S + j) * 32 + i % 32] = v[j];
}

}  // namespace

extern "C" void plain_stencil1d(const float *x, float *out, int tiles) { line<3, false><<<tiles / 4, 128>>>(x, nullptr, out); }
extern "C" void plain_conv1d(const float *x, const float *w, float *out, int tiles) { line<3, true><<<tiles / 4, 128>>>(x, w, out); }
extern "C" void plain_stencil2d(const float *x, float *out, int tiles) { plane<3, false><<<tiles / 8, 128>>>(x, nullptr, out); }
extern "C" void plain_conv2d(const float *x, const float *w, float *out, int tiles) { plane<3, true><<<tiles / 8, 128>>>(x, w, out); }
extern "C" void plain_finite_field(const unsigned *a, const unsigned *b, unsigned *out, int tiles) { field<<<tiles / 4, 128>>>(a, b, out); }
#define STRUCTURES(S) \
    extern "C" void plain_sum##S(const float *x, float *out, int tiles) { structures<S><<<tiles / 4, 128>>>(x, out, false); } \
    extern "C" void plain_rcr##S(const float *x, float *out, int tiles) { structures<S><<<tiles / 4, 128>>>(x, out, true); }
STRUCTURES(3)
STRUCTURES(5)
STRUCTURES(7)
