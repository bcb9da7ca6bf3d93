/* What launch.h asks of a target, by the CUDA runtime (nvcc), by HIP under the same names (METAFORK_HIP), or on the processor
 * (the CPU build).  C++. */
#ifndef METAFORK_TARGET_CUDA_H
#define METAFORK_TARGET_CUDA_H

#if defined(METAFORK_HIP)
#include "metafork/hip.h"
#endif
#include "metafork/device.h"

#if defined(METAFORK_CPU)
#include <utility>
#endif
#if !defined(METAFORK_CPU) && !defined(METAFORK_HIP)
#include <cuda_runtime.h>
#endif

/* A kernel that nvcc never saw: PTX, loaded at its first launch. */
struct metafork_ptx {
    const char *text;
    const char *name;
    void *kernel;
};
#define METAFORK_NOT_LOADED nullptr
#define METAFORK_HAS_STREAMS
#define METAFORK_REMEMBERS
#if !defined(METAFORK_CPU) && (defined(METAFORK_HIP) || CUDART_VERSION >= 12000)
#define METAFORK_HAS_PLACES
#endif
/* A C library that has dlopen itself: nothing is linked for it. */
#if !defined(METAFORK_CPU) && !defined(METAFORK_HIP) && defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
#define METAFORK_HAS_NVTX
#endif

#if defined(METAFORK_CPU)

static inline int metafork_current_device(int *device) {
    *device = 0;
    return METAFORK_OK;
}

static inline int metafork_hardware_query(int, metafork_machine *out) {
    memset(out, 0, sizeof *out);
    return metafork_machine_preset("sm_80", 5, out);
}

static inline const char *metafork_message(int error) { return metafork_error_text(error); }

static inline int metafork_device_allocate(int, void **out, int64_t bytes) {
    *out = malloc((size_t)bytes);
    return *out == nullptr ? METAFORK_ENOMEM : METAFORK_OK;
}

static inline void metafork_device_free(int, void *memory) { free(memory); }

static inline int metafork_device_copy(int, void *to, const void *from, int64_t bytes, bool) {
    memcpy(to, from, (size_t)bytes);
    return METAFORK_OK;
}

static inline int metafork_device_copy_rows(int, void *to, const void *from, int64_t width, int64_t stride, int64_t rows, bool) {
    for (int64_t row = 0; row < rows; row++) memcpy((char *)to + row * stride, (const char *)from + row * stride, (size_t)width);
    return METAFORK_OK;
}

static inline int metafork_finish() { return METAFORK_OK; }

/* Streams have nothing under way: what is begun is over. */
static inline int metafork_stream_make(int, void **) { return METAFORK_OK; }
static inline void metafork_stream_free(int, void *) {}
static inline int metafork_stream_finish(int, void *) { return METAFORK_OK; }
static inline int metafork_stream_follow(int, void *, void *) { return METAFORK_OK; }
static inline int metafork_event_record(int, void *, void **) { return METAFORK_OK; }
static inline int metafork_event_await(int, void *) { return METAFORK_OK; }
static inline void metafork_event_free(int, void *) {}

static inline int metafork_pinned_allocate(int device, void **out, int64_t bytes) { return metafork_device_allocate(device, out, bytes); }
static inline void metafork_pinned_free(int device, void *memory) { metafork_device_free(device, memory); }
static inline bool metafork_pinned_is(int, void *) { return true; }
static inline bool metafork_captured(int, void *) { return false; }

static inline int metafork_copy_begin(int, void *, void *to, int64_t to_stride, const void *from, int64_t from_stride, metafork_rows rows, bool) {
    for (int64_t row = 0; row < rows.count; row++) memcpy((char *)to + row * to_stride, (const char *)from + row * from_stride, (size_t)rows.width);
    return METAFORK_OK;
}

static inline int metafork_kernel_attributes(const void *, metafork_attributes *) { return METAFORK_OK; }

/* Run a checked shape; `thread` calls the kernel. */
template <class Thread> static int metafork_launch_blocks(const char *kernel, const metafork_shape *shape, const Thread &thread) {
    const dim3 grid = {(unsigned)shape->grid[0], (unsigned)shape->grid[1], (unsigned)shape->grid[2]};
    const dim3 block = {(unsigned)shape->block[0], (unsigned)shape->block[1], (unsigned)shape->block[2]};
    return metafork_cpu::launch(kernel, grid, block, shape->shared_bytes, thread) ? METAFORK_OK : METAFORK_ENOMEM;
}

