/* What streams.h asks of a target, for one that has no streams (it does not define METAFORK_HAS_STREAMS).  C11 and C++. */
#ifndef METAFORK_NO_STREAMS_H
#define METAFORK_NO_STREAMS_H

#include "metafork/byte_sets.h"
#include "metafork/launch.h"

static inline int metafork_stream_make(int device, void **out) { return (void)device, (void)out, METAFORK_EUNSUPPORTED; }
static inline void metafork_stream_free(int device, void *stream) { (void)device, (void)stream; }
static inline int metafork_stream_finish(int device, void *stream) { return (void)device, (void)stream, METAFORK_EUNSUPPORTED; }
static inline int metafork_stream_follow(int device, void *stream, void *event) { return (void)device, (void)stream, (void)event, METAFORK_EUNSUPPORTED; }
static inline int metafork_event_record(int device, void *stream, void **event) { return (void)device, (void)stream, (void)event, METAFORK_EUNSUPPORTED; }
static inline int metafork_event_await(int device, void *event) { return (void)device, (void)event, METAFORK_EUNSUPPORTED; }
static inline void metafork_event_free(int device, void *event) { (void)device, (void)event; }
static inline int metafork_pinned_allocate(int device, void **out, int64_t bytes) { return (void)device, (void)out, (void)bytes, METAFORK_EUNSUPPORTED; }
static inline void metafork_pinned_free(int device, void *memory) { (void)device, (void)memory; }
static inline bool metafork_pinned_is(int device, void *memory) { return (void)device, (void)memory, false; }
static inline bool metafork_captured(int device, void *stream) { return (void)device, (void)stream, false; }
static inline int metafork_copy_begin(int device, void *stream, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                                      metafork_rows rows, bool to_device) {
    (void)device, (void)stream, (void)to, (void)to_stride, (void)from, (void)from_stride, (void)rows, (void)to_device;
    return METAFORK_EUNSUPPORTED;
}

#endif
