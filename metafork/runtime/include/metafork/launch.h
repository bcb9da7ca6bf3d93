/* Launching a kernel of a generated file.  C11 and C++.
 *
 * A launch is checked before it is tried: dimensions and shared memory against the device, threads and registers against
 * what the compiler used.
 *
 * METAFORK_TARGET_HEADER says how a device is spoken to (metafork/target_cuda.h where nothing is said).  It defines, as
 * static functions that return 0, a positive error of the device's library or a negative METAFORK_E... code:
 *
 *   int metafork_current_device(int *device);                 the device of the calling thread
 *   int metafork_hardware_query(int device, metafork_machine *out);   all fields, without METAFORK_MACHINE
 *   const char *metafork_message(int error);
 *   int metafork_device_allocate(int device, void **out, int64_t bytes);
 *   void metafork_device_free(int device, void *memory);
 *   int metafork_device_copy(int device, void *to, const void *from, int64_t bytes, bool to_device);
 *   int metafork_device_copy_rows(int device, void *to, const void *from, int64_t width, int64_t stride, int64_t rows, bool to_device);
 *                                                             `rows` times `width` bytes, `stride` bytes (less than 2^31) apart on both sides
 *   int metafork_finish(void);                                waits for what metafork_launch_kernel began on the null stream
 *   int metafork_kernel_attributes(const void *kernel, metafork_attributes *out);   leaves alone what it does not know
 *
 * One that has streams defines METAFORK_HAS_STREAMS, and besides (an event is NULL where none has been recorded in it yet):
 *
 *   int metafork_stream_make(int device, void **out);         on the current device; it waits for no other stream
 *   void metafork_stream_free(int device, void *stream);      which has been waited for
 *   int metafork_stream_finish(int device, void *stream);     waits for all that was begun on it
 *   int metafork_stream_follow(int device, void *stream, void *event);   the event comes before what is begun on it from now on
 *   int metafork_event_record(int device, void *stream, void **event);   behind all that was begun on it
 *   int metafork_event_await(int device, void *event);
 *   void metafork_event_free(int device, void *event);
 *   int metafork_pinned_allocate(int device, void **out, int64_t bytes);   memory of the host
 *   void metafork_pinned_free(int device, void *memory);
 *   bool metafork_pinned_is(int device, void *memory);        false where a reset of the device has taken it, and streams and events with it
 *   int metafork_copy_begin(int device, void *stream, void *to, int64_t to_stride, const void *from, int64_t from_stride,
 *                           metafork_rows rows, bool to_device);   rows.count times rows.width bytes, between pinned memory and the device
 *   bool metafork_captured(int device, void *stream);         whether it, or for NULL one that it waits for, is being captured into a graph
 *
 * One on which a shape that was checked and launched can be launched again on the same device defines METAFORK_REMEMBERS, where
 * metafork_check_shape is all that it asks.
 *
 * One that knows where memory lies that the program got from the device's library defines METAFORK_HAS_PLACES, and
 *
 *   int metafork_place_of(int device, const void *address, metafork_place *out);   on the current device; leaves alone what it does not know
 *
 * One whose copies and kernels NVIDIA's profilers see defines METAFORK_HAS_NVTX where dlopen can be linked; then metafork/nvtx.h
 * has ranges for them.
 *
 * A target also has what the generated attempts at a launch call besides (metafork_launch_kernel in those that the project has).
 */
#ifndef METAFORK_LAUNCH_H
#define METAFORK_LAUNCH_H

/* Between the two the compiler optimizes as far as costs little time: what moves arrays and asks devices waits for them, and is
 * most of what a generated file compiles for the host. */
#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)
#if defined(__NVCC__)
#pragma nv_diag_suppress 1675 /* nvcc's own front end hands the pragmas on, and warns of them */
#endif
#define METAFORK_COMPILED_QUICKLY _Pragma("GCC push_options") _Pragma("GCC optimize(\"Og\")")
#define METAFORK_COMPILED_AS_GIVEN _Pragma("GCC pop_options")
#else
#define METAFORK_COMPILED_QUICKLY
#define METAFORK_COMPILED_AS_GIVEN
#endif

METAFORK_COMPILED_QUICKLY
#include "metafork/byte_sets.h"
#include "metafork/machine.h"
METAFORK_COMPILED_AS_GIVEN

#include <stdbool.h>
#include <unistd.h>

#ifdef __cplusplus
#define METAFORK_C extern "C"
#define METAFORK_NONE {}
#define METAFORK_DEFINITION extern "C" __attribute__((weak))
#else
#define METAFORK_C
#define METAFORK_NONE {0}
#define METAFORK_DEFINITION __attribute__((weak))
#endif

