/* Tables of pointers whose rows lie anywhere: what host.h declares of them.  The rows that a schedule touches are packed, one behind
 * the other with room for the longest, into one array that its kernels see; what they wrote goes back to the rows.  C11 and C++. */
#ifndef METAFORK_ROW_TABLES_H
#define METAFORK_ROW_TABLES_H

#include "metafork/residents.h"

/* The tables of the calling thread whose rows are packed, the last one first. */
METAFORK_DEFINITION struct metafork_table **metafork_tables(void) {
    static __thread struct metafork_table *first;
    return &first;
}

enum { METAFORK_LONGEST_TABLE = 1 << 26 };

/* Note an element that a schedule touches. */
METAFORK_DEFINITION long metafork_row(struct metafork_table *table, long row, long place) {
    const int64_t far = (int64_t)1 << 40;
    if (row < 0 || row >= METAFORK_LONGEST_TABLE || place < 0 || place >= far / table->metafork_size) table->metafork_failed = 1;
    if (table->metafork_failed) return 0;
    if (row >= table->metafork_room) {
        const long long room = row < 32 ? 64 : 2 * row;
        void *const grown = realloc(table->metafork_ends, (size_t)room * 2 * sizeof *table->metafork_ends);
        table->metafork_failed = grown == NULL;
        if (grown == NULL) return 0;
        table->metafork_ends = (long long *)grown;
        for (long long i = table->metafork_room; i < room; i++) {
            table->metafork_ends[2 * i] = INT64_MAX;
            table->metafork_ends[2 * i + 1] = -1;
        }
        table->metafork_room = room;
    }
    long long *const ends = &table->metafork_ends[2 * row];
    if (place < ends[0]) ends[0] = place;
    if (place > ends[1]) ends[1] = place;
    if (row >= table->metafork_count) table->metafork_count = row + 1;
    return 0;
}

METAFORK_DEFINITION long metafork_pitch(const struct metafork_table *table) {
    long long most = 0;
    for (long long row = 0; row < table->metafork_count; row++)
        if (table->metafork_ends[2 * row + 1] > most) most = table->metafork_ends[2 * row + 1];
    return (long)most + 1;
}

static inline int metafork_by_start(const void *one, const void *other) {
    const metafork_memory *const a = (const metafork_memory *)one, *const b = (const metafork_memory *)other;
    return (a->start > b->start) - (a->start < b->start);
}

/* The stretches of the rows that are touched; `packed` are their places in the copy. */
static inline metafork_memory metafork_touched_row(const struct metafork_table *table, long long row, int64_t *packed) {
    const long long *const ends = &table->metafork_ends[2 * row];
    metafork_memory found = {0, 0, false};
    if (ends[1] < ends[0]) return found;
    const uintptr_t first = (uintptr_t)table->metafork_rows[row];
    found.start = first + (uintptr_t)(ends[0] * table->metafork_size);
    found.bytes = first == 0 ? -1 : (ends[1] - ends[0] + 1) * table->metafork_size;
    *packed = (row * table->metafork_longest + ends[0]) * table->metafork_size;
    return found;
}

/* Say once why the rows of a table are not packed. */
METAFORK_DEFINITION void *metafork_not_packed(const char *why) {
    static int said;
    const bool strict = metafork_enabled("METAFORK_STRICT");
    if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) || strict || metafork_enabled("METAFORK_TRACE"))
        fprintf(stderr, "metafork: the rows of a table of pointers are not packed: %s; %s\n", why,
                strict ? "METAFORK_STRICT is set" : "the serial code runs");
    if (strict) abort();
    return NULL;
}

