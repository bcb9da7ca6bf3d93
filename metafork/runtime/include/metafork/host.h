/* What a generated *_host.c needs of the dispatcher, and the calls that keep arrays on the device across functions, or tell sizes.
 * C; no system header, so that it may come before any text of the user, and no name without the prefix, so that no macro of
 * the user can reach it.
 *
 * A function with schedules remembers which bytes of which arrays are newer on the device and which on the host
 * (metafork/residents.h), by address: which name leads there does not matter.
 */
#ifndef METAFORK_HOST_H
#define METAFORK_HOST_H

#ifdef __cplusplus
extern "C" {
#endif

/* Let the array that holds this address stay on the device when a function with schedules returns, until metafork_drop.
 * Meanwhile only those functions may read or write it, and it must not be freed.  Counts for the calling thread. */
void metafork_keep(const void *metafork_pointer);

/* End that: the host's array is current when this returns, and its copy is freed. */
void metafork_drop(const void *metafork_pointer);

/* Tell functions with schedules that the array at this address has so many bytes, where neither its declaration nor its accesses
 * say it; pointers into it lead to the same bytes.  Until 0 is told, or they free it.  Counts for the calling thread. */
void metafork_extent(const void *metafork_pointer, long long metafork_bytes);

/* ---- called by generated code ---- */

/* An array that lives in a block of a function. */
struct metafork_local {
    const void *metafork_start;
    unsigned long long metafork_bytes;
};

/* Pass on whether the arrays of a schedule are what they were declared as; where not, say that its serial code runs. */
int metafork_unchanged(int metafork_same, const char *metafork_name);

/* Whether a schedule's host goes through the indices of these arrays: nobody has told how many bytes there are of all of them, and
 * there is a device. */
int metafork_untold(const void *const *metafork_arrays, int metafork_count);

/* Note what was found: the first byte that an array's elements of these numbers have, and how many bytes there are. */
void metafork_reached(long long *metafork_reach, long long metafork_least, long long metafork_most, long long metafork_size);

/* Whether the indices of a schedule were gone through before with these numbers, and what they were read from is as it was: then
 * what was found is given again. */
int metafork_recall(const long long *metafork_memory, const struct metafork_local *metafork_read, int metafork_reads, const long long *metafork_scalars,
                    int metafork_count, long long *metafork_reach, int metafork_length);

/* Remember what was found. */
void metafork_retain(long long *metafork_memory, const struct metafork_local *metafork_read, int metafork_reads, const long long *metafork_scalars,
                     int metafork_count, const long long *metafork_reach, int metafork_length);

/* A table of pointers: its rows, the size of an element, whether a schedule writes rows.  The rest begins as 0. */
struct metafork_table {
    void *const *metafork_rows;
    long long metafork_size;
    int metafork_written, metafork_failed, metafork_sorted_count;
    long long metafork_count, metafork_room, *metafork_ends, metafork_longest, metafork_bytes;
    void *metafork_copy, *metafork_sorted;
    struct metafork_table *metafork_next;
};

/* Note that a schedule touches an element of a row; 0. */
long metafork_row(struct metafork_table *metafork_table, long metafork_number, long metafork_place);

/* How many elements the longest row has as far as it is touched, 1 at least. */
long metafork_pitch(const struct metafork_table *metafork_table);

/* Copy the rows into one array, of so many bytes at least; 0 where that cannot be. */
void *metafork_pack_rows(struct metafork_table *metafork_table, long long metafork_bytes);

/* Copy what was changed back into the rows. */
void metafork_unpack_rows(struct metafork_table *metafork_table);

/* Free what belongs to a table. */
void metafork_end_table(struct metafork_table *metafork_table);

/* The host is about to read (1), overwrite (2), or read and write or write in part (3) these bytes. */
void metafork_touch(const void *metafork_start, long long metafork_offset, long long metafork_bytes, int metafork_how);

/* The same for bytes at `rank` distances, each so many times: `steps` are distance and number in turn.  Nothing where a number is
 * less than 1. */
void metafork_touch_steps(const void *metafork_start, long long metafork_offset, long long metafork_bytes, int metafork_how, int metafork_rank,
                          const long long *metafork_steps);

/* How many steps of 1 lead from one number to before another. */
long long metafork_trips(unsigned long long metafork_first, unsigned long long metafork_behind);

/* metafork_touch for everything that a copy exists of. */
void metafork_touch_all(int metafork_how);

/* Only a function with schedules is called next, of whose arrays this one announces what it touches: nothing comes back for it. */
void metafork_calls(void);

/* What malloc gave is about to be given back: copies of it end, and nothing comes back. */
void metafork_freed(const void *metafork_start);

/* A function with schedules begins; returns whether it is one of which metafork_calls told. */
char metafork_enter(void);

/* It ends: everything comes back, but what is kept where no other such function is under way; nothing where its caller told of it. */
void metafork_leave(const char *metafork_frame);

/* An array's life ends, and with it that of its copy; nothing comes back. */
void metafork_forget(const struct metafork_local *metafork_array);

/* Nobody has written these bytes yet; -1: all that malloc gave there. */
void metafork_fresh(const void *metafork_start, long long metafork_bytes);

/* Code that is not followed comes: everything comes back, and may be written. */
void metafork_settle(void);

#ifdef __cplusplus
}
#endif
#endif
