/* Moving bytes to the device and from it.  C11 and C++. */
#ifndef METAFORK_ARRAYS_H
#define METAFORK_ARRAYS_H

#include "metafork/byte_sets.h"
#include "metafork/launch.h"
#include "metafork/streams.h"

/* Copy rows within the host's memory. */
static inline void metafork_take_rows(char *to, const char *from, metafork_rows rows) {
    for (int64_t row = 0; row < rows.count; row++) memcpy(to + row * rows.stride, from + row * rows.stride, (size_t)rows.width);
}

/* Fetch `rows`, and hand on what differs from what the host had.  Some go at a time. */
static inline int metafork_copy_changes(int device, char *host, char *before, const char *memory, metafork_rows rows) {
    const int64_t most = INT64_C(1) << 20, all = metafork_hull(rows).width;
    char little[4096], *const much = (char *)malloc((size_t)(all < most ? all : most));
    char *const came = much != NULL ? much : little;
    const int64_t bytes = much == NULL ? (int64_t)sizeof little : all < most ? all : most;
    int error = METAFORK_OK;
    for (int64_t row = 0, next; row < rows.count && error == METAFORK_OK; row = next) {
        int64_t some = 1 + (rows.width < bytes ? (bytes - rows.width) / rows.stride : 0);
        if (some > rows.count - row) some = rows.count - row;
        next = row + some;
        for (int64_t column = 0; column < rows.width && error == METAFORK_OK; column += bytes) {
            const int64_t at = row * rows.stride + column, width = rows.width - column < bytes ? rows.width - column : bytes;
            error = some == 1 ? metafork_device_copy(device, came, memory + at, width, false)
                              : metafork_device_copy_rows(device, came, memory + at, width, rows.stride, some, false);
            for (int64_t one = 0; one < some * rows.stride && error == METAFORK_OK; one += rows.stride)
                metafork_hand_on(came + one, host + at + one, before + at + one, width);
        }
    }
    free(much);
    return error;
}

/* Move `rows` that begin at two addresses.  Where there are streams the copy is begun there: the host's bytes have been taken
 * when this returns, or are there after metafork_arrive.  `before` is NULL, or takes what the host had of what goes to the
 * device: then only what differs from it comes back. */
static inline int metafork_copy(int device, metafork_streams *streams, const char *name, char *host, char *before, char *memory, metafork_rows rows,
                                bool to_device) {
    if (metafork_traced(2)) {
        char steps[48] = "";
        if (rows.count > 1) snprintf(steps, sizeof steps, " in %lld rows", (long long)rows.count);
        fprintf(stderr, "metafork: %lld bytes of %s %s the device%s\n", (long long)(rows.width * rows.count), name, to_device ? "to" : "from", steps);
    }
    if (to_device && before != NULL) {
        metafork_take_rows(before, host, rows);
        host = before; /* others may write the host's meanwhile: what is compared is what was sent */
    }
    if (streams != NULL) return metafork_begin_copy(streams, name, host, before, memory, rows, to_device);
    if (!to_device && before != NULL) return metafork_copy_changes(device, host, before, memory, rows);
    char *const to = to_device ? memory : host, *const from = to_device ? host : memory;
    if (rows.count == 1) return metafork_device_copy(device, to, from, rows.width, to_device);
    /* What a device takes for a distance in one step. */
    if (rows.stride <= INT32_MAX) return metafork_device_copy_rows(device, to, from, rows.width, rows.stride, rows.count, to_device);
    int error = METAFORK_OK;
    for (int64_t row = 0; row < rows.count && error == METAFORK_OK; row++)
        error = metafork_device_copy(device, to + row * rows.stride, from + row * rows.stride, rows.width, to_device);
    return error;
}

#endif
