"""``--jit``: kernels that are compiled at the first launch, with stand-ins for the driver and for NVRTC."""

import os
import subprocess
from pathlib import Path

import pytest

from metafork.comprehensive.emit import rendered_files
from metafork.comprehensive.emit.targets.cuda import TARGET as CUDA
from metafork.comprehensive.emit.targets.hip import TARGET as HIP
from metafork.comprehensive.emit.targets.ptx import TARGET as PTX
from metafork.comprehensive.emit.targets.target import TargetOptionError, with_jit
from metafork.comprehensive.verification.driver import point_line
from tests.comprehensive.emit.targets.nvrtc import nvrtc
from tests.comprehensive.emit.targets.programs import EXAMPLES, LIBRARIES, program
from tests.runtime.compiling import needs_nvcc, succeed

BACKEND = with_jit(PTX, allow_fma=False)
SMALL = [("", {"n": 203, "s": 3, "B": 32})]
POINTS = [
    *SMALL,
    ("", {"n": 117, "s": 3, "B": 32}),
    ("", {"n": 203, "s": 2, "B": 32}),
    ("", {"n": 99, "s": 1, "B": 16}),
]
LINE = "metafork: {}; dynamic kernels run\n"


def texts(result):
    """Return the kernels that NVRTC may be asked for, by name."""
    variants = (one for leaf in result.schedules[0].leaves for one in leaf.variants)
    codes = (BACKEND.leaf_code(one, None).compiled for one in variants)
    return {code.kernel.name: code.kernel for code in codes if code is not None}


@pytest.fixture(scope="module")
def smooth(tmp_path_factory):
    """The three-point mean, with an instance for s = 1, B = 16: the first of two variants."""
    text = (EXAMPLES / "smooth.mf").read_text()
    options = {
        "counters": ("shared_memory",),
        "strategies": ("granularity", "caching"),
        "static": {"s": (1,), "B": (16,)},
    }
    return program(text, "smooth.mf", tmp_path_factory.mktemp("smooth"), BACKEND, **options)


@pytest.fixture(scope="module")
def libraries(smooth, tmp_path_factory):
    """The stand-in for NVRTC."""
    with nvrtc(tmp_path_factory.mktemp("nvrtc")) as found:
        found.kernels |= texts(smooth.result)
        yield found


@pytest.fixture
def compiler(libraries):
    """The stand-in for NVRTC, which was asked nothing yet."""
    libraries.asked.clear()
    libraries.fault, libraries.image, libraries.compiler = "", None, None
    return libraries


def ran(smooth, driver, points, **variables):
    """Run the mean; return the kernels that ran and what was said beside the launches."""
    done, said, calls = smooth.compare(driver, "smooth", points, **variables)
    assert (done.returncode, said) == (0, ["same"] * len(points)), done.stderr
    assert (calls.left, calls.violations, calls.ended) == ([], [], True)
    lines = done.stderr.splitlines(keepends=True)
    launches = [line.rstrip() for line in lines if " leaf " in line]
    others = [line for line in lines if " leaf " not in line and not line.startswith("point ")]
    return [line.split(" variant=")[1] for line in launches], "".join(others)


def entries(folder):
    return sorted(Path(folder, "metafork").glob("*"))


@pytest.mark.slow
def test_the_first_launch_compiles_and_the_next_process_reads(smooth, driver, compiler, tmp_path):
    variables = {"XDG_CACHE_HOME": str(tmp_path), **compiler.variables}
    assert ran(smooth, driver, POINTS, **variables) == (["2 jit", "2 jit", "2 jit", "1"], "")
    # The same values again are no new kernel; an instance that is listed needs none.
    flags = "--gpu-architecture=sm_80 -fmad=false -std=c++17"
    assert [values for _, values, _ in compiler.asked] == [{"s": 3, "B": 32}, {"s": 2, "B": 32}]
    assert {options for _, _, options in compiler.asked} == {flags}
    assert len(entries(tmp_path)) == 2
    assert ran(smooth, driver, POINTS, **variables) == (["2 jit", "2 jit", "2 jit", "1"], "")
    assert len(compiler.asked) == 2
    # Another version of the compiler has its own.
    ran(smooth, driver, SMALL, **variables, STANDIN_MINOR="1")
    assert len(compiler.asked) == 3
    assert len(entries(tmp_path)) == 3


SUMS = """
void sums(int n, int s, int B, const float x[n], float y[n]) {
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int u = 0; u < B; u++) {
        float sum = 0;
        for (int k = 0; k < s; k++)
          sum += x[i * B + u];
        y[i * B + u] = sum;
      }
  }
}
"""


