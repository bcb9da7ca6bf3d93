/* Kernels for any values of static parameters, compiled by NVRTC when a launch first has them.  C99 and C++.
 *
 *   METAFORK_JIT=0        none is compiled, and dynamic kernels run
 *   METAFORK_NVRTC=PATH   the library, in place of libnvrtc.so of CUDA 13, 12 or 11
 *
 * The text of a kernel stands in the generated file as nvcc would see it, but for the values, which are macros of it.  What
 * was compiled is loaded at once, and stays: a kernel has METAFORK_JIT_MOST sets of values in a process, and others run
 * the dynamic kernel.  On disk it lies in the cache of metafork/program_cache.h, under its text, its values, the architecture,
 * the flags and the version of NVRTC.  NVRTC is opened when it is first needed; where it is not there, or something fails, the
 * dynamic kernel runs, and one line a process says why.  A set of values that failed is not tried again.
 */
#ifndef METAFORK_JIT_H
#define METAFORK_JIT_H

#include <pthread.h>

#include "metafork/device_text.h"
#include "metafork/launch.h"
#include "metafork/library.h"
#include "metafork/program_cache.h"

enum { METAFORK_JIT_NAMES = 16, METAFORK_JIT_MOST = 64, METAFORK_JIT_OPTIONS = 3 };

/* A kernel for one set of values, on devices of one compute capability. */
typedef struct metafork_jit_kernel {
    struct metafork_jit_kernel *next;
    int64_t values[METAFORK_JIT_NAMES];
    int64_t capability;
    bool failed;
    metafork_ptx kernels[2]; /* for whole grids, and for any */
} metafork_jit_kernel;

/* A text with static parameters. */
typedef struct metafork_jit {
    const char *names[2]; /* of its kernels */
    const char *contraction; /* the flag for it */
    const char *const *text; /* its lines; NULL ends them */
    int count; /* of static parameters */
    const char *const *macros; /* what the text calls them */
    metafork_jit_kernel *made;
    int made_count;
} metafork_jit;

typedef struct metafork_nvrtc {
    bool tried;
    void *library; /* NULL: there is none */
    int major, minor;
    int (*version)(int *major, int *minor);
    int (*create)(void **program, const char *text, const char *name, int count, const char *const *headers, const char *const *names);
    int (*destroy)(void **program);
    int (*compile)(void *program, int count, const char *const *options);
    int (*cubin_size)(void *program, size_t *size);
    int (*cubin)(void *program, char *cubin);
    int (*log_size)(void *program, size_t *size);
    int (*log)(void *program, char *log);
} metafork_nvrtc;

/* Everything below is read and written under this lock; compiling is done under it too. */
METAFORK_DEFINITION pthread_mutex_t *metafork_jit_lock(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    return &lock;
}

METAFORK_DEFINITION metafork_nvrtc *metafork_nvrtc_of_process(void) {
    static metafork_nvrtc nvrtc;
    return &nvrtc;
}

METAFORK_DEFINITION int metafork_jit_said(void) {
    static int said;
    return __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED);
}

/* Say why a kernel is not compiled, the first time that one is not; of `details` the first line. */
static inline void metafork_jit_say(const char *kernel, const char *why, const char *details) {
    if (metafork_jit_said()) return;
    const int length = (int)strcspn(details, "\n");
    fprintf(stderr, "metafork: %s: %s%s%.*s; dynamic kernels run\n", kernel, why, length > 0 ? ": " : "", length, details);
}

