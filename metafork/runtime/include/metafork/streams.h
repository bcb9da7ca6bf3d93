/* Kernels and copies that are under way: a stream of the device for each, and events that keep the order which results need.
 * C11 and C++.
 *
 * While a thread of the host has copies of arrays on a device, it has two streams there.  Operations of a stream run in their
 * order; one of the other stream comes first only where that is said (metafork_follow).  The host waits only for what it is
 * about to read, to use anew or to free (metafork_await).
 *
 * Where a device has no streams or no pinned memory to give, where METAFORK_ASYNC is 0, or where all streams that a process may
 * have are taken, a thread has none (NULL), and every copy and every kernel is waited for at once.
 */
#ifndef METAFORK_STREAMS_H
#define METAFORK_STREAMS_H

#include "metafork/byte_sets.h"
#include "metafork/launch.h"

#if !defined(METAFORK_HAS_STREAMS)
#include "metafork/no_streams.h"
#endif

/* Bytes of a buffer of pinned memory; no piece of a copy is larger. */
#if !defined(METAFORK_BUFFER_BYTES)
#define METAFORK_BUFFER_BYTES 1048576
#endif

enum {
    METAFORK_MOST_STREAMS = 16, /* pairs that a process has: so many threads have work under way at a time */
    METAFORK_MARKS = 16,        /* the last operations of a stream, each of which can be waited for alone */
    METAFORK_MOST_BUFFERS = 4,  /* for each pair */
    METAFORK_BUFFER_ALIGNMENT = 64,
    METAFORK_MOST_PIECES = 64   /* that come from the device at a time */
};

/* One of the two streams.  Its operations have the numbers from 1 on. */
typedef struct metafork_stream {
    void *handle;
    int64_t begun;                     /* the number of the last one */
    int64_t done;                      /* those up to this one are known to be over */
    int64_t followed;                  /* those of the other stream up to this one come before all that begins here from now on */
    /* Of operation n, or of the last one that took its place, at n % METAFORK_MARKS: */
    void *events[METAFORK_MARKS];      /* behind it */
    int64_t after[METAFORK_MARKS];     /* those of the other stream up to this one came before it */
    const char *names[METAFORK_MARKS]; /* of its schedule or array */
} metafork_stream;

/* A pinned buffer: the first `used` bytes belong to copies, the last of which has the number `last`. */
typedef struct metafork_buffer {
    char *memory;
    int64_t used;
    int64_t last;
} metafork_buffer;

/* A part of a copy from the device: rows that arrive in a buffer, one behind the other, and then go to the host's array. */
typedef struct metafork_piece {
    const char *staged;
    char *host;
    char *before; /* what the host had, or NULL */
    metafork_rows rows;
    int64_t number; /* of the copy */
    const char *name;
} metafork_piece;

typedef struct metafork_streams {
    int device;
    bool made;
    int broken; /* the error after which it is not known when what is under way will be over */
    metafork_stream kernels, copies;
    metafork_buffer buffers[METAFORK_MOST_BUFFERS];
    int buffer_count, buffer; /* the last one that was used */
    metafork_piece pieces[METAFORK_MOST_PIECES];
    int first_piece, piece_count;
} metafork_streams;

static inline bool metafork_traced(int level) {
    const char *const trace = getenv("METAFORK_TRACE");
    return trace != NULL && atoi(trace) >= level;
}

/* ---- order ---- */

/* The first operation behind `done` whose name is still there. */
static inline int64_t metafork_unknown(const metafork_stream *one, int64_t done) {
    return one->begun - done > METAFORK_MARKS ? one->begun - METAFORK_MARKS + 1 : done + 1;
}

/* What has been begun, is not known to be over, and may be what an error of the device comes from: `; under way: s_k0, a copy of A`,
 * or nothing. */
