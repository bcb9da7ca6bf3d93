/* The CPU build's target, but with streams whose work takes effect late (late_streams.h).  PINNED=3: only so many buffers are given. */
#pragma once

#include "late_streams.h"
#include <atomic>

#define metafork_device_free eager_device_free
#define metafork_stream_make eager_stream_make
#define metafork_stream_free eager_stream_free
#define metafork_stream_finish eager_stream_finish
#define metafork_stream_follow eager_stream_follow
#define metafork_event_record eager_event_record
#define metafork_event_await eager_event_await
#define metafork_event_free eager_event_free
#define metafork_pinned_allocate eager_pinned_allocate
#define metafork_pinned_free eager_pinned_free
#define metafork_copy_begin eager_copy_begin
#include "metafork/target_cuda.h"
#undef metafork_device_free
#undef metafork_stream_make
#undef metafork_stream_free
#undef metafork_stream_finish
#undef metafork_stream_follow
#undef metafork_event_record
#undef metafork_event_await
#undef metafork_event_free
#undef metafork_pinned_allocate
#undef metafork_pinned_free
#undef metafork_copy_begin

static int late_error(bool well) { return well ? METAFORK_OK : 719; }

static int metafork_stream_make(int, void **out) {
    *out = late::make();
    return METAFORK_OK;
}
static void metafork_stream_free(int, void *stream) { late::end((late::Stream *)stream); }
static int metafork_stream_finish(int, void *stream) { return late_error(late::finish((late::Stream *)stream)); }
static int metafork_stream_follow(int, void *stream, void *event) {
    late::follow((late::Stream *)stream, (late::Event *)event);
    return METAFORK_OK;
}
static int metafork_event_record(int, void *stream, void **event) {
    if (*event == nullptr) *event = new late::Event;
    late::record((late::Event *)*event, (late::Stream *)stream);
    return METAFORK_OK;
}
static int metafork_event_await(int, void *event) { return late_error(late::await((late::Event *)event)); }
static void metafork_event_free(int, void *event) { delete (late::Event *)event; }

static int metafork_pinned_allocate(int, void **out, int64_t bytes) {
    static std::atomic<int> given;
    const char *const most = getenv("PINNED");
    if (given++ >= (most != nullptr ? atoi(most) : INT32_MAX)) return METAFORK_ENOMEM;
    *out = late::pin((size_t)bytes);
    return METAFORK_OK;
}
static void metafork_pinned_free(int, void *memory) { late::unpin(memory); }

static int metafork_copy_begin(int, void *stream, void *to, int64_t to_stride, const void *from, int64_t from_stride, metafork_rows rows, bool to_device) {
    late::copy((late::Stream *)stream, to, (size_t)to_stride, from, (size_t)from_stride, (size_t)rows.width, (size_t)rows.count, to_device);
    return METAFORK_OK;
}

static void metafork_device_free(int device, void *memory) {
    late::ends(memory, 1);
    eager_device_free(device, memory);
}
