/* Which host arrays have a copy on the device, and which side is newer, byte by byte.  C11 and C++.
 *
 * A copy is known by the host addresses that it stands for: two names for one array find the same copy, and pointers that
 * change places find the right ones.  Schedules bring their arrays (metafork_bring) and say what they wrote; the host says
 * what it is about to touch (metafork_touch).  Bytes move when the side that needs them is not the newer one.  Each thread
 * of the host has copies of its own.
 *
 * What moves to the device, and what runs there, is only begun (metafork/streams.h).  What order this needs is kept here: a
 * kernel comes behind the copies of its arrays to the device; a copy to the device behind the kernels that use the array; one
 * from the device behind the last kernel that wrote it.  The host waits for what it fetches, and before it frees a copy.
 */
#ifndef METAFORK_RESIDENTS_H
#define METAFORK_RESIDENTS_H

#include "metafork/arrays.h"
#include "metafork/byte_sets.h"
#include "metafork/host.h"

enum {
    METAFORK_GAP = 65536,   /* equal bytes between two newer stretches that are moved with them rather than in two steps */
    METAFORK_ALIGNMENT = 16 /* no element needs more; devices align what they allocate to more than that */
};

/* ---- one copy ---- */

/* The host's bytes from `host` on and their copy.  No byte is in both sets; a byte in neither is equal on both sides. */
typedef struct metafork_resident {
    uintptr_t host;
    int64_t bytes;
    void *memory; /* of the device */
    void *device; /* in it: the place of the first byte */
    char *before; /* NULL, or what the host had of each byte when both sides were equal last: only what differs comes back */
    int number;   /* of the device */
    const char *name; /* for traces: what the first schedule called it */
    bool in_use;      /* by the launch under way */
    bool fresh;       /* some of it nobody had written when it was made, and so nobody else may know of it */
    bool there;       /* the host's address is the device's: nothing is ever moved */
    bool borrowed;    /* it is the caller's (metafork/borrowed.h), and nobody else knows of the host's bytes */
    metafork_streams *streams; /* NULL: all is waited for at once */
    int64_t version;           /* another one whenever a byte may have another value than before */
    int64_t sent, used, wrote; /* the last copy to the device, the last kernel with this array, and the last that writes it */
    metafork_bytes host_newer;
    metafork_bytes device_newer;
    metafork_bytes own; /* surely written on the device since others may have written them: equal ones may come back again */
} metafork_resident;

/* What a launch does to an array.  `sure` are the bytes, by their places in it, that it surely overwrites. */
typedef struct metafork_effect {
    bool written;     /* some may be; those that are not sure, only where this is not `exact` */
    bool exact;
    bool overwritten; /* none of the sure ones is read before */
    bool later;       /* a schedule behind it overwrites more of it, before anything else of the function's uses it on the device */
    bool compared;    /* what comes back is compared with what was sent, now or behind a schedule that follows */
    metafork_bytes sure;
} metafork_effect;

/* A number that was not given before in this thread. */
METAFORK_DEFINITION int64_t metafork_new_version(void) {
    static __thread int64_t last;
    return ++last;
}

static inline metafork_rows metafork_whole(const metafork_resident *one) { return metafork_stretch(0, one->bytes); }

/* Begin to move rows between a copy and memory of the host, behind what must come first. */
static inline int metafork_move_between(metafork_resident *one, char *host, char *before, metafork_rows rows, bool to_device) {
    metafork_streams *const streams = one->streams;
    int error = metafork_forked() ? METAFORK_EFORKED : METAFORK_OK;
    if (error != METAFORK_OK) return error;
    if (streams != NULL) error = metafork_follow(streams, &streams->copies, &streams->kernels, to_device ? one->used : one->wrote);
    if (error != METAFORK_OK) return error;
    metafork_range_of_copy(one->name, to_device);
    error = metafork_range_ends(metafork_copy(one->number, streams, one->name, host, before, (char *)one->device + rows.first, rows, to_device));
    if (streams != NULL) one->sent = streams->copies.begun;
    return error;
}

static inline int metafork_move_rows(metafork_resident *one, metafork_rows rows, bool to_device) {
    char *const before = one->before == NULL ? NULL : one->before + rows.first;
    return rows.width <= 0 ? METAFORK_OK : metafork_move_between(one, (char *)(one->host + (uintptr_t)rows.first), before, rows, to_device);
}

/* Move what is newer among some bytes, in few steps: with equal bytes that are few or stand in a gap, not where the other
 * side is newer.  The host's may be those of other threads: they stay, where they are not known to be this one's and what
 * comes back is not compared. */
