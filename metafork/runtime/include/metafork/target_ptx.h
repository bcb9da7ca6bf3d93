/* What launch.h asks of a target, by the CUDA driver alone: libcuda.so.1 is opened when a device is first needed, and nothing
 * of CUDA is there when this is compiled.  C11 and C++.
 *
 * Devices are used through their primary contexts, which the CUDA runtime uses too: device pointers and streams given to
 * NAME_launch are those of that of the thread's current device (that of its current context, else number 0).  A context is
 * retained when its device is first used and pushed around each call of the driver; it is released, and modules are
 * unloaded, when the program ends.  Whether there is a driver is asked once; anything else that fails is tried again.
 */
#ifndef METAFORK_TARGET_PTX_H
#define METAFORK_TARGET_PTX_H

#if defined(METAFORK_CPU)
#error "the PTX back end has no CPU build: compile what metafork optimize --backend cuda writes"
#endif

/* What the host computes for a launch has the results that the serial program has. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__FP_FAST_FMAF) || defined(__FP_FAST_FMA)
#pragma GCC optimize("fp-contract=off")
#endif

#include <pthread.h>

#include "metafork/library.h"

/* A kernel as PTX text, and what it became on each device. */
typedef struct metafork_ptx {
    const char *text;
    const char *name;
    struct metafork_loaded *loaded;
    int said;
} metafork_ptx;
#define METAFORK_NOT_LOADED NULL, 0
#define METAFORK_HAS_STREAMS
#define METAFORK_REMEMBERS
#define METAFORK_HAS_PLACES
#define METAFORK_HAS_NVTX

typedef struct metafork_loaded {
    struct metafork_loaded *next;        /* of the same kernel, on another device */
    struct metafork_loaded *next_of_all; /* of the process */
    metafork_ptx *kernel;
    int device;
    void *module;
    void *function;
    metafork_attributes attributes;
    int64_t dynamic_bytes; /* of shared memory that a launch may ask for as things stand */
} metafork_loaded;

/* CUDA_MEMCPY2D; a kind of memory is METAFORK_CU_HOST or METAFORK_CU_DEVICE. */
typedef struct metafork_copy_of_rows {
    size_t from_column, from_row;
    int from_kind;
    const void *from_host;
    unsigned long long from_device;
    void *from_array;
    size_t from_stride;
    size_t to_column, to_row;
    int to_kind;
    void *to_host;
    unsigned long long to_device;
    void *to_array;
    size_t to_stride;
    size_t width, rows;
} metafork_copy_of_rows;

enum { METAFORK_CU_HOST = 1, METAFORK_CU_DEVICE = 2 };
enum { METAFORK_CU_INVALID_VALUE = 1 };
enum { METAFORK_MOST_DEVICES = 64 };

typedef struct metafork_driver {
    int tried; /* whether error says something */
    int error;
    void *library;
    int count;  /* of devices */
    int ending; /* whether metafork_driver_end is to be called */
    metafork_loaded *all;
    struct {
        int handle;
        void *context; /* NULL before it is retained */
        int known;     /* whether the machine is */
        metafork_machine machine;
    } devices[METAFORK_MOST_DEVICES];
    /* cuda.h has these types under other names: CUdevice is int, handles are pointers, CUdeviceptr is 64 bits wide. */
    int (*init)(unsigned flags);
    int (*device_count)(int *count);
    int (*device_get)(int *handle, int number);
    int (*device_attribute)(int *value, int attribute, int handle);
    int (*error_string)(int error, const char **text);
    int (*primary_retain)(void **context, int handle);
    int (*primary_release)(int handle);
    int (*context_push)(void *context);
    int (*context_pop)(void **context);
    int (*context_current)(void **context);
    int (*context_device)(int *handle);
    int (*module_load)(void **module, const void *image, unsigned count, int *options, void **values);
    int (*module_unload)(void *module);
    int (*module_function)(void **function, void *module, const char *name);
    int (*function_attribute)(int *value, int attribute, void *function);
    int (*function_set)(void *function, int attribute, int value);
    int (*memory_allocate)(unsigned long long *memory, size_t bytes);
    int (*memory_free)(unsigned long long memory);
    int (*memory_range)(unsigned long long *start, size_t *bytes, unsigned long long memory);
    int (*memory_attribute)(void *value, int attribute, unsigned long long memory);
    int (*copy_to_device)(unsigned long long to, const void *from, size_t bytes);
    int (*copy_to_host)(void *to, unsigned long long from, size_t bytes);
    int (*copy_rows)(const struct metafork_copy_of_rows *copy);
    int (*begin_to_device)(unsigned long long to, const void *from, size_t bytes, void *stream);
    int (*begin_to_host)(void *to, unsigned long long from, size_t bytes, void *stream);
    int (*begin_rows)(const struct metafork_copy_of_rows *copy, void *stream);
    int (*pinned_allocate)(void **memory, size_t bytes, unsigned flags);
    int (*pinned_free)(void *memory);
    int (*pinned_flags)(unsigned *flags, void *memory);
    int (*stream_make)(void **stream, unsigned flags);
    int (*stream_free)(void *stream);
    int (*stream_finish)(void *stream);
    int (*stream_follow)(void *stream, void *event, unsigned flags);
    int (*stream_captured)(void *stream, int *status);
    int (*capture_mode)(int *mode);
    int (*event_make)(void **event, unsigned flags);
    int (*event_free)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_await)(void *event);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                  unsigned shared_bytes, void *stream, void **arguments, void **extra);
} metafork_driver;

