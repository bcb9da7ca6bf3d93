"""``metafork.load``: ``None`` for an array that the function asks for, and for no other one."""

import numpy as np
import pytest

import metafork

TEXT = """
#include <stddef.h>
void layer(int n, const float *x, const float *bias, float *y) {
  meta_schedule meta_block(64) { meta_for (int i = 0; i < n; i++) y[i] = x[i] + (bias ? bias[i] : 1); }
}
void outside(int n, const float *x, const float *bias, float *y) {
  if (NULL != bias) {
    meta_schedule meta_block(64) { meta_for (int i = 0; i < n; i++) y[i] = x[i] + bias[i]; }
  } else {
    meta_schedule meta_block(64) { meta_for (int i = 0; i < n; i++) y[i] = x[i] + 1; }
  }
}
void gather(int n, const float *x, const int at[n], const float *bias, float *y) {
  meta_schedule meta_block(64) { meta_for (int i = 0; i < n; i++) y[i] = x[at[i]] + (!bias ? 1 : bias[at[i]]); }
}
void written(int n, const float *x, float *bias, float *y) {
  meta_schedule meta_block(64) { meta_for (int i = 0; i < n; i++) {
    y[i] = x[i] + 1;
    if (bias) { y[i] += bias[i] - 1; bias[i] += 0; }
  } }
}
"""


@pytest.fixture(scope="module")
def loaded(cache):
    return metafork.load(TEXT, strategies=(), counters=("threads_per_block",), static="none", cpu=True)


@pytest.mark.parametrize("name", ["layer", "outside", "gather", "written"])
@pytest.mark.parametrize("size", [1, 7, 200])
def test_without_an_optional_array(loaded, name, size, capfd, monkeypatch):
    monkeypatch.setenv("METAFORK_TRACE", "1")
    x, bias, y = np.arange(size, dtype=np.float32), np.float32(3) * np.arange(size, dtype=np.float32), np.zeros(size)
    more = {"at": np.arange(size, dtype=np.int32)} if name == "gather" else {}
    y = y.astype(np.float32)
    for given in (bias, None, None, bias):
        getattr(loaded, name)(x=x, bias=given, y=y, **more)
        assert np.array_equal(y, x + (1 if given is None else bias))
    assert capfd.readouterr().err.count(" leaf 1 ") == 4


def test_without_names(loaded):
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    loaded.layer(x, None, y)
    loaded.layer(5, x, None, y)
    assert np.array_equal(y, x + 1)


def test_what_is_refused(loaded):
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    with pytest.raises(TypeError, match="layer: x is None, and the function does not ask whether it is null"):
        loaded.layer(x=None, bias=x, y=y)
    with pytest.raises(ValueError, match=r"layer: bias has 4 elements in dimension 0, .* is 5 there .* has_bias = 1"):
        loaded.layer(x=x, bias=x[:4], y=y)
    with pytest.raises(TypeError, match="bias missing"):
        loaded.layer(x=x, y=y)


def test_which_kernel_runs(loaded):
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    for choice in (loaded.layer.select(x, None, y), loaded.layer.select(n=5, bias=None)):
        assert [one.leaf for one in choice.values()] == [1]
