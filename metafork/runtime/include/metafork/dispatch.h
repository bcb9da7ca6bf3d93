/* What the generated .cu files share: launching a kernel, and running a schedule on host arrays.  C++ (nvcc, or the CPU build).
 *
 * A launch is checked before it is tried: dimensions and shared memory against the device, threads and registers against
 * what the compiler used (cudaFuncGetAttributes).  metafork_dispatch moves arrays, picks the leaf and launches it; where it
 * returns 0, host arrays are current and unchanged, and the caller runs the serial code.
 */
#ifndef METAFORK_DISPATCH_H
#define METAFORK_DISPATCH_H

#include "metafork/device.h"
#include "metafork/exact.h"
#include "metafork/host.h"
#include "metafork/machine_query.h"

#include <stdarg.h>

/* ---- launching ---- */

/* How a leaf is launched; registers is -1 where nobody measured them. */
struct metafork_shape {
    int64_t grid[3];
    int64_t block[3];
    int64_t widest; /* a kernel that strides over its work may have up to so many threads in x; 0: it has block[0] */
    int64_t shared_bytes;
    int64_t registers;
};

/* A kernel that nvcc never saw: PTX, loaded at its first launch. */
struct metafork_ptx {
    const char *text;
    const char *name;
    void *kernel;
};

#if !defined(METAFORK_CPU)
/* An error that is reported or handled here is not left behind for the caller's cudaGetLastError. */
static inline int metafork_taken(cudaError_t error) {
    if (error != cudaSuccess) (void)cudaGetLastError();
    return (int)error;
}

/* The kernel of a PTX text.  Handles of libraries belong to no context, so that one serves all devices; threads may race
 * here, and the loser unloads its copy.  A failure is not remembered. */
static inline int metafork_load(metafork_ptx *ptx, const void **out) {
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
            cudaLibraryUnload(library);
            return (int)error;
        }
        if (__atomic_compare_exchange_n(&ptx->kernel, &found, (void *)kernel, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            found = (void *)kernel;
        else
            cudaLibraryUnload(library);
    }
    *out = found;
    return METAFORK_OK;
#else
    (void)ptx;
    (void)out;
    return METAFORK_EUNSUPPORTED;
#endif
}
#endif

static inline int metafork_current_device(int *device) {
#if defined(METAFORK_CPU)
    *device = 0;
    return METAFORK_OK;
#else
    return metafork_taken(cudaGetDevice(device));
#endif
}

static inline const char *metafork_message(int error) {
#if !defined(METAFORK_CPU)
    if (error > 0) return cudaGetErrorString((cudaError_t)error);
#endif
    return metafork_error_text(error);
}

enum { METAFORK_STRIDING_THREADS = 256 };

/* How many threads a striding block gets: what machine, registers and work allow, in whole warps, at least block[0]. */
static inline int64_t metafork_widened(const metafork_shape *shape, const metafork_machine *machine, int64_t most) {
    int64_t threads = METAFORK_STRIDING_THREADS;
    if (shape->widest < threads) threads = shape->widest;
    if (most < threads) threads = most;
    if (machine->threads_per_block < threads) threads = machine->threads_per_block;
    if (shape->registers > 0 && machine->registers_per_block / shape->registers < threads)
        threads = machine->registers_per_block / shape->registers;
    const int64_t warp = machine->warp_size > 0 ? machine->warp_size : 32;
    threads -= threads % warp;
    return threads > shape->block[0] ? threads : shape->block[0];
}

/* Check a shape against the device and the compiled kernel, cut the grid to the hardware's limits (kernels walk larger ones with
 * a stride), and note the registers.  `function` is the kernel's symbol or handle (CUDA only). */
