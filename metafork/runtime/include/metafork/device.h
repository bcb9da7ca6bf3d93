/* What kernel text is compiled against, with nvcc and with a C++17 compiler alike.
 *
 * nvcc: nothing but the few macros below.  With -DMETAFORK_CPU: blockIdx, threadIdx, __syncthreads() and the rest of
 * what kernels use, run by metafork/cpu_blocks.h on the host.
 *
 *   METAFORK_SHARED(base);                                  the block's dynamic shared memory, unsigned char *
 *   METAFORK_SHARED_ARRAY(float, a_s, base, 0, B0 * B0);    one array in it: element type, name, base, byte offset, elements
 *   METAFORK_RESTRICT                                       restrict
 *   METAFORK_TABLE float w[2] = {1, 2};                     an array in constant memory
 *   METAFORK_SHUFFLE(value, lane)                           what another lane of the warp hands in; all 32 lanes together
 *   METAFORK_WARPS()                                        whether lanes hand on values: 1
 *   METAFORK_THREADS(x, 16);                                tells the compiler that a block has 16 threads in x
 *   METAFORK_KERNEL(__global__ void, name, (int n, float *a), (n, a)) { }
 *                                                           two kernels of one text: `name`, for launches whose grid is the
 *                                                           program's and whose arrays have offsets of 31 bits, and
 *                                                           `name_large` for any; the text sees METAFORK_LARGE, and has
 *   METAFORK_LAUNCH_BOUNDS(256, 4)                          behind `void` there: a block has at most 256 threads, and a
 *                                                           multiprocessor shall have registers for 4 blocks
 *   METAFORK_ROLLED for (...)                               a loop that is not to be unrolled: its trips are few and unknown
 *   METAFORK_UNROLLED for (...)                             a loop of constant trips that is to be unrolled whole: elements of
 *                                                           a thread's array are then registers
 *   METAFORK_UNROLLED_BY(4) for (...)                       a loop of which four iterations are to stand in one
 *   metafork_atomic_add<int>(&a[i], v);                     a[i] += v at once: also _sub, _mul, _and, _or, _xor, _min, _max
 *   metafork_from_half(x[i]), metafork_to_half(v)           a number of 16 bits as a float, and back (metafork/small_floats.h)
 *   METAFORK_OFFSET(row) * columns + column                 an offset in an array: of METAFORK_OFFSET_TYPE, int or long long
 *   METAFORK_ALIGNED()                                      whether all arrays begin at multiples of 16 bytes
 *   metafork_load(&a[i], x, y);                             x = a[i], y = a[i + 1]: 2 or 4 elements, aligned for all of them
 *   metafork_store(&a[i], x, y);                            a[i] = x, a[i + 1] = y, likewise
 *   metafork_move<2>(&s[j], &a[i]);                         s[j] = a[i], s[j + 1] = a[i + 1], likewise, to shared memory
 *   metafork_copy<2>(&s[j], &a[i]);                         the same asynchronously where the hardware can, also of one element
 *   metafork_await_copies();                                waits for the asynchronous copies of this thread
 *   METAFORK_QUOTIENT(place, length)                        place / length, for the place of a thread in its block
 *   for (unsigned b = METAFORK_FIRST(blockIdx.x, blocks); b < blocks; b = METAFORK_NEXT(b, blocks, gridDim.x))
 *                                                           the blocks of the program that this one runs: one, or several
 *
 * With METAFORK_CPU and METAFORK_CHECK, every access of a METAFORK_SHARED_ARRAY is checked against its extent, and a block
 * against METAFORK_THREADS.
 */
#ifndef METAFORK_DEVICE_H
#define METAFORK_DEVICE_H

#if defined(METAFORK_CPU) && defined(__CUDACC__)
#error "METAFORK_CPU is for a C++17 compiler of the host; leave it away with nvcc"
#endif
#if !defined(METAFORK_CPU) && !defined(__CUDACC__) && !defined(METAFORK_HIP)
#error "compile with nvcc, or with g++ -std=c++17 -x c++ -DMETAFORK_CPU"
#endif

/* No contraction of a*b + c, as nvcc -fmad=false: results are those of the serial program, bit for bit. */
#if (defined(METAFORK_CPU) || defined(METAFORK_HIP)) && defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(METAFORK_CPU) && (defined(__FP_FAST_FMAF) || defined(__FP_FAST_FMA))
#pragma GCC optimize("fp-contract=off")
#endif
/* g++ 12 leaves out roundings to float where it puts sums of them side by side: t[0] += x[0], t[1] += x[1] with doubles x. */
#if defined(METAFORK_CPU) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

