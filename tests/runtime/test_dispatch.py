"""Which leaf the drop-in takes where compilers and drivers disagree with estimates, and what a fault leaves behind."""

import os
from pathlib import Path

import pytest

from tests.runtime.compiling import SANITIZE, build, run

HARNESS = Path(__file__).with_name("dispatch.cu")


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dispatch") / "dispatch", [HARNESS], "-O0", *SANITIZE)


def answer(harness, chosen, limit, leaves, *more, **variables):
    """Run with (registers, error) for each leaf; 32 registers are the estimate of leaves 1 and 3, 64 that of leaf 2."""
    flat = [number for leaf in leaves for number in leaf]
    return run([harness, chosen, limit, *flat, *more], env={**os.environ, **variables})


@pytest.mark.parametrize(
    ("chosen", "limit", "leaves", "taken"),
    [
        (2, 100, [(-1, 0), (-1, 0), (-1, 0)], 2),  # the tree's leaf, by the estimates
        (2, 50, [(-1, 0), (-1, 0), (-1, 0)], 1),  # the estimate of leaf 2 is over: the first that fits
        (2, 50, [(-1, 0), (40, 0), (-1, 0)], 2),  # but the compiler took fewer
        (1, 50, [(51, 0), (50, 0), (-1, 0)], 2),  # the compiler took more for leaf 1
        (3, 50, [(51, 0), (51, 0), (1, 0)], None),  # 33 threads are two warps: 64 registers for the block
        (3, 64, [(65, 0), (65, 0), (1, 0)], 3),
        (0, 50, [(-1, -3), (-1, -3), (-1, 0)], 3),  # the tree has no leaf, yet one can be launched
        (1, 50, [(-1, 209), (40, 0), (-1, 0)], 2),  # the kernel cannot be loaded on this device
        (0, 10, [(-1, 0), (-1, 0), (-1, 0)], None),
    ],
)
def test_the_leaf_that_is_taken(harness, chosen, limit, leaves, taken):
    done = answer(harness, chosen, limit, leaves)
    assert done.returncode == 0, done.stderr
    if taken is None:
        assert done.stdout == "0: 1 2\n"
        assert "no leaf fits" in done.stderr
    else:
        assert done.stdout == f"leaf {taken}\n1: 1 {taken * 10}\n"
        assert done.stderr == ""


def test_a_launch_that_fails_leaves_the_host_arrays_as_they_were(harness):
    done = answer(harness, 1, 50, [(-1, 0)] * 3, -6)
    assert done.stdout == "leaf 1\n0: 1 2\n"
    assert done.stderr == "metafork: s: leaf 1: the launch failed: out of memory; the serial code runs\n"
    assert done.returncode == 0


def test_strict_mode_gives_the_measured_numbers(harness):
    done = answer(harness, 1, 50, [(51, 0), (52, -3), (1, 0)], METAFORK_STRICT="1")
    assert done.returncode != 0
    assert "leaf 1: x <= R is violated: 51 (as compiled) <= 50" in done.stderr
    assert "leaf 2: 2*x <= R is violated: 52 (as compiled) <= 50" in done.stderr
    assert "leaf 2: grid 1x1x1, block 33x1x1, 0 bytes of shared memory: the device has not" in done.stderr
    assert "leaf 3: x <= RB is violated: 64 (as compiled) <= 50" in done.stderr


@pytest.mark.parametrize(
    ("start", "written", "overlap"),
    [(0, 1, True), (3, 1, True), (3, 2, True), (3, 3, True), (3, 0, False), (4, 1, False), (4, 3, False)],
)
def test_arrays_overlap_where_either_is_written(harness, start, written, overlap):
    done = answer(harness, 1, 100, [(-1, 0)] * 3, 0, start, written)
    if overlap:
        assert done.stderr == "metafork: s: arrays a and b overlap and one is written; the serial code runs\n"
        assert done.stdout == "0: 1 2\n"
    else:
        assert done.stderr == ""
        assert done.stdout.startswith("leaf 1\n1: ")


MOVED = "metafork: s: code before the schedule moved or resized one of its arrays; {}\n"


def test_results_come_back_where_an_array_has_been_moved(harness):
    """The serial code that then runs has them."""
    done = answer(harness, 1, 100, [(-1, 0)] * 3, 0, 4, 1, 1)
    assert done.stdout == "leaf 1\nmoved: 1 10\n1: 1 10\n"
    assert (done.returncode, done.stderr) == (0, MOVED.format("the serial code runs"))
    done = answer(harness, 1, 100, [(-1, 0)] * 3, 0, 4, 1, 1, METAFORK_STRICT="1")
    assert done.returncode != 0
    assert done.stderr == MOVED.format("METAFORK_STRICT is set")
