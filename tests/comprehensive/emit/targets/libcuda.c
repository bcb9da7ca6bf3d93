/* A CUDA driver with no device behind it, for tests: libcuda.so.1 as the PTX back end finds it.
 *
 * Every call is checked (order, handles, ranges) and logged; memory of a device is memory of this process under addresses
 * that nobody else can read; PTX and launches are handed to a server (standin.py) over a socket, which runs them.
 *
 *   STANDIN_SOCKET    where the server listens
 *   STANDIN_LOG       the file that gets a line for each call, each violation, and what is left when the program ends
 *   STANDIN_FAIL=7    the seventh call fails with CUDA_ERROR_UNKNOWN before it does anything; 7:2 with error 2; 7+ all from
 *                     the seventh on, as on a device that was lost
 *   STANDIN_DEVICES   how many there are, 1 by default
 *   STANDIN_CAPABILITY=90   their compute capability, 8.0 by default
 *   STANDIN_MEMORY    bytes that a device has
 *   STANDIN_ORDER, STANDIN_BREAK   when what is begun on streams takes effect, and what of it fails (late_streams.h)
 *   STANDIN_CONTEXT=1 a context of device 1 is the thread's own when the program begins, as if the CUDA runtime had been there
 */
#include "late_calls.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { DEVICES = 4, DEPTH = 16, FUNCTIONS = 256, ALLOCATIONS = 512, PARAMETERS = 128 };
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201,
       INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, LAUNCH_FAILED = 719, CAPTURE_UNSUPPORTED = 900,
       CAPTURE_IMPLICIT = 906, UNKNOWN = 999 };

struct context {
    int device;
    int retained;
};

struct module {
    struct context *context;
    unsigned number;
    int loaded;
};

struct function {
    struct module *module;
    char name[256];
    unsigned registers, shared_bytes, count, sizes[PARAMETERS];
    int dynamic_bytes;
};