#define METAFORK_RESTRICT __restrict__
#define METAFORK_KERNEL(kind, name, parameters, arguments)                                                             \
    template <bool METAFORK_LARGE> static __device__ __forceinline__ void name##_text parameters;                      \
    extern "C" kind name parameters { name##_text<false> arguments; }                                                  \
    extern "C" kind name##_large parameters { name##_text<true> arguments; }                                           \
    template <bool METAFORK_LARGE> static __device__ __forceinline__ void name##_text parameters
#if defined(METAFORK_HIP)
/* HIP counts waves of an execution unit, of which a multiprocessor has four (of 64 lanes) or two (of 32). */
#define METAFORK_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, ((threads) * (blocks) + 255) / 256)
#else
#define METAFORK_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#endif
#define METAFORK_OFFSET_TYPE typename metafork_offset<METAFORK_LARGE>::type
#define METAFORK_OFFSET(value) (static_cast<METAFORK_OFFSET_TYPE>(value))
#define METAFORK_ALIGNED() (!METAFORK_LARGE)
#define METAFORK_QUOTIENT(place, length) metafork_quotient((place), (length))
#define METAFORK_FIRST(index, extent) metafork_first<METAFORK_LARGE>((index), (extent))
#define METAFORK_NEXT(counter, extent, stride) (METAFORK_LARGE ? (counter) + (stride) : (extent))
#define METAFORK_WARPS() 1
#if defined(METAFORK_HIP)
/* Warps are groups of 32 lanes, also where the hardware runs 64 together. */
#define METAFORK_SHUFFLE(value, lane) __shfl((value), (lane), 32)
#else
#define METAFORK_SHUFFLE(value, lane) __shfl_sync(0xffffffffu, (value), (lane))
#endif

#if defined(METAFORK_CPU)
/* The bits of a number as those of another one, under CUDA's names. */
#define METAFORK_BITS(name, to, from) \
    static inline to name(from value) \
    { \
        to same; \
        __builtin_memcpy(&same, &value, sizeof same); \
        return same; \
    }
METAFORK_BITS(__float_as_uint, unsigned int, float)
METAFORK_BITS(__uint_as_float, float, unsigned int)
METAFORK_BITS(__double_as_longlong, long long, double)
METAFORK_BITS(__longlong_as_double, double, long long)
#undef METAFORK_BITS
#endif

#include "metafork/small_floats.h"

#if defined(__CUDACC_RTC__)
/* NVRTC has the functions of math.h without headers; constants are those that nvcc takes from the host's. */
typedef unsigned long uintptr_t;
#define NAN __int_as_float(0x7fc00000)
#define INFINITY __int_as_float(0x7f800000)
#define HUGE_VALF INFINITY
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000)
#else
#include <math.h>
#include <stdint.h>
#endif

#if defined(METAFORK_CPU)

#include "metafork/cpu_blocks.h"

#define METAFORK_ROLLED
#define METAFORK_UNROLLED
#define METAFORK_UNROLLED_BY(count)
#define METAFORK_TABLE static const
#define METAFORK_SHARED(base) unsigned char *const base = metafork_cpu::shared_base()

