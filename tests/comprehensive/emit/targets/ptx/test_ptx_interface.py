"""``select`` and ``launch`` of the PTX back end, devices and threads of the host, and how what is written is built."""

import re
import shutil

import pytest

from metafork.comprehensive.emit.targets.ptx import TARGET as PTX
from tests.comprehensive.emit.targets.building import (
    compiled_as_c_and_as_cplusplus,
    interface,
    leaves,
    refused_on_the_cpu,
    used_by_cmake,
)
from tests.comprehensive.emit.targets.programs import Path
from tests.runtime.compiling import needs_nvcc, succeed


@pytest.fixture(scope="module")
def matmul(tmp_path_factory):
    main = Path(__file__).with_name("interface.c")
    return interface(main, tmp_path_factory.mktemp("matmul"), PTX)


BLOCK, GRID, PROCESSOR = "1024 1024 64", "2147483647 65535 65535", "32 64 32 65536 41984"
MACHINE = f"65536 1024 41728 {BLOCK} {GRID} {PROCESSOR}"
"""The stand-in's device, but for its capability and what that says of registers."""


@pytest.mark.slow
def test_every_leaf_is_launched_on_the_callers_memory(matmul, driver, tmp_path):
    done, calls = driver.run([matmul.directory / "interface"], log=tmp_path / "log")
    lines = done.stdout.splitlines()
    assert lines[:3] == ["query 0 -1", f"machine 80 255 {MACHINE} 32 256", "refused -1 -5"]
    assert lines[3:] == [f"leaf {leaf} 0 same" for leaf in leaves(matmul)]
    assert (done.returncode, calls.violations, calls.left) == (0, [], [])
    assert len(calls.ran) == len(leaves(matmul)) >= 5
    assert any("_v1" in name for name in calls.ran)


@pytest.mark.parametrize(("capability", "registers"), [(35, 255), (32, 63)])
def test_the_machine_is_that_of_the_device(matmul, driver, tmp_path, capability, registers):
    variables = {"STANDIN_CAPABILITY": str(capability)}
    done, _ = driver.run([matmul.directory / "interface", "machine"], log=tmp_path / "log", **variables)
    assert done.stdout.splitlines()[1] == f"machine {capability} {registers} {MACHINE} 64 0"


def test_the_drop_in_takes_the_leaf_of_the_machine(matmul, driver):
    points = [
        ("", {"n": 24, "B0": 4, "ub1": 2, "s": 3}),
        ("Z=40", {"n": 18, "B0": 3, "ub1": 3, "s": 2}),
        ("Z=1", {"n": 13, "B0": 5, "ub1": 2, "s": 3}),
        ("Z=40,R=35,RB=1056", {"n": 26, "B0": 4, "ub1": 2, "s": 3}),
    ]
    done, said, calls = matmul.compare(driver, "matmul", points)
    assert said == ["same"] * len(points), done.stderr
    assert calls.ran == matmul.launched(done)
    assert len(set(calls.ran)) >= 3
    assert (calls.violations, calls.left) == ([], [])


def test_the_device_is_that_of_the_threads_context(matmul, driver, tmp_path):
    """All memory lies on device 1: a launch in the context of another one is a violation."""
    variables = {"STANDIN_DEVICES": "2", "STANDIN_CONTEXT": "1"}
    done, calls = driver.run([matmul.directory / "interface"], log=tmp_path / "log", **variables)
    assert [line for line in done.stdout.splitlines() if "leaf" in line] == [f"leaf {n} 0 same" for n in leaves(matmul)]
    assert (done.returncode, calls.violations, calls.left) == (0, [], [])
    point = [("", {"n": 24, "B0": 4, "ub1": 2, "s": 3})]
    done, said, calls = matmul.compare(driver, "matmul", point, **variables)
    assert (said, calls.violations, calls.left) == (["same"], [], [])
    assert len(calls.ran) == 1


def test_arrays_follow_the_threads_device(matmul, driver, tmp_path):
    """One thread changes its device between two calls, and two threads have different ones."""
    variables = {"STANDIN_DEVICES": "2", "METAFORK_TRACE": "2", "STANDIN_ORDER": "random:1"}
    done, calls = driver.run([matmul.directory / "interface", "devices"], log=tmp_path / "log", **variables)
    assert done.stdout == "one thread same\ntwo threads same\n", done.stderr
    # The last context that a thread chose is its own.
    assert (done.returncode, calls.violations, calls.left) == (0, [], ["1 contexts on the stack"])
    assert len(calls.ran) == len(matmul.launched(done)) == 3 * 6
    assert calls.names.count("cuModuleLoadDataEx") == 2


def test_without_a_driver_the_interface_says_so(matmul, driver, tmp_path):
    done, _ = driver.run([matmul.directory / "interface"], log=tmp_path / "log", LD_LIBRARY_PATH=str(tmp_path))
    assert done.stdout.splitlines() == ["query -8 -8", "launch -8"]