struct allocation {
    struct context *context;
    uint64_t address;
    size_t bytes;
    unsigned char *data; /* managed memory is at the address itself */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;
static int server = -1, calls, initialized, devices = 1, failing, lost, failure = UNKNOWN;
static size_t memory_left = (size_t)1 << 40;
static struct context contexts[DEVICES];
static struct module modules[FUNCTIONS];
static struct function functions[FUNCTIONS];
static struct allocation allocations[ALLOCATIONS];
static int module_count, function_count, stream_count, event_count, pinned_count;
static uint64_t next_address = UINT64_C(0x7000000000);
static __thread struct context *stack[DEPTH];
static __thread int depth;
static void *captured;                      /* the stream that is being captured, in the global mode */
static int blocking, kernels_captured;      /* whether the stream of no number waits for it */
static __thread int mode;

static void tell(const char *form, ...) {
    va_list values;
    va_start(values, form);
    if (log_file != NULL) {
        vfprintf(log_file, form, values);
        fflush(log_file);
    }
    va_end(values);
}

static int number_of(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : otherwise;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("STANDIN_LOG"), *fail = getenv("STANDIN_FAIL"), *bytes = getenv("STANDIN_MEMORY");
    if (path != NULL) log_file = fopen(path, "a");
    devices = number_of("STANDIN_DEVICES", 1);
    if (fail != NULL) failing = atoi(fail);
    lost = fail != NULL && strchr(fail, '+') != NULL;
    if (fail != NULL && strchr(fail, ':') != NULL) failure = atoi(strchr(fail, ':') + 1);
    if (bytes != NULL) memory_left = (size_t)atoll(bytes);
    for (int i = 0; i < DEVICES; i++) contexts[i].device = i;
    if (number_of("STANDIN_CONTEXT", 0)) {
        initialized = 1;
        stack[depth++] = &contexts[1];
    }
}

__attribute__((destructor)) static void end(void) {
    const int own = number_of("STANDIN_CONTEXT", 0);
    for (int i = 0; i < ALLOCATIONS; i++)
        if (allocations[i].context != NULL) tell("left %zu bytes of memory\n", allocations[i].bytes);
    for (int i = 0; i < module_count; i++)
        if (modules[i].loaded) tell("left module %u\n", modules[i].number);
    for (int i = 0; i < DEVICES; i++)
        if (contexts[i].retained != 0) tell("left context %d retained %d times\n", i, contexts[i].retained);
    if (stream_count + event_count + pinned_count != 0)
        tell("left %d streams, %d events and %d pinned buffers\n", stream_count, event_count, pinned_count);
    if (depth != own) tell("left %d contexts on the stack\n", depth - own);
    tell("end after %d calls\n", calls);
    if (log_file != NULL) fclose(log_file);
}

/* ---- checking ---- */

/* A call begins: whether it is the one that fails, or comes too early. */
static int begun(const char *name) {
    pthread_mutex_lock(&lock);
    tell("%d %s\n", ++calls, name);
    if (calls == failing || (lost && calls > failing && strcmp(name, "cuGetErrorString") != 0)) return failure;
    if (!initialized && strcmp(name, "cuInit") != 0 && strcmp(name, "cuGetErrorString") != 0) {
        tell("violation: %s before cuInit\n", name);
        return NOT_INITIALIZED;
    }
    return 0;
}

static int done(int error) {
    pthread_mutex_unlock(&lock);
    return error;
}

#define BEGIN()                                                                                                                              \
    do {                                                                                                                                     \
        const int begun_ = begun(__func__);                                                                                                  \
        if (begun_ != 0) return done(begun_);                                                                                                \
    } while (0)
#define CHECK(condition, error)                                                                                                              \
    do {                                                                                                                                     \
        if (!(condition)) {                                                                                                                  \
            tell("violation: %s: %s\n", __func__, #condition);                                                                               \
            return done(error);                                                                                                              \
        }                                                                                                                                    \
    } while (0)

/* What no thread may do while a stream is captured, nor to that stream or one that waits for it. */
#define SAFE() CHECK(captured == NULL || mode == 2, CAPTURE_UNSUPPORTED)
#define APART(stream) CHECK(captured == NULL || ((stream) != captured && ((stream) != NULL || !blocking)), CAPTURE_IMPLICIT)

static struct context *current(void) { return depth > 0 ? stack[depth - 1] : NULL; }

static int is_context(const void *context) {
    for (int i = 0; i < devices; i++)
        if (context == &contexts[i]) return 1;
    return 0;
}

/* A function of a module that is loaded into the thread's context. */
static int is_function(const struct function *function) {
    return function >= functions && function < functions + function_count && function->module->loaded &&
           function->module->context == current();
}

static struct allocation *holding(uint64_t address, size_t bytes) {
    for (int i = 0; i < ALLOCATIONS; i++) {
        struct allocation *const one = &allocations[i];
        if (one->context != NULL && address >= one->address && address - one->address <= one->bytes &&
            bytes <= one->bytes - (address - one->address))
            return one;
    }
    return NULL;
}

/* ---- the server ---- */

static void say(const void *data, size_t size) {
    for (const char *at = data; size > 0;) {
        const ssize_t sent = send(server, at, size, MSG_NOSIGNAL);
        if (sent <= 0) abort();
        at += sent, size -= (size_t)sent;
    }
}

static void hear(void *data, size_t size) {
    for (char *at = data; size > 0;) {
        const ssize_t got = recv(server, at, size, 0);
        if (got <= 0) abort();
        at += got, size -= (size_t)got;
    }
}

static void say_number(uint64_t number) { say(&number, sizeof number); }

static void say_bytes(const void *data, size_t size) {
    say_number(size);
    say(data, size);
}

static uint64_t hear_number(void) {
    uint64_t number;
    hear(&number, sizeof number);
    return number;
}

/* A text of at most so many bytes, the end of a longer one being cut off. */
static void hear_text(char *to, size_t room) {
    const uint64_t size = hear_number();
    char *const whole = malloc(size + 1);
    hear(whole, size);
    whole[size] = '\0';
    snprintf(to, room, "%s", whole);
    free(whole);
}

static void ask(char what) {
    if (server < 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const char *path = getenv("STANDIN_SOCKET");
        if (path == NULL) abort();
        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        server = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(server, (struct sockaddr *)&address, sizeof address) != 0) abort();
    }
    say(&what, 1);
}

/* ---- the driver ---- */

int cuInit(unsigned flags) {
    BEGIN();
    CHECK(flags == 0, INVALID_VALUE);
    initialized = 1;
    return done(devices > 0 ? 0 : NO_DEVICE);
}

int cuDeviceGetCount(int *count) {
    BEGIN();
    *count = devices;
    return done(0);
}

int cuDeviceGet(int *device, int number) {
    BEGIN();
    CHECK(number >= 0 && number < devices, INVALID_DEVICE);
    *device = number;
    return done(0);
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const struct {
        int attribute, value;
    } known[] = {{1, 1024},      {2, 1024},   {3, 1024},  {4, 64},      {5, 2147483647}, {6, 65535}, {7, 65535}, {10, 32},
                 {12, 65536},    {39, 2048},  {81, 167936},    {82, 65536}, {97, 166912}, {106, 32}};
    BEGIN();
    CHECK(device >= 0 && device < devices, INVALID_DEVICE);
    if (attribute == 75 || attribute == 76) {
        const int capability = number_of("STANDIN_CAPABILITY", 80);
        *value = attribute == 75 ? capability / 10 : capability % 10;
        return done(0);
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].attribute == attribute) {
            *value = known[i].value;
            return done(0);
        }
    CHECK(!"an attribute that is known here", INVALID_VALUE);
}

