"""The HIP back end: its text through a stand-in of the runtime's header, on the processor, bit for bit."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.emit.targets.hip import TARGET as HIP
from metafork.comprehensive.leaf_files import LeafTexts
from metafork.comprehensive.optimize import NO_PTX, optimize
from metafork.comprehensive.verification.driver import (
    ELISION_FLAGS,
    SERIAL_PREFIX,
    SUPPORT_DIRECTORY,
    driver_text,
    point_line,
    reference_text,
)
from metafork.ir.messages.source import Source
from tests.comprehensive.emit.targets import places
from tests.comprehensive.emit.targets.programs import CASES, EXAMPLES
from tests.comprehensive.emit.targets.small_programs import COLUMNS
from tests.runtime.compiling import succeed
from tests.sampling import sampled

SWIZZLE = {
    "counters": ("threads_per_block", "shared_memory", "bank_degree"),
    "strategies": ("granularity", "caching", "swizzle"),
}


def built(name, directory, function=None, text=None, **options):
    """Write a file's outputs, and build a driver of one of its functions with the stand-in."""
    source = Source(f"{name}.mf", text or (EXAMPLES / f"{name}.mf").read_text())
    result = optimize(source, **{"hardware": HIP.hardware, **options})
    texts = LeafTexts(result.analyses, None, HIP)
    result = texts.in_time(result, None)
    write_outputs(result, directory, code_of=texts.code_of, target=HIP)
    unit = result.unit
    driven = next(one for one in unit.functions if one.name == (function or name))
    kernels = [one.kernel for tree in result.schedules for leaf in tree.leaves for one in leaf.variants]
    table = "".join(
        f"static const hip_standin::kernel k{number}({kernel});\n"
        for number, kernel in enumerate(text for one in kernels for text in (one, f"{one}_large"))
    )
    devices = 'extern "C" int reset_device() { return hipDeviceReset(); }\n'
    devices += 'extern "C" int choose_device(int device) { return hipSetDevice(device); }\n'
    devices += (
        'extern "C" void *memory(long bytes, int managed) { void *m = nullptr; '
        "(void)(managed ? hipMallocManaged(&m, bytes) : hipMalloc(&m, bytes)); return m; }\n"
        'extern "C" void give_back(void *m) { (void)hipFree(m); }\n'
        'extern "C" void move(void *to, const void *from, long bytes, int there) '
        "{ (void)hipMemcpy(to, from, bytes, there ? hipMemcpyHostToDevice : hipMemcpyDeviceToHost); }\n"
    )
    devices += 'extern "C" void *capture(int blocks) { return hip_standin::begin_capture(blocks != 0); }\n'
    devices += 'extern "C" int captured() { return hip_standin::end_capture(); }\n'
    (directory / "device.cpp").write_text(f'#include "{name}_hip.cpp"\n{table}{devices}')
    (directory / "reference.c").write_text(reference_text(unit))
    (directory / "driver.c").write_text(driver_text(unit, driven))
    include = (f"-I{directory}", f"-I{directory}/include", f"-I{SUPPORT_DIRECTORY}")
    # What the stand-in itself is made of is no header of the package.
    standin = (f"-I{Path(__file__).parent}", f"-I{Path(__file__).parents[3] / 'runtime'}", "-Imetafork/runtime/include")
    flags = ("-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-Wno-unknown-pragmas")
    succeed(["g++", *flags, *include, *standin, "-c", directory / "device.cpp", "-o", directory / "device.o"])
    common = ("-std=gnu11", "-O0", "-w", "-ffp-contract=off", "-DMETAFORK_NO_CONTRACT", *include)
    for source, more in ((f"{name}_host", ()), ("reference", ELISION_FLAGS), ("driver", ())):
        succeed(["gcc", *common, *more, "-c", directory / f"{source}.c", "-o", directory / f"{source}.o"])
    succeed(["objcopy", "-w", f"--keep-global-symbol={SERIAL_PREFIX}*", directory / "reference.o"])
    objects = [directory / f"{one}.o" for one in ("device", f"{name}_host", "reference", "driver")]
    succeed(["g++", *objects, "-o", directory / "run"])
    return result


def compared(directory, points, **variables):
    """Run the driver; return its status, what it said of each point, and what was traced."""
    lines = "".join(point_line(machine, scalars) for machine, scalars in points)
    done = subprocess.run(
        [directory / "run"], input=lines, capture_output=True, text=True, check=False,
        env={"METAFORK_TRACE": "1", **variables},
    )  # fmt: skip
    said = [line for line in done.stdout.splitlines() if not line.startswith(("point", "reference"))]
    return done.returncode, said, done.stderr


