/* What launch.h asks of a target, by OpenCL 1.2: the library is opened when a device is first needed, and nothing of OpenCL
 * is there when this is compiled.  C11 and C++.
 *
 *   METAFORK_OPENCL_LIBRARY   the library, libOpenCL.so.1 where nothing is said
 *   METAFORK_OPENCL_DEVICE    the device: its number among all of all platforms, or a part of its name; else the first GPU, or
 *                             the first device where there is none
 *
 * Programs that were built are kept for the next run (metafork/program_cache.h).
 *
 * Drop-ins run on a context and a queue of the process, made when they are first needed; a launch on a queue of the caller's own
 * is one on the device and in the context of that queue.  A pair of the two is a place, and programs are built once for each.
 * When the program ends all is released.  Whether there is a device is asked once; anything else that fails is tried again.
 *
 * Errors of OpenCL are negative, and so are the interface's: its own get the other sign here.
 */
#ifndef METAFORK_TARGET_OPENCL_H
#define METAFORK_TARGET_OPENCL_H

#if defined(METAFORK_CPU)
#error "the OpenCL back end has no CPU build: compile what metafork optimize --backend cuda writes"
#endif

/* What the host computes for a launch has the results that the serial program has. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__FP_FAST_FMAF) || defined(__FP_FAST_FMA)
#pragma GCC optimize("fp-contract=off")
#endif

#include <pthread.h>

#include "metafork/library.h"
#include "metafork/program_cache.h"

/* ---- what stands in front of every kernel's text ---- */

static const char metafork_opencl_prelude[] =
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "#ifdef cl_khr_fp64\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "double metafork_fmax(double x, double y) { return y != y || x > y ? x : y; }\n"
    "double metafork_fmin(double x, double y) { return y != y || x < y ? x : y; }\n"
    "double metafork_fdim(double x, double y) { return x <= y ? 0.0 : x - y; }\n"
    "#endif\n"
    "#ifdef cl_khr_int64_base_atomics\n"
    "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"
    "#endif\n"
    "#ifdef cl_khr_int64_extended_atomics\n"
    "#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n"
    "#endif\n"
    "float metafork_fmaxf(float x, float y) { return y != y || x > y ? x : y; }\n"
    "float metafork_fminf(float x, float y) { return y != y || x < y ? x : y; }\n"
    "float metafork_fdimf(float x, float y) { return x <= y ? 0.0f : x - y; }\n"
    "float metafork_from_half(ushort h) {\n"
    "  const uint sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;\n"
    "  if (rest >= 0x7c00u) return as_float(sign | 0x7f800000u | rest << 13);\n"
    "  if (rest >= 0x400u) return as_float(sign | ((rest << 13) + 0x38000000u));\n"
    "  return as_float(sign | as_uint((float)rest * 5.9604644775390625e-8f));\n"
    "}\n"
    "ushort metafork_to_half(float value) {\n"
    "  const uint bits = as_uint(value), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;\n"
    "  if (rest > 0x7f800000u) return 0x7fff;\n"
    "  if (rest >= 0x477ff000u) return (ushort)(sign | 0x7c00u);\n"
    "  if (rest < 0x38800000u) return (ushort)(sign | (as_uint(as_float(rest) + 0.5f) - 0x3f000000u));\n"
    "  return (ushort)(sign | ((rest + 0xfffu + (rest >> 13 & 1u) - 0x38000000u) >> 13));\n"
    "}\n"
    "float metafork_from_bfloat16(ushort h) { return as_float((uint)h << 16); }\n"
    "ushort metafork_to_bfloat16(float value) {\n"
    "  const uint bits = as_uint(value);\n"
    "  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fff : (ushort)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);\n"
    "}\n"
    "int metafork_abs(int x) { return x < 0 ? -x : x; }\n"
    "long metafork_labs(long x) { return x < 0 ? -x : x; }\n"
    "#define METAFORK_THREAD(axis) ((uint)get_local_id(axis))\n"
    "#define METAFORK_BLOCK(axis) ((uint)get_group_id(axis))\n"
    "#define METAFORK_THREADS(axis) ((uint)get_local_size(axis))\n"
    "#define METAFORK_BLOCKS(axis) ((uint)get_num_groups(axis))\n"
    "#define METAFORK_FIRST(index, extent) (index)\n"
    "#if METAFORK_LARGE\n"
    "#define METAFORK_OFFSET_TYPE long\n"
    "#define METAFORK_NEXT(counter, extent, stride) ((counter) + (stride))\n"
    "#else\n"
    "#define METAFORK_OFFSET_TYPE int\n"
    "#define METAFORK_NEXT(counter, extent, stride) (extent)\n"
    "#endif\n"
    "#define METAFORK_OFFSET(value) ((METAFORK_OFFSET_TYPE)(value))\n"
    "#define METAFORK_QUOTIENT(place, length) ((place) / (length))\n"
    "#define METAFORK_ROLLED _Pragma(\"unroll 1\")\n"
    "#define METAFORK_UNROLLED _Pragma(\"unroll\")\n"
    "#define METAFORK_PRAGMA(text) _Pragma(#text)\n"
    "#define METAFORK_UNROLLED_BY(count) METAFORK_PRAGMA(unroll count)\n";

/* What a kernel needs of a device. */
enum {
    METAFORK_CL_DOUBLES = 1,   /* doubles, with all that IEEE 754 asks for */
    METAFORK_CL_FLOATS = 2,    /* floats with denormals, infinities and rounding to nearest */
    METAFORK_CL_DIVIDES = 4,   /* correctly rounded division and square root of floats */
    METAFORK_CL_ATOMICS_64 = 8 /* atomic updates of 64 bits */
};

/* One of the two kernels of a text; `large` is the one for any grid and any array. */
typedef struct metafork_opencl_kernel {
    const char *name;
    const char *text;
    unsigned needs;
    int shared; /* whether the last argument is the dynamic shared memory */
    size_t argument_bytes;
    int large;
    struct metafork_opencl_built *built; /* one for each place */
    int said;
} metafork_opencl_kernel;
#define METAFORK_NOT_BUILT NULL, 0
#define METAFORK_HAS_STREAMS

typedef struct metafork_opencl_built {
    struct metafork_opencl_built *next;        /* of the same kernel, at another place */
    struct metafork_opencl_built *next_of_all; /* of the process */
    metafork_opencl_kernel *of;
    int place;
    void *program;
    void *kernel;
    metafork_attributes attributes;
} metafork_opencl_built;

/* Memory of the process's own context.  There are no addresses in OpenCL 1.2: what drop-ins take for one is made up, so that an
 * array may begin inside of a buffer. */
typedef struct metafork_opencl_buffer {
    struct metafork_opencl_buffer *next;
    uintptr_t address;
    int64_t bytes;
    void *memory;
} metafork_opencl_buffer;

/* Memory of the host that a device reaches by itself: a buffer that stays mapped. */
typedef struct metafork_opencl_pinned {
    struct metafork_opencl_pinned *next;
    void *mapped;
    void *memory;
} metafork_opencl_pinned;

typedef struct metafork_opencl_place {
    void *context;
    void *device;
    void *queue;    /* of the process's own place, else NULL */
    unsigned gives; /* which needs it fulfils */
    size_t most_argument_bytes;
    bool pocl;
    char *told; /* device and driver, as far as built programs depend on them, once somebody asked; NULL where they do not tell */
    bool asked;
    metafork_machine machine;
} metafork_opencl_place;

