/* OpenCL's library for tests: it finds PoCL where STANDIN_POCL says, hands every call on to it, checks and counts.
 *
 * A vendor's library as the wheel has it exports one function; the others stand in the table that each of its objects begins
 * with, in the order of cl_icd.h.
 *
 *   STANDIN_POCL      the path of the vendor's library
 *   STANDIN_LOG       the file that gets a line for each call, each violation, and what is left when the program ends
 *   STANDIN_FAIL=7    the seventh call fails with -9999 before it does anything; 7:-5 with that error; 7+ all from the seventh on
 *   STANDIN_DEVICES=0 there is no device
 *   STANDIN_GPU=1     the device says that it is a GPU of NVIDIA's, with what the extension for its attributes tells
 *   STANDIN_FLOATS    what the device says of floats (a number), else what PoCL says
 *   STANDIN_EXTENSIONS=0  the device says that it has none
 *   STANDIN_LOCAL     bytes of local memory that the device says it has
 *   STANDIN_DRIVER    the version that the driver says it has
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEVICES = 2, DEVICE_INFO = 3, CREATE_CONTEXT = 4, RETAIN_CONTEXT = 6, RELEASE_CONTEXT = 7, CREATE_QUEUE = 9, RELEASE_QUEUE = 11,
    QUEUE_INFO = 12, CREATE_BUFFER = 14, RELEASE_MEMORY = 18, CREATE_PROGRAM = 26, TAKE_PROGRAM = 27, RELEASE_PROGRAM = 29,
    BUILD_PROGRAM = 30, PROGRAM_INFO = 32, BUILD_INFO = 33, CREATE_KERNEL = 34, RELEASE_KERNEL = 37, SET_ARGUMENT = 38,
    KERNEL_INFO = 40, FLUSH = 46, FINISH = 47, READ = 48, WRITE = 49, LAUNCH = 59, READ_RECTANGLE = 86, WRITE_RECTANGLE = 87
};
enum { FAILURE = -9999, INVALID_VALUE = -30, NOT_FOUND = -1, OBJECTS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;
static int calls, failing, lost, failure = FAILURE;
static void *vendor;
static struct {
    void *object;
    const char *kind;
    int held;
    char name[256];
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
    pthread_mutex_lock(&lock);
    const int number = ++calls;
    tell("%d %s\n", number, name);
    pthread_mutex_unlock(&lock);
    return number == failing || (lost && number > failing) ? failure : 0;
}

static int place_of(const void *object, const char *kind) {
    for (int i = object_count - 1; i >= 0; i--)
        if (objects[i].object == object && objects[i].held > 0 && strcmp(objects[i].kind, kind) == 0) return i;
    return -1;
}

static void hold(void *object, const char *kind, const char *name) {
    pthread_mutex_lock(&lock);
    int at = place_of(object, kind);
    if (at < 0) {
        if (object_count == OBJECTS) abort();
        at = object_count++;
        objects[at].object = object;
        objects[at].kind = kind;
        snprintf(objects[at].name, sizeof objects[at].name, "%s", name);
    }
    objects[at].held++;
    pthread_mutex_unlock(&lock);
}

/* Whether an object of that kind is held; says so where it is not. */
static int held(const void *object, const char *kind, const char *function) {
    pthread_mutex_lock(&lock);
    const int at = place_of(object, kind);
    if (at < 0) tell("violation: %s: no %s of this program\n", function, kind);
    pthread_mutex_unlock(&lock);
    return at >= 0;
}

static void let_go(void *object, const char *kind) {
    pthread_mutex_lock(&lock);
    objects[place_of(object, kind)].held--;
    pthread_mutex_unlock(&lock);
}

static void *function_of(const void *object, int index) { return (*(void ***)object)[index]; }

#define BEGIN()                                                                                                        \
    do {                                                                                                               \
        const int begun_ = begun(__func__);                                                                            \
        if (begun_ != 0) return begun_;                                                                                \
    } while (0)