static inline int metafork_move(metafork_resident *one, metafork_rows wanted, bool to_device) {
    const metafork_bytes *newer = to_device ? &one->host_newer : &one->device_newer;
    const metafork_bytes *older = to_device ? &one->device_newer : &one->host_newer;
    metafork_bytes parts;
    metafork_rows next = metafork_stretch(0, 0);
    const bool more = to_device || one->before || one->borrowed;
    parts.count = 0;
    for (int i = 0; i < newer->count; i++)
        if (!metafork_put_common(&parts, newer->at[i], wanted)) {
            parts = *newer; /* more than is wanted */
            break;
        }
    metafork_sort(&parts);
    for (int i = 0; i < parts.count; i++) {
        metafork_rows part = parts.at[i];
        const metafork_rows hull = metafork_hull(part);
        if (part.stride <= 2 * part.width && !metafork_meets(older, hull) && (more || metafork_has_all(&one->own, hull))) part = hull;
        if (next.width > 0 && next.count == 1 && part.count == 1) {
            const int64_t end = metafork_behind(next), last = metafork_behind(part);
            const metafork_rows gap = metafork_stretch(end, part.first > end ? part.first : end);
            if (gap.width <= METAFORK_GAP && !metafork_meets(older, gap) && (more || metafork_has_all(&one->own, gap))) {
                next = metafork_stretch(next.first, last > end ? last : end);
                continue;
            }
        }
        const int error = metafork_move_rows(one, next, to_device);
        if (error != METAFORK_OK) return error;
        next = part;
    }
    return metafork_move_rows(one, next, to_device);
}

/* Results that exist on the device alone and cannot be fetched are lost: the program ends. */
static inline void metafork_fetched(const metafork_streams *streams, const char *name, int error) {
    char under_way[256];
    if (error == METAFORK_OK) return;
    metafork_under_way(streams, error, under_way, sizeof under_way);
    fprintf(stderr, "metafork: results cannot be fetched from the device: %s: %s%s\n", metafork_message(error), name, under_way);
    abort();
}

/* Begin to make the host's bytes current: they are when metafork_settled returns. */
static inline void metafork_begin_fetch(metafork_resident *one, metafork_rows wanted) {
    metafork_fetched(one->streams, one->name, metafork_move(one, wanted, false));
    /* Where the set has no room for what remains, these stay in it and are fetched once more: both sides are equal. */
    (void)metafork_exclude(&one->device_newer, wanted);
}

/* Wait for what comes from the device. */
static inline void metafork_settled(metafork_resident *one) {
    metafork_streams *const streams = one->streams;
    if (streams == NULL || streams->piece_count == 0) return;
    const int error = metafork_arrive(streams);
    metafork_fetched(streams, streams->pieces[streams->first_piece].name, error);
}

static inline void metafork_fetch(metafork_resident *one, metafork_rows wanted) {
    metafork_begin_fetch(one, wanted);
    metafork_settled(one);
}

static inline void metafork_fetch_whole(metafork_resident *one) {
    metafork_fetch(one, metafork_whole(one));
    one->device_newer.count = 0;
}

/* The host is about to write these bytes, or some of them that were fetched before. */
static inline void metafork_host_writes(metafork_resident *one, metafork_rows written) {
    one->version = metafork_new_version();
    if (!metafork_exclude(&one->device_newer, written)) metafork_fetch_whole(one);
    if (metafork_include(&one->host_newer, written)) return;
    /* Too many: what is equal may be called newer on the host as well, once the device has nothing newer. */
    metafork_fetch_whole(one);
    one->host_newer.count = 1;
    one->host_newer.at[0] = metafork_whole(one);
}

/* The device has written these bytes. */
static inline void metafork_device_wrote(metafork_resident *one, metafork_rows written) {
    one->version = metafork_new_version();
    if (one->there) return;
    (void)metafork_exclude(&one->host_newer, written); /* known, where they were not sent: see metafork_unsent */
    if (metafork_include(&one->device_newer, written)) return;
    metafork_fetch_whole(one);
    (void)metafork_include(&one->device_newer, written);
}

/* Make the device's bytes current. */
static inline int metafork_send(metafork_resident *one, metafork_rows wanted) {
    int error = metafork_move(one, wanted, true);
    if (error == METAFORK_OK && !metafork_exclude(&one->host_newer, wanted)) {
        error = metafork_move(one, metafork_whole(one), true);
        if (error == METAFORK_OK) one->host_newer.count = 0;
    }
    return error;
}

/* Bytes of a copy that begin at a place in it. */
static inline metafork_rows metafork_moved(metafork_rows rows, int64_t first) {
    rows.first += first;
    return rows;
}

/* Whether an array, a part of a copy, is as good on the device without what the host has: it is overwritten before it is read. */
static inline bool metafork_unsent(metafork_resident *one, metafork_rows part, const metafork_effect *effect) {
    metafork_bytes rest = one->host_newer;
    bool unsent = effect->written && effect->overwritten;
    for (int i = 0; i < effect->sure.count && unsent; i++) unsent = metafork_exclude(&rest, metafork_moved(effect->sure.at[i], part.first));
    unsent = unsent && ((effect->later && effect->exact) || !metafork_meets(&rest, part));
    if (!unsent || one->before == NULL) return unsent;
    metafork_bytes parts;
    parts.count = 0;
    for (int i = 0; i < one->host_newer.count && unsent; i++) unsent = metafork_put_common(&parts, one->host_newer.at[i], part);
    for (int i = 0; i < parts.count && unsent; i++)
        metafork_take_rows(one->before + parts.at[i].first, (const char *)one->host + parts.at[i].first, parts.at[i]);
    return unsent;
}

/* Have what the host had, for what comes back is compared with it from now on.  What is equal on both sides is taken from the
 * device: other threads may have written the host's bytes since. */