static inline void metafork_under_way(const metafork_streams *all, int error, char *text, size_t room) {
    size_t used = 0;
    text[0] = '\0';
    for (int way = 0; all != NULL && error > 0 && way < 2; way++) {
        const metafork_stream *const one = way == 0 ? &all->kernels : &all->copies;
        const char *before = NULL;
        for (int64_t number = metafork_unknown(one, one->done); number <= one->begun; number++) {
            const char *const name = one->names[number % METAFORK_MARKS];
            if (used >= room || (before != NULL && strcmp(before, name) == 0)) continue;
            used += (size_t)snprintf(text + used, room - used, "%s%s%s", used == 0 ? "; under way: " : ", ", way == 0 ? "" : "a copy of ", name);
            before = name;
        }
    }
}

/* Wait until an operation is over. */
static inline int metafork_await(metafork_streams *all, metafork_stream *one, int64_t number) {
    if (number <= one->done) return METAFORK_OK;
    const char *const what = one == &all->kernels ? "" : "a copy of ";
    if (metafork_traced(3)) fprintf(stderr, "metafork: the host waits for %s%s\n", what, one->names[number % METAFORK_MARKS]);
    const int error = all->broken != METAFORK_OK ? all->broken : metafork_event_await(all->device, one->events[number % METAFORK_MARKS]);
    if (error == METAFORK_OK) {
        metafork_stream *const other = one == &all->kernels ? &all->copies : &all->kernels;
        const int64_t after = one->after[number % METAFORK_MARKS];
        one->done = number;
        if (after > other->done) other->done = after;
    }
    return error;
}

/* Let an operation of the other stream come before all that begins on this one from now on. */
static inline int metafork_follow(metafork_streams *all, metafork_stream *one, metafork_stream *other, int64_t number) {
    if (number <= other->done || number <= one->followed) return METAFORK_OK;
    void *const event = other->events[number % METAFORK_MARKS];
    if (metafork_traced(3))
        fprintf(stderr, "metafork: %s wait for %s%s\n", one == &all->kernels ? "kernels" : "copies", other == &all->kernels ? "" : "a copy of ",
                other->names[number % METAFORK_MARKS]);
    if (all->broken != METAFORK_OK || metafork_stream_follow(all->device, one->handle, event) != METAFORK_OK)
        return metafork_await(all, other, number);
    one->followed = number;
    return METAFORK_OK;
}

/* An operation has been begun: mark its end.  What cannot be marked is waited for. */
static inline int metafork_begun(metafork_streams *all, metafork_stream *one, const char *name) {
    const int64_t number = ++one->begun;
    one->names[number % METAFORK_MARKS] = name;
    one->after[number % METAFORK_MARKS] = one->followed;
    const int error = metafork_event_record(all->device, one->handle, &one->events[number % METAFORK_MARKS]);
    if (error == METAFORK_OK) return METAFORK_OK;
    if (metafork_stream_finish(all->device, one->handle) != METAFORK_OK)
        all->broken = error;
    else
        one->done = number;
    return error;
}

/* Wait for all; false where that cannot be known. */
static inline bool metafork_quiet(metafork_streams *all) {
    if (all->broken != METAFORK_OK) return false;
    metafork_stream *const streams[] = {&all->copies, &all->kernels};
    for (int i = 0; i < 2; i++) {
        if (streams[i]->done < streams[i]->begun && metafork_stream_finish(all->device, streams[i]->handle) != METAFORK_OK) return false;
        streams[i]->done = streams[i]->begun;
    }
    return true;
}

/* ---- copies through pinned memory ---- */

/* Move packed rows to where they stand apart, or the other way round. */
static inline void metafork_pack(char *packed, char *apart, metafork_rows rows, bool packs) {
    for (int64_t row = 0; row < rows.count; row++) {
        char *const one = packed + row * rows.width, *const other = apart + row * rows.stride;
        memcpy(packs ? one : other, packs ? other : one, (size_t)rows.width);
    }
}

