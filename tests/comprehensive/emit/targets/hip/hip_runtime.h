/* HIP's runtime with no device behind it, for tests: kernels run on the processor, one block after the other.
 *
 * The names and numbers of arguments are those of HIP's own header.  Memory of a device is memory of the host that the
 * program must not touch itself: it is protected while no call works on it, and from kernels of other devices.  Calls of
 * several threads come one after the other.  What is begun on streams takes effect late (late_streams.h).
 *
 *   STANDIN_FAIL=7    the seventh call fails
 *   STANDIN_DEVICES   how many devices there are, 1 by default
 *   STANDIN_CAPABILITIES=90,86   their compute capabilities, 9.0 by default
 *   STANDIN_SHARED    bytes of dynamic shared memory that a kernel may have at first, all by default
 *   STANDIN_STATIC    bytes of shared memory that every kernel has besides, none by default
 *   STANDIN_COUNT=1   the number of calls is printed at the end
 */
#pragma once
#include "late_streams.h"
#include "metafork/cpu_blocks.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <sys/mman.h>
#include <tuple>
#include <type_traits>
#include <utility>

#define __shared__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shfl(value, lane, width) metafork_cpu::shuffle(0xffffffffu, (value), __LINE__, (lane), (width))

#define VECTORS(element, two, four)                                                    \
    struct alignas(2 * sizeof(element)) two { element x, y; };                         \
    struct alignas(sizeof(element) < 8 ? 4 * sizeof(element) : 16) four { element x, y, z, w; };
VECTORS(float, float2, float4)
VECTORS(int, int2, int4)
VECTORS(unsigned int, uint2, uint4)
VECTORS(double, double2, double4)
VECTORS(long, long2, long4)
VECTORS(unsigned long, ulong2, ulong4)
VECTORS(long long, longlong2, longlong4)
VECTORS(unsigned long long, ulonglong2, ulonglong4)
#undef VECTORS

