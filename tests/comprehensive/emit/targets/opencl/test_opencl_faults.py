"""Every call of OpenCL failing in turn: the serial code runs, or the program ends with a message; nothing leaks."""

import pytest

from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from tests.comprehensive.emit.targets.programs import EXAMPLES, build, program

RELEASING = {
    "clReleaseMemObject",
    "clReleaseKernel",
    "clReleaseProgram",
    "clReleaseCommandQueue",
    "clReleaseContext",
    "clReleaseEvent",
    "clEnqueueUnmapMemObject",
}
"""What keeps something when it fails, and cannot be made up for."""

POINTS = [("", {"n": 402, "s": 2, "B": 16})]


@pytest.fixture(scope="module")
def smooth(tmp_path_factory):
    options = {"counters": ["shared_memory"], "strategies": ["granularity", "caching"]}
    directory = tmp_path_factory.mktemp("faults")
    return program((EXAMPLES / "smooth.mf").read_text(), "smooth.mf", directory, OPENCL, static={"s": (2,)}, **options)


@pytest.fixture(scope="module")
def whole(smooth, opencl):
    """The calls of a run in which nothing fails."""
    done, said, calls = smooth.compare(opencl, "smooth", POINTS)
    assert (said, calls.violations, calls.left) == (["same"], [], [])
    assert calls.ran == smooth.launched(done) == ["smooth_k0_leaf1_v1"]
    return calls


@pytest.mark.slow
def test_the_calls_of_a_run(whole):
    names = whole.names
    assert names[0] == "clGetPlatformIDs"
    # A kernel that is not needed is not built.
    assert names.count("clBuildProgram") == names.count("clReleaseProgram") == names.count("clReleaseKernel") == 1
    # Two arrays, and one of pinned memory.
    assert names.count("clCreateBuffer") == names.count("clReleaseMemObject") == 3
    assert names.count("clEnqueueNDRangeKernel") == 1
    # The host waits for what comes back, and at the end for the buffer that is not mapped any more.
    assert (names.count("clWaitForEvents"), names.count("clFinish")) == (1, 1)
    assert len(names) < 90


@pytest.fixture(scope="module")
def synchronous(smooth, opencl):
    """The calls of a run in which everything is waited for at once."""
    _, said, calls = smooth.compare(opencl, "smooth", POINTS, METAFORK_ASYNC="0")
    assert (said, calls.violations, calls.left) == (["same"], [], [])
    names = calls.names
    assert names.count("clEnqueueNDRangeKernel") == names.count("clFlush") == names.count("clFinish") == 1
    assert len(names) < 60
    return calls


def check(smooth, opencl, whole, number, lost, **variables):
    """Let one call fail, or all from it on; return whether the leaf or the serial code ran, or the program ended."""
    done, said, calls = smooth.compare(opencl, "smooth", POINTS, STANDIN_FAIL=f"{number}{lost}", **variables)
    name = whole.names[number - 1]
    where = f"call {number}, {name}: {said}\n{done.stderr}"
    assert calls.violations == [], where
    if done.returncode != 0:
        assert "metafork: results cannot be fetched from the device: an error of OpenCL" in done.stderr, where
        assert [text for text in said if text not in ("same", "reference", "")] == [], where
        return "ended"
    # The device failed before any result existed on it alone, or nobody needed what failed.
    assert said == ["same"], where
    assert calls.ended, where
    assert len(calls.ran) == 1 or "the serial code runs" in done.stderr, where
    if name not in RELEASING and not lost:
        assert calls.left == [], where
    return "ran" if calls.ran and "the serial code runs" not in done.stderr else "serial"


