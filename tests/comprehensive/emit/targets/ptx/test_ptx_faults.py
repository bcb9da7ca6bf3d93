"""Every call of the driver failing in turn: the serial code runs, or the program ends with a message; nothing leaks."""

import pytest

from tests.comprehensive.emit.targets.programs import EXAMPLES, build, program

RELEASING = {
    "cuMemFree_v2",
    "cuModuleUnload",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent_v2",
    "cuStreamDestroy_v2",
    "cuEventDestroy_v2",
    "cuMemFreeHost",
    "cuMemHostGetFlags",
}
"""What keeps something when it fails, and cannot be made up for."""

POINTS = [("", {"n": 13002, "s": 13, "B": 1000}), ("", {"n": 402, "s": 2, "B": 16})]
"""The first takes 52 008 bytes of shared memory, more than a launch may have unasked."""


@pytest.fixture(scope="module")
def smooth(driver, tmp_path_factory):
    options = {"counters": ["shared_memory"], "strategies": ["granularity", "caching"]}
    directory = tmp_path_factory.mktemp("faults")
    return program((EXAMPLES / "smooth.mf").read_text(), "smooth.mf", directory, static={"s": (2,)}, **options)


@pytest.fixture(scope="module")
def whole(smooth, driver):
    """The calls of a run in which nothing fails."""
    done, said, calls = smooth.compare(driver, "smooth", POINTS)
    assert (said, calls.violations, calls.left) == (["same"] * 2, [], [])
    assert calls.ran == smooth.launched(done) == ["smooth_k0_leaf1", "smooth_k0_leaf1_v1"]
    return calls


@pytest.mark.slow
def test_the_calls_of_a_run(whole):
    names = whole.names
    assert names[0] == "cuInit"
    assert names.count("cuInit") == names.count("cuDevicePrimaryCtxRetain") == 1
    assert names.count("cuDevicePrimaryCtxRelease_v2") == 1
    # Each kernel that runs is loaded once; large shared memory is asked for once.
    assert names.count("cuModuleLoadDataEx") == names.count("cuModuleUnload") == 2
    assert names.count("cuFuncSetAttribute") == 1
    assert names.count("cuMemAlloc_v2") == names.count("cuMemFree_v2") == 4
    assert names.count("cuCtxPushCurrent_v2") == names.count("cuCtxPopCurrent_v2")
    assert len(names) < 240


@pytest.mark.parametrize("lost", ["", "+"])
@pytest.mark.parametrize(("asynchronous", "fetch"), [("1", "cuMemcpyDtoHAsync_v2"), ("0", "cuMemcpyDtoH_v2")])
@pytest.mark.sampled(1)
def test_each_call_failing(smooth, driver, lost, asynchronous, fetch):
    outcomes = set()
    variables = {"METAFORK_ASYNC": asynchronous}
    names = smooth.compare(driver, "smooth", POINTS, **variables)[2].names
    # A device may be lost at any time; a few of them will do.
    for number in [names.index(fetch) + 1, *range(1, len(names) + 1, 7 if lost else 1)]:
        done, said, calls = smooth.compare(driver, "smooth", POINTS, STANDIN_FAIL=f"{number}{lost}", **variables)
        name = names[number - 1]
        where = f"call {number}, {name}: {said}\n{done.stderr}"
        assert calls.violations == [], where
        if done.returncode == 0:
            # The device failed before any result existed on it alone, or nobody needed what failed.
            assert said == ["same"] * 2, where
            outcomes.add("ran" if len(calls.ran) == 2 else "serial")
            assert len(calls.ran) == 2 or "the serial code runs" in done.stderr or lost, where
            assert calls.ended, where
            if name not in RELEASING and not lost:
                assert calls.left == [], where
        else:
            assert "metafork: results cannot be fetched from the device: unknown error" in done.stderr, where
            assert [text for text in said if text not in ("same", "reference", "")] == [], where
            outcomes.add("ended")
    assert outcomes == {"ran", "serial", "ended"}


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (2, 100, "no CUDA driver or no device"),
        (0, 2, "out of memory"),
        (0, 222, "cannot load PTX"),
        (0, 701, "has not the threads"),
    ],
)
def test_errors_of_the_driver_become_those_of_the_interface(smooth, driver, whole, number, code, said):
    calls = {2: "cuMemAlloc_v2", 222: "cuModuleGetFunction", 701: "cuLaunchKernel"}
    number = number or whole.names.index(calls[code]) + 1
    done, same, calls = smooth.compare(driver, "smooth", POINTS[:1], STANDIN_FAIL=f"{number}:{code}")
    assert same == ["same"]
    if code == 222:
        # The next leaf of the tree is taken where one cannot be loaded.
        assert calls.ran == ["smooth_k0_leaf2"]
    else:
        assert said in done.stderr
        assert "the serial code runs" in done.stderr
    assert (calls.violations, calls.left) == ([], [])