enum { METAFORK_MOST_QUEUES = 32, METAFORK_MOST_PLACES = 16, METAFORK_MOST_PLATFORMS = 16, METAFORK_MOST_DEVICES = 64 };

/* Types of CL/cl.h: cl_int is int, cl_uint unsigned, cl_ulong and cl_bitfield uint64_t; all objects are pointers. */
typedef struct metafork_opencl {
    int tried; /* whether error says something */
    int error;
    int ending; /* whether metafork_opencl_end is to be called */
    void *library;
    void *platform, *device; /* that drop-ins run on */
    int place_count;
    metafork_opencl_place places[METAFORK_MOST_PLACES]; /* the first is the process's own */
    metafork_opencl_built *all;
    metafork_opencl_buffer *buffers;
    metafork_opencl_pinned *pinned;
    void *queues[METAFORK_MOST_QUEUES]; /* of drop-ins, at the process's own place beside its own queue */
    uintptr_t next_address;
    int (*platforms)(unsigned room, void **platforms, unsigned *count);
    int (*devices)(void *platform, uint64_t type, unsigned room, void **devices, unsigned *count);
    int (*device_info)(void *device, unsigned what, size_t room, void *value, size_t *size);
    void *(*context_create)(const intptr_t *properties, unsigned count, void *const *devices, void *notify, void *user, int *error);
    int (*context_retain)(void *context);
    int (*context_release)(void *context);
    void *(*queue_create)(void *context, void *device, uint64_t properties, int *error);
    int (*queue_release)(void *queue);
    int (*queue_info)(void *queue, unsigned what, size_t room, void *value, size_t *size);
    void *(*buffer_create)(void *context, uint64_t flags, size_t size, void *host, int *error);
    int (*buffer_release)(void *buffer);
    void *(*program_create)(void *context, unsigned count, const char **texts, const size_t *lengths, int *error);
    void *(*program_take)(void *context, unsigned count, void *const *devices, const size_t *lengths, const unsigned char **binaries, int *results,
                          int *error);
    int (*program_about)(void *program, unsigned what, size_t room, void *value, size_t *size);
    int (*program_build)(void *program, unsigned count, void *const *devices, const char *options, void *notify, void *user);
    int (*program_info)(void *program, void *device, unsigned what, size_t room, void *value, size_t *size);
    int (*program_release)(void *program);
    void *(*kernel_create)(void *program, const char *name, int *error);
    int (*kernel_release)(void *kernel);
    int (*kernel_info)(void *kernel, void *device, unsigned what, size_t room, void *value, size_t *size);
    int (*kernel_set)(void *kernel, unsigned index, size_t size, const void *value);
    int (*launch)(void *queue, void *kernel, unsigned dimensions, const size_t *offset, const size_t *global, const size_t *local,
                  unsigned count, void *const *events, void **event);
    int (*read)(void *queue, void *buffer, unsigned blocking, size_t offset, size_t size, void *to, unsigned count, void *const *events,
                void **event);
    int (*write)(void *queue, void *buffer, unsigned blocking, size_t offset, size_t size, const void *from, unsigned count,
                 void *const *events, void **event);
    int (*read_rows)(void *queue, void *buffer, unsigned blocking, const size_t *buffer_origin, const size_t *origin, const size_t *region,
                     size_t buffer_stride, size_t buffer_slice, size_t stride, size_t slice, void *to, unsigned count, void *const *events,
                     void **event);
    int (*write_rows)(void *queue, void *buffer, unsigned blocking, const size_t *buffer_origin, const size_t *origin, const size_t *region,
                      size_t buffer_stride, size_t buffer_slice, size_t stride, size_t slice, const void *from, unsigned count, void *const *events,
                      void **event);
    void *(*map)(void *queue, void *buffer, unsigned blocking, uint64_t flags, size_t offset, size_t size, unsigned count, void *const *events,
                 void **event, int *error);
    int (*unmap)(void *queue, void *memory, void *mapped, unsigned count, void *const *events, void **event);
    int (*marker)(void *queue, unsigned count, void *const *events, void **event);
    int (*barrier)(void *queue, unsigned count, void *const *events, void **event);
    int (*event_await)(unsigned count, void *const *events);
    int (*event_release)(void *event);
    int (*flush)(void *queue);
    int (*finish)(void *queue);
} metafork_opencl;

/* Numbers of CL/cl.h, cl_ext.h. */
enum {
    METAFORK_CL_DEVICE_TYPE_GPU = 4,
    METAFORK_CL_DEVICE_TYPE = 0x1000,
    METAFORK_CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS = 0x1003,
    METAFORK_CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    METAFORK_CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
    METAFORK_CL_DEVICE_MAX_PARAMETER_SIZE = 0x1017,
    METAFORK_CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
    METAFORK_CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    METAFORK_CL_DEVICE_NAME = 0x102B,
    METAFORK_CL_DEVICE_VENDOR = 0x102C,
    METAFORK_CL_DRIVER_VERSION = 0x102D,
    METAFORK_CL_DEVICE_VERSION = 0x102F,
    METAFORK_CL_DEVICE_EXTENSIONS = 0x1030,
    METAFORK_CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    METAFORK_CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000,
    METAFORK_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV = 0x4001,
    METAFORK_CL_DEVICE_REGISTERS_PER_BLOCK_NV = 0x4002,
    METAFORK_CL_DEVICE_WARP_SIZE_NV = 0x4003,
    METAFORK_CL_DEVICE_WAVEFRONT_WIDTH_AMD = 0x4043,
    METAFORK_CL_FP_DENORM = 1,
    METAFORK_CL_FP_INF_NAN = 2,
    METAFORK_CL_FP_ROUND_TO_NEAREST = 4,
    METAFORK_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 128,
    METAFORK_CL_CONTEXT_PLATFORM = 0x1084,
    METAFORK_CL_QUEUE_CONTEXT = 0x1090,
    METAFORK_CL_QUEUE_DEVICE = 0x1091,
    METAFORK_CL_MEM_READ_WRITE = 1,
    METAFORK_CL_MEM_ALLOC_HOST_PTR = 16,
    METAFORK_CL_MAP_READ = 1,
    METAFORK_CL_MAP_WRITE = 2,
    METAFORK_CL_PROGRAM_NUM_DEVICES = 0x1162,
    METAFORK_CL_PROGRAM_DEVICES = 0x1163,
    METAFORK_CL_PROGRAM_BINARY_SIZES = 0x1165,
    METAFORK_CL_PROGRAM_BINARIES = 0x1166,
    METAFORK_CL_PROGRAM_BUILD_LOG = 0x1183,
    METAFORK_CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
    METAFORK_CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2
};
#define METAFORK_CL_DEVICE_TYPE_ALL UINT64_C(0xFFFFFFFF)

/* A result of OpenCL as an error of the interface. */
static inline int metafork_taken(int result) {
    switch (result) {
    case 0: return METAFORK_OK;
    case -1:                                /* CL_DEVICE_NOT_FOUND */
    case -1001: return METAFORK_ENODEVICE;  /* CL_PLATFORM_NOT_FOUND_KHR */
    case -4:                                /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
    case -6:                                /* CL_OUT_OF_HOST_MEMORY */
    case -61: return METAFORK_ENOMEM;       /* CL_INVALID_BUFFER_SIZE: larger than the device gives at once */
    case -5:                                /* CL_OUT_OF_RESOURCES */
    case -54:                               /* CL_INVALID_WORK_GROUP_SIZE */
    case -55: return METAFORK_ERESOURCES;   /* CL_INVALID_WORK_ITEM_SIZE */
    case -3:                                /* CL_COMPILER_NOT_AVAILABLE */
    case -11: return METAFORK_EUNSUPPORTED; /* CL_BUILD_PROGRAM_FAILURE */
    default: return result < 0 && result > INT32_MIN ? -result : INT32_MAX;
    }
}

