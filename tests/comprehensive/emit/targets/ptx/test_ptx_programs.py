"""Awkward arguments, names and strategies through the PTX back end: what leaf ran, and that it was right."""

import re

import pytest

from metafork.comprehensive.emit.targets.ptx import TARGET as PTX
from tests.comprehensive.emit.targets import places
from tests.comprehensive.emit.targets.building import two_files
from tests.comprehensive.emit.targets.programs import EXAMPLES, LIBRARIES, program
from tests.comprehensive.emit.targets.small_programs import COLUMNS, NAMES, NUMBERS, STRIDING, SWIZZLE, TYPES
from tests.runtime.compiling import succeed

SHUFFLE = {
    "counters": ("threads_per_block", "shared_memory", "global_loads"),
    "strategies": ("granularity", "caching", "shuffle"),
}


@pytest.mark.parametrize(
    ("file", "function", "options", "points", "titles"),
    [
        (
            TYPES,
            "kinds",
            {},
            [
                ("", {**NUMBERS, "n": 37, "B": 16, "flag": 1, "sh": 20, "us": 65535, "ll": -12345678901}),
                ("", {**NUMBERS, "n": 33, "B": 5, "flag": 0, "sh": -7, "us": 5, "ll": -1}),
            ],
            ["as written"] * 2,
        ),
        (
            NAMES,
            "class",
            {"counters": ("shared_memory",), "strategies": ("caching",)},
            [("", {"n": 40, "stream": 3, "leaf": 8}), ("Z=2", {"n": 41, "stream": -1, "leaf": 8})],
            ["m in shared memory", *["middle in shared memory"] * 2, *["no shared memory"] * 3],
        ),
        (
            "jacobi2d",
            "jacobi2d",
            SHUFFLE,
            [("Z=10,global_loads=3", {"rows": 14, "columns": 130, "B0": 1, "B1": 64})],
            ["no shared memory, shuffles instead of loads"],
        ),
        (
            "aos",
            "moments",
            SWIZZLE,
            [("", {"N": 128, "B": 64})],
            ["particle in the registers of a warp, fewer bank conflicts"],
        ),
        (
            "blur",
            "blur",
            STRIDING,
            [("", {"height": 40, "width": 37, "B0": 32, "B1": 33, "s": 1})],
            ["few threads stride over a block"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
@pytest.mark.sampled(2)
def test_the_leaf_runs_and_is_right(driver, tmp_path, file, function, options, points, titles):
    text = file if "\n" in file else (EXAMPLES / f"{file}.mf").read_text()
    one = program(text, "file.mf", tmp_path, **options)
    done, said, calls = one.compare(driver, function, points)
    assert said == ["same"] * len(points), done.stderr
    assert (calls.violations, calls.left, calls.ended) == ([], [], True)
    assert calls.ran == one.launched(done)
    leaves = {leaf.kernel: leaf.title for tree in one.result.schedules for leaf in tree.leaves}
    assert [leaves[name].replace("common subexpressions reused", "as written") for name in calls.ran] == titles


def test_columns_are_copied_as_such(driver, tmp_path):
    one = program(COLUMNS, "columns.mf", tmp_path, counters=("threads_per_block",), strategies=())
    done, said, calls = one.compare(driver, "columns", [("", {"n": 9, "B": 4})], METAFORK_TRACE="2")
    assert (said, calls.violations, calls.left) == (["same"], [], []), done.stderr
    assert done.stderr.count("36 bytes of A to the device in 9 rows") == 2
    assert done.stderr.count("36 bytes of A from the device in 9 rows") == 3
    # What the host wrote last is left out at the end.
    assert calls.names.count("cuMemcpy2DAsync_v2") == 7


def test_arrays_stay_on_the_device_between_calls(driver, tmp_path):
    """An array that is kept moves once, and what is kept at the end of the program is dropped there."""
    options = {"counters": ("shared_memory",), "strategies": ()}
    program((EXAMPLES / "smooth.mf").read_text(), "smooth.mf", tmp_path, **options)
    main = tmp_path / "main.c"
    main.write_text("""
#include "smooth.h"
#include "metafork/host.h"
static float x[402], y[402];
int main(void) {
  for (int i = 0; i < 402; i++) x[i] = (float)i;
  metafork_keep(x);
  for (int i = 0; i < 3; i++) smooth(402, 2, 16, x, y);
  metafork_drop(x);
  return y[5] != 5;
}
""")
    include = [f"-I{tmp_path}", f"-I{tmp_path}/include"]
    objects = [tmp_path / "kernels.o", tmp_path / "host.o"]
    succeed(["gcc", "-std=gnu11", *include, main, *objects, *LIBRARIES, "-o", tmp_path / "main"])
    done, calls = driver.run([tmp_path / "main"], log=tmp_path / "log", METAFORK_TRACE="2")
    assert (done.returncode, calls.violations, calls.left) == (0, [], [])
    # y is written in part, so that it goes there too, each time.
    assert done.stderr.count("1608 bytes of x to the device") == 1
    assert calls.names.count("cuMemAlloc_v2") == calls.names.count("cuMemFree_v2") == 4
    assert len(calls.ran) == 3


@pytest.fixture(scope="module")
def lent(tmp_path_factory):
    directory = tmp_path_factory.mktemp("places")
    program(places.TEXT, "places.mf", directory, counters=("threads_per_block",))
    (directory / "main.c").write_text(places.MAIN + places.PTX)
    include = [f"-I{directory}", f"-I{directory}/include"]
    objects = [directory / "kernels.o", directory / "host.o"]
    succeed(["gcc", "-std=gnu11", "-w", *include, directory / "main.c", *objects, *LIBRARIES, "-o", directory / "lent"])
    return directory / "lent"


@pytest.mark.parametrize("case", places.CASES)
def test_memory_of_the_device_and_managed_memory(lent, driver, tmp_path, case):
    """Its size is known, and that of the device is used where it is."""
    status, said, kernels = places.CASES[case]
    done, calls = driver.run([lent, case], log=tmp_path / "log", METAFORK_TRACE="2", STANDIN_DEVICES="2")
    assert (done.returncode, places.shown(done.stderr)[:2]) == (status, (kernels, [said] if said else [])), done.stderr
    assert calls.violations == []
    moved = places.shown(done.stderr)[2]
    assert moved == (["296 bytes of x to the device", "148 bytes of x to the device"] if case == "managed" else [])


def test_files_of_one_program_share_the_driver(driver, tmp_path):
    """Contexts are retained once for all; a library that is closed gives back all that it has loaded."""
    two = two_files(tmp_path, PTX)
    done, calls = driver.run([two.main], log=tmp_path / "log", METAFORK_TRACE="1")
    assert (done.returncode, calls.violations, calls.left) == (0, [], []), done.stderr
    assert calls.ran == ["smooth_k0_leaf1", "center_k0_leaf1"]
    assert calls.names.count("cuInit") == calls.names.count("cuDevicePrimaryCtxRetain") == 1
    done, calls = driver.run([two.loader, two.library], log=tmp_path / "log")
    assert (done.returncode, calls.violations, calls.left) == (0, [], []), done.stdout
    assert len(calls.ran) == 2
    # The library is another one the second time, and the first had given everything back when it was closed.
    assert calls.names.count("cuModuleLoadDataEx") == calls.names.count("cuModuleUnload") == 2
    assert calls.names.index("cuModuleUnload") < len(calls.names) // 2


def test_instances_are_compiled_when_first_launched(driver, tmp_path):
    """Their values are constants of the IR; those that no launch asks for are never loaded."""
    text = (EXAMPLES / "smooth.mf").read_text()
    options = {"counters": ("shared_memory",), "strategies": ("granularity", "caching"), "static": {"s": (2, 4, 8)}}
    one = program(text, "smooth.mf", tmp_path, **options)
    points = [("", {"n": 402, "s": s, "B": 16}) for s in (3, 4, 4, 2)]
    done, said, calls = one.compare(driver, "smooth", points)
    assert said == ["same"] * 4, done.stderr
    assert calls.ran == ["smooth_k0_leaf1", *(f"smooth_k0_leaf1_v{number}" for number in (2, 2, 1))]
    # Launches of the same values load nothing anew, and nobody asked for s = 8.
    assert calls.names.count("cuModuleLoadDataEx") == 3
    launches = [at for at, name in enumerate(calls.names) if name == "cuLaunchKernel"]
    loads = [at for at, name in enumerate(calls.names) if name == "cuModuleLoadDataEx"]
    assert loads[0] < launches[0] < loads[1] < launches[1] < launches[2] < loads[2] < launches[3]
    (leaf, *_) = one.result.schedules[0].leaves
    *others, kernel = (
        re.search(rf"\.entry {name}\((.*?)\)", (tmp_path / "smooth_ptx.c").read_text(), re.DOTALL)[1].count(".param")
        for name in (one.kernel for one in leaf.variants)
    )
    assert {kernel - count for count in others} == {1}