#if defined(METAFORK_CHECK)
#define METAFORK_SHARED_ARRAY(type, name, base, offset, extent)                                                        \
    const metafork_cpu::checked_array<type> name((base), (long long)(offset), (long long)(extent), #name)
#else
#define METAFORK_SHARED_ARRAY(type, name, base, offset, extent)                                                        \
    type *const name = reinterpret_cast<type *>((base) + (offset));                                                    \
    (void)sizeof(extent)
#endif

#if defined(METAFORK_CHECK)
#define METAFORK_KNOWN(condition) ((condition) ? (void)0 : metafork_cpu::fault("what its kernel was told does not hold"))
#define METAFORK_THREADS(axis, count) (blockDim.axis == (count) ? (void)0 : metafork_cpu::fault("a block has other threads than its kernel was told"))
#else
#define METAFORK_KNOWN(condition) ((void)0)
#define METAFORK_THREADS(axis, count) ((void)0)
#endif

#else

#if defined(METAFORK_HIP) && defined(__clang__)
#define METAFORK_KNOWN(condition) __builtin_assume(condition)
#elif defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1102
#define METAFORK_KNOWN(condition) __builtin_assume(condition)
#else
#define METAFORK_KNOWN(condition) ((void)0)
#endif
#define METAFORK_THREADS(axis, count)                                                                                  \
    do {                                                                                                               \
        METAFORK_KNOWN(blockDim.axis == (count));                                                                      \
        METAFORK_KNOWN(threadIdx.axis < (count));                                                                      \
    } while (0)

#if defined(METAFORK_JIT)
#define METAFORK_ROLLED /* the trips are known */
#define METAFORK_UNROLLED_BY(count)
#else
#define METAFORK_PRAGMA(text) _Pragma(#text)
#define METAFORK_UNROLLED_BY(count) METAFORK_PRAGMA(unroll count)
#define METAFORK_ROLLED _Pragma("unroll 1")
#endif
#define METAFORK_UNROLLED _Pragma("unroll")
#define METAFORK_TABLE static __constant__ const
#define METAFORK_SHARED(base) extern __shared__ __align__(16) unsigned char base[]
#define METAFORK_SHARED_ARRAY(type, name, base, offset, extent)                                                        \
    type *const name = reinterpret_cast<type *>((base) + (offset));                                                    \
    (void)sizeof(extent)

#endif

/* Atomic updates of integers of any size, whose sums wrap, and sums of floating-point numbers. */
#if defined(METAFORK_CPU)
/* Blocks and threads run one after the other. */
template <class T> static inline void metafork_atomic_add(T *place, T value) { (void)__atomic_fetch_add(place, value, __ATOMIC_RELAXED); }
template <class T> static inline void metafork_atomic_sub(T *place, T value) { (void)__atomic_fetch_sub(place, value, __ATOMIC_RELAXED); }
template <class T> static inline void metafork_atomic_mul(T *place, T value) { *place = (T)((unsigned long long)*place * (unsigned long long)value); }
template <class T> static inline void metafork_atomic_and(T *place, T value) { *place = (T)(*place & value); }
template <class T> static inline void metafork_atomic_or(T *place, T value) { *place = (T)(*place | value); }
template <class T> static inline void metafork_atomic_xor(T *place, T value) { *place = (T)(*place ^ value); }
template <class T> static inline void metafork_atomic_min(T *place, T value) { *place = value < *place ? value : *place; }
template <class T> static inline void metafork_atomic_max(T *place, T value) { *place = *place < value ? value : *place; }
template <> inline void metafork_atomic_add<float>(float *place, float value) { *place += value; }
template <> inline void metafork_atomic_sub<float>(float *place, float value) { *place -= value; }
template <> inline void metafork_atomic_add<double>(double *place, double value) { *place += value; }
template <> inline void metafork_atomic_sub<double>(double *place, double value) { *place -= value; }
#else
/* Update one or two bytes in the word around them. */
template <class T, class Update> static __device__ __forceinline__ void metafork_atomic_narrow(T *place, Update update) {
    const uintptr_t address = (uintptr_t)place;
    unsigned int *const word = (unsigned int *)(address & ~(uintptr_t)3);
    const unsigned int shift = 8u * (unsigned int)(address & 3u), mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
    unsigned int seen = *(volatile unsigned int *)word, expected;
    do {
        expected = seen;
        const unsigned int next = (unsigned int)update((T)((expected & mask) >> shift)) << shift;
        seen = atomicCAS(word, expected, (expected & ~mask) | (next & mask));
    } while (seen != expected);
}

#define METAFORK_ATOMIC_UPDATE(name, native, operand, narrow)                                                          \
    template <class T> static __device__ __forceinline__ void name(T *place, T value) {                                \
        if (sizeof(T) == 4)                                                                                            \
            native((unsigned int *)place, (unsigned int)(operand));                                                    \
        else if (sizeof(T) == 8)                                                                                       \
            native((unsigned long long *)place, (unsigned long long)(operand));                                        \
        else                                                                                                           \
            metafork_atomic_narrow(place, [=](T old) { return (T)(narrow); });                                         \
    }
METAFORK_ATOMIC_UPDATE(metafork_atomic_add, atomicAdd, value, old + value)
METAFORK_ATOMIC_UPDATE(metafork_atomic_sub, atomicAdd, 0 - (unsigned long long)value, old - value)
METAFORK_ATOMIC_UPDATE(metafork_atomic_and, atomicAnd, value, old &value)
METAFORK_ATOMIC_UPDATE(metafork_atomic_or, atomicOr, value, old | value)
METAFORK_ATOMIC_UPDATE(metafork_atomic_xor, atomicXor, value, old ^ value)
#undef METAFORK_ATOMIC_UPDATE

template <> __device__ __forceinline__ void metafork_atomic_add<float>(float *place, float value) { atomicAdd(place, value); }
template <> __device__ __forceinline__ void metafork_atomic_add<double>(double *place, double value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600
    unsigned long long *const word = (unsigned long long *)place;
    unsigned long long seen = *(volatile unsigned long long *)word, expected;
    do {
        expected = seen;
        seen = atomicCAS(word, expected, (unsigned long long)__double_as_longlong(__longlong_as_double((long long)expected) + value));
    } while (seen != expected);
#else
    atomicAdd(place, value);
#endif
}
template <> __device__ __forceinline__ void metafork_atomic_sub<float>(float *place, float value) { atomicAdd(place, -value); }
template <> __device__ __forceinline__ void metafork_atomic_sub<double>(double *place, double value) {
    metafork_atomic_add<double>(place, -value);
}

/* There is no instruction for products. */
template <class Word, class T> static __device__ __forceinline__ void metafork_atomic_product(T *place, T value) {
    Word seen = *(volatile Word *)place, expected;
    do {
        expected = seen;
        seen = atomicCAS((Word *)place, expected, expected * (Word)value);
    } while (seen != expected);
}
template <class T> static __device__ __forceinline__ void metafork_atomic_mul(T *place, T value) {
    if (sizeof(T) == 4)
        metafork_atomic_product<unsigned int>(place, value);
    else if (sizeof(T) == 8)
        metafork_atomic_product<unsigned long long>(place, value);
    else
        metafork_atomic_narrow(place, [=](T old) { return (T)((unsigned int)old * (unsigned int)value); });
}

#define METAFORK_ATOMIC_CHOICE(name, native, narrow)                                                                   \
    template <class T> static __device__ __forceinline__ void name(T *place, T value) {                                \
        const bool is_signed = (T)-1 < (T)1;                                                                           \
        if (sizeof(T) == 4 && is_signed)                                                                               \
            native((int *)place, (int)value);                                                                          \
        else if (sizeof(T) == 4)                                                                                       \
            native((unsigned int *)place, (unsigned int)value);                                                        \
        else if (sizeof(T) == 8 && is_signed)                                                                          \
            native((long long *)place, (long long)value);                                                              \
        else if (sizeof(T) == 8)                                                                                       \
            native((unsigned long long *)place, (unsigned long long)value);                                            \
        else                                                                                                           \
            metafork_atomic_narrow(place, [=](T old) { return narrow; });                                              \
    }
METAFORK_ATOMIC_CHOICE(metafork_atomic_min, atomicMin, value < old ? value : old)
METAFORK_ATOMIC_CHOICE(metafork_atomic_max, atomicMax, old < value ? value : old)
#undef METAFORK_ATOMIC_CHOICE
#endif

/* Elements that one access moves.  `first` is aligned for all of them. */
#if defined(METAFORK_CPU)
template <int lanes, class T> static inline void metafork_check_vector([[maybe_unused]] const T *first) {
#if defined(METAFORK_CHECK)
    if (((uintptr_t)first & (lanes * sizeof(T) - 1)) != 0) metafork_cpu::fault("elements that are accessed together are not aligned");
#endif
}
template <class T> static inline void metafork_load(const T *first, T &x, T &y) {
    metafork_check_vector<2>(first);
    x = first[0], y = first[1];
}
template <class T> static inline void metafork_load(const T *first, T &x, T &y, T &z, T &w) {
    metafork_check_vector<4>(first);
    x = first[0], y = first[1], z = first[2], w = first[3];
}
template <class T> static inline void metafork_store(T *first, T x, T y) {
    metafork_check_vector<2>(first);
    first[0] = x, first[1] = y;
}
template <class T> static inline void metafork_store(T *first, T x, T y, T z, T w) {
    metafork_check_vector<4>(first);
    first[0] = x, first[1] = y, first[2] = z, first[3] = w;
}
#else
template <class T, int lanes> struct metafork_vector;
template <class T> struct metafork_vector<T, 1> {
    using type = T;
};
#define METAFORK_VECTOR(element, lanes, name)                                                                          \
    template <> struct metafork_vector<element, lanes> {                                                               \
        using type = name;                                                                                             \
    };
METAFORK_VECTOR(float, 2, float2)
METAFORK_VECTOR(float, 4, float4)
METAFORK_VECTOR(int, 2, int2)
METAFORK_VECTOR(int, 4, int4)
METAFORK_VECTOR(unsigned int, 2, uint2)
METAFORK_VECTOR(unsigned int, 4, uint4)
METAFORK_VECTOR(double, 2, double2)
METAFORK_VECTOR(long, 2, long2)
METAFORK_VECTOR(unsigned long, 2, ulong2)
METAFORK_VECTOR(long long, 2, longlong2)
METAFORK_VECTOR(unsigned long long, 2, ulonglong2)
#undef METAFORK_VECTOR
template <class T> static __device__ __forceinline__ void metafork_load(const T *first, T &x, T &y) {
    const auto all = *reinterpret_cast<const typename metafork_vector<T, 2>::type *>(first);
    x = all.x, y = all.y;
}
template <class T> static __device__ __forceinline__ void metafork_load(const T *first, T &x, T &y, T &z, T &w) {
    const auto all = *reinterpret_cast<const typename metafork_vector<T, 4>::type *>(first);
    x = all.x, y = all.y, z = all.z, w = all.w;
}
template <class T> static __device__ __forceinline__ void metafork_store(T *first, T x, T y) {
    *reinterpret_cast<typename metafork_vector<T, 2>::type *>(first) = {x, y};
}
template <class T> static __device__ __forceinline__ void metafork_store(T *first, T x, T y, T z, T w) {
    *reinterpret_cast<typename metafork_vector<T, 4>::type *>(first) = {x, y, z, w};
}
#endif

/* Neighbours from global to shared memory by one access: at once, or on their way until the thread waits for them, where
 * the hardware can.  Both addresses are aligned for all of them. */
#if defined(METAFORK_CPU)
template <int lanes, class T> static inline void metafork_move(T *to, const T *from) {
    metafork_check_vector<lanes>(to), metafork_check_vector<lanes>(from);
    for (int lane = 0; lane < lanes; lane++) to[lane] = from[lane];
}
template <int lanes, class T> static inline void metafork_copy(T *to, const T *from) { metafork_cpu::copy_later(to, from, lanes * sizeof(T)); }
static inline void metafork_await_copies() { metafork_cpu::await_copies(); }
#else
template <int lanes, class T> static __device__ __forceinline__ void metafork_move(T *to, const T *from) {
    using vector = typename metafork_vector<T, lanes>::type;
    *reinterpret_cast<vector *>(to) = *reinterpret_cast<const vector *>(from);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <int lanes, class T> static __device__ __forceinline__ void metafork_copy(T *to, const T *from) {
    const unsigned int place = (unsigned int)__cvta_generic_to_shared(to);
    if (lanes * sizeof(T) == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(lanes * sizeof(T)) : "memory");
}
static __device__ __forceinline__ void metafork_await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
template <int lanes, class T> static __device__ __forceinline__ void metafork_copy(T *to, const T *from) { metafork_move<lanes>(to, from); }
static __device__ __forceinline__ void metafork_await_copies() {}
#endif
#endif

template <bool large> struct metafork_offset {
    using type = int;
};
template <> struct metafork_offset<true> {
    using type = long long;
};

/* A block has at most 1024 threads, so that the quotient of place + 1/2 is further from the next integer than it is off.  No
 * operand is subnormal: the quotient of those that are flushed takes four instructions less than __fdividef. */
static __device__ __forceinline__ int metafork_quotient(unsigned int place, unsigned int length) {
#if defined(__CUDA_ARCH__)
    float quotient;
    asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(quotient) : "f"((float)place + 0.5f), "f"((float)length));
    return (int)quotient;
#else
    return (int)(place / length);
#endif
}

/* The first block of the program that this one runs; where the grid is the program's, it is there. */
template <bool large, class Count> static __device__ __forceinline__ Count metafork_first(unsigned int index, [[maybe_unused]] Count extent) {
    if (!large) METAFORK_KNOWN(index < extent);
    return index;
}

#endif