def test_nothing_is_compiled_for_a_loop_without_iterations(driver, compiler, tmp_path):
    options = {"counters": ("shared_memory",), "strategies": (), "static": {"s": (4,)}}
    sums = program(SUMS, "sums.mf", tmp_path, BACKEND, **options)
    compiler.kernels |= texts(sums.result)
    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache"), **compiler.variables}
    for s, kernels in ((0, ["2"]), (2, ["2 jit"])):
        points = [("", {"n": 64, "s": s, "B": 32})]
        done, said, _ = sums.compare(driver, "sums", points, **variables)
        assert (done.returncode, said) == (0, ["same"]), done.stderr
        launches = [line for line in done.stderr.splitlines() if " grid=" in line]
        assert [line.partition(" variant=")[2] for line in launches] == kernels
    assert [values for _, values, _ in compiler.asked] == [{"s": 2, "B": 32}]


ROWS = """
void rows(int n, int B, const float a[n][n], const float w[n], float c[n][n]) {
  meta_schedule cache() {
    meta_for (int i = 0; i < n / B; i++) meta_for (int j = 0; j < n / B; j++)
      meta_for (int v = 0; v < B; v++) meta_for (int u = 0; u < B; u++)
        c[i * B + v][j * B + u] = a[i * B + v][j * B + u] * w[j * B + u];
  }
}
"""