/* Compiled with every generated file; or once, in the file metafork_runtime, where generated files are compiled with
 * METAFORK_RUNTIME_APART. */
#if defined(METAFORK_RUNTIME_FILE)
#define METAFORK_RUNTIME METAFORK_DEFINITION
#elif defined(METAFORK_RUNTIME_APART)
#define METAFORK_RUNTIME METAFORK_C
#else
#define METAFORK_RUNTIME __attribute__((unused)) static
#endif

/* The process that uses the device, 0: none yet. */
METAFORK_DEFINITION int *metafork_process_of_device(void) {
    static int process;
    return &process;
}

/* Whether this process was forked by one that had used the device: libraries of devices do not work in it, nor end. */
static inline bool metafork_forked(void) {
#if defined(METAFORK_CPU)
    return false; /* the device is the process */
#else
    const int process = __atomic_load_n(metafork_process_of_device(), __ATOMIC_RELAXED);
    return process != 0 && process != (int)getpid();
#endif
}

/* The device is about to be used; false in a process where it cannot be. */
static inline bool metafork_own_device(void) {
    int nobody = 0;
    (void)__atomic_compare_exchange_n(metafork_process_of_device(), &nobody, (int)getpid(), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return !metafork_forked();
}

/* How a leaf is launched; registers is -1 where nobody measured them. */
typedef struct metafork_shape {
    int64_t grid[3];
    int64_t block[3];
    int64_t widest; /* a kernel that strides over its work may have up to so many threads in x; 0: it has block[0] */
    int64_t shared_bytes;
    int64_t registers;
    bool large; /* whether the kernel that walks the grid, with offsets of 64 bits, is launched */
    int variant;   /* which one of the leaf's is asked for, from 1; 0: its own */
    bool compiled; /* whether it is to be compiled for the arguments (metafork/jit.h) */
    bool ready;    /* whether it was checked, and launched, on this device: neither is computed nor checked again */
} metafork_shape;

/* What the compiler of a kernel used; registers is -1 and threads INT64_MAX where nobody says. */
typedef struct metafork_attributes {
    int64_t registers;    /* of a thread */
    int64_t threads;      /* that a block may have */
    int64_t shared_bytes; /* beside the dynamic ones */
} metafork_attributes;

/* The memory that an address leads into; no bytes where the device's library does not know it. */
typedef struct metafork_place {
    uintptr_t start;
    int64_t bytes;
    bool of_device; /* the host cannot read it */
} metafork_place;

/* Check a leaf (go is false) or launch it; `inputs` are the parameters and values of one call. */
typedef int metafork_attempt(const void *inputs, int leaf, bool go, metafork_shape *shape, void *stream, void *const *arrays);

#if !defined(METAFORK_TARGET_HEADER)
#define METAFORK_TARGET_HEADER "metafork/target_cuda.h"
#endif
#include METAFORK_TARGET_HEADER

#if !defined(METAFORK_HAS_PLACES)
static inline int metafork_place_of(int device, const void *address, metafork_place *out) { return (void)device, (void)address, (void)out, METAFORK_OK; }
#endif

#if !defined(METAFORK_RUNTIME_APART)
#include "metafork/machine_query.h"
#endif
#include "metafork/nvtx.h"

enum { METAFORK_STRIDING_THREADS = 256 };

enum { METAFORK_REGISTER_UNIT = 8, METAFORK_PARTITIONS = 4 };

/* The registers of a thread as the hardware hands them out: to warps, in units of 256 on NVIDIA's. */
static inline int64_t metafork_allocated_registers(int64_t registers) {
    return (registers + METAFORK_REGISTER_UNIT - 1) / METAFORK_REGISTER_UNIT * METAFORK_REGISTER_UNIT;
}

/* How many threads a striding block gets: what machine, registers and work allow, in whole warps, at least block[0]. */
static inline int64_t metafork_widened(const metafork_shape *shape, const metafork_machine *machine, int64_t most) {
    int64_t threads = METAFORK_STRIDING_THREADS;
    if (shape->widest < threads) threads = shape->widest;
    if (most < threads) threads = most;
    if (machine->threads_per_block < threads) threads = machine->threads_per_block;
    if (shape->registers > 0 && machine->registers_per_block / metafork_allocated_registers(shape->registers) < threads)
        threads = machine->registers_per_block / metafork_allocated_registers(shape->registers);
    const int64_t warp = machine->warp_size > 0 ? machine->warp_size : 32;
    threads -= threads % warp;
    return threads > shape->block[0] ? threads : shape->block[0];
}

#endif