static inline int metafork_have_before(metafork_resident *one) {
    const metafork_rows whole = metafork_whole(one);
    const char *const host = (const char *)one->host;
    int error = METAFORK_OK;
    if (one->before != NULL || one->borrowed) return METAFORK_OK;
    char *const before = (char *)malloc((size_t)one->bytes);
    if (before == NULL) return METAFORK_ENOMEM;
    if (one->fresh) {
        metafork_take_rows(before, host, whole);
    } else if (one->host_newer.count != 1 || one->host_newer.at[0].width != one->bytes) {
        error = metafork_move_between(one, before, NULL, whole, false);
        if (one->streams != NULL && error == METAFORK_OK) error = metafork_arrive(one->streams);
        for (int i = 0; i < one->device_newer.count; i++)
            metafork_take_rows(before + one->device_newer.at[i].first, host + one->device_newer.at[i].first, one->device_newer.at[i]);
    }
    one->before = before;
    if (error == METAFORK_OK) return METAFORK_OK;
    free(before);
    one->before = NULL;
    return error;
}

/* ---- all copies of a thread ---- */

/* Memory that nobody has written yet, or whose size is known: by malloc, until functions with schedules are left, or `told`. */
typedef struct metafork_memory {
    uintptr_t start;
    int64_t bytes;
    bool told;
} metafork_memory;

/* An array of the caller's on a device, and the host's addresses that stand for it in what malloc gave. */
typedef struct metafork_loan {
    void *reserved;
    uintptr_t host, memory;
    int64_t bytes;
    int number; /* of the device */
} metafork_loan;

typedef struct metafork_residents {
    metafork_resident *at;
    int count, room;
    const void **kept; /* addresses given to metafork_keep */
    int kept_count, kept_room;
    metafork_memory *fresh;
    int fresh_count, fresh_room;
    metafork_memory *known;
    int known_count, known_room;
    metafork_loan *loans;
    int loan_count, loan_room;
    metafork_streams *lent_streams; /* NULL, or those whose kernels go to a stream of the caller's */
    void *own_stream;               /* where they went before */
    int depth; /* functions with schedules that are under way: calls of one by another */
    bool told; /* the next call of one is by such a function, whose host code is told of what it touches */
} metafork_residents;

METAFORK_DEFINITION metafork_residents *metafork_residents_of_thread(void) {
    static __thread metafork_residents all;
    return &all;
}

/* What a copy has of a stretch of the host's memory; empty where that is nothing. */
static inline metafork_rows metafork_part(const metafork_resident *one, uintptr_t start, int64_t bytes) {
    const uintptr_t first = start > one->host ? start : one->host;
    const uintptr_t end = start + (uintptr_t)bytes, own = one->host + (uintptr_t)one->bytes;
    const uintptr_t behind = end < own ? end : own;
    return first < behind ? metafork_stretch((int64_t)(first - one->host), (int64_t)(behind - one->host)) : metafork_stretch(0, 0);
}

static inline metafork_resident *metafork_holding(const metafork_residents *all, uintptr_t start, int64_t bytes) {
    for (int i = 0; i < all->count; i++) {
        const metafork_rows part = metafork_part(&all->at[i], start, bytes);
        if (part.width == bytes) return &all->at[i];
    }
    return NULL;
}

/* Wait for all that uses a copy; false where it cannot be known when that is over. */
static inline bool metafork_unused(const metafork_resident *one) {
    metafork_streams *const streams = one->streams;
    if (streams == NULL) return true;
    int error = metafork_await(streams, &streams->kernels, one->used);
    if (error == METAFORK_OK) error = metafork_await(streams, &streams->copies, one->sent);
    if (error == METAFORK_OK) return true;
    char under_way[256];
    metafork_under_way(streams, error, under_way, sizeof under_way);
    fprintf(stderr, "metafork: the device failed before the copy of %s was freed: %s%s\n", one->name, metafork_message(error), under_way);
    return metafork_quiet(streams);
}

/* Know of a copy no more. */
static inline void metafork_remove(metafork_residents *all, int index) {
    free(all->at[index].before);
    all->at[index] = all->at[--all->count];
    if (all->count > 0) return;
    free(all->at);
    all->at = NULL;
    all->room = 0;
}

/* Free one copy; what is newer on it is lost.  One that may be in use for ever stays. */
static inline void metafork_free_copy(metafork_residents *all, int index) {
    metafork_resident *const one = &all->at[index];
    if (!metafork_forked() && metafork_unused(one) && !one->borrowed) metafork_device_free(one->number, one->memory);
    metafork_remove(all, index);
}

static inline bool metafork_is_kept(const metafork_residents *all, const metafork_resident *one) {
    for (int i = 0; i < all->kept_count; i++) {
        const metafork_rows part = metafork_part(one, (uintptr_t)all->kept[i], 1);
        if (part.width > 0) return true;
    }
    return false;
}

/* Fetch copies, all at once, and free them: those that a launch under way does not use, or those that are not kept.  Returns
 * whether there was one. */