@pytest.mark.parametrize("run", ["whole", "synchronous"])
@pytest.mark.slow
def test_each_function_failing(smooth, opencl, run, request):
    """The last call of each function fails, and for a few from then on all."""
    whole, variables = request.getfixturevalue(run), {"METAFORK_ASYNC": "0" if run == "synchronous" else "1"}
    last = {name: number for number, name in enumerate(whole.names, 1)}
    outcomes = {check(smooth, opencl, whole, number, "", **variables) for number in last.values()}
    assert outcomes == {"ran", "serial", "ended"}
    for name in ("clGetDeviceIDs", "clBuildProgram", "clEnqueueNDRangeKernel"):
        assert check(smooth, opencl, whole, last[name], "+", **variables) == "serial"


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["", "+"])
def test_each_call_failing(smooth, opencl, whole, lost):
    for number in range(1, len(whole.names) + 1):
        check(smooth, opencl, whole, number, lost)


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("clGetDeviceIDs", -1, "there is no OpenCL library or no device"),
        ("clCreateBuffer", -61, "moving arrays to the device failed: out of memory"),
        ("clEnqueueNDRangeKernel", -54, "the launch failed: the device has not the threads"),
        ("clFinish", -36, "the launch failed: CL_INVALID_COMMAND_QUEUE"),
    ],
)
def test_errors_of_opencl_become_those_of_the_interface(smooth, opencl, synchronous, name, code, said):
    number = synchronous.names.index(name) + 1
    variables = {"STANDIN_FAIL": f"{number}:{code}", "METAFORK_ASYNC": "0"}
    done, same, calls = smooth.compare(opencl, "smooth", POINTS, **variables)
    assert (same, calls.violations, calls.left) == (["same"], [], [])
    assert said in done.stderr
    assert "the serial code runs" in done.stderr


def test_without_pinned_memory_everything_is_waited_for(smooth, opencl, whole, synchronous):
    """The buffer is not given, or not mapped, or there is no second queue: as with the switch, but for that call."""
    for name in ("clEnqueueMapBuffer", "clCreateCommandQueue"):
        number = len(whole.names) - whole.names[::-1].index(name)
        done, said, calls = smooth.compare(opencl, "smooth", POINTS, STANDIN_FAIL=f"{number}")
        assert (said, calls.violations, calls.left) == (["same"], [], []), done.stderr
        assert "serial" not in done.stderr
        assert "clWaitForEvents" not in calls.names
        kept = [one for one in calls.names if one.startswith("clEnqueue") and one != "clEnqueueMapBuffer"]
        assert [one for one in kept if one != "clEnqueueUnmapMemObject"] == [
            one for one in synchronous.names if one.startswith("clEnqueue")
        ]


@pytest.mark.parametrize("order", ["late", "random:1", "random:2"])
def test_however_late_copies_and_kernels_are(smooth, opencl, order):
    done, said, calls = smooth.compare(opencl, "smooth", POINTS * 3, STANDIN_ORDER=order)
    assert (said, calls.violations, calls.left) == (["same"] * 3, [], []), done.stderr
    assert len(calls.ran) == 3
    assert "serial" not in done.stderr


def test_no_library_and_no_device(smooth, opencl, tmp_path):
    points = POINTS * 3
    line = "metafork: smooth_k0: there is no OpenCL library or no device; the serial code runs"
    for variables in ({"LD_LIBRARY_PATH": str(tmp_path)}, {"STANDIN_POCL": "none.so"}, {"STANDIN_DEVICES": "0"}):
        done, said, calls = smooth.compare(opencl, "smooth", points, METAFORK_TRACE="0", **variables)
        assert said == ["same"] * 3
        assert [text for text in done.stderr.splitlines() if not text.startswith("point")] == [line]
        assert len(calls.names) <= 2
    done, said, calls = smooth.compare(opencl, "smooth", points, STANDIN_DEVICES="0", METAFORK_STRICT="1")
    assert done.returncode != 0
    assert "no OpenCL library or no device; METAFORK_STRICT is set" in done.stderr


@pytest.mark.slow
def test_a_kernel_that_is_not_built(smooth, opencl, tmp_path):
    """The log of the compiler is shown once a kernel; the serial code runs where no leaf is left."""
    for name in ("smooth.h", "smooth_generation.h", "smooth_host.c", "smooth_opencl.c"):
        text = (smooth.directory / name).read_text()
        (tmp_path / name).write_text(text.replace("barrier(CLK", "barrier_(CLK"))
    (tmp_path / "include").symlink_to(smooth.directory / "include")
    broken = type(smooth)(smooth.result, tmp_path, build(smooth.result, tmp_path, OPENCL))
    done, said, calls = broken.compare(opencl, "smooth", POINTS * 2)
    assert said == ["same"] * 2
    # The last leaf has no barrier.
    assert calls.ran == ["smooth_k0_leaf3_v1"] * 2 or calls.ran == ["smooth_k0_leaf3"] * 2
    for leaf in (1, 2):
        assert done.stderr.count(f"smooth_k0_leaf{leaf}: the OpenCL compiler does not build it: error -11\n") == 1
    assert "barrier_" in done.stderr
    assert (calls.violations, calls.left) == ([], [])
