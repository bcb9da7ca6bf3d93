// Floyd and Warshall's shortest paths, and LU factors.  One launch a step: 4 x 4 or 16 x 4 elements a thread, rows 16 bytes at a time.
#include <cuda_runtime.h>

namespace {

__global__ void paths(int n, int k, int *__restrict__ d) {
    const int column = (blockIdx.x * 16 + threadIdx.x) * 4, row = (blockIdx.y * 4 + threadIdx.y) * 4;
    const int4 to = *(const int4 *)(d + k * n + column);
    int *at = d + row * n;
#pragma unroll
    for (int r = 0; r < 4; r++, at += n) {
        const int from = at[k];
        int4 *const own = (int4 *)(at + column);
        int4 now = *own;
        now.x = min(now.x, from + to.x), now.y = min(now.y, from + to.y), now.z = min(now.z, from + to.z), now.w = min(now.w, from + to.w);
        *own = now;
    }
}

__global__ void divide(int n, int k, float *__restrict__ a) {
    const int row = k + 1 + blockIdx.x * 32 + threadIdx.x;
    if (row < n) a[row * n + k] = a[row * n + k] / a[k * n + k];
}

constexpr unsigned ROWS = 16;

// Columns from the multiple of 4 at or below k + 1; what lies left of k + 1 is written as it was.  A warp has every row
// of its tile, four at a time, and ends with the last.
__global__ void update(unsigned n, unsigned k, float *__restrict__ a) {
    const unsigned column = (k + 1) / 4 * 4 + (blockIdx.x * 8 + threadIdx.x) * 4, row = k + 1 + blockIdx.y * 4 * ROWS + threadIdx.y;
    if (column >= n) return;
    float4 by = *(const float4 *)(a + k * n + column);
    if (column <= k) {
        by.x = 0;
        if (column + 1 <= k) by.y = 0;
        if (column + 2 <= k) by.z = 0;
    }
    float *at = a + row * n + k, *own = a + row * n + column;
    const unsigned rows = row < n ? (n - row + 3) / 4 : 0;
#pragma unroll
    for (unsigned r = 0; r < ROWS; r++, at += 4 * n, own += 4 * n) {
        if (r >= rows) break;
        const float times = *at;
        float4 now = *(const float4 *)own;
        now.x -= times * by.x, now.y -= times * by.y, now.z -= times * by.z, now.w -= times * by.w;
        *(float4 *)own = now;
    }
}

// Blocked, 32 steps at a time: the block of the diagonal, then its rows and columns, then the rest from tiles in shared memory.
constexpr int STEPS = 32;

__global__ void paths_within(int n, int k, int *__restrict__ d) {
    __shared__ int tile[STEPS][STEPS];
    int *const at = d + (k + threadIdx.y) * n + k + threadIdx.x;
    int now = *at;
    for (int step = 0; step < STEPS; step++) {
        tile[threadIdx.y][threadIdx.x] = now;
        __syncthreads();
        now = min(now, tile[threadIdx.y][step] + tile[step][threadIdx.x]);
        __syncthreads();
    }
    *at = now;
}

// blockIdx.y says whether a tile of the rows, or of the columns, is completed; a thread has four of its elements.
__global__ void paths_beside(int n, int k, int *__restrict__ d) {
    __shared__ int own[STEPS][STEPS], diagonal[STEPS][STEPS];
    const bool columns = blockIdx.y;
    const int lane = threadIdx.x, first = blockIdx.x * STEPS;
    if (first == k) return;
    int *const at = columns ? d + (first + threadIdx.y) * n + k + lane : d + (k + threadIdx.y) * n + first + lane;
    int now[4];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        now[r] = at[8 * r * n];
        diagonal[threadIdx.y + 8 * r][lane] = d[(k + threadIdx.y + 8 * r) * n + k + lane];
    }
    for (int step = 0; step < STEPS; step++) {
#pragma unroll
        for (int r = 0; r < 4; r++) own[threadIdx.y + 8 * r][lane] = now[r];
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int row = threadIdx.y + 8 * r;
            now[r] = min(now[r], columns ? own[row][step] + diagonal[step][lane] : diagonal[row][step] + own[step][lane]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 4; r++) at[8 * r * n] = now[r];
}

// A block has 64 x 64 elements of the rest, a thread 4 x 4: `least` of them with what rows and columns come to.
template <class T, class Least> __device__ void rest(int n, int k, int first_y, int first_x, T *__restrict__ d, Least least) {
    __shared__ __align__(16) T left[STEPS][68], right[STEPS][64];
    const int thread = threadIdx.y * 16 + threadIdx.x, row = threadIdx.y * 4, column = threadIdx.x * 4;
    const int rows = min(64, n - first_y), columns = min(64, n - first_x);
    for (int at = thread; at < 64 * STEPS; at += 256) {
        if (at / STEPS < rows) left[at % STEPS][at / STEPS] = d[(first_y + at / STEPS) * n + k + at % STEPS];
        if (at % 64 < columns) right[at / 64][at % 64] = d[(k + at / 64) * n + first_x + at % 64];
    }
    __syncthreads();
    if (row >= rows || column >= columns) return;
    T now[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) *(int4 *)now[i] = *(const int4 *)(d + (first_y + row + i) * n + first_x + column);
#pragma unroll 8
    for (int step = 0; step < STEPS; step++) {
        T p[4], q[4];
        *(int4 *)p = *(const int4 *)&left[step][row], *(int4 *)q = *(const int4 *)&right[step][column];
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) now[i][j] = least(now[i][j], p[i], q[j]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) *(int4 *)(d + (first_y + row + i) * n + first_x + column) = *(const int4 *)now[i];
}

__global__ void paths_of_rest(int n, int k, int *__restrict__ d) {
    rest(n, k, blockIdx.y * 64, blockIdx.x * 64, d, [](int now, int from, int to) { return min(now, from + to); });
}

// 32 columns of L, a row a thread.
__global__ void factor(int n, int k, float *__restrict__ a) {
    extern __shared__ float rows[];
    const int row = threadIdx.x, count = n - k;
    float *const own = rows + row * (STEPS + 1);
    for (int at = threadIdx.x; at < count * STEPS; at += count) rows[at / STEPS * (STEPS + 1) + at % STEPS] = a[(k + at / STEPS) * n + k + at % STEPS];
    for (int step = 0; step < STEPS; step++) {
        __syncthreads();
        if (row > step) {
            const float times = own[step] / rows[step * (STEPS + 1) + step];
            own[step] = times;
            for (int j = step + 1; j < STEPS; j++) own[j] -= times * rows[step * (STEPS + 1) + j];
        }
    }
    __syncthreads();
    for (int at = threadIdx.x; at < count * STEPS; at += count) a[(k + at / STEPS) * n + k + at % STEPS] = rows[at / STEPS * (STEPS + 1) + at % STEPS];
}

// 32 rows of U, a column a thread, in registers.
__global__ void solve(int n, int k, float *__restrict__ a) {
    __shared__ float lower[STEPS][STEPS];
    for (int row = 0; row < STEPS; row++) lower[row][threadIdx.x] = a[(k + row) * n + k + threadIdx.x];
    __syncthreads();
    float *const at = a + k * n + k + STEPS + blockIdx.x * 32 + threadIdx.x;
    float own[STEPS];
#pragma unroll
    for (int row = 0; row < STEPS; row++) own[row] = at[row * n];
#pragma unroll
    for (int step = 0; step < STEPS; step++)
#pragma unroll
        for (int row = step + 1; row < STEPS; row++) own[row] -= lower[row][step] * own[step];
#pragma unroll
    for (int row = 0; row < STEPS; row++) at[row * n] = own[row];
}

__global__ void update_of_rest(int n, int k, float *__restrict__ a) {
    rest(n, k, k + STEPS + blockIdx.y * 64, k + STEPS + blockIdx.x * 64, a, [](float now, float times, float by) { return now - times * by; });
}

}  // namespace