/* Values of CUdevice_attribute, CUfunction_attribute, CUjit_option and others. */
enum {
    METAFORK_CU_MAX_THREADS_PER_BLOCK = 1,
    METAFORK_CU_MAX_BLOCK_DIM_X = 2,
    METAFORK_CU_MAX_BLOCK_DIM_Y = 3,
    METAFORK_CU_MAX_BLOCK_DIM_Z = 4,
    METAFORK_CU_MAX_GRID_DIM_X = 5,
    METAFORK_CU_MAX_GRID_DIM_Y = 6,
    METAFORK_CU_MAX_GRID_DIM_Z = 7,
    METAFORK_CU_WARP_SIZE = 10,
    METAFORK_CU_MAX_REGISTERS_PER_BLOCK = 12,
    METAFORK_CU_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    METAFORK_CU_COMPUTE_CAPABILITY_MAJOR = 75,
    METAFORK_CU_COMPUTE_CAPABILITY_MINOR = 76,
    METAFORK_CU_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    METAFORK_CU_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    METAFORK_CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    METAFORK_CU_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
    METAFORK_CU_POINTER_MEMORY_TYPE = 2,
    METAFORK_CU_POINTER_IS_MANAGED = 8,
    METAFORK_CU_POINTER_DEVICE_ORDINAL = 9,
    METAFORK_CU_STREAM_NON_BLOCKING = 1,
    METAFORK_CU_CAPTURE_NONE = 0,
    METAFORK_CU_CAPTURE_RELAXED = 2,
    METAFORK_CU_CAPTURE_IMPLICIT = 906,
    METAFORK_CU_EVENT_DISABLE_TIMING = 2,
    METAFORK_CU_FUNC_MAX_THREADS_PER_BLOCK = 0,
    METAFORK_CU_FUNC_SHARED_SIZE_BYTES = 1,
    METAFORK_CU_FUNC_NUM_REGS = 4,
    METAFORK_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    METAFORK_CU_JIT_ERROR_LOG_BUFFER = 5,
    METAFORK_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
};

/* A result of the driver as an error of the interface: a METAFORK_E... code where one says it, else itself. */
static inline int metafork_taken(int result) {
    switch (result) {
    case 0: return METAFORK_OK;
    case 2: return METAFORK_ENOMEM;        /* CUDA_ERROR_OUT_OF_MEMORY */
    case 100: return METAFORK_ENODEVICE;   /* CUDA_ERROR_NO_DEVICE */
    case 701: return METAFORK_ERESOURCES;  /* CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES */
    case 200:                              /* CUDA_ERROR_INVALID_IMAGE */
    case 209:                              /* CUDA_ERROR_NO_BINARY_FOR_GPU */
    case 218:                              /* CUDA_ERROR_INVALID_PTX */
    case 221:                              /* CUDA_ERROR_JIT_COMPILER_NOT_FOUND */
    case 222:                              /* CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
    case 223: return METAFORK_EUNSUPPORTED; /* CUDA_ERROR_JIT_COMPILATION_DISABLED */
    default: return result;
    }
}

