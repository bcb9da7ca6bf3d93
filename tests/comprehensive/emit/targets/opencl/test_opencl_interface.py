"""``select`` and ``launch`` of the OpenCL back end, devices and threads of the host; how what is written is built."""

import shutil

import pytest

from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from tests.comprehensive.emit.targets.building import (
    compiled_as_c_and_as_cplusplus,
    interface,
    leaves,
    refused_on_the_cpu,
    used_by_cmake,
)
from tests.comprehensive.emit.targets.programs import Path

POINT = ("", {"n": 24, "B0": 4, "ub1": 2, "s": 3})


@pytest.fixture(scope="module")
def matmul(tmp_path_factory):
    main = Path(__file__).with_name("interface.c")
    return interface(main, tmp_path_factory.mktemp("matmul"), OPENCL, counters=("threads_per_block", "shared_memory"))


def test_every_leaf_is_launched_on_the_callers_queue(matmul, opencl, tmp_path):
    done, calls = opencl.run([matmul.directory / "interface"], log=tmp_path / "log")
    lines = done.stdout.splitlines()
    assert lines[0] == "query 0 -1"
    assert lines[2] == "refused -1 -5"
    assert lines[3:] == [*(f"leaf {leaf} 0 same" for leaf in leaves(matmul)), "without a queue -1", "drop-in same"]
    assert (done.returncode, calls.violations, calls.left) == (0, [], [])
    assert len(calls.ran) == len(leaves(matmul)) + 1 >= 4
    assert any("_v1" in name for name in calls.ran)


def test_the_drop_in_takes_the_leaf_of_the_machine(matmul, opencl):
    """The second point is one whose stores the optimizer of PoCL loses."""
    points = [
        POINT,
        ("Z=40", {"n": 18, "B0": 3, "ub1": 3, "s": 2}),
        ("Z=1", {"n": 13, "B0": 5, "ub1": 2, "s": 3}),
        ("grid_dim_x=1", {"n": 24, "B0": 4, "ub1": 2, "s": 3}),
    ]
    done, said, calls = matmul.compare(opencl, "matmul", points)
    assert said == ["same"] * len(points), done.stderr
    assert calls.ran == matmul.launched(done)
    assert len(set(calls.ran)) >= 3
    assert " large" in done.stderr
    assert (calls.violations, calls.left) == ([], [])


def test_without_a_library_the_interface_says_so(matmul, opencl, tmp_path):
    done, _ = opencl.run([matmul.directory / "interface"], log=tmp_path / "log", METAFORK_OPENCL_LIBRARY="none.so")
    assert done.stdout.splitlines() == ["query -8 -8", "launch -8"]
    # A library that has other functions is none.
    done, _ = opencl.run([matmul.directory / "interface"], log=tmp_path / "log", METAFORK_OPENCL_LIBRARY="libm.so.6")
    assert done.stdout.splitlines() == ["query -8 -8", "launch -8"]


@pytest.mark.parametrize("order", ["late", "random:1", "random:2", "early", None])
def test_threads_of_the_host_share_what_is_built(matmul, opencl, tmp_path, order):
    """More than there are queues for."""
    variables = {} if order is None else {"STANDIN_ORDER": order}
    done, calls = opencl.run([matmul.directory / "interface", "20", "4"], log=tmp_path / "log", **variables)
    assert done.stdout.splitlines() == [f"thread {i} same" for i in range(20)], done.stderr
    assert (done.returncode, done.stderr, calls.violations, calls.left) == (0, "", [], [])
    assert len(calls.ran) == 20 * 4
    assert calls.names.count("clBuildProgram") == 1
    assert calls.names.count("clCreateContext") == 1
    # One of the process, and two of each thread that had work under way at the same time as others.
    queues = calls.names.count("clCreateCommandQueue")
    assert queues % 2 == 1
    assert 3 <= queues <= 1 + 2 * 16


def test_the_device_is_the_one_that_is_named(matmul, opencl):
    for wanted in ("0", "pthread"):
        _, said, calls = matmul.compare(opencl, "matmul", [POINT], METAFORK_OPENCL_DEVICE=wanted)
        assert (said, len(calls.ran)) == (["same"], 1)
    for wanted in ("1", "no such", "0x"):
        done, said, calls = matmul.compare(opencl, "matmul", [POINT], METAFORK_OPENCL_DEVICE=wanted)
        assert (said, calls.ran, calls.left) == (["same"], [], [])
        assert f'metafork: METAFORK_OPENCL_DEVICE="{wanted}" is none of 1 devices\n' in done.stderr
        assert "there is no OpenCL library or no device; the serial code runs" in done.stderr


def test_the_machine_is_that_of_the_device(matmul, opencl, tmp_path):
    for capability, registers in ((90, 255), (35, 255), (32, 63)):
        variables = {"STANDIN_GPU": str(capability), "STANDIN_LOCAL": "49152"}
        done, _ = opencl.run([matmul.directory / "interface", "machine"], log=tmp_path / "log", **variables)
        assert done.stdout.splitlines()[1] == f"machine {capability} {registers} 65536 12288 32 4096"
    # What nobody tells limits nothing.
    done, _ = opencl.run([matmul.directory / "interface", "machine"], log=tmp_path / "log", STANDIN_LOCAL="1000")
    assert done.stdout.splitlines()[1] == f"machine 0 255 {255 * 4096} 250 32 4096"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cmake") is None, reason="NO CMAKE")
def test_the_cmake_package_needs_no_opencl(matmul, opencl, tmp_path):
    done, calls = opencl.run([used_by_cmake(matmul, tmp_path)], log=tmp_path / "log")
    assert (done.returncode, calls.names) == (0, [])


def test_the_cpu_build_is_refused(matmul, tmp_path):
    refused_on_the_cpu(matmul, OPENCL, tmp_path)


def test_the_kernels_are_c_of_1999_and_plus_plus(matmul, tmp_path):
    compiled_as_c_and_as_cplusplus(matmul, OPENCL, tmp_path)
