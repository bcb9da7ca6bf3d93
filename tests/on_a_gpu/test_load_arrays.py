"""``metafork.load`` with arrays in the memory of a GPU: the same bits as the build for the processor, in stream order.

pytest tests/on_a_gpu        needs a GPU, nvcc, and CuPy or PyTorch
"""

from contextlib import nullcontext

import numpy as np
import pytest

import metafork
from metafork.comprehensive.building.compilers import has_gpu

pytestmark = pytest.mark.skipif(not has_gpu(), reason="NO GPU: arrays on a GPU are not tried here")

TWO = """
struct body { int id; double mass; float at[2]; };
struct point { float x, y, z; };
double twice(int n, double x[n], double y[n]) {
  x[0] += 1;
  meta_schedule meta_block(64) { meta_for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }
  y[1] = y[0] + 1;
  meta_schedule meta_block(64) { meta_for (int i = 0; i < n; i++) x[i] = y[i] + 1; }
  x[2] = 7;
  return y[n - 1];
}
void chain(int n, double x[n], double y[n]) {
  meta_schedule meta_block(64) { meta_for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }
  meta_schedule meta_block(64) { meta_for (int i = 0; i < n; i++) x[i] = y[i] + 1; }
}
void move(int n, struct body b[n], struct point p[n]) {
  meta_schedule meta_block(32) {
    meta_for (int i = 0; i < n; i++) { b[i].at[1] += b[i].id; b[i].mass *= 2; p[i].y = p[i].x + p[i].z; }
  }
}
"""
BODY = np.dtype([("id", np.int32), ("mass", np.float64), ("at", np.float32, 2)], align=True)
WAITING = r"""
extern "C" __global__ void waits(const volatile int *flag, int *seen) {
    const long long start = clock64();
    while (*flag == 0 && clock64() - start < 20000000000ll) {}
    *seen = *flag;
}
"""
PLAIN = {"strategies": (), "counters": ("threads_per_block",), "static": "none"}


class CuPy:
    def __init__(self):
        self.cupy = pytest.importorskip("cupy", reason="NO CUPY: its arrays are not tried here")

    def to(self, array):
        return self.cupy.asarray(array)

    def back(self, array):
        return array.get()

    def stream(self):
        return self.cupy.cuda.Stream(non_blocking=True)

    def on(self, stream):
        return stream


class PyTorch:
    def __init__(self):
        self.torch = pytest.importorskip("torch", reason="NO PYTORCH: its tensors are not tried here")
        if not self.torch.cuda.is_available():
            pytest.skip("NO PYTORCH WITH CUDA: its tensors are not tried here")

    def to(self, array):
        return self.torch.from_numpy(np.array(array)).cuda()

    def back(self, array):
        return array.cpu().numpy()

    def stream(self):
        return self.torch.cuda.Stream()

    def on(self, stream):
        return self.torch.cuda.stream(stream)


@pytest.fixture(params=[CuPy, PyTorch], scope="module")
def library(request):
    return request.param()


@pytest.fixture
def cupy():
    return CuPy().cupy


@pytest.fixture(scope="module")
def files():
    """The files of the tests, by name: on the GPU, and on the processor."""
    made = {}
    for name, source, options in (
        ("smooth", "examples/smooth.mf", {}),
        ("matmul", "examples/matmul.mf", {}),
        ("two", TWO, PLAIN),
    ):
        made[name] = metafork.load(source, cpu=False, **options), metafork.load(source, cpu=True, **options)
    return made


