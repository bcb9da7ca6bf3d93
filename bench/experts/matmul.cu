// c += a * b: a block computes 64 x 64, a thread 4 x 4 in registers; tiles of 16 steps in shared memory, read 16 bytes at a
// time.  Each element of c adds its products in the order of the serial program.
#include <cuda_runtime.h>

namespace {

constexpr int TILE = 64, STEP = 16, THREADS = 256;

__global__ void __launch_bounds__(THREADS) product(int l, int lda, int ldb, int ldc, int next_a, int next_b, int next_c, const float *__restrict__ a,
                                                   const float *__restrict__ b, float *__restrict__ c) {
    __shared__ __align__(16) float left[STEP][TILE + 4];  // by columns of a, so that 4 rows are one access
    __shared__ __align__(16) float right[STEP][TILE];
    const int thread = threadIdx.x, row = thread / 16 * 4, column = thread % 16 * 4;
    a += blockIdx.z * next_a + (blockIdx.y * TILE + thread / 4) * lda + thread % 4 * 4;
    b += blockIdx.z * next_b + thread / 16 * ldb + blockIdx.x * TILE + column;
    c += blockIdx.z * next_c + (blockIdx.y * TILE + row) * ldc + blockIdx.x * TILE + column;
    float sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float4 old = *(const float4 *)(c + i * ldc);
        sum[i][0] = old.x, sum[i][1] = old.y, sum[i][2] = old.z, sum[i][3] = old.w;
    }
    for (int k = 0; k < l; k += STEP, a += STEP, b += STEP * ldb) {
        const float4 from_a = *(const float4 *)a, from_b = *(const float4 *)b;
        left[thread % 4 * 4][thread / 4] = from_a.x, left[thread % 4 * 4 + 1][thread / 4] = from_a.y;
        left[thread % 4 * 4 + 2][thread / 4] = from_a.z, left[thread % 4 * 4 + 3][thread / 4] = from_a.w;
        *(float4 *)&right[thread / 16][column] = from_b;
        __syncthreads();
#pragma unroll
        for (int z = 0; z < STEP; z++) {
            const float4 p = *(const float4 *)&left[z][row], q = *(const float4 *)&right[z][column];
            const float rows[4] = {p.x, p.y, p.z, p.w}, columns[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] += rows[i] * columns[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++) *(float4 *)(c + i * ldc) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}

void multiply(int batch, int m, int l, int n, int lda, int ldb, int ldc, const float *a, const float *b, float *c) {
    product<<<dim3(n / TILE, m / TILE, batch), THREADS>>>(l, lda, ldb, ldc, m * lda, l * ldb, m * ldc, a, b, c);
}

}  // namespace

extern "C" void expert_square(int n, const float *a, const float *b, float *c) { multiply(1, n, n, n, n, n, n, a, b, c); }
extern "C" void expert_tall(int m, int l, int n, const float *a, const float *b, float *c) { multiply(1, m, l, n, l, n, n, a, b, c); }
extern "C" void expert_batched(int batch, int n, const float *a, const float *b, float *c) { multiply(batch, n, n, n, n, n, n, a, b, c); }
extern "C" void expert_strided(int n, int lda, int ldb, int ldc, const float *a, const float *b, float *c) {
    multiply(1, n, n, n, lda, ldb, ldc, a, b, c);
}

// c = a * b, c += a * b, or the lower triangle of c = a * a^T: a block computes 128 x 128, a thread 8 x 8 in registers; tiles of 8 steps in
// two buffers, of which the next is fetched into registers while this one is multiplied.
namespace {

constexpr int WIDE = 128, DEEP = 8;

template <bool TRIANGLE, bool UPDATE = false>
__global__ void __launch_bounds__(THREADS) large(int n, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
    if (TRIANGLE && blockIdx.x > blockIdx.y) return;
    __shared__ __align__(16) float left[2][DEEP][WIDE], right[2][DEEP][WIDE];
    const int thread = threadIdx.x, row = thread / 16 * 4, column = thread % 16 * 4, at = thread % 2 * 4;
    const float *from_a = a + (blockIdx.y * WIDE + thread / 2) * n + at;
    const float *from_b = TRIANGLE ? b + (blockIdx.x * WIDE + thread / 2) * n + at : b + thread / 32 * n + blockIdx.x * WIDE + thread % 32 * 4;
    float sum[8][8] = {};
    if (UPDATE)
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j += 4) {
                const int y = blockIdx.y * WIDE + i / 4 * 64 + row + i % 4, x = blockIdx.x * WIDE + j / 4 * 64 + column;
                *(float4 *)&sum[i][j] = *(const float4 *)(c + y * n + x);
            }
    float4 next_a = *(const float4 *)from_a, next_b = *(const float4 *)from_b;
    int now = 0;
    const auto by_columns = [&](float (*tile)[WIDE], const float4 &four) {
        tile[at][thread / 2] = four.x, tile[at + 1][thread / 2] = four.y, tile[at + 2][thread / 2] = four.z, tile[at + 3][thread / 2] = four.w;
    };
    const auto put = [&](int buffer) {
        by_columns(left[buffer], next_a);
        if (TRIANGLE) by_columns(right[buffer], next_b);
        else *(float4 *)&right[buffer][thread / 32][thread % 32 * 4] = next_b;
    };
    put(0);
    __syncthreads();
    for (int k = 0; k < n; k += DEEP) {
        const bool more = k + DEEP < n;
        if (more) {
            from_a += DEEP, from_b += TRIANGLE ? DEEP : DEEP * n;
            next_a = *(const float4 *)from_a, next_b = *(const float4 *)from_b;
        }
#pragma unroll
        for (int z = 0; z < DEEP; z++) {
            float rows[8], columns[8];
            *(float4 *)rows = *(const float4 *)&left[now][z][row], *(float4 *)(rows + 4) = *(const float4 *)&left[now][z][64 + row];
            *(float4 *)columns = *(const float4 *)&right[now][z][column], *(float4 *)(columns + 4) = *(const float4 *)&right[now][z][64 + column];
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] += rows[i] * columns[j];
        }
        if (more) {
            now ^= 1;
            put(now);
            __syncthreads();
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int y = blockIdx.y * WIDE + i / 4 * 64 + row + i % 4;
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            const int x = blockIdx.x * WIDE + j / 4 * 64 + column;
            if (!TRIANGLE || x + 3 <= y) *(float4 *)(c + y * n + x) = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
            else
                for (int part = 0; part < 4; part++)
                    if (x + part <= y) c[y * n + x + part] = sum[i][j + part];
        }
    }
}

}  // namespace

extern "C" void expert_product(int n, const float *a, const float *b, float *c) { large<false><<<dim3(n / WIDE, n / WIDE), THREADS>>>(n, a, b, c); }
extern "C" void expert_product_update(int n, const float *a, const float *b, float *c) {
    large<false, true><<<dim3(n / WIDE, n / WIDE), THREADS>>>(n, a, b, c);
}
extern "C" void expert_syrk(int n, const float *a, float *c) { large<true><<<dim3(n / WIDE, n / WIDE), THREADS>>>(n, a, a, c); }
