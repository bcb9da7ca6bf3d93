/* Which host arrays have a copy on the device, and which side is newer, byte by byte.  C11 and C++.
 *
 * A copy is known by the host addresses that it stands for: two names for one array find the same copy, and pointers that
 * change places find the right ones.  Schedules bring their arrays (metafork_bring) and say what they wrote; the host says
 * what it is about to touch (metafork_touch).  Bytes move when the side that needs them is not the newer one.  Each thread
 * of the host has copies of its own.
 */
#ifndef METAFORK_RESIDENTS_H
#define METAFORK_RESIDENTS_H

#include "metafork/arrays.h"
#include "metafork/host.h"

/* ---- sets of bytes ---- */

/* Bytes of a copy, from `first` to before `behind`. */
typedef struct metafork_range {
    int64_t first, behind;
} metafork_range;

enum {
    METAFORK_MOST_RANGES = 16,
    METAFORK_GAP = 65536 /* equal bytes between two newer ranges that are moved with them rather than in two steps */
};

/* Sorted, with gaps between them. */
typedef struct metafork_ranges {
    int count;
    metafork_range at[METAFORK_MOST_RANGES];
} metafork_ranges;

static inline metafork_range metafork_common(metafork_range left, metafork_range right) {
    const metafork_range common = {left.first > right.first ? left.first : right.first,
                                   left.behind < right.behind ? left.behind : right.behind};
    return common;
}

static inline bool metafork_meets(const metafork_ranges *ranges, metafork_range range) {
    for (int i = 0; i < ranges->count; i++) {
        const metafork_range common = metafork_common(ranges->at[i], range);
        if (common.first < common.behind) return true;
    }
    return false;
}

/* Add a range; false, and nothing is changed, where that would be too many. */
static inline bool metafork_ranges_add(metafork_ranges *ranges, metafork_range range) {
    metafork_range all[METAFORK_MOST_RANGES + 1];
    int count = 0;
    bool placed = false;
    for (int i = 0; i < ranges->count; i++) {
        const metafork_range one = ranges->at[i];
        if (one.behind < range.first) {
            all[count++] = one;
        } else if (range.behind < one.first) {
            if (!placed) all[count++] = range;
            placed = true;
            all[count++] = one;
        } else {
            if (one.first < range.first) range.first = one.first;
            if (one.behind > range.behind) range.behind = one.behind;
        }
    }
    if (!placed) all[count++] = range;
    if (count > METAFORK_MOST_RANGES) return false;
    for (int i = 0; i < count; i++) ranges->at[i] = all[i];
    ranges->count = count;
    return true;
}

/* Take a range away; false, and nothing is changed, where too many would remain. */
static inline bool metafork_ranges_remove(metafork_ranges *ranges, metafork_range range) {
    metafork_range all[METAFORK_MOST_RANGES + 1];
    int count = 0;
    for (int i = 0; i < ranges->count; i++) {
        const metafork_range one = ranges->at[i];
        const metafork_range before = {one.first, one.behind < range.first ? one.behind : range.first};
        const metafork_range after = {one.first > range.behind ? one.first : range.behind, one.behind};
        if (before.first < before.behind) all[count++] = before;
        if (after.first < after.behind) all[count++] = after;
    }
    if (count > METAFORK_MOST_RANGES) return false;
    for (int i = 0; i < count; i++) ranges->at[i] = all[i];
    ranges->count = count;
    return true;
}

/* ---- one copy ---- */

/* The host's bytes from `host` on and their copy.  No byte is in both sets; a byte in neither is equal on both sides. */
typedef struct metafork_resident {
    uintptr_t host;
    int64_t bytes;
    void *device;
    int number;       /* of the device */
    const char *name; /* for traces: what the first schedule called it */
    bool in_use;      /* by the launch under way */
    metafork_ranges host_newer;
    metafork_ranges device_newer;
} metafork_resident;

static inline metafork_range metafork_whole(const metafork_resident *one) {
    const metafork_range whole = {0, one->bytes};
    return whole;
}

