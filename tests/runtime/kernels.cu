// Kernels that show what the CPU build must do; `main` runs the one that is named.
#include "metafork/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern "C" __global__ void multiply(int n, int B, const float *METAFORK_RESTRICT a, const float *METAFORK_RESTRICT b,
                                    float *METAFORK_RESTRICT c)
{
    METAFORK_SHARED(base);
    METAFORK_SHARED_ARRAY(float, a_s, base, 0, B * B);
    METAFORK_SHARED_ARRAY(float, b_s, base, 4 * B * B, B * B);
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * B + y, column = blockIdx.x * B + x;
    float sum = c[row * n + column];
    for (int k = 0; k < n / B; k++) {
        a_s[y * B + x] = a[row * n + k * B + x];
        b_s[y * B + x] = b[(k * B + y) * n + column];
        __syncthreads();
        for (int z = 0; z < B; z++) sum += a_s[y * B + z] * b_s[z * B + x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// The sum of all numbers of threads, by a tree of barriers; every thread takes part in each.
extern "C" __global__ void reduce(long long *METAFORK_RESTRICT out)
{
    METAFORK_SHARED(base);
    METAFORK_SHARED_ARRAY(long long, s, base, 0, blockDim.x *blockDim.y *blockDim.z);
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    const unsigned self = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    s[self] = self;
    for (unsigned width = threads / 2; width > 0; width /= 2) {
        __syncthreads();
        if (self < width) s[self] += s[self + width];
    }
    if (self == 0) out[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = s[0];
}

extern "C" __global__ void not_all_wait(int first)
{
    if ((int)threadIdx.x >= first) {
        __syncthreads();
    }
}

extern "C" __global__ void different_barriers()
{
    if (threadIdx.x % 2 == 0) {
        __syncthreads();
    } else {
        __syncthreads();
    }
}

extern "C" __global__ void one_more_barrier()
{
    for (unsigned i = 0; i <= threadIdx.x / 7; i++) {
        __syncthreads();
    }
}

/* Sums over warps by shuffles, where a warp is whole, and over the block through shared memory, four times over. */
extern "C" __global__ void warp_sums(long long *out)
{
    METAFORK_SHARED(base);
    METAFORK_SHARED_ARRAY(long long, s, base, 0, blockDim.x * blockDim.y);
    const int self = (int)(threadIdx.y * blockDim.x + threadIdx.x), threads = (int)(blockDim.x * blockDim.y);
    long long value = self + 1;
    for (int round = 0; round < 4; round++) {
        if ((self | 31) < threads)
            for (int step = 16; step > 0; step /= 2) value += METAFORK_SHUFFLE(value, (self ^ step) & 31);
        s[self] = value;
        __syncthreads();
        value = 0;
        for (int i = 0; i < threads; i += (i | 31) < threads ? 32 : 1) value += s[i] % 1000003;
        value += self;
        __syncthreads();
    }
    out[self] = value;
}

extern "C" __global__ void not_all_shuffle(int first)
{
    if ((int)threadIdx.x >= first) METAFORK_SHUFFLE((int)threadIdx.x, 0);
}

extern "C" __global__ void shuffle_or_wait(int first)
{
    if ((int)threadIdx.x >= first) METAFORK_SHUFFLE((int)threadIdx.x, 0);
    __syncthreads();
}

extern "C" __global__ void different_shuffles()
{
    if (threadIdx.x % 2 == 0) {
        METAFORK_SHUFFLE((int)threadIdx.x, 0);
    } else {
        METAFORK_SHUFFLE((int)threadIdx.x, 1);
    }
}

extern "C" __global__ void overrun(int index)
{
    METAFORK_SHARED(base);
    METAFORK_SHARED_ARRAY(int, first, base, 0, 4);
    METAFORK_SHARED_ARRAY(int, second, base, 16, 4);
    second[0] = 1;
    first[index] = 7;
}

extern "C" __global__ void too_large(int extent)
{
    METAFORK_SHARED(base);
    METAFORK_SHARED_ARRAY(int, first, base, 0, extent);
    if (extent != -1) first[0] = 7;
}

extern "C" __global__ void unset(float *METAFORK_RESTRICT out)
{
    METAFORK_SHARED(base);
    METAFORK_SHARED_ARRAY(float, first, base, 0, 4);
    out[blockIdx.x] = first[1];
    first[1] = 3.0f;
}

static int matrices(int n, int B)
{
    const size_t bytes = sizeof(float) * (size_t)n * (size_t)n;
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes), *d = (float *)malloc(bytes);
    for (int i = 0; i < n * n; i++) {
        a[i] = (float)(i % 17) * 0.25f;
        b[i] = (float)(i % 23) * 0.3f;
        c[i] = d[i] = (float)(i % 3);
    }
    const clock_t start = clock();
    const unsigned blocks = (unsigned)(n / B), side = (unsigned)B;
    metafork_cpu::launch("multiply", dim3{blocks, blocks, 1}, dim3{side, side, 1}, 8 * B * B, [&] { multiply(n, B, a, b, c); });
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < n; k++) d[i * n + j] += a[i * n + k] * b[k * n + j];
    printf("%s %.3f\n", memcmp(c, d, bytes) == 0 ? "same" : "different", seconds);
    free(a), free(b), free(c), free(d);
    return 0;
}

static void *one_of_many(void *) { return matrices(64, 16), nullptr; }

int main(int argc, char **argv)
{
    const char *what = argv[1];
    const int first = argc > 2 ? atoi(argv[2]) : 0, second = argc > 3 ? atoi(argv[3]) : 0;
    const dim3 one = {1, 1, 1}, row = {14, 1, 1};
    if (strcmp(what, "multiply") == 0) return matrices(first, second);
    if (strcmp(what, "threads") == 0) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], nullptr, one_of_many, nullptr);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], nullptr);
    }
    if (strcmp(what, "reduce") == 0) {
        const dim3 grid = {2, 3, 2}, block = {8, 8, 16};
        long long out[12] = {};
        metafork_cpu::launch("reduce", grid, block, 8 * 1024, [&] { reduce(out); });
        for (int i = 0; i < 12; i++) printf("%lld%c", out[i], i == 11 ? '\n' : ' ');
    }
    if (strcmp(what, "not_all_wait") == 0) metafork_cpu::launch(what, one, row, 0, [&] { not_all_wait(first); });
    if (strcmp(what, "different_barriers") == 0) metafork_cpu::launch(what, one, row, 0, [&] { different_barriers(); });
    if (strcmp(what, "one_more_barrier") == 0) metafork_cpu::launch(what, one, row, 0, [&] { one_more_barrier(); });
    const dim3 warps = {64, 1, 1};
    if (strcmp(what, "not_all_shuffle") == 0) metafork_cpu::launch(what, one, warps, 0, [&] { not_all_shuffle(first); });
    if (strcmp(what, "shuffle_or_wait") == 0) metafork_cpu::launch(what, one, warps, 0, [&] { shuffle_or_wait(first); });
    if (strcmp(what, "different_shuffles") == 0) metafork_cpu::launch(what, one, warps, 0, [&] { different_shuffles(); });
    if (strcmp(what, "warp_sums") == 0) {
        const dim3 block = {(unsigned)first, (unsigned)second, 1};
        long long out[1024] = {};
        metafork_cpu::launch(what, dim3{3, 1, 1}, block, 8 * first * second, [&] { warp_sums(out); });
        for (int i = 0; i < first * second; i++) printf("%lld\n", out[i]);
    }
    if (strcmp(what, "overrun") == 0) metafork_cpu::launch(what, one, one, second, [&] { overrun(first); });
    if (strcmp(what, "too_large") == 0) metafork_cpu::launch(what, one, one, 16, [&] { too_large(first); });
    if (strcmp(what, "unset") == 0) {
        float out[2] = {};
        metafork_cpu::launch(what, dim3{2, 1, 1}, one, 16, [&] { unset(out); });
        puts(out[0] != out[0] && out[1] != out[1] ? "nan" : "numbers");
    }
    puts("end");
    return 0;
}