static inline const char *metafork_message(int error) {
    static const char *const texts[] = {"CL_DEVICE_NOT_AVAILABLE", "CL_PROFILING_INFO_NOT_AVAILABLE", "CL_MAP_FAILURE", "CL_INVALID_VALUE",
                                        "CL_INVALID_DEVICE", "CL_INVALID_CONTEXT", "CL_INVALID_COMMAND_QUEUE", "CL_INVALID_MEM_OBJECT",
                                        "CL_INVALID_BUILD_OPTIONS", "CL_INVALID_PROGRAM", "CL_INVALID_PROGRAM_EXECUTABLE",
                                        "CL_INVALID_KERNEL_NAME", "CL_INVALID_KERNEL", "CL_INVALID_ARG_VALUE", "CL_INVALID_ARG_SIZE",
                                        "CL_INVALID_KERNEL_ARGS", "CL_INVALID_GLOBAL_WORK_SIZE"};
    static const int numbers[] = {2, 7, 12, 30, 33, 34, 36, 38, 43, 44, 45, 46, 48, 50, 51, 52, 63};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (error == numbers[i]) return texts[i];
    if (error == METAFORK_ENODEVICE) return "there is no OpenCL library or no device";
    if (error == METAFORK_EUNSUPPORTED) return "the device has no code for the kernel";
    return error > 0 ? "an error of OpenCL" : metafork_error_text(error);
}

/* ---- the library and the device ---- */

/* What changes after the library was opened is read and written under this lock, which is never held while a device works. */
METAFORK_DEFINITION pthread_mutex_t *metafork_opencl_lock(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    return &lock;
}

METAFORK_DEFINITION metafork_opencl *metafork_opencl_of_process(void) {
    static metafork_opencl opencl;
    return &opencl;
}

/* Whether a device is the one that METAFORK_OPENCL_DEVICE names, `number` being its own. */
static inline int metafork_opencl_named(metafork_opencl *cl, void *device, int number, const char *wanted, bool *is) {
    char name[256] = "";
    const size_t digits = strspn(wanted, "0123456789");
    *is = digits > 0 && wanted[digits] == '\0' && number == atoi(wanted);
    if (*is || wanted[digits] == '\0') return METAFORK_OK;
    const int error = metafork_taken(cl->device_info(device, METAFORK_CL_DEVICE_NAME, sizeof name - 1, name, NULL));
    *is = error == METAFORK_OK && strstr(name, wanted) != NULL;
    return error;
}

static inline int metafork_opencl_choose(metafork_opencl *cl) {
    void *platforms[METAFORK_MOST_PLATFORMS], *devices[METAFORK_MOST_DEVICES];
    unsigned platform_count = 0;
    int number = 0;
    bool found = false;
    const char *const wanted = getenv("METAFORK_OPENCL_DEVICE");
    const bool any = wanted == NULL || wanted[0] == '\0';
    int error = metafork_taken(cl->platforms(METAFORK_MOST_PLATFORMS, platforms, &platform_count));
    if (platform_count > METAFORK_MOST_PLATFORMS) platform_count = METAFORK_MOST_PLATFORMS;
    for (unsigned i = 0; error == METAFORK_OK && i < platform_count; i++) {
        unsigned count = 0;
        const int listed = cl->devices(platforms[i], METAFORK_CL_DEVICE_TYPE_ALL, METAFORK_MOST_DEVICES, devices, &count);
        if (listed == -1) continue; /* CL_DEVICE_NOT_FOUND: this platform has none */
        error = metafork_taken(listed);
        if (count > METAFORK_MOST_DEVICES) count = METAFORK_MOST_DEVICES;
        for (unsigned j = 0; error == METAFORK_OK && j < count && !found; j++, number++) {
            uint64_t type = 0;
            if (any) {
                error = metafork_taken(cl->device_info(devices[j], METAFORK_CL_DEVICE_TYPE, sizeof type, &type, NULL));
                found = (type & METAFORK_CL_DEVICE_TYPE_GPU) != 0;
            } else {
                error = metafork_opencl_named(cl, devices[j], number, wanted, &found);
            }
            if (found || (any && cl->device == NULL)) {
                cl->platform = platforms[i];
                cl->device = devices[j];
            }
        }
    }
    if (error == METAFORK_OK && cl->device == NULL && !any)
        fprintf(stderr, "metafork: METAFORK_OPENCL_DEVICE=\"%s\" is none of %d devices\n", wanted, number);
    return error != METAFORK_OK ? error : cl->device == NULL ? METAFORK_ENODEVICE : METAFORK_OK;
}

/* Open the library, find its functions, and choose a device. */
static inline int metafork_opencl_open(metafork_opencl *cl) {
    const metafork_symbol wanted[] = {
        {"clGetPlatformIDs", &cl->platforms},
        {"clGetDeviceIDs", &cl->devices},
        {"clGetDeviceInfo", &cl->device_info},
        {"clCreateContext", &cl->context_create},
        {"clRetainContext", &cl->context_retain},
        {"clReleaseContext", &cl->context_release},
        {"clCreateCommandQueue", &cl->queue_create},
        {"clReleaseCommandQueue", &cl->queue_release},
        {"clGetCommandQueueInfo", &cl->queue_info},
        {"clCreateBuffer", &cl->buffer_create},
        {"clReleaseMemObject", &cl->buffer_release},
        {"clCreateProgramWithSource", &cl->program_create},
        {"clCreateProgramWithBinary", &cl->program_take},
        {"clGetProgramInfo", &cl->program_about},
        {"clBuildProgram", &cl->program_build},
        {"clGetProgramBuildInfo", &cl->program_info},
        {"clReleaseProgram", &cl->program_release},
        {"clCreateKernel", &cl->kernel_create},
        {"clReleaseKernel", &cl->kernel_release},
        {"clGetKernelWorkGroupInfo", &cl->kernel_info},
        {"clSetKernelArg", &cl->kernel_set},
        {"clEnqueueNDRangeKernel", &cl->launch},
        {"clEnqueueReadBuffer", &cl->read},
        {"clEnqueueWriteBuffer", &cl->write},
        {"clEnqueueReadBufferRect", &cl->read_rows},
        {"clEnqueueWriteBufferRect", &cl->write_rows},
        {"clEnqueueMapBuffer", &cl->map},
        {"clEnqueueUnmapMemObject", &cl->unmap},
        {"clEnqueueMarkerWithWaitList", &cl->marker},
        {"clEnqueueBarrierWithWaitList", &cl->barrier},
        {"clWaitForEvents", &cl->event_await},
        {"clReleaseEvent", &cl->event_release},
        {"clFlush", &cl->flush},
        {"clFinish", &cl->finish},
    };
    const char *path = getenv("METAFORK_OPENCL_LIBRARY");
    if (path == NULL || path[0] == '\0') path = "libOpenCL.so.1";
    bool lacks;
    cl->library = metafork_library_open(path, wanted, sizeof wanted / sizeof wanted[0], &lacks);
    if (cl->library == NULL) return METAFORK_ENODEVICE;
    cl->next_address = (uintptr_t)1 << (8 * sizeof(uintptr_t) - 2); /* where no program has memory */
    return metafork_opencl_choose(cl);
}