/* One thread of a kernel, with pointers to its arguments, as cudaLaunchKernel takes them. */
template <auto Kernel> struct metafork_thread;
template <class... Types, void (*Kernel)(Types...)> struct metafork_thread<Kernel> {
    template <size_t... Places> static void pass(void **arguments, std::index_sequence<Places...>) {
        (void)arguments;
        Kernel(*static_cast<Types *>(arguments[Places])...);
    }
    static void run(void **arguments) { pass(arguments, std::index_sequence_for<Types...>()); }
};

/* Check a kernel of METAFORK_KERNEL, and return where that fails or is all; launch what was checked. */
#define METAFORK_CHECK_KERNEL(name)                                                                                    \
    const int metafork_error = metafork_check_shape(metafork_s, NULL);                                                 \
    if (metafork_error != METAFORK_OK || !metafork_go) return metafork_error
#define METAFORK_LAUNCH_KERNEL(name)                                                                                   \
    metafork_launch_blocks(#name, metafork_s, [&] {                                                                    \
        (metafork_s->large ? metafork_thread<name##_large>::run : metafork_thread<name>::run)(metafork_p);             \
    })

#else

/* An error that is reported or handled here is not left behind for the caller's cudaGetLastError. */
static inline int metafork_taken(cudaError_t error) {
    if (error != cudaSuccess) (void)cudaGetLastError();
    return (int)error;
}

/* Where one is, its thread may allocate, free, load and wait although some stream of the program is being captured into a graph:
 * nothing of that is to be in the graph, nor makes it wrong. */
struct metafork_uncaptured {
    cudaStreamCaptureMode mode;
    bool changed;
    metafork_uncaptured() : mode(cudaStreamCaptureModeRelaxed), changed(metafork_taken(cudaThreadExchangeStreamCaptureMode(&mode)) == METAFORK_OK) {}
    ~metafork_uncaptured() {
        if (changed) (void)metafork_taken(cudaThreadExchangeStreamCaptureMode(&mode));
    }
    metafork_uncaptured(const metafork_uncaptured &) = delete;
    metafork_uncaptured &operator=(const metafork_uncaptured &) = delete;
};

static inline int metafork_current_device(int *device) { return metafork_taken(cudaGetDevice(device)); }

static inline int metafork_hardware_read(int device, metafork_machine *out) {
    memset(out, 0, sizeof *out);
    const struct {
        cudaDeviceAttr attribute;
        int64_t *field;
        int64_t unit;
    } wanted[] = {
        {cudaDevAttrMaxRegistersPerBlock, &out->registers_per_block, 1},
        {cudaDevAttrMaxThreadsPerBlock, &out->threads_per_block, 1},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, &out->shared_words, 4},
        {cudaDevAttrMaxBlockDimX, &out->block_dim_x, 1},
        {cudaDevAttrMaxBlockDimY, &out->block_dim_y, 1},
        {cudaDevAttrMaxBlockDimZ, &out->block_dim_z, 1},
        {cudaDevAttrMaxGridDimX, &out->grid_dim_x, 1},
        {cudaDevAttrMaxGridDimY, &out->grid_dim_y, 1},
        {cudaDevAttrMaxGridDimZ, &out->grid_dim_z, 1},
        {cudaDevAttrWarpSize, &out->warp_size, 1},
        {cudaDevAttrMaxBlocksPerMultiprocessor, &out->blocks_per_sm, 1},
        {cudaDevAttrMaxRegistersPerMultiprocessor, &out->registers_per_sm, 1},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, &out->shared_words_per_sm, 4},
    };
    int value = 0;
    cudaError_t error;
    for (const auto &one : wanted) {
        error = cudaDeviceGetAttribute(&value, one.attribute, device);
        if (error != cudaSuccess) return (int)error;
        *one.field = value / one.unit;
    }
    error = cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    if (error != cudaSuccess) return (int)error;
    out->warps_per_sm = value / (out->warp_size > 0 ? out->warp_size : 32);
