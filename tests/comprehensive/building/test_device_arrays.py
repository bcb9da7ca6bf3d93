"""Arrays of a GPU, called from Python.  The stand-in's device is the processor: its memory is that of ndarrays."""

import ctypes
import re

import numpy as np
import pytest

import metafork
from metafork.comprehensive.building.device_arrays import LEGACY, handle_of

TEXT = """
struct body { int id; double mass; float at[2]; };
void scale(int n, double by, const double x[n], double y[n]) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n; i++) y[i] = by * x[i]; }
}
void odd(int n, const double x[n], double y[n]) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n; i++) if (x[i] > 2) y[i] = 5; }
}
double twice(int n, double x[n], double y[n]) {
  x[0] += 1;
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }
  y[1] = y[0] + 1;
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n; i++) x[i] = y[i] + 1; }
  x[2] = 7;
  return y[n - 1];
}
void wild(int n, double x[n], double y[n], double z[n]) {
  double *p = x;
  if (n > 3) p = y;
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n; i++) z[i] += p[i]; }
}
void move(int n, struct body b[n]) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n; i++) { b[i].at[1] += b[i].id; b[i].mass *= 2; } }
}
void bytes(int n, int stream, const unsigned char a[n], unsigned char b[n]) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n; i++) b[i] = a[i] + stream; }
}
"""
PLAIN = {"strategies": (), "counters": ("threads_per_block",), "static": "none", "cpu": True}
BODY = np.dtype([("id", np.int32), ("mass", np.float64), ("at", np.float32, 2)], align=True)


class Interface:
    """An array as Numba and CuPy show it."""

    def __init__(self, array, **more):
        pointer, read_only = array.__array_interface__["data"]
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "descr": array.dtype.descr,
            "data": (pointer, read_only),
            "strides": None if array.flags.c_contiguous else array.strides,
            "version": 3,
            "stream": None,
        } | more


class Exported:
    """An array that is handed over by DLPack; PyTorch also has an array interface, without streams."""

    kind = 2

    def __init__(self, array, device=0):
        self.array, self.device, self.streams = array, device, []
        self.__cuda_array_interface__ = {"version": 2}

    def __dlpack_device__(self):
        return self.kind, self.device

    def __dlpack__(self, *, stream, **options):
        self.streams.append(stream)
        return self.array.__dlpack__(**options)


class Managed(Exported):
    """One of a library that knows no versions of DLPack."""

    kind = 13

    def __dlpack__(self, *, stream):
        return super().__dlpack__(stream=stream)


@pytest.fixture(scope="module")
def loaded(cache):
    found = metafork.load(TEXT, **PLAIN)
    for name in found._functions:
        getattr(found, name)._cpu = False  # its device is the processor
    return found


@pytest.fixture
def borrowings(loaded, monkeypatch):
    """What the runtime is asked to borrow: (device, stream, addresses, the arrays' streams)."""
    calls, real = [], loaded._code.metafork_borrow
    real.restype = ctypes.c_char_p

    class Watched:
        def __call__(self, device, stream, count, memory, sizes, streams, hosts):
            calls.append((device, stream.value, memory[:count], streams[:count]))
            return real(device, stream, count, memory, sizes, streams, hosts)

    monkeypatch.setattr(loaded._code, "metafork_borrow", Watched())
    return calls


def doubles(n=9):
    return np.arange(n, dtype=np.float64), np.zeros(n)


@pytest.mark.parametrize("wrap", [Interface, Exported, Managed])
@pytest.mark.parametrize("n", [1, 9, 100])
def test_schedules_run_on_the_callers_memory(loaded, borrowings, wrap, n):
    x, y = doubles(n)
    for _ in range(2):
        y[:] = 0
        loaded.scale(3.0, wrap(x), wrap(y))
        assert np.array_equal(y, 3 * x)
    assert borrowings[0][2] == [x.ctypes.data, y.ctypes.data]


@pytest.mark.parametrize("given", ["dd", "dh", "hd"])
@pytest.mark.parametrize("environment", [{}, {"METAFORK_ASYNC": "0"}, {"METAFORK_MACHINE": "T=1"}])
def test_host_code_between_schedules_has_its_bytes(loaded, monkeypatch, given, environment):
    """Also where no leaf fits, and the serial code runs."""
    arrays, expected = doubles(), doubles()
    returned = loaded.twice(*expected)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    wrapped = [Interface(one) if kind == "d" else one for kind, one in zip(given, arrays, strict=True)]
    assert loaded.twice(*wrapped) == returned
    assert np.array_equal(arrays, expected)


def test_nothing_is_copied_for_schedules_alone(loaded, monkeypatch, capfd):
    monkeypatch.setenv("METAFORK_TRACE", "2")
    x, y = doubles()
    loaded.scale(3.0, Interface(x), Interface(y))
    loaded.odd(Interface(x), Interface(y))  # which elements it writes depends on data
    said = capfd.readouterr().err
    assert said.count("leaf 1") == 2
    assert "bytes of" not in said
    loaded.twice(Interface(x), Interface(y))
    assert re.findall("(.*) bytes of", capfd.readouterr().err) == [f"metafork: {8}"] * 5 + ["metafork: 8"]


