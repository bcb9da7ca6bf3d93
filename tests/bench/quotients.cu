// The quotients by which copies place threads, for all places of a block and lengths first to first + blocks - 1.
#include <metafork/device.h>

__global__ void quotients(int first, int *wrong) {
    const unsigned int length = (unsigned int)first + blockIdx.x;
    wrong[blockIdx.x * blockDim.x + threadIdx.x] = metafork_quotient(threadIdx.x, length) != (int)(threadIdx.x / length);
}

extern "C" void run_quotients(int first, int blocks, int *wrong) { quotients<<<blocks, 1024>>>(first, wrong); }