def test_each_variant_has_its_text(driver, compiler, tmp_path):
    """Several results per thread where a block fills a warp still, and where it computes more for that."""
    options = {"counters": ("threads_per_block",), "strategies": ("register_tile",), "order": "cost"}
    rows = program(ROWS, "rows.mf", tmp_path, BACKEND, **options)
    compiler.kernels |= texts(rows.result)
    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache"), **compiler.variables}
    points = [("", {"n": 64, "B": 32}), ("", {"n": 24, "B": 8}), ("", {"n": 128, "B": 32})]
    for compiled, suffix in (("1", " jit"), ("0", "")):
        done, said, _ = rows.compare(driver, "rows", points, **variables, METAFORK_JIT=compiled)
        assert (done.returncode, said) == (0, ["same"] * 3), done.stderr
        launches = [line.split(" variant=")[1] for line in done.stderr.splitlines() if " grid=" in line]
        assert launches == [f"{variant}{suffix}" for variant in (1, 4, 1)]
    assert [name for name, *_ in compiler.asked] == ["rows_k0_leaf1_v1_jit", "rows_k0_leaf1_v4_jit"]


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-1], lambda data: data[:100], lambda data: b"", lambda data: data[:-9] + b"#" + data[-8:],
     lambda data: data + b"0"],
)  # fmt: skip
def test_a_damaged_entry_is_replaced(smooth, driver, compiler, tmp_path, damage):
    variables = {"XDG_CACHE_HOME": str(tmp_path), **compiler.variables}
    ran(smooth, driver, SMALL, **variables)
    (path,) = entries(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert ran(smooth, driver, SMALL, **variables) == (["2 jit"], "")
    assert len(compiler.asked) == 2
    assert path.read_bytes() == whole


def test_an_entry_that_the_driver_does_not_take_is_made_again(smooth, driver, compiler, tmp_path):
    variables = {"XDG_CACHE_HOME": str(tmp_path), **compiler.variables}
    ran(smooth, driver, SMALL, **variables)
    (path,) = entries(tmp_path)
    whole = path.read_bytes()
    # As if an entry had been written for it with other contents: the checksum is that of what it has.
    writer = tmp_path / "writer"
    source = (
        '#include "metafork/program_cache.h"\nint main(void) { char text[1 << 20]; '
        "const size_t length = fread(text, 1, sizeof text, stdin);\n"
        'const metafork_blob key = {(unsigned char *)text, length}, no = {(unsigned char *)"no PTX", 7};\n'
        "metafork_cache_write(key, no); return 0; }\n"
    )
    (tmp_path / "writer.c").write_text(source)
    succeed(["gcc", "-std=gnu11", "-Imetafork/runtime/include", tmp_path / "writer.c", "-o", writer])
    size = int.from_bytes(whole[8:16], "little")
    subprocess.run([writer], input=whole[32 : 32 + size], env={"XDG_CACHE_HOME": str(tmp_path)}, check=True)
    assert path.read_bytes() != whole
    assert ran(smooth, driver, SMALL, **variables) == (["2 jit"], "")
    assert len(compiler.asked) == 2
    assert path.read_bytes() == whole


def test_without_a_library_the_dynamic_kernel_runs_and_one_line_says_so(smooth, driver, compiler, tmp_path):
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    line = LINE.format("smooth_k0_leaf1_jit: there is no libnvrtc to compile it")
    for path in (tmp_path / "missing.so", compiler.directory / "old.so"):
        variables = {**compiler.variables, "METAFORK_NVRTC": str(path)}
        assert ran(smooth, driver, POINTS, **cache, **variables) == (["2", "2", "2", "1"], line)
    assert ran(smooth, driver, SMALL, **cache, **compiler.variables, STANDIN_MINOR="-1") == (["2"], line)
    assert entries(tmp_path) == []
    assert ran(smooth, driver, POINTS, **cache, **compiler.variables, METAFORK_JIT="0") == (["2", "2", "2", "1"], "")
    assert compiler.asked == []


def test_what_is_not_compiled_is_not_tried_again(smooth, driver, compiler, tmp_path):
    variables = {"XDG_CACHE_HOME": str(tmp_path), **compiler.variables}
    compiler.fault = "smooth.cu(3): error: no\nmore of it\n"
    line = LINE.format("smooth_k0_leaf1_jit: NVRTC does not compile it: smooth.cu(3): error: no")
    assert ran(smooth, driver, POINTS, **variables) == (["2", "2", "2", "1"], line)
    assert len(compiler.asked) == 2
    compiler.fault = ""
    compiler.image = b"no PTX at all\0"
    names, said = ran(smooth, driver, POINTS, **variables)
    assert (names, said.count("\n")) == (["2", "2", "2", "1"], 1)
    assert said.startswith("metafork: smooth_k0_leaf1_jit: what NVRTC made is not loaded: ")
    compiler.image = b""
    assert ran(smooth, driver, SMALL, **variables)[1] == LINE.format("smooth_k0_leaf1_jit: NVRTC made nothing of it")
    assert entries(tmp_path) == []


def test_two_processes_at_once(smooth, driver, compiler, tmp_path):
    variables = {"XDG_CACHE_HOME": str(tmp_path), **compiler.variables}
    environment = {
        "LD_LIBRARY_PATH": str(driver.directory),
        "STANDIN_SOCKET": str(driver.socket),
        "METAFORK_TRACE": "1",
        **variables,
    }
    text = point_line("", smooth.scalars("smooth", SMALL[0][1]))
    started = [
        subprocess.Popen(
            [smooth.drivers["smooth"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment,
        )
        for _ in range(3)
    ]  # fmt: skip
    for one in started:
        one.stdin.write(text)
        one.stdin.close()
    for one in started:
        said, told = one.stdout.read(), one.stderr.read()
        assert one.wait(60) == 0
        assert "same" in said
        assert "variant=2 jit" in told
    assert len(entries(tmp_path)) == 1
    assert len(entries(tmp_path)[0].name) == 32


THREADS = """
#include "smooth.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static float x[203], y[THREADS][203];
static int s;
static void *run(void *own) { return smooth(203, s, 32, x, (float *)own), NULL; }
int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < 203; i++) x[i] = (float)(i * i % 17);
  for (s = 2; s < LAST; s++) {
    memset(y, 0, sizeof y);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run, y[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
      for (int p = 1; p <= 201 / (s * 32) * s * 32; p++)
        if (y[i][p] != (x[p - 1] + x[p] + x[p + 1]) / 3) return 1;
  }
  return 0;
}
"""


@pytest.mark.parametrize(("threads", "last", "compiled"), [(4, 4, 2), (1, 7, 3)])
def test_threads_compile_once_and_a_process_keeps_so_many(smooth, driver, compiler, tmp_path, threads, last, compiled):
    (tmp_path / "main.c").write_text(THREADS)
    objects = [smooth.directory / "host.o"]
    flags = ["-std=gnu11", "-w", f"-DTHREADS={threads}", f"-DLAST={last}", f"-I{smooth.directory}"]
    flags.append(f"-I{smooth.directory}/include")
    kernels = tmp_path / "kernels.c"
    kernels.write_text('#include "metafork/jit.h"\n#include "smooth_ptx.c"\n')
    if threads == 1:  # a smaller bound
        text = (smooth.directory / "include" / "metafork" / "jit.h").read_text()
        (tmp_path / "metafork").mkdir()
        (tmp_path / "metafork" / "jit.h").write_text(text.replace("METAFORK_JIT_MOST = 64", "METAFORK_JIT_MOST = 3"))
        flags.insert(0, f"-I{tmp_path}")
    flags.append('-DMETAFORK_TARGET_HEADER="metafork/target_ptx.h"')
    succeed(["gcc", *flags, tmp_path / "main.c", kernels, *objects, *LIBRARIES, "-o", tmp_path / "main"])
    variables = {"METAFORK_CACHE": "0", "METAFORK_TRACE": "1", **compiler.variables}
    done, calls = driver.run([tmp_path / "main"], log=tmp_path / "log", **variables)
    assert (done.returncode, calls.left, calls.violations) == (0, [], []), done.stderr
    assert len(compiler.asked) == compiled
    launches = [line for line in done.stderr.splitlines() if " grid=" in line]
    assert len(launches) == threads * (last - 2)
    assert sum("variant=2 jit" in line for line in launches) == threads * compiled


def test_the_cache_is_bounded_and_what_was_used_last_stays(smooth, driver, compiler, tmp_path):
    variables = {"XDG_CACHE_HOME": str(tmp_path), **compiler.variables}
    ran(smooth, driver, SMALL, **variables)
    (first,) = entries(tmp_path)
    ran(smooth, driver, [POINTS[2]], **variables)
    assert len(entries(tmp_path)) == 2
    (other,) = (path for path in entries(tmp_path) if path != first)
    stranger = first.with_name("notes")
    stranger.write_text("mine")
    for path, seconds in ((first, 1), (other, 2)):
        os.utime(path, (seconds, seconds))
    room = {"METAFORK_CACHE_BYTES": str(5 * first.stat().st_size // 2)}
    ran(smooth, driver, SMALL, **variables)  # it was used last
    ran(smooth, driver, [("", {"n": 203, "s": 4, "B": 32})], **variables, **room)
    left = entries(tmp_path)
    assert other not in left
    assert {first, stranger} < set(left)
    assert len(left) == 3
    ran(smooth, driver, [("", {"n": 203, "s": 5, "B": 32})], **variables, METAFORK_CACHE_BYTES="10")
    assert entries(tmp_path) == [stranger]
    ran(smooth, driver, SMALL, **variables, METAFORK_CACHE="0")
    assert entries(tmp_path) == [stranger]


@pytest.mark.parametrize("call", range(8, 40, 5))
def test_a_driver_that_fails(smooth, driver, compiler, tmp_path, call):
    variables = {"XDG_CACHE_HOME": str(tmp_path), **compiler.variables}
    done, said, calls = smooth.compare(driver, "smooth", SMALL, **variables, STANDIN_FAIL=str(call))
    assert (done.returncode, said, calls.violations) == (0, ["same"], []), done.stderr


@needs_nvcc
def test_the_text_as_nvcc_compiles_it(smooth, driver, compiler, tmp_path):
    def by_nvcc(name, values, text, header):
        folder = tmp_path / f"{name}{len(compiler.asked)}"
        (folder / "metafork").mkdir(parents=True)
        (folder / "metafork" / "device.h").write_text(header)
        (folder / "kernel.cu").write_text(text)
        flags = ("-ptx", "-std=c++17", "-arch=sm_80", "-fmad=false", "-Werror", "all-warnings")
        succeed(["nvcc", *flags, f"-I{folder}", folder / "kernel.cu", "-o", folder / "kernel.ptx"])
        return (folder / "kernel.ptx").read_text()

    compiler.compiler = by_nvcc
    variables = {"METAFORK_CACHE": "0", **compiler.variables}
    points = [*SMALL, ("Z=90", {"n": 203, "s": 3, "B": 32})]
    assert ran(smooth, driver, points, **variables) == (["2 jit", "1 jit"], "")
    assert [name for name, *_ in compiler.asked] == ["smooth_k0_leaf1_jit", "smooth_k0_leaf2_jit"]


def test_it_is_clean_c_of_1999_and_cplusplus(smooth, tmp_path):
    flags = (
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        f"-I{smooth.directory}",
        f"-I{smooth.directory}/include",
        "-c",
    )
    for compiler, standard in (("gcc", ("-std=gnu99",)), ("g++", ("-x", "c++", "-std=c++11"))):
        succeed([compiler, *standard, *flags, smooth.directory / "smooth_ptx.c", "-o", tmp_path / "a.o"])


def test_only_who_asks_has_it(smooth):
    without = rendered_files(smooth.result, target=PTX)
    assert not any("jit" in text for name, text in without.items() if not name.startswith("include"))
    assert not any(name.endswith(("jit.h", "device_text.h", "program_cache.h")) for name in without)
    with pytest.raises(TargetOptionError, match="--jit is for --backend cuda and ptx: --backend hip has no NVRTC"):
        with_jit(HIP, allow_fma=False)
    assert '"-fmad=true"' in rendered_files(smooth.result, target=with_jit(CUDA, allow_fma=True))["smooth.cu"]