static inline bool metafork_end_copies(metafork_residents *all, bool kept_stay) {
    bool any = false;
    for (int pass = 0; pass < 2; pass++)
        for (int i = all->count - 1; i >= 0; i--) {
            metafork_resident *const one = &all->at[i];
            if (one->in_use || (one->borrowed && !one->there) || (kept_stay && metafork_is_kept(all, one))) continue;
            if (pass == 0) {
                metafork_begin_fetch(one, metafork_whole(one));
            } else {
                metafork_settled(one);
                metafork_free_copy(all, i);
                any = true;
            }
        }
    return any;
}

/* Room for one more of something, in a vector that grows; null without memory. */
static inline void *metafork_grown(void *at, int count, int *room, size_t size) {
    if (count < *room) return at;
    const int more = *room > 0 ? 2 * *room : 8;
    void *const larger = realloc(at, (size_t)more * size);
    if (larger != NULL) *room = more;
    return larger;
}

/* One of a thread's copies on a device, or NULL. */
static inline const metafork_resident *metafork_any_on(const metafork_residents *all, int number) {
    for (int i = 0; i < all->count; i++)
        if (all->at[i].number == number) return &all->at[i];
    return NULL;
}

static inline bool metafork_overlap(uintptr_t left, int64_t left_bytes, uintptr_t right, int64_t right_bytes) {
    return left_bytes > 0 && right_bytes > 0 && left < right + (uintptr_t)right_bytes && right < left + (uintptr_t)left_bytes;
}

/* Fresh memory is written, or ends: what is longest of the rest stays fresh. */
static inline void metafork_spoil(metafork_residents *all, uintptr_t start, int64_t bytes) {
    for (int i = all->fresh_count - 1; i >= 0; i--) {
        metafork_memory *const one = &all->fresh[i];
        if (!metafork_overlap(one->start, one->bytes, start, bytes)) continue;
        const int64_t before = start > one->start ? (int64_t)(start - one->start) : 0;
        const int64_t behind = (int64_t)(one->start - start) + one->bytes - bytes;
        if (behind > before) one->start += (uintptr_t)(one->bytes - behind);
        one->bytes = behind > before ? behind : before;
        if (one->bytes == 0) *one = all->fresh[--all->fresh_count];
    }
}

static inline void metafork_spoil_all(metafork_residents *all) {
    free(all->fresh);
    all->fresh = NULL;
    all->fresh_count = all->fresh_room = 0;
}

static inline bool metafork_is_fresh(const metafork_residents *all, uintptr_t start, int64_t bytes) {
    for (int i = 0; i < all->fresh_count; i++)
        if (all->fresh[i].start <= start && start + (uintptr_t)bytes <= all->fresh[i].start + (uintptr_t)all->fresh[i].bytes) return true;
    return false;
}

/* Have a copy of these bytes, with no other one overlapping them but one that holds them all. */
static inline int metafork_have(metafork_residents *all, uintptr_t start, int64_t bytes, int number, const char *name) {
    metafork_resident *one = metafork_holding(all, start, bytes);
    if (one == NULL) {
        metafork_resident added = METAFORK_NONE;
        added.host = start;
        added.bytes = bytes;
        added.number = number;
        added.name = name;
        added.version = metafork_new_version();
        const metafork_resident *const other = metafork_any_on(all, number);
        added.streams = other != NULL ? other->streams : metafork_streams_take(all, number);
        /* An array may begin anywhere in the copy of another: elements are aligned there if they are on the host. */
        const int64_t shift = (int64_t)(start % METAFORK_ALIGNMENT);
        metafork_place place = METAFORK_NONE;
        int error = metafork_place_of(number, (const void *)start, &place);
        if (error != METAFORK_OK) return error;
        added.there = added.borrowed = place.of_device;
        if (!added.there) error = metafork_device_allocate(number, &added.memory, bytes + shift);
        if (error != METAFORK_OK && metafork_end_copies(all, false)) error = metafork_device_allocate(number, &added.memory, bytes + shift);
        if (error != METAFORK_OK) return error;
        added.device = added.there ? (void *)start : (char *)added.memory + shift;
        void *const grown = metafork_grown(all->at, all->count, &all->room, sizeof added);
        if (grown == NULL) {
            if (!added.there) metafork_device_free(number, added.memory);
            return METAFORK_ENOMEM;
        }
        all->at = (metafork_resident *)grown;
        added.fresh = metafork_is_fresh(all, start, bytes);
        if (!added.fresh && !added.there) (void)metafork_include(&added.host_newer, metafork_whole(&added));
        one = &all->at[all->count++];
        *one = added;
    }
    one->in_use = true;
    return METAFORK_OK;
}

/* Forget the sizes of arrays in memory that ends; those that nobody told where none does. */
static inline void metafork_unknow(metafork_residents *all, uintptr_t start, int64_t bytes) {
    for (int i = all->known_count - 1; i >= 0; i--) {
        const metafork_memory *const one = &all->known[i];
        if (bytes > 0 ? metafork_overlap(one->start, one->bytes, start, bytes) : !one->told) all->known[i] = all->known[--all->known_count];
    }
    if (all->known_count > 0) return;
    free(all->known);
    all->known = NULL;
    all->known_room = 0;
}

