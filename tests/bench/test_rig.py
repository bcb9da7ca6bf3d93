"""The rig of bench/ computes what the instructions say, counts exactly, and stops at what it cannot do."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from instructions import difference, serial
from rig import Device, missing_tools

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.optimize import optimize

ROOT = Path(__file__).parents[2]

MISSING = missing_tools(download=False)
if MISSING:
    warnings.warn(f"no {', '.join(MISSING)}: the rig of bench/ is not tested", stacklevel=1)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def device():
    return Device()


@pytest.fixture(scope="module")
def kernels(device):
    return device.load(ROOT / "tests" / "bench" / "kernels.cu", flags=("-fmad=false",))


def test_arithmetic_is_exact(device, kernels):
    random, n = np.random.default_rng(7), 1000
    x = random.random(n, np.float32)
    x[:5] = 0, 1e-42, 3e38, 1e-30, 1
    d = random.random(n)
    k = random.integers(-(2**31), 2**31 - 1, n, np.int32)
    single, twice, whole = np.zeros(n, np.float32), np.zeros(n), np.zeros(n, np.int32)
    device.call(kernels, "run_numbers", n, x, d, k, single, twice, whole, on_device=True)
    with np.errstate(over="ignore"):
        three = x * np.float32(3)
        want = np.sqrt(x) / (np.roll(x, -1) + np.float32(0.1)) - three + k.astype(np.float32)
    assert np.array_equal(single, want)
    assert np.array_equal(twice, np.sqrt(d) / (np.roll(d, -1) + 0.1) - d * 3.0 + x.astype(float) + k.astype(float))
    truncated = np.trunc(k / 7).astype(np.int64)
    rest = np.fmod(k, 11).astype(np.int64)
    with np.errstate(over="ignore"):
        # What does not fit an int becomes the nearest that does.
        thousands = np.minimum(x * np.float32(1000), 2**31 - 1).astype(np.float64).astype(np.int64).clip(max=2**31 - 1)
    floors = np.where(x < np.float32(0.5), 1, np.floor(d)).astype(np.int64)
    want = truncated + rest + (d * 1000.0).astype(np.int64) - thousands + floors
    assert np.array_equal(whole, want.astype(np.int32))


def test_exponentials_are_within_two_units(device, kernels):
    n = 500
    x = np.linspace(-80, 80, n, dtype=np.float32)
    y = np.zeros(n, np.float32)
    device.call(kernels, "run_exponentials", n, x, y, on_device=True)
    assert difference(y, np.exp(x.astype(np.float64)).astype(np.float32)) <= 2


@pytest.mark.parametrize(("kernel", "passes"), [("run_conflicts", 32 * 32), ("run_padded", 32)])
def test_bank_conflicts_are_counted(device, kernels, kernel, passes):
    a, b = np.arange(1024, dtype=np.float32).reshape(32, 32), np.zeros((32, 32), np.float32)
    (launch,) = device.call(kernels, kernel, a, b, on_device=True)
    assert np.array_equal(b, a.T)
    counts = launch.counts
    assert (counts["shared_load_wavefronts"], counts["shared_store_wavefronts"]) == (passes, 32)
    assert (counts["global_load_sectors"], counts["global_store_sectors"]) == (128, 128)
    assert counts["barriers"] == 32
    assert launch.shared_bytes == 4 * 32 * (33 if kernel == "run_padded" else 32)


def test_sectors_that_a_block_loads_again_are_told_from_new_ones(device, kernels):
    a, b = np.arange(72, dtype=np.float32), np.zeros(64, np.float32)
    (launch,) = device.call(kernels, "run_neighbours", a, b, on_device=True)
    assert np.array_equal(b, a[:64] + a[8:])
    # Each of two blocks loads four sectors, and four that are one further.
    assert (launch.counts["global_load_sectors"], launch.counts["global_load_new_sectors"]) == (16, 10)


def test_asynchronous_copies_of_16_bytes(device, kernels):
    a, b = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    (launch,) = device.call(kernels, "run_asynchronous", a, b, on_device=True)
    assert np.array_equal(b.reshape(64, 4), a.reshape(64, 4)[::-1])
    counts = launch.counts
    assert (counts["mix"]["ldgsts"], counts["global_load_requests"], counts["global_load_sectors"]) == (2, 2, 32)
    assert (counts["shared_store_wavefronts"], counts["shared_load_wavefronts"]) == (8, 8)


def test_lanes_diverge_and_meet(device, kernels):
    a, b = np.arange(1, 33, dtype=np.int32), np.zeros(32, np.int32)

    def steps(v):
        count = 0
        while v != 1:
            v, count = (v // 2 if v % 2 == 0 else 3 * v + 1), count + 1
        return count

    device.call(kernels, "run_divergent", a, b, on_device=True)
    assert (b == sum(steps(int(v)) for v in a)).all()


def test_whole_warps_do_not_leave_for_the_code_of_divergent_ones(device, kernels):
    """nvcc has shuffles behind a condition twice, and goes to the second text where lanes of the warp are elsewhere."""
    a, b = np.arange(64, dtype=np.int32), np.zeros(32, np.int32)
    (launch,) = device.call(kernels, "run_first_warp", 64, a, b, on_device=True)
    assert b[0] == sum(range(64))
    assert launch.counts["mix"]["shuffle"] == 5
    assert launch.counts["mix"]["control"] < 4 * 5  # a call and a return more for each shuffle otherwise


def test_faults_are_reported(device, kernels):
    with pytest.raises(RuntimeError, match="outside of all memory"):
        device.call(kernels, "run_outside", 100000, np.zeros(4, np.float32), on_device=True)
    with pytest.raises(RuntimeError, match=r"not implemented: .*(RED|ATOM)"):
        device.call(kernels, "run_atomic", np.zeros(1, np.int32), on_device=True)


def test_a_program_runs_on_the_device_as_dispatched(device, tmp_path):
    source = ROOT / "examples" / "smooth.mf"
    write_outputs(optimize(source), tmp_path)
    n, s, block = 1002, 2, 50
    x = np.random.default_rng(3).random(n, np.float32)
    want, got = np.zeros(n, np.float32), np.zeros(n, np.float32)
    device.serial(serial(source), "smooth", n, s, block, x, want)
    host, include = tmp_path / "smooth_host.c", (tmp_path / "include",)
    module = device.load(tmp_path / "smooth.cu", host, include, flags=("-fmad=false",))
    (launch,) = device.call(module, "smooth", n, s, block, x, got)
    # Of 50 threads that took several results each, less than a warp would be left: the leaf's own kernel.
    assert (launch.kernel, launch.grid, launch.block) == ("smooth_k0_leaf1", (10, 1, 1), (50, 1, 1))
    assert launch.counts["blocks"] == 10
    assert np.array_equal(got, want)

    static = tmp_path / "static"
    write_outputs(optimize(source, static={"s": (s,), "B": (block,)}), static)
    module = device.load(static / "smooth.cu", static / "smooth_host.c", (static / "include",), flags=("-fmad=false",))
    got[:] = 0
    (constant,) = device.call(module, "smooth", n, s, block, x, got)
    assert constant.kernel == "smooth_k0_leaf1_v1"
    assert np.array_equal(got, want)
    assert constant.counts["warp_instructions"] < launch.counts["warp_instructions"]


def test_quotients_of_places_in_a_block_are_exact(device):
    include = (ROOT / "metafork" / "runtime" / "include",)
    quotients = device.load(ROOT / "tests" / "bench" / "quotients.cu", include=include)
    for first, count in ((1, 1100), (2**16 - 1, 3), (2**24 - 2, 5), (2**31 - 3, 3)):
        wrong = np.full(count * 1024, 7, np.int32)
        device.call(quotients, "run_quotients", first, count, wrong, on_device=True)
        assert not wrong.any()