static inline int metafork_check_shape(metafork_shape *shape, const void *function) {
    metafork_machine hardware, machine;
    int device, error = metafork_current_device(&device);
    if (error == METAFORK_OK) error = metafork_hardware_query(device, &hardware);
    if (error == METAFORK_OK) error = metafork_machine_query(device, &machine);
    if (error != METAFORK_OK) return error;
    const int64_t block_limits[3] = {hardware.block_dim_x, hardware.block_dim_y, hardware.block_dim_z};
    const int64_t grid_limits[3] = {hardware.grid_dim_x, hardware.grid_dim_y, hardware.grid_dim_z};
    const int64_t grid_wishes[3] = {machine.grid_dim_x, machine.grid_dim_y, machine.grid_dim_z};
    for (int axis = 0; axis < 3; axis++)
        if (shape->grid[axis] < 1 || shape->block[axis] < 1) return METAFORK_EEMPTY;
    if (shape->shared_bytes < 0) return METAFORK_EINVAL;
    for (int axis = 0; axis < 3; axis++) {
        if (shape->block[axis] > block_limits[axis]) return METAFORK_ERESOURCES;
        if (shape->grid[axis] > grid_limits[axis]) shape->grid[axis] = grid_limits[axis];
        if (shape->grid[axis] > grid_wishes[axis] && grid_wishes[axis] > 0) shape->grid[axis] = grid_wishes[axis];
    }
    /* No overflow: the limits of the block's dimensions were checked. */
    const int64_t threads = shape->block[0] * shape->block[1] * shape->block[2];
    int64_t most_threads = hardware.threads_per_block;
    int64_t shared_bytes = shape->shared_bytes;
    shape->registers = -1;
#if defined(METAFORK_CPU)
    (void)function;
#else
    cudaFuncAttributes attributes;
    error = metafork_taken(cudaFuncGetAttributes(&attributes, function));
    if (error != METAFORK_OK) return error;
    shape->registers = attributes.numRegs;
    if (attributes.maxThreadsPerBlock < most_threads) most_threads = attributes.maxThreadsPerBlock;
    shared_bytes += (int64_t)attributes.sharedSizeBytes;
#endif
    if (shape->widest > 0 && threads <= most_threads) shape->block[0] = metafork_widened(shape, &machine, most_threads);
    if (threads > most_threads || shared_bytes > hardware.shared_words * 4) return METAFORK_ERESOURCES;
    return METAFORK_OK;
}

__attribute__((unused)) static void metafork_trace_launch(const char *schedule, int leaf, const metafork_shape *shape, const char *const *names,
                                                          const int64_t *parameters, int count) {
    char line[1024];
    size_t used = 0;
    if (!metafork_enabled("METAFORK_TRACE")) return;
    for (int i = 0; i < count && used < sizeof line; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, " %s=%lld", names[i], (long long)parameters[i]);
    line[used < sizeof line ? used : sizeof line - 1] = '\0';
    char registers[32] = "";
    if (shape->registers >= 0) snprintf(registers, sizeof registers, " registers=%lld", (long long)shape->registers);
    fprintf(stderr, "metafork: %s leaf %d%s grid=%lldx%lldx%lld block=%lldx%lldx%lld shared_bytes=%lld%s\n", schedule, leaf, used > 0 ? line : "",
            (long long)shape->grid[0], (long long)shape->grid[1], (long long)shape->grid[2], (long long)shape->block[0],
            (long long)shape->block[1], (long long)shape->block[2], (long long)shape->shared_bytes, registers);
}

#if defined(METAFORK_CPU)
/* Run a checked shape; `thread` calls the kernel. */
template <class Thread> static int metafork_launch_blocks(const char *kernel, const metafork_shape *shape, const Thread &thread) {
    const dim3 grid = {(unsigned)shape->grid[0], (unsigned)shape->grid[1], (unsigned)shape->grid[2]};
    const dim3 block = {(unsigned)shape->block[0], (unsigned)shape->block[1], (unsigned)shape->block[2]};
    return metafork_cpu::launch(kernel, grid, block, shape->shared_bytes, thread) ? METAFORK_OK : METAFORK_ENOMEM;
}
#else
/* Launch a checked shape. */
static inline int metafork_launch_kernel(const void *function, const metafork_shape *shape, void *stream, void **arguments) {
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, function);
    if (error == cudaSuccess && shape->shared_bytes > attributes.maxDynamicSharedSizeBytes)
        error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shape->shared_bytes);
    if (error != cudaSuccess) return metafork_taken(error);
    const dim3 grid((unsigned)shape->grid[0], (unsigned)shape->grid[1], (unsigned)shape->grid[2]);
    const dim3 block((unsigned)shape->block[0], (unsigned)shape->block[1], (unsigned)shape->block[2]);
    return metafork_taken(cudaLaunchKernel(function, grid, block, arguments, (size_t)shape->shared_bytes, (cudaStream_t)stream));
}
#endif

