/* The definition of metafork_machine_query, for the generated .cu files.  C++ (nvcc, or the CPU build).
 *
 * Every generated file holds it as an inline function, so that several of them link into one program.
 */
#ifndef METAFORK_MACHINE_QUERY_H
#define METAFORK_MACHINE_QUERY_H

#include "metafork/machine.h"

#if !defined(METAFORK_CPU)
#include <cuda_runtime.h>
#endif

/* What the device itself has, without METAFORK_MACHINE. */
static inline int metafork_hardware_query(int device, metafork_machine *out) {
    memset(out, 0, sizeof *out);
#if defined(METAFORK_CPU)
    (void)device;
    return metafork_machine_preset("sm_80", 5, out);
#else
    const struct {
        cudaDeviceAttr attribute;
        int64_t *field;
        int64_t unit;
    } wanted[] = {
        {cudaDevAttrMaxRegistersPerBlock, &out->registers_per_block, 1},
        {cudaDevAttrMaxThreadsPerBlock, &out->threads_per_block, 1},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, &out->shared_words, 4},
        {cudaDevAttrMaxBlockDimX, &out->block_dim_x, 1},
        {cudaDevAttrMaxBlockDimY, &out->block_dim_y, 1},
        {cudaDevAttrMaxBlockDimZ, &out->block_dim_z, 1},
        {cudaDevAttrMaxGridDimX, &out->grid_dim_x, 1},
        {cudaDevAttrMaxGridDimY, &out->grid_dim_y, 1},
        {cudaDevAttrMaxGridDimZ, &out->grid_dim_z, 1},
        {cudaDevAttrWarpSize, &out->warp_size, 1},
        {cudaDevAttrMaxBlocksPerMultiprocessor, &out->blocks_per_sm, 1},
        {cudaDevAttrMaxRegistersPerMultiprocessor, &out->registers_per_sm, 1},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, &out->shared_words_per_sm, 4},
    };
    int value = 0;
    cudaError_t error;
    for (const auto &one : wanted) {
        error = cudaDeviceGetAttribute(&value, one.attribute, device);
        if (error != cudaSuccess) return (int)error;
        *one.field = value / one.unit;
    }
    error = cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    if (error != cudaSuccess) return (int)error;
    out->warps_per_sm = value / (out->warp_size > 0 ? out->warp_size : 32);
    /* The runtime does not say; 63 before compute capability 3.5, 255 since. */
    error = cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, device);
    if (error != cudaSuccess) return (int)error;
    out->registers_per_thread = value < 3 ? 63 : 255;
    out->compute_capability = 10 * value;
    error = cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMinor, device);
    if (error != cudaSuccess) return (int)error;
    out->compute_capability += value;
    return METAFORK_OK;
#endif
}

extern "C" __attribute__((weak)) int metafork_machine_query(int device, metafork_machine *out) {
    static int said;
    const char *text = getenv("METAFORK_MACHINE");
    const char *fault = text;
    if (out == nullptr) return METAFORK_EINVAL;
    const int error = metafork_hardware_query(device, out);
    if (error != 0 || text == nullptr) return error;
    if (metafork_machine_override(out, text, &fault) == METAFORK_OK) return METAFORK_OK;
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        fprintf(stderr, "metafork: METAFORK_MACHINE=\"%s\" cannot be read at \"%s\"; expected R=63,T=1024,Z=12288 "
                        "(dimensions and warp_size at least 1)\n", text, fault);
    return METAFORK_EMACHINE;
}

#endif