/* Blocks and threads run one after the other here. */
template <class Word> static inline Word atomicCAS(Word *place, Word expected, Word next) {
    (void)__atomic_compare_exchange_n(place, &expected, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
#define ATOMIC(name, operation)                                             \
    template <class Word> static inline void name(Word *place, Word value) { \
        const Word old = *place;                                            \
        *place = (operation);                                               \
    }
ATOMIC(atomicAdd, (Word)(old + value))
ATOMIC(atomicAnd, (Word)(old & value))
ATOMIC(atomicOr, (Word)(old | value))
ATOMIC(atomicXor, (Word)(old ^ value))
ATOMIC(atomicMin, value < old ? value : old)
ATOMIC(atomicMax, old < value ? value : old)
#undef ATOMIC

enum [[nodiscard]] hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorOutOfMemory = 2, hipErrorInvalidDeviceFunction = 98, hipErrorNoDevice = 100, hipErrorInvalidDevice = 101, hipErrorInvalidHandle = 400, hipErrorLaunchFailure = 719, hipErrorStreamCaptureImplicit = 906 };
enum hipMemcpyKind { hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2 };
enum hipFuncAttribute { hipFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum hipDeviceAttribute_t {
    hipDeviceAttributeMaxRegistersPerBlock, hipDeviceAttributeMaxThreadsPerBlock, hipDeviceAttributeMaxSharedMemoryPerBlock,
    hipDeviceAttributeMaxBlockDimX, hipDeviceAttributeMaxBlockDimY, hipDeviceAttributeMaxBlockDimZ, hipDeviceAttributeMaxGridDimX,
    hipDeviceAttributeMaxGridDimY, hipDeviceAttributeMaxGridDimZ, hipDeviceAttributeWarpSize, hipDeviceAttributeMaxBlocksPerMultiProcessor,
    hipDeviceAttributeMaxRegistersPerMultiprocessor, hipDeviceAttributeMaxSharedMemoryPerMultiprocessor,
    hipDeviceAttributeMaxThreadsPerMultiProcessor, hipDeviceAttributeComputeCapabilityMajor, hipDeviceAttributeComputeCapabilityMinor
};
enum hipStreamCaptureMode { hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed };
enum hipStreamCaptureStatus { hipStreamCaptureStatusNone, hipStreamCaptureStatusActive };
typedef struct ihipStream_t *hipStream_t;
struct hipFuncAttributes {
    size_t localSizeBytes;
    int maxDynamicSharedSizeBytes, maxThreadsPerBlock, numRegs;
    size_t sharedSizeBytes;
};

/* What `extern __shared__` arrays of all kernels are. */
alignas(16) inline unsigned char metafork_shared[65536];

namespace hip_standin {

/* A kernel with arguments, which are taken at the launch, and those that are pointers. */
struct launched {
    std::function<void()> run;
    std::vector<const void *> pointers;
};
inline void note(std::vector<const void *> &pointers, const void *pointer) { pointers.push_back(pointer); }
template <class Type, std::enable_if_t<!std::is_pointer_v<Type>, int> = 0> inline void note(std::vector<const void *> &, Type) {}
inline std::map<const void *, std::function<launched(void **)>> &kernels() {
    static std::map<const void *, std::function<launched(void **)>> all;
    return all;
}

/* A kernel of the program, with the types of its arguments. */
struct kernel {
    template <class... Types> explicit kernel(void (*function)(Types...)) {
        kernels()[(const void *)function] = [function](void **arguments) { return taken(function, arguments, std::index_sequence_for<Types...>()); };
    }
    template <class... Types, size_t... Places>
    static launched taken(void (*function)(Types...), void **arguments, std::index_sequence<Places...>) {
        const std::tuple<std::decay_t<Types>...> values(*static_cast<Types *>(arguments[Places])...);
        std::vector<const void *> pointers;
        (note(pointers, *static_cast<Types *>(arguments[Places])), ...);
        return {[function, values] { std::apply(function, values); }, pointers};
    }
};

struct allocation {
    size_t bytes;
    int device;
};
inline std::map<char *, allocation> &memory() {
    static std::map<char *, allocation> all;
    return all;
}

inline std::map<char *, size_t> &managed() {
    static std::map<char *, size_t> all;
    return all;
}

/* The memory that holds some bytes of a device, or null. */
inline const allocation *holding(const void *address, size_t bytes) {
    const char *const at = (const char *)address;
    for (auto &[start, one] : memory())
        if (at >= start && at + bytes <= start + one.bytes) return &one;
    return nullptr;
}

inline void allow(int device, bool access) {
    for (auto &[start, one] : memory())
        if (one.device == device) mprotect(start, one.bytes, access ? PROT_READ | PROT_WRITE : PROT_NONE);
}

inline int number_of(const char *variable, int otherwise) {
    const char *const text = getenv(variable);
    return text != nullptr ? atoi(text) : otherwise;
}

inline size_t calls;
inline thread_local int current; /* the device of the thread */

inline bool is_device(int device) {
    static const int count = number_of("STANDIN_DEVICES", 1);
    return device >= 0 && device < count;
}

inline int capability(int device) {
    const char *text = getenv("STANDIN_CAPABILITIES");
    for (; text != nullptr && device > 0; device--) text = strchr(text, ',') != nullptr ? strchr(text, ',') + 1 : nullptr;
    return text != nullptr ? atoi(text) : 90;
}

inline int static_bytes() {
    static const int bytes = number_of("STANDIN_STATIC", 0);
    return bytes;
}

/* Dynamic shared memory that a kernel may have on the thread's device. */
inline int &allowed(const void *function) {
    static std::map<std::pair<const void *, int>, int> all;
    static const int first = number_of("STANDIN_SHARED", (int)sizeof metafork_shared - static_bytes());
    return all.try_emplace({function, current}, first).first->second;
}

inline hipFuncAttributes attributes(const void *function) { return {0, allowed(function), 1024, 40, (size_t)static_bytes()}; }

/* A call begins: the error that it returns at once. */
inline hipError_t begun() {
    static const int failing = number_of("STANDIN_FAIL", 0);
    return ++calls == (size_t)failing ? hipErrorInvalidValue : hipSuccess;
}

/* The stream that is being captured, in the global mode; whether that of no number waits for it; and kernels that were captured. */
inline hipStream_t captured;
inline bool blocking;
inline int kernels_captured;
inline thread_local hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;

inline hipStream_t begin_capture(bool blocks) {
    blocking = blocks;
    return captured = (hipStream_t)late::make(current);
}
/* Returns how many kernels the graph has. */
inline int end_capture() {
    if (mode != hipStreamCaptureModeGlobal) late::violation("a thread's mode has been left behind");
    late::end((late::Stream *)captured);
    captured = nullptr;
    return kernels_captured;
}
inline void refuse(hipStream_t stream) {
    if (captured == nullptr) return;
    if (stream == captured) late::violation("the stream that is captured gets what is no kernel");
    if (stream == nullptr && blocking) late::violation("the stream that waits for the captured one is used");
}
/* What a graph does not see, and what a thread must not do meanwhile. */
inline void unsafe() {
    if (captured != nullptr && mode != hipStreamCaptureModeRelaxed) late::violation("an unsafe call while a stream is captured");
}

struct leaks {
    leaks() {
        (void)memory(); /* is there longer */
        (void)late::device();
    }
    ~leaks() {
        for (auto &[start, bytes] : late::device().pinned) fprintf(stderr, "left %zu pinned bytes\n", bytes);
        if (!late::device().streams.empty()) fprintf(stderr, "left %zu streams\n", late::device().streams.size());
        for (auto &[start, one] : memory()) fprintf(stderr, "left %zu bytes\n", one.bytes);
        if (getenv("STANDIN_COUNT") != nullptr) fprintf(stderr, "%zu calls\n", calls);
    }
};
inline leaks at_the_end;

} // namespace hip_standin

#define HIP_STANDIN_BEGIN() \
    const late::Guard guard_(late::device().lock); \
    if (const hipError_t error_ = hip_standin::begun(); error_ != hipSuccess) return error_

inline hipError_t hipGetLastError() { return hipSuccess; }
inline const char *hipGetErrorString(hipError_t error) { return error == hipErrorOutOfMemory ? "out of memory" : error == hipErrorLaunchFailure ? "unspecified launch failure" : "invalid argument"; }

inline hipError_t hipGetDevice(int *device) {
    HIP_STANDIN_BEGIN();
    *device = hip_standin::current;
    return hipSuccess;
}

/* An MI200: waves of 64, and nothing to be opted in to. */
inline hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
    static const int values[] = {65536, 1024, 65536, 1024, 1024, 1024, 2147483647, 65536, 65536, 64, 32, 65536, 65536, 2048};
    HIP_STANDIN_BEGIN();
    if (!hip_standin::is_device(device)) return hipErrorInvalidDevice;
    if (attribute == hipDeviceAttributeComputeCapabilityMajor)
        *value = hip_standin::capability(device) / 10;
    else if (attribute == hipDeviceAttributeComputeCapabilityMinor)
        *value = hip_standin::capability(device) % 10;
    else
        *value = values[attribute];
    return hipSuccess;
}

inline hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
    std::swap(*mode, hip_standin::mode);
    return hipSuccess;
}
inline hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status) {
    HIP_STANDIN_BEGIN();
    const bool any = hip_standin::captured != nullptr;
    if (stream == nullptr && any && hip_standin::blocking) return hipErrorStreamCaptureImplicit;
    *status = any && stream == hip_standin::captured ? hipStreamCaptureStatusActive : hipStreamCaptureStatusNone;
    return hipSuccess;
}

