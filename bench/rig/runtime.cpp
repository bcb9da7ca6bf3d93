// A CUDA runtime with no device behind it: what the host code of a program calls, for programs linked with -cudart none.
//
// Memory of the device is memory of the host.  Launches, attributes of kernels and libraries of PTX are handed to whoever
// set the hooks (rig.py, which executes the kernel's SASS).  The device is an sm_80 with the limits of an A100.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>

namespace {

struct Kernel {
    int module;
    std::string name;
};

struct Launch {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

// module, kernel, grid and block (six numbers), parameters, dynamic shared bytes; 0 or a CUDA error
int (*launch_hook)(int, const char *, const unsigned *, void **, size_t);
// module, kernel, three numbers to fill: registers, static shared bytes, most threads of a block
int (*attributes_hook)(int, const char *, int *);
// text of a PTX library; the module that it becomes, or -1
int (*library_hook)(const char *);

int current_module;
std::map<const void *, Kernel> kernels;
std::map<const void *, int> dynamic_shared;
std::map<char *, size_t> allocations;
std::set<void *> pinned;
Launch configured;
cudaError_t last;

cudaError_t returned(int error) {
    if (error != 0) last = (cudaError_t)error;
    return (cudaError_t)error;
}

}  // namespace

extern "C" {

void rig_hooks(int (*launch)(int, const char *, const unsigned *, void **, size_t), int (*attributes)(int, const char *, int *),
               int (*library)(const char *)) {
    launch_hook = launch, attributes_hook = attributes, library_hook = library;
}

// Kernels that are registered from now on are those of this module.
void rig_module(int module) { current_module = module; }

// Address and bytes of allocation number `index`; false where there is none.  Whole 16 bytes: nvcc widens loads of the last
// elements to them, which no GPU minds.
int rig_allocation(int index, void **address, size_t *bytes) {
    for (auto &one : allocations)
        if (index-- == 0) return *address = one.first, *bytes = (one.second + 15) / 16 * 16, true;
    return false;
}

// What nvcc's host code calls.

void **__cudaRegisterFatBinary(void *) {
    static void *handle;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterFunction(void **, const char *function, char *, const char *name, int, uint3 *, uint3 *, dim3 *, dim3 *, int *) {
    kernels[function] = {current_module, name};
}
char __cudaInitModule(void **) { return 1; }
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    configured = {grid, block, shared, stream};
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = configured.grid, *block = configured.block, *shared = configured.shared;
    *(cudaStream_t *)stream = configured.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
    *kernel = (cudaKernel_t)function;
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
    return cudaLaunchKernel((const void *)function, grid, block, arguments, shared, stream);
}

// The runtime.

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t) {
    const auto found = kernels.find(function);
    if (found == kernels.end()) return returned(cudaErrorInvalidDeviceFunction);
    if (block.x * block.y * block.z > 1024 || shared > (dynamic_shared.count(function) ? (size_t)dynamic_shared[function] : 49152))
        return returned(cudaErrorInvalidValue);
    const unsigned shape[6] = {grid.x, grid.y, grid.z, block.x, block.y, block.z};
    return returned(launch_hook(found->second.module, found->second.name.c_str(), shape, arguments, shared));
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *function) {
    const auto found = kernels.find(function);
    if (found == kernels.end()) return returned(cudaErrorInvalidDeviceFunction);
    int numbers[3] = {};
    const int error = attributes_hook(found->second.module, found->second.name.c_str(), numbers);
    memset(out, 0, sizeof *out);
    out->numRegs = numbers[0];
    out->sharedSizeBytes = (size_t)numbers[1];
    out->maxThreadsPerBlock = numbers[2];
    out->maxDynamicSharedSizeBytes = dynamic_shared.count(function) ? dynamic_shared[function] : 49152 - numbers[1];
    out->binaryVersion = out->ptxVersion = 80;
    return returned(error);
}
cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value > 166912) return returned(cudaErrorInvalidValue);
        dynamic_shared[function] = value;
    }
    return cudaSuccess;
}
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *text, cudaJitOption *, void **, unsigned, cudaLibraryOption *, void **, unsigned) {
    const int module = library_hook((const char *)text);
    if (module < 0) return returned(cudaErrorInvalidPtx);
    *library = (cudaLibrary_t)(intptr_t)(module + 1);
    return cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
    char *handle = (char *)malloc(1);
    kernels[handle] = {(int)((intptr_t)library - 1), name};
    *kernel = (cudaKernel_t)(void *)handle;
    return cudaSuccess;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) { return cudaSuccess; }
cudaError_t cudaMalloc(void **out, size_t bytes) {
    char *memory = (char *)aligned_alloc(512, (bytes + 511) / 512 * 512);
    if (memory == nullptr) return returned(cudaErrorMemoryAllocation);
    memset(memory, 0xCD, bytes);
    allocations[memory] = bytes;
    *out = memory;
    return cudaSuccess;
}
// Where memory lies: what cudaMalloc gave is the device's.
static int rig_address_range(unsigned long long *start, size_t *bytes, unsigned long long address) {
    auto found = allocations.upper_bound((char *)address);
    if (found == allocations.begin()) return cudaErrorInvalidValue;
    --found;
    if ((char *)address >= found->first + found->second) return cudaErrorInvalidValue;
    *start = (unsigned long long)(uintptr_t)found->first;
    *bytes = found->second;
    return 0;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *address) {
    unsigned long long start;
    size_t bytes;
    *out = {};
    out->type = rig_address_range(&start, &bytes, (unsigned long long)(uintptr_t)address) == 0 ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *) {
    *out = strcmp(name, "cuMemGetAddressRange") == 0 ? (void *)rig_address_range : nullptr;
    return cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
    if (memory != nullptr && allocations.erase((char *)memory) == 0) return returned(cudaErrorInvalidValue);
    free(memory);
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
    memmove(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind) {
    for (size_t row = 0; row < height; ++row)
        memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return cudaSuccess;
}
// Work that is begun on a stream is done at once, so that every event is over when it is recorded.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) { return cudaMemcpy(to, from, bytes, kind); }
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned) {
    *out = malloc(bytes);
    if (*out == nullptr) return returned(cudaErrorMemoryAllocation);
    pinned.insert(*out);
    return cudaSuccess;
}
cudaError_t cudaHostGetFlags(unsigned *flags, void *memory) {
    *flags = 0;
    return pinned.count(memory) != 0 ? cudaSuccess : returned(cudaErrorInvalidValue);
}
cudaError_t cudaFreeHost(void *memory) {
    if (pinned.erase(memory) == 0) return returned(cudaErrorInvalidValue);
    free(memory);
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
    *stream = (cudaStream_t)malloc(1);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    free((void *)stream);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    *event = (cudaEvent_t)malloc(1);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free((void *)event);
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : returned(cudaErrorInvalidDevice); }
cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status) {
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
cudaError_t cudaPeekAtLastError(void) { return last; }
cudaError_t cudaGetLastError(void) {
    const cudaError_t error = last;
    last = cudaSuccess;
    return error;
}
const char *cudaGetErrorString(cudaError_t) { return "an error of the emulated device"; }
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
    switch (attribute) {
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = 65536; break;
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = 2147483647; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrWarpSize:
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = 32; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 49152; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 166912; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 167936; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrMultiProcessorCount: *value = 108; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 8; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    default: return returned(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}
}
