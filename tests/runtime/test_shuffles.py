"""The CPU build's shuffles against what CUDA's manual says of them."""

import ctypes

import numpy as np

from tests.metafork.swizzle.running import compiled

TEXT = """
#define METAFORK_CPU
#include <metafork/device.h>

__global__ void shuffles(const int *source, const int *lanes, int *out, int width) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  int value = source[at];
  for (int round = 0; round < 5; round++) value = __shfl_sync(0xffffffffu, value, lanes[at] + round, width) + round;
  out[at] = value;
}

__global__ void through_shared(const int *source, int *out) {
  int *const mine = reinterpret_cast<int *>(metafork_cpu::shared_base()) + threadIdx.x / 32 * 32;
  const int lane = threadIdx.x % 32, at = blockIdx.x * blockDim.x + threadIdx.x;
  mine[lane] = source[at];
  __syncwarp();
  out[at] = mine[31 - lane];
}

extern "C" void run(const int *source, const int *lanes, int *out, int width, unsigned blocks, unsigned threads) {
  const dim3 grid = {blocks, 1, 1}, block = {threads, 1, 1};
  metafork_cpu::launch("shuffles", grid, block, 0, [=] { shuffles(source, lanes, out, width); });
}

extern "C" void run_shared(const int *source, int *out, unsigned blocks, unsigned threads) {
  const dim3 grid = {blocks, 1, 1}, block = {threads, 1, 1};
  metafork_cpu::launch("through_shared", grid, block, threads * sizeof(int), [=] { through_shared(source, out); });
}
"""


def shuffled(value, lanes, width):
    """One shuffle of one warp: the source lane is taken modulo the width, within the own group."""
    me = np.arange(value.size)
    return value[me // width * width + lanes % width]


def test_shuffles_of_every_width(tmp_path):
    library = compiled(TEXT, ".cpp", tmp_path)
    random = np.random.default_rng(5)
    for width in (1, 2, 4, 8, 16, 32):
        source = random.integers(0, 1000, size=3 * 96, dtype=np.int32)
        lanes = random.integers(0, 32, size=source.size, dtype=np.int32)
        out = np.zeros_like(source)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (source, lanes, out)]
        library.run(*pointers, width, 3, 96)
        want = source.copy()
        for start in range(0, source.size, 32):
            warp = slice(start, start + 32)
            for turn in range(5):
                want[warp] = shuffled(want[warp], lanes[warp] + turn, width) + turn
        assert np.array_equal(out, want)


def test_shared_memory_after_a_warp_barrier(tmp_path):
    library = compiled(TEXT, ".cpp", tmp_path)
    source = np.arange(5 * 64, dtype=np.int32)
    out = np.zeros_like(source)
    library.run_shared(ctypes.c_void_p(source.ctypes.data), ctypes.c_void_p(out.ctypes.data), 5, 64)
    assert np.array_equal(out.reshape(-1, 32), source.reshape(-1, 32)[:, ::-1])