/* At the end of the program: nothing that fails now matters to anyone. */
static void metafork_opencl_end(void) {
    metafork_opencl *const cl = metafork_opencl_of_process();
    if (metafork_forked()) return;
    pthread_mutex_lock(metafork_opencl_lock());
    while (cl->all != NULL) {
        metafork_opencl_built *const one = cl->all;
        (void)cl->kernel_release(one->kernel);
        (void)cl->program_release(one->program);
        one->of->built = NULL;
        cl->all = one->next_of_all;
        free(one);
    }
    while (cl->buffers != NULL) {
        metafork_opencl_buffer *const one = cl->buffers;
        (void)cl->buffer_release(one->memory);
        cl->buffers = one->next;
        free(one);
    }
    for (int i = 0; i < cl->place_count; i++) {
        if (cl->places[i].queue != NULL) (void)cl->queue_release(cl->places[i].queue);
        (void)cl->context_release(cl->places[i].context);
        free(cl->places[i].told);
    }
    cl->place_count = 0;
    cl->ending = 0;
    pthread_mutex_unlock(metafork_opencl_lock());
}

/* A text that a device tells, or NULL and an error. */
static inline char *metafork_opencl_told(metafork_opencl *cl, void *device, unsigned what, int *error) {
    size_t length = 0;
    *error = metafork_taken(cl->device_info(device, what, 0, NULL, &length));
    if (*error != METAFORK_OK) return NULL;
    char *const text = (char *)calloc(length + 1, 1);
    *error = text == NULL ? METAFORK_ENOMEM : metafork_taken(cl->device_info(device, what, length, text, NULL));
    if (*error == METAFORK_OK) return text;
    free(text);
    return NULL;
}

typedef struct metafork_opencl_question {
    unsigned what;
    size_t size;
    void *value;
} metafork_opencl_question;

static inline int metafork_opencl_ask(metafork_opencl *cl, void *device, const metafork_opencl_question *questions, size_t count) {
    int error = METAFORK_OK;
    for (size_t i = 0; error == METAFORK_OK && i < count; i++)
        error = metafork_taken(cl->device_info(device, questions[i].what, questions[i].size, questions[i].value, NULL));
    return error;
}

