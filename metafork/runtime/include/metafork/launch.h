/* Launching a kernel of a generated .cu file.  C++ (nvcc, or the CPU build).
 *
 * A launch is checked before it is tried: dimensions and shared memory against the device, threads and registers against
 * what the compiler used (cudaFuncGetAttributes).  A leaf that is PTX is loaded at its first launch.
 */
#ifndef METAFORK_LAUNCH_H
#define METAFORK_LAUNCH_H

#include "metafork/device.h"
#include "metafork/machine_query.h"

/* How a leaf is launched; registers is -1 where nobody measured them. */
struct metafork_shape {
    int64_t grid[3];
    int64_t block[3];
    int64_t widest; /* a kernel that strides over its work may have up to so many threads in x; 0: it has block[0] */
    int64_t shared_bytes;
    int64_t registers;
    bool large; /* whether the kernel that walks the grid, with offsets of 64 bits, is launched */
    int instances; /* how many kernels for values of static parameters the leaf has beside the dynamic one */
    int instance;  /* which of them; 0: the dynamic one; METAFORK_MATCHING asks for that of the arguments */
};

enum { METAFORK_MATCHING = -1 };

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

/* Check a shape against the device and the compiled kernel, cut the grid to the hardware's limits (large kernels walk larger
 * ones with a stride), and note the registers.  `functions` are the kernels' symbols or handles, the large one last (CUDA only). */
static inline int metafork_check_shape(metafork_shape *shape, const void *const *functions) {
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
        const int64_t whole = shape->grid[axis];
        if (shape->grid[axis] > grid_limits[axis]) shape->grid[axis] = grid_limits[axis];
        if (shape->grid[axis] > grid_wishes[axis] && grid_wishes[axis] > 0) shape->grid[axis] = grid_wishes[axis];
        if (shape->grid[axis] != whole) shape->large = true;
    }
    /* No overflow: the limits of the block's dimensions were checked. */
    const int64_t threads = shape->block[0] * shape->block[1] * shape->block[2];
    int64_t most_threads = hardware.threads_per_block;
    int64_t shared_bytes = shape->shared_bytes;
    shape->registers = -1;
#if defined(METAFORK_CPU)
    (void)functions;
#else
    cudaFuncAttributes attributes;
    error = metafork_taken(cudaFuncGetAttributes(&attributes, functions[shape->large]));
    if (error != METAFORK_OK) return error;
    shape->registers = attributes.numRegs;
    if (attributes.maxThreadsPerBlock < most_threads) most_threads = attributes.maxThreadsPerBlock;
    shared_bytes += (int64_t)attributes.sharedSizeBytes;
#endif
    if (shape->widest > 0 && threads <= most_threads) shape->block[0] = metafork_widened(shape, &machine, most_threads);
    if (threads > most_threads || shared_bytes > hardware.shared_words * 4) return METAFORK_ERESOURCES;
    return METAFORK_OK;
}

/* Take the leaf's instance for the arguments in place of its dynamic kernel, whose checked shape is given, where there is one and it
 * fits too: it needs no more shared memory, and `fits` says so of its shape.  attempt(launch, shape) is the leaf's. */
template <class Attempt, class Fits>
static void metafork_take_instance(metafork_shape *shape, const Attempt &attempt, const Fits &fits) {
    if (shape->instances == 0) return;
    metafork_shape own = {};
    own.instance = METAFORK_MATCHING;
    if (attempt(false, &own) == METAFORK_OK && own.instance > 0 && own.shared_bytes <= shape->shared_bytes && fits(&own)) *shape = own;
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
    char instance[32] = "";
    if (shape->instance > 0) snprintf(instance, sizeof instance, " instance=%d", shape->instance);
    const char *const large = shape->large ? " large" : "";
    fprintf(stderr, "metafork: %s leaf %d%s grid=%lldx%lldx%lld block=%lldx%lldx%lld shared_bytes=%lld%s%s%s\n", schedule, leaf,
            used > 0 ? line : "", (long long)shape->grid[0], (long long)shape->grid[1], (long long)shape->grid[2], (long long)shape->block[0],
            (long long)shape->block[1], (long long)shape->block[2], (long long)shape->shared_bytes, registers, large, instance);
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

#endif