/* ---- copies ---- */

static inline int metafork_device_allocate(void **out, int64_t bytes) {
#if defined(METAFORK_CPU)
    *out = malloc((size_t)bytes);
    return *out == nullptr ? METAFORK_ENOMEM : METAFORK_OK;
#else
    return metafork_taken(cudaMalloc(out, (size_t)bytes));
#endif
}

static inline void metafork_device_free(void *memory) {
#if defined(METAFORK_CPU)
    free(memory);
#else
    cudaFree(memory);
#endif
}

static inline int metafork_copy(void *to, const void *from, int64_t bytes, bool to_device) {
    const char *trace = getenv("METAFORK_TRACE");
    if (trace != nullptr && strcmp(trace, "2") == 0)
        fprintf(stderr, "metafork: %lld bytes %s the device\n", (long long)bytes, to_device ? "to" : "from");
#if defined(METAFORK_CPU)
    (void)to_device;
    memcpy(to, from, (size_t)bytes);
    return METAFORK_OK;
#else
    return metafork_taken(cudaMemcpy(to, from, (size_t)bytes, to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost));
#endif
}

static inline int metafork_finish() {
#if defined(METAFORK_CPU)
    return METAFORK_OK;
#else
    return metafork_taken(cudaStreamSynchronize(nullptr));
#endif
}

/* The host's array is made current.  Results that exist on the device alone and cannot be fetched are lost: the program ends. */
static inline void metafork_fetch(metafork_array *array) {
    if (array->metafork_device_newer) {
        const int error = metafork_copy(array->metafork_host, array->metafork_device, array->metafork_bytes, false);
        if (error != METAFORK_OK) {
            fprintf(stderr, "metafork: results cannot be fetched from the device: %s\n", metafork_message(error));
            abort();
        }
    }
    array->metafork_device_newer = 0;
}

static inline void metafork_drop(metafork_array *array) {
    metafork_fetch(array);
    if (array->metafork_device != nullptr) metafork_device_free(array->metafork_device);
    array->metafork_device = nullptr;
    array->metafork_copied = 0;
}

extern "C" __attribute__((weak)) void metafork_release(metafork_array *arrays, int count) {
    for (int i = 0; i < count; i++) metafork_drop(&arrays[i]);
}

static inline bool metafork_overlap(const metafork_array *left, const metafork_array *right) {
    const uintptr_t a = (uintptr_t)left->metafork_host, b = (uintptr_t)right->metafork_host;
    return left->metafork_bytes > 0 && right->metafork_bytes > 0 && a < b + (uintptr_t)right->metafork_bytes &&
           b < a + (uintptr_t)left->metafork_bytes;
}

extern "C" __attribute__((weak)) void metafork_begin(metafork_array *arrays, int count, const metafork_array *others, int other_count) {
    bool apart = true;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) apart = apart && !metafork_overlap(&arrays[i], &arrays[j]);
        for (int j = 0; j < other_count; j++) apart = apart && !metafork_overlap(&arrays[i], &others[j]);
    }
    for (int i = 0; i < count; i++) arrays[i].metafork_resident = apart;
}

/* ---- choosing a leaf ---- */

enum metafork_measure { METAFORK_ESTIMATED, METAFORK_REGISTERS_PER_THREAD, METAFORK_REGISTERS_PER_BLOCK };

/* value <= limit for one counter of one leaf; a measured counter replaces the left side where the compiler's figure is known. */
struct metafork_limit {
    const char *counter;
    metafork_condition condition;
    metafork_measure measure;
};