int cuGetErrorString(int error, const char **text) {
    BEGIN();
    *text = error == UNKNOWN ? "unknown error" : error == INVALID_PTX ? "a PTX JIT compilation failed" : "an error";
    return done(0);
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    BEGIN();
    CHECK(device >= 0 && device < devices, INVALID_DEVICE);
    contexts[device].retained++;
    *context = &contexts[device];
    return done(0);
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    BEGIN();
    CHECK(device >= 0 && device < devices, INVALID_DEVICE);
    CHECK(contexts[device].retained > 0, INVALID_CONTEXT);
    contexts[device].retained--;
    return done(0);
}

int cuCtxPushCurrent_v2(void *context) {
    BEGIN();
    CHECK(is_context(context) && ((struct context *)context)->retained > 0, INVALID_CONTEXT);
    CHECK(depth < DEPTH, INVALID_CONTEXT);
    stack[depth++] = context;
    return done(0);
}

int cuCtxPopCurrent_v2(void **context) {
    BEGIN();
    CHECK(depth > 0, INVALID_CONTEXT);
    *context = stack[--depth];
    return done(0);
}

int cuCtxGetCurrent(void **context) {
    BEGIN();
    *context = current();
    return done(0);
}

int cuCtxGetDevice(int *device) {
    BEGIN();
    CHECK(current() != NULL, INVALID_CONTEXT);
    *device = current()->device;
    return done(0);
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
    char *error = NULL;
    size_t room = 0;
    BEGIN();
    SAFE();
    CHECK(current() != NULL, INVALID_CONTEXT);
    CHECK(image != NULL, INVALID_VALUE);
    CHECK(module_count < FUNCTIONS, OUT_OF_MEMORY);
    for (unsigned i = 0; i < count; i++) {
        CHECK(options[i] >= 3 && options[i] <= 6, INVALID_VALUE);
        if (options[i] == 5) error = values[i];
        if (options[i] == 6) room = (size_t)values[i];
    }
    ask('L');
    say_bytes(image, strlen(image));
    char message[512];
    hear_text(message, sizeof message);
    if (message[0] != '\0') {
        if (error != NULL && room > 0) snprintf(error, room, "%s", message);
        return done(INVALID_PTX);
    }
    struct module *const one = &modules[module_count++];
    one->context = current();
    one->loaded = 1;
    one->number = (unsigned)hear_number();
    for (uint64_t left = hear_number(); left > 0; left--) {
        CHECK(function_count < FUNCTIONS, OUT_OF_MEMORY);
        struct function *const function = &functions[function_count++];
        function->module = one;
        hear_text(function->name, sizeof function->name);
        function->registers = (unsigned)hear_number();
        function->shared_bytes = (unsigned)hear_number();
        function->dynamic_bytes = 49152 - (int)function->shared_bytes;
        function->count = (unsigned)hear_number();
        CHECK(function->count <= PARAMETERS, OUT_OF_MEMORY);
        for (unsigned i = 0; i < function->count; i++) function->sizes[i] = (unsigned)hear_number();
    }
    *module = one;
    return done(0);
}