/* Remember the size of an array; forget it where that is 0. */
static inline void metafork_know(metafork_residents *all, uintptr_t start, int64_t bytes, bool told) {
    for (int i = all->known_count - 1; i >= 0; i--)
        if (all->known[i].start == start) all->known[i] = all->known[--all->known_count];
    if (bytes <= 0) return;
    void *const grown = metafork_grown(all->known, all->known_count, &all->known_room, sizeof *all->known);
    if (grown == NULL) return; /* the serial code runs then, which is right as well */
    const metafork_memory one = {start, bytes, told};
    all->known = (metafork_memory *)grown;
    all->known[all->known_count++] = one;
}

/* The array that begins at an address, or the largest one that it leads into; of no bytes where none is known. */
static inline metafork_memory metafork_memory_of(const metafork_residents *all, uintptr_t address) {
    metafork_memory found = {address, 0, false};
    for (int i = 0; i < all->known_count + all->loan_count; i++) {
        const metafork_loan *const loan = i < all->known_count ? NULL : &all->loans[i - all->known_count];
        metafork_memory one = {0, 0, false};
        if (loan == NULL) {
            one = all->known[i];
        } else {
            one.start = loan->host;
            one.bytes = loan->bytes;
        }
        if (one.start == address) return one;
        if (one.bytes > found.bytes && metafork_overlap(one.start, one.bytes, address, 1)) found = one;
    }
    return found;
}

/* Where no size is known: that of the memory, if it is managed or the device's. */
static inline metafork_memory metafork_known_memory(uintptr_t address) {
    metafork_memory found = metafork_memory_of(metafork_residents_of_thread(), address);
    metafork_place place = METAFORK_NONE;
    int device = 0;
    if (found.bytes != 0 || !metafork_own_device() || metafork_current_device(&device) != METAFORK_OK) return found;
    if (metafork_place_of(device, (const void *)address, &place) != METAFORK_OK || place.bytes == 0) return found;
    found.start = place.start;
    found.bytes = place.bytes;
    return found;
}

enum { METAFORK_MOST_ARRAYS = 64 };

/* Let stretches that overlap become the one around them. */
static inline void metafork_unite(uintptr_t *starts, int64_t *sizes, int count) {
    for (bool grew = true; grew;) {
        grew = false;
        for (int i = 0; i < count; i++)
            for (int j = 0; j < count; j++) {
                if (!metafork_overlap(starts[i], sizes[i], starts[j], sizes[j])) continue;
                const uintptr_t first = starts[i] < starts[j] ? starts[i] : starts[j];
                const uintptr_t end = starts[i] + (uintptr_t)sizes[i], other = starts[j] + (uintptr_t)sizes[j];
                const int64_t size = (int64_t)((end > other ? end : other) - first);
                grew = grew || first != starts[i] || size != sizes[i];
                starts[i] = first;
                sizes[i] = size;
            }
    }
}

/* Let a stream come behind what was begun on another one. */
static inline int metafork_behind_stream(int device, void *stream, void *other) {
    void *event = NULL;
    int error = stream == other ? METAFORK_OK : metafork_event_record(device, other, &event);
    if (error == METAFORK_OK && event != NULL) error = metafork_stream_follow(device, stream, event);
    if (event != NULL) metafork_event_free(device, event);
    return error;
}

/* Bring arrays to the current device, by its number, all at once; those of no bytes are not touched.  Of arrays that overlap
 * none is written: they share one copy. */
static inline int metafork_bring(int number, void *const *hosts, const int64_t *bytes, const char *const *names, const metafork_effect *effects, int count,
                                 void **pointers) {
    metafork_residents *all = metafork_residents_of_thread();
    uintptr_t starts[METAFORK_MOST_ARRAYS];
    int64_t sizes[METAFORK_MOST_ARRAYS];
    for (int i = 0; i < count; i++) {
        starts[i] = (uintptr_t)hosts[i];
        sizes[i] = bytes[i];
    }
    metafork_unite(starts, sizes, count);
    for (int i = 0; i < count; i++)
        for (int j = all->count - 1; j >= 0; j--) {
            const metafork_resident *one = &all->at[j];
            if (!metafork_overlap(starts[i], sizes[i], one->host, one->bytes)) continue;
            const metafork_rows part = metafork_part(one, starts[i], sizes[i]);
            if (one->number == number && part.width == sizes[i]) continue;
            metafork_fetch_whole(&all->at[j]);
            metafork_free_copy(all, j);
        }
    int error = METAFORK_OK;
    for (int i = 0; i < count && error == METAFORK_OK; i++)
        if (sizes[i] > 0) error = metafork_have(all, starts[i], sizes[i], number, names[i]);
    bool behind_caller = false;
    for (int i = 0; i < count && error == METAFORK_OK; i++) {
        if (bytes[i] <= 0) continue;
        metafork_resident *const one = metafork_holding(all, (uintptr_t)hosts[i], bytes[i]);
        if (one->there && one->streams != NULL && !behind_caller) error = metafork_behind_stream(number, one->streams->kernels.handle, NULL);
        behind_caller = behind_caller || one->there;
        if (error != METAFORK_OK) break;
        const metafork_rows part = metafork_part(one, (uintptr_t)hosts[i], bytes[i]);
        if (effects[i].compared) error = metafork_have_before(one);
        if (error == METAFORK_OK && !metafork_unsent(one, part, &effects[i])) error = metafork_send(one, part);
        pointers[i] = (char *)one->device + part.first;
    }
    for (int i = 0; i < all->count; i++) all->at[i].in_use = false;
    return error;
}

