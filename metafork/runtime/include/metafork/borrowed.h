/* Arrays that the caller has on the device, for functions that take arrays of the host.  C11 and C++.
 *
 * Such an array gets addresses of the host's to stand for it, and a copy (metafork/residents.h) that is the caller's own memory
 * and newer everywhere: schedules run on it, nothing moves, and it stays when a function returns.  Bytes move only where host
 * code touches them.  Kernels go to the caller's stream meanwhile.
 */
#ifndef METAFORK_BORROWED_H
#define METAFORK_BORROWED_H

#include "metafork/residents.h"

/* Let kernels go to another stream from now on, behind those that were begun. */
static inline int metafork_redirect(metafork_streams *all, void *handle) {
    metafork_stream *const kernels = &all->kernels;
    void *const event = kernels->events[kernels->begun % METAFORK_MARKS];
    int error = all->broken;
    if (error == METAFORK_OK && kernels->done < kernels->begun && metafork_stream_follow(all->device, handle, event) != METAFORK_OK)
        error = metafork_await(all, kernels, kernels->begun);
    kernels->handle = handle;
    kernels->followed = 0; /* it has not waited for copies */
    return error;
}

static inline int metafork_lend(metafork_residents *all, int device, metafork_streams *streams, uintptr_t memory, int64_t bytes) {
    for (int i = 0; i < all->loan_count; i++)
        if (all->loans[i].memory == memory && all->loans[i].bytes == bytes) return METAFORK_OK;
    void *const loans = metafork_grown(all->loans, all->loan_count, &all->loan_room, sizeof *all->loans);
    if (loans != NULL) all->loans = (metafork_loan *)loans;
    void *const at = metafork_grown(all->at, all->count, &all->room, sizeof *all->at);
    if (at != NULL) all->at = (metafork_resident *)at;
    /* Pages that nobody touches take no room. */
    char *const reserved = (char *)malloc((size_t)bytes + METAFORK_ALIGNMENT);
    if (loans == NULL || at == NULL || reserved == NULL) {
        free(reserved);
        return METAFORK_ENOMEM;
    }
    const metafork_loan loan = {reserved, (uintptr_t)reserved + memory % METAFORK_ALIGNMENT, memory, bytes, device};
    metafork_resident copy = METAFORK_NONE;
    copy.host = loan.host;
    copy.bytes = bytes;
    copy.memory = copy.device = (void *)memory;
    copy.borrowed = true;
    copy.number = device;
    copy.name = "an array of the caller's";
    copy.streams = streams;
    copy.used = copy.wrote = streams != NULL ? streams->kernels.begun : 0;
    (void)metafork_include(&copy.device_newer, metafork_whole(&copy));
    all->loans[all->loan_count++] = loan;
    all->at[all->count++] = copy;
    return METAFORK_OK;
}

/* End loans: the caller's arrays are current behind what has been begun on the stream.  Returns NULL, or what failed. */
METAFORK_DEFINITION const char *metafork_give_back(void) {
    metafork_residents *const all = metafork_residents_of_thread();
    int error = METAFORK_OK;
    for (; all->loan_count > 0; all->loan_count--) {
        const metafork_loan *const loan = &all->loans[all->loan_count - 1];
        metafork_resident *const one = metafork_holding(all, loan->host, loan->bytes);
        int moved = METAFORK_OK;
        if (one == NULL) { /* the host had to have it */
            moved = metafork_device_copy(loan->number, (void *)loan->memory, (const void *)loan->host, loan->bytes, true);
            if (moved == METAFORK_OK) moved = metafork_finish();
        } else {
            moved = metafork_send(one, metafork_whole(one));
            if (moved == METAFORK_OK && one->streams != NULL)
                moved = metafork_follow(one->streams, &one->streams->kernels, &one->streams->copies, one->sent);
            metafork_remove(all, (int)(one - all->at));
        }
        if (error == METAFORK_OK) error = moved;
        free(loan->reserved);
    }
    free(all->loans);
    all->loans = NULL;
    all->loan_room = 0;
    if (all->lent_streams != NULL) {
        const int back = metafork_redirect(all->lent_streams, all->own_stream);
        if (error == METAFORK_OK) error = back;
        all->lent_streams = NULL;
    }
    metafork_at_rest(all);
    return error == METAFORK_OK ? NULL : metafork_message(error);
}

/* Take arrays of the calling thread on the current device until metafork_give_back; `hosts` are the addresses that functions are
 * called with.  Kernels go to `stream`, behind what was begun on the stream of each array.  `device` is the arrays' (-1: not
 * known).  Returns NULL, or why not; then nothing is lent. */
METAFORK_DEFINITION const char *metafork_borrow(int device, void *stream, int count, void *const *memory, const long long *bytes,
                                                void *const *streams_of, void **hosts) {
    metafork_residents *const all = metafork_residents_of_thread();
    uintptr_t starts[METAFORK_MOST_ARRAYS];
    int64_t sizes[METAFORK_MOST_ARRAYS];
    int number = 0, error = metafork_own_device() ? metafork_current_device(&number) : METAFORK_EFORKED;
    if (count > METAFORK_MOST_ARRAYS) return "there are too many arrays";
    if (error == METAFORK_OK && device >= 0 && device != number) return "the arrays are on another device than the current one";
    for (int i = 0; i <= count && error == METAFORK_OK; i++)
        if (metafork_captured(number, i < count ? streams_of[i] : stream)) return "a stream is being captured into a graph";
    for (int i = 0; i < count && error == METAFORK_OK; i++) {
        error = metafork_behind_stream(number, stream, streams_of[i]);
        starts[i] = (uintptr_t)memory[i];
        sizes[i] = bytes[i];
    }
    if (error != METAFORK_OK) return metafork_message(error);
    metafork_unite(starts, sizes, count);
    const metafork_resident *const any = metafork_any_on(all, number);
    metafork_streams *const streams = any != NULL ? any->streams : metafork_streams_take(all, number);
    if (streams == NULL) {
        error = metafork_stream_finish(number, stream);
    } else {
        all->own_stream = streams->kernels.handle;
        all->lent_streams = streams;
        error = metafork_redirect(streams, stream);
        if (error == METAFORK_OK) error = metafork_begun(streams, &streams->kernels, "the caller's stream");
    }
    for (int i = 0; i < count && error == METAFORK_OK; i++)
        if (sizes[i] > 0) error = metafork_lend(all, number, streams, starts[i], sizes[i]);
    for (int i = 0; i < count && error == METAFORK_OK; i++) {
        hosts[i] = memory[i];
        for (int j = 0; j < all->loan_count && sizes[i] > 0; j++)
            if (all->loans[j].memory == starts[i]) hosts[i] = (void *)(all->loans[j].host + ((uintptr_t)memory[i] - starts[i]));
    }
    if (error == METAFORK_OK) return NULL;
    (void)metafork_give_back();
    return metafork_message(error);
}

#endif
