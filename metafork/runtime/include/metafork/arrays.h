/* Moving bytes to the device and from it.  C11 and C++. */
#ifndef METAFORK_ARRAYS_H
#define METAFORK_ARRAYS_H

#include "metafork/byte_sets.h"
#include "metafork/launch.h"
#include "metafork/streams.h"

/* Move `rows` that begin at two addresses.  Where there are streams the copy is begun there: the host's bytes have been taken
 * when this returns, or are there after metafork_arrive. */
static inline int metafork_copy(int device, metafork_streams *streams, const char *name, char *host, char *memory, metafork_rows rows, bool to_device) {
    char *const to = to_device ? memory : host, *const from = to_device ? host : memory;
    if (metafork_traced(2)) {
        char steps[48] = "";
        if (rows.count > 1) snprintf(steps, sizeof steps, " in %lld rows", (long long)rows.count);
        fprintf(stderr, "metafork: %lld bytes of %s %s the device%s\n", (long long)(rows.width * rows.count), name, to_device ? "to" : "from", steps);
    }
    if (streams != NULL) return metafork_begin_copy(streams, name, host, memory, rows, to_device);
    if (rows.count == 1) return metafork_device_copy(device, to, from, rows.width, to_device);
    /* What a device takes for a distance in one step. */
    if (rows.stride <= INT32_MAX) return metafork_device_copy_rows(device, to, from, rows.width, rows.stride, rows.count, to_device);
    int error = METAFORK_OK;
    for (int64_t row = 0; row < rows.count && error == METAFORK_OK; row++)
        error = metafork_device_copy(device, to + row * rows.stride, from + row * rows.stride, rows.width, to_device);
    return error;
}

#endif