/* A kernel that is about to be launched on arrays that were brought: let it come behind their copies.  `stream` is the one to
 * launch it on, NULL where it is waited for at once. */
static inline int metafork_launch_begins(void *const *hosts, const int64_t *bytes, int count, void **stream) {
    const metafork_residents *all = metafork_residents_of_thread();
    int error = METAFORK_OK;
    *stream = NULL;
    for (int i = 0; i < count && error == METAFORK_OK; i++) {
        const metafork_resident *const one = bytes[i] > 0 ? metafork_holding(all, (uintptr_t)hosts[i], bytes[i]) : NULL;
        if (one == NULL || one->streams == NULL) continue;
        error = metafork_follow(one->streams, &one->streams->kernels, &one->streams->copies, one->sent);
        *stream = one->streams->kernels.handle;
    }
    return error;
}

/* It has been launched. */
static inline int metafork_launch_ends(const char *name, void *const *hosts, const int64_t *bytes, const bool *written, int count) {
    const metafork_residents *all = metafork_residents_of_thread();
    metafork_streams *streams = NULL;
    for (int i = 0; i < count; i++) {
        metafork_resident *const one = bytes[i] > 0 ? metafork_holding(all, (uintptr_t)hosts[i], bytes[i]) : NULL;
        if (one == NULL || one->streams == NULL) continue;
        streams = one->streams;
        one->used = streams->kernels.begun + 1;
        if (written[i]) one->wrote = one->used;
    }
    return streams != NULL ? metafork_begun(streams, &streams->kernels, name) : metafork_finish();
}

/* An array that was brought has been written on the device. */
static inline void metafork_written(const void *host, int64_t bytes, const metafork_effect *effect) {
    metafork_resident *const one = bytes > 0 ? metafork_holding(metafork_residents_of_thread(), (uintptr_t)host, bytes) : NULL;
    if (one == NULL || !effect->written) return;
    const metafork_rows part = metafork_part(one, (uintptr_t)host, bytes);
    metafork_spoil(metafork_residents_of_thread(), (uintptr_t)host, bytes);
    for (int i = 0; i < effect->sure.count; i++) {
        metafork_device_wrote(one, metafork_moved(effect->sure.at[i], part.first));
        (void)metafork_include(&one->own, metafork_moved(effect->sure.at[i], part.first));
    }
    if (!effect->exact) metafork_device_wrote(one, part);
}

/* ---- what host.h declares ---- */

enum { METAFORK_READS = 1, METAFORK_WRITES = 2, METAFORK_UPDATES = 3 };

static inline void metafork_touch_part(metafork_resident *one, metafork_rows part, int how) {
    if (part.width <= 0 || one->there) return;
    if ((how & METAFORK_READS) != 0) metafork_fetch(one, part);
    if ((how & METAFORK_WRITES) != 0) metafork_host_writes(one, part);
}

METAFORK_DEFINITION void metafork_touch_all(int how) {
    metafork_residents *all = metafork_residents_of_thread();
    if (how == METAFORK_UPDATES) all->told = false; /* code that is not followed may come */
    if ((how & METAFORK_WRITES) != 0) metafork_spoil_all(all);
    for (int i = 0; i < all->count && (how & METAFORK_READS) != 0; i++) metafork_begin_fetch(&all->at[i], metafork_whole(&all->at[i]));
    for (int i = 0; i < all->count; i++) {
        metafork_settled(&all->at[i]);
        metafork_touch_part(&all->at[i], metafork_whole(&all->at[i]), how);
        if ((how & METAFORK_WRITES) != 0) all->at[i].own.count = 0;
    }
}

METAFORK_DEFINITION void metafork_touch(const void *start, long long offset, long long bytes, int how) {
    metafork_residents *all = metafork_residents_of_thread();
    if (bytes <= 0) return;
    if ((how & METAFORK_WRITES) != 0) metafork_spoil(all, (uintptr_t)start + (uintptr_t)offset, bytes);
    for (int i = 0; i < all->count; i++)
        metafork_touch_part(&all->at[i], metafork_part(&all->at[i], (uintptr_t)start + (uintptr_t)offset, bytes), how);
}

/* Touch rows at an address: of each copy, what it has of them. */
static inline void metafork_touch_rows(const void *start, metafork_rows rows, int how) {
    metafork_residents *all = metafork_residents_of_thread();
    if ((how & METAFORK_WRITES) != 0) metafork_spoil(all, (uintptr_t)start + (uintptr_t)rows.first, metafork_hull(rows).width);
    for (int i = 0; i < all->count; i++) {
        metafork_resident *const one = &all->at[i];
        metafork_bytes parts;
        metafork_rows here = rows;
        parts.count = 0;
        here.first += (int64_t)((uintptr_t)start - one->host);
        (void)metafork_put_common(&parts, here, metafork_whole(one)); /* three parts at most */
        for (int part = 0; part < parts.count; part++) metafork_touch_part(one, parts.at[part], how);
    }
}

enum { METAFORK_MOST_STEPS = 8 };

