/* HIP's runtime with no device behind it, for tests: kernels run on the processor, one block after the other.
 *
 * The names and numbers of arguments are those of HIP's own header.  Memory of the device is memory of the host that the
 * program must not touch itself: it is protected while no call works on it.  STANDIN_FAIL=7 lets the seventh call fail.
 * What is begun on streams takes effect late (late_streams.h).
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

enum [[nodiscard]] hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorOutOfMemory = 2, hipErrorInvalidDeviceFunction = 98, hipErrorNoDevice = 100, hipErrorLaunchFailure = 719 };
enum hipMemcpyKind { hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2 };
enum hipFuncAttribute { hipFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum hipDeviceAttribute_t {
    hipDeviceAttributeMaxRegistersPerBlock, hipDeviceAttributeMaxThreadsPerBlock, hipDeviceAttributeMaxSharedMemoryPerBlock,
    hipDeviceAttributeMaxBlockDimX, hipDeviceAttributeMaxBlockDimY, hipDeviceAttributeMaxBlockDimZ, hipDeviceAttributeMaxGridDimX,
    hipDeviceAttributeMaxGridDimY, hipDeviceAttributeMaxGridDimZ, hipDeviceAttributeWarpSize, hipDeviceAttributeMaxBlocksPerMultiProcessor,
    hipDeviceAttributeMaxRegistersPerMultiprocessor, hipDeviceAttributeMaxSharedMemoryPerMultiprocessor,
    hipDeviceAttributeMaxThreadsPerMultiProcessor, hipDeviceAttributeComputeCapabilityMajor, hipDeviceAttributeComputeCapabilityMinor
};
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

inline std::map<char *, size_t> &memory() {
    static std::map<char *, size_t> all;
    return all;
}

inline void allow(bool access) {
    for (auto &[start, bytes] : memory()) mprotect(start, bytes, access ? PROT_READ | PROT_WRITE : PROT_NONE);
}

inline size_t failing() {
    static const char *const text = getenv("STANDIN_FAIL");
    return text != nullptr ? (size_t)atoi(text) : 0;
}

inline size_t calls;

/* Dynamic shared memory that a kernel may have: at first STANDIN_SHARED bytes, all where that is not set. */
inline int &allowed(const void *function) {
    static std::map<const void *, int> all;
    static const char *const text = getenv("STANDIN_SHARED");
    return all.try_emplace(function, text != nullptr ? atoi(text) : (int)sizeof metafork_shared).first->second;
}

/* A call begins: the error that it returns at once. */
inline hipError_t begun() {
    return ++calls == failing() ? hipErrorInvalidValue : hipSuccess;
}

struct leaks {
    leaks() {
        (void)memory(); /* is there longer */
        (void)late::device();
    }
    ~leaks() {
        for (auto &[start, bytes] : late::device().pinned) fprintf(stderr, "left %zu pinned bytes\n", bytes);
        if (!late::device().streams.empty()) fprintf(stderr, "left %zu streams\n", late::device().streams.size());
        for (auto &[start, bytes] : memory()) fprintf(stderr, "left %zu bytes\n", bytes);
        if (getenv("STANDIN_COUNT") != nullptr) fprintf(stderr, "%zu calls\n", calls);
    }
};
inline leaks at_the_end;

} // namespace hip_standin

#define HIP_STANDIN_BEGIN() \
    if (const hipError_t error_ = hip_standin::begun(); error_ != hipSuccess) return error_

inline hipError_t hipGetLastError() { return hipSuccess; }
inline const char *hipGetErrorString(hipError_t error) { return error == hipErrorOutOfMemory ? "out of memory" : error == hipErrorLaunchFailure ? "unspecified launch failure" : "invalid argument"; }

inline hipError_t hipGetDevice(int *device) {
    HIP_STANDIN_BEGIN();
    *device = 0;
    return hipSuccess;
}

/* An MI200: waves of 64, and nothing to be opted in to. */
inline hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
    static const int values[] = {65536, 1024, 65536, 1024, 1024, 1024, 2147483647, 65536, 65536, 64, 32, 65536, 65536, 2048, 9, 0};
    HIP_STANDIN_BEGIN();
    if (device != 0) return hipErrorInvalidValue;
    *value = values[attribute];
    return hipSuccess;
}

inline hipError_t hipMalloc(void **out, size_t bytes) {
    HIP_STANDIN_BEGIN();
    void *const start = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return hipErrorOutOfMemory;
    hip_standin::memory()[(char *)start] = bytes;
    *out = start;
    return hipSuccess;
}

inline hipError_t hipFree(void *start) {
    HIP_STANDIN_BEGIN();
    const auto found = hip_standin::memory().find((char *)start);
    if (found == hip_standin::memory().end()) return hipErrorInvalidValue;
    late::ends(start, found->second);
    munmap(start, found->second);
    hip_standin::memory().erase(found);
    return hipSuccess;
}

inline hipError_t hipMemcpy(void *to, const void *from, size_t bytes, hipMemcpyKind kind) {
    HIP_STANDIN_BEGIN();
    const char *const device = (const char *)(kind == hipMemcpyHostToDevice ? to : from);
    bool inside = false;
    for (auto &[start, size] : hip_standin::memory()) inside = inside || (device >= start && device + bytes <= start + size);
    if (!inside) return hipErrorInvalidValue;
    hip_standin::allow(true);
    memcpy(to, from, bytes);
    hip_standin::allow(false);
    return hipSuccess;
}