/* Read what a place's device can do. */
static inline int metafork_opencl_read(metafork_opencl *cl, void *device, metafork_opencl_place *place) {
    size_t threads = 0, sizes[16] = {0}, arguments = 0;
    uint64_t local_bytes = 0, single = 0, twice = 0;
    unsigned dimensions = 0, major = 0, minor = 0, registers = 0, warp = 32;
    int error;
    const metafork_opencl_question common[] = {{METAFORK_CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof threads, &threads},
                                               {METAFORK_CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, sizeof dimensions, &dimensions},
                                               {METAFORK_CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes},
                                               {METAFORK_CL_DEVICE_LOCAL_MEM_SIZE, sizeof local_bytes, &local_bytes},
                                               {METAFORK_CL_DEVICE_MAX_PARAMETER_SIZE, sizeof arguments, &arguments},
                                               {METAFORK_CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single}};
    const metafork_opencl_question of_doubles[] = {{METAFORK_CL_DEVICE_DOUBLE_FP_CONFIG, sizeof twice, &twice}};
    const metafork_opencl_question of_nvidia[] = {{METAFORK_CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, sizeof major, &major},
                                                  {METAFORK_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, sizeof minor, &minor},
                                                  {METAFORK_CL_DEVICE_REGISTERS_PER_BLOCK_NV, sizeof registers, &registers},
                                                  {METAFORK_CL_DEVICE_WARP_SIZE_NV, sizeof warp, &warp}};
    const metafork_opencl_question of_amd[] = {{METAFORK_CL_DEVICE_WAVEFRONT_WIDTH_AMD, sizeof warp, &warp}};
    char *const version = metafork_opencl_told(cl, device, METAFORK_CL_DEVICE_VERSION, &error);
    if (error != METAFORK_OK) return error;
    place->pocl = strstr(version, "PoCL") != NULL;
    free(version);
    char *const extensions = metafork_opencl_told(cl, device, METAFORK_CL_DEVICE_EXTENSIONS, &error);
    if (error != METAFORK_OK) return error;
    const bool nvidia = strstr(extensions, "cl_nv_device_attribute_query") != NULL;
    const bool amd = strstr(extensions, "cl_amd_device_attribute_query") != NULL;
    const bool doubles = strstr(extensions, "cl_khr_fp64") != NULL;
    const bool atomics = strstr(extensions, "cl_khr_int64_base_atomics") != NULL && strstr(extensions, "cl_khr_int64_extended_atomics") != NULL;
    free(extensions);
    error = metafork_opencl_ask(cl, device, common, 6);
    if (error == METAFORK_OK && doubles) error = metafork_opencl_ask(cl, device, of_doubles, 1);
    if (error == METAFORK_OK && nvidia) error = metafork_opencl_ask(cl, device, of_nvidia, 4);
    if (error == METAFORK_OK && amd) error = metafork_opencl_ask(cl, device, of_amd, 1);
    if (error != METAFORK_OK) return error;
    if (threads < 1 || dimensions < 3 || dimensions > 16 || warp < 1) return METAFORK_ENODEVICE;

    const uint64_t ieee = METAFORK_CL_FP_DENORM | METAFORK_CL_FP_INF_NAN | METAFORK_CL_FP_ROUND_TO_NEAREST;
    place->gives = 0;
    place->most_argument_bytes = arguments;
    if ((twice & ieee) == ieee) place->gives |= METAFORK_CL_DOUBLES;
    if ((single & ieee) == ieee) place->gives |= METAFORK_CL_FLOATS;
    if ((single & METAFORK_CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0) place->gives |= METAFORK_CL_DIVIDES;
    if (atomics) place->gives |= METAFORK_CL_ATOMICS_64;
    metafork_machine *const out = &place->machine;
    memset(out, 0, sizeof *out);
    int64_t *const blocks[] = {&out->block_dim_x, &out->block_dim_y, &out->block_dim_z};
    int64_t *const grids[] = {&out->grid_dim_x, &out->grid_dim_y, &out->grid_dim_z};
    for (int axis = 0; axis < 3; axis++) {
        *blocks[axis] = sizes[axis] < 1 ? 1 : sizes[axis] > 65535 ? 65535 : (int64_t)sizes[axis];
        /* A launch has less than 2^32 threads in each direction. */
        *grids[axis] = (int64_t)UINT32_MAX / *blocks[axis];
        if (*grids[axis] > INT32_MAX) *grids[axis] = INT32_MAX;
    }
    out->threads_per_block = threads > 65535 ? 65535 : (int64_t)threads;
    out->shared_words = (int64_t)(local_bytes / 4);
    out->warp_size = (int64_t)warp;
    out->compute_capability = nvidia ? 10 * (int64_t)major + (int64_t)minor : 0;
    /* OpenCL knows no registers: where nobody says how many there are, no block lacks any. */
    out->registers_per_thread = nvidia && out->compute_capability < 35 ? 63 : 255;
    out->registers_per_block = nvidia ? (int64_t)registers : 255 * out->threads_per_block;
    /* Nor does it know of multiprocessors: one holds a block. */
    out->registers_per_sm = out->registers_per_block;
    out->shared_words_per_sm = out->shared_words;
    out->warps_per_sm = (out->threads_per_block + out->warp_size - 1) / out->warp_size;
    out->blocks_per_sm = out->shared_words_unit = 1;
    return METAFORK_OK;
}

/* Add a place, under the lock; `queue` is NULL where launches come with their own. */
static inline int metafork_opencl_add(metafork_opencl *cl, void *context, void *device, void *queue) {
    metafork_opencl_place *const one = &cl->places[cl->place_count];
    if (cl->place_count == METAFORK_MOST_PLACES) return METAFORK_ENOMEM;
    if (!metafork_own_device()) return METAFORK_EFORKED;
    if (!cl->ending && atexit(metafork_opencl_end) != 0) return METAFORK_ENOMEM;
    cl->ending = 1;
    const int error = metafork_opencl_read(cl, device, one);
    if (error != METAFORK_OK) return error;
    one->context = context;
    one->device = device;
    one->queue = queue;
    one->told = NULL;
    one->asked = false;
    cl->place_count++;
    return METAFORK_OK;
}

/* Make the process's own place, under the lock. */
static inline int metafork_opencl_begin(metafork_opencl *cl) {
    int failed = 0;
    const intptr_t properties[] = {METAFORK_CL_CONTEXT_PLATFORM, (intptr_t)cl->platform, 0};
    void *queue = NULL, *const context = cl->context_create(properties, 1, &cl->device, NULL, NULL, &failed);
    int error = metafork_taken(failed);
    if (error != METAFORK_OK) return error;
    queue = cl->queue_create(context, cl->device, 0, &failed);
    error = metafork_taken(failed);
    if (error == METAFORK_OK) error = metafork_opencl_add(cl, context, cl->device, queue);
    if (error == METAFORK_OK) return METAFORK_OK;
    if (queue != NULL) (void)cl->queue_release(queue);
    (void)cl->context_release(context);
    return error;
}

static inline int metafork_opencl_get(metafork_opencl **out) {
    metafork_opencl *const cl = metafork_opencl_of_process();
    pthread_mutex_lock(metafork_opencl_lock());
    if (!cl->tried) cl->error = metafork_opencl_open(cl);
    cl->tried = 1;
    int error = cl->error;
    if (error == METAFORK_OK && cl->place_count == 0) error = metafork_opencl_begin(cl);
    pthread_mutex_unlock(metafork_opencl_lock());
    *out = cl;
    return error;
}

/* The place that the calling thread launches at, as a number. */
static __thread int metafork_opencl_here;

/* Make the place of a queue the thread's; that of NULL is the process's own. */
static inline int metafork_opencl_enter(void *queue) {
    metafork_opencl *cl;
    void *context = NULL, *device = NULL;
    int at = 0, error = metafork_opencl_get(&cl);
    if (error != METAFORK_OK || queue == NULL) return error;
    error = metafork_taken(cl->queue_info(queue, METAFORK_CL_QUEUE_CONTEXT, sizeof context, &context, NULL));
    if (error == METAFORK_OK) error = metafork_taken(cl->queue_info(queue, METAFORK_CL_QUEUE_DEVICE, sizeof device, &device, NULL));
    if (error != METAFORK_OK) return error;
    pthread_mutex_lock(metafork_opencl_lock());
    while (at < cl->place_count && (cl->places[at].context != context || cl->places[at].device != device)) at++;
    if (at == cl->place_count) {
        error = metafork_taken(cl->context_retain(context));
        if (error == METAFORK_OK && (error = metafork_opencl_add(cl, context, device, NULL)) != METAFORK_OK) (void)cl->context_release(context);
    }
    pthread_mutex_unlock(metafork_opencl_lock());
    if (error == METAFORK_OK) metafork_opencl_here = at;
    return error;
}

static inline void metafork_opencl_leave(void) { metafork_opencl_here = 0; }

/* ---- what launch.h asks for ---- */

static inline int metafork_current_device(int *device) {
    metafork_opencl *cl;
    *device = metafork_opencl_here;
    return metafork_opencl_get(&cl);
}

static inline int metafork_hardware_query(int device, metafork_machine *out) {
    metafork_opencl *cl;
    int error = metafork_opencl_get(&cl);
    if (error != METAFORK_OK) return error;
    pthread_mutex_lock(metafork_opencl_lock());
    if (device >= 0 && device < cl->place_count)
        *out = cl->places[device].machine;
    else
        error = METAFORK_EINVAL;
    pthread_mutex_unlock(metafork_opencl_lock());
    return error;
}

/* The buffer that holds made-up addresses, or NULL. */
static inline void *metafork_opencl_holding(metafork_opencl *cl, const void *address, size_t *offset) {
    void *memory = NULL;
    pthread_mutex_lock(metafork_opencl_lock());
    for (const metafork_opencl_buffer *one = cl->buffers; one != NULL && memory == NULL; one = one->next)
        if ((uintptr_t)address - one->address < (uintptr_t)one->bytes) {
            memory = one->memory;
            *offset = (size_t)((uintptr_t)address - one->address);
        }
    pthread_mutex_unlock(metafork_opencl_lock());
    return memory;
}

static inline int metafork_device_allocate(int device, void **out, int64_t bytes) {
    metafork_opencl *cl;
    int failed = 0, error = metafork_opencl_get(&cl);
    *out = NULL;
    if (error != METAFORK_OK) return error;
    if (device != 0 || bytes < 1 || bytes > INT64_MAX / 2) return METAFORK_EINVAL;
    metafork_opencl_buffer *const one = (metafork_opencl_buffer *)calloc(1, sizeof *one);
    if (one == NULL) return METAFORK_ENOMEM;
    one->bytes = bytes;
    /* Whole words: narrow values are updated in the word around them. */
    one->memory = cl->buffer_create(cl->places[0].context, METAFORK_CL_MEM_READ_WRITE, ((size_t)bytes + 3) / 4 * 4, NULL, &failed);
    error = metafork_taken(failed);
    if (error != METAFORK_OK) {
        free(one);
        return error;
    }
    pthread_mutex_lock(metafork_opencl_lock());
    one->address = cl->next_address;
    cl->next_address += ((uintptr_t)bytes / 4096 + 2) * 4096;
    one->next = cl->buffers;
    cl->buffers = one;
    pthread_mutex_unlock(metafork_opencl_lock());
    *out = (void *)one->address;
    return METAFORK_OK;
}

static inline void metafork_device_free(int device, void *memory) {
    metafork_opencl *const cl = metafork_opencl_of_process();
    metafork_opencl_buffer *found = NULL;
    if (device != 0) return;
    pthread_mutex_lock(metafork_opencl_lock());
    for (metafork_opencl_buffer **at = &cl->buffers; *at != NULL && found == NULL;)
        if ((*at)->address == (uintptr_t)memory) {
            found = *at;
            *at = found->next;
        } else {
            at = &(*at)->next;
        }
    pthread_mutex_unlock(metafork_opencl_lock());
    if (found != NULL) (void)cl->buffer_release(found->memory);
    free(found);
}

static inline int metafork_device_copy(int device, void *to, const void *from, int64_t bytes, bool to_device) {
    metafork_opencl *cl;
    size_t offset = 0;
    const int error = metafork_opencl_get(&cl);
    if (error != METAFORK_OK) return error;
    void *const memory = device == 0 ? metafork_opencl_holding(cl, to_device ? to : from, &offset) : NULL;
    if (memory == NULL) return METAFORK_EINVAL;
    if (to_device) return metafork_taken(cl->write(cl->places[0].queue, memory, 1, offset, (size_t)bytes, from, 0, NULL, NULL));
    return metafork_taken(cl->read(cl->places[0].queue, memory, 1, offset, (size_t)bytes, to, 0, NULL, NULL));
}

static inline int metafork_device_copy_rows(int device, void *to, const void *from, int64_t width, int64_t stride, int64_t rows, bool to_device) {
    metafork_opencl *cl;
    size_t offset = 0;
    const int error = metafork_opencl_get(&cl);
    if (error != METAFORK_OK) return error;
    void *const memory = device == 0 ? metafork_opencl_holding(cl, to_device ? to : from, &offset) : NULL;
    if (memory == NULL) return METAFORK_EINVAL;
    const size_t pitch = (size_t)stride, here[3] = {offset % pitch, offset / pitch, 0}, there[3] = {0, 0, 0};
    const size_t region[3] = {(size_t)width, (size_t)rows, 1};
    void *const queue = cl->places[0].queue;
    if (to_device) return metafork_taken(cl->write_rows(queue, memory, 1, here, there, region, pitch, 0, pitch, 0, from, 0, NULL, NULL));
    return metafork_taken(cl->read_rows(queue, memory, 1, here, there, region, pitch, 0, pitch, 0, to, 0, NULL, NULL));
}

static inline int metafork_finish(void) {
    metafork_opencl *cl;
    const int error = metafork_opencl_get(&cl);
    return error != METAFORK_OK ? error : metafork_taken(cl->finish(cl->places[0].queue));
}

/* ---- streams: queues that run in order ---- */

static inline int metafork_stream_make(int device, void **out) {
    metafork_opencl *cl;
    int at = 0, failed = 0, error = metafork_opencl_get(&cl);
    if (error != METAFORK_OK) return error;
    if (device != 0) return METAFORK_EUNSUPPORTED;
    pthread_mutex_lock(metafork_opencl_lock());
    while (at < METAFORK_MOST_QUEUES && cl->queues[at] != NULL) at++;
    *out = at < METAFORK_MOST_QUEUES ? cl->queue_create(cl->places[0].context, cl->places[0].device, 0, &failed) : NULL;
    error = at < METAFORK_MOST_QUEUES ? metafork_taken(failed) : METAFORK_ENOMEM;
    if (error == METAFORK_OK) cl->queues[at] = *out;
    pthread_mutex_unlock(metafork_opencl_lock());
    return error;
}

/* Whether a queue is one that was made here, and is given back where asked for. */
static inline bool metafork_opencl_is_own(metafork_opencl *cl, void *queue, bool give_back) {
    bool own = false;
    pthread_mutex_lock(metafork_opencl_lock());
    for (int i = 0; i < METAFORK_MOST_QUEUES && queue != NULL; i++)
        if (cl->queues[i] == queue) {
            own = true;
            if (give_back) cl->queues[i] = NULL;
        }
    pthread_mutex_unlock(metafork_opencl_lock());
    return own;
}

static inline void metafork_stream_free(int device, void *stream) {
    metafork_opencl *const cl = metafork_opencl_of_process();
    (void)device;
    if (metafork_opencl_is_own(cl, stream, true)) (void)cl->queue_release(stream);
}

static inline int metafork_stream_finish(int device, void *stream) {
    (void)device;
    return metafork_taken(metafork_opencl_of_process()->finish(stream));
}

static inline int metafork_stream_follow(int device, void *stream, void *event) {
    (void)device;
    return metafork_taken(metafork_opencl_of_process()->barrier(stream, 1, &event, NULL));
}

/* Other queues may wait only for what was flushed. */
static inline int metafork_event_record(int device, void *stream, void **event) {
    metafork_opencl *const cl = metafork_opencl_of_process();
    void *next = NULL;
    const int error = metafork_taken(cl->marker(stream, 0, NULL, &next));
    (void)device;
    if (error != METAFORK_OK) return error;
    if (*event != NULL) (void)cl->event_release(*event);
    *event = next;
    return metafork_taken(cl->flush(stream));
}

static inline int metafork_event_await(int device, void *event) {
    (void)device;
    return metafork_taken(metafork_opencl_of_process()->event_await(1, &event));
}

static inline void metafork_event_free(int device, void *event) {
    (void)device;
    (void)metafork_opencl_of_process()->event_release(event);
}

static inline int metafork_pinned_allocate(int device, void **out, int64_t bytes) {
    metafork_opencl *cl;
    int failed = 0;
    const int error = metafork_opencl_get(&cl);
    if (error != METAFORK_OK) return error;
    if (device != 0) return METAFORK_EUNSUPPORTED;
    metafork_opencl_pinned *const one = (metafork_opencl_pinned *)calloc(1, sizeof *one);
    if (one == NULL) return METAFORK_ENOMEM;
    one->memory = cl->buffer_create(cl->places[0].context, METAFORK_CL_MEM_READ_WRITE | METAFORK_CL_MEM_ALLOC_HOST_PTR, (size_t)bytes, NULL, &failed);
    if (failed == 0) {
        one->mapped = cl->map(cl->places[0].queue, one->memory, 1, METAFORK_CL_MAP_READ | METAFORK_CL_MAP_WRITE, 0, (size_t)bytes, 0, NULL, NULL, &failed);
        if (failed != 0) (void)cl->buffer_release(one->memory);
    }
    if (failed != 0) {
        free(one);
        return metafork_taken(failed);
    }
    *out = one->mapped;
    pthread_mutex_lock(metafork_opencl_lock());
    one->next = cl->pinned;
    cl->pinned = one;
    pthread_mutex_unlock(metafork_opencl_lock());
    return METAFORK_OK;
}

static inline void metafork_pinned_free(int device, void *memory) {
    metafork_opencl *const cl = metafork_opencl_of_process();
    metafork_opencl_pinned *found = NULL;
    (void)device;
    pthread_mutex_lock(metafork_opencl_lock());
    for (metafork_opencl_pinned **at = &cl->pinned; *at != NULL && found == NULL;)
        if ((*at)->mapped == memory) {
            found = *at;
            *at = found->next;
        } else {
            at = &(*at)->next;
        }
    pthread_mutex_unlock(metafork_opencl_lock());
    if (found == NULL) return;
    (void)cl->unmap(cl->places[0].queue, found->memory, found->mapped, 0, NULL, NULL);
    (void)cl->finish(cl->places[0].queue);
    (void)cl->buffer_release(found->memory);
    free(found);
}

/* Devices are not reset here. */
static inline bool metafork_pinned_is(int device, void *memory) { return (void)device, (void)memory, true; }
static inline bool metafork_captured(int device, void *stream) { return (void)device, (void)stream, false; }

static inline int metafork_copy_begin(int device, void *stream, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                                      metafork_rows rows, bool to_device) {
    metafork_opencl *const cl = metafork_opencl_of_process();
    size_t offset = 0;
    void *const memory = device == 0 ? metafork_opencl_holding(cl, to_device ? to : from, &offset) : NULL;
    const size_t width = (size_t)rows.width;
    if (memory == NULL) return METAFORK_EINVAL;
    if (rows.count == 1 && to_device) return metafork_taken(cl->write(stream, memory, 0, offset, width, from, 0, NULL, NULL));
    if (rows.count == 1) return metafork_taken(cl->read(stream, memory, 0, offset, width, to, 0, NULL, NULL));
    const size_t pitch = (size_t)(to_device ? to_stride : from_stride), packed = (size_t)(to_device ? from_stride : to_stride);
    const size_t here[3] = {offset % pitch, offset / pitch, 0}, there[3] = {0, 0, 0}, region[3] = {width, (size_t)rows.count, 1};
    if (to_device) return metafork_taken(cl->write_rows(stream, memory, 0, here, there, region, pitch, 0, packed, 0, from, 0, NULL, NULL));
    return metafork_taken(cl->read_rows(stream, memory, 0, here, there, region, pitch, 0, packed, 0, to, 0, NULL, NULL));
}

/* ---- kernels ---- */

/* Show what the compiler said. */
static inline void metafork_opencl_show(metafork_opencl *cl, metafork_opencl_kernel *kernel, const metafork_opencl_place *place, void *program,
                                        int error) {
    size_t length = 0;
    char *log = NULL;
    if (kernel->said) return;
    kernel->said = 1;
    if (cl->program_info(program, place->device, METAFORK_CL_PROGRAM_BUILD_LOG, 0, NULL, &length) == 0) log = (char *)calloc(length + 1, 1);
    if (log != NULL && cl->program_info(program, place->device, METAFORK_CL_PROGRAM_BUILD_LOG, length, log, NULL) != 0) log[0] = '\0';
    fprintf(stderr, "metafork: %s: the OpenCL compiler does not build it: error %d%s%s\n", kernel->name, error,
            log != NULL && log[0] != '\0' ? "\n" : "", log != NULL ? log : "");
    free(log);
}

/* Say what the device lacks, once a kernel. */
static inline int metafork_opencl_lacks(metafork_opencl_kernel *kernel, unsigned lacking) {
    static const char *const texts[] = {"doubles", "floats with denormals", "correctly rounded division and square root of floats",
                                        "atomic updates of 64 bits"};
    for (int i = 0; i < 4 && !kernel->said; i++)
        if ((lacking >> i & 1u) != 0) {
            fprintf(stderr, "metafork: %s: the device has no %s\n", kernel->name, texts[i]);
            kernel->said = 1;
        }
    return METAFORK_EUNSUPPORTED;
}

/* Device and driver of a place in one text: what a built program depends on beside its own text and options. */
static inline const char *metafork_opencl_identity(metafork_opencl *cl, metafork_opencl_place *place) {
    enum { COUNT = 4 };
    const unsigned asked[COUNT] = {METAFORK_CL_DEVICE_NAME, METAFORK_CL_DEVICE_VENDOR, METAFORK_CL_DEVICE_VERSION, METAFORK_CL_DRIVER_VERSION};
    char *texts[COUNT] = {NULL};
    size_t length = 1;
    int error = METAFORK_OK;
    if (place->asked) return place->told;
    place->asked = true;
    for (int i = 0; i < COUNT && error == METAFORK_OK; i++)
        if ((texts[i] = metafork_opencl_told(cl, place->device, asked[i], &error)) != NULL) length += strlen(texts[i]) + 1;
    if (error == METAFORK_OK && (place->told = (char *)calloc(length, 1)) != NULL)
        for (int i = 0; i < COUNT; i++) {
            strcat(place->told, texts[i]);
            strcat(place->told, "\n");
        }
    for (int i = 0; i < COUNT; i++) free(texts[i]);
    return place->told;
}

/* What a program is kept under: all that it is built of.  No bytes where nothing is to be kept. */
static inline metafork_blob metafork_opencl_key(metafork_opencl *cl, const char *text, metafork_opencl_place *place, const char *options) {
    char folder[METAFORK_CACHE_PATH];
    metafork_blob key = {NULL, 0};
    if (!metafork_cache_folder(folder, sizeof folder)) return key;
    const char *const identity = metafork_opencl_identity(cl, place);
    if (identity == NULL) return key;
    const char *const parts[] = {"OpenCL 1\n", identity, options, "\n", metafork_opencl_prelude, text};
    size_t length = 1;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) length += strlen(parts[i]);
    key.data = (unsigned char *)calloc(length, 1);
    for (size_t i = 0; key.data != NULL && i < sizeof parts / sizeof parts[0]; i++) {
        const size_t own = strlen(parts[i]);
        memcpy(key.data + key.length, parts[i], own);
        key.length += own;
    }
    return key;
}