int cuModuleUnload(void *module) {
    BEGIN();
    SAFE();
    struct module *const one = module;
    CHECK(one >= modules && one < modules + module_count && one->loaded, INVALID_HANDLE);
    CHECK(one->context == current(), INVALID_CONTEXT);
    one->loaded = 0;
    return done(0);
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    BEGIN();
    struct module *const one = module;
    CHECK(one >= modules && one < modules + module_count && one->loaded, INVALID_HANDLE);
    CHECK(one->context == current(), INVALID_CONTEXT);
    for (int i = 0; i < function_count; i++)
        if (functions[i].module == one && strcmp(functions[i].name, name) == 0) {
            *function = &functions[i];
            return done(0);
        }
    CHECK(!"a kernel of the module", NOT_FOUND);
}

int cuFuncGetAttribute(int *value, int attribute, void *function) {
    BEGIN();
    const struct function *const one = function;
    CHECK(is_function(one), INVALID_HANDLE);
    switch (attribute) {
    case 0: *value = 1024; break;
    case 1: *value = (int)one->shared_bytes; break;
    case 4: *value = (int)one->registers; break;
    case 8: *value = one->dynamic_bytes; break;
    default: CHECK(!"an attribute that is known here", INVALID_VALUE);
    }
    return done(0);
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
    BEGIN();
    struct function *const one = function;
    CHECK(is_function(one), INVALID_HANDLE);
    CHECK(attribute == 8, INVALID_VALUE);
    CHECK(value >= 0 && value + (int)one->shared_bytes <= 166912, INVALID_VALUE);
    one->dynamic_bytes = value;
    return done(0);
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
    BEGIN();
    SAFE();
    CHECK(current() != NULL, INVALID_CONTEXT);
    CHECK(bytes > 0, INVALID_VALUE);
    if (bytes > memory_left) return done(OUT_OF_MEMORY);
    for (int i = 0; i < ALLOCATIONS; i++)
        if (allocations[i].context == NULL) {
            allocations[i].context = current();
            allocations[i].address = next_address;
            allocations[i].bytes = bytes;
            allocations[i].data = malloc(bytes);
            memset(allocations[i].data, 0xa5, bytes); /* nobody may count on zeros */
            memory_left -= bytes;
            next_address += (bytes / 4096 + 2) * 4096;
            *memory = allocations[i].address;
            return done(0);
        }
    return done(OUT_OF_MEMORY);
}

int cuMemAllocManaged(uint64_t *memory, size_t bytes, unsigned flags) {
    const int error = cuMemAlloc_v2(memory, bytes);
    if (error != 0) return error;
    BEGIN();
    CHECK(flags == 1, INVALID_VALUE);
    struct allocation *const one = holding(*memory, bytes);
    *memory = one->address = (uintptr_t)one->data;
    return done(0);
}

/* What this library gave nobody is no violation: programs ask. */
int cuPointerGetAttribute(void *value, int attribute, uint64_t address) {
    BEGIN();
    CHECK(current() != NULL, INVALID_CONTEXT);
    const struct allocation *const one = holding(address, 1);
    if (one == NULL && !late_is_pinned((const void *)(uintptr_t)address)) return done(INVALID_VALUE);
    switch (attribute) {
    case 2: *(unsigned *)value = one != NULL ? 2 : 1; return done(0);
    case 8: *(int *)value = one != NULL && one->address == (uintptr_t)one->data; return done(0);
    case 9: *(int *)value = one != NULL ? one->context->device : 0; return done(0);
    default: CHECK(!"an attribute that is known here", INVALID_VALUE);
    }
}

