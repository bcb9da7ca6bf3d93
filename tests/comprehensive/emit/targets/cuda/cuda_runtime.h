/* The CUDA runtime with no device behind it, for tests: that of HIP (hip/hip_runtime.h) under CUDA's names, and libraries.
 *
 * What a library is made of is the path of a shared object, which runs its kernels itself (`standin_launch`).
 */
#pragma once
#include "metafork/hip.h"

#include <dlfcn.h>
#include <string>

#define CUDART_VERSION 13000

namespace cuda_standin {

using launch = bool (*)(const char *name, dim3 grid, dim3 block, int64_t shared_bytes, void **arguments);

struct kernel {
    launch run;
    std::string name;
};

inline std::map<const void *, kernel> &loaded() {
    static std::map<const void *, kernel> all;
    return all;
}

inline hipError_t attributes(hipFuncAttributes *out, const void *function) {
    if (loaded().count(function) == 0) return hipFuncGetAttributes(out, function);
    HIP_STANDIN_BEGIN();
    *out = hip_standin::attributes(function);
    return hipSuccess;
}

inline hipError_t run(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, hipStream_t stream) {
    const auto found = loaded().find(function);
    if (found == loaded().end()) return hipLaunchKernel(function, grid, block, arguments, shared_bytes, stream);
    HIP_STANDIN_BEGIN();
    if (stream != nullptr && hip_standin::of(stream)->device != hip_standin::current) return hipErrorInvalidHandle;
    // What comes before it on its stream takes effect now.
    const hipError_t error = stream == nullptr ? hipSuccess : hipStreamSynchronize(stream);
    if (error != hipSuccess) return error;
    hip_standin::allow(hip_standin::current, true);
    const bool ran = found->second.run(found->second.name.c_str(), grid, block, (int64_t)shared_bytes, arguments);
    hip_standin::allow(hip_standin::current, false);
    return ran ? hipSuccess : hipErrorOutOfMemory;
}

} // namespace cuda_standin

#undef cudaFuncGetAttributes
#undef cudaLaunchKernel
#define cudaFuncGetAttributes cuda_standin::attributes
#define cudaLaunchKernel cuda_standin::run

typedef void *cudaLibrary_t, *cudaKernel_t;

inline hipError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, void *, void *, unsigned, void *, void *, unsigned) {
    HIP_STANDIN_BEGIN();
    *library = dlopen((const char *)code, RTLD_NOW | RTLD_LOCAL);
    return *library == nullptr ? hipErrorInvalidValue : hipSuccess;
}

inline hipError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
    HIP_STANDIN_BEGIN();
    *kernel = dlsym(library, name);
    if (*kernel == nullptr) return hipErrorInvalidDeviceFunction;
    cuda_standin::loaded()[*kernel] = {(cuda_standin::launch)dlsym(library, "standin_launch"), name};
    return hipSuccess;
}

inline hipError_t cudaLibraryUnload(cudaLibrary_t library) { return dlclose(library) == 0 ? hipSuccess : hipErrorInvalidValue; }

/* The driver knows how large memory is. */
enum { cudaEnableDefault };
typedef int cudaDriverEntryPointQueryResult;
namespace cuda_standin {
inline int range(unsigned long long *start, size_t *bytes, unsigned long long address) { return hipMemGetAddressRange((void **)start, bytes, (void *)address); }
} // namespace cuda_standin
inline hipError_t cudaGetDriverEntryPointByVersion(const char *, void **out, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *) {
    *out = (void *)cuda_standin::range;
    return hipSuccess;
}