/* Open the library, find its functions, and see that there is a device. */
static inline int metafork_driver_open(metafork_driver *driver) {
    const metafork_symbol wanted[] = {
        {"cuInit", &driver->init},
        {"cuDeviceGetCount", &driver->device_count},
        {"cuDeviceGet", &driver->device_get},
        {"cuDeviceGetAttribute", &driver->device_attribute},
        {"cuGetErrorString", &driver->error_string},
        {"cuDevicePrimaryCtxRetain", &driver->primary_retain},
        {"cuDevicePrimaryCtxRelease_v2", &driver->primary_release},
        {"cuCtxPushCurrent_v2", &driver->context_push},
        {"cuCtxPopCurrent_v2", &driver->context_pop},
        {"cuCtxGetCurrent", &driver->context_current},
        {"cuCtxGetDevice", &driver->context_device},
        {"cuModuleLoadDataEx", &driver->module_load},
        {"cuModuleUnload", &driver->module_unload},
        {"cuModuleGetFunction", &driver->module_function},
        {"cuFuncGetAttribute", &driver->function_attribute},
        {"cuFuncSetAttribute", &driver->function_set},
        {"cuMemAlloc_v2", &driver->memory_allocate},
        {"cuMemFree_v2", &driver->memory_free},
        {"cuMemGetAddressRange_v2", &driver->memory_range},
        {"cuPointerGetAttribute", &driver->memory_attribute},
        {"cuMemcpyHtoD_v2", &driver->copy_to_device},
        {"cuMemcpyDtoH_v2", &driver->copy_to_host},
        {"cuMemcpy2D_v2", &driver->copy_rows},
        {"cuMemcpyHtoDAsync_v2", &driver->begin_to_device},
        {"cuMemcpyDtoHAsync_v2", &driver->begin_to_host},
        {"cuMemcpy2DAsync_v2", &driver->begin_rows},
        {"cuMemHostAlloc", &driver->pinned_allocate},
        {"cuMemFreeHost", &driver->pinned_free},
        {"cuMemHostGetFlags", &driver->pinned_flags},
        {"cuStreamCreate", &driver->stream_make},
        {"cuStreamDestroy_v2", &driver->stream_free},
        {"cuStreamSynchronize", &driver->stream_finish},
        {"cuStreamWaitEvent", &driver->stream_follow},
        {"cuStreamIsCapturing", &driver->stream_captured},
        {"cuThreadExchangeStreamCaptureMode", &driver->capture_mode},
        {"cuEventCreate", &driver->event_make},
        {"cuEventDestroy_v2", &driver->event_free},
        {"cuEventRecord", &driver->event_record},
        {"cuEventSynchronize", &driver->event_await},
        {"cuLaunchKernel", &driver->launch},
    };
    bool lacks;
    driver->library = metafork_library_open("libcuda.so.1", wanted, sizeof wanted / sizeof wanted[0], &lacks);
    /* A driver that lacks one is older than any that compiles this PTX. */
    if (driver->library == NULL) return lacks ? METAFORK_EUNSUPPORTED : METAFORK_ENODEVICE;
    int error = metafork_taken(driver->init(0));
    if (error == METAFORK_OK) error = metafork_taken(driver->device_count(&driver->count));
    if (error == METAFORK_OK && driver->count < 1) error = METAFORK_ENODEVICE;
    return error;
}

/* What changes after the driver was opened (contexts, machines, loaded kernels) is read and written under this lock, which is
 * never held while a device works. */
METAFORK_DEFINITION pthread_mutex_t *metafork_driver_lock(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    return &lock;
}

METAFORK_DEFINITION metafork_driver *metafork_driver_of_process(void) {
    static metafork_driver driver;
    return &driver;
}

static inline int metafork_driver_get(metafork_driver **out) {
    metafork_driver *const driver = metafork_driver_of_process();
    pthread_mutex_lock(metafork_driver_lock());
    if (!driver->tried) driver->error = metafork_driver_open(driver);
    driver->tried = 1;
    pthread_mutex_unlock(metafork_driver_lock());
    *out = driver;
    return driver->error;
}

