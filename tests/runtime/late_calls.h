/* late_streams.h for stand-ins in C; streams and events are handles. */
#ifndef LATE_CALLS_H
#define LATE_CALLS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *late_make(void);
void late_end(void *stream);
void late_begin(void *stream, void (*run)(void *), void *argument, const void *const *starts, const size_t *lengths, size_t count);
void late_copy(void *stream, void *to, size_t to_stride, const void *from, size_t from_stride, size_t width, size_t rows, int to_device);
void late_follow(void *stream, void *event);
int late_finish(void *stream); /* whether all is well */
void *late_event_make(void);
void late_event_free(void *event);
void late_record(void *event, void *stream);
int late_await(void *event);
void *late_pin(size_t bytes);
void late_unpin(void *memory);
int late_is_pinned(const void *memory);
void late_ends(const void *memory, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