/* Pack the rows into `bytes` at least; NULL where that cannot be: then the serial code runs. */
METAFORK_DEFINITION void *metafork_pack_rows(struct metafork_table *table, long long bytes) {
    const int64_t far = (int64_t)1 << 40;
    const int64_t longest = metafork_pitch(table), size = table->metafork_size;
    table->metafork_longest = longest;
    if (table->metafork_failed || (table->metafork_count > 0 && longest > far / size / table->metafork_count))
        return metafork_not_packed("an index is below 0, or rows are too long");
    if (bytes < table->metafork_count * longest * size) bytes = table->metafork_count * longest * size;
    if (bytes < size) bytes = size;
    metafork_memory *const sorted = (metafork_memory *)malloc(sizeof *sorted * (size_t)(table->metafork_count + 1));
    table->metafork_sorted = sorted;
    table->metafork_copy = sorted == NULL || bytes > far ? NULL : calloc((size_t)bytes, 1);
    table->metafork_bytes = bytes;
    if (table->metafork_copy == NULL) return metafork_not_packed("there is no memory");
    for (long long row = 0; row < table->metafork_count; row++) {
        int64_t packed = 0;
        const metafork_memory one = metafork_touched_row(table, row, &packed);
        if (one.bytes < 0) return metafork_not_packed("one is null");
        if (one.bytes > 0) sorted[table->metafork_sorted_count++] = one;
    }
    qsort(sorted, (size_t)table->metafork_sorted_count, sizeof *sorted, metafork_by_start);
    for (int i = 1; i < table->metafork_sorted_count && table->metafork_written; i++)
        if (metafork_overlap(sorted[i - 1].start, sorted[i - 1].bytes, sorted[i].start, sorted[i].bytes))
            return metafork_not_packed("two overlap, and some are written");
    for (long long row = 0; row < table->metafork_count; row++) {
        int64_t packed = 0;
        const metafork_memory one = metafork_touched_row(table, row, &packed);
        metafork_touch((const void *)one.start, 0, one.bytes, METAFORK_READS);
        if (one.bytes > 0) memcpy((char *)table->metafork_copy + packed, (const void *)one.start, (size_t)one.bytes);
    }
    table->metafork_next = *metafork_tables();
    *metafork_tables() = table;
    return table->metafork_copy;
}

/* Bring what kernels have changed back to the rows. */
METAFORK_DEFINITION void metafork_unpack_rows(struct metafork_table *table) {
    if (!table->metafork_written) return;
    metafork_touch(table->metafork_copy, 0, table->metafork_bytes, METAFORK_READS);
    for (long long row = 0; row < table->metafork_count; row++) {
        int64_t packed = 0;
        const metafork_memory one = metafork_touched_row(table, row, &packed);
        const int64_t size = table->metafork_size;
        metafork_touch((const void *)one.start, 0, one.bytes, METAFORK_UPDATES);
        for (int64_t at = 0; at < one.bytes; at += size)
            if (memcmp((const char *)one.start + at, (const char *)table->metafork_copy + packed + at, (size_t)size) != 0)
                memcpy((char *)one.start + at, (const char *)table->metafork_copy + packed + at, (size_t)size);
    }
}

METAFORK_DEFINITION void metafork_end_table(struct metafork_table *table) {
    const struct metafork_local copy = {table->metafork_copy, (unsigned long long)table->metafork_bytes};
    for (struct metafork_table **one = metafork_tables(); *one != NULL; one = &(*one)->metafork_next)
        if (*one == table) {
            *one = table->metafork_next;
            break;
        }
    if (table->metafork_copy != NULL) metafork_forget(&copy);
    free(table->metafork_copy);
    free(table->metafork_ends);
    free(table->metafork_sorted);
}

/* The stretches of memory that an array of a schedule is to the host, by their starts: `one` where it is no packed table. */
static inline const metafork_memory *metafork_stretches_of(const void *array, int64_t bytes, metafork_memory *one, int *count) {
    one->start = (uintptr_t)array;
    one->bytes = bytes;
    *count = 1;
    for (const struct metafork_table *table = *metafork_tables(); table != NULL; table = table->metafork_next)
        if (table->metafork_copy == array && array != NULL) {
            *count = table->metafork_sorted_count;
            return (const metafork_memory *)table->metafork_sorted;
        }
    return one;
}

/* The byte behind the last stretch. */
static inline uintptr_t metafork_last_byte(const metafork_memory *stretches, int count) {
    uintptr_t last = 0;
    for (int i = 0; i < count; i++)
        if (stretches[i].start + (uintptr_t)stretches[i].bytes > last) last = stretches[i].start + (uintptr_t)stretches[i].bytes;
    return last;
}

/* Whether two arrays of a schedule have a byte in common. */
static inline bool metafork_meet(const void *first, int64_t first_bytes, const void *second, int64_t second_bytes) {
    metafork_memory own[2];
    int count[2];
    const metafork_memory *const a = metafork_stretches_of(first, first_bytes, &own[0], &count[0]);
    const metafork_memory *const b = metafork_stretches_of(second, second_bytes, &own[1], &count[1]);
    if (count[0] == 0 || count[1] == 0) return false;
    if (metafork_last_byte(a, count[0]) <= b[0].start || metafork_last_byte(b, count[1]) <= a[0].start) return false;
    for (int i = 0; i < count[0]; i++)
        for (int j = 0; j < count[1] && (count[1] == 1 || b[j].start < a[i].start + (uintptr_t)a[i].bytes); j++)
            if (metafork_overlap(a[i].start, a[i].bytes, b[j].start, b[j].bytes)) return true;
    return false;
}

#endif