static inline const char *metafork_message(int error) {
    const char *text = NULL;
    metafork_driver *driver;
    (void)metafork_driver_get(&driver);
    if (error <= 0 || driver->library == NULL || driver->error_string(error, &text) != 0) text = NULL;
    return text != NULL ? text : metafork_error_text(error);
}

/* ---- contexts ---- */

/* What the thread may do while streams are captured into graphs, as it was when metafork_context_enter changed it; -1: it did not. */
static __thread int metafork_capture_mode = -1;

static inline int metafork_context_leave(const metafork_driver *driver, int error) {
    void *context;
    const int popped = metafork_taken(driver->context_pop(&context));
    if (metafork_capture_mode >= 0) (void)driver->capture_mode(&metafork_capture_mode);
    metafork_capture_mode = -1;
    return error != METAFORK_OK ? error : popped;
}

/* At the end of the program: nothing that fails now matters to anyone. */
static void metafork_driver_end(void) {
    metafork_driver *const driver = metafork_driver_of_process();
    if (metafork_forked()) return;
    pthread_mutex_lock(metafork_driver_lock());
    while (driver->all != NULL) {
        metafork_loaded *const one = driver->all;
        if (driver->context_push(driver->devices[one->device].context) == 0) {
            (void)driver->module_unload(one->module);
            (void)metafork_context_leave(driver, METAFORK_OK);
        }
        one->kernel->loaded = NULL;
        driver->all = one->next_of_all;
        free(one);
    }
    for (int i = 0; i < METAFORK_MOST_DEVICES; i++) {
        if (driver->devices[i].context != NULL) (void)driver->primary_release(driver->devices[i].handle);
        driver->devices[i].context = NULL;
    }
    driver->ending = 0;
    pthread_mutex_unlock(metafork_driver_lock());
}

/* Retain a device's primary context, under the lock. */
static inline int metafork_context_retain(metafork_driver *driver, int device) {
    void *context = NULL;
    if (!metafork_own_device()) return METAFORK_EFORKED;
    if (!driver->ending && atexit(metafork_driver_end) != 0) return METAFORK_ENOMEM;
    driver->ending = 1;
    int error = metafork_taken(driver->device_get(&driver->devices[device].handle, device));
    if (error == METAFORK_OK) error = metafork_taken(driver->primary_retain(&context, driver->devices[device].handle));
    if (error == METAFORK_OK) driver->devices[device].context = context;
    return error;
}

static inline bool metafork_is_device(const metafork_driver *driver, int device) {
    return device >= 0 && device < driver->count && device < METAFORK_MOST_DEVICES;
}

/* Make a device's primary context the thread's; metafork_context_leave ends that.  In between the thread may allocate, free, load
 * and wait although some stream of the program is being captured into a graph: nothing of that is to be in the graph, nor makes
 * it wrong. */
static inline int metafork_context_enter(int device, metafork_driver **out) {
    int error = metafork_driver_get(out);
    metafork_driver *const driver = *out;
    if (error != METAFORK_OK) return error;
    if (!metafork_is_device(driver, device)) return METAFORK_EINVAL;
    pthread_mutex_lock(metafork_driver_lock());
    if (driver->devices[device].context == NULL) error = metafork_context_retain(driver, device);
    void *const context = driver->devices[device].context;
    pthread_mutex_unlock(metafork_driver_lock());
    if (error == METAFORK_OK) error = metafork_taken(driver->context_push(context));
    if (error != METAFORK_OK) return error;
    int mode = METAFORK_CU_CAPTURE_RELAXED;
    metafork_capture_mode = driver->capture_mode(&mode) == 0 ? mode : -1;
    return METAFORK_OK;
}

/* ---- what launch.h asks for ---- */

static inline int metafork_current_device(int *device) {
    metafork_driver *driver;
    void *context = NULL;
    int error = metafork_driver_get(&driver);
    *device = 0;
    if (error == METAFORK_OK) error = metafork_taken(driver->context_current(&context));
    if (error == METAFORK_OK && context != NULL) error = metafork_taken(driver->context_device(device));
    return error;
}