def some(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


CASES = {
    "smooth": ("smooth", "smooth", {"s": 4, "B": 256}, {"x": (100_002,), "y": (100_002,)}, np.float32),
    "matmul": ("matmul", "matmul", {"B0": 16, "ub1": 8, "s": 4}, dict.fromkeys("abc", (256, 256)), np.float32),
    "two schedules": ("two", "chain", {}, {"x": (10_001,), "y": (10_001,)}, np.float64),
    "host code": ("two", "twice", {}, {"x": (10_001,), "y": (10_001,)}, np.float64),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("environment", [{}, {"METAFORK_ASYNC": "0"}, {"METAFORK_MACHINE": "T=1"}])
@pytest.mark.parametrize("own", [False, True])
def test_results_are_those_of_the_processor(library, files, monkeypatch, case, environment, own):
    """Also where copies and kernels are waited for, and where no leaf fits and the serial code runs."""
    file, name, numbers, shapes, dtype = CASES[case]
    on_gpu, on_cpu = (getattr(one, name) for one in files[file])
    host = {argument: some(*shape, dtype=dtype) for argument, shape in shapes.items()}
    stream = library.stream()
    with library.on(stream) if own else nullcontext():
        device = {argument: library.to(array) for argument, array in host.items()}
        with monkeypatch.context() as patch:
            for variable, value in environment.items():
                patch.setenv(variable, value)
            returned = on_gpu(**numbers, **device, **({"stream": stream} if own else {}))
        found = {argument: library.back(array) for argument, array in device.items()}
    assert on_cpu(**numbers, **host) == returned
    for argument, array in host.items():
        assert np.array_equal(found[argument].view(np.uint8), array.view(np.uint8)), argument


def test_nothing_is_copied_for_schedules_alone(library, files, monkeypatch, capfd):
    monkeypatch.setenv("METAFORK_TRACE", "2")
    x, y = library.to(some(1000)), library.to(some(1000))
    files["smooth"][0].smooth(s=4, B=32, x=x, y=y)
    said = capfd.readouterr().err
    assert "leaf" in said
    assert "bytes of" not in said


def test_an_array_of_the_host_beside_one_of_the_gpu(library, files):
    x, y = some(10_001, dtype=np.float64), np.zeros(10_001)
    expected = x.copy(), y.copy()
    on_gpu, on_cpu = files["two"]
    device = library.to(x)
    assert on_gpu.twice(device, y) == on_cpu.twice(*expected)
    assert np.array_equal((library.back(device), y), expected)


class Records:
    """An array of structures on the GPU, which CuPy has not."""

    def __init__(self, memory, dtype):
        shape = (memory.nbytes // dtype.itemsize,)
        self.__cuda_array_interface__ = dict(
            memory.__cuda_array_interface__, shape=shape, typestr=dtype.str, descr=dtype.descr, strides=None
        )


def test_arrays_of_structures(cupy, files):
    bodies, points = np.zeros(1001, BODY), some(1001, 3)
    bodies["id"], bodies["mass"] = range(1001), 1.5
    memory, on_gpu = cupy.asarray(bodies.view(np.uint8)), cupy.asarray(points)
    files["two"][0].move(Records(memory, BODY), on_gpu)
    files["two"][1].move(bodies, points)
    assert np.array_equal(memory.get(), bodies.view(np.uint8))
    assert np.array_equal(on_gpu.get(), points)


def test_managed_memory(cupy, files):
    with cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        x, y = cupy.asarray(some(10_002)), cupy.zeros(10_002, np.float32)
    expected = np.zeros(10_002, np.float32)
    files["smooth"][0].smooth(s=4, B=32, x=x, y=y)
    files["smooth"][1].smooth(s=4, B=32, x=some(10_002), y=expected)
    assert np.array_equal(y.get(), expected)


@pytest.mark.parametrize("named", [False, True])
def test_a_call_stands_in_the_order_of_its_stream_and_does_not_wait(cupy, files, named):
    """A kernel waits for a flag, which is written after the call has returned; then x is made, and y is read."""
    chain = files["two"][0].chain
    flag = np.frombuffer(cupy.cuda.alloc_pinned_memory(4), np.int32, 1)
    waits = cupy.RawKernel(WAITING, "waits")
    seen = cupy.zeros(1, np.int32)
    stream = cupy.cuda.Stream(non_blocking=True)
    told = {"stream": stream} if named else {}  # else the array interface names the current one
    with stream:
        x, y, z, wanted = (cupy.zeros(100_000) for _ in range(4))
        wanted[:] = cupy.arange(100_000)
        for last in (False, True):  # all is loaded once before something waits
            flag[0] = not last
            x[:] = 0
            waits((1,), (1,), (flag.ctypes.data, seen))
            x[:] = wanted
            chain(x, y, **told)
            z[:] = y
            y[:] = 0
            flag[0] = 1
    stream.synchronize()
    assert seen.get()[0] == 1, "the call waited for the kernel"
    assert np.array_equal(z.get(), 2 * np.arange(100_000))
    assert np.array_equal(x.get(), 2 * np.arange(100_000) + 1)


def test_the_streams_of_arrays_are_waited_for(cupy, files):
    """x is still being made on a stream of its own, and the call is on another one."""
    flag = np.frombuffer(cupy.cuda.alloc_pinned_memory(4), np.int32, 1)
    waits, seen = cupy.RawKernel(WAITING, "waits"), cupy.zeros(1, np.int32)
    one, other = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    x, y, wanted = cupy.zeros(100_000), cupy.zeros(100_000), cupy.arange(100_000, dtype=np.float64)
    cupy.cuda.Device().synchronize()
    for last in (False, True):
        flag[0] = not last
        x[:] = 0
        cupy.cuda.Device().synchronize()
        with one:
            waits((1,), (1,), (flag.ctypes.data, seen))
            x[:] = wanted
            files["two"][0].chain(x, y, stream=other)
            flag[0] = 1
        cupy.cuda.Device().synchronize()
    assert seen.get()[0] == 1, "the call waited for the kernel"
    assert np.array_equal(y.get(), 2 * np.arange(100_000))


def test_what_does_not_fit_is_said(library, files):
    x, y = library.to(some(100)), library.to(some(100))
    on_gpu, on_cpu = (one.smooth for one in files["smooth"])
    with pytest.raises(TypeError, match="x is an array of float64; const float x"):
        on_gpu(s=4, B=8, x=library.to(some(100, dtype=np.float64)), y=y)
    with pytest.raises(ValueError, match="x is not contiguous"):
        on_gpu(s=4, B=8, x=library.to(some(200))[::2], y=y)
    with pytest.raises(TypeError, match="x is in the memory of a GPU"):
        on_cpu(s=4, B=8, x=x, y=y)
