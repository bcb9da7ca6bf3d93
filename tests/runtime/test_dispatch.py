"""Which kernel is taken where compilers and drivers disagree with estimates, and what a fault leaves behind."""

import os
from pathlib import Path

import pytest

from tests.runtime.compiling import SANITIZE, build, run

HARNESS = Path(__file__).with_name("dispatch.cu")
LOADING, RESOURCES, EMPTY = "-1,209", "-1,-3", "-1,-5"
"""Errors of checking a kernel."""


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dispatch") / "dispatch", [HARNESS], "-O0", *SANITIZE)


def answer(harness, called, limit, kernels=(), options=(), **variables):
    """Run with the registers of kernels as compiled, or errors."""
    said = [f"{name}={one}" if isinstance(one, str) else f"{name}={one},0" for name, one in dict(kernels).items()]
    return run([harness, called, f"R={limit}", *said, *options], env={**os.environ, **variables})


TAKEN = [
    # What the tree gives, the machine's registers, what is known of kernels, what runs.
    (2, 100, {}, "2.1"),  # the tree's leaf, by the estimates
    (2, 50, {}, "1.2"),  # the estimate of leaf 2 is over: the first that fits
    (2, 50, {"2.1": 40}, "2.1"),  # but the compiler took fewer
    (0, 50, {"1.2": RESOURCES, "2.1": RESOURCES}, "3.1"),  # the tree has no leaf, yet one can be launched
    (0, 1, {}, None),
    (3, 64, {"1.1": 65, "1.2": 65, "2.1": 65, "3.1": 1}, "3.1"),
    (3, 64, {"1.1": 65, "1.2": 65, "2.1": 65, "3.1": 9}, None),
    (3, 63, {"1.2": 65, "2.1": 65, "3.1": 1}, None),  # 33 threads: a warp in each of four partitions, at 8 registers
    # The first variant of leaf 1: it asks for twice the registers.
    (1, 64, {}, "1.1"),
    (1, 63, {}, "1.2"),
    (1, 64, {"1.1": 64, "1.2": 1}, "1.1"),
    # Measured registers above its limit: the next variant, and above those of all variants: the next leaf.
    (1, 64, {"1.1": 65}, "1.2"),
    (1, 64, {"1.1": 65, "1.2": 64}, "1.2"),
    (1, 64, {"1.1": 65, "1.2": 65}, "2.1"),
    (1, 64, {"1.1": 65, "1.2": 65, "2.1": 65}, "3.1"),
    (1, 63, {"1.1": 1, "1.2": 64, "2.1": 30}, "2.1"),
    (1, 31, {"1.1": 32, "1.2": 32, "2.1": 32, "3.1": 32}, None),
    # The device has no room for its block, or cannot load it.
    (1, 64, {"1.1": RESOURCES}, "1.2"),
    (1, 64, {"1.1": LOADING, "1.2": LOADING}, "2.1"),
    (1, 64, {"1.1": EMPTY, "1.2": 65}, "2.1"),
    # Kernels for the arguments go before those for any, variant by variant, and have to fit as well.
    (1, 64, {"1.1jit": 64, "1.1": 1}, "1.1jit"),
    (1, 64, {"1.1jit": 65, "1.1": 64, "1.2jit": 1}, "1.1"),
    (1, 64, {"1.1jit": 65, "1.1": 65, "1.2jit": 64}, "1.2jit"),
    (1, 64, {"1.1": RESOURCES, "1.2jit": 65, "1.2": 65}, "2.1"),
    (1, 63, {"1.1jit": 1, "1.2jit": 1}, "1.2jit"),
]


@pytest.mark.parametrize(("chosen", "limit", "kernels", "taken"), TAKEN)
def test_the_kernel_that_the_drop_in_takes(harness, chosen, limit, kernels, taken):
    done = answer(harness, f"drop-in={chosen}", limit, kernels)
    assert done.returncode == 0, done.stderr
    if taken is None:
        assert done.stdout == "0: 1 2\n"
        assert "no leaf fits" in done.stderr
    else:
        assert done.stdout == f"{taken}\n1: 1 {taken[0]}0\n"
        assert done.stderr == ""


@pytest.mark.parametrize(
    ("leaf", "limit", "kernels", "taken"),
    [
        (1, 64, {"1.1": 64}, "1.1"),
        (1, 64, {"1.1": 65, "1.2": 64}, "1.2"),
        (1, 64, {"1.1": 65, "1.2": 65}, "1.2"),  # the last one must run
        (1, 64, {"1.1": 65, "1.2jit": 65, "1.2": 65}, "1.2"),
        (1, 64, {"1.1": 65, "1.2jit": 64, "1.2": 65}, "1.2jit"),
        (1, 64, {"1.1": RESOURCES, "1.2": RESOURCES}, -3),
        (1, 64, {"1.1": 65, "1.2": LOADING}, 209),
        (2, 10, {}, "2.1"),
        (3, 64, {"3.1": 65}, "3.1"),
        (0, 64, {}, -1),
        (4, 64, {}, -1),
    ],
)
def test_the_variant_that_launch_takes(harness, leaf, limit, kernels, taken):
    done = answer(harness, f"launch={leaf}", limit, kernels)
    assert done.stdout == (f"{taken}\n0\n" if isinstance(taken, str) else f"{taken}\n")
    assert (done.returncode, done.stderr) == (0, "")


