/* OpenCL's library for tests: it finds PoCL where STANDIN_POCL says, hands every call on to it, checks and counts.
 *
 * A vendor's library as the wheel has it exports one function; the others stand in the table that each of its objects begins
 * with, in the order of cl_icd.h.
 *
 *   STANDIN_POCL      the path of the vendor's library
 *   STANDIN_LOG       the file that gets a line for each call, each violation, and what is left when the program ends
 *   STANDIN_FAIL=7    the seventh call fails with -9999 before it does anything; 7:-5 with that error; 7+ all from the seventh on
 *   STANDIN_DEVICES=0 there is no device
 *   STANDIN_GPU=90    the device says that it is a GPU of NVIDIA's of compute capability 9.0, with what the extension for its attributes tells
 *   STANDIN_FLOATS    what the device says of floats (a number), else what PoCL says
 *   STANDIN_EXTENSIONS=0  the device says that it has none
 *   STANDIN_LOCAL     bytes of local memory that the device says it has
 *   STANDIN_DRIVER    the version that the driver says it has
 *   STANDIN_ORDER     what is enqueued and not waited for takes effect late (late_streams.h); else as PoCL has it
 */
#include "late_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    DEVICES = 2, DEVICE_INFO = 3, CREATE_CONTEXT = 4, RETAIN_CONTEXT = 6, RELEASE_CONTEXT = 7, CREATE_QUEUE = 9, RELEASE_QUEUE = 11,
    QUEUE_INFO = 12, CREATE_BUFFER = 14, RELEASE_MEMORY = 18, CREATE_PROGRAM = 26, TAKE_PROGRAM = 27, RELEASE_PROGRAM = 29,
    BUILD_PROGRAM = 30, PROGRAM_INFO = 32, BUILD_INFO = 33, CREATE_KERNEL = 34, RELEASE_KERNEL = 37, SET_ARGUMENT = 38,
    KERNEL_INFO = 40, AWAIT_EVENTS = 41, RELEASE_EVENT = 44, FLUSH = 46, FINISH = 47, READ = 48, WRITE = 49, MAP = 56, UNMAP = 58,
    LAUNCH = 59, READ_RECTANGLE = 86, WRITE_RECTANGLE = 87, MARKER = 105, BARRIER = 106
};
enum { FAILURE = -9999, INVALID_VALUE = -30, NOT_FOUND = -1, OBJECTS = 1024, ARGUMENTS = 96 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the whole of a call (ALONE) */
static FILE *log_file;
static int calls, failing, lost, failure = FAILURE;
static void *vendor;
static struct {
    void *object;
    const char *kind;
    int held;
    char name[256];
    void *stream; /* of a queue whose commands are late */
    size_t bytes; /* of a mapped buffer */
    struct {
        size_t size; /* 0: none was set */
        int local;
        unsigned char value[16];
    } arguments[ARGUMENTS]; /* of a kernel */
} objects[OBJECTS];
static int object_count;

static void tell(const char *form, ...) {
    va_list values;
    va_start(values, form);
    if (log_file != NULL) {
        vfprintf(log_file, form, values);
        fflush(log_file);
    }
    va_end(values);
}

__attribute__((constructor)) static void begin(void) {
    const char *const fail = getenv("STANDIN_FAIL"), *const path = getenv("STANDIN_LOG");
    if (path != NULL) log_file = fopen(path, "a");
    if (fail == NULL) return;
    char *end;
    failing = (int)strtol(fail, &end, 10);
    if (*end == ':') failure = (int)strtol(end + 1, &end, 10);
    lost = *end == '+';
}

__attribute__((destructor)) static void end(void) {
    for (int i = 0; i < object_count; i++)
        if (objects[i].held != 0) tell("left %s held %d times\n", objects[i].kind, objects[i].held);
    tell("end after %d calls\n", calls);
    if (log_file != NULL) fclose(log_file);
}

/* A call begins: whether it is the one that fails. */
static int begun(const char *name) {
    const int number = ++calls;
    tell("%d %s\n", number, name);
    return number == failing || (lost && number > failing) ? failure : 0;
}

static int place_of(const void *object, const char *kind) {
    for (int i = object_count - 1; i >= 0; i--)
        if (objects[i].object == object && objects[i].held > 0 && strcmp(objects[i].kind, kind) == 0) return i;
    return -1;
}

static void *late_of(const void *queue) {
    const int at = place_of(queue, "queue");
    return at < 0 ? NULL : objects[at].stream;
}

static void hold(void *object, const char *kind, const char *name) {
    int at = place_of(object, kind);
    if (at < 0) {
        /* There are many events and buffers, one after the other. */
        for (at = 0; at < object_count && objects[at].held > 0; at++) {}
        if (at == OBJECTS) abort();
        if (at == object_count) object_count++;
        memset(&objects[at], 0, sizeof objects[at]);
        objects[at].object = object;
        objects[at].kind = kind;
        objects[at].stream = strcmp(kind, "queue") == 0 && getenv("STANDIN_ORDER") != NULL ? late_make() : NULL;
        snprintf(objects[at].name, sizeof objects[at].name, "%s", name);
    }
    objects[at].held++;
}

/* Whether an object of that kind is held; says so where it is not. */
static int held(const void *object, const char *kind, const char *function) {
    const int at = place_of(object, kind);
    if (at < 0) tell("violation: %s: no %s of this program\n", function, kind);
    return at >= 0;
}

static void let_go(void *object, const char *kind) { objects[place_of(object, kind)].held--; }

static void *function_of(const void *object, int index) { return (*(void ***)object)[index]; }

/* Calls of several threads come one after the other.  A late launch sets a kernel's arguments for a while: no other thread may
 * set some meanwhile. */
static int enter(void) { return pthread_mutex_lock(&lock); }
static void leave(int *entered) { (void)entered, pthread_mutex_unlock(&lock); }

#define ALONE() __attribute__((cleanup(leave), unused)) int entered_ = enter()

#define BEGIN()                                                                                                        \
    ALONE();                                                                                                           \
    do {                                                                                                               \
        const int begun_ = begun(__func__);                                                                            \
        if (begun_ != 0) return begun_;                                                                                \
    } while (0)
#define BEGIN_MAKING()                                                                                                 \
    ALONE();                                                                                                           \
    do {                                                                                                               \
        *error = begun(__func__);                                                                                      \
        if (*error != 0) return NULL;                                                                                  \
    } while (0)
#define NEED(object, kind)                                                                                             \
    do {                                                                                                               \
        if (!held(object, kind, __func__)) return INVALID_VALUE;                                                       \
    } while (0)
#define CALL(result, object, index, ...) ((result(*)())function_of(object, index))(__VA_ARGS__)

/* The processor that kernels are compiled for where PoCL does not know the one that they run on. */
static char *known_processor(void) {
    return strdup(__builtin_cpu_supports("avx512vl") ? "skylake-avx512" : __builtin_cpu_supports("avx2") ? "haswell" : "x86-64");
}

/* A processor newer than PoCL's LLVM is "generic" to it, a name that its compiler then refuses: the function of the loaded
 * library that gives the name becomes a jump to ours (movabs rax, address; jmp rax). */
static void name_processor(void) {
    void *const function = dlsym(vendor, "pocl_get_llvm_cpu_name");
    if (function == NULL) return;
    char *const name = ((char *(*)(void))function)();
    const int known = name != NULL && strcmp(name, "generic") != 0;
    free(name);
    if (known) return;
    char *(*const ours)(void) = known_processor;
    unsigned char jump[12] = {0x48, 0xb8, [10] = 0xff, 0xe0};
    memcpy(jump + 2, &ours, sizeof ours);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)function & ~(page - 1);
    const size_t length = (uintptr_t)function + sizeof jump - first;
    if (mprotect((void *)first, length, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
    memcpy(function, jump, sizeof jump);
    mprotect((void *)first, length, PROT_READ | PROT_EXEC);
}

int clGetPlatformIDs(unsigned room, void **platforms, unsigned *count) {
    BEGIN();
    const char *const path = getenv("STANDIN_POCL");
    if (vendor == NULL && path != NULL) {
        vendor = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (vendor != NULL) name_processor();
    }
    if (vendor == NULL) return -1001;
    void *(*const extension)(const char *) = (void *(*)(const char *))dlsym(vendor, "clGetExtensionFunctionAddress");
    return ((int (*)(unsigned, void **, unsigned *))extension("clIcdGetPlatformIDsKHR"))(room, platforms, count);
}

int clGetDeviceIDs(void *platform, uint64_t type, unsigned room, void **devices, unsigned *count) {
    BEGIN();
    const char *const some = getenv("STANDIN_DEVICES");
    if (some != NULL && atoi(some) == 0) return NOT_FOUND;
    return CALL(int, platform, DEVICES, platform, type, room, devices, count);
}

/* What the environment has the device say. */
static int said(unsigned what, void *value, size_t *size) {
    const char *const floats = getenv("STANDIN_FLOATS"), *const extensions = getenv("STANDIN_EXTENSIONS"), *const room = getenv("STANDIN_LOCAL");
    const char *const driver = getenv("STANDIN_DRIVER");
    const int gpu = getenv("STANDIN_GPU") != NULL, capability = gpu ? atoi(getenv("STANDIN_GPU")) : 0;
    static const char of_a_gpu[] = "cl_khr_fp64 cl_nv_device_attribute_query";
    const struct {
        unsigned what, value;
    } nvidia[] = {{0x4000, (unsigned)capability / 10}, {0x4001, (unsigned)capability % 10}, {0x4002, 65536}, {0x4003, 32}};
    if (what == 0x101B && floats != NULL) *(uint64_t *)value = strtoul(floats, NULL, 10);
    else if (what == 0x1023 && room != NULL) *(uint64_t *)value = strtoul(room, NULL, 10);
    else if (what == 0x1017 && getenv("STANDIN_ARGUMENTS") != NULL) *(size_t *)value = strtoul(getenv("STANDIN_ARGUMENTS"), NULL, 10);
    else if (what == 0x1000 && gpu) *(uint64_t *)value = 4;
    else if (what == 0x102D && driver != NULL) {
        if (size != NULL) *size = strlen(driver) + 1;
        if (value != NULL) strcpy(value, driver);
    } else if (what == 0x1030 && (gpu || extensions != NULL)) {
        const char *const text = gpu ? of_a_gpu : "";
        if (size != NULL) *size = strlen(text) + 1;
        if (value != NULL) strcpy(value, text);
    } else {
        for (int i = 0; gpu && i < 4; i++)
            if (nvidia[i].what == what) {
                *(unsigned *)value = nvidia[i].value;
                return 1;
            }
        return 0;
    }
    return 1;
}

int clGetDeviceInfo(void *device, unsigned what, size_t room, void *value, size_t *size) {
    BEGIN();
    if (said(what, value, size)) return 0;
    return CALL(int, device, DEVICE_INFO, device, what, room, value, size);
}

void *clCreateContext(const intptr_t *properties, unsigned count, void *const *devices, void *notify, void *user, int *error) {
    BEGIN_MAKING();
    void *const made = CALL(void *, devices[0], CREATE_CONTEXT, properties, count, devices, notify, user, error);
    if (made != NULL) hold(made, "context", "");
    return made;
}

int clRetainContext(void *context) {
    BEGIN();
    NEED(context, "context");
    hold(context, "context", "");
    return CALL(int, context, RETAIN_CONTEXT, context);
}

int clReleaseContext(void *context) {
    BEGIN();
    NEED(context, "context");
    let_go(context, "context");
    return CALL(int, context, RELEASE_CONTEXT, context);
}

void *clCreateCommandQueue(void *context, void *device, uint64_t properties, int *error) {
    BEGIN_MAKING();
    void *const made = CALL(void *, context, CREATE_QUEUE, context, device, properties, error);
    if (made != NULL) hold(made, "queue", "");
    return made;
}

int clReleaseCommandQueue(void *queue) {
    BEGIN();
    NEED(queue, "queue");
    if (late_of(queue) != NULL) late_end(late_of(queue));
    let_go(queue, "queue");
    return CALL(int, queue, RELEASE_QUEUE, queue);
}

int clGetCommandQueueInfo(void *queue, unsigned what, size_t room, void *value, size_t *size) {
    BEGIN();
    NEED(queue, "queue");
    return CALL(int, queue, QUEUE_INFO, queue, what, room, value, size);
}

void *clCreateBuffer(void *context, uint64_t flags, size_t size, void *host, int *error) {
    BEGIN_MAKING();
    if (!held(context, "context", __func__)) return *error = INVALID_VALUE, NULL;
    void *const made = CALL(void *, context, CREATE_BUFFER, context, flags, size, host, error);
    if (made != NULL) hold(made, "buffer", "");
    return made;
}

int clReleaseMemObject(void *memory) {
    BEGIN();
    NEED(memory, "buffer");
    late_ends(memory, 1);
    let_go(memory, "buffer");
    return CALL(int, memory, RELEASE_MEMORY, memory);
}

void *clCreateProgramWithSource(void *context, unsigned count, const char **texts, const size_t *lengths, int *error) {
    BEGIN_MAKING();
    if (!held(context, "context", __func__)) return *error = INVALID_VALUE, NULL;
    void *const made = CALL(void *, context, CREATE_PROGRAM, context, count, texts, lengths, error);
    if (made != NULL) hold(made, "program", "");
    return made;
}

void *clCreateProgramWithBinary(void *context, unsigned count, void *const *devices, const size_t *lengths, const unsigned char **binaries,
                                int *results, int *error) {
    BEGIN_MAKING();
    if (!held(context, "context", __func__)) return *error = INVALID_VALUE, NULL;
    void *const made = CALL(void *, context, TAKE_PROGRAM, context, count, devices, lengths, binaries, results, error);
    if (made != NULL) hold(made, "program", "");
    return made;
}

int clGetProgramInfo(void *program, unsigned what, size_t room, void *value, size_t *size) {
    BEGIN();
    NEED(program, "program");
    return CALL(int, program, PROGRAM_INFO, program, what, room, value, size);
}

int clBuildProgram(void *program, unsigned count, void *const *devices, const char *options, void *notify, void *user) {
    BEGIN();
    NEED(program, "program");
    return CALL(int, program, BUILD_PROGRAM, program, count, devices, options, notify, user);
}

int clGetProgramBuildInfo(void *program, void *device, unsigned what, size_t room, void *value, size_t *size) {
    BEGIN();
    NEED(program, "program");
    return CALL(int, program, BUILD_INFO, program, device, what, room, value, size);
}

int clReleaseProgram(void *program) {
    BEGIN();
    NEED(program, "program");
    let_go(program, "program");
    return CALL(int, program, RELEASE_PROGRAM, program);
}

void *clCreateKernel(void *program, const char *name, int *error) {
    BEGIN_MAKING();
    if (!held(program, "program", __func__)) return *error = INVALID_VALUE, NULL;
    void *const made = CALL(void *, program, CREATE_KERNEL, program, name, error);
    if (made != NULL) hold(made, "kernel", name);
    return made;
}

int clReleaseKernel(void *kernel) {
    BEGIN();
    NEED(kernel, "kernel");
    let_go(kernel, "kernel");
    return CALL(int, kernel, RELEASE_KERNEL, kernel);
}

int clGetKernelWorkGroupInfo(void *kernel, void *device, unsigned what, size_t room, void *value, size_t *size) {
    BEGIN();
    NEED(kernel, "kernel");
    return CALL(int, kernel, KERNEL_INFO, kernel, device, what, room, value, size);
}

int clSetKernelArg(void *kernel, unsigned index, size_t size, const void *value) {
    BEGIN();
    NEED(kernel, "kernel");
    const int at = place_of(kernel, "kernel");
    if (index >= ARGUMENTS || (value != NULL && size > sizeof objects[at].arguments[index].value)) abort();
    objects[at].arguments[index].size = size;
    objects[at].arguments[index].local = value == NULL;
    if (value != NULL) memcpy(objects[at].arguments[index].value, value, size);
    return CALL(int, kernel, SET_ARGUMENT, kernel, index, size, value);
}

/* A command that takes effect later: a launch, or a copy of rows. */
struct command {
    void *queue, *object; /* a kernel or a buffer */
    int number;           /* the kernel's among the objects, with its arguments as they were */
    size_t global[3], local[3], here[3], there[3], region[3], stride, host_stride;
    void *host;
    int function;
    unsigned char arguments[sizeof objects[0].arguments];
};

static void failed(const char *what, int error) {
    if (error == 0) return;
    tell("violation: %s: error %d\n", what, error);
}

static void launch_late(void *at) {
    struct command *const one = at;
    unsigned char now[sizeof one->arguments];
    memcpy(now, objects[one->number].arguments, sizeof now);
    for (int set = 0; set < 2; set++) {
        /* Those of the launch, and when it is over those that others set meanwhile. */
        memcpy(objects[one->number].arguments, set == 0 ? one->arguments : now, sizeof now);
        for (unsigned i = 0; i < ARGUMENTS; i++) {
            const size_t size = objects[one->number].arguments[i].size;
            const void *const value = objects[one->number].arguments[i].local ? NULL : objects[one->number].arguments[i].value;
            if (size != 0) failed("clSetKernelArg", CALL(int, one->object, SET_ARGUMENT, one->object, i, size, value));
        }
        if (set == 1) break;
        failed("clEnqueueNDRangeKernel", CALL(int, one->queue, LAUNCH, one->queue, one->object, 3u, NULL, one->global, one->local, 0u, NULL, NULL));
        failed("clFinish", CALL(int, one->queue, FINISH, one->queue));
        tell("ran %s\n", objects[one->number].name);
    }
    free(one);
}

static void copy_late(void *at) {
    struct command *const one = at;
    failed("a copy", CALL(int, one->queue, one->function, one->queue, one->object, 1u, one->here, one->there, one->region, one->stride, (size_t)0,
                          one->host_stride, (size_t)0, one->host, 0u, NULL, NULL));
    free(one);
}

int clEnqueueNDRangeKernel(void *queue, void *kernel, unsigned dimensions, const size_t *offset, const size_t *global, const size_t *local,
                           unsigned count, void *const *events, void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(kernel, "kernel");
    const int at = place_of(kernel, "kernel");
    if (late_of(queue) != NULL) {
        struct command *const one = calloc(1, sizeof *one);
        const void *starts[ARGUMENTS];
        size_t lengths[ARGUMENTS], used = 0;
        if (dimensions != 3 || offset != NULL || count != 0 || event != NULL) abort();
        one->queue = queue;
        one->object = kernel;
        one->number = at;
        memcpy(one->global, global, sizeof one->global);
        memcpy(one->local, local, sizeof one->local);
        memcpy(one->arguments, objects[at].arguments, sizeof one->arguments);
        for (int i = 0; i < ARGUMENTS; i++) {
            void *memory = NULL;
            if (objects[at].arguments[i].size == sizeof memory) memcpy(&memory, objects[at].arguments[i].value, sizeof memory);
            if (memory == NULL || place_of(memory, "buffer") < 0) continue;
            starts[used] = memory;
            lengths[used++] = 1;
        }
        late_begin(late_of(queue), launch_late, one, starts, lengths, used);
        return 0;
    }
    const int error = CALL(int, queue, LAUNCH, queue, kernel, dimensions, offset, global, local, count, events, event);
    if (error == 0) tell("ran %s\n", objects[place_of(kernel, "kernel")].name);
    return error;
}

/* Whether bytes of the host lie in a buffer that is mapped. */
static int is_mapped(const void *start, size_t bytes) {
    for (int i = 0; i < object_count; i++)
        if (objects[i].held > 0 && strcmp(objects[i].kind, "mapping") == 0 && (const char *)start >= (const char *)objects[i].object &&
            (const char *)start + bytes <= (const char *)objects[i].object + objects[i].bytes)
            return 1;
    return 0;
}

/* A copy that is not waited for: it must go through mapped memory.  One that is comes behind what is late on its queue. */
static int is_late(void *queue, unsigned blocking, const void *host, size_t bytes, const char *function) {
    if (!blocking && !is_mapped(host, bytes)) tell("violation: %s: that memory is not mapped\n", function);
    if (late_of(queue) == NULL) return 0;
    if (blocking) (void)late_finish(late_of(queue));
    return !blocking;
}

static int begin_copy(void *queue, void *buffer, const size_t *here, const size_t *there, const size_t *region, size_t stride, size_t host_stride,
                      void *host, int function) {
    struct command *const one = calloc(1, sizeof *one);
    const void *const starts[] = {buffer, host};
    const size_t lengths[] = {1, host_stride * (region[1] - 1) + region[0]};
    one->queue = queue;
    one->object = buffer;
    memcpy(one->here, here, sizeof one->here);
    memcpy(one->there, there, sizeof one->there);
    memcpy(one->region, region, sizeof one->region);
    one->stride = stride;
    one->host_stride = host_stride;
    one->host = host;
    one->function = function;
    late_begin(late_of(queue), copy_late, one, starts, lengths, 2);
    return 0;
}

static int begin_bytes(void *queue, void *buffer, size_t offset, size_t size, void *host, int function) {
    const size_t here[3] = {offset, 0, 0}, there[3] = {0, 0, 0}, region[3] = {size, 1, 1};
    return begin_copy(queue, buffer, here, there, region, 0, 0, host, function);
}

int clEnqueueReadBuffer(void *queue, void *buffer, unsigned blocking, size_t offset, size_t size, void *to, unsigned count, void *const *events,
                        void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(buffer, "buffer");
    if (is_late(queue, blocking, to, size, __func__)) return begin_bytes(queue, buffer, offset, size, to, READ_RECTANGLE);
    return CALL(int, queue, READ, queue, buffer, blocking, offset, size, to, count, events, event);
}

int clEnqueueWriteBuffer(void *queue, void *buffer, unsigned blocking, size_t offset, size_t size, const void *from, unsigned count,
                         void *const *events, void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(buffer, "buffer");
    if (is_late(queue, blocking, from, size, __func__)) return begin_bytes(queue, buffer, offset, size, (void *)from, WRITE_RECTANGLE);
    return CALL(int, queue, WRITE, queue, buffer, blocking, offset, size, from, count, events, event);
}

int clEnqueueReadBufferRect(void *queue, void *buffer, unsigned blocking, const size_t *from, const size_t *at, const size_t *region,
                            size_t stride, size_t slice, size_t host_stride, size_t host_slice, void *to, unsigned count, void *const *events,
                            void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(buffer, "buffer");
    if (is_late(queue, blocking, to, host_stride * (region[1] - 1) + region[0], __func__))
        return begin_copy(queue, buffer, from, at, region, stride, host_stride, to, READ_RECTANGLE);
    return CALL(int, queue, READ_RECTANGLE, queue, buffer, blocking, from, at, region, stride, slice, host_stride, host_slice, to, count, events, event);
}

int clEnqueueWriteBufferRect(void *queue, void *buffer, unsigned blocking, const size_t *to, const size_t *at, const size_t *region,
                             size_t stride, size_t slice, size_t host_stride, size_t host_slice, const void *from, unsigned count,
                             void *const *events, void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(buffer, "buffer");
    if (is_late(queue, blocking, from, host_stride * (region[1] - 1) + region[0], __func__))
        return begin_copy(queue, buffer, to, at, region, stride, host_stride, (void *)from, WRITE_RECTANGLE);
    return CALL(int, queue, WRITE_RECTANGLE, queue, buffer, blocking, to, at, region, stride, slice, host_stride, host_slice, from, count, events, event);
}

void *clEnqueueMapBuffer(void *queue, void *buffer, unsigned blocking, uint64_t flags, size_t offset, size_t size, unsigned count,
                         void *const *events, void **event, int *error) {
    BEGIN_MAKING();
    if (!held(queue, "queue", __func__) || !held(buffer, "buffer", __func__)) return *error = INVALID_VALUE, NULL;
    void *const mapped = CALL(void *, queue, MAP, queue, buffer, blocking, flags, offset, size, count, events, event, error);
    if (mapped == NULL) return NULL;
    hold(mapped, "mapping", "");
    objects[place_of(mapped, "mapping")].bytes = size;
    return mapped;
}

int clEnqueueUnmapMemObject(void *queue, void *memory, void *mapped, unsigned count, void *const *events, void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(memory, "buffer");
    NEED(mapped, "mapping");
    late_ends(mapped, objects[place_of(mapped, "mapping")].bytes);
    let_go(mapped, "mapping");
    return CALL(int, queue, UNMAP, queue, memory, mapped, count, events, event);
}

int clEnqueueMarkerWithWaitList(void *queue, unsigned count, void *const *events, void **event) {
    BEGIN();
    NEED(queue, "queue");
    if (count != 0 || event == NULL) return INVALID_VALUE;
    int error = 0;
    if (late_of(queue) != NULL)
        late_record(*event = late_event_make(), late_of(queue));
    else
        error = CALL(int, queue, MARKER, queue, count, events, event);
    if (error == 0) hold(*event, "event", "");
    return error;
}

int clEnqueueBarrierWithWaitList(void *queue, unsigned count, void *const *events, void **event) {
    BEGIN();
    NEED(queue, "queue");
    if (count != 1 || event != NULL) return INVALID_VALUE;
    NEED(events[0], "event");
    if (late_of(queue) == NULL) return CALL(int, queue, BARRIER, queue, count, events, event);
    late_follow(late_of(queue), events[0]);
    return 0;
}

int clWaitForEvents(unsigned count, void *const *events) {
    BEGIN();
    if (count != 1) return INVALID_VALUE;
    NEED(events[0], "event");
    if (getenv("STANDIN_ORDER") == NULL) return CALL(int, events[0], AWAIT_EVENTS, count, events);
    return late_await(events[0]) ? 0 : -14;
}

int clReleaseEvent(void *event) {
    BEGIN();
    NEED(event, "event");
    let_go(event, "event");
    if (getenv("STANDIN_ORDER") == NULL) return CALL(int, event, RELEASE_EVENT, event);
    late_event_free(event);
    return 0;
}

int clFlush(void *queue) {
    BEGIN();
    NEED(queue, "queue");
    return CALL(int, queue, FLUSH, queue);
}

int clFinish(void *queue) {
    BEGIN();
    NEED(queue, "queue");
    if (late_of(queue) != NULL && !late_finish(late_of(queue))) return -14;
    return CALL(int, queue, FINISH, queue);
}