static inline int metafork_move_range(const metafork_resident *one, metafork_range range, bool to_device) {
    if (range.first >= range.behind) return METAFORK_OK;
    void *const host = (void *)(one->host + (uintptr_t)range.first);
    void *const device = (char *)one->device + range.first;
    return metafork_copy(one->number, one->name, to_device ? device : host, to_device ? host : device, range.behind - range.first, to_device);
}

/* Move what is newer within a range, in few steps: across a gap where both sides are equal, not where the other is newer. */
static inline int metafork_move(const metafork_resident *one, metafork_range range, bool to_device) {
    const metafork_ranges *newer = to_device ? &one->host_newer : &one->device_newer;
    const metafork_ranges *older = to_device ? &one->device_newer : &one->host_newer;
    metafork_range next = {0, 0};
    for (int i = 0; i < newer->count; i++) {
        const metafork_range part = metafork_common(newer->at[i], range);
        if (part.first >= part.behind) continue;
        const metafork_range gap = {next.behind, part.first};
        const bool near = part.first - next.behind <= METAFORK_GAP && !metafork_meets(older, gap);
        if (next.first < next.behind && near) {
            next.behind = part.behind;
            continue;
        }
        const int error = metafork_move_range(one, next, to_device);
        if (error != METAFORK_OK) return error;
        next = part;
    }
    return metafork_move_range(one, next, to_device);
}

/* Make the host's bytes current.  Results that exist on the device alone and cannot be fetched are lost: the program ends. */
static inline void metafork_fetch(metafork_resident *one, metafork_range range) {
    const int error = metafork_move(one, range, false);
    if (error != METAFORK_OK) {
        fprintf(stderr, "metafork: results cannot be fetched from the device: %s\n", metafork_message(error));
        abort();
    }
    /* Where the set has no room for what remains, the range stays in it and is fetched once more: both sides are equal. */
    (void)metafork_ranges_remove(&one->device_newer, range);
}

static inline void metafork_fetch_whole(metafork_resident *one) {
    metafork_fetch(one, metafork_whole(one));
    one->device_newer.count = 0;
}

/* The host is about to write a range, or parts of it that were fetched before. */
static inline void metafork_host_writes(metafork_resident *one, metafork_range range) {
    if (!metafork_ranges_remove(&one->device_newer, range)) metafork_fetch_whole(one);
    if (metafork_ranges_add(&one->host_newer, range)) return;
    /* Too many: what is equal may be called newer on the host as well, once the device has nothing newer. */
    metafork_fetch_whole(one);
    one->host_newer.count = 1;
    one->host_newer.at[0] = metafork_whole(one);
}

/* The device has written a range, which was current there. */
static inline void metafork_device_wrote(metafork_resident *one, metafork_range range) {
    if (metafork_ranges_add(&one->device_newer, range)) return;
    metafork_fetch_whole(one);
    (void)metafork_ranges_add(&one->device_newer, range);
}

/* Make the device's bytes current. */
static inline int metafork_send(metafork_resident *one, metafork_range range) {
    int error = metafork_move(one, range, true);
    if (error == METAFORK_OK && !metafork_ranges_remove(&one->host_newer, range)) {
        error = metafork_move(one, metafork_whole(one), true);
        if (error == METAFORK_OK) one->host_newer.count = 0;
    }
    return error;
}

/* ---- all copies of a thread ---- */

typedef struct metafork_residents {
    metafork_resident *at;
    int count, room;
    const void **kept; /* addresses given to metafork_keep */
    int kept_count, kept_room;
    int depth; /* functions with schedules that are under way: calls of one by another, whose host code is not told of them */
} metafork_residents;

METAFORK_DEFINITION metafork_residents *metafork_residents_of_thread(void) {
    static __thread metafork_residents all;
    return &all;
}

static inline metafork_range metafork_part(const metafork_resident *one, uintptr_t start, int64_t bytes) {
    const uintptr_t first = start > one->host ? start : one->host;
    const uintptr_t end = start + (uintptr_t)bytes, own = one->host + (uintptr_t)one->bytes;
    const uintptr_t behind = end < own ? end : own;
    metafork_range part = {0, 0};
    if (first < behind) {
        part.first = (int64_t)(first - one->host);
        part.behind = (int64_t)(behind - one->host);
    }
    return part;
}

