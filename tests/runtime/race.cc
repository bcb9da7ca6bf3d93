/* A kernel whose threads do what the arguments say: `race BLOCKS THREADS STEP...`, all on one element of each memory.
 *
 * A step is a barrier, `/`, or what one thread does, BLOCK.THREAD and a letter: it writes (w) or reads (r) the global
 * element, copies it into its own element of shared memory (c), and reads that (s).
 */
#include "metafork/device.h"
#include "metafork/race.h"

int main(int count, char **arguments) {
    const unsigned blocks = (unsigned)atoi(arguments[1]), threads = (unsigned)atoi(arguments[2]);
    int element = 0, *const a = &element;
    metafork_cpu::launch("steps", dim3{blocks, 1, 1}, dim3{threads, 1, 1}, threads * (int64_t)sizeof(int), [=]() {
        METAFORK_ENTERS();
        const metafork_cpu::checked_array<int> s(metafork_cpu::shared_base(), 0, threads, "s");
        int seen = 0;
        for (int i = 3; i < count; i++) {
            unsigned block, thread;
            char what;
            if (arguments[i][0] == '/') __syncthreads();
            if (sscanf(arguments[i], "%u.%u%c", &block, &thread, &what) != 3 || block != blockIdx.x || thread != threadIdx.x) continue;
            if (what == 'w') a[METAFORK_WRITES(a, 0)] = 1;
            if (what == 'r') seen += a[METAFORK_READS(a, 0)];
            if (what == 'c') s[METAFORK_TAKES(s, thread)] = a[METAFORK_COPIES(a, 0)];
            if (what == 's') seen += s[METAFORK_READS(s, thread)];
        }
        (void)seen;
    });
    puts("end");
}