int cuMemGetAddressRange_v2(uint64_t *start, size_t *bytes, uint64_t address) {
    BEGIN();
    CHECK(current() != NULL, INVALID_CONTEXT);
    const struct allocation *const one = holding(address, 1);
    CHECK(one != NULL, INVALID_VALUE);
    *start = one->address;
    *bytes = one->bytes;
    return done(0);
}

int cuMemFree_v2(uint64_t memory) {
    BEGIN();
    SAFE();
    CHECK(current() != NULL, INVALID_CONTEXT);
    for (int i = 0; i < ALLOCATIONS; i++)
        if (allocations[i].context == current() && allocations[i].address == memory) {
            late_ends(allocations[i].data, allocations[i].bytes);
            free(allocations[i].data);
            memory_left += allocations[i].bytes;
            allocations[i].context = NULL;
            return done(0);
        }
    CHECK(!"an allocation of this context", INVALID_VALUE);
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    BEGIN();
    SAFE();
    APART(NULL);
    struct allocation *const one = holding(to, bytes);
    CHECK(one != NULL && bytes > 0, INVALID_VALUE);
    CHECK(one->context == current(), INVALID_CONTEXT);
    memcpy(one->data + (to - one->address), from, bytes);
    return done(0);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    BEGIN();
    SAFE();
    APART(NULL);
    struct allocation *const one = holding(from, bytes);
    CHECK(one != NULL && bytes > 0, INVALID_VALUE);
    CHECK(one->context == current(), INVALID_CONTEXT);
    memcpy(to, one->data + (from - one->address), bytes);
    return done(0);
}

/* CUDA_MEMCPY2D. */
struct rows {
    struct {
        size_t column, row;
        int kind; /* 1: the host, 2: the device */
        union {
            void *host;
            const void *read;
        };
        uint64_t device;
        void *array;
        size_t stride;
    } from, to;
    size_t width, count;
};

/* Whether a copy of rows is one between the host and memory of the thread's context, and where that is. */
static int is_copy(const struct rows *copy, unsigned char **data) {
    const int back = copy->from.kind == 2;
    if (copy->from.kind + copy->to.kind != 3 || copy->width == 0 || copy->count == 0) return 0;
    if (copy->from.stride < copy->width || copy->to.stride < copy->width || copy->from.stride >= (size_t)1 << 31 || copy->to.stride >= (size_t)1 << 31) return 0;
    if (copy->from.column + copy->from.row + copy->to.column + copy->to.row != 0) return 0;
    const uint64_t address = back ? copy->from.device : copy->to.device;
    const size_t stride = back ? copy->from.stride : copy->to.stride;
    struct allocation *const one = holding(address, stride * (copy->count - 1) + copy->width);
    if (one == NULL || one->context != current()) return 0;
    *data = one->data + (address - one->address);
    return 1;
}

int cuMemcpy2D_v2(const struct rows *copy) {
    unsigned char *data;
    BEGIN();
    SAFE();
    APART(NULL);
    CHECK(is_copy(copy, &data), INVALID_VALUE);
    const int back = copy->from.kind == 2;
    for (size_t row = 0; row < copy->count; row++) {
        unsigned char *const at = data + row * (back ? copy->from.stride : copy->to.stride);
        if (back)
            memcpy((char *)copy->to.host + row * copy->to.stride, at, copy->width);
        else
            memcpy(at, (const char *)copy->from.read + row * copy->from.stride, copy->width);
    }
    return done(0);
}

/* ---- streams ---- */

