/* Ranges of NVTX around launches and copies, for profilers, where METAFORK_NVTX is set.  C11 and C++.
 *
 * NVTX itself is headers alone since CUDA 13; functions to call are in its library for other languages, libnvtx3interop.so.1, and
 * in libnvToolsExt.so.1 of CUDA 12 and before.  Both hand ranges on to the profiler that NVTX_INJECTION64_PATH names.  The first
 * that is found is opened when the first range begins; without one there are no ranges, and nobody is told.
 */
#ifndef METAFORK_NVTX_H
#define METAFORK_NVTX_H

#include "metafork/launch.h"

#if defined(METAFORK_HAS_NVTX)

#include <pthread.h>

#include "metafork/library.h"

typedef struct metafork_nvtx {
    int state; /* 0: not tried yet, 1: there are no ranges, 2: there are */
    pthread_mutex_t lock;
    int (*push)(const char *name);
    int (*pop)(void);
} metafork_nvtx;

METAFORK_DEFINITION metafork_nvtx *metafork_nvtx_of_process(void) {
    static metafork_nvtx nvtx = {0, PTHREAD_MUTEX_INITIALIZER, NULL, NULL};
    return &nvtx;
}

/* What begins and ends ranges, or NULL; the same for as long as the program runs, so that each that is begun ends. */
static inline const metafork_nvtx *metafork_nvtx_get(void) {
    metafork_nvtx *const nvtx = metafork_nvtx_of_process();
    int state = __atomic_load_n(&nvtx->state, __ATOMIC_ACQUIRE);
    if (state == 0) {
        const metafork_symbol wanted[] = {{"nvtxRangePushA", &nvtx->push}, {"nvtxRangePop", &nvtx->pop}};
        bool lacks;
        pthread_mutex_lock(&nvtx->lock);
        if (nvtx->state == 0) {
            const bool found = metafork_enabled("METAFORK_NVTX") && (metafork_library_open("libnvtx3interop.so.1", wanted, 2, &lacks) != NULL ||
                                                                     metafork_library_open("libnvToolsExt.so.1", wanted, 2, &lacks) != NULL);
            __atomic_store_n(&nvtx->state, found ? 2 : 1, __ATOMIC_RELEASE);
        }
        state = nvtx->state;
        pthread_mutex_unlock(&nvtx->lock);
    }
    return state == 2 ? nvtx : NULL;
}

/* A launch begins; the range has the words of METAFORK_TRACE. */
static inline void metafork_range_of_launch(const char *schedule, int leaf, int variant) {
    const metafork_nvtx *const nvtx = metafork_nvtx_get();
    char name[256], number[32] = "";
    if (nvtx == NULL) return;
    if (variant > 0) snprintf(number, sizeof number, " variant=%d", variant);
    snprintf(name, sizeof name, "%s leaf %d%s", schedule, leaf, number);
    (void)nvtx->push(name);
}

/* A copy begins. */
static inline void metafork_range_of_copy(const char *array, bool to_device) {
    const metafork_nvtx *const nvtx = metafork_nvtx_get();
    char name[256];
    if (nvtx == NULL) return;
    snprintf(name, sizeof name, "copy %s %s device", array, to_device ? "to" : "from");
    (void)nvtx->push(name);
}

/* What began last has returned `error`, which is handed on. */
static inline int metafork_range_ends(int error) {
    const metafork_nvtx *const nvtx = metafork_nvtx_get();
    if (nvtx != NULL) (void)nvtx->pop();
    return error;
}

#else

static inline void metafork_range_of_launch(const char *schedule, int leaf, int variant) { (void)schedule, (void)leaf, (void)variant; }
static inline void metafork_range_of_copy(const char *array, bool to_device) { (void)array, (void)to_device; }
static inline int metafork_range_ends(int error) { return error; }

#endif
#endif