extern "C" void expert_floyd_warshall_blocked(int n, int *d) {
    for (int k = 0; k < n; k += STEPS) {
        paths_within<<<1, dim3(STEPS, STEPS)>>>(n, k, d);
        paths_beside<<<dim3(n / STEPS, 2), dim3(STEPS, 8)>>>(n, k, d);
        paths_of_rest<<<dim3((n + 63) / 64, (n + 63) / 64), dim3(16, 16)>>>(n, k, d);
    }
}
extern "C" void expert_lu_blocked(int n, float *a) {
    for (int k = 0; k < n; k += STEPS) {
        const int left = n - k - STEPS;
        factor<<<1, n - k, 4 * (n - k) * (STEPS + 1)>>>(n, k, a);
        if (left == 0) break;
        solve<<<left / 32, 32>>>(n, k, a);
        update_of_rest<<<dim3((left + 63) / 64, (left + 63) / 64), dim3(16, 16)>>>(n, k, a);
    }
}
extern "C" void expert_floyd_warshall(int n, int *d) {
    for (int k = 0; k < n; k++) paths<<<dim3(n / 64, n / 16), dim3(16, 4)>>>(n, k, d);
}
extern "C" void expert_lu(int n, float *a) {
    for (int k = 0; k < n - 1; k++) {
        const int rows = n - k - 1, columns = n - (k + 1) / 4 * 4;
        divide<<<(rows + 31) / 32, 32>>>(n, k, a);
        update<<<dim3((columns + 31) / 32, (rows + 4 * ROWS - 1) / (4 * ROWS)), dim3(8, 4)>>>(n, k, a);
    }
}
