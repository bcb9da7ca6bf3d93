/* What a generated *_host.c needs of the dispatcher.  C; no system header, so that it may come before any text of the user,
 * and no name without the prefix, so that no macro of the user can reach it.
 */
#ifndef METAFORK_HOST_H
#define METAFORK_HOST_H

#ifdef __cplusplus
extern "C" {
#endif

/* An array of the host and its copy on the device. */
typedef struct metafork_array {
    void *metafork_host;
    long long metafork_bytes;
    void *metafork_device;
    int metafork_resident;     /* the copy stays on the device between schedules, until metafork_release */
    int metafork_copied;       /* the copy on the device is current */
    int metafork_device_newer; /* the host's is not */
} metafork_array;

/* Pass on whether the arrays of a schedule are what they were declared as; where not, say that its serial code runs. */
int metafork_unchanged(int metafork_same, const char *metafork_name);

/* Let the arrays of a serial loop stay on the device, unless one of them overlaps another or one of `others`. */
void metafork_begin(metafork_array *metafork_arrays, int metafork_count, const metafork_array *metafork_others, int metafork_other_count);

/* Bring the arrays back to the host and free their copies. */
void metafork_release(metafork_array *metafork_arrays, int metafork_count);

#ifdef __cplusplus
}
#endif
#endif
