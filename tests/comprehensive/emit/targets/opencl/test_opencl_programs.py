"""OpenCL C where it is not C: types, names, functions, atomic updates; and devices that lack what a kernel needs."""

import pytest

from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from tests.comprehensive.emit.targets.building import two_files
from tests.comprehensive.emit.targets.programs import EXAMPLES, LIBRARIES, optimized, program
from tests.comprehensive.emit.targets.small_programs import (
    CALLS,
    COLUMNS,
    FLOATS,
    NAMES,
    NUMBERS,
    STRIDING,
    SWIZZLE,
    TYPES,
)
from tests.metafork.frontend.text.clauses.atomic_programs import OWN
from tests.runtime.compiling import succeed
from tests.sampling import sampled

# Names and numbers of OpenCL C; each operation that it has in another way, or under another name.
MEANINGS = """
#include <stdbool.h>
#include <math.h>
void meanings(int n, int B, bool flag, float f, const int x[n], const float y[n], int z[n], float w[n], int kernel[n],
              double global[n]) {
  int blocks = n / B;
  meta_schedule cache(x) {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        bool half = y[p] * 4, uint2 = x[i * B + B - 1 - j] > 0 && flag;
        half += uint2;
        z[p] = half + uint2 + (int)(y[p] * 3) + flag;
        w[p] += x[p] % 17 + fmaxf(y[p], f) - fminf(y[p] * 2, f) + fdimf(y[p], f) + copysignf(2, y[p]);
        long long float4 = -7ll * p;
        unsigned long long max = 0xffffffffffffffffull - p;
        unsigned char clamp = (unsigned char)(x[p] * 3);
        signed char dot = x[p];
        unsigned short mix = (unsigned short)(x[p] * 77);
        dot += 100;
        mix -= 60000;
        kernel[p] = (y[p] ? 3 : 5) + (f ? flag : !y[p]) + (y[p] && f) + abs(x[p] % 1000) + (int)labs(float4)
          + (int)(max >> 60) + (int)llabs(float4 * 3) + clamp + dot * mix + (clamp << 3) + (dot >> 2)
          + (x[p] % 1000 / 7)
          + (int)((unsigned)x[p] / 7u) + (int)((-1 - (long)(x[p] & 7)) >> 1) + (int)(fmaxf(y[p], f) * 100)
          + (int)(fdim(y[p], f) * 50) + (int)(rintf(y[p] * 7) + nearbyint(y[p] * 9) + round(y[p] * 3.5))
          + (int)(max % 1000003ull);
        global[p] = fma(y[p], f, 1e-3) / 3 + sqrt(fabs(y[p])) + (double)(float)(y[p] / 7.0) + trunc(y[p] * 9.5)
          + ceil(y[p] * 3) + 1 / (y[p] + 1e-40f) + 1e-310 * y[p] + (double)max + (float)float4;
      }
  }
}
"""

UPDATES = """
void updates(int n, int B, int m, const int x[n], TYPE s[m], TYPE p[m], TYPE a[m], TYPE o[m], TYPE e[m], TYPE lo[m],
             TYPE hi[m], TYPE d[m]) {
  int blocks = n / B;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int j = 0; j < B; j++) {
        TYPE v = (TYPE)(x[i * B + j] * 2654435761u + j);
        int k = (int)((unsigned)x[i * B + j] % (unsigned)m);
        meta_atomic s[k] += v;
        meta_atomic p[k] *= v | 1;
        meta_atomic a[k] &= v | 3;
        meta_atomic o[k] |= v;
        meta_atomic e[k] ^= v;
        meta_atomic lo[k] = v < lo[k] ? v : lo[k];
        meta_atomic hi[k] = hi[k] < v ? v : hi[k];
        meta_atomic d[k] -= v;
      }
  }
}
"""
# Threads of a block read in global memory what others wrote there.
PHASES = """
void phases(int n, int B, const int x[n], int get_local_id[n], int y[n]) {
  int blocks = n / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < blocks; i++) {
      meta_for (int j = 0; j < B; j++) get_local_id[i * B + j] = x[i * B + j] * 3;
      meta_for (int j = 0; j < B; j++) y[i * B + j] = get_local_id[i * B + (B - 1 - j)] + 1;
      meta_for (int j = 0; j < B; j++) get_local_id[i * B + j] += y[i * B + (j + 1) % B];
    }
  }
}
"""

# Names that OpenCL C has already, and those that others get in their place.
RESERVED = """
#include <math.h>
void kernel(int barrier, int restrict_, const float vec_step[barrier], float float16[barrier],
            double select[barrier]) {
  int image2d_t = barrier / restrict_;
  meta_schedule {
    meta_for (int metafork_buffer = 0; metafork_buffer < image2d_t; metafork_buffer++)
      meta_for (int sampler_t = 0; sampler_t < restrict_; sampler_t++) {
        int CLK_LOCAL_MEM_FENCE = metafork_buffer * restrict_ + sampler_t, v_kernel_ = 3, v_barrier_ = 4;
        float sqrt_ = fabsf(vec_step[CLK_LOCAL_MEM_FENCE]), as_int = sqrtf(sqrt_), uint3 = as_int / 3;
        float v_float16_ = 2, max = v_kernel_;
        float16[CLK_LOCAL_MEM_FENCE] = uint3 + as_int * v_float16_ + max + v_barrier_;
        select[CLK_LOCAL_MEM_FENCE] = sqrt(sqrt_) + v_kernel_;
      }
  }
}
"""

