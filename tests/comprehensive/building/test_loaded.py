"""``metafork.load``: functions of a file on NumPy arrays, and what is said of arguments that do not fit."""

import re
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import metafork

TEXT = """
#include <stdbool.h>
typedef struct { int n; float *data; } vector;
struct body { int id; double mass; struct { float x, y; } at[2]; };
struct point { float x, y; };
void scale(int n, double by, const double x[2 * n + 1], double y[2 * n + 1]) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < 2 * n + 1; i++) y[i] = by * x[i]; }
}
int add(int n, int m, const unsigned char a[n][m], long long b[n][m], bool seen[n]) {
  meta_schedule meta_block(4) {
    meta_for (int i = 0; i < n; i++) {
      seen[i] = 1;
      for (int j = 0; j < m; j++) b[i][j] += a[i][j];
    }
  }
  return n * m;
}
void cut(int n, int k, float x[n / k]) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n / k; i++) x[i] = i; }
}
void fill(vector v) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < v.n; i++) v.data[i] = 1; }
}
void move(int n, struct body b[n], const struct point by[n]) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n; i++) { b[i].at[1].y += by[i].y; b[i].mass *= 2; } }
}
"""
POINT = [("x", np.float32), ("y", np.float32)]
BODY = [("id", np.int32), ("mass", np.float64), ("at", POINT, 2)]
PLAIN = {"strategies": (), "counters": ("threads_per_block",), "static": "none", "cpu": True}


@pytest.fixture(scope="module")
def loaded(cache):
    return metafork.load(TEXT, **PLAIN)


def doubles(n):
    return np.arange(2 * n + 1, dtype=np.float64), np.zeros(2 * n + 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda f, n, x, y: f(n, 3.0, x, y),
        lambda f, n, x, y: f(3.0, x, y),
        lambda f, n, x, y: f(by=3, x=x, y=y),
        lambda f, n, x, y: f(x=x, y=y, n=np.int32(n), by=np.float32(3)),
    ],
)
@pytest.mark.parametrize("n", [1, 7, 100])
def test_arrays_are_changed_in_place(loaded, call, n):
    x, y = doubles(n)
    for _ in range(2):  # the second call has nothing new
        y[:] = 0
        call(loaded.scale, n, x, y)
        assert np.array_equal(y, 3 * x)


def test_rows_bytes_and_what_a_function_returns(loaded):
    a = np.arange(15, dtype=np.uint8).reshape(3, 5)
    b, seen = np.full((3, 5), 2**40), np.zeros(3, bool)
    assert loaded.add(a, b, seen) == 15
    assert np.array_equal(b, a.astype(np.int64) + 2**40)
    assert seen.all()