/* Bytes at several distances, each so many times: rows, which are there `times` times at a `distance`.  Where they are not all in
 * the rows (`more`), these are a stretch around them; where they are `lost`, that would leave 64 bits. */
typedef struct metafork_pattern {
    metafork_rows rows;
    int64_t distance, times;
    bool more, lost;
} metafork_pattern;

static inline metafork_pattern metafork_pattern_of(int64_t offset, int64_t bytes, int rank, const long long *steps) {
    int64_t strides[METAFORK_MOST_STEPS], counts[METAFORK_MOST_STEPS], far;
    int count = 0;
    metafork_pattern found = {metafork_stretch(0, 0), 0, 0, false, rank > METAFORK_MOST_STEPS};
    if (bytes <= 0) return found;
    for (int i = 0; i < rank; i++)
        if (steps[2 * i + 1] <= 0) return found;
    for (int i = 0; i < rank && !found.lost; i++) {
        int64_t stride = steps[2 * i];
        const int64_t number = steps[2 * i + 1];
        if (stride == 0 || number == 1) continue;
        found.lost = __builtin_mul_overflow(stride, number, &far) || far == INT64_MIN;
        if (stride < 0 && !found.lost) {
            found.lost = __builtin_add_overflow(offset, stride * (number - 1), &offset);
            stride = -stride;
        }
        int at = count++;
        for (; at > 0 && strides[at - 1] > stride; at--) strides[at] = strides[at - 1], counts[at] = counts[at - 1];
        strides[at] = stride;
        counts[at] = number;
    }
    found.rows = metafork_stretch(offset, offset + bytes);
    found.times = 1;
    for (int i = 0; i < count && !found.lost; i++) {
        metafork_rows *const rows = &found.rows;
        const metafork_rows hull = metafork_hull(*rows);
        if (rows->count == 1 && strides[i] > rows->width) {
            rows->stride = strides[i];
            rows->count = counts[i];
        } else if (rows->count > 1 && strides[i] == rows->stride * rows->count) {
            found.lost = __builtin_mul_overflow(rows->count, counts[i], &rows->count);
        } else if (rows->count > 1 && i == count - 1 && strides[i] > hull.width && counts[i] <= METAFORK_MOST_ROWS / 2) {
            found.distance = strides[i];
            found.times = counts[i];
        } else {
            found.more = found.more || rows->count > 1 || strides[i] > rows->width; /* between them is what is not touched */
            found.lost = __builtin_add_overflow(hull.width, strides[i] * (counts[i] - 1), &far) || __builtin_add_overflow(far, offset, &far);
            if (!found.lost) *rows = metafork_stretch(offset, far);
        }
        found.lost = found.lost || __builtin_mul_overflow(rows->stride, rows->count, &far) || __builtin_add_overflow(far, offset, &far);
    }
    return found;
}

METAFORK_DEFINITION void metafork_touch_steps(const void *start, long long offset, long long bytes, int how, int rank, const long long *steps) {
    const metafork_pattern found = metafork_pattern_of(offset, bytes, rank, steps);
    if (found.more || found.lost) how |= METAFORK_READS;
    if (found.lost) metafork_touch_all(how);
    for (int64_t k = 0; !found.lost && k < found.times; k++) metafork_touch_rows(start, metafork_moved(found.rows, k * found.distance), how);
}

METAFORK_DEFINITION long long metafork_trips(unsigned long long first, unsigned long long behind) {
    if (behind <= first) return 0;
    return behind > INT64_MAX ? INT64_MAX : (long long)(behind - first);
}

/* Other threads may have the streams of one that has no copies. */
static inline void metafork_at_rest(const metafork_residents *all) {
    if (all->depth <= 0 && all->count == 0 && all->loan_count == 0) metafork_streams_leave(all);
}

METAFORK_DEFINITION void metafork_settle(void) {
    metafork_residents *all = metafork_residents_of_thread();
    metafork_touch_all(METAFORK_UPDATES);
    (void)metafork_end_copies(all, true);
}

METAFORK_DEFINITION void metafork_calls(void) { metafork_residents_of_thread()->told = true; }

METAFORK_DEFINITION char metafork_enter(void) {
    metafork_residents *all = metafork_residents_of_thread();
    const char told = all->told;
    all->told = false;
    all->depth++;
    return told;
}

METAFORK_DEFINITION void metafork_leave(const char *frame) {
    metafork_residents *all = metafork_residents_of_thread();
    all->told = false;
    if (--all->depth > 0) {
        if (!*frame) metafork_settle();
        return;
    }
    metafork_spoil_all(all);
    metafork_unknow(all, 0, 0);
    (void)metafork_end_copies(all, true);
    metafork_at_rest(all);
}

METAFORK_DEFINITION void metafork_forget(const struct metafork_local *array) {
    metafork_residents *all = metafork_residents_of_thread();
    metafork_spoil(all, (uintptr_t)array->metafork_start, (int64_t)array->metafork_bytes);
    metafork_unknow(all, (uintptr_t)array->metafork_start, (int64_t)array->metafork_bytes);
    for (int i = all->count - 1; i >= 0; i--) {
        const metafork_rows part = metafork_part(&all->at[i], (uintptr_t)array->metafork_start, (int64_t)array->metafork_bytes);
        if (part.width == 0) continue;
        (void)metafork_exclude(&all->at[i].device_newer, part);
        metafork_fetch_whole(&all->at[i]);
        metafork_free_copy(all, i);
    }
}