def test_no_room_on_the_device(smooth, driver):
    done, said, calls = smooth.compare(driver, "smooth", POINTS, STANDIN_MEMORY="100000")
    # The arrays of the second point fit.
    assert said == ["same", "same"]
    assert calls.ran == ["smooth_k0_leaf1_v1"]
    assert done.stderr.count("moving arrays to the device failed: out of memory; the serial code runs") == 1
    assert (calls.violations, calls.left) == ([], [])


def test_no_driver_and_no_device(smooth, driver, tmp_path):
    points = [POINTS[1]] * 3
    done, said, calls = smooth.compare(driver, "smooth", points, LD_LIBRARY_PATH=str(tmp_path), METAFORK_TRACE="0")
    assert said == ["same"] * 3
    line = "metafork: smooth_k0: there is no CUDA driver or no device; the serial code runs"
    assert [text for text in done.stderr.splitlines() if not text.startswith("point")] == [line]
    assert calls.names == []
    done, said, calls = smooth.compare(driver, "smooth", points, STANDIN_DEVICES="0", METAFORK_TRACE="0")
    assert said == ["same"] * 3
    assert [text for text in done.stderr.splitlines() if not text.startswith("point")] == [line]
    assert calls.names == ["cuInit"]
    done, said, calls = smooth.compare(driver, "smooth", points, STANDIN_DEVICES="0", METAFORK_STRICT="1")
    assert done.returncode != 0
    assert "no CUDA driver or no device; METAFORK_STRICT is set" in done.stderr


def test_a_kernel_that_the_driver_does_not_compile(smooth, driver, tmp_path):
    """The log of the driver's compiler is shown once; the serial code runs where no leaf is left."""
    for name in ("smooth.h", "smooth_generation.h", "smooth_host.c", "smooth_ptx.c"):
        text = (smooth.directory / name).read_text()
        (tmp_path / name).write_text(text.replace(".visible .entry", ".visible .entree"))
    (tmp_path / "include").symlink_to(smooth.directory / "include")
    broken = type(smooth)(smooth.result, tmp_path, build(smooth.result, tmp_path))
    done, said, calls = broken.compare(driver, "smooth", POINTS * 2)
    assert said == ["same"] * 4
    assert calls.ran == []
    for leaf in (1, 2, 3):
        line = f"metafork: smooth_k0_leaf{leaf}: the driver does not compile it: a PTX JIT compilation failed\nfatal : "
        assert done.stderr.count(line) == 1
    assert "no leaf fits this machine and these parameters; the serial code runs" in done.stderr
    assert (calls.violations, calls.left) == ([], [])


@pytest.mark.parametrize("order", ["late", "early"])
def test_what_fails_while_nobody_waits_is_named_later(smooth, driver, order):
    """A copy, the kernel, or the copy of its results fails on the device: the program ends, and says what was begun."""
    under_way = "smooth_k0, a copy of x, a copy of y"
    for number in range(1, 5):
        variables = {"STANDIN_BREAK": str(number), "STANDIN_ORDER": order}
        done, said, calls = smooth.compare(driver, "smooth", POINTS[1:], **variables)
        assert done.returncode != 0
        assert said == [""]
        line = f"metafork: results cannot be fetched from the device: an error: y; under way: {under_way}"
        assert line in done.stderr.splitlines()
        assert calls.violations == []


def test_what_fails_before_anything_is_on_the_device_alone_is_named_and_computed_serially(smooth, driver, whole):
    """A launch that fails may come from anything before it."""
    number = whole.names.index("cuLaunchKernel") + 1
    done, said, calls = smooth.compare(driver, "smooth", POINTS, STANDIN_FAIL=f"{number}:719")
    assert said == ["same", "same"]
    under_way = "smooth_k0, a copy of x, a copy of y"
    assert f"leaf 1: the launch failed: an error; under way: {under_way}; the serial code runs" in done.stderr
    assert (calls.violations, calls.left) == ([], [])
