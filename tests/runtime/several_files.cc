/* A kernel whose accesses are checked, compiled twice into one program: NAME tells the functions apart. */
#include "metafork/device.h"
#include "metafork/race.h"

extern "C" int NAME(int blocks, int threads);

int NAME(int blocks, int threads) {
    int sum[1] = {0}, *a = sum;
    metafork_cpu::launch("sums", dim3{(unsigned)blocks, 1, 1}, dim3{(unsigned)threads, 1, 1}, threads * (int64_t)sizeof(int), [=]() {
        METAFORK_ENTERS();
        const metafork_cpu::checked_array<int> s(metafork_cpu::shared_base(), 0, threads, "s");
        s[METAFORK_WRITES(s, threadIdx.x)] = (int)threadIdx.x;
        __syncthreads();
        a[METAFORK_ATOMICS(a, 0, 1)] += s[METAFORK_READS(s, (threadIdx.x + 1) % threads)];
    });
    return sum[0];
}

#if defined(WITH_MAIN)
extern "C" int other(int blocks, int threads);
int main() {
    const bool same = NAME(3, 8) == 84 && other(2, 40) == 1560 && NAME(1, 5) == 10;
    puts(same ? "same" : "different");
}
#endif