def test_calls_of_one_form_take_their_own_numbers(loaded):
    x, y = doubles(4)
    for by in (2.0, 3.0, 4, float("nan"), 5.0, np.float32(6)):
        loaded.scale(by=by, x=x, y=y)
        assert np.array_equal(y, by * x, equal_nan=True)
    for n, k in ((12, 3), (12, 3), (20, 5), (12, 3)):
        found = np.zeros(n // k, np.float32)
        loaded.cut(n, k, found)
        assert found.tolist() == list(range(n // k))
    with pytest.raises(ValueError, match=r"x has 4 elements in dimension 0, and .* is 6 there"):
        loaded.cut(12, 2, np.zeros(4, np.float32))
    empty = np.zeros(1)
    for _ in range(2):
        loaded.scale(2.0, empty, np.zeros(1))
    with pytest.raises(TypeError, match="no shape says"):
        loaded.scale(2.0, empty[:0], empty[:0])


def test_a_call_with_other_shapes_is_checked_anew(loaded):
    for n in (4, 9, 4):
        x, y = doubles(n)
        loaded.scale(n, 2.0, x, y)
        assert np.array_equal(y, 2 * x)
    with pytest.raises(ValueError, match="x has 9 elements"):
        loaded.scale(9, 2.0, doubles(4)[0], doubles(9)[1])


class Lent:
    """An array of another library."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class OnGpu:
    __cuda_array_interface__: ClassVar = {"data": (4096, False), "shape": (9,), "typestr": "<f8", "version": 3}


def test_memory_of_other_libraries_is_not_copied(loaded):
    x, y = doubles(4)
    loaded.scale(2.0, Lent(x), Lent(y))
    assert np.array_equal(y, 2 * x)


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"x": np.zeros(9, np.float32)}, TypeError, "x is an array of float32; const double x.* takes float64"),
        ({"x": np.zeros((3, 3))}, ValueError, "x has 2 dimensions, const double x.* has 1"),
        ({"x": np.zeros(18)[::2]}, ValueError, "x is not contiguous"),
        ({"y": read_only(np.zeros(9))}, ValueError, "y is read-only"),
        ({"x": np.zeros(7)}, ValueError, "has . elements in dimension 0, and .* n = "),
        ({"x": np.zeros(8), "y": np.zeros(8)}, TypeError, "n: no shape says what it is"),
        ({"x": [1.0] * 9}, TypeError, "x is list; give a NumPy array of float64"),
        ({"x": OnGpu()}, TypeError, "x is in the memory of a GPU, and the kernels were built for the processor"),
        ({"by": "3"}, TypeError, "by is .3.; double by takes a number"),
        ({"n": 4.0}, TypeError, "n is 4.0; int n takes a number"),
        ({"n": 2**31}, ValueError, "n is 2147483648, which int n does not hold"),
        ({"z": 1}, TypeError, "has no argument 'z'"),
    ],
)
@pytest.mark.parametrize("fitted_before", [False, True])
def test_what_does_not_fit_is_said_before_anything_runs(loaded, change, kind, message, fitted_before):
    x, y = doubles(4)
    if fitted_before:
        loaded.scale(**{"by": 0.0, "x": x, "y": np.ones(9)} | dict.fromkeys(change.keys() & {"n"}, 4))
    with pytest.raises(kind, match=message):
        loaded.scale(**{"by": 2.0, "x": x, "y": y} | change)
    assert not y.any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k, x, y: k.scale(1, 2.0, x, y, 5), "takes 4 arguments, not 5"),
        (lambda k, x, y: k.scale(2.0, x), "y missing"),
        (lambda k, x, y: k.scale(2.0, x, y, by=2), "by is given twice"),
        (lambda k, x, y: k.cut(x=np.zeros(3, np.float32)), "n, k: no shape says"),
        (lambda k, x, y: k.fill(x), "cannot be called from Python: its parameter vector v is a structure"),
    ],
)
def test_calls_that_are_none(loaded, call, message):
    with pytest.raises(TypeError, match=message):
        call(loaded, *doubles(4))


def test_structures_are_changed_in_place(loaded):
    for count in (5, 3, 3):
        b, by = np.zeros(count, np.dtype(BODY, align=True)), np.zeros(count, POINT)
        b["id"], b["mass"], b["at"]["x"], by["y"] = range(count), 1.5, 4, 0.5
        loaded.move(b, by)
        assert (b["id"].tolist(), b["mass"].tolist()) == (list(range(count)), [3] * count)
        assert (b["at"]["x"] == 4).all()
        assert (b["at"]["y"] == [0, 0.5]).all()
        loaded.move(count, b, by.view(np.float32).reshape(count, 2))  # of one type: rows do as well
        assert (b["at"]["y"] == [0, 1]).all()


@pytest.mark.parametrize(
    ("b", "kind", "message"),
    [
        (
            np.zeros(3, BODY),
            TypeError,
            "move: b is an array of .*: its member mass begins at byte 4, not 8; .*align=True",
        ),
        (np.zeros(3, POINT), TypeError, "b is an array of other structures: it has no member id"),
        (np.zeros(3, [*BODY, ("age", int)]), TypeError, "member mass begins"),
        (np.zeros(3, np.dtype([*BODY, ("age", int)], align=True)), TypeError, "the structure has no member age"),
        (np.zeros(3, np.dtype([("id", int), *BODY[1:]], align=True)), TypeError, "member id is int64, not int32"),
        (np.zeros((3, 8), np.int32), TypeError, r"b is an array of int32; give one of structures \(id: int32, mass: f"),
        (np.zeros((1, 3), np.dtype(BODY, align=True)), ValueError, r"2 dimensions, struct body b\[n\] has 1"),
        (np.zeros(6, np.dtype(BODY, align=True))[::2], ValueError, "b is not contiguous"),
        (np.zeros(4, np.dtype(BODY, align=True)), ValueError, r"b\[n\] is 3 there|by\[n\] is 4 there"),
    ],
)
def test_structures_that_lie_otherwise_are_refused(loaded, b, kind, message):
    by = np.zeros(3, POINT)
    loaded.move(3, np.zeros(3, np.dtype(BODY, align=True)), by)
    with pytest.raises(kind, match=message):
        loaded.move(3, b, by)


def test_a_structure_with_more_bytes_is_refused(loaded):
    by = np.zeros(3, np.dtype({"names": ["x", "y"], "formats": ["f4", "f4"], "itemsize": 12}))
    with pytest.raises(TypeError, match="by is an array of other structures: it has 12 bytes, not 8"):
        loaded.move(3, np.zeros(3, np.dtype(BODY, align=True)), by)


def test_an_unknown_function_is_said(loaded):
    with pytest.raises(AttributeError, match="no function 'scales'; there are scale, add, cut, fill, move"):
        loaded.scales  # noqa: B018
    assert "scale" in dir(loaded)


def test_the_leaf_is_said_with_reasons(loaded):
    choice = loaded.scale.select(n=100)
    assert [one.leaf for one in choice.values()] == [1]
    assert "leaf 1" in str(choice)
    assert loaded.scale.select(100, 2.0, *doubles(100), machine="sm_90").keys() == choice.keys()


def test_floats_of_a_call_before_are_no_integers(loaded):
    x, y = doubles(1)
    loaded.scale(1, 2.0, x, y)
    with pytest.raises(TypeError, match=r"n is 1\.0"):
        loaded.scale(1.0, 2.0, x, y)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_what_pages_show_runs(page, cache):
    """On the processor, as here where there is no GPU."""
    (code, *_) = programs(page)
    is_smoothed(run(code))


@pytest.mark.slow
def test_three_cells_of_a_notebook_are_enough(cache):
    _, first, *_ = programs("docs/python.md")
    cells = Path("docs/python.md").read_text().partition(first)[2]
    shown, called = re.findall(r"```python\n(.*?)```", cells, re.DOTALL)[:2]
    names = run(first + called)
    is_smoothed(names)
    assert "<svg" in eval(shown, names)._repr_svg_()


def programs(page):
    """The programs of a page that load a file, in order."""
    return [one for one in re.findall(r"```python\n(.*?)```", Path(page).read_text(), re.DOTALL) if ".load(" in one]


def run(code):
    names = {}
    exec(code.replace('.mf")', '.mf", cpu=True)'), names)
    return names


def is_smoothed(names):
    x, y = names["x"], names["y"]
    whole = (x[:-2] + x[1:-1] + x[2:]) / np.float32(3)
    blocks = np.count_nonzero(y)
    assert blocks > 900
    assert np.array_equal(y[1 : blocks + 1], whole[:blocks])
