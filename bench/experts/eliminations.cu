// Floyd and Warshall's shortest paths, and LU factors: one launch a step, 4 x 4 or 16 x 4 elements a thread, rows 16 bytes at a time.
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

}  // namespace

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