inline hipError_t hipMalloc(void **out, size_t bytes) {
    HIP_STANDIN_BEGIN();
    hip_standin::unsafe();
    void *const start = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return hipErrorOutOfMemory;
    hip_standin::memory()[(char *)start] = {bytes, hip_standin::current};
    *out = start;
    return hipSuccess;
}

inline hipError_t hipFree(void *start) {
    HIP_STANDIN_BEGIN();
    hip_standin::unsafe();
    const auto found = hip_standin::memory().find((char *)start);
    if (found == hip_standin::memory().end()) return hipErrorInvalidValue;
    late::ends(start, found->second.bytes);
    munmap(start, found->second.bytes);
    hip_standin::memory().erase(found);
    return hipSuccess;
}

inline hipError_t hipMemcpy2D(void *to, size_t to_stride, const void *from, size_t stride, size_t width, size_t rows, hipMemcpyKind kind) {
    HIP_STANDIN_BEGIN();
    hip_standin::unsafe();
    hip_standin::refuse(nullptr);
    const bool there = kind == hipMemcpyHostToDevice;
    const hip_standin::allocation *const one = hip_standin::holding(there ? to : from, (there ? to_stride : stride) * (rows - 1) + width);
    if (one == nullptr || width > stride || width > to_stride) return hipErrorInvalidValue;
    hip_standin::allow(one->device, true);
    for (size_t row = 0; row < rows; row++) memcpy((char *)to + row * to_stride, (const char *)from + row * stride, width);
    hip_standin::allow(one->device, false);
    return hipSuccess;
}