static inline int metafork_hardware_read(const metafork_driver *driver, int device, metafork_machine *out) {
    const struct {
        int attribute;
        int64_t *field;
        int unit;
    } wanted[] = {
        {METAFORK_CU_MAX_REGISTERS_PER_BLOCK, &out->registers_per_block, 1},
        {METAFORK_CU_MAX_THREADS_PER_BLOCK, &out->threads_per_block, 1},
        {METAFORK_CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &out->shared_words, 4},
        {METAFORK_CU_MAX_BLOCK_DIM_X, &out->block_dim_x, 1},
        {METAFORK_CU_MAX_BLOCK_DIM_Y, &out->block_dim_y, 1},
        {METAFORK_CU_MAX_BLOCK_DIM_Z, &out->block_dim_z, 1},
        {METAFORK_CU_MAX_GRID_DIM_X, &out->grid_dim_x, 1},
        {METAFORK_CU_MAX_GRID_DIM_Y, &out->grid_dim_y, 1},
        {METAFORK_CU_MAX_GRID_DIM_Z, &out->grid_dim_z, 1},
        {METAFORK_CU_WARP_SIZE, &out->warp_size, 1},
        {METAFORK_CU_MAX_BLOCKS_PER_MULTIPROCESSOR, &out->blocks_per_sm, 1},
        {METAFORK_CU_MAX_REGISTERS_PER_MULTIPROCESSOR, &out->registers_per_sm, 1},
        {METAFORK_CU_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &out->shared_words_per_sm, 4},
        {METAFORK_CU_MAX_THREADS_PER_MULTIPROCESSOR, &out->warps_per_sm, 1},
        {METAFORK_CU_COMPUTE_CAPABILITY_MAJOR, &out->compute_capability, 1},
        {METAFORK_CU_COMPUTE_CAPABILITY_MINOR, &out->registers_per_thread, 1},
    };
    int handle, error = metafork_taken(driver->device_get(&handle, device));
    memset(out, 0, sizeof *out);
    for (size_t i = 0; error == METAFORK_OK && i < sizeof wanted / sizeof wanted[0]; i++) {
        int value = 0;
        error = metafork_taken(driver->device_attribute(&value, wanted[i].attribute, handle));
        *wanted[i].field = value / wanted[i].unit;
    }
    out->warps_per_sm /= out->warp_size > 0 ? out->warp_size : 32;
    /* The driver does not say; 63 before compute capability 3.5, 255 since. */
    out->compute_capability = 10 * out->compute_capability + out->registers_per_thread;
    out->registers_per_thread = out->compute_capability < 35 ? 63 : 255;
    metafork_machine_units(out);
    return error;
}

static inline int metafork_hardware_query(int device, metafork_machine *out) {
    metafork_driver *driver;
    int error = metafork_driver_get(&driver);
    if (error != METAFORK_OK) return error;
    if (!metafork_is_device(driver, device)) return METAFORK_EINVAL;
    pthread_mutex_lock(metafork_driver_lock());
    if (!driver->devices[device].known) error = metafork_hardware_read(driver, device, &driver->devices[device].machine);
    driver->devices[device].known = error == METAFORK_OK;
    *out = driver->devices[device].machine;
    pthread_mutex_unlock(metafork_driver_lock());
    return error;
}

static inline int metafork_device_allocate(int device, void **out, int64_t bytes) {
    metafork_driver *driver;
    unsigned long long memory = 0;
    int error = metafork_context_enter(device, &driver);
    if (error == METAFORK_OK) {
        const int allocated = metafork_taken(driver->memory_allocate(&memory, (size_t)bytes));
        error = metafork_context_leave(driver, allocated);
        /* Where the context could not be left, it is still there to free memory in. */
        if (error != METAFORK_OK && allocated == METAFORK_OK) (void)driver->memory_free(memory);
    }
    *out = error == METAFORK_OK ? (void *)(uintptr_t)memory : NULL;
    return error;
}

static inline void metafork_device_free(int device, void *memory) {
    metafork_driver *driver;
    if (metafork_context_enter(device, &driver) == METAFORK_OK)
        (void)metafork_context_leave(driver, driver->memory_free((uintptr_t)memory));
}

