/* Memory of the device, and moving bytes to it and from it.  C++ (nvcc, or the CPU build, where it is heap blocks). */
#ifndef METAFORK_ARRAYS_H
#define METAFORK_ARRAYS_H

#include "metafork/launch.h"

static inline int metafork_device_allocate(void **out, int64_t bytes) {
#if defined(METAFORK_CPU)
    *out = malloc((size_t)bytes);
    return *out == nullptr ? METAFORK_ENOMEM : METAFORK_OK;
#else
    return metafork_taken(cudaMalloc(out, (size_t)bytes));
#endif
}

static inline void metafork_device_free(void *memory) {
#if defined(METAFORK_CPU)
    free(memory);
#else
    cudaFree(memory);
#endif
}

static inline int metafork_copy(const char *name, void *to, const void *from, int64_t bytes, bool to_device) {
    const char *trace = getenv("METAFORK_TRACE");
    if (trace != nullptr && strcmp(trace, "2") == 0)
        fprintf(stderr, "metafork: %lld bytes of %s %s the device\n", (long long)bytes, name, to_device ? "to" : "from");
#if defined(METAFORK_CPU)
    (void)to_device;
    memcpy(to, from, (size_t)bytes);
    return METAFORK_OK;
#else
    return metafork_taken(cudaMemcpy(to, from, (size_t)bytes, to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost));
#endif
}

static inline int metafork_finish() {
#if defined(METAFORK_CPU)
    return METAFORK_OK;
#else
    return metafork_taken(cudaStreamSynchronize(nullptr));
#endif
}

#endif