inline hipError_t hipMemcpy2D(void *to, size_t to_stride, const void *from, size_t stride, size_t width, size_t rows, hipMemcpyKind kind) {
    HIP_STANDIN_BEGIN();
    const bool there = kind == hipMemcpyHostToDevice;
    const char *const device = (const char *)(there ? to : from);
    const size_t bytes = (there ? to_stride : stride) * (rows - 1) + width;
    bool inside = false;
    for (auto &[start, size] : hip_standin::memory()) inside = inside || (device >= start && device + bytes <= start + size);
    if (!inside || width > stride || width > to_stride) return hipErrorInvalidValue;
    hip_standin::allow(true);
    for (size_t row = 0; row < rows; row++) memcpy((char *)to + row * to_stride, (const char *)from + row * stride, width);
    hip_standin::allow(false);
    return hipSuccess;
}

inline hipError_t hipDeviceReset() {
    late::reset();
    for (auto &[start, bytes] : hip_standin::memory()) munmap(start, bytes);
    hip_standin::memory().clear();
    return hipSuccess;
}

inline hipError_t hipSetDevice(int device) {
    HIP_STANDIN_BEGIN();
    return device == 0 ? hipSuccess : hipErrorInvalidValue;
}

/* ---- streams ---- */

typedef late::Event *hipEvent_t;
enum { hipStreamNonBlocking = 1, hipEventDisableTiming = 2, hipHostMallocDefault = 0 };

namespace hip_standin {
inline late::Stream *of(hipStream_t stream) { return (late::Stream *)stream; }
inline hipError_t told(bool well) { return well ? hipSuccess : hipErrorLaunchFailure; }
inline bool is_memory(const void *address, size_t bytes) {
    for (auto &[start, size] : memory())
        if ((const char *)address >= start && (const char *)address + bytes <= start + size) return true;
    return false;
}
} // namespace hip_standin

inline hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
    HIP_STANDIN_BEGIN();
    if (flags != hipStreamNonBlocking) return hipErrorInvalidValue;
    *stream = (hipStream_t)late::make();
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
    return stream == nullptr ? hipSuccess : hip_standin::told(late::finish(hip_standin::of(stream)));
}
inline hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned) {
    HIP_STANDIN_BEGIN();
    late::follow(hip_standin::of(stream), event);
    return hipSuccess;
}
inline hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
    HIP_STANDIN_BEGIN();
    if (flags != hipEventDisableTiming) return hipErrorInvalidValue;
    *event = new late::Event;
    return hipSuccess;
}
inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
    HIP_STANDIN_BEGIN();
    late::record(event, hip_standin::of(stream));
    return hipSuccess;
}
inline hipError_t hipEventSynchronize(hipEvent_t event) {
    HIP_STANDIN_BEGIN();
    return hip_standin::told(late::await(event));
}
inline hipError_t hipEventDestroy(hipEvent_t event) {
    HIP_STANDIN_BEGIN();
    delete event;
    return hipSuccess;
}
inline hipError_t hipHostMalloc(void **out, size_t bytes, unsigned flags) {
    HIP_STANDIN_BEGIN();
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
    late::unpin(memory);
    return hipSuccess;
}
inline hipError_t hipMemcpy2DAsync(void *to, size_t to_stride, const void *from, size_t stride, size_t width, size_t rows, hipMemcpyKind kind,
                                   hipStream_t stream) {
    HIP_STANDIN_BEGIN();
    const bool there = kind == hipMemcpyHostToDevice;
    if (!hip_standin::is_memory(there ? to : from, (there ? to_stride : stride) * (rows - 1) + width)) return hipErrorInvalidValue;
    if (width > stride || width > to_stride) return hipErrorInvalidValue;
    late::copy(hip_standin::of(stream), to, to_stride, from, stride, width, rows, there, hip_standin::allow);
    return hipSuccess;
}
inline hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
    return hipMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

inline hipError_t hipFuncGetAttributes(hipFuncAttributes *out, const void *function) {
    HIP_STANDIN_BEGIN();
    if (hip_standin::kernels().count(function) == 0) return hipErrorInvalidDeviceFunction;
    *out = {0, hip_standin::allowed(function), 1024, 40, 0};
    return hipSuccess;
}

/* Less than all may take from another thread what it raised the limit to, and is about to launch with. */
inline hipError_t hipFuncSetAttribute(const void *function, hipFuncAttribute attribute, int value) {
    HIP_STANDIN_BEGIN();
    if (attribute != hipFuncAttributeMaxDynamicSharedMemorySize || value != (int)sizeof metafork_shared) return hipErrorInvalidValue;
    hip_standin::allowed(function) = value;
    return hipSuccess;
}

inline hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, hipStream_t stream) {
    HIP_STANDIN_BEGIN();
    const auto found = hip_standin::kernels().find(function);
    if (found == hip_standin::kernels().end()) return hipErrorInvalidDeviceFunction;
    if (shared_bytes > (size_t)hip_standin::allowed(function) || (uint64_t)grid.x * block.x >> 32 != 0) return hipErrorInvalidValue;
    const hip_standin::launched kernel = found->second(arguments);
    const auto run = [=] {
        memset(metafork_shared, 0xff, sizeof metafork_shared);
        hip_standin::allow(true);
        if (!metafork_cpu::launch("a kernel", grid, block, (int64_t)shared_bytes, kernel.run)) late::violation("no memory");
        hip_standin::allow(false);
    };
    if (stream == nullptr) {
        run();
        return hipSuccess;
    }
    std::vector<late::Range> uses;
    for (auto &[start, bytes] : hip_standin::memory())
        for (const void *const pointer : kernel.pointers)
            if (pointer >= start && pointer < start + bytes) uses.push_back({start, bytes});
    late::begin(hip_standin::of(stream), run, uses);
    return hipSuccess;
}