TYPES_OF_UPDATES = (
    "int", "unsigned short", "unsigned long long", "signed char", "unsigned char", "short", "unsigned", "long",
)  # fmt: skip
PAPER = {"counters": ("threads_per_block", "shared_memory")}

CASES = {
    "meanings": (MEANINGS, "meanings", PAPER,
        [("", {"n": 64, "B": 16, "flag": 1, "f": 0.25}), ("", {"n": 33, "B": 11, "flag": 0, "f": 1e-39})]),
    "kinds": (TYPES, "kinds", PAPER,
        [("", {**NUMBERS, "n": 37, "B": 16, "flag": 1, "sh": 20, "us": 65535, "ll": -12345678901}),
         ("", {**NUMBERS, "n": 33, "B": 5, "flag": 0, "sh": -7, "us": 5, "ll": -1})]),
    "phases": (PHASES, "phases", PAPER, [("", {"n": 96, "B": 16}), ("grid_dim_x=1", {"n": 64, "B": 8})]),
    "reserved": (RESERVED, "kernel", {"counters": ("shared_memory",)}, [("", {"barrier": 96, "restrict_": 16})]),
    "names": (NAMES, "class", {"counters": ("shared_memory",), "strategies": ("caching",)},
        [("", {"n": 40, "stream": 3, "leaf": 8}), ("Z=2", {"n": 41, "stream": -1, "leaf": 8})]),
    "floats": (FLOATS, "kinds", {**PAPER, "static": {"B": (32,)}},
        [("", {"n": n, "B": B, "f": 0.3, "d": -1.7}) for n, B in ((101, 32), (7, 8), (64, 16))]),
    "striding": ("blur", "blur", STRIDING, [("", {"height": 40, "width": 37, "B0": 32, "B1": 33, "s": 1})]),
    "own counts": (OWN.replace("int part[m]", "unsigned char part[m]"), "own", PAPER,
        [("", {"n": 24, "m": 7, "B": 3, "s": 2}), ("Z=2", {"n": 24, "m": 7, "B": 3, "s": 2})]),
    **{f"updates of {name}": (UPDATES.replace("TYPE", name), "updates", {"strategies": ()},
        [("", {"n": 96, "B": 32, "m": 7}), ("", {"n": 40, "B": 8, "m": 3})]) for name in TYPES_OF_UPDATES},
}  # fmt: skip
QUICK = {"meanings", "reserved", "own counts", "updates of unsigned short"}


@pytest.mark.parametrize(("file", "function", "options", "points"), sampled(CASES, QUICK))
@pytest.mark.sampled(2)
def test_kernels_mean_what_the_program_says(opencl, tmp_path, file, function, options, points):
    text = file if "\n" in file else (EXAMPLES / f"{file}.mf").read_text()
    one = program(text, "file.mf", tmp_path, OPENCL, **options)
    done, said, calls = one.compare(opencl, function, points)
    assert said == ["same"] * len(points), done.stderr
    assert (calls.violations, calls.left, calls.ended) == ([], [], True)
    assert calls.ran == one.launched(done)
    assert len(calls.ran) >= len(points)


def test_leaves_without_code_are_left_out():
    calls, _ = optimized(CALLS, "calls.mf", OPENCL, strategies=())
    assert [len(tree.leaves) > 0 for tree in calls.schedules] == [True, False]
    reason = "no code for --backend opencl: OpenCL does not say that these are exact: expf, sinf"
    assert reason in calls.to_report()
    aos, _ = optimized((EXAMPLES / "aos.mf").read_text(), "aos.mf", OPENCL, **SWIZZLE)
    assert all(tree.leaves for tree in aos.schedules)
    assert "no code for --backend opencl: OpenCL 1.2 has no shuffles" in aos.to_report()


