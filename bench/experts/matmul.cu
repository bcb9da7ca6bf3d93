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
// two buffers, of which the next is fetched into registers while this one is multiplied.  RAGGED: for any n, element by element, where
// neighbouring threads have neighbouring elements.
namespace {

constexpr int WIDE = 128, DEEP = 8;

template <bool TRIANGLE, bool UPDATE = false, bool RAGGED = false>
__global__ void __launch_bounds__(THREADS) large(int n, const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
    if (TRIANGLE && blockIdx.x > blockIdx.y) return;
    __shared__ __align__(16) float left[2][DEEP][WIDE + 4], right[2][DEEP][WIDE + 4];
    const int thread = threadIdx.x, row = thread / 16 * 4, column = thread % 16 * 4, first_y = blockIdx.y * WIDE, first_x = blockIdx.x * WIDE;
    // Of a tile of 128 rows and 8 columns, and of one of 8 rows and 128: where a thread's elements are, and how far apart.
    const int tall_y = RAGGED ? thread / 8 : thread / 2, tall_x = RAGGED ? thread % 8 : thread % 2 * 4, tall = RAGGED ? 32 : 0;
    const int wide_y = RAGGED ? thread / 128 : thread / 32, wide_x = RAGGED ? thread % 128 : thread % 32 * 4, wide = RAGGED ? 2 : 0;
    const float *from_a = a + (first_y + tall_y) * n + tall_x;
    const float *from_b = TRIANGLE ? b + (first_x + tall_y) * n + tall_x : b + wide_y * n + first_x + wide_x;
    float sum[8][8] = {}, next_a[4], next_b[4];
    if (UPDATE)
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 8; j += 4) {
                const int y = first_y + i / 4 * 64 + row + i % 4, x = first_x + j / 4 * 64 + column;
                if (!RAGGED) *(float4 *)&sum[i][j] = *(const float4 *)(c + y * n + x);
                else
                    for (int part = 0; part < 4; part++)
                        if (y < n && x + part < n) sum[i][j + part] = c[y * n + x + part];
            }
    const auto four = [&](float *to, const float *from, int rows, int columns, int apart) {
        if (!RAGGED) *(float4 *)to = *(const float4 *)from;
        else
#pragma unroll
            for (int i = 0; i < 4; i++) to[i] = i * apart < rows && columns > 0 ? from[i * apart * n] : 0;
    };
    const auto fetch = [&](int k) {
        four(next_a, from_a, n - first_y - tall_y, n - k - tall_x, tall);
        if (TRIANGLE) four(next_b, from_b, n - first_x - tall_y, n - k - tall_x, tall);
        else four(next_b, from_b, n - k - wide_y, n - first_x - wide_x, wide);
    };
    const auto by_columns = [&](float (*tile)[WIDE + 4], const float *from) {
#pragma unroll
        for (int i = 0; i < 4; i++) tile[tall_x + (RAGGED ? 0 : i)][tall_y + i * tall] = from[i];
    };
    const auto put = [&](int buffer) {
        by_columns(left[buffer], next_a);
        if (TRIANGLE) by_columns(right[buffer], next_b);
        else if (!RAGGED) *(float4 *)&right[buffer][wide_y][wide_x] = *(const float4 *)next_b;
        else
#pragma unroll
            for (int i = 0; i < 4; i++) right[buffer][wide_y + i * wide][wide_x] = next_b[i];
    };
    int now = 0;
    fetch(0);
    put(0);
    __syncthreads();
    for (int k = 0; k < n; k += DEEP) {
        const bool more = k + DEEP < n;
        if (more) {
            from_a += DEEP, from_b += TRIANGLE ? DEEP : DEEP * n;
            fetch(k + DEEP);
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
        const int y = first_y + i / 4 * 64 + row + i % 4;
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            const int x = first_x + j / 4 * 64 + column, past = TRIANGLE ? y + 1 : n;
            if (RAGGED && y >= n) continue;
            if (!RAGGED && (!TRIANGLE || x + 3 <= y)) *(float4 *)(c + y * n + x) = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
            else
                for (int part = 0; part < 4; part++)
                    if (x + part < past) c[y * n + x + part] = sum[i][j + part];
        }
    }
}

}  // namespace

template <bool TRIANGLE, bool UPDATE> void large_of(int n, const float *a, const float *b, float *c) {
    const dim3 blocks((n + WIDE - 1) / WIDE, (n + WIDE - 1) / WIDE);
    if (n % WIDE == 0) large<TRIANGLE, UPDATE><<<blocks, THREADS>>>(n, a, b, c);
    else large<TRIANGLE, UPDATE, true><<<blocks, THREADS>>>(n, a, b, c);
}

extern "C" void expert_product(int n, const float *a, const float *b, float *c) { large_of<false, false>(n, a, b, c); }
extern "C" void expert_product_update(int n, const float *a, const float *b, float *c) { large_of<false, true>(n, a, b, c); }
extern "C" void expert_syrk(int n, const float *a, float *c) { large_of<true, false>(n, a, a, c); }
