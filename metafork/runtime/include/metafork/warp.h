/* Warp shuffles on a CPU, so that CUDA text with __shfl_sync runs where there is no GPU (tests, CPU builds).
 *
 * metafork_warp::launch(blocks, threads, shared_bytes, kernel) runs `kernel` once a thread.  The 32 threads of a warp
 * are fibers that advance in lock-step from one shuffle or __syncwarp to the next: each hands in its value and waits
 * until every live thread of the warp has done so.  Warps run one after another; there is no __syncthreads here.
 * Needs <ucontext.h>; compile as C++11 or later. */
#ifndef METAFORK_WARP_H
#define METAFORK_WARP_H

#include <ucontext.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline

namespace metafork_warp {

struct Index3 {
  unsigned x, y, z;
};

const int kWarp = 32;
const std::size_t kStack = 256 * 1024;

struct State {
  Index3 thread, block, block_size, grid_size;
  unsigned char *shared;
  ucontext_t scheduler, fiber[kWarp];
  std::vector<unsigned char> stack;
  std::function<void()> kernel;
  int current;
  bool live[kWarp];
  /* Two buffers: a fast thread may hand in its next value before a slow one has read the last. */
  unsigned char slot[2][kWarp][16];
  int parity[kWarp];
};

inline State &state() {
  static State the_state;
  return the_state;
}

inline unsigned char *shared_memory() { return state().shared; }

inline void wait_for_warp() {
  State &s = state();
  swapcontext(&s.fiber[s.current], &s.scheduler);
}

inline void fiber_entry() {
  State &s = state();
  s.kernel();
  s.live[s.current] = false;
  swapcontext(&s.fiber[s.current], &s.scheduler);
}

/* The value that thread `source` of the group of `width` threads hands in at the same shuffle. */
template <typename T>
inline T exchange(T value, int source, int width) {
  static_assert(sizeof(T) <= 16, "shuffled values have at most 16 bytes");
  State &s = state();
  const int me = s.current, buffer = s.parity[me];
  std::memcpy(s.slot[buffer][me], &value, sizeof(T));
  s.parity[me] = 1 - buffer;
  wait_for_warp();
  const int from = (me & ~(width - 1)) + (source & (width - 1));
  T result;
  std::memcpy(&result, s.slot[buffer][from], sizeof(T));
  return result;
}

inline void run_warp(unsigned first, unsigned count) {
  State &s = state();
  for (int lane = 0; lane < kWarp; lane++) {
    s.live[lane] = (unsigned)lane < count;
    s.parity[lane] = 0;
    if (!s.live[lane]) continue;
    getcontext(&s.fiber[lane]);
    s.fiber[lane].uc_stack.ss_sp = &s.stack[lane * kStack];
    s.fiber[lane].uc_stack.ss_size = kStack;
    s.fiber[lane].uc_link = &s.scheduler;
    makecontext(&s.fiber[lane], fiber_entry, 0);
  }
  /* Every round takes each live thread to its next shuffle. */
  for (bool any = true; any;) {
    any = false;
    for (int lane = 0; lane < kWarp; lane++) {
      if (!s.live[lane]) continue;
      any = true;
      s.current = lane;
      s.thread.x = first + lane;
      s.thread.y = s.thread.z = 0;
      swapcontext(&s.scheduler, &s.fiber[lane]);
    }
  }
}

template <typename Kernel>
inline void launch(unsigned blocks, unsigned threads, std::size_t shared_bytes, Kernel kernel) {
  State &s = state();
  s.stack.resize(kWarp * kStack);
  s.kernel = kernel;
  s.block_size = Index3{threads, 1, 1};
  s.grid_size = Index3{blocks, 1, 1};
  std::vector<unsigned char> shared(shared_bytes + 16);
  s.shared = shared.data();
  for (unsigned block = 0; block < blocks; block++) {
    s.block = Index3{block, 0, 0};
    for (unsigned first = 0; first < threads; first += kWarp)
      run_warp(first, threads - first < (unsigned)kWarp ? threads - first : (unsigned)kWarp);
  }
}

} /* namespace metafork_warp */

#define threadIdx (metafork_warp::state().thread)
#define blockIdx (metafork_warp::state().block)
#define blockDim (metafork_warp::state().block_size)
#define gridDim (metafork_warp::state().grid_size)

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  if (mask != 0xffffffffu) {
    std::fprintf(stderr, "metafork/warp.h: shuffles of part of a warp are not supported\n");
    std::abort();
  }
  return metafork_warp::exchange(value, source, width);
}

inline void __syncwarp(unsigned mask = 0xffffffffu) {
  (void)mask;
  metafork_warp::wait_for_warp();
}

#endif /* METAFORK_WARP_H */
