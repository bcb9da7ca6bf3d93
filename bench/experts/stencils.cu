// Stencils.  Rows (planes) that several results need are kept in registers while a thread walks down its column.
#include <cuda_runtime.h>

namespace {

__global__ void mean_of_integers(int from, int to, int *__restrict__ a) {
    const int p = blockIdx.x * 256 + threadIdx.x;
    a[to + p + 1] = (a[from + p] + a[from + p + 1] + a[from + p + 2]) / 3;
}

// Four pairs of neighbours a thread.
__global__ void mean(const float *__restrict__ x, float *__restrict__ y) {
    const int p = blockIdx.x * 512 + threadIdx.x * 2;
    x += p, y += p + 1;
#pragma unroll
    for (int k = 0; k < 512; k += 128) {
        const float2 v = *(const float2 *)(x + k), w = *(const float2 *)(x + k + 2);
        y[k] = (v.x + v.y + w.x) / 3;
        y[k + 1] = (v.y + w.x + w.y) / 3;
    }
}

// Nine points, 8 rows a thread.
__global__ void box(int columns, float c0, float c1, float c2, const float *__restrict__ a, float *__restrict__ b) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = (blockIdx.y * 8 + threadIdx.y) * 8;
    a += y * columns + x, b += (y + 1) * columns + x + 1;
    float row[3][3];
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int q = 0; q < 3; q++) row[r][q] = a[r * columns + q];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const float *const next = a + (k + 2) * columns;
        float(&up)[3] = row[k % 3], (&middle)[3] = row[(k + 1) % 3], (&down)[3] = row[(k + 2) % 3];
        down[0] = next[0], down[1] = next[1], down[2] = next[2];
        b[k * columns] = c0 * middle[1] + c1 * (middle[0] + middle[2] + up[1] + down[1]) + c2 * (up[0] + up[2] + down[0] + down[2]);
    }
}

template <typename T> struct Two;
template <> struct Two<float> { using type = float2; };
template <> struct Two<double> { using type = double2; };

// Four neighbours of a row, of which the first is at an even place, and the two in their middle.
template <typename T> __device__ void load4(T (&to)[4], const T *from) {
    using Pair = typename Two<T>::type;
    const Pair p = *(const Pair *)from, q = *(const Pair *)(from + 2);
    to[0] = p.x, to[1] = p.y, to[2] = q.x, to[3] = q.y;
}
template <typename T> __device__ void load2(T (&to)[2], const T *from) { to[0] = from[1], to[1] = from[2]; }

// Five points: 2 columns and 16 rows a thread.
__global__ void cross(int n, const float *__restrict__ a, float *__restrict__ b) {
    const int x = (blockIdx.x * 32 + threadIdx.x) * 2, y = (blockIdx.y * 4 + threadIdx.y) * 16;
    a += y * n + x, b += y * n + x;
    float row[3][4];
#pragma unroll
    for (int r = 0; r < 18; r++) {
        load4(row[r % 3], a + r * n);
        if (r < 2) continue;
        const float(&up)[4] = row[(r - 2) % 3], (&middle)[4] = row[(r - 1) % 3], (&down)[4] = row[r % 3];
#pragma unroll
        for (int q = 1; q <= 2; q++) b[(r - 1) * n + q] = 0.2f * (middle[q] + middle[q - 1] + middle[q + 1] + up[q] + down[q]);
    }
}

template <typename T> struct Heat {
    T c;
    __device__ T operator()(T middle, T before, T after, T up, T down, T left, T right) const {
        return middle + c * (before + after + up + down + left + right - T(6) * middle);
    }
};

struct Seven {
    float by[7];
    __device__ explicit Seven(const float *__restrict__ from) {
#pragma unroll
        for (int k = 0; k < 7; k++) by[k] = from[k];
    }
    __device__ float operator()(float middle, float before, float after, float up, float down, float left, float right) const {
        return by[0] * middle + by[1] * before + by[2] * after + by[3] * up + by[4] * down + by[5] * left + by[6] * right;
    }
};