@pytest.mark.parametrize("order", ["late", "random:1"])
def test_threads_of_the_host_share_what_is_loaded(matmul, driver, tmp_path, order):
    """More than there are streams for."""
    variables = {"STANDIN_ORDER": order}
    done, calls = driver.run([matmul.directory / "interface", "20", "1"], log=tmp_path / "log", **variables)
    assert done.stdout.splitlines() == [f"thread {i} same" for i in range(20)], done.stderr
    assert (done.returncode, done.stderr, calls.violations, calls.left) == (0, "", [], [])
    assert len(calls.ran) == 20
    assert calls.names.count("cuModuleLoadDataEx") == 1
    assert calls.names.count("cuDevicePrimaryCtxRetain") == 1


def test_a_launch_can_be_captured_into_a_graph(matmul, driver, tmp_path):
    """Although its kernel has to be loaded first."""
    done, calls = driver.run([matmul.directory / "interface", "captured-launches"], log=tmp_path / "log")
    assert (done.returncode, done.stdout, done.stderr) == (0, "error 0, kernels 0\n", "")
    assert (calls.ran, calls.violations, calls.left) == ([], [], [])
    assert "cuModuleLoadDataEx" in calls.names


@pytest.mark.parametrize(("stream", "ran"), [("blocking", 2), ("other", 3)])
def test_a_drop_in_is_not_captured(matmul, driver, tmp_path, stream, ran):
    """It runs while another stream is, without the device where it would have to wait for that one."""
    done, calls = driver.run([matmul.directory / "interface", f"captured-{stream}"], log=tmp_path / "log")
    assert done.stdout == "borrow: a stream is being captured into a graph\nkernels 0\nsame\n"
    assert ("captured into a graph, which" in done.stderr) == (stream == "blocking")
    assert (len(calls.ran), calls.violations, calls.left) == (ran, [], [])


PROFILER = """
#include <stdio.h>
#include <stdlib.h>
static void tell(const char *word, const char *name) {
  FILE *const file = fopen(getenv("RANGES"), "a");
  if (file == NULL) abort();
  fprintf(file, "%s%s\\n", word, name);
  fclose(file);
}
int nvtxRangePushA(const char *name) { tell("", name); return 0; }
int nvtxRangePop(void) { tell("end", ""); return 0; }
__attribute__((constructor)) static void opened(void) { tell("opened", ""); }
"""


@pytest.mark.parametrize("library", ["libnvtx3interop.so.1", "libnvToolsExt.so.1"])
def test_ranges_for_profilers(matmul, driver, tmp_path, library):
    """Around each copy and each launch; the library is opened where they are asked for, and need not be there."""
    (tmp_path / "nvtx.c").write_text(PROFILER)
    (tmp_path / "libnvtx3interop.so.1").write_text("no library")
    (tmp_path / library).unlink(missing_ok=True)
    succeed(["gcc", "-Wall", "-shared", "-fPIC", tmp_path / "nvtx.c", "-o", tmp_path / library])
    variables = {"LD_LIBRARY_PATH": f"{tmp_path}:{driver.directory}", "RANGES": str(tmp_path / "ranges")}
    command = [matmul.directory / "interface", "1", "1"]
    done, _ = driver.run(command, log=tmp_path / "log", **variables)
    assert (done.stdout, (tmp_path / "ranges").exists()) == ("thread 0 same\n", False)
    done, calls = driver.run(command, log=tmp_path / "log", METAFORK_NVTX="1", METAFORK_TRACE="1", **variables)
    leaf, variant = re.search(r"matmul_k0 leaf (\d+) .*(variant=\d+)", done.stderr).groups()
    ranges = [f"copy {name} to device" for name in "abc"]
    ranges += [f"matmul_k0 leaf {leaf} {variant}", "copy c from device"]
    expected = ["opened", *(line for name in ranges for line in (name, "end"))]
    assert (tmp_path / "ranges").read_text().splitlines() == expected
    assert (done.stdout, calls.violations, calls.left) == ("thread 0 same\n", [], [])
    (tmp_path / library).write_text("no library")
    done, _ = driver.run(command, log=tmp_path / "log", METAFORK_NVTX="1", **variables)
    assert (done.stdout, done.stderr) == ("thread 0 same\n", "")
    assert (tmp_path / "ranges").read_text().splitlines() == expected


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="NO PTXAS: PTX is not compiled here")
def test_the_compiler_of_nvidia_takes_the_ptx(matmul, tmp_path):
    """It is the one that the driver has, for the oldest GPU and for a newer one."""
    texts = sorted((matmul.directory / "leaves").glob("*.ptx"))
    assert len(texts) >= len(leaves(matmul))
    for number, text in enumerate(texts):
        done = succeed(["ptxas", f"-arch={('sm_75', 'sm_90')[number % 2]}", "-v", text, "-o", tmp_path / "a.cubin"])
        assert f"'{text.stem}'" in done.stderr
        assert "warning" not in done.stderr


@pytest.mark.skipif(shutil.which("cmake") is None, reason="NO CMAKE")
@pytest.mark.slow
def test_the_cmake_package_needs_no_cuda(matmul, driver, tmp_path):
    done, calls = driver.run([used_by_cmake(matmul, tmp_path)], log=tmp_path / "log")
    assert (done.returncode, calls.names) == (0, [])


