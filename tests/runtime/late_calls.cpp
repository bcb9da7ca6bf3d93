#include "late_calls.h"

#include "late_streams.h"

static late::Stream *of(void *stream) { return static_cast<late::Stream *>(stream); }

void *late_make() { return late::make(); }
void late_end(void *stream) { late::end(of(stream)); }

void late_begin(void *stream, void (*run)(void *), void *argument, const void *const *starts, const size_t *lengths, size_t count) {
    std::vector<late::Range> uses;
    for (size_t i = 0; i < count; i++) uses.push_back({static_cast<const char *>(starts[i]), lengths[i]});
    late::begin(of(stream), [=] { run(argument); }, uses);
}

void late_copy(void *stream, void *to, size_t to_stride, const void *from, size_t from_stride, size_t width, size_t rows, int to_device) {
    late::copy(of(stream), to, to_stride, from, from_stride, width, rows, to_device != 0);
}

void late_follow(void *stream, void *event) { late::follow(of(stream), static_cast<late::Event *>(event)); }
int late_finish(void *stream) { return late::finish(of(stream)); }
void *late_event_make() { return new late::Event; }
void late_event_free(void *event) { delete static_cast<late::Event *>(event); }
void late_record(void *event, void *stream) { late::record(static_cast<late::Event *>(event), of(stream)); }
int late_await(void *event) { return late::await(static_cast<late::Event *>(event)); }
void *late_pin(size_t bytes) { return late::pin(bytes); }
void late_unpin(void *memory) { late::unpin(memory); }
int late_is_pinned(const void *memory) { return late::device().pinned.count(static_cast<const char *>(memory)) != 0; }
void late_ends(const void *memory, size_t bytes) { late::ends(memory, bytes); }