inline hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind) {
    return hipMemcpy2D(to, bytes, from, bytes, bytes, 1, kind);
}

/* Managed memory is the host's as well. */
inline hipError_t hipMallocManaged(void **out, size_t bytes) {
    HIP_STANDIN_BEGIN();
    *out = calloc(1, bytes);
    hip_standin::managed()[(char *)*out] = bytes;
    return hipSuccess;
}

enum hipMemoryType { hipMemoryTypeUnregistered, hipMemoryTypeHost, hipMemoryTypeDevice, hipMemoryTypeManaged };
struct hipPointerAttribute_t {
    hipMemoryType type;
    int device;
};

inline hipError_t hipMemGetAddressRange(void **start, size_t *bytes, void *address) {
    HIP_STANDIN_BEGIN();
    for (auto &[from, size] : hip_standin::managed())
        if ((char *)address >= from && (char *)address < from + size) return *start = from, *bytes = size, hipSuccess;
    for (auto &[from, one] : hip_standin::memory())
        if ((char *)address >= from && (char *)address < from + one.bytes) return *start = from, *bytes = one.bytes, hipSuccess;
    return hipErrorInvalidValue;
}

inline hipError_t hipPointerGetAttributes(hipPointerAttribute_t *out, const void *address) {
    HIP_STANDIN_BEGIN();
    void *start;
    size_t bytes;
    const hip_standin::allocation *const one = hip_standin::holding(address, 1);
    if (one != nullptr) return *out = {hipMemoryTypeDevice, one->device}, hipSuccess;
    hip_standin::calls--;
    if (hipMemGetAddressRange(&start, &bytes, (void *)address) != hipSuccess) return hipErrorInvalidValue;
    return *out = {hipMemoryTypeManaged, 0}, hipSuccess;
}

inline hipError_t hipDeviceReset() {
    const late::Guard guard(late::device().lock);
    late::reset();
    for (auto &[start, one] : hip_standin::memory()) munmap(start, one.bytes);
    hip_standin::memory().clear();
    return hipSuccess;
}

inline hipError_t hipSetDevice(int device) {
    HIP_STANDIN_BEGIN();
    if (!hip_standin::is_device(device)) return hipErrorInvalidDevice;
    hip_standin::current = device;
    return hipSuccess;
}

/* ---- streams ---- */

typedef late::Event *hipEvent_t;
enum { hipStreamNonBlocking = 1, hipEventDisableTiming = 2, hipHostMallocDefault = 0 };

namespace hip_standin {
inline late::Stream *of(hipStream_t stream) { return (late::Stream *)stream; }
inline hipError_t told(bool well) { return well ? hipSuccess : hipErrorLaunchFailure; }
} // namespace hip_standin

