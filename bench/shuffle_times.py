"""PTXASW's Figures 2 and 3: kernels as they are, without loads, without corner cases, and with shuffles, on a GPU.

``python bench/shuffle.py --device`` prints milliseconds and writes ``results/shuffle_device.json``; PTX is compiled by
the driver.  What computes the same is compared bit for bit; the versions without loads and corner cases are for
measuring only (its section 6).
"""

import ctypes
import json
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from metafork.ptx.shuffles.shuffle import Options, shuffle_text
from metafork.ptx.shuffles.synthesis import Variant

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "shuffle_device.json"
BATCHES, SECONDS = 3, 0.05
SHAPES = {2: (4096, 4096), 3: (256, 256, 256)}
BLOCK = (128, 1, 1)


class Driver:
    """CUDA's driver, as far as it is needed here; a call that fails raises RuntimeError."""

    def __init__(self, library="libcuda.so.1"):
        self._library = ctypes.CDLL(library)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxPushCurrent_v2", self.context)

    def call(self, name, *arguments):
        """Call a function of the driver."""
        error = getattr(self._library, name)(*arguments)
        if error:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(error, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def function(self, text, name):
        """Compile PTX and return one of its kernels."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(text.encode()), 0, None, None)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def array(self, host):
        """Return a copy of an array on the device."""
        memory = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(host.nbytes))
        self.call("cuMemcpyHtoD_v2", memory, host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(host.nbytes))
        return memory

    def fetched(self, memory, like):
        """Return what lies on the device."""
        host = np.empty_like(like)
        self.call("cuMemcpyDtoH_v2", host.ctypes.data_as(ctypes.c_void_p), memory, ctypes.c_size_t(host.nbytes))
        return host

    def launch(self, function, grid, block, values):
        """Launch a kernel with its arguments."""
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self.call("cuLaunchKernel", function, *grid, *block, 0, None, pointers, None)

    def seconds(self, launch):
        """Return the least mean time of a launch over some batches."""
        launch()
        calls = max(1, int(SECONDS / self._mean(launch, 1)))
        return min(self._mean(launch, calls) for _ in range(BATCHES))

    def _mean(self, launch, calls):
        self.call("cuStreamSynchronize", None)
        begun = time.perf_counter()
        for _ in range(calls):
            launch()
        self.call("cuStreamSynchronize", None)
        return (time.perf_counter() - begun) / calls


def measured(driver, case):
    """Return the milliseconds of a kernel and of its versions; raise RuntimeError where results differ."""
    shape = SHAPES[case.dimensions]
    random = np.random.default_rng(1)
    hosts = [random.standard_normal(np.prod(shape)).astype(np.float32) for _ in range(case.arrays)]
    scalars = [*map(ctypes.c_int, shape), *map(ctypes.c_float, case.scalars)]
    versions = {"original": case.text}
    for variant in (Variant.NO_LOAD, Variant.NO_CORNER, Variant.FULL):
        versions[variant.value] = shuffle_text(case.text, Options(variant=variant)).text
    milliseconds, results = {}, {}
    for name, text in versions.items():
        function = driver.function(text, case.entry or case.name)
        arrays = [driver.array(host) for host in hosts]
        values, grid = [*scalars, *arrays], case.grid(shape, BLOCK)
        milliseconds[name] = 1000 * driver.seconds(partial(driver.launch, function, grid, BLOCK, values))
        results[name] = [driver.fetched(array, host).tobytes() for array, host in zip(arrays, hosts, strict=True)]
        for array in arrays:
            driver.call("cuMemFree_v2", array)
    if results["original"] != results[Variant.FULL.value]:
        raise RuntimeError(f"{case.name}: shuffles change a result")
    return milliseconds


def timed(driver):
    """Print and write the times of all kernels that have shuffles."""
    sys.path.insert(0, str(ROOT))
    from tests.metafork.ptx.kernels import CASES

    rows = {}
    for case in (one for one in CASES if one.shuffles):
        rows[case.name] = measured(driver, case)
        print(case.name, ", ".join(f"{name} {value:.4f} ms" for name, value in rows[case.name].items()), flush=True)
    RESULTS.write_text(json.dumps({"format": "metafork-bench-shuffle-device", "milliseconds": rows}, indent=1) + "\n")