static inline metafork_nvrtc *metafork_nvrtc_get(void) {
    metafork_nvrtc *const nvrtc = metafork_nvrtc_of_process();
    const metafork_symbol wanted[] = {
        {"nvrtcVersion", &nvrtc->version},
        {"nvrtcCreateProgram", &nvrtc->create},
        {"nvrtcDestroyProgram", &nvrtc->destroy},
        {"nvrtcCompileProgram", &nvrtc->compile},
        {"nvrtcGetCUBINSize", &nvrtc->cubin_size},
        {"nvrtcGetCUBIN", &nvrtc->cubin},
        {"nvrtcGetProgramLogSize", &nvrtc->log_size},
        {"nvrtcGetProgramLog", &nvrtc->log},
    };
    const char *const given = getenv("METAFORK_NVRTC");
    const char *const paths[] = {given, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
    if (nvrtc->tried) return nvrtc;
    nvrtc->tried = true;
    for (size_t i = given == NULL; nvrtc->library == NULL && i < (given == NULL ? sizeof paths / sizeof paths[0] : 1); i++) {
        bool lacks;
        nvrtc->library = metafork_library_open(paths[i], wanted, sizeof wanted / sizeof wanted[0], &lacks);
    }
    if (nvrtc->library != NULL && nvrtc->version(&nvrtc->major, &nvrtc->minor) != 0) nvrtc->library = NULL;
    return nvrtc;
}

/* Append lines up to NULL to what is on the heap; without memory there is nothing. */
static inline void metafork_jit_append(metafork_blob *to, const char *const *lines) {
    size_t more = 0;
    for (size_t i = 0; lines[i] != NULL; i++) more += strlen(lines[i]);
    unsigned char *const longer = to->data == NULL && to->length != 0 ? NULL : (unsigned char *)realloc(to->data, to->length + more + 1);
    if (longer == NULL) {
        free(to->data);
        to->data = NULL;
        to->length = 1;
        return;
    }
    to->data = longer;
    for (size_t i = 0; lines[i] != NULL; i++) {
        const size_t own = strlen(lines[i]);
        memcpy(to->data + to->length, lines[i], own);
        to->length += own;
    }
    to->data[to->length] = '\0';
}

/* The program: values as macros, then the kernel's text. */
static inline metafork_blob metafork_jit_program(const metafork_jit *jit, const metafork_jit_kernel *one) {
    static const char *const include[] = {"#define METAFORK_JIT\n#include \"metafork/device.h\"\n", NULL};
    metafork_blob program = {NULL, 0};
    for (int i = 0; i < jit->count; i++) {
        char value[32];
        snprintf(value, sizeof value, " %lld\n", (long long)one->values[i]);
        const char *const line[] = {"#define ", jit->macros[i], value, NULL};
        metafork_jit_append(&program, line);
    }
    metafork_jit_append(&program, include);
    metafork_jit_append(&program, jit->text);
    return program;
}

/* Compile a program; no bytes where NVRTC does not. */
static inline metafork_blob metafork_jit_compiled(const metafork_nvrtc *nvrtc, const metafork_jit *jit, metafork_blob program, metafork_blob header,
                                                  const char *const *options) {
    static const char *const names[] = {"metafork/device.h"};
    const char *const headers[] = {(const char *)header.data};
    metafork_blob cubin = {NULL, 0};
    void *handle = NULL;
    size_t size = 0;
    if (nvrtc->create(&handle, (const char *)program.data, jit->names[0], 1, headers, names) != 0) return cubin;
    if (nvrtc->compile(handle, METAFORK_JIT_OPTIONS, options) != 0) {
        char *log = NULL;
        if (nvrtc->log_size(handle, &size) == 0 && size > 0) log = (char *)calloc(size + 1, 1);
        if (log != NULL && nvrtc->log(handle, log) != 0) log[0] = '\0';
        metafork_jit_say(jit->names[0], "NVRTC does not compile it", log != NULL ? log : "");
        free(log);
    } else if (nvrtc->cubin_size(handle, &size) == 0 && size > 0) {
        cubin.data = (unsigned char *)malloc(size + 1);
        if (cubin.data != NULL && nvrtc->cubin(handle, (char *)cubin.data) == 0) {
            cubin.data[size] = '\0';
            cubin.length = size;
        } else {
            free(cubin.data);
            cubin.data = NULL;
        }
    }
    (void)nvrtc->destroy(&handle);
    return cubin;
}

/* Load both kernels of a cubin, which stays there where that works. */
static inline int metafork_jit_load(const metafork_jit *jit, metafork_jit_kernel *one, metafork_blob cubin) {
    int error = METAFORK_OK;
    memset(one->kernels, 0, sizeof one->kernels);
    for (int i = 0; i < 2 && error == METAFORK_OK; i++) {
        one->kernels[i].text = (const char *)cubin.data;
        one->kernels[i].name = jit->names[i];
        error = metafork_load_now(&one->kernels[i]);
    }
    return error;
}

/* Make the kernel for some values: from the disk, else by NVRTC. */
static inline bool metafork_jit_make(metafork_jit *jit, metafork_jit_kernel *one) {
    const metafork_nvrtc *const nvrtc = metafork_nvrtc_get();
    if (nvrtc->library == NULL) return metafork_jit_say(jit->names[0], "there is no libnvrtc to compile it", ""), false;
    char architecture[64], version[64];
    snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%lld", (long long)one->capability);
    snprintf(version, sizeof version, "NVRTC %d.%d\n", nvrtc->major, nvrtc->minor);
    const char *const options[METAFORK_JIT_OPTIONS] = {architecture, jit->contraction, "-std=c++17"};
    const char *const about[] = {version, options[0], " ", options[1], " ", options[2], "\n", NULL};
    const metafork_blob program = metafork_jit_program(jit, one);
    metafork_blob header = {NULL, 0}, key = {NULL, 0};
    metafork_jit_append(&header, metafork_device_text);
    metafork_jit_append(&key, about);
    if (program.data != NULL && header.data != NULL) {
        const char *const texts[] = {(const char *)program.data, (const char *)header.data, NULL};
        metafork_jit_append(&key, texts);
    }
    bool made = false;
    /* What is kept and is not loaded is made again. */
    for (int fresh = 0; fresh < 2 && !made && header.data != NULL && key.data != NULL; fresh++) {
        const metafork_blob cubin = fresh ? metafork_jit_compiled(nvrtc, jit, program, header, options) : metafork_cache_read(key);
        if (cubin.data == NULL) continue;
        const int error = metafork_jit_load(jit, one, cubin);
        made = error == METAFORK_OK;
        if (made && fresh) metafork_cache_write(key, cubin);
        if (!made && fresh) metafork_jit_say(jit->names[0], "what NVRTC made is not loaded", metafork_message(error));
        if (!made) free(cubin.data);
    }
    if (!made) metafork_jit_say(jit->names[0], "NVRTC made nothing of it", "");
    free(program.data);
    free(header.data);
    free(key.data);
    return made;
}

/* The kernel for some values on the current device, which is compiled at the first call; NULL: the dynamic one is to run, as
 * for a loop that a value of 0 leaves empty. */
__attribute__((unused)) static metafork_jit_kernel *metafork_jit_get(metafork_jit *jit, const int64_t *values) {
    const char *const wanted = getenv("METAFORK_JIT");
    metafork_machine machine;
    int device;
    if (wanted != NULL && strcmp(wanted, "0") == 0) return NULL;
    for (int i = 0; i < jit->count; i++)
        if (values[i] < 1) return NULL;
    if (metafork_current_device(&device) != METAFORK_OK || metafork_hardware_query(device, &machine) != METAFORK_OK) return NULL;
    pthread_mutex_lock(metafork_jit_lock());
    metafork_jit_kernel *one = jit->made;
    while (one != NULL && (one->capability != machine.compute_capability || memcmp(one->values, values, (size_t)jit->count * sizeof *values) != 0))
        one = one->next;
    if (one == NULL && jit->made_count < METAFORK_JIT_MOST && (one = (metafork_jit_kernel *)calloc(1, sizeof *one)) != NULL) {
        memcpy(one->values, values, (size_t)jit->count * sizeof *values);
        one->capability = machine.compute_capability;
        one->failed = !metafork_jit_make(jit, one);
        one->next = jit->made;
        jit->made = one;
        jit->made_count++;
    }
    pthread_mutex_unlock(metafork_jit_lock());
    return one != NULL && !one->failed ? one : NULL;
}

#endif
