/* Host arrays and their copies on the device.  C++ (nvcc, or the CPU build, where the copies are heap blocks).
 *
 * An array of a serial loop may stay on the device between schedules (metafork_begin, metafork_release); others come and
 * go with one schedule.
 */
#ifndef METAFORK_ARRAYS_H
#define METAFORK_ARRAYS_H

#include "metafork/host.h"
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

static inline int metafork_copy(void *to, const void *from, int64_t bytes, bool to_device) {
    const char *trace = getenv("METAFORK_TRACE");
    if (trace != nullptr && strcmp(trace, "2") == 0)
        fprintf(stderr, "metafork: %lld bytes %s the device\n", (long long)bytes, to_device ? "to" : "from");
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

/* The host's array is made current.  Results that exist on the device alone and cannot be fetched are lost: the program ends. */
static inline void metafork_fetch(metafork_array *array) {
    if (array->metafork_device_newer) {
        const int error = metafork_copy(array->metafork_host, array->metafork_device, array->metafork_bytes, false);
        if (error != METAFORK_OK) {
            fprintf(stderr, "metafork: results cannot be fetched from the device: %s\n", metafork_message(error));
            abort();
        }
    }
    array->metafork_device_newer = 0;
}

static inline void metafork_drop(metafork_array *array) {
    metafork_fetch(array);
    if (array->metafork_device != nullptr) metafork_device_free(array->metafork_device);
    array->metafork_device = nullptr;
    array->metafork_copied = 0;
}

/* Bring an array to the device. */
static inline int metafork_bring(metafork_array *array) {
    if (array->metafork_device == nullptr && array->metafork_bytes > 0) {
        const int error = metafork_device_allocate(&array->metafork_device, array->metafork_bytes);
        if (error != METAFORK_OK) {
            array->metafork_device = nullptr;
            return error;
        }
    }
    if (!array->metafork_copied && array->metafork_bytes > 0) {
        const int error = metafork_copy(array->metafork_device, array->metafork_host, array->metafork_bytes, true);
        if (error != METAFORK_OK) return error;
    }
    array->metafork_copied = 1;
    return METAFORK_OK;
}

extern "C" __attribute__((weak)) void metafork_release(metafork_array *arrays, int count) {
    for (int i = 0; i < count; i++) metafork_drop(&arrays[i]);
}

extern "C" __attribute__((weak)) int metafork_unchanged(int same, const char *name) {
    if (!same) {
        const bool strict = metafork_enabled("METAFORK_STRICT");
        fprintf(stderr, "metafork: %s: code before the schedule moved or resized one of its arrays; %s\n", name,
                strict ? "METAFORK_STRICT is set" : "the serial code runs");
        if (strict) abort();
    }
    return same;
}

static inline bool metafork_overlap(const metafork_array *left, const metafork_array *right) {
    const uintptr_t a = (uintptr_t)left->metafork_host, b = (uintptr_t)right->metafork_host;
    return left->metafork_bytes > 0 && right->metafork_bytes > 0 && a < b + (uintptr_t)right->metafork_bytes &&
           b < a + (uintptr_t)left->metafork_bytes;
}

extern "C" __attribute__((weak)) void metafork_begin(metafork_array *arrays, int count, const metafork_array *others, int other_count) {
    bool apart = true;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) apart = apart && !metafork_overlap(&arrays[i], &arrays[j]);
        for (int j = 0; j < other_count; j++) apart = apart && !metafork_overlap(&arrays[i], &others[j]);
    }
    for (int i = 0; i < count; i++) arrays[i].metafork_resident = apart;
}

#endif