int cuMemcpy2DAsync_v2(const struct rows *copy, void *stream) {
    unsigned char *data;
    BEGIN();
    APART(stream);
    CHECK(stream != NULL, INVALID_HANDLE);
    CHECK(is_copy(copy, &data), INVALID_VALUE);
    if (copy->from.kind == 2)
        late_copy(stream, copy->to.host, copy->to.stride, data, copy->from.stride, copy->width, copy->count, 0);
    else
        late_copy(stream, data, copy->to.stride, copy->from.read, copy->from.stride, copy->width, copy->count, 1);
    return done(0);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    BEGIN();
    APART(stream);
    struct allocation *const one = holding(to, bytes);
    CHECK(one != NULL && bytes > 0 && stream != NULL, INVALID_VALUE);
    CHECK(one->context == current(), INVALID_CONTEXT);
    late_copy(stream, one->data + (to - one->address), bytes, from, bytes, bytes, 1, 1);
    return done(0);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    BEGIN();
    APART(stream);
    struct allocation *const one = holding(from, bytes);
    CHECK(one != NULL && bytes > 0 && stream != NULL, INVALID_VALUE);
    CHECK(one->context == current(), INVALID_CONTEXT);
    late_copy(stream, to, bytes, one->data + (from - one->address), bytes, bytes, 1, 0);
    return done(0);
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    BEGIN();
    SAFE();
    CHECK(current() != NULL, INVALID_CONTEXT);
    CHECK(flags == 0 && bytes > 0, INVALID_VALUE);
    *memory = late_pin(bytes);
    pinned_count++;
    return done(0);
}

int cuMemHostGetFlags(unsigned *flags, void *memory) {
    BEGIN();
    CHECK(current() != NULL, INVALID_CONTEXT);
    *flags = 0;
    return done(late_is_pinned(memory) ? 0 : INVALID_VALUE);
}

int cuMemFreeHost(void *memory) {
    BEGIN();
    SAFE();
    CHECK(current() != NULL, INVALID_CONTEXT);
    late_unpin(memory);
    pinned_count--;
    return done(0);
}

int cuStreamCreate(void **stream, unsigned flags) {
    BEGIN();
    CHECK(current() != NULL, INVALID_CONTEXT);
    CHECK(flags == 1, INVALID_VALUE);
    *stream = late_make();
    stream_count++;
    return done(0);
}

int cuStreamDestroy_v2(void *stream) {
    BEGIN();
    CHECK(current() != NULL, INVALID_CONTEXT);
    late_end(stream);
    stream_count--;
    return done(0);
}

int cuStreamSynchronize(void *stream) {
    BEGIN();
    SAFE();
    APART(stream);
    CHECK(current() != NULL, INVALID_CONTEXT);
    return done(stream == NULL || late_finish(stream) ? 0 : LAUNCH_FAILED);
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    BEGIN();
    APART(stream);
    CHECK(current() != NULL, INVALID_CONTEXT);
    CHECK(stream != NULL && event != NULL && flags == 0, INVALID_VALUE);
    late_follow(stream, event);
    return done(0);
}

int cuStreamIsCapturing(void *stream, int *status) {
    BEGIN();
    CHECK(current() != NULL, INVALID_CONTEXT);
    if (stream == NULL && captured != NULL && blocking) return done(CAPTURE_IMPLICIT);
    *status = captured != NULL && stream == captured;
    return done(0);
}

int cuThreadExchangeStreamCaptureMode(int *other) {
    const int own = mode;
    mode = *other;
    *other = own;
    return 0;
}

/* For tests: a stream is captured, and how many kernels its graph has. */
void *standin_begin_capture(int blocks) {
    blocking = blocks;
    return captured = late_make();
}

int standin_end_capture(void) {
    if (mode != 0) tell("violation: a thread's mode has been left behind\n");
    late_end(captured);
    captured = NULL;
    return kernels_captured;
}

int cuEventCreate(void **event, unsigned flags) {
    BEGIN();
    CHECK(current() != NULL, INVALID_CONTEXT);
    CHECK(flags == 2, INVALID_VALUE);
    *event = late_event_make();
    event_count++;
    return done(0);
}

int cuEventDestroy_v2(void *event) {
    BEGIN();
    CHECK(current() != NULL, INVALID_CONTEXT);
    late_event_free(event);
    event_count--;
    return done(0);
}

