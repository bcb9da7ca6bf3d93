/* Moving bytes to the device and from it.  C11 and C++. */
#ifndef METAFORK_ARRAYS_H
#define METAFORK_ARRAYS_H

#include "metafork/launch.h"

static inline int metafork_copy(int device, const char *name, void *to, const void *from, int64_t bytes, bool to_device) {
    const char *trace = getenv("METAFORK_TRACE");
    if (trace != NULL && strcmp(trace, "2") == 0)
        fprintf(stderr, "metafork: %lld bytes of %s %s the device\n", (long long)bytes, name, to_device ? "to" : "from");
    return metafork_device_copy(device, to, from, bytes, to_device);
}

#endif