/* Where memory lies; an error of the driver for what the host got elsewhere. */
static inline int metafork_place_in(const metafork_driver *driver, int device, unsigned long long address, metafork_place *out) {
    unsigned type = 0;
    int managed = 0, ordinal = 0;
    unsigned long long start = 0;
    size_t bytes = 0;
    int error = driver->memory_attribute(&type, METAFORK_CU_POINTER_MEMORY_TYPE, address);
    if (error == 0) error = driver->memory_attribute(&managed, METAFORK_CU_POINTER_IS_MANAGED, address);
    if (error == 0 && !managed && type != METAFORK_CU_DEVICE) return 0; /* pinned */
    if (error == 0) error = driver->memory_attribute(&ordinal, METAFORK_CU_POINTER_DEVICE_ORDINAL, address);
    if (error == 0 && !managed && ordinal != device) return METAFORK_EELSEWHERE;
    if (error == 0) error = driver->memory_range(&start, &bytes, address);
    if (error != 0) return error;
    out->start = (uintptr_t)start;
    out->bytes = (int64_t)bytes;
    out->of_device = !managed;
    return 0;
}

static inline int metafork_place_of(int device, const void *address, metafork_place *out) {
    metafork_driver *driver;
    int error = metafork_context_enter(device, &driver);
    if (error != METAFORK_OK) return error;
    error = metafork_place_in(driver, device, (uintptr_t)address, out);
    return metafork_context_leave(driver, error == METAFORK_CU_INVALID_VALUE ? METAFORK_OK : metafork_taken(error));
}

static inline int metafork_device_copy(int device, void *to, const void *from, int64_t bytes, bool to_device) {
    metafork_driver *driver;
    int error = metafork_context_enter(device, &driver);
    if (error != METAFORK_OK) return error;
    error = to_device ? driver->copy_to_device((uintptr_t)to, from, (size_t)bytes) : driver->copy_to_host(to, (uintptr_t)from, (size_t)bytes);
    return metafork_context_leave(driver, metafork_taken(error));
}

static inline metafork_copy_of_rows metafork_rows_of(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t width, int64_t rows,
                                                     bool to_device) {
    metafork_copy_of_rows copy = METAFORK_NONE;
    copy.from_kind = to_device ? METAFORK_CU_HOST : METAFORK_CU_DEVICE;
    copy.to_kind = to_device ? METAFORK_CU_DEVICE : METAFORK_CU_HOST;
    copy.from_host = to_device ? from : NULL;
    copy.from_device = to_device ? 0 : (uintptr_t)from;
    copy.to_host = to_device ? NULL : to;
    copy.to_device = to_device ? (uintptr_t)to : 0;
    copy.from_stride = (size_t)from_stride;
    copy.to_stride = (size_t)to_stride;
    copy.width = (size_t)width;
    copy.rows = (size_t)rows;
    return copy;
}

static inline int metafork_device_copy_rows(int device, void *to, const void *from, int64_t width, int64_t stride, int64_t rows, bool to_device) {
    const metafork_copy_of_rows copy = metafork_rows_of(to, stride, from, stride, width, rows, to_device);
    metafork_driver *driver;
    const int error = metafork_context_enter(device, &driver);
    return error != METAFORK_OK ? error : metafork_context_leave(driver, metafork_taken(driver->copy_rows(&copy)));
}

/* ---- streams ---- */

static inline int metafork_stream_make(int device, void **out) {
    metafork_driver *driver;
    const int error = metafork_context_enter(device, &driver);
    return error != METAFORK_OK ? error : metafork_context_leave(driver, metafork_taken(driver->stream_make(out, METAFORK_CU_STREAM_NON_BLOCKING)));
}

static inline void metafork_stream_free(int device, void *stream) {
    metafork_driver *driver;
    if (metafork_context_enter(device, &driver) == METAFORK_OK) (void)metafork_context_leave(driver, driver->stream_free(stream));
}

static inline int metafork_stream_finish(int device, void *stream) {
    metafork_driver *driver;
    const int error = metafork_context_enter(device, &driver);
    return error != METAFORK_OK ? error : metafork_context_leave(driver, metafork_taken(driver->stream_finish(stream)));
}

static inline int metafork_stream_follow(int device, void *stream, void *event) {
    metafork_driver *driver;
    const int error = metafork_context_enter(device, &driver);
    return error != METAFORK_OK ? error : metafork_context_leave(driver, metafork_taken(driver->stream_follow(stream, event, 0)));
}

