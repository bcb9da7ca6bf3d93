"""Programs that were built are kept for the next run: what is taken from there, what is not, and what is written."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from metafork.comprehensive.verification.driver import point_line
from tests.comprehensive.emit.targets.programs import EXAMPLES, program
from tests.runtime.compiling import succeed

POINTS = [("", {"n": 402, "s": 3, "B": 16})]
HEAD = 8 + 3 * 8
"""Bytes of a file in front of its key."""


@pytest.fixture(scope="module")
def smooth(tmp_path_factory):
    options = {"counters": ["shared_memory"], "strategies": ["granularity", "caching"]}
    text = (EXAMPLES / "smooth.mf").read_text()
    return program(text, "smooth.mf", tmp_path_factory.mktemp("kept"), OPENCL, **options)


@pytest.fixture
def run(smooth, opencl, tmp_path):
    """Run the program with a cache of its own; return how programs came about, and the calls."""

    def run(**variables):
        variables = {"METAFORK_CACHE": "", "XDG_CACHE_HOME": str(tmp_path / "cache"), **variables}
        done, said, calls = smooth.compare(opencl, "smooth", POINTS, **variables)
        assert said == ["same"], done.stderr
        assert (calls.violations, calls.left) == ([], [])
        if "STANDIN_FAIL" not in variables:
            assert calls.ran == smooth.launched(done) == ["smooth_k0_leaf1"]
            assert "metafork: smooth" not in done.stderr.replace("metafork: smooth_k0 leaf 1", "")
        counts = [calls.names.count(f"clCreateProgramWith{what}") for what in ("Source", "Binary")]
        return counts, calls

    return run


def files(tmp_path):
    return sorted((tmp_path / "cache" / "metafork").glob("*"))


def test_the_next_run_takes_what_was_built(run, tmp_path):
    assert run()[0] == [1, 0]
    (kept,) = files(tmp_path)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    before = kept.read_bytes()
    assert run()[0] == [0, 1]
    assert files(tmp_path) == [kept]
    assert kept.read_bytes() == before
    # All that the program was built of is in it.
    for part in (b"OpenCL 1\n", b"pthread", b"-cl-std=CL1.2", b"metafork_fmaxf", b"smooth_k0_leaf1"):
        assert part in before


def test_another_driver_builds_anew(run, tmp_path):
    assert run(STANDIN_DRIVER="1.0")[0] == [1, 0]
    assert run(STANDIN_DRIVER="1.1")[0] == [1, 0]
    assert len(files(tmp_path)) == 2
    assert run(STANDIN_DRIVER="1.0")[0] == run(STANDIN_DRIVER="1.1")[0] == [0, 1]


def test_it_can_be_turned_off(run, tmp_path):
    assert run(METAFORK_CACHE="0")[0] == [1, 0]
    assert not (tmp_path / "cache").exists()
    run()
    assert run(METAFORK_CACHE="0")[0] == [1, 0]


def test_where_it_lies(run, tmp_path):
    home = {"HOME": str(tmp_path / "home")}
    for where in ({"XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "a/relative/path"}):
        run(**where, **home)
    assert len(list((tmp_path / "home" / ".cache" / "metafork").iterdir())) == 1
    assert run(XDG_CACHE_HOME="", HOME="")[0] == [1, 0]
    assert run(XDG_CACHE_HOME="/" + "x" * 5000)[0] == [1, 0]
    # Nothing can be written below a file, and nobody needs to know.
    (tmp_path / "file").write_text("")
    assert run(XDG_CACHE_HOME=str(tmp_path / "file"))[0] == [1, 0]


def damaged(kept):
    """Yield contents that are not what was written."""
    whole = kept.read_bytes()
    (length,) = (int.from_bytes(whole[8:16], "little"),)
    yield b""
    yield whole[: HEAD - 1]
    yield whole[:-1]
    yield whole + b"x"
    for at in (0, 8, 16, 24, HEAD, HEAD + length - 1, HEAD + length, len(whole) - 1):
        yield whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    yield whole[:16] + b"\xff" * 8 + whole[24:]


def test_what_is_damaged_is_built_anew_and_replaced(run, tmp_path):
    run()
    (kept,) = files(tmp_path)
    whole = kept.read_bytes()
    contents = list(damaged(kept))
    for number, content in enumerate(contents):
        kept.write_bytes(content)
        assert run()[0] == [1, 0], number
        assert kept.read_bytes()[HEAD:] == whole[HEAD:] or run()[0] == [0, 1]
    assert run()[0] == [0, 1]
    assert files(tmp_path) == [kept]
    kept.unlink()
    os.mkfifo(kept)
    assert run()[0] == [1, 0]


def test_a_device_that_does_not_take_it_gets_the_text(run, tmp_path):
    run()
    _, calls = run()
    for name in ("clCreateProgramWithBinary", "clBuildProgram", "clCreateKernel", "clGetKernelWorkGroupInfo"):
        counts, _ = run(STANDIN_FAIL=str(calls.names.index(name) + 1))
        assert counts == [1, 1]
    assert len(files(tmp_path)) == 1


def test_each_call_of_keeping_failing(run, tmp_path):
    """What cannot be kept is not, and the kernel runs."""
    _, calls = run()
    (kept,) = files(tmp_path)
    numbers = [number for number, name in enumerate(calls.names, 1) if name == "clGetProgramInfo"]
    built = calls.names.index("clCreateProgramWithSource")
    told = [number for number in range(built - 7, built + 1) if calls.names[number - 1] == "clGetDeviceInfo"]
    assert len(numbers) == 4
    assert len(told) == 8
    for number in (*numbers, *told):
        kept.unlink(missing_ok=True)
        assert run(STANDIN_FAIL=str(number))[0] == [1, 0]
        assert files(tmp_path) == []


def test_processes_at_once(run, smooth, opencl, tmp_path):
    run()
    (kept,) = files(tmp_path)
    kept.unlink()
    line = point_line("", smooth.scalars("smooth", POINTS[0][1]))
    variables = {"METAFORK_CACHE": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def one(number):
        return opencl.run([smooth.drivers["smooth"]], line, log=tmp_path / f"log{number}", **variables)

    with ThreadPoolExecutor(4) as pool:
        for done, calls in pool.map(one, range(8)):
            assert "same" in done.stdout
            assert (calls.ran, calls.left, calls.violations) == (["smooth_k0_leaf1"], [], [])
    assert files(tmp_path) == [kept]
    assert run()[0] == [0, 1]


FULL = """
#include "metafork/program_cache.h"
#include <signal.h>
#include <sys/resource.h>
int main(void) {
    metafork_blob key = {(unsigned char *)"key", 3}, content = {(unsigned char *)calloc(1, 100000), 100000};
    const struct rlimit little = {4096, 4096}, much = {RLIM_INFINITY, RLIM_INFINITY};
    (void)much;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    metafork_cache_write(key, content);
    metafork_blob found = metafork_cache_read(key);
    if (found.data != NULL) return 1;
    content.length = 1000;
    metafork_cache_write(key, content);
    found = metafork_cache_read(key);
    metafork_blob other = metafork_cache_read((metafork_blob){(unsigned char *)"kez", 3});
    return found.length != 1000 || memcmp(found.data, content.data, 1000) != 0 || other.data != NULL;
}
"""


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    (tmp_path / "full.c").write_text(FULL)
    flags = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-Imetafork/runtime/include")
    succeed(["gcc", *flags, tmp_path / "full.c", "-o", tmp_path / "full"])
    kept = {name: value for name, value in os.environ.items() if name != "METAFORK_CACHE"}
    variables = {**kept, "XDG_CACHE_HOME": str(tmp_path / "cache"), "ASAN_OPTIONS": "detect_leaks=0"}
    subprocess.run([tmp_path / "full"], env=variables, check=True)
    assert len(files(tmp_path)) == 1