/* Keep what was built for a place. */
static inline void metafork_opencl_keep(metafork_opencl *cl, const metafork_opencl_place *place, void *program, metafork_blob key) {
    void *devices[METAFORK_MOST_DEVICES];
    size_t sizes[METAFORK_MOST_DEVICES] = {0};
    unsigned char *binaries[METAFORK_MOST_DEVICES] = {NULL};
    unsigned count = 0, at = 0;
    if (cl->program_about(program, METAFORK_CL_PROGRAM_NUM_DEVICES, sizeof count, &count, NULL) != 0 || count > METAFORK_MOST_DEVICES) return;
    if (cl->program_about(program, METAFORK_CL_PROGRAM_DEVICES, count * sizeof devices[0], devices, NULL) != 0) return;
    if (cl->program_about(program, METAFORK_CL_PROGRAM_BINARY_SIZES, count * sizeof sizes[0], sizes, NULL) != 0) return;
    while (at < count && devices[at] != place->device) at++;
    if (at == count || sizes[at] == 0 || (binaries[at] = (unsigned char *)malloc(sizes[at])) == NULL) return;
    const metafork_blob content = {binaries[at], sizes[at]};
    if (cl->program_about(program, METAFORK_CL_PROGRAM_BINARIES, count * sizeof binaries[0], binaries, NULL) == 0) metafork_cache_write(key, content);
    free(binaries[at]);
}

