"""``metafork.load``: pointers of which nobody knows how many elements they lead to have those of the arrays given."""

import numpy as np
import pytest

import metafork

TEXT = """
struct point { float x, y; };
void gather(int n, int B, const int *at, const double *x, double y[n]) {
  meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) y[i] = x[at[i]]; }
}
void embed(int n, int m, int B, const int id[n], const float (*table)[m], float out[n][m]) {
  meta_schedule meta_block(1, B) {
    meta_for (int i = 0; i < n; i++) meta_for (int k = 0; k < m; k++) out[i][k] = table[id[i]][k];
  }
}
void points(int n, int B, const int at[n], struct point *p) {
  meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) p[at[i]].y += 1; }
}
void parts(int n, int k, int B, float *x) {
  meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) x[i] += 1; }
  if (k > 0) { meta_schedule meta_block(B) { meta_for (int i = 0; i < k; i++) x[2 * i] *= 2; } }
}
"""


@pytest.fixture(scope="module")
def loaded(cache):
    return metafork.load(TEXT, strategies=(), counters=("threads_per_block",), static="none", cpu=True)


def launches(capfd):
    return capfd.readouterr().err.count(" leaf 1 ")


@pytest.fixture(autouse=True)
def traced(monkeypatch):
    monkeypatch.setenv("METAFORK_TRACE", "1")


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_gather_from_an_array_of_any_size(loaded, size, capfd):
    at, x, y = np.arange(300, dtype=np.int32) * 7 % size, np.random.default_rng(1).random(size), np.zeros(300)
    for _ in range(2):
        loaded.gather(B=32, at=at, x=x, y=y)
        loaded.gather(300, 32, at, x, y)
    assert np.array_equal(y, x[at])
    assert launches(capfd) == 4


def test_rows_and_structures(loaded, capfd):
    at = np.array([4, 0, 2, 4], np.int32)
    table, out = np.arange(15, dtype=np.float32).reshape(5, 3), np.zeros((4, 3), np.float32)
    loaded.embed(B=2, id=at, table=table, out=out)
    assert np.array_equal(out, table[at])
    points = np.zeros(6, [("x", np.float32), ("y", np.float32)])
    loaded.points(B=2, at=at[1:], p=points)
    assert points["y"].tolist() == [1, 0, 1, 0, 1, 0]
    assert launches(capfd) == 2


def test_a_pointer_with_other_extents_at_each_schedule(loaded, capfd):
    x = np.zeros(9, np.float32)
    loaded.parts(9, 5, 4, x)
    assert x.tolist() == [2, 1] * 4 + [2]
    assert launches(capfd) == 2


def test_arrays_that_overlap(loaded, capfd):
    memory, at = np.arange(100.0), np.arange(10, dtype=np.int32)
    loaded.gather(B=4, at=at[::-1].copy(), x=memory[20:60], y=np.zeros(10))
    assert launches(capfd) == 1
    loaded.gather(B=4, at=at, x=memory[20:60], y=memory[50:60])
    assert launches(capfd) == 0
    assert memory[50:60].tolist() == memory[20:30].tolist()
    with pytest.raises(ValueError, match="x has 2 dimensions"):
        loaded.gather(B=4, at=at, x=memory.reshape(10, 10), y=np.zeros(10))