int cuEventRecord(void *event, void *stream) {
    BEGIN();
    APART(stream);
    CHECK(current() != NULL, INVALID_CONTEXT);
    CHECK(event != NULL, INVALID_VALUE);
    late_record(event, stream);
    return done(0);
}

int cuEventSynchronize(void *event) {
    BEGIN();
    SAFE();
    CHECK(current() != NULL, INVALID_CONTEXT);
    return done(late_await(event) ? 0 : LAUNCH_FAILED);
}

/* ---- launches ---- */

/* A launch with its arguments, which are taken when it is begun. */
struct launch {
    const struct function *function;
    unsigned numbers[7]; /* grid, block, shared memory */
    unsigned char *arguments[PARAMETERS];
};

/* Run it, and free it; returns an error. */
static int run(struct launch *launch) {
    const struct function *const one = launch->function;
    const struct context *const context = one->module->context;
    ask('R');
    say_number(one->module->number);
    say_bytes(one->name, strlen(one->name));
    for (int i = 0; i < 7; i++) say_number(launch->numbers[i]);
    say_number(one->count);
    for (unsigned i = 0; i < one->count; i++) {
        say_bytes(launch->arguments[i], one->sizes[i]);
        free(launch->arguments[i]);
    }
    free(launch);
    uint64_t count = 0;
    for (int i = 0; i < ALLOCATIONS; i++) count += allocations[i].context == context;
    say_number(count);
    for (int i = 0; i < ALLOCATIONS; i++)
        if (allocations[i].context == context) {
            say_number(allocations[i].address);
            say_bytes(allocations[i].data, allocations[i].bytes);
        }
    char message[512];
    hear_text(message, sizeof message);
    if (message[0] != '\0') {
        tell("violation: %s: %s\n", one->name, message);
        return LAUNCH_FAILED;
    }
    for (int i = 0; i < ALLOCATIONS; i++)
        if (allocations[i].context == context) hear(allocations[i].data, allocations[i].bytes);
    tell("ran %s\n", one->name);
    return 0;
}

static void run_late(void *launch) { (void)run(launch); }

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared_bytes, void *stream, void **arguments, void **extra) {
    BEGIN();
    const struct function *const one = function;
    CHECK(is_function(one), INVALID_HANDLE);
    CHECK(extra == NULL && arguments != NULL, INVALID_VALUE);
    CHECK(grid_x >= 1 && grid_y >= 1 && grid_z >= 1 && grid_x <= 2147483647 && grid_y <= 65535 && grid_z <= 65535, INVALID_VALUE);
    CHECK(block_x >= 1 && block_y >= 1 && block_z >= 1 && block_x <= 1024 && block_y <= 1024 && block_z <= 64, INVALID_VALUE);
    CHECK((uint64_t)block_x * block_y * block_z <= 1024, INVALID_VALUE);
    CHECK((int)shared_bytes <= one->dynamic_bytes, INVALID_VALUE);
    if (stream != NULL && stream == captured) {
        kernels_captured++;
        return done(0);
    }
    APART(stream);
    const unsigned numbers[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes};
    struct launch *const launch = calloc(1, sizeof *launch);
    launch->function = one;
    memcpy(launch->numbers, numbers, sizeof numbers);
    const void *starts[PARAMETERS];
    size_t lengths[PARAMETERS], used = 0;
    for (unsigned i = 0; i < one->count; i++) {
        launch->arguments[i] = malloc(one->sizes[i]);
        memcpy(launch->arguments[i], arguments[i], one->sizes[i]);
        uint64_t address;
        if (one->sizes[i] != sizeof address) continue;
        memcpy(&address, arguments[i], sizeof address);
        const struct allocation *const memory = holding(address, 1);
        if (memory == NULL) continue;
        starts[used] = memory->data;
        lengths[used++] = memory->bytes;
    }
    if (stream == NULL) return done(run(launch));
    late_begin(stream, run_late, launch, starts, lengths, used);
    return done(0);
}