static inline metafork_resident *metafork_holding(const metafork_residents *all, uintptr_t start, int64_t bytes) {
    for (int i = 0; i < all->count; i++) {
        const metafork_range part = metafork_part(&all->at[i], start, bytes);
        if (part.behind - part.first == bytes) return &all->at[i];
    }
    return NULL;
}

/* Free one copy; what is newer on it is lost. */
static inline void metafork_free_copy(metafork_residents *all, int index) {
    if (all->at[index].device != NULL) metafork_device_free(all->at[index].number, all->at[index].device);
    all->at[index] = all->at[--all->count];
    if (all->count > 0) return;
    free(all->at);
    all->at = NULL;
    all->room = 0;
}

static inline bool metafork_is_kept(const metafork_residents *all, const metafork_resident *one) {
    for (int i = 0; i < all->kept_count; i++) {
        const metafork_range part = metafork_part(one, (uintptr_t)all->kept[i], 1);
        if (part.first < part.behind) return true;
    }
    return false;
}

/* Fetch and free the copies that a launch does not use; returns whether there was one. */
static inline bool metafork_make_room(metafork_residents *all) {
    bool any = false;
    for (int i = all->count - 1; i >= 0; i--) {
        if (all->at[i].in_use) continue;
        metafork_fetch_whole(&all->at[i]);
        metafork_free_copy(all, i);
        any = true;
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

/* Have a copy of these bytes, with no other one overlapping them but one that holds them all. */
static inline int metafork_have(metafork_residents *all, uintptr_t start, int64_t bytes, int number, const char *name) {
    metafork_resident *one = metafork_holding(all, start, bytes);
    if (one == NULL) {
        metafork_resident added = METAFORK_NONE;
        added.host = start;
        added.bytes = bytes;
        added.number = number;
        added.name = name;
        int error = metafork_device_allocate(number, &added.device, bytes);
        if (error != METAFORK_OK && metafork_make_room(all)) error = metafork_device_allocate(number, &added.device, bytes);
        if (error != METAFORK_OK) return error;
        void *const grown = metafork_grown(all->at, all->count, &all->room, sizeof added);
        if (grown == NULL) {
            metafork_device_free(number, added.device);
            return METAFORK_ENOMEM;
        }
        all->at = (metafork_resident *)grown;
        (void)metafork_ranges_add(&added.host_newer, metafork_whole(&added));
        one = &all->at[all->count++];
        *one = added;
    }
    one->in_use = true;
    return METAFORK_OK;
}

static inline bool metafork_overlap(uintptr_t left, int64_t left_bytes, uintptr_t right, int64_t right_bytes) {
    return left_bytes > 0 && right_bytes > 0 && left < right + (uintptr_t)right_bytes && right < left + (uintptr_t)left_bytes;
}

enum { METAFORK_MOST_ARRAYS = 64 };

/* Bring arrays to the current device, by its number, all at once; those of no bytes are not touched.  Of arrays that overlap
 * none is written: they share one copy. */
static inline int metafork_bring(int number, void *const *hosts, const int64_t *bytes, const char *const *names, int count, void **pointers) {
    metafork_residents *all = metafork_residents_of_thread();
    uintptr_t starts[METAFORK_MOST_ARRAYS];
    int64_t sizes[METAFORK_MOST_ARRAYS];
    for (int i = 0; i < count; i++) {
        starts[i] = (uintptr_t)hosts[i];
        sizes[i] = bytes[i];
    }
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
    for (int i = 0; i < count; i++)
        for (int j = all->count - 1; j >= 0; j--) {
            const metafork_resident *one = &all->at[j];
            if (!metafork_overlap(starts[i], sizes[i], one->host, one->bytes)) continue;
            const metafork_range part = metafork_part(one, starts[i], sizes[i]);
            if (one->number == number && part.behind - part.first == sizes[i]) continue;
            metafork_fetch_whole(&all->at[j]);
            metafork_free_copy(all, j);
        }
    int error = METAFORK_OK;
    for (int i = 0; i < count && error == METAFORK_OK; i++)
        if (sizes[i] > 0) error = metafork_have(all, starts[i], sizes[i], number, names[i]);
    for (int i = 0; i < count && error == METAFORK_OK; i++) {
        if (bytes[i] <= 0) continue;
        metafork_resident *const one = metafork_holding(all, (uintptr_t)hosts[i], bytes[i]);
        const metafork_range part = metafork_part(one, (uintptr_t)hosts[i], bytes[i]);
        error = metafork_send(one, part);
        pointers[i] = (char *)one->device + part.first;
    }
    for (int i = 0; i < all->count; i++) all->at[i].in_use = false;
    return error;
}

/* An array that was brought has been written on the device. */
static inline void metafork_written(const void *host, int64_t bytes) {
    metafork_resident *const one = bytes > 0 ? metafork_holding(metafork_residents_of_thread(), (uintptr_t)host, bytes) : NULL;
    if (one != NULL) metafork_device_wrote(one, metafork_part(one, (uintptr_t)host, bytes));
}

/* ---- what host.h declares ---- */

enum { METAFORK_READS = 1, METAFORK_WRITES = 2, METAFORK_UPDATES = 3 };

static inline void metafork_touch_part(metafork_resident *one, metafork_range part, int how) {
    if (part.first >= part.behind) return;
    if ((how & METAFORK_READS) != 0) metafork_fetch(one, part);
    if ((how & METAFORK_WRITES) != 0) metafork_host_writes(one, part);
}

METAFORK_DEFINITION void metafork_touch(const void *start, long long offset, long long bytes, int how) {
    metafork_residents *all = metafork_residents_of_thread();
    if (bytes <= 0) return;
    for (int i = 0; i < all->count; i++)
        metafork_touch_part(&all->at[i], metafork_part(&all->at[i], (uintptr_t)start + (uintptr_t)offset, bytes), how);
}

METAFORK_DEFINITION void metafork_touch_all(int how) {
    metafork_residents *all = metafork_residents_of_thread();
    for (int i = 0; i < all->count; i++) metafork_touch_part(&all->at[i], metafork_whole(&all->at[i]), how);
}

/* Bring everything back, and free what is not kept. */
static inline void metafork_return_all(metafork_residents *all) {
    for (int i = all->count - 1; i >= 0; i--) {
        metafork_fetch_whole(&all->at[i]);
        if (!metafork_is_kept(all, &all->at[i])) metafork_free_copy(all, i);
    }
}

METAFORK_DEFINITION void metafork_settle(void) {
    metafork_touch_all(METAFORK_UPDATES);
    metafork_return_all(metafork_residents_of_thread());
}

METAFORK_DEFINITION char metafork_enter(void) {
    metafork_residents_of_thread()->depth++;
    return 0;
}

METAFORK_DEFINITION void metafork_leave(const char *frame) {
    (void)frame;
    metafork_residents *all = metafork_residents_of_thread();
    if (--all->depth > 0) {
        metafork_settle();
        return;
    }
    for (int i = all->count - 1; i >= 0; i--) {
        if (metafork_is_kept(all, &all->at[i])) continue;
        metafork_fetch_whole(&all->at[i]);
        metafork_free_copy(all, i);
    }
}

METAFORK_DEFINITION void metafork_forget(const struct metafork_local *array) {
    metafork_residents *all = metafork_residents_of_thread();
    for (int i = all->count - 1; i >= 0; i--) {
        const metafork_range part = metafork_part(&all->at[i], (uintptr_t)array->metafork_start, (int64_t)array->metafork_bytes);
        if (part.first >= part.behind) continue;
        (void)metafork_ranges_remove(&all->at[i].device_newer, part);
        metafork_fetch_whole(&all->at[i]);
        metafork_free_copy(all, i);
    }
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
        const metafork_range part = metafork_part(&all->at[i], (uintptr_t)pointer, 1);
        if (part.first >= part.behind) continue;
        metafork_fetch_whole(&all->at[i]);
        metafork_free_copy(all, i);
    }
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