#if defined(METAFORK_HIP)
    /* A thread has 256 vector registers, a launch less than 2^32 threads in each direction, and capabilities other numbers. */
    out->registers_per_thread = 256;
    metafork_machine_units(out);
    if (out->grid_dim_x > UINT32_MAX / 1024) out->grid_dim_x = UINT32_MAX / 1024;
    return METAFORK_OK;
#endif
    error = cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, device);
    if (error != cudaSuccess) return (int)error;
    out->compute_capability = 10 * value;
    error = cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMinor, device);
    if (error != cudaSuccess) return (int)error;
    out->compute_capability += value;
    /* The runtime does not say; 63 before compute capability 3.5, 255 since. */
    out->registers_per_thread = out->compute_capability < 35 ? 63 : 255;
    metafork_machine_units(out);
    return METAFORK_OK;
}

/* What a device has does not change, and every launch asks for it several times: it is read once. */
static inline int metafork_hardware_query(int device, metafork_machine *out) {
    enum { MOST_DEVICES = 64, UNKNOWN = 0, WRITTEN = 1, KNOWN = 2 };
    static struct {
        int state;
        metafork_machine machine;
    } devices[MOST_DEVICES];
    const bool kept = device >= 0 && device < MOST_DEVICES;
    if (kept && __atomic_load_n(&devices[device].state, __ATOMIC_ACQUIRE) == KNOWN) {
        *out = devices[device].machine;
        return METAFORK_OK;
    }
    const int error = metafork_hardware_read(device, out);
    int state = UNKNOWN;
    if (error == METAFORK_OK && kept &&
        __atomic_compare_exchange_n(&devices[device].state, &state, (int)WRITTEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        devices[device].machine = *out;
        __atomic_store_n(&devices[device].state, (int)KNOWN, __ATOMIC_RELEASE);
    }
    return error;
}

static inline const char *metafork_message(int error) {
    return error > 0 ? cudaGetErrorString((cudaError_t)error) : metafork_error_text(error);
}

static inline int metafork_device_allocate(int, void **out, int64_t bytes) {
    const metafork_uncaptured here;
    return metafork_taken(cudaMalloc(out, (size_t)bytes));
}

static inline void metafork_device_free(int, void *memory) {
    const metafork_uncaptured here;
    (void)cudaFree(memory);
}

static inline int metafork_device_copy(int, void *to, const void *from, int64_t bytes, bool to_device) {
    const metafork_uncaptured here;
    return metafork_taken(cudaMemcpy(to, from, (size_t)bytes, to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost));
}

static inline int metafork_device_copy_rows(int, void *to, const void *from, int64_t width, int64_t stride, int64_t rows, bool to_device) {
    const metafork_uncaptured here;
    return metafork_taken(cudaMemcpy2D(to, (size_t)stride, from, (size_t)stride, (size_t)width, (size_t)rows,
                                       to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost));
}

static inline int metafork_finish() {
    const metafork_uncaptured here;
    return metafork_taken(cudaStreamSynchronize(nullptr));
}

static inline int metafork_stream_make(int, void **out) {
    const metafork_uncaptured here;
    return metafork_taken(cudaStreamCreateWithFlags((cudaStream_t *)out, cudaStreamNonBlocking));
}
static inline void metafork_stream_free(int, void *stream) {
    const metafork_uncaptured here;
    (void)metafork_taken(cudaStreamDestroy((cudaStream_t)stream));
}
static inline int metafork_stream_finish(int, void *stream) {
    const metafork_uncaptured here;
    return metafork_taken(cudaStreamSynchronize((cudaStream_t)stream));
}
static inline int metafork_stream_follow(int, void *stream, void *event) {
    return metafork_taken(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}
static inline int metafork_event_await(int, void *event) {
    const metafork_uncaptured here;
    return metafork_taken(cudaEventSynchronize((cudaEvent_t)event));
}
static inline void metafork_event_free(int, void *event) {
    const metafork_uncaptured here;
    (void)metafork_taken(cudaEventDestroy((cudaEvent_t)event));
}

/* An event is of the device that is current when it is made, which may have become another one than the stream's. */
static inline int metafork_event_record(int device, void *stream, void **event) {
    int current = device;
    cudaError_t error = cudaSuccess;
    if (*event == nullptr) {
        error = cudaGetDevice(&current);
        if (error == cudaSuccess && current != device) error = cudaSetDevice(device);
        if (error == cudaSuccess) error = cudaEventCreateWithFlags((cudaEvent_t *)event, cudaEventDisableTiming);
        if (current != device) {
            const cudaError_t back = cudaSetDevice(current);
            if (error == cudaSuccess) error = back;
        }
    }
    if (error == cudaSuccess) error = cudaEventRecord((cudaEvent_t)*event, (cudaStream_t)stream);
    return metafork_taken(error);
}

static inline int metafork_pinned_allocate(int, void **out, int64_t bytes) {
    const metafork_uncaptured here;
    return metafork_taken(cudaHostAlloc(out, (size_t)bytes, cudaHostAllocDefault));
}
static inline void metafork_pinned_free(int, void *memory) {
    const metafork_uncaptured here;
    (void)metafork_taken(cudaFreeHost(memory));
}
static inline bool metafork_pinned_is(int, void *memory) {
    const metafork_uncaptured here;
    unsigned flags;
    return metafork_taken(cudaHostGetFlags(&flags, memory)) == METAFORK_OK;
}

/* The stream of no number cannot be captured itself, nor be used while one is that it waits for. */
static inline bool metafork_captured(int, void *stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing((cudaStream_t)stream, &status);
    (void)metafork_taken(error);
    return error == cudaErrorStreamCaptureImplicit || (error == cudaSuccess && status != cudaStreamCaptureStatusNone);
}

#if defined(METAFORK_HAS_PLACES)
/* The allocation that holds an address of the device or of managed memory. */
static inline int metafork_allocation_of(const void *address, void **start, size_t *bytes) {
#if defined(METAFORK_HIP)
    return metafork_taken(hipMemGetAddressRange(start, bytes, (void *)address));
#else
    /* The runtime has no such call, and the driver is not linked. */
    typedef int range_of(unsigned long long *start, size_t *bytes, unsigned long long address);
    void *found = nullptr;
    cudaDriverEntryPointQueryResult status;
#if CUDART_VERSION >= 12050
    cudaError_t error = cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &found, 12000, cudaEnableDefault, &status);
#else
    cudaError_t error = cudaGetDriverEntryPoint("cuMemGetAddressRange", &found, cudaEnableDefault, &status);
#endif
    if (error != cudaSuccess || found == nullptr) return metafork_taken(error);
    unsigned long long from = 0;
    const int refused = ((range_of *)found)(&from, bytes, (unsigned long long)(uintptr_t)address);
    *start = (void *)(uintptr_t)from;
    return refused;
#endif
}

static inline int metafork_place_of(int device, const void *address, metafork_place *out) {
    const metafork_uncaptured here;
    cudaPointerAttributes attributes;
    void *start = nullptr;
    size_t bytes = 0;
    const cudaError_t error = cudaPointerGetAttributes(&attributes, address);
    if (error != cudaSuccess) return metafork_taken(error) == (int)cudaErrorInvalidValue ? METAFORK_OK : (int)error;
    if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged) return METAFORK_OK;
    if (attributes.type == cudaMemoryTypeDevice && attributes.device != device) return METAFORK_EELSEWHERE;
    const int refused = metafork_allocation_of(address, &start, &bytes);
    if (refused != METAFORK_OK || bytes == 0) return refused;
    out->start = (uintptr_t)start;
    out->bytes = (int64_t)bytes;
    out->of_device = attributes.type == cudaMemoryTypeDevice;
    return METAFORK_OK;
}
#endif