struct metafork_leaf {
    const metafork_limit *limits;
    int limit_count;
};

struct metafork_use {
    const char *name;
    bool written;
};

struct metafork_schedule {
    const char *name;
    const metafork_leaf *leaves;
    int leaf_count;
    const metafork_condition *start;
    int start_count;
    const metafork_use *arrays;
    int array_count;
    const char *const *targets; /* names of performance targets that METAFORK_MACHINE may give */
    int target_count;
    int *said; /* one message a reason */
};

enum metafork_reason { METAFORK_SAY_LEAF = 1, METAFORK_SAY_START = 2, METAFORK_SAY_OVERLAP = 4, METAFORK_SAY_ERROR = 8, METAFORK_SAY_SIZE = 16 };

/* Say why the serial code runs, once a reason; abort in strict mode. */
__attribute__((format(printf, 3, 4), unused)) static void metafork_serial(const metafork_schedule *schedule, metafork_reason reason,
                                                                        const char *format, ...) {
    const bool strict = metafork_enabled("METAFORK_STRICT");
    const bool said = (__atomic_fetch_or(schedule->said, (int)reason, __ATOMIC_RELAXED) & (int)reason) != 0;
    if (said && !strict && !metafork_enabled("METAFORK_TRACE")) return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "metafork: %s: ", schedule->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, strict ? "; METAFORK_STRICT is set\n" : "; the serial code runs\n");
    va_end(arguments);
}

__attribute__((unused)) static void metafork_print_number(metafork_polynomial polynomial, const int64_t *values) {
    metafork_int128 value;
    if (!metafork_value_small(polynomial, values, &value)) {
        fprintf(stderr, "%sabout 2^126 or more", metafork_sign(polynomial, values) < 0 ? "minus " : "");
        return;
    }
    char digits[48];
    size_t at = sizeof digits - 1;
    metafork_uint128 size = value < 0 ? -(metafork_uint128)value : (metafork_uint128)value;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + (int)(size % 10));
        size /= 10;
    } while (size != 0);
    fprintf(stderr, "%s%s", value < 0 ? "-" : "", digits + at);
}

/* One line of an explanation: `  leaf 1: 2*s*B + 2 <= Z is violated: 8194 <= 4096`. */
__attribute__((unused)) static void metafork_print_violation(const char *where, int leaf, const metafork_condition *condition, int64_t measured,
                                                            const int64_t *values) {
    static const char *const relations[] = {"<=", "<", "=="};
    fprintf(stderr, "metafork:   %s", where);
    if (leaf > 0) fprintf(stderr, " %d", leaf);
    fprintf(stderr, ": %s is violated: ", condition->text);
    if (measured >= 0)
        fprintf(stderr, "%lld (as compiled)", (long long)measured);
    else
        metafork_print_number(condition->left, values);
    fprintf(stderr, " %s ", relations[condition->relation]);
    metafork_print_number(condition->right, values);
    fprintf(stderr, "\n");
}

/* What the compiler used in place of a counter's estimate, or -1. */
static inline int64_t metafork_measured(const metafork_limit *limit, const metafork_shape *shape, int64_t warp_size) {
    if (shape->registers < 0 || limit->measure == METAFORK_ESTIMATED) return -1;
    if (limit->measure == METAFORK_REGISTERS_PER_THREAD) return shape->registers;
    const int64_t threads = shape->block[0] * shape->block[1] * shape->block[2];
    return (threads + warp_size - 1) / warp_size * warp_size * shape->registers;
}