def test_the_cpu_build_is_refused(matmul, tmp_path):
    refused_on_the_cpu(matmul, PTX, tmp_path)


def test_the_kernels_are_c_of_1999_and_plus_plus(matmul, tmp_path):
    compiled_as_c_and_as_cplusplus(matmul, PTX, tmp_path)


@needs_nvcc
def test_the_numbers_of_the_driver_are_those_of_its_header(tmp_path):
    pairs = {
        "METAFORK_CU_MAX_THREADS_PER_BLOCK": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
        "METAFORK_CU_FUNC_MAX_THREADS_PER_BLOCK": "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
        "METAFORK_CU_FUNC_SHARED_SIZE_BYTES": "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES",
        "METAFORK_CU_FUNC_NUM_REGS": "CU_FUNC_ATTRIBUTE_NUM_REGS",
        "METAFORK_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
        "METAFORK_CU_JIT_ERROR_LOG_BUFFER": "CU_JIT_ERROR_LOG_BUFFER",
        "METAFORK_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES": "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES",
        "METAFORK_CU_STREAM_NON_BLOCKING": "CU_STREAM_NON_BLOCKING",
        "METAFORK_CU_CAPTURE_NONE": "CU_STREAM_CAPTURE_STATUS_NONE",
        "METAFORK_CU_CAPTURE_RELAXED": "CU_STREAM_CAPTURE_MODE_RELAXED",
        "METAFORK_CU_CAPTURE_IMPLICIT": "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
        "METAFORK_CU_EVENT_DISABLE_TIMING": "CU_EVENT_DISABLE_TIMING",
        "METAFORK_CU_POINTER_MEMORY_TYPE": "CU_POINTER_ATTRIBUTE_MEMORY_TYPE",
        "METAFORK_CU_POINTER_IS_MANAGED": "CU_POINTER_ATTRIBUTE_IS_MANAGED",
        "METAFORK_CU_POINTER_DEVICE_ORDINAL": "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
        "METAFORK_CU_INVALID_VALUE": "CUDA_ERROR_INVALID_VALUE",
        "METAFORK_CU_HOST": "CU_MEMORYTYPE_HOST",
        "METAFORK_CU_DEVICE": "CU_MEMORYTYPE_DEVICE",
    }
    devices = """MAX_BLOCK_DIM_X MAX_BLOCK_DIM_Y MAX_BLOCK_DIM_Z MAX_GRID_DIM_X MAX_GRID_DIM_Y MAX_GRID_DIM_Z WARP_SIZE
        MAX_REGISTERS_PER_BLOCK MAX_THREADS_PER_MULTIPROCESSOR COMPUTE_CAPABILITY_MAJOR COMPUTE_CAPABILITY_MINOR
        MAX_SHARED_MEMORY_PER_MULTIPROCESSOR MAX_REGISTERS_PER_MULTIPROCESSOR MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        MAX_BLOCKS_PER_MULTIPROCESSOR"""
    pairs |= {f"METAFORK_CU_{name}": f"CU_DEVICE_ATTRIBUTE_{name}" for name in devices.split()}
    errors = {
        "OUT_OF_MEMORY": 2, "INVALID_IMAGE": 200, "NO_BINARY_FOR_GPU": 209, "INVALID_PTX": 218, "NO_DEVICE": 100,
        "JIT_COMPILER_NOT_FOUND": 221, "UNSUPPORTED_PTX_VERSION": 222, "JIT_COMPILATION_DISABLED": 223,
        "LAUNCH_OUT_OF_RESOURCES": 701,
    }  # fmt: skip
    sizes = {"CUdevice": "int", "CUdeviceptr": "long long", "CUjit_option": "int", "CUresult": "int"}
    sizes["CUDA_MEMCPY2D"] = "metafork_copy_of_rows"
    members = {"from_kind": "srcMemoryType", "from_stride": "srcPitch", "to_device": "dstDevice", "rows": "Height"}
    same = [f"(int){ours} == (int){theirs}" for ours, theirs in pairs.items()]
    same += [f"CUDA_ERROR_{name} == {number}" for name, number in errors.items()]
    same += [f"sizeof({theirs}) == sizeof({ours})" for theirs, ours in sizes.items()]
    same += [
        f"offsetof(metafork_copy_of_rows, {ours}) == offsetof(CUDA_MEMCPY2D, {theirs})"
        for ours, theirs in members.items()
    ]
    asserts = "".join(f'_Static_assert({condition}, "");\n' for condition in same)
    header = '#define METAFORK_TARGET_HEADER "metafork/target_ptx.h"\n#include "metafork/launch.h"\n#include <cuda.h>\n'
    text = Path("metafork/runtime/include/metafork/target_ptx.h").read_text()
    assert set(re.findall(r"(METAFORK_CU_\w+) =", text)) == set(pairs)
    assert {int(code) for code in re.findall(r"case (\d+): ", text)} - {0} <= set(errors.values())
    source = tmp_path / "numbers.c"
    source.write_text(header + asserts)
    succeed(["nvcc", "-Imetafork/runtime/include", "-c", source, "-o", tmp_path / "a.o"])