static inline int metafork_copy_begin(int, void *stream, void *to, int64_t to_stride, const void *from, int64_t from_stride, metafork_rows rows,
                                      bool to_device) {
    const cudaMemcpyKind way = to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    if (rows.count == 1) return metafork_taken(cudaMemcpyAsync(to, from, (size_t)rows.width, way, (cudaStream_t)stream));
    return metafork_taken(cudaMemcpy2DAsync(to, (size_t)to_stride, from, (size_t)from_stride, (size_t)rows.width, (size_t)rows.count, way,
                                            (cudaStream_t)stream));
}

/* The kernel of a PTX text.  Handles of libraries belong to no context, so that one serves all devices; threads may race
 * here, and the loser unloads its copy.  A failure is not remembered. */
static inline int metafork_load(metafork_ptx *ptx, const void **out) {
    const metafork_uncaptured here;
#if CUDART_VERSION >= 12080
    void *found = __atomic_load_n(&ptx->kernel, __ATOMIC_ACQUIRE);
    if (found == nullptr) {
        cudaLibrary_t library;
        cudaKernel_t kernel;
        cudaError_t error = cudaLibraryLoadData(&library, ptx->text, nullptr, nullptr, 0, nullptr, nullptr, 0);
        if (error != cudaSuccess) return metafork_taken(error);
        error = cudaLibraryGetKernel(&kernel, library, ptx->name);
        if (error != cudaSuccess) {
            (void)metafork_taken(error);
            (void)cudaLibraryUnload(library);
            return (int)error;
        }
        if (__atomic_compare_exchange_n(&ptx->kernel, &found, (void *)kernel, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            found = (void *)kernel;
        else
            (void)cudaLibraryUnload(library);
    }
    *out = found;
    return METAFORK_OK;
#else
    (void)ptx;
    (void)out;
    return METAFORK_EUNSUPPORTED;
#endif
}

static inline int metafork_load_now(metafork_ptx *ptx) {
    const void *kernel;
    return metafork_load(ptx, &kernel);
}

static inline int metafork_kernel_attributes(const void *kernel, metafork_attributes *out) {
    const metafork_uncaptured here;
    cudaFuncAttributes attributes;
    const int error = metafork_taken(cudaFuncGetAttributes(&attributes, kernel));
    if (error != METAFORK_OK) return error;
    out->registers = attributes.numRegs;
    out->threads = attributes.maxThreadsPerBlock;
    out->shared_bytes = (int64_t)attributes.sharedSizeBytes;
    return METAFORK_OK;
}

static inline int metafork_launch_begin(const void *function, const metafork_shape *shape, void *stream, void **arguments) {
    const dim3 grid = {(unsigned)shape->grid[0], (unsigned)shape->grid[1], (unsigned)shape->grid[2]};
    const dim3 block = {(unsigned)shape->block[0], (unsigned)shape->block[1], (unsigned)shape->block[2]};
    return metafork_taken(cudaLaunchKernel(function, grid, block, arguments, (size_t)shape->shared_bytes, (cudaStream_t)stream));
}

/* Launch a checked shape. */
static inline int metafork_launch_kernel(const void *function, const metafork_shape *shape, void *stream, void **arguments) {
    /* What was launched before is loaded, and may have its shared memory. */
    if (shape->ready) return metafork_launch_begin(function, shape, stream, arguments);
    const metafork_uncaptured here;
    cudaFuncAttributes attributes;
    cudaError_t error = cudaSuccess;
    if (shape->shared_bytes > 0) error = cudaFuncGetAttributes(&attributes, function);
    if (error == cudaSuccess && shape->shared_bytes > 0 && shape->shared_bytes > attributes.maxDynamicSharedSizeBytes) {
        /* All that a block may have: threads that raise the limit of one kernel together set the same number. */
        int device = 0, most = 0;
        error = cudaGetDevice(&device);
        if (error == cudaSuccess) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        if (error == cudaSuccess)
            error = cudaFuncSetAttribute(
                function, cudaFuncAttributeMaxDynamicSharedMemorySize, most - (int)attributes.sharedSizeBytes);
    }
    return error == cudaSuccess ? metafork_launch_begin(function, shape, stream, arguments) : metafork_taken(error);
}

/* Check a kernel of METAFORK_KERNEL, and return where that fails or is all; launch what was checked. */
#define METAFORK_CHECK_KERNEL(name)                                                                                    \
    const void *const metafork_functions[] = {(const void *)name, (const void *)name##_large};                         \
    const int metafork_error = metafork_check_shape(metafork_s, metafork_functions);                                   \
    if (metafork_error != METAFORK_OK || !metafork_go) return metafork_error
#define METAFORK_LAUNCH_KERNEL(name)                                                                                   \
    metafork_range_ends(metafork_launch_kernel(metafork_functions[metafork_s->large], metafork_s, metafork_stream, metafork_p))

#endif
#endif