/* How many bytes malloc gave, where the library says so. */
METAFORK_C size_t metafork_usable_bytes(void *start) __asm__("malloc_usable_size") __attribute__((weak));

METAFORK_DEFINITION void metafork_freed(const void *start) {
    metafork_residents *const all = metafork_residents_of_thread();
    if (start == NULL || (all->count == 0 && all->fresh_count == 0 && all->known_count == 0)) return;
    if (metafork_usable_bytes == NULL) {
        metafork_unknow(all, (uintptr_t)start, 1);
        metafork_touch_all(METAFORK_UPDATES);
        return;
    }
    const struct metafork_local memory = {start, metafork_usable_bytes((void *)(uintptr_t)start)};
    metafork_forget(&memory);
}

METAFORK_DEFINITION void metafork_fresh(const void *start, long long bytes) {
    metafork_residents *all = metafork_residents_of_thread();
    if (bytes < 0 && start != NULL && metafork_usable_bytes != NULL) bytes = (long long)metafork_usable_bytes((void *)(uintptr_t)start);
    if (start == NULL || bytes <= 0) return;
    metafork_know(all, (uintptr_t)start, bytes, false);
    void *const grown = metafork_grown(all->fresh, all->fresh_count, &all->fresh_room, sizeof *all->fresh);
    if (grown == NULL) return; /* it goes to the device then, which is right as well */
    const metafork_memory one = {(uintptr_t)start, bytes, false};
    all->fresh = (metafork_memory *)grown;
    all->fresh[all->fresh_count++] = one;
}

METAFORK_DEFINITION void metafork_keep(const void *pointer) {
    metafork_residents *all = metafork_residents_of_thread();
    for (int i = 0; i < all->kept_count; i++)
        if (all->kept[i] == pointer) return;
    void *const grown = metafork_grown(all->kept, all->kept_count, &all->kept_room, sizeof pointer);
    if (grown == NULL) return; /* it moves at every call then, which is right as well */
    all->kept = (const void **)grown;
    all->kept[all->kept_count++] = pointer;
}

METAFORK_DEFINITION void metafork_drop(const void *pointer) {
    metafork_residents *all = metafork_residents_of_thread();
    for (int i = all->kept_count - 1; i >= 0; i--)
        if (all->kept[i] == pointer) all->kept[i] = all->kept[--all->kept_count];
    if (all->kept_count == 0) {
        free(all->kept);
        all->kept = NULL;
        all->kept_room = 0;
    }
    for (int i = all->count - 1; i >= 0; i--) {
        const metafork_rows part = metafork_part(&all->at[i], (uintptr_t)pointer, 1);
        if (part.width == 0) continue;
        metafork_fetch_whole(&all->at[i]);
        metafork_free_copy(all, i);
    }
    metafork_at_rest(all);
}

/* The version of the copy of some bytes of the host, 0 where there is none: then nobody tells who writes them. */
static inline int64_t metafork_version_of(const struct metafork_local *array) {
    const metafork_resident *const one = metafork_holding(metafork_residents_of_thread(), (uintptr_t)array->metafork_start, (int64_t)array->metafork_bytes);
    return one != NULL ? one->version : 0;
}

METAFORK_DEFINITION int metafork_recall(const long long *memory, const struct metafork_local *read, int reads, const long long *scalars, int count,
                                        long long *reach, int length) {
    const long long *at = memory + 1;
    if (memory[0] == 0) return 0;
    for (int i = 0; i < reads; i++, at += 2)
        if (at[0] != (long long)(uintptr_t)read[i].metafork_start || at[1] != metafork_version_of(&read[i])) return 0;
    for (int i = 0; i < count; i++)
        if (*at++ != scalars[i]) return 0;
    for (int i = 0; i < length; i++) reach[i] = at[i];
    return 1;
}

METAFORK_DEFINITION void metafork_retain(long long *memory, const struct metafork_local *read, int reads, const long long *scalars, int count,
                                         const long long *reach, int length) {
    long long *at = memory + 1;
    memory[0] = 1;
    for (int i = 0; i < reads; i++, at += 2) {
        at[0] = (long long)(uintptr_t)read[i].metafork_start;
        at[1] = metafork_version_of(&read[i]);
        if (at[1] == 0) memory[0] = 0;
    }
    for (int i = 0; i < count; i++) *at++ = scalars[i];
    for (int i = 0; i < length; i++) at[i] = reach[i];
}

METAFORK_DEFINITION void metafork_extent(const void *pointer, long long bytes) {
    metafork_know(metafork_residents_of_thread(), (uintptr_t)pointer, bytes, true);
}

METAFORK_DEFINITION int metafork_unchanged(int same, const char *name) {
    if (!same) {
        const bool strict = metafork_enabled("METAFORK_STRICT");
        fprintf(stderr, "metafork: %s: code before the schedule moved or resized one of its arrays; %s\n", name,
                strict ? "METAFORK_STRICT is set" : "the serial code runs");
        if (strict) abort();
        metafork_touch_all(METAFORK_UPDATES);
    }
    return same;
}

#endif