def with_main(directory, name, source, program):
    """Link the objects of a directory with a main program in C, in place of the driver; return the program."""
    include = (f"-I{directory}", f"-I{directory}/include", f"-I{Path(__file__).parent}")
    (directory / f"{program}.c").write_text(source)
    flags = ("-std=gnu11", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function")
    succeed(["gcc", *flags, *include, "-c", directory / f"{program}.c", "-o", directory / f"{program}.o"])
    objects = [directory / f"{one}.o" for one in (program, "device", f"{name}_host")]
    succeed(["g++", *objects, "-lpthread", "-o", directory / program])
    return directory / program


def run_main(program, *arguments, **variables):
    """Run a program without metafork's variables but those given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("METAFORK_")}
    command = [str(part) for part in (program, *arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**kept, **variables})


@dataclass(frozen=True)
class Matmul:
    """What was optimized, and where it is built: a driver, and ``interface``."""

    result: object
    directory: Path


INTERFACE = """
#include "interface.h"
int choose_device(int device);
void *capture(int blocks);
int captured(void);
int main(int argc, char **argv) {
  metafork_machine machine;
  if (argc > 1 && strncmp(argv[1], "captured", 8) == 0) begin_capture = capture, end_capture = captured;
  set_device = choose_device;
  return !began(argc, argv, &machine);
}
"""


@pytest.fixture(scope="module")
def matmul(tmp_path_factory):
    directory = tmp_path_factory.mktemp("matmul")
    result = built("matmul", directory, machine="all", strategies=["+register_pressure"])
    with_main(directory, "matmul", INTERFACE, "interface")
    return Matmul(result, directory)


@pytest.mark.slow
def test_drop_ins_give_what_the_serial_elision_gives(matmul):
    result, directory = matmul.result, matmul.directory
    points = [("", [24, 4, 2, 3]), ("Z=40", [18, 3, 3, 2]), ("Z=1", [13, 5, 2, 3]), ("grid_dim_x=1", [24, 4, 2, 3])]
    status, said, traced = compared(directory, points)
    assert (status, said) == (0, ["same"] * 4), traced
    assert len(re.findall(r"matmul_k0 leaf \d", traced)) == 4
    assert " large" in traced
    assert "serial" not in traced
    assert "left" not in traced
    # A kernel that may have no dynamic shared memory at first gets all that a block may have.
    assert compared(directory, points, STANDIN_SHARED="0")[:2] == (0, ["same"] * 4)
    # Leaves with fewer registers would be PTX.
    assert NO_PTX in result.to_report()
    assert not any(leaf.version.ir_strategies for leaf in result.schedules[0].leaves)


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("order", ["late", "random:1", "random:2", "early"])
def test_threads_of_the_host(matmul, order, devices):
    """More than there are streams for."""
    variables = {"STANDIN_ORDER": order, "STANDIN_SHARED": "0", "STANDIN_DEVICES": str(devices)}
    done = run_main(matmul.directory / "interface", "20", "4", devices, **variables)
    assert done.stdout.splitlines() == [f"thread {i} same" for i in range(20)]
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("way", [{"STANDIN_ORDER": "late"}, {"STANDIN_ORDER": "random:1"}, {"METAFORK_ASYNC": "0"}])
def test_arrays_follow_the_threads_device(matmul, way):
    """One thread changes its device between calls, two threads have different ones; no more moves than must."""
    variables = {"STANDIN_DEVICES": "2", "STANDIN_SHARED": "0", "METAFORK_TRACE": "2"}
    done = run_main(matmul.directory / "interface", "devices", **variables, **way)
    assert done.stdout == "one thread same\ntwo threads same\n", done.stderr
    lines = [line.removeprefix("metafork: ") for line in done.stderr.splitlines() if "is violated" not in line]
    moved = [f"{line.split()[3]} {line.split()[4]}" if "bytes of" in line else "leaf" for line in lines]
    alone = [*["a to", "b to", "c to", "leaf", "c from"] * 2]  # nothing is kept
    alone += ["a to", "b to", "c to", "leaf"]  # b goes at the end of a call; a and x stay
    alone += ["a to", "b to", "c to", "leaf", "b to", "leaf"]
    alone += ["c from", "b to", "c to", "leaf"]  # x was written on the other device
    alone += ["c from", "c from"]
    assert moved[: len(alone)] == alone
    assert sorted(moved[len(alone) :]) == sorted(alone * 2)


def test_a_launch_can_be_captured_into_a_graph(matmul):
    """Although it is the first of the program: kernels go to the stream, and nothing else."""
    done = run_main(matmul.directory / "interface", "captured-launches", STANDIN_SHARED="0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "error 0, kernels 0\n", "")


CAPTURED = "a stream is being captured into a graph"
SERIAL = f"metafork: matmul_k0: {CAPTURED}, which this function cannot be part of; the serial code runs\n"


@pytest.mark.parametrize(("stream", "said"), [("blocking", SERIAL), ("other", "")])
def test_a_drop_in_is_not_captured(matmul, stream, said):
    """It runs while another stream is, without the device where it would have to wait for that one."""
    done = run_main(matmul.directory / "interface", f"captured-{stream}", STANDIN_SHARED="0")
    assert (done.returncode, done.stderr) == (0, said)
    assert done.stdout == f"borrow: {CAPTURED}\nkernels 0\nsame\n"


def test_shared_memory_that_a_kernel_has_by_itself_counts(matmul):
    """A kernel fits to the last byte, and with one more another one runs."""
    point = [("", [24, 4, 2, 3])]
    kernel = re.compile(r"leaf (\d+) .* shared_bytes=(\d+).* variant=(\d+)")
    _, _, traced = compared(matmul.directory, point)
    (leaf, dynamic, variant) = kernel.search(traced).groups()
    for more, same in ((0, True), (1, False)):
        status, said, traced = compared(matmul.directory, point, STANDIN_STATIC=str(65536 - int(dynamic) + more))
        assert (status, said, "serial" in traced) == (0, ["same"], False)
        assert (kernel.search(traced).group(1, 3) == (leaf, variant)) is same


@pytest.mark.parametrize(("file", "function", "points"), sampled(CASES, {"center"}))
def test_examples_give_what_the_serial_elision_gives(tmp_path, file, function, points):
    result = built(file, tmp_path, function, counters=("threads_per_block", "shared_memory"), order="paper")
    (found,) = (one for one in result.unit.functions if one.name == function)
    names = [one.name for one in found.parameters if one.type is not None]
    lines = [(machine, [values.get(name, 0.75) for name in names]) for machine, values in points]
    status, said, traced = compared(tmp_path, lines)
    assert (status, said) == (0, ["same"] * len(points)), traced
    assert len(re.findall(r"leaf \d", traced)) >= len(points)
    assert "serial" not in traced
    assert "left" not in traced


@pytest.mark.slow
def test_neighbours_are_accessed_together(tmp_path):
    (file, function, points) = CASES["jacobi2d"]
    text = (EXAMPLES / "jacobi2d.mf").read_text().replace("cache(a)", "cache()")
    built(file, tmp_path, function, text, counters=("threads_per_block",), strategies=("register_tile",))
    assert "metafork_load(&" in (tmp_path / "jacobi2d_hip.cpp").read_text()
    for columns, block in ((256, 256), (131, 512)):
        point = {**points[0][1], "columns": columns, "B1": block}
        values = [point.get(name, 0.75) for name in ("rows", "columns", "B0", "B1", "c0", "c1", "c2")]
        status, said, traced = compared(tmp_path, [("", values)])
        assert (status, said) == (0, ["same"]), traced
        assert " leaf 1 " in traced


@pytest.mark.slow
def test_lanes_of_32_exchange_values(tmp_path):
    result = built("aos", tmp_path, "moments", **SWIZZLE)
    status, said, traced = compared(tmp_path, [("", [256, 64])])
    assert (status, said) == (0, ["same"]), traced
    leaf = int(re.search(r"aos_k1 leaf (\d)", traced)[1])
    assert "in the registers of a warp" in result.schedules[1].leaves[leaf - 1].title
    assert "__shfl" not in (tmp_path / "aos_hip.cpp").read_text()  # the header says what a shuffle is


@pytest.mark.slow
def test_columns_are_copied_as_such(tmp_path):
    built("columns", tmp_path, text=COLUMNS, counters=("threads_per_block",), strategies=())
    status, said, traced = compared(tmp_path, [("", [9, 4])], METAFORK_TRACE="2")
    assert (status, said) == (0, ["same"]), traced
    assert traced.count("36 bytes of A to the device in 9 rows") == 2


@pytest.fixture(scope="module")
def matadd(tmp_path_factory):
    directory = tmp_path_factory.mktemp("matadd")
    built("matadd", directory, counters=("threads_per_block",))
    return directory


@pytest.mark.slow
def test_each_call_failing(matadd):
    points = [("", [21, 7, 3])]
    status, said, traced = compared(matadd, points, STANDIN_COUNT="1")
    assert (status, said) == (0, ["same"])
    calls = int(re.search(r"^(\d+) calls$", traced, re.MULTILINE)[1])
    outcomes = set()
    for number in range(1, calls + 1):
        status, said, traced = compared(matadd, points, STANDIN_FAIL=str(number))
        if status == 0:
            assert said == ["same"], traced
            serial = "the serial code runs" in traced
            outcomes.add("serial" if serial else "ran")
            # What cannot be freed stays.
            assert not serial or "left" not in traced
        else:
            assert "results cannot be fetched from the device: invalid argument" in traced
            outcomes.add("ended")
    assert outcomes == {"ran", "serial", "ended"}


def calls(directory, launches):
    status, said, traced = compared(directory, [("", [21, 7, 3])] * launches, STANDIN_COUNT="1")
    assert (status, said) == (0, ["same"] * launches)
    return int(re.search(r"^(\d+) calls$", traced, re.MULTILINE)[1])


def test_what_a_device_has_is_asked_once(matadd):
    """A launch looks at it several times, and there are sixteen numbers."""
    first = calls(matadd, 1)
    second, third = calls(matadd, 2) - first, calls(matadd, 3) - calls(matadd, 2)
    assert second == third
    assert 16 <= first - second < 32
    assert second < 55  # copies, streams, events and places of three arrays, and the launch itself


def test_a_device_that_is_reset(matadd):
    """Streams and pinned memory of before are gone with it: others are made, and nothing is given back twice."""
    main = """
#include "matadd.h"
int reset_device(void);
static int a[400], b[400], c[400];
int main(void) {
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < 400; k++) a[k] = k, b[k] = round;
    matadd(20, 5, 2, (void *)a, (void *)b, (void *)c);
    for (int k = 0; k < 400; k++)
      if (c[k] != k + round) return 1;
    if (round != 1) reset_device();
  }
  return 0;
}
"""
    done = run_main(with_main(matadd, "matadd", main, "reset"), METAFORK_TRACE="1")
    assert (done.returncode, done.stderr.count("matadd_k0 leaf"), done.stderr.count("metafork")) == (0, 3, 3), (
        done.stderr
    )


@pytest.fixture(scope="module")
def lent(tmp_path_factory):
    directory = tmp_path_factory.mktemp("places")
    built("places", directory, "gather", places.TEXT, counters=("threads_per_block",))
    return with_main(directory, "places", places.MAIN, "lent")


@pytest.mark.parametrize("way", [{"STANDIN_ORDER": "late"}, {"METAFORK_ASYNC": "0"}], ids=["late", "at once"])
@pytest.mark.parametrize("case", places.CASES)
def test_memory_of_the_device_and_managed_memory(lent, case, way):
    """Its size is known, and that of the device is used where it is."""
    status, said, kernels = places.CASES[case]
    done = run_main(lent, case, STANDIN_DEVICES="2", METAFORK_TRACE="2", **way)
    assert (done.returncode, places.shown(done.stderr)[:2]) == (status, (kernels, [said] if said else [])), done.stderr
    assert places.shown(done.stderr)[2] == (
        ["296 bytes of x to the device", "148 bytes of x to the device"] if case == "managed" else []
    )


MACHINE = """
#include "matadd.h"
#include <stdio.h>
int main(void) {
  metafork_machine m;
  if (metafork_machine_query(0, &m) != 0) return 1;
  printf("%d", (int)m.compute_capability);
  for (const int64_t *one = &m.registers_per_thread; one <= &m.shared_words_reserved; one++) printf(" %d", (int)*one);
  return 0;
}
"""


def test_the_machine_is_that_of_the_device(matadd):
    """Waves have 64 lanes, launches less than 2^32 threads in a direction, and there are no compute capabilities."""
    done = run_main(with_main(matadd, "matadd", MACHINE, "machine"))
    block, grid, processor = "1024 1024 1024", "4194303 65536 65536", "64 32 32 65536 16384 128 0"
    assert (done.returncode, done.stdout) == (0, f"0 256 65536 1024 16384 {block} {grid} {processor}")