LACKS = {
    "doubles": (FLOATS, "kinds", {"n": 32, "B": 8}, {"STANDIN_EXTENSIONS": "0"}, "doubles"),
    "denormals": ("smooth", "smooth", {"n": 402, "s": 2, "B": 16}, {"STANDIN_FLOATS": "134"}, "floats with denormals"),
    "division": ("smooth", "smooth", {"n": 402, "s": 2, "B": 16}, {"STANDIN_FLOATS": "7"},
        "correctly rounded division and square root of floats"),
    "atomics": (UPDATES.replace("TYPE", "long"), "updates", {"n": 96, "B": 32, "m": 7}, {"STANDIN_EXTENSIONS": "0"},
        "atomic updates of 64 bits"),
    "arguments": ("smooth", "smooth", {"n": 402, "s": 2, "B": 16}, {"STANDIN_ARGUMENTS": "40"},
        "room for 56 bytes of arguments, but for 40"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("file", "function", "point", "variables", "lacking"), sampled(LACKS, {"doubles", "division", "arguments"})
)
def test_a_device_that_lacks_something(opencl, tmp_path, file, function, point, variables, lacking):
    """Nothing is built, the serial code runs, and a line says so once a kernel."""
    text = file if "\n" in file else (EXAMPLES / f"{file}.mf").read_text()
    one = program(text, "file.mf", tmp_path, OPENCL, counters=("shared_memory",), strategies=())
    done, said, calls = one.compare(opencl, function, [("", point)] * 2, **variables)
    assert said == ["same"] * 2
    assert "clCreateProgramWithSource" not in calls.names
    assert done.stderr.count(f"metafork: file_k0_leaf1: the device has no {lacking}\n") == 1
    assert "no leaf fits this machine and these parameters; the serial code runs" in done.stderr
    assert calls.left == []


def test_a_device_without_what_nobody_needs(opencl, tmp_path):
    """Integers are moved by any device."""
    text = (EXAMPLES / "matadd.mf").read_text().replace("float", "int")
    one = program(text, "file.mf", tmp_path, OPENCL, counters=("shared_memory",), strategies=())
    variables = {"STANDIN_EXTENSIONS": "0", "STANDIN_FLOATS": "0"}
    _, said, calls = one.compare(opencl, "matadd", [("", {"N": 21, "B0": 7, "B1": 3})], **variables)
    assert (said, len(calls.ran), calls.left) == (["same"], 1, [])


def test_arrays_stay_on_the_device_between_calls(opencl, tmp_path):
    """A part of an array that is kept is found inside of its buffer; what is kept at the end is released there."""
    options = {"counters": ("shared_memory",), "strategies": ()}
    program((EXAMPLES / "smooth.mf").read_text(), "smooth.mf", tmp_path, OPENCL, **options)
    main = tmp_path / "main.c"
    main.write_text("""
#include "smooth.h"
#include "metafork/host.h"
static float x[402], y[402];
int main(void) {
  for (int i = 0; i < 402; i++) x[i] = (float)i;
  metafork_keep(x);
  smooth(402, 2, 16, x, y);
  y[25] = 0;
  smooth(302, 2, 16, x + 50, y + 20);
  return y[5] != 5 || y[25] != 55;
}
""")
    include = [f"-I{tmp_path}", f"-I{tmp_path}/include"]
    objects = [tmp_path / "kernels.o", tmp_path / "host.o"]
    succeed(["gcc", "-std=gnu11", *include, main, *objects, *LIBRARIES, "-o", tmp_path / "main"])
    done, calls = opencl.run([tmp_path / "main"], log=tmp_path / "log", METAFORK_TRACE="2", METAFORK_STRICT="1")
    assert (done.returncode, calls.violations, calls.left) == (0, [], []), done.stderr
    assert done.stderr.count("bytes of x to the device") == 1
    assert (len(calls.ran), calls.names.count("clCreateContext")) == (2, 1)


@pytest.mark.slow
def test_columns_are_copied_as_such(opencl, tmp_path):
    one = program(COLUMNS, "columns.mf", tmp_path, OPENCL, counters=("threads_per_block",), strategies=())
    done, said, calls = one.compare(opencl, "columns", [("", {"n": 9, "B": 4})], METAFORK_TRACE="2")
    assert (said, calls.violations, calls.left) == (["same"], [], []), done.stderr
    assert done.stderr.count("36 bytes of A to the device in 9 rows") == 2
    assert calls.names.count("clEnqueueWriteBufferRect") == 2
    assert calls.names.count("clEnqueueReadBufferRect") == 5
    for order in ("late", "random:1", "random:2"):
        done, said, calls = one.compare(opencl, "columns", [("", {"n": 9, "B": 4})], STANDIN_ORDER=order)
        assert (said, calls.violations, calls.left) == (["same"], [], []), done.stderr
        assert "serial" not in done.stderr


@pytest.mark.slow
def test_files_of_one_program_share_the_device(opencl, tmp_path):
    two = two_files(tmp_path, OPENCL)
    done, calls = opencl.run([two.main], log=tmp_path / "log", METAFORK_TRACE="1")
    assert (done.returncode, calls.violations, calls.left) == (0, [], []), done.stderr
    assert calls.ran == ["smooth_k0_leaf1", "center_k0_leaf1"]
    assert calls.names.count("clCreateContext") == calls.names.count("clReleaseContext") == 1
    # A library that is closed gives back all that it has built.
    done, calls = opencl.run([two.loader, two.library], log=tmp_path / "log")
    assert (done.returncode, calls.violations, calls.left) == (0, [], []), done.stdout
    assert len(calls.ran) == 2
    assert calls.names.count("clCreateContext") == calls.names.count("clReleaseContext") == 2