/* Hand on what came from the device where it is not what the host had: other threads may write the rest meanwhile. */
static inline void metafork_hand_on(const char *came, char *host, char *before, int64_t bytes) {
    for (int64_t first = 0; first < bytes; first += 64) {
        const int64_t behind = bytes - first < 64 ? bytes : first + 64;
        if (memcmp(came + first, before + first, (size_t)(behind - first)) == 0) continue;
        for (int64_t i = first; i < behind; i++)
            if (came[i] != before[i]) *(volatile char *)(host + i) = before[i] = came[i]; /* volatile: no compiler writes more */
    }
}

/* Hand the oldest piece on to the host's array. */
static inline int metafork_arrive_one(metafork_streams *all) {
    metafork_piece *const one = &all->pieces[all->first_piece];
    const int error = metafork_await(all, &all->copies, one->number);
    if (error != METAFORK_OK) return error;
    if (one->before == NULL) metafork_pack((char *)(uintptr_t)one->staged, one->host, one->rows, false);
    for (int64_t row = 0; one->before != NULL && row < one->rows.count; row++)
        metafork_hand_on(one->staged + row * one->rows.width, one->host + row * one->rows.stride, one->before + row * one->rows.stride, one->rows.width);
    all->first_piece = (all->first_piece + 1) % METAFORK_MOST_PIECES;
    all->piece_count--;
    return METAFORK_OK;
}

/* Make room in a buffer that no copy uses any more. */
static inline int metafork_room(metafork_streams *all, int64_t bytes, metafork_buffer **out) {
    metafork_buffer *one = &all->buffers[all->buffer];
    int error = METAFORK_OK;
    if (one->used + bytes > METAFORK_BUFFER_BYTES) {
        all->buffer = (all->buffer + 1) % all->buffer_count;
        one = &all->buffers[all->buffer];
        if (one->memory == NULL) {
            void *memory = NULL;
            if (metafork_pinned_allocate(all->device, &memory, METAFORK_BUFFER_BYTES) != METAFORK_OK) {
                /* Those that exist will do. */
                all->buffer_count = all->buffer;
                all->buffer = 0;
                one = &all->buffers[0];
            } else {
                one->memory = (char *)memory;
            }
        }
        while (error == METAFORK_OK && all->piece_count > 0 && all->pieces[all->first_piece].number <= one->last) error = metafork_arrive_one(all);
        if (error == METAFORK_OK) error = metafork_await(all, &all->copies, one->last);
        if (error == METAFORK_OK) one->used = 0;
    }
    *out = one;
    return error;
}

/* Begin the copy of one piece. */
static inline int metafork_begin_piece(metafork_streams *all, const char *name, char *host, char *before, char *device, metafork_rows rows,
                                       bool to_device) {
    metafork_buffer *buffer;
    int error = METAFORK_OK;
    if (!to_device && all->piece_count == METAFORK_MOST_PIECES) error = metafork_arrive_one(all);
    if (error == METAFORK_OK) error = metafork_room(all, rows.width * rows.count, &buffer);
    if (error != METAFORK_OK) return error;
    char *const staged = buffer->memory + buffer->used;
    if (to_device) metafork_pack(staged, host, rows, true);
    error = to_device ? metafork_copy_begin(all->device, all->copies.handle, device, rows.stride, staged, rows.width, rows, true)
                      : metafork_copy_begin(all->device, all->copies.handle, staged, rows.width, device, rows.stride, rows, false);
    /* Also where it failed: what is not known to have begun may have. */
    const int marked = metafork_begun(all, &all->copies, name);
    if (error == METAFORK_OK) error = marked;
    buffer->last = all->copies.begun;
    buffer->used += (rows.width * rows.count + METAFORK_BUFFER_ALIGNMENT - 1) / METAFORK_BUFFER_ALIGNMENT * METAFORK_BUFFER_ALIGNMENT;
    if (error != METAFORK_OK || to_device) return error;
    metafork_piece *const piece = &all->pieces[(all->first_piece + all->piece_count++) % METAFORK_MOST_PIECES];
    piece->staged = staged;
    piece->host = host;
    piece->before = before;
    piece->rows = rows;
    piece->number = all->copies.begun;
    piece->name = name;
    return METAFORK_OK;
}