static inline int metafork_event_record(int device, void *stream, void **event) {
    metafork_driver *driver;
    int error = metafork_context_enter(device, &driver);
    if (error != METAFORK_OK) return error;
    if (*event == NULL) error = metafork_taken(driver->event_make(event, METAFORK_CU_EVENT_DISABLE_TIMING));
    if (error == METAFORK_OK) error = metafork_taken(driver->event_record(*event, stream));
    return metafork_context_leave(driver, error);
}

static inline int metafork_event_await(int device, void *event) {
    metafork_driver *driver;
    const int error = metafork_context_enter(device, &driver);
    return error != METAFORK_OK ? error : metafork_context_leave(driver, metafork_taken(driver->event_await(event)));
}

static inline void metafork_event_free(int device, void *event) {
    metafork_driver *driver;
    if (metafork_context_enter(device, &driver) == METAFORK_OK) (void)metafork_context_leave(driver, driver->event_free(event));
}

static inline int metafork_pinned_allocate(int device, void **out, int64_t bytes) {
    metafork_driver *driver;
    const int error = metafork_context_enter(device, &driver);
    return error != METAFORK_OK ? error : metafork_context_leave(driver, metafork_taken(driver->pinned_allocate(out, (size_t)bytes, 0)));
}

static inline void metafork_pinned_free(int device, void *memory) {
    metafork_driver *driver;
    if (metafork_context_enter(device, &driver) == METAFORK_OK) (void)metafork_context_leave(driver, driver->pinned_free(memory));
}

static inline bool metafork_pinned_is(int device, void *memory) {
    metafork_driver *driver;
    unsigned flags;
    const int error = metafork_context_enter(device, &driver);
    return error == METAFORK_OK && metafork_context_leave(driver, metafork_taken(driver->pinned_flags(&flags, memory))) == METAFORK_OK;
}

/* The stream of no number cannot be captured itself, nor be used while one is that it waits for. */
static inline bool metafork_captured(int device, void *stream) {
    metafork_driver *driver;
    int status = METAFORK_CU_CAPTURE_NONE;
    if (metafork_context_enter(device, &driver) != METAFORK_OK) return false;
    const int error = driver->stream_captured(stream, &status);
    (void)metafork_context_leave(driver, METAFORK_OK);
    return error == METAFORK_CU_CAPTURE_IMPLICIT || (error == 0 && status != METAFORK_CU_CAPTURE_NONE);
}

static inline int metafork_copy_begin(int device, void *stream, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                                      metafork_rows rows, bool to_device) {
    const metafork_copy_of_rows copy = metafork_rows_of(to, to_stride, from, from_stride, rows.width, rows.count, to_device);
    metafork_driver *driver;
    int error = metafork_context_enter(device, &driver);
    if (error != METAFORK_OK) return error;
    if (rows.count > 1)
        error = driver->begin_rows(&copy, stream);
    else if (to_device)
        error = driver->begin_to_device((uintptr_t)to, from, (size_t)rows.width, stream);
    else
        error = driver->begin_to_host(to, (uintptr_t)from, (size_t)rows.width, stream);
    return metafork_context_leave(driver, metafork_taken(error));
}

/* ---- kernels ---- */