/* Whether the leaf's own limits hold; explains those that do not where `explain` is set. */
__attribute__((unused)) static bool metafork_within_limits(const metafork_schedule *schedule, int leaf, const metafork_shape *shape, const int64_t *values,
                                                          int64_t warp_size, bool explain) {
    const metafork_leaf *one = &schedule->leaves[leaf - 1];
    bool within = true;
    for (int i = 0; i < one->limit_count; i++) {
        const metafork_limit *limit = &one->limits[i];
        const int64_t measured = metafork_measured(limit, shape, warp_size);
        bool holds;
        if (measured >= 0) {
            int failed = 0;
            const int64_t most = metafork_value(limit->condition.right, 1, values, &failed);
            holds = failed ? metafork_sign(limit->condition.right, values) > 0 : measured <= most;
        } else {
            holds = metafork_holds(&limit->condition, values) != 0;
        }
        if (!holds && explain) metafork_print_violation("leaf", leaf, &limit->condition, measured, values);
        within = within && holds;
    }
    return within;
}

static inline void metafork_check_targets(const metafork_schedule *schedule, const metafork_machine *machine) {
    static int said;
    for (int64_t i = 0; i < machine->target_count; i++) {
        bool known = false;
        for (int j = 0; j < schedule->target_count; j++) known = known || strcmp(machine->targets[i].name, schedule->targets[j]) == 0;
        if (!known && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
            fprintf(stderr, "metafork: METAFORK_MACHINE: %s is neither a machine parameter nor a target of %s\n", machine->targets[i].name,
                    schedule->name);
    }
}

/* The target of that name, or its default. */
static inline void metafork_find_target(const metafork_machine *machine, const char *name, int64_t *numerator, int64_t *denominator) {
    for (int64_t i = 0; i < machine->target_count && i < METAFORK_MAX_TARGETS; i++)
        if (strcmp(machine->targets[i].name, name) == 0) {
            *numerator = machine->targets[i].numerator;
            *denominator = machine->targets[i].denominator;
        }
}

/* ---- running a schedule on host arrays ---- */

/* Bring an array to the device. */
static inline int metafork_bring(metafork_array *array) {
    if (array->metafork_device == nullptr && array->metafork_bytes > 0) {
        const int error = metafork_device_allocate(&array->metafork_device, array->metafork_bytes);
        if (error != METAFORK_OK) {
            array->metafork_device = nullptr;
            return error;
        }
    }
    if (!array->metafork_copied && array->metafork_bytes > 0) {
        const int error = metafork_copy(array->metafork_device, array->metafork_host, array->metafork_bytes, true);
        if (error != METAFORK_OK) return error;
    }
    array->metafork_copied = 1;
    return METAFORK_OK;
}

/* Make the host's arrays current and the device's stale, for the serial code; returns 0. */
__attribute__((unused)) static int metafork_back_to_host(const metafork_schedule *schedule, metafork_array *const *arrays) {
    for (int i = 0; i < schedule->array_count; i++) metafork_drop(arrays[i]);
    if (metafork_enabled("METAFORK_STRICT")) abort();
    return 0;
}

/* Run one schedule.  `bytes` are the sizes of the arrays; `failed` says that a size or a parameter does not fit 64 bits, `empty`
 * that a trip count is less than 1.  attempt(leaf, launch, shape, device pointers) checks a leaf or launches it;
 * values(machine, out) fills the vector that conditions are evaluated on and returns the selected leaf, 0 for none,
 * -1 outside of Start, -2 where a value does not fit.  Returns 1, or 0 where the serial code must run. */
template <int Values, class Select, class Attempt>
static int metafork_dispatch(const metafork_schedule *schedule, metafork_array *const *arrays, const int64_t *bytes, bool failed, bool empty,
                             const Select &select, const Attempt &attempt) {
    const int count = schedule->array_count;
    if (failed || empty) {
        /* An empty nest is no fault: nothing is said, and strict mode goes on. */
        for (int i = 0; i < count; i++) metafork_drop(arrays[i]);
        if (empty) return 0;
        metafork_serial(schedule, METAFORK_SAY_SIZE, "a parameter or the size of an array does not fit its type");
        return metafork_back_to_host(schedule, arrays);
    }
    for (int i = 0; i < count; i++) {
        /* No bytes: this schedule does not touch the array, and it may stay as it is. */
        if (bytes[i] == 0 && arrays[i]->metafork_resident) continue;
        if (arrays[i]->metafork_bytes != bytes[i]) metafork_drop(arrays[i]);
        arrays[i]->metafork_bytes = bytes[i];
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if ((schedule->arrays[i].written || schedule->arrays[j].written) && metafork_overlap(arrays[i], arrays[j])) {
                metafork_serial(schedule, METAFORK_SAY_OVERLAP, "arrays %s and %s overlap and one is written", schedule->arrays[j].name,
                                schedule->arrays[i].name);
                return metafork_back_to_host(schedule, arrays);
            }

    metafork_machine machine;
    int device, error = metafork_current_device(&device);
    if (error == METAFORK_OK) error = metafork_machine_query(device, &machine);
    if (error != METAFORK_OK) {
        metafork_serial(schedule, METAFORK_SAY_ERROR, "the machine cannot be queried: %s", metafork_message(error));
        return metafork_back_to_host(schedule, arrays);
    }
    metafork_check_targets(schedule, &machine);
    int64_t values[Values] = {};
    const int chosen = select(&machine, values);
    if (chosen < 0) {
        metafork_serial(schedule, METAFORK_SAY_START, "%s", chosen == -1 ? "the parameters are outside of what the program allows"
                                                                        : "a derived value does not fit 64 bits");
        if (chosen == -1 && metafork_enabled("METAFORK_STRICT"))
            for (int i = 0; i < schedule->start_count; i++)
                if (!metafork_holds(&schedule->start[i], values)) metafork_print_violation("start", 0, &schedule->start[i], -1, values);
        return metafork_back_to_host(schedule, arrays);
    }

    /* First the leaf of the tree, then all in order of preference. */
    int leaf = 0;
    metafork_shape shape = {};
    for (int next = 0; next <= schedule->leaf_count && leaf == 0; next++) {
        const int candidate = next == 0 ? chosen : next;
        if (candidate == 0 || (next > 0 && candidate == chosen)) continue;
        if (attempt(candidate, false, &shape, nullptr) != METAFORK_OK) continue;
        if (metafork_within_limits(schedule, candidate, &shape, values, machine.warp_size, false)) leaf = candidate;
    }
    if (leaf == 0) {
        metafork_serial(schedule, METAFORK_SAY_LEAF, "no leaf fits this machine and these parameters");
        if (metafork_enabled("METAFORK_STRICT"))
            for (int candidate = 1; candidate <= schedule->leaf_count; candidate++) {
                const int refused = attempt(candidate, false, &shape, nullptr);
                const bool within = metafork_within_limits(schedule, candidate, &shape, values, machine.warp_size, true);
                if (within || refused != METAFORK_OK)
                    fprintf(stderr, "metafork:   leaf %d: grid %lldx%lldx%lld, block %lldx%lldx%lld, %lld bytes of shared memory: %s\n", candidate,
                            (long long)shape.grid[0], (long long)shape.grid[1], (long long)shape.grid[2], (long long)shape.block[0],
                            (long long)shape.block[1], (long long)shape.block[2], (long long)shape.shared_bytes, metafork_message(refused));
            }
        return metafork_back_to_host(schedule, arrays);
    }

    void *pointers[64] = {};
    for (int i = 0; i < count && error == METAFORK_OK; i++) {
        error = metafork_bring(arrays[i]);
        pointers[i] = arrays[i]->metafork_device;
    }
    const char *step = "moving arrays to the device";
    if (error == METAFORK_OK) {
        step = "the launch";
        error = attempt(leaf, true, &shape, pointers);
        if (error == METAFORK_OK) error = metafork_finish();
    }
    if (error != METAFORK_OK) {
        metafork_serial(schedule, METAFORK_SAY_ERROR, "leaf %d: %s failed: %s", leaf, step, metafork_message(error));
        return metafork_back_to_host(schedule, arrays);
    }
    for (int i = 0; i < count; i++) {
        if (schedule->arrays[i].written) arrays[i]->metafork_device_newer = 1;
        if (!arrays[i]->metafork_resident) metafork_drop(arrays[i]);
    }
    return 1;
}

#endif