/* Say which kernels may run while a copy that is about to begin does. */
static inline void metafork_trace_overlap(const metafork_streams *all, const char *name) {
    const metafork_stream *const kernels = &all->kernels;
    const int64_t before = kernels->done > all->copies.followed ? kernels->done : all->copies.followed;
    if (!metafork_traced(3)) return;
    for (int64_t number = metafork_unknown(kernels, before); number <= kernels->begun; number++)
        fprintf(stderr, "metafork: a copy of %s beside %s\n", name, kernels->names[number % METAFORK_MARKS]);
}

/* Begin the copy of rows, in pieces.  To the device, the host's bytes have been taken when this returns; from it, they are there
 * after metafork_arrive: all of them, or where there is a `before`, those that differ from it. */
static inline int metafork_begin_copy(metafork_streams *all, const char *name, char *host, char *before, char *device, metafork_rows rows,
                                      bool to_device) {
    int error = METAFORK_OK;
    metafork_trace_overlap(all, name);
    /* Rows that are longer than a buffer, or further apart than a device takes in one step, go one by one. */
    const bool single = rows.width > METAFORK_BUFFER_BYTES || (rows.count > 1 && rows.stride > INT32_MAX);
    const int64_t together = single ? 1 : METAFORK_BUFFER_BYTES / rows.width;
    for (int64_t row = 0; row < rows.count && error == METAFORK_OK; row += together)
        for (int64_t column = 0; column < rows.width && error == METAFORK_OK; column += METAFORK_BUFFER_BYTES) {
            const int64_t rest = rows.width - column, offset = row * rows.stride + column, most = METAFORK_BUFFER_BYTES;
            metafork_rows part = metafork_stretch(0, rest < most ? rest : most);
            if (!single && rows.count - row > 1) {
                part.stride = rows.stride;
                part.count = rows.count - row < together ? rows.count - row : together;
                if (part.count == 1) part.stride = part.width;
            }
            error = metafork_begin_piece(all, name, host + offset, before == NULL ? NULL : before + offset, device + offset, part, to_device);
        }
    return error;
}

/* Wait for what comes from the device. */
static inline int metafork_arrive(metafork_streams *all) {
    int error = METAFORK_OK;
    while (all->piece_count > 0 && error == METAFORK_OK) error = metafork_arrive_one(all);
    return error;
}

/* ---- which thread has which ---- */

typedef struct metafork_all_streams {
    const void *owners[METAFORK_MOST_STREAMS]; /* NULL: nobody */
    metafork_streams at[METAFORK_MOST_STREAMS];
    bool refused; /* the device did not give what is needed */
    bool ending;  /* whether metafork_streams_end is to be called */
} metafork_all_streams;

METAFORK_DEFINITION metafork_all_streams *metafork_streams_of_process(void) {
    static metafork_all_streams all;
    return &all;
}

/* Give back streams with all that belongs to them, if that is still there; what cannot be known to be over is left alone. */
static inline void metafork_streams_free(metafork_streams *one) {
    metafork_stream *const streams[] = {&one->kernels, &one->copies};
    one->made = false;
    if (!metafork_pinned_is(one->device, one->buffers[0].memory) || !metafork_quiet(one)) return;
    for (int i = 0; i < METAFORK_MOST_BUFFERS; i++)
        if (one->buffers[i].memory != NULL) metafork_pinned_free(one->device, one->buffers[i].memory);
    for (int i = 0; i < 2; i++) {
        for (int mark = 0; mark < METAFORK_MARKS; mark++)
            if (streams[i]->events[mark] != NULL) metafork_event_free(one->device, streams[i]->events[mark]);
        metafork_stream_free(one->device, streams[i]->handle);
    }
}

