/* Moving bytes to the device and from it.  C11 and C++. */
#ifndef METAFORK_ARRAYS_H
#define METAFORK_ARRAYS_H

#include "metafork/byte_sets.h"
#include "metafork/launch.h"

/* Move `rows` that begin at two addresses. */
static inline int metafork_copy(int device, const char *name, void *to, const void *from, metafork_rows rows, bool to_device) {
    const char *trace = getenv("METAFORK_TRACE");
    if (trace != NULL && strcmp(trace, "2") == 0) {
        char steps[48] = "";
        if (rows.count > 1) snprintf(steps, sizeof steps, " in %lld rows", (long long)rows.count);
        fprintf(stderr, "metafork: %lld bytes of %s %s the device%s\n", (long long)(rows.width * rows.count), name, to_device ? "to" : "from", steps);
    }
    if (rows.count == 1) return metafork_device_copy(device, to, from, rows.width, to_device);
    /* What a device takes for a distance in one step. */
    if (rows.stride <= INT32_MAX) return metafork_device_copy_rows(device, to, from, rows.width, rows.stride, rows.count, to_device);
    int error = METAFORK_OK;
    for (int64_t row = 0; row < rows.count && error == METAFORK_OK; row++)
        error = metafork_device_copy(device, (char *)to + row * rows.stride, (const char *)from + row * rows.stride, rows.width, to_device);
    return error;
}

#endif
