// Occupancy by the toolkit's own header: reads one case a line, and prints the active blocks of each.
#include <cstdio>
#include <climits>
#include <cstdint>
#include <cstring>
#include <cstdlib>
#include <cuda_occupancy.h>

int main() {
    int capability, warps, registers, threads, used;
    long shared_sm, shared_block, reserved, bytes;
    while (std::scanf("%d %d %d %ld %ld %ld %d %d %ld", &capability, &warps, &registers, &shared_sm, &shared_block, &reserved, &used,
                      &threads, &bytes) == 9) {
        cudaOccDeviceProp device;
        device.computeMajor = capability / 10;
        device.computeMinor = capability % 10;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = 32 * warps;
        device.regsPerBlock = device.regsPerMultiprocessor = registers;
        device.warpSize = 32;
        device.sharedMemPerBlock = 49152;
        device.sharedMemPerMultiprocessor = shared_sm;
        device.numSms = 1;
        device.sharedMemPerBlockOptin = shared_block;
        device.reservedSharedMemPerBlock = reserved;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = INT_MAX;
        kernel.numRegs = used;
        kernel.sharedSizeBytes = 0;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = bytes;
        kernel.numBlockBarriers = 1;
        cudaOccDeviceState state;
        state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
        cudaOccResult result;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, bytes) != CUDA_OCC_SUCCESS) return 1;
        std::printf("%d\n", result.activeBlocksPerMultiprocessor);
    }
}