/* Make the kernel of a built program, which is released where that fails. */
static inline int metafork_opencl_finish(metafork_opencl *cl, const char *name, const metafork_opencl_place *place, metafork_opencl_built *out) {
    size_t threads = 0;
    uint64_t local_bytes = 0;
    int failed = 0;
    out->kernel = cl->kernel_create(out->program, name, &failed);
    if (failed == 0) failed = cl->kernel_info(out->kernel, place->device, METAFORK_CL_KERNEL_WORK_GROUP_SIZE, sizeof threads, &threads, NULL);
    if (failed == 0)
        failed = cl->kernel_info(out->kernel, place->device, METAFORK_CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes, &local_bytes, NULL);
    if (failed != 0) {
        if (out->kernel != NULL) (void)cl->kernel_release(out->kernel);
        (void)cl->program_release(out->program);
        out->kernel = out->program = NULL;
        return failed;
    }
    out->attributes.registers = -1;
    out->attributes.threads = (int64_t)threads;
    out->attributes.shared_bytes = (int64_t)local_bytes;
    return 0;
}

/* Take a program of an earlier run; false where there is none, or the device does not take it. */
static inline bool metafork_opencl_kept(metafork_opencl *cl, const char *name, const metafork_opencl_place *place, const char *options,
                                        metafork_blob key, metafork_opencl_built *out) {
    const metafork_blob content = metafork_cache_read(key);
    const unsigned char *binary = content.data;
    int failed = 0, result = 0;
    if (binary == NULL) return false;
    out->program = cl->program_take(place->context, 1, &place->device, &content.length, &binary, &result, &failed);
    free(content.data);
    if (failed == 0 && (result != 0 || cl->program_build(out->program, 1, &place->device, options, NULL, NULL) != 0)) {
        (void)cl->program_release(out->program);
        failed = -1;
    }
    if (failed != 0) out->program = NULL;
    return failed == 0 && metafork_opencl_finish(cl, name, place, out) == 0;
}