def test_host_code_that_is_not_followed(loaded):
    x, y = doubles()
    z = np.ones(9)
    loaded.wild(Interface(x), Interface(y + 3), Interface(z))
    assert np.array_equal(z, np.full(9, 4))


def test_arrays_that_overlap(loaded, capfd):
    x, _ = doubles(10)
    loaded.scale(9, 2.0, Interface(x[:9]), Interface(x[1:]))  # serial code, as for arrays of the host
    assert np.array_equal(x, np.zeros(10))
    assert "overlap" in capfd.readouterr().err
    x[:] = range(10)
    y = np.zeros(10)
    loaded.odd(Interface(x), Interface(x))
    assert np.array_equal(x, [0, 1, 2, *[5] * 7])
    assert not y.any()


def test_structures_and_an_argument_called_stream(loaded):
    b = np.zeros(5, BODY)
    b["id"], b["mass"] = range(5), 1.5
    loaded.move(Interface(b))
    assert (b["mass"].tolist(), b["at"][:, 1].tolist()) == ([3] * 5, list(range(5)))
    a, c = np.arange(7, dtype=np.uint8), np.zeros(7, np.uint8)
    loaded.bytes(stream=4, a=Interface(a), b=Exported(c))
    assert np.array_equal(c, a + 4)


def test_an_array_without_elements(loaded, borrowings):
    loaded.scale(2.0, Interface(np.zeros(0), data=(0, False)), Exported(np.zeros(0)))
    assert len(borrowings) == 1


class Torch:
    cuda_stream = 77


class Cupy:
    ptr = 78


class Protocol:
    def __cuda_stream__(self):
        return 0, 79


class Property:
    __cuda_stream__ = (0, 80)


@pytest.mark.parametrize(
    ("stream", "handle"), [(None, 1), (0, 1), (2, 2), (Torch(), 77), (Cupy(), 78), (Protocol(), 79), (Property(), 80)]
)
def test_the_stream_reaches_the_runtime(loaded, borrowings, stream, handle):
    x, y = doubles()
    exported = Exported(x, device=0)
    loaded.scale(2.0, exported, Interface(y), stream=stream)
    loaded.scale(2.0, Interface(x, stream=5), Interface(y, stream=None), stream=stream)
    first, second = borrowings
    assert handle_of(stream or 0) == handle
    assert (first[0], first[1], first[3]) == (0, handle, [handle, handle])
    assert exported.streams == [handle]
    other = handle if stream is not None else 5  # that of the array
    assert (second[0], second[1], second[3]) == (-1, other, [5, other])
    assert LEGACY == 1


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (
            {"x": Interface(np.zeros(9, np.float32))},
            TypeError,
            "x is an array of float32; const double x.* takes float64",
        ),
        ({"x": Exported(np.zeros((3, 3)))}, ValueError, "x has 2 dimensions, const double x.* has 1"),
        ({"x": Interface(np.zeros(18)[::2])}, ValueError, "x is not contiguous"),
        ({"x": Exported(np.zeros(18)[::2])}, ValueError, "x is not contiguous"),
        ({"y": Interface(np.zeros(9), data=(4096, True))}, ValueError, "y is read-only"),
        ({"x": Interface(np.zeros(7))}, ValueError, "has . elements in dimension 0, and .* n = "),
        (
            {"x": Exported(np.zeros(9), device=1)},
            ValueError,
            "scale: its arrays are on several devices: x on device 1, y on device 0",
        ),
        ({"x": Exported(np.zeros(9), 1), "y": np.zeros(9)}, RuntimeError, "cannot be used: .* another device"),
        ({"stream": "s"}, TypeError, "stream is str; give a number, or a stream"),
        ({"x": np.zeros(9), "y": np.zeros(9), "stream": 3}, TypeError, "a stream is for arrays of the GPU"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_runs(loaded, change, kind, message):
    y = np.zeros(9)
    with pytest.raises(kind, match=message):
        loaded.scale(**{"by": 2.0, "x": Interface(np.ones(9)), "y": Exported(y)} | change)
    assert not y.any()


def test_a_library_for_the_processor_refuses_memory_of_a_gpu(cache):
    x, y = doubles()
    with pytest.raises(TypeError, match="x is in the memory of a GPU, and the kernels were built for the processor"):
        metafork.load(TEXT, **PLAIN).scale(2.0, Interface(x), y)


def test_a_fault_of_the_device_is_said(loaded, monkeypatch):
    x, y = doubles()
    give_back = loaded._code.metafork_give_back

    class Failing:
        def __call__(self):
            give_back()
            return b"it is on fire"

    monkeypatch.setattr(loaded._code, "metafork_give_back", Failing())
    with pytest.raises(RuntimeError, match="scale: its arrays on the GPU cannot be used: it is on fire"):
        loaded.scale(2.0, Interface(x), Interface(y))