/* Compile a kernel for a device whose context is the thread's. */
static inline int metafork_compile(const metafork_driver *driver, metafork_ptx *ptx, metafork_loaded *out) {
    char log[8192] = "";
    int options[] = {METAFORK_CU_JIT_ERROR_LOG_BUFFER, METAFORK_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    const int loaded = driver->module_load(&out->module, ptx->text, 2, options, values);
    if (loaded != 0) {
        const char *text = NULL;
        if (driver->error_string(loaded, &text) != 0 || text == NULL) text = "unknown error";
        log[sizeof log - 1] = '\0';
        if (!ptx->said) fprintf(stderr, "metafork: %s: the driver does not compile it: %s%s%s\n", ptx->name, text, log[0] != '\0' ? "\n" : "", log);
        ptx->said = 1;
        return metafork_taken(loaded);
    }
    int numbers[4] = {0, 0, 0, 0};
    const int wanted[] = {METAFORK_CU_FUNC_NUM_REGS, METAFORK_CU_FUNC_MAX_THREADS_PER_BLOCK, METAFORK_CU_FUNC_SHARED_SIZE_BYTES,
                          METAFORK_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES};
    int error = metafork_taken(driver->module_function(&out->function, out->module, ptx->name));
    for (int i = 0; i < 4 && error == METAFORK_OK; i++) error = metafork_taken(driver->function_attribute(&numbers[i], wanted[i], out->function));
    if (error != METAFORK_OK) {
        (void)driver->module_unload(out->module);
        return error;
    }
    out->attributes.registers = numbers[0];
    out->attributes.threads = numbers[1];
    out->attributes.shared_bytes = numbers[2];
    out->dynamic_bytes = numbers[3];
    return METAFORK_OK;
}

/* What a kernel is on a device whose context is the thread's, under the lock; it is compiled at the first call. */
static inline int metafork_loaded_on(metafork_driver *driver, int device, metafork_ptx *ptx, metafork_loaded **out) {
    metafork_loaded *one = ptx->loaded;
    while (one != NULL && one->device != device) one = one->next;
    *out = one;
    if (one != NULL) return METAFORK_OK;
    one = (metafork_loaded *)calloc(1, sizeof *one);
    const int error = one == NULL ? METAFORK_ENOMEM : metafork_compile(driver, ptx, one);
    if (error != METAFORK_OK) {
        free(one);
        return error;
    }
    one->kernel = ptx;
    one->device = device;
    one->next = ptx->loaded;
    one->next_of_all = driver->all;
    *out = ptx->loaded = driver->all = one;
    return METAFORK_OK;
}

/* The same on the current device. */
static inline int metafork_load(const void *ptx, metafork_loaded **out) {
    metafork_driver *driver;
    int device, error = metafork_current_device(&device);
    if (error == METAFORK_OK) error = metafork_context_enter(device, &driver);
    if (error != METAFORK_OK) return error;
    pthread_mutex_lock(metafork_driver_lock());
    error = metafork_loaded_on(driver, device, (metafork_ptx *)ptx, out);
    pthread_mutex_unlock(metafork_driver_lock());
    return metafork_context_leave(driver, error);
}

/* The same of what others say of, where it fails. */
static inline int metafork_load_now(metafork_ptx *ptx) {
    metafork_loaded *one;
    ptx->said = 1;
    return metafork_load(ptx, &one);
}

/* Of a kernel (a metafork_ptx); it is compiled when it is asked for first. */
static inline int metafork_kernel_attributes(const void *kernel, metafork_attributes *out) {
    metafork_loaded *one = NULL;
    const int error = metafork_load(kernel, &one);
    if (error == METAFORK_OK) *out = one->attributes;
    return error;
}

/* Launch a checked shape. */
static inline int metafork_launch_kernel(const void *kernel, const metafork_shape *shape, void *stream, void **arguments) {
    metafork_loaded *one = NULL;
    metafork_driver *driver;
    int error = metafork_load(kernel, &one);
    if (error == METAFORK_OK) error = metafork_context_enter(one->device, &driver);
    if (error != METAFORK_OK) return error;
    pthread_mutex_lock(metafork_driver_lock());
    if (shape->shared_bytes > one->dynamic_bytes) {
        error = metafork_taken(driver->function_set(one->function, METAFORK_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shape->shared_bytes));
        if (error == METAFORK_OK) one->dynamic_bytes = shape->shared_bytes;
    }
    pthread_mutex_unlock(metafork_driver_lock());
    if (error == METAFORK_OK)
        error = metafork_taken(driver->launch(one->function, (unsigned)shape->grid[0], (unsigned)shape->grid[1], (unsigned)shape->grid[2],
                                              (unsigned)shape->block[0], (unsigned)shape->block[1], (unsigned)shape->block[2],
                                              (unsigned)shape->shared_bytes, stream, arguments, NULL));
    return metafork_context_leave(driver, error);
}

/* Wait for what was launched on the null stream of the current device. */
static inline int metafork_finish(void) {
    metafork_driver *driver;
    int device, error = metafork_current_device(&device);
    if (error == METAFORK_OK) error = metafork_context_enter(device, &driver);
    if (error != METAFORK_OK) return error;
    return metafork_context_leave(driver, metafork_taken(driver->stream_finish(NULL)));
}

#endif