#define BEGIN_MAKING()                                                                                                 \
    do {                                                                                                               \
        *error = begun(__func__);                                                                                      \
        if (*error != 0) return NULL;                                                                                  \
    } while (0)
#define NEED(object, kind)                                                                                             \
    do {                                                                                                               \
        if (!held(object, kind, __func__)) return INVALID_VALUE;                                                       \
    } while (0)
#define CALL(result, object, index, ...) ((result(*)())function_of(object, index))(__VA_ARGS__)

int clGetPlatformIDs(unsigned room, void **platforms, unsigned *count) {
    BEGIN();
    const char *const path = getenv("STANDIN_POCL");
    if (vendor == NULL && path != NULL) vendor = dlopen(path, RTLD_NOW | RTLD_LOCAL);
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
    const int gpu = getenv("STANDIN_GPU") != NULL;
    static const char of_a_gpu[] = "cl_khr_fp64 cl_nv_device_attribute_query";
    static const struct {
        unsigned what, value;
    } nvidia[] = {{0x4000, 9}, {0x4001, 0}, {0x4002, 65536}, {0x4003, 32}};
    if (what == 0x101B && floats != NULL) *(uint64_t *)value = strtoul(floats, NULL, 10);
    else if (what == 0x1023 && room != NULL) *(uint64_t *)value = strtoul(room, NULL, 10);
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
    return CALL(int, kernel, SET_ARGUMENT, kernel, index, size, value);
}

int clEnqueueNDRangeKernel(void *queue, void *kernel, unsigned dimensions, const size_t *offset, const size_t *global, const size_t *local,
                           unsigned count, void *const *events, void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(kernel, "kernel");
    const int error = CALL(int, queue, LAUNCH, queue, kernel, dimensions, offset, global, local, count, events, event);
    pthread_mutex_lock(&lock);
    if (error == 0) tell("ran %s\n", objects[place_of(kernel, "kernel")].name);
    pthread_mutex_unlock(&lock);
    return error;
}

int clEnqueueReadBuffer(void *queue, void *buffer, unsigned blocking, size_t offset, size_t size, void *to, unsigned count, void *const *events,
                        void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(buffer, "buffer");
    return CALL(int, queue, READ, queue, buffer, blocking, offset, size, to, count, events, event);
}

int clEnqueueWriteBuffer(void *queue, void *buffer, unsigned blocking, size_t offset, size_t size, const void *from, unsigned count,
                         void *const *events, void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(buffer, "buffer");
    return CALL(int, queue, WRITE, queue, buffer, blocking, offset, size, from, count, events, event);
}

int clEnqueueReadBufferRect(void *queue, void *buffer, unsigned blocking, const size_t *from, const size_t *at, const size_t *region,
                            size_t stride, size_t slice, size_t host_stride, size_t host_slice, void *to, unsigned count, void *const *events,
                            void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(buffer, "buffer");
    return CALL(int, queue, READ_RECTANGLE, queue, buffer, blocking, from, at, region, stride, slice, host_stride, host_slice, to, count, events, event);
}

int clEnqueueWriteBufferRect(void *queue, void *buffer, unsigned blocking, const size_t *to, const size_t *at, const size_t *region,
                             size_t stride, size_t slice, size_t host_stride, size_t host_slice, const void *from, unsigned count,
                             void *const *events, void **event) {
    BEGIN();
    NEED(queue, "queue");
    NEED(buffer, "buffer");
    return CALL(int, queue, WRITE_RECTANGLE, queue, buffer, blocking, to, at, region, stride, slice, host_stride, host_slice, from, count, events, event);
}

int clFlush(void *queue) {
    BEGIN();
    NEED(queue, "queue");
    return CALL(int, queue, FLUSH, queue);
}

int clFinish(void *queue) {
    BEGIN();
    NEED(queue, "queue");
    return CALL(int, queue, FINISH, queue);
}