inline hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
    HIP_STANDIN_BEGIN();
    if (flags != hipStreamNonBlocking) return hipErrorInvalidValue;
    *stream = (hipStream_t)late::make(hip_standin::current);
    return hipSuccess;
}
inline hipError_t hipStreamDestroy(hipStream_t stream) {
    HIP_STANDIN_BEGIN();
    late::end(hip_standin::of(stream));
    return hipSuccess;
}
/* That of no number waits for nothing here: the others are made not to wait for it. */
inline hipError_t hipStreamSynchronize(hipStream_t stream) {
    HIP_STANDIN_BEGIN();
    hip_standin::unsafe();
    hip_standin::refuse(stream);
    return stream == nullptr ? hipSuccess : hip_standin::told(late::finish(hip_standin::of(stream)));
}
inline hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned) {
    HIP_STANDIN_BEGIN();
    hip_standin::refuse(stream);
    late::follow(hip_standin::of(stream), event);
    return hipSuccess;
}
inline hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
    HIP_STANDIN_BEGIN();
    if (flags != hipEventDisableTiming) return hipErrorInvalidValue;
    *event = new late::Event{hip_standin::current};
    return hipSuccess;
}
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
    HIP_STANDIN_BEGIN();
    hip_standin::refuse(stream);
    if (stream != nullptr && event->device != hip_standin::of(stream)->device) return hipErrorInvalidHandle;
    late::record(event, hip_standin::of(stream));
    return hipSuccess;
}
inline hipError_t hipEventSynchronize(hipEvent_t event) {
    HIP_STANDIN_BEGIN();
    hip_standin::unsafe();
    return hip_standin::told(late::await(event));
}
inline hipError_t hipEventDestroy(hipEvent_t event) {
    HIP_STANDIN_BEGIN();
    delete event;
    return hipSuccess;
}
inline hipError_t hipHostMalloc(void **out, size_t bytes, unsigned flags) {
    HIP_STANDIN_BEGIN();
    hip_standin::unsafe();
    if (flags != hipHostMallocDefault) return hipErrorInvalidValue;
    *out = late::pin(bytes);
    return hipSuccess;
}
inline hipError_t hipHostGetFlags(unsigned *flags, void *memory) {
    HIP_STANDIN_BEGIN();
    *flags = 0;
    return late::device().pinned.count((const char *)memory) != 0 ? hipSuccess : hipErrorInvalidValue;
}
inline hipError_t hipHostFree(void *memory) {
    HIP_STANDIN_BEGIN();
    hip_standin::unsafe();
    late::unpin(memory);
    return hipSuccess;
}
inline hipError_t hipMemcpy2DAsync(void *to, size_t to_stride, const void *from, size_t stride, size_t width, size_t rows, hipMemcpyKind kind,
                                   hipStream_t stream) {
    HIP_STANDIN_BEGIN();
    hip_standin::refuse(stream);
    const bool there = kind == hipMemcpyHostToDevice;
    const hip_standin::allocation *const one = hip_standin::holding(there ? to : from, (there ? to_stride : stride) * (rows - 1) + width);
    if (one == nullptr || width > stride || width > to_stride) return hipErrorInvalidValue;
    const auto allow = [device = one->device](bool access) { hip_standin::allow(device, access); };
    late::copy(hip_standin::of(stream), to, to_stride, from, stride, width, rows, there, allow);
    return hipSuccess;
}
inline hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
    return hipMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

inline hipError_t hipFuncGetAttributes(hipFuncAttributes *out, const void *function) {
    HIP_STANDIN_BEGIN();
    if (hip_standin::kernels().count(function) == 0) return hipErrorInvalidDeviceFunction;
    *out = hip_standin::attributes(function);
    return hipSuccess;
}

/* Less than all may take from another thread what it raised the limit to, and is about to launch with. */
inline hipError_t hipFuncSetAttribute(const void *function, hipFuncAttribute attribute, int value) {
    HIP_STANDIN_BEGIN();
    if (attribute != hipFuncAttributeMaxDynamicSharedMemorySize || value + hip_standin::static_bytes() != (int)sizeof metafork_shared)
        return hipErrorInvalidValue;
    hip_standin::allowed(function) = value;
    return hipSuccess;
}

inline hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, hipStream_t stream) {
    HIP_STANDIN_BEGIN();
    const auto found = hip_standin::kernels().find(function);
    if (found == hip_standin::kernels().end()) return hipErrorInvalidDeviceFunction;
    if (shared_bytes > (size_t)hip_standin::allowed(function) || (uint64_t)grid.x * block.x >> 32 != 0) return hipErrorInvalidValue;
    if (stream != nullptr && hip_standin::of(stream)->device != hip_standin::current) return hipErrorInvalidHandle;
    const hip_standin::launched kernel = found->second(arguments);
    const auto run = [=, device = hip_standin::current] {
        memset(metafork_shared, 0xff, sizeof metafork_shared);
        hip_standin::allow(device, true);
        if (!metafork_cpu::launch("a kernel", grid, block, (int64_t)shared_bytes, kernel.run)) late::violation("no memory");
        hip_standin::allow(device, false);
    };
    if (stream != nullptr && stream == hip_standin::captured) {
        hip_standin::kernels_captured++;
        return hipSuccess;
    }
    hip_standin::refuse(stream);
    if (stream == nullptr) {
        run();
        return hipSuccess;
    }
    std::vector<late::Range> uses;
    for (auto &[start, one] : hip_standin::memory())
        for (const void *const pointer : kernel.pointers)
            if (pointer >= start && pointer < start + one.bytes) uses.push_back({start, one.bytes});
    late::begin(hip_standin::of(stream), run, uses);
    return hipSuccess;
}