/* Build a program from its text. */
static inline int metafork_opencl_compile(metafork_opencl *cl, metafork_opencl_kernel *kernel, const metafork_opencl_place *place, const char *options,
                                          metafork_opencl_built *out) {
    const char *texts[] = {metafork_opencl_prelude, kernel->text};
    int failed = 0;
    out->program = cl->program_create(place->context, 2, texts, NULL, &failed);
    if (failed != 0) return failed;
    failed = cl->program_build(out->program, 1, &place->device, options, NULL, NULL);
    if (failed == 0) return metafork_opencl_finish(cl, kernel->name, place, out);
    metafork_opencl_show(cl, kernel, place, out->program, failed);
    (void)cl->program_release(out->program);
    return failed;
}

/* Build a kernel for a place, under the lock. */
static inline int metafork_opencl_build(metafork_opencl *cl, metafork_opencl_kernel *kernel, metafork_opencl_place *place, metafork_opencl_built *out) {
    /* PoCL's optimizer was seen to lose the stores of a loop between barriers (version 3.0). */
    const char *const more = place->pocl ? " -cl-opt-disable" : "";
    char options[128];
    const unsigned lacking = kernel->needs & ~place->gives;
    if (lacking != 0) return metafork_opencl_lacks(kernel, lacking);
    if (kernel->argument_bytes > place->most_argument_bytes) {
        if (!kernel->said)
            fprintf(stderr, "metafork: %s: the device has no room for %llu bytes of arguments, but for %llu\n", kernel->name,
                    (unsigned long long)kernel->argument_bytes, (unsigned long long)place->most_argument_bytes);
        kernel->said = 1;
        return METAFORK_EUNSUPPORTED;
    }
    snprintf(options, sizeof options, "-cl-std=CL1.2 -DMETAFORK_LARGE=%d%s%s", kernel->large,
             (kernel->needs & METAFORK_CL_DIVIDES) != 0 ? " -cl-fp32-correctly-rounded-divide-sqrt" : "", more);
    const metafork_blob key = metafork_opencl_key(cl, kernel->text, place, options);
    int failed = 0;
    if (key.data == NULL || !metafork_opencl_kept(cl, kernel->name, place, options, key, out)) {
        failed = metafork_opencl_compile(cl, kernel, place, options, out);
        if (failed == 0 && key.data != NULL) metafork_opencl_keep(cl, place, out->program, key);
    }
    free(key.data);
    return metafork_taken(failed);
}

/* What a kernel is at the thread's place, under the lock; it is built at the first call. */
static inline int metafork_opencl_built_here(metafork_opencl *cl, metafork_opencl_kernel *kernel, metafork_opencl_built **out) {
    const int place = metafork_opencl_here;
    metafork_opencl_built *one = kernel->built;
    while (one != NULL && one->place != place) one = one->next;
    *out = one;
    if (one != NULL) return METAFORK_OK;
    one = (metafork_opencl_built *)calloc(1, sizeof *one);
    const int error = one == NULL ? METAFORK_ENOMEM : metafork_opencl_build(cl, kernel, &cl->places[place], one);
    if (error != METAFORK_OK) {
        free(one);
        return error;
    }
    one->of = kernel;
    one->place = place;
    one->next = kernel->built;
    one->next_of_all = cl->all;
    *out = kernel->built = cl->all = one;
    return METAFORK_OK;
}

static inline int metafork_kernel_attributes(const void *kernel, metafork_attributes *out) {
    metafork_opencl *cl;
    metafork_opencl_built *one = NULL;
    int error = metafork_opencl_get(&cl);
    if (error != METAFORK_OK) return error;
    pthread_mutex_lock(metafork_opencl_lock());
    error = metafork_opencl_built_here(cl, (metafork_opencl_kernel *)kernel, &one);
    pthread_mutex_unlock(metafork_opencl_lock());
    if (error == METAFORK_OK) *out = one->attributes;
    return error;
}


METAFORK_RUNTIME int metafork_check_shape(metafork_shape *shape, const void *const *functions);

/* Check a shape of one of two kernels on the device of a queue. */
static inline int metafork_opencl_check(metafork_opencl_kernel *kernels, metafork_shape *shape, void *queue) {
    const void *const functions[] = {&kernels[0], &kernels[1]};
    int error = metafork_opencl_enter(queue);
    if (error == METAFORK_OK) error = metafork_check_shape(shape, functions);
    metafork_opencl_leave();
    return error;
}

/* The arguments of a launch: scalars with their sizes, then arrays. */
typedef struct metafork_opencl_arguments {
    const void *const *scalars;
    const size_t *sizes;
    unsigned scalar_count;
    const void *const *arrays;
    unsigned array_count;
} metafork_opencl_arguments;

/* Set the arguments of a kernel, under the lock.  Arrays on a queue of the caller's are cl_mems. */
static inline int metafork_opencl_set(metafork_opencl *cl, const metafork_opencl_built *one, const metafork_opencl_arguments *arguments,
                                      void *const *memories, const uint64_t *offsets, int64_t shared_bytes) {
    unsigned next = 0;
    int failed = 0;
    for (unsigned i = 0; i < arguments->scalar_count && failed == 0; i++)
        failed = cl->kernel_set(one->kernel, next++, arguments->sizes[i], arguments->scalars[i]);
    for (unsigned i = 0; i < arguments->array_count && failed == 0; i++) {
        failed = cl->kernel_set(one->kernel, next++, sizeof memories[i], &memories[i]);
        if (failed == 0) failed = cl->kernel_set(one->kernel, next++, sizeof offsets[i], &offsets[i]);
    }
    const size_t room = shared_bytes < 16 ? 16 : (size_t)(shared_bytes + 15) / 16 * 16;
    if (failed == 0 && one->of->shared) failed = cl->kernel_set(one->kernel, next, room, NULL);
    return metafork_taken(failed);
}

/* Launch a checked shape. */
static inline int metafork_opencl_launch(metafork_opencl_kernel *kernels, const metafork_shape *shape, void *queue,
                                         const metafork_opencl_arguments *arguments) {
    enum { MOST = 64 };
    metafork_opencl *cl;
    metafork_opencl_built *one = NULL;
    void *memories[MOST];
    uint64_t offsets[MOST];
    size_t global[3], local[3];
    int error = arguments->array_count > MOST ? METAFORK_EINVAL : metafork_opencl_get(&cl);
    if (error != METAFORK_OK) return error;
    const bool own = queue == NULL || metafork_opencl_is_own(cl, queue, false);
    for (unsigned i = 0; i < arguments->array_count; i++) {
        size_t offset = 0;
        memories[i] = own ? metafork_opencl_holding(cl, arguments->arrays[i], &offset) : (void *)arguments->arrays[i];
        offsets[i] = offset;
        if (own && arguments->arrays[i] != NULL && memories[i] == NULL) return METAFORK_EINVAL;
    }
    for (int axis = 0; axis < 3; axis++) {
        local[axis] = (size_t)shape->block[axis];
        global[axis] = (size_t)(shape->grid[axis] * shape->block[axis]);
    }
    error = metafork_opencl_enter(queue);
    if (error != METAFORK_OK) return error;
    void *const on = queue != NULL ? queue : cl->places[0].queue;
    pthread_mutex_lock(metafork_opencl_lock());
    error = metafork_opencl_built_here(cl, &kernels[shape->large], &one);
    if (error == METAFORK_OK) error = metafork_opencl_set(cl, one, arguments, memories, offsets, shape->shared_bytes);
    if (error == METAFORK_OK) error = metafork_taken(cl->launch(on, one->kernel, 3, NULL, global, local, 0, NULL, NULL));
    if (error == METAFORK_OK) error = metafork_taken(cl->flush(on));
    pthread_mutex_unlock(metafork_opencl_lock());
    metafork_opencl_leave();
    return error;
}

#endif