def test_outside_of_start_launch_takes_the_own_variant(harness):
    """Nothing is known there of the values that conditions are evaluated on."""
    outside = ("drop-in=-1",)
    assert answer(harness, "launch=1", 64, {}, outside).stdout == "1.2\n0\n"
    assert answer(harness, "launch=1", 64, {"1.2": RESOURCES}, outside).stdout == "-3\n"


@pytest.mark.parametrize(
    ("change", "choices", "second"),
    [
        ("nothing", 1, "1.1"),
        ("value", 1, "1.1"),  # of a floating-point number, which decides nothing
        ("integer", 2, "1.1"),
        ("place", 2, "1.1"),
        ("machine", 2, "1.1"),
        ("leaf", 2, "2.1"),
        ("fails", 2, "1.1"),  # as after a reset of the device
    ],
)
def test_a_launch_that_comes_again_is_not_chosen_again(harness, change, choices, second):
    done = answer(harness, "launch=1", 64, {}, (f"again={change}",))
    assert done.stdout == f"1.1\n0\n{second}\n0\n{choices} choices\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_what_failed_is_not_remembered(harness):
    done = answer(harness, "launch=1", 64, {}, ("again=nothing", "fault=-6"))
    assert done.stdout == "1.1\n-6\n1.1\n-6\n2 choices\n"


def test_the_trace_says_which_kernel_runs_and_why_others_do_not(harness):
    shape = "grid=1x1x1 block=33x1x1 shared_bytes=0"
    for limit, kernels, lines in [
        (64, {}, [f"s leaf 1 {shape} variant=1"]),
        (63, {}, ["  leaf 1, variant 1: 2*x <= R is violated: 64 <= 63", f"s leaf 1 {shape} variant=2"]),
        (
            64,
            {"1.1": 65, "1.2": 66, "2.1": 64},
            [
                "  leaf 1, variant 1: 2*x <= R is violated: 65 (as compiled) <= 64",
                "  leaf 1, variant 2: x <= R is violated: 66 (as compiled) <= 64",
                f"s leaf 2 {shape} registers=64 variant=1",
            ],
        ),
        (64, {"1.1jit": 40}, [f"s leaf 1 {shape} registers=40 variant=1 jit"]),
    ]:
        done = answer(harness, "drop-in=1", limit, kernels, METAFORK_TRACE="1")
        assert done.stderr.splitlines() == [f"metafork: {line}" for line in lines]


def test_a_launch_that_fails_leaves_the_host_arrays_as_they_were(harness):
    done = answer(harness, "drop-in=1", 50, {}, ("fault=-6",))
    assert done.stdout == "1.2\n0: 1 2\n"
    assert done.stderr == "metafork: s: leaf 1: the launch failed: out of memory; the serial code runs\n"
    assert done.returncode == 0


def test_strict_mode_gives_the_measured_numbers(harness):
    """Of the variants of a leaf, those of its own one, which asks for least."""
    kernels = {"1.1": 49, "1.2": 51, "2.1": "52,-3", "3.1": 1}
    done = answer(harness, "drop-in=1", 50, kernels, METAFORK_STRICT="1")
    assert done.returncode != 0
    lines = [
        "leaf 1: x <= R is violated: 51 (as compiled) <= 50",
        "leaf 2: 2*x <= R is violated: 52 (as compiled) <= 50",
        "leaf 2: grid 1x1x1, block 33x1x1, 0 bytes of shared memory: the device has not",
        "leaf 3: x <= 16*R is violated: 1024 (as compiled) <= 800",
    ]
    for line, text in zip(done.stderr.splitlines()[1:], lines, strict=True):
        assert line.startswith(f"metafork:   {text}")


@pytest.mark.parametrize(
    ("start", "written", "overlap"),
    [(0, 1, True), (3, 1, True), (3, 2, True), (3, 3, True), (3, 0, False), (4, 1, False), (4, 3, False)],
)
def test_arrays_overlap_where_either_is_written(harness, start, written, overlap):
    done = answer(harness, "drop-in=1", 100, {}, (f"b={start}", f"written={written}"))
    if overlap:
        assert done.stderr == "metafork: s: arrays a and b overlap and one is written; the serial code runs\n"
        assert done.stdout == "0: 1 2\n"
    else:
        assert done.stderr == ""
        assert done.stdout.startswith("1.1\n1: ")


MOVED = "metafork: s: code before the schedule moved or resized one of its arrays; {}\n"


def test_results_come_back_where_an_array_has_been_moved(harness):
    """The serial code that then runs has them."""
    done = answer(harness, "drop-in=1", 100, {}, ("moved=1",))
    assert done.stdout == "1.1\nmoved: 1 10\n1: 1 10\n"
    assert (done.returncode, done.stderr) == (0, MOVED.format("the serial code runs"))
    done = answer(harness, "drop-in=1", 100, {}, ("moved=1",), METAFORK_STRICT="1")
    assert done.returncode != 0
    assert done.stderr == MOVED.format("METAFORK_STRICT is set")