/* At the end of the program: nothing that fails now matters to anyone. */
static void metafork_streams_end(void) {
    metafork_all_streams *const all = metafork_streams_of_process();
    if (metafork_forked()) return;
    for (int i = 0; i < METAFORK_MOST_STREAMS; i++)
        if (all->at[i].made) metafork_streams_free(&all->at[i]);
    all->ending = false;
}

/* Make the streams of a place that was empty. */
static inline bool metafork_streams_make(metafork_all_streams *all, metafork_streams *one, int device) {
    const metafork_streams none = METAFORK_NONE;
    void *memory = NULL;
    *one = none;
    one->device = device;
    one->buffer_count = METAFORK_MOST_BUFFERS;
    if (metafork_pinned_allocate(device, &memory, METAFORK_BUFFER_BYTES) != METAFORK_OK) return false;
    one->buffers[0].memory = (char *)memory;
    if (metafork_stream_make(device, &one->kernels.handle) == METAFORK_OK) {
        if (metafork_stream_make(device, &one->copies.handle) == METAFORK_OK) {
            one->made = true;
            if (__atomic_exchange_n(&all->ending, true, __ATOMIC_RELAXED) || atexit(metafork_streams_end) == 0) return true;
            one->made = false;
            metafork_stream_free(device, one->copies.handle);
        }
        metafork_stream_free(device, one->kernels.handle);
    }
    metafork_pinned_free(device, memory);
    return false;
}

/* The streams of a thread (of the owner that stands for it) on a device, or NULL. */
static inline metafork_streams *metafork_streams_take(const void *owner, int device) {
    metafork_all_streams *const all = metafork_streams_of_process();
    const char *const wanted = getenv("METAFORK_ASYNC");
    if ((wanted != NULL && strcmp(wanted, "0") == 0) || __atomic_load_n(&all->refused, __ATOMIC_RELAXED)) return NULL;
    for (int i = 0; i < METAFORK_MOST_STREAMS; i++)
        if (__atomic_load_n(&all->owners[i], __ATOMIC_ACQUIRE) == owner && all->at[i].device == device) return &all->at[i];
    /* Those that were made for the device, then new ones, then those that were made for another device. */
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < METAFORK_MOST_STREAMS; i++) {
            metafork_streams *const one = &all->at[i];
            const void *nobody = NULL;
            if (!__atomic_compare_exchange_n(&all->owners[i], &nobody, owner, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
            if (one->made && one->device == device) {
                if (metafork_pinned_is(device, one->buffers[0].memory)) return one;
                one->made = false;
            }
            if (one->made && pass == 2) metafork_streams_free(one);
            if (!one->made && pass > 0) {
                if (metafork_streams_make(all, one, device)) return one;
                __atomic_store_n(&all->refused, true, __ATOMIC_RELAXED);
                __atomic_store_n(&all->owners[i], (const void *)NULL, __ATOMIC_RELEASE);
                return NULL;
            }
            __atomic_store_n(&all->owners[i], (const void *)NULL, __ATOMIC_RELEASE);
        }
    return NULL;
}

/* Nothing of a thread's is under way any more: others may have its streams. */
static inline void metafork_streams_leave(const void *owner) {
    metafork_all_streams *const all = metafork_streams_of_process();
    for (int i = 0; i < METAFORK_MOST_STREAMS; i++) {
        if (__atomic_load_n(&all->owners[i], __ATOMIC_ACQUIRE) != owner) continue;
        /* Nobody gets broken ones. */
        __atomic_store_n(&all->owners[i], all->at[i].broken != METAFORK_OK ? (const void *)all : (const void *)NULL, __ATOMIC_RELEASE);
    }
}

#endif