// Seven points: a thread walks planes of 4 rows by 2 columns.
template <typename T, typename Points, typename From, int PLANES, int BX, int BY>
__global__ void heat(int m, int n, From from, const T *__restrict__ u, T *__restrict__ w) {
    const Points points{from};
    const int x = (blockIdx.x * BX + threadIdx.x) * 2, y = (blockIdx.y * BY + threadIdx.y) * 4, plane = m * n;
    const int at = blockIdx.z * PLANES * plane + y * n + x;
    u += at, w += at;
    T before[4][2], now[4][4], next[4][4];
#pragma unroll
    for (int r = 0; r < 4; r++) load2(before[r], u + (r + 1) * n), load4(now[r], u + plane + (r + 1) * n);
#pragma unroll
    for (int z = 1; z <= PLANES; z++) {
        T above[2], below[2];
        load2(above, u + z * plane), load2(below, u + z * plane + 5 * n);
#pragma unroll
        for (int r = 0; r < 4; r++) load4(next[r], u + (z + 1) * plane + (r + 1) * n);
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int q = 0; q < 2; q++) {
                const T up = r == 0 ? above[q] : now[r - 1][q + 1], down = r == 3 ? below[q] : now[r + 1][q + 1], middle = now[r][q + 1];
                w[z * plane + (r + 1) * n + q + 1] = points(middle, before[r][q], next[r][q + 1], up, down, now[r][q], now[r][q + 2]);
            }
#pragma unroll
        for (int r = 0; r < 4; r++) {
            before[r][0] = now[r][1], before[r][1] = now[r][2];
#pragma unroll
            for (int q = 0; q < 4; q++) now[r][q] = next[r][q];
        }
    }
}

}  // namespace

extern "C" void expert_jacobi1d(int T, int N, int *a) {
    for (int t = 0; t < T; t++) mean_of_integers<<<(N - 2) / 256, 256>>>(t % 2 ? N : 0, t % 2 ? 0 : N, a);
}
extern "C" void expert_smooth(int n, const float *x, float *y) { mean<<<(n - 2) / 512, 64>>>(x, y); }
extern "C" void expert_jacobi2d(int rows, int columns, float c0, float c1, float c2, const float *a, float *b) {
    box<<<dim3((columns - 2) / 32, (rows - 2) / 64), dim3(32, 8)>>>(columns, c0, c1, c2, a, b);
}
extern "C" void expert_jacobi2d_time(int T, int n, float *a, float *b) {
    const dim3 grid((n - 2) / 64, (n - 2) / 64), block(32, 4);
    for (int t = 0; t < T; t++) cross<<<grid, block>>>(n, a, b), cross<<<grid, block>>>(n, b, a);
}
extern "C" void expert_jacobi3d(int T, int n, float c, float *u, float *w) {
    const dim3 grid((n - 2) / 64, (n - 2) / 8, (n - 2) / 16), block(32, 2);
    const auto step = heat<float, Heat<float>, float, 16, 32, 2>;
    for (int t = 0; t < T; t++) step<<<grid, block>>>(n, n, c, u, w), step<<<grid, block>>>(n, n, c, w, u);
}
extern "C" void expert_heat3d(int n, int steps, double c, double *u, double *w) {
    const dim3 grid((n - 2) / 32, (n - 2) / 8, (n - 2) / 16), block(16, 2);
    const auto step = heat<double, Heat<double>, double, 16, 16, 2>;
    for (int t = 0; t < steps; t++) step<<<grid, block>>>(n, n, c, u, w), step<<<grid, block>>>(n, n, c, w, u);
}
extern "C" void expert_seven_points(int l, int m, int n, const float *c, const float *u, float *w) {
    heat<float, Seven, const float *, 16, 32, 2><<<dim3((n - 2) / 64, (m - 2) / 8, (l - 2) / 16), dim3(32, 2)>>>(m, n, c, u, w);
}
