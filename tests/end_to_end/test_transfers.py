"""Arrays move when a side needs what the other has: the results of the serial elision, and the copies, counted.

All functions of ``transfer_cases``, ``solver_cases`` and ``pointer_cases`` stand in one file, which is optimized, built
for the CPU with sanitizers, and run once for each case.  The reference is the same file compiled as C.
"""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.comprehensive.emit.targets.standin import LATE
from tests.end_to_end.commands import METAFORK, run
from tests.end_to_end.pointer_cases import POINTERS
from tests.end_to_end.solver_cases import SOLVERS
from tests.end_to_end.transfer_cases import CASES as SINGLE
from tests.end_to_end.transfer_cases import HEAD, schedule
from tests.runtime.compiling import HEAP_ALONE, INCLUDE, needs_nvcc

CASES = SINGLE | SOLVERS | POINTERS
STANDIN = Path(__file__).parents[1] / "comprehensive" / "emit" / "targets"

PRELUDE = (
    "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n"
    "void metafork_keep(const void *);\nvoid metafork_drop(const void *);\n"
    "#ifdef CONFIGURED\n#define NEVER_SEEN x[0] = 1;\n#else\n#define NEVER_SEEN\n#endif\n"
    "void elsewhere(int n, float *x);\nvoid through(int s);\n"
    "float total = 2;\nfloat table[8];\n"
    "#define REPEAT(v, m) for (int v = 0; v < (m); v++)\n#define LATER(v) z[2] = (v)\n"
    "#define PAIR(s) x[s] = y[s]; y[s + 1] = x[s];\n#define UNTIL(c) while (!(c))\n"
    '#define IVDEP _Pragma("GCC ivdep")\n#define MANY(v) '
    + " ".join(f"v[{k}] = v[{k + 1}];" for k in range(0, 24, 2))
    + "\nstatic void halve(int n, int B, float y[n])\n{ for (int i = 0; i < n; i++) y[i] = y[i] / 2; }\n"
    "static float at(const float *v, int i) { return v[i]; }\n"
    "static float norm(int n, const float *v) { float s = 0; for (int i = 0; i < n; i++) s += v[i] * v[i];"
    " return sqrtf(s); }\n"
    "static float twice(int m, float *v) { return norm(m / 2, v) + norm(4, &v[2]); }\n"
    "static float half(int m, float *v) { m = m / 2; return norm(m, v); }\n"
    "static void scale(int m, float M[m][m], int k, float by) { for (int i = 0; i < m; i++) M[i][k] *= by; }\n"
    "static void flat(float *v, int m, float by) { for (int i = 0; i < m; i++) v[i] = by; }\n"
    "static float deep(int n, float *v) { return n == 0 ? 0 : v[n] + deep(n - 1, v); }\n"
    "static float hidden(int n, float *x) { elsewhere(n, x); return 1; }\n"
    "static float counted(int k) { total += 1; return table[k]; }\n"
    "static float moved(float *v) { v++; return *v; }\n"
    "static float *same(float *v) { return v; }\n"
    "static void lead(float **v, float *to) { *v = to; }\n"
    "static float *here, *there;\n"
    "void add(int n, int B, float x[n], float y[n])\n{ " + schedule("x[i] = x[i] + y[i];") + " }\n"
)
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
{declarations}
extern float table[8];
extern float total;
void elsewhere(int n, float *x) {{ for (int i = 0; i < n; i++) x[i] = x[i] / 2; }}
void through(int s) {{ table[s] += 1; }}
#ifdef ELISION
void metafork_keep(const void *p) {{ (void)p; }}
void metafork_drop(const void *p) {{ (void)p; }}
#else
#include "metafork/host.h"
#endif
void add(int n, int B, float *x, float *y);
static void kept(int n, int B, float *x, float *y)
{{
  metafork_keep(x), metafork_keep(y);
  for (int k = 0; k < 5; k++) add(n, B, x, y);
  metafork_drop(x);
  x[0] = 1;
  add(n, B, x, y);
  metafork_drop(y);
}}
int main(int argc, char **argv)
{{
  int n = 24, B = 4, T = 21, number = atoi(argv[argc - 1]);
  float *A = malloc(n * n * sizeof *A);
  float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y), *z = malloc(n * sizeof *z);
  for (int k = 0; k < n * n; k++) A[k] = (float)(k * 37 % 101) * 0.37f;
  for (int k = 0; k < n; k++) x[k] = k + 0.5f, y[k] = (float)(k * 7 % 5) + 0.25f, z[k] = 3 * k;
  switch (number) {{
{calls}  default: kept(n, B, x, y);
  }}
  for (int k = 0; k < n * n; k++) printf("%a\\n", A[k]);
  for (int k = 0; k < n; k++) printf("%a %a %a\\n", x[k], y[k], z[k]);
  for (int k = 0; k < 8; k++) printf("%a %a\\n", table[k], total);
  free(A), free(x), free(y), free(z);
  return 0;
}}
"""


def driver():
    calls = "".join(f"    case {n}: case_{n}(n, B, T, (void *)A, x, y, z); break;\n" for n in range(len(CASES)))
    parameters = "(int, int, int, void *, float *, float *, float *)"
    declarations = "".join(f"void case_{n}{parameters};\n" for n in range(len(CASES)))
    return DRIVER.format(calls=calls, declarations=declarations)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The drop-in under AddressSanitizer, and the serial elision, of all cases at once."""
    folder = tmp_path_factory.mktemp("transfers")
    text = PRELUDE + "".join(f"void case_{k}{HEAD}\n{{\n{one.body}\n}}\n" for k, one in enumerate(CASES.values()))
    (folder / "cases.mf").write_text(text)
    chosen = ("--counters", "threads_per_block", "--strategies", "granularity", "--static", "none")
    run(METAFORK, "optimize", "cases.mf", *chosen, cwd=folder)
    (folder / "driver.c").write_text(driver())
    own = ["-I.", "-Icases.out/include"]
    sanitize = ["-fsanitize=address", *HEAP_ALONE]
    c = ["gcc", "-std=gnu11", "-O0", "-w", "-ffp-contract=off", *sanitize, *own]
    run(*c, "-c", "cases.out/cases_host.c", "-DMETAFORK_CPU", "-o", "host.o", cwd=folder)
    cxx = ["g++", "-std=c++17", "-O0", "-x", "c++", "-DMETAFORK_CPU", "-Icases.out", *sanitize, *own]
    run(*cxx, "-c", "cases.out/cases.cu", "-o", "device.o", cwd=folder)
    run(*c, "-c", "driver.c", "-o", "driver.o", cwd=folder)
    run("g++", *sanitize, "host.o", "device.o", "driver.o", "-lm", "-o", "ours", cwd=folder)
    elision = ["-Dmeta_for=for", "-Dmeta_schedule=", "-Dmeta_block(...)=", "-DELISION", "-include", "assert.h"]
    run(*c, *elision, "-x", "c", "cases.mf", "driver.c", "-lm", "-o", "theirs", cwd=folder)
    return folder


def copies(trace, way):
    """Return, for each array, how often how many bytes of it were moved."""
    found = {}
    for size, name in re.findall(
        rf"^metafork: (\d+) bytes of (\w+) {way} the device(?: in \d+ rows)?$", trace, re.MULTILINE
    ):
        found.setdefault(name, Counter())[int(size)] += 1
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_drop_in_is_the_serial_elision_and_moves_no_more_than_it_must(programs, name):
    number, case = list(CASES).index(name), CASES[name]
    expected = run("./theirs", number, cwd=programs).stdout
    done = run("./ours", number, cwd=programs, env={**os.environ, "METAFORK_TRACE": "2"})
    assert done.stdout == expected
    assert re.search(r"^metafork: cases_k\d+ leaf \d+ ", done.stderr, re.MULTILINE), done.stderr
    if case.to is not None:
        assert (copies(done.stderr, "to"), copies(done.stderr, "from")) == (case.to, case.back)


def test_arrays_stay_where_they_are_kept(programs):
    number = len(CASES)
    done = run("./ours", number, cwd=programs, env={**os.environ, "METAFORK_TRACE": "2"})
    assert done.stdout == run("./theirs", number, cwd=programs).stdout
    assert copies(done.stderr, "to") == {"x": {96: 2}, "y": {96: 1}}
    assert copies(done.stderr, "from") == {"x": {96: 2}}


HOST_WAITS = {
    "gemver": ["x", "z", "A"],
    # The vectors that end with the function are freed when the kernel that uses them is over.
    "gemver with vectors of its own": ["cases_k4", "x", "y", "A"],
    "trisolv": [*["x"] * 23, "cases_k10"],
    "cholesky": ["A"] * 24,
    "two arrays in turn": ["y", "x"],
    "a stencil over time with a source of the host": ["y", "x"],
}
"""The arrays whose copies from the device the host waits for, one after the other: for nothing else does it wait."""


def traced(programs, name, **variables):
    done = run("./ours", list(CASES).index(name), cwd=programs, env={**os.environ, "METAFORK_TRACE": "3", **variables})
    return done.stderr


@pytest.mark.parametrize("name", HOST_WAITS)
def test_what_the_host_waits_for(programs, name):
    trace = traced(programs, name)
    waits = re.findall(r"^metafork: the host waits for (?:a copy of )?(.*)$", trace, re.MULTILINE)
    assert waits == HOST_WAITS[name]
    assert (copies(trace, "to"), copies(trace, "from")) == (CASES[name].to, CASES[name].back)
    # With a switch, everything is waited for at once, and the same moves.
    synchronous = traced(programs, name, METAFORK_ASYNC="0")
    assert (copies(synchronous, "to"), copies(synchronous, "from")) == (CASES[name].to, CASES[name].back)
    assert "wait" not in synchronous
    assert "beside" not in synchronous


def test_copies_run_beside_the_kernels_that_do_not_need_them(programs):
    trace = traced(programs, "gemver with vectors of its own").splitlines()
    launches = [number for number, line in enumerate(trace) if " leaf " in line]
    waits = [re.findall(r"kernels wait for a copy of (\w+)", "\n".join(trace[:end])) for end in launches]
    # The first kernel waits for what it uses, and for nothing that others use.
    assert [sorted(names) for names in waits] == [list("Auv"), list("Auvxy"), list("Auvxyz"), list("Auvxyz")]
    beside = [re.findall(r"a copy of (\w+) beside (\w+)", line) for line in trace]
    first, second, _, last = (trace[number].split()[1] for number in launches)
    found = [pair for pairs in beside for pair in pairs]
    # The last kernel does not write x, which comes back beside it.
    assert found == [("x", first), ("y", first), ("z", first), ("z", second), ("x", last)]
    # Nothing comes back before the last kernel was launched, and then all is begun before the first is waited for.
    back = [number for number, line in enumerate(trace) if "from the device" in line]
    assert launches[-1] < back[0]
    assert back[-1] < next(number for number, line in enumerate(trace) if "the host waits for a copy" in line)


@pytest.fixture(scope="module")
def late(programs):
    """The drop-in on a stand-in of HIP's runtime, where copies and kernels take effect late; buffers of 512 bytes."""
    options = ("--backend", "hip", "--counters", "threads_per_block", "--strategies", "granularity", "-o", "hip.out")
    run(METAFORK, "optimize", "cases.mf", *options, cwd=programs)
    kernels = re.findall(
        r"^METAFORK_KERNEL\(__global__ void, (\w+),", (programs / "hip.out" / "cases_hip.cpp").read_text(), re.MULTILINE
    )
    names = (text for one in kernels for text in (one, f"{one}_large"))
    table = "".join(f"static const hip_standin::kernel k{number}({name});\n" for number, name in enumerate(names))
    (programs / "hip.cpp").write_text(f'#include "cases_hip.cpp"\n{table}')
    c = ["gcc", "-std=gnu11", "-O0", "-w", "-ffp-contract=off", "-I.", "-Ihip.out/include", "-Icases.out/include"]
    run(*c, "-c", "hip.out/cases_host.c", "-o", "late_host.o", cwd=programs)
    run(*c, "-c", "driver.c", "-o", "late_driver.o", cwd=programs)
    cxx = [
        "g++",
        "-std=c++17",
        "-O0",
        "-w",
        "-ffp-contract=off",
        "-DMETAFORK_BUFFER_BYTES=512",
        "-Ihip.out",
        "-Ihip.out/include",
    ]
    standin = [f"-I{STANDIN}", f"-I{LATE}", f"-I{INCLUDE}"]
    run(*cxx, *standin, "-c", "hip.cpp", "-o", "hip.o", cwd=programs)
    run("g++", "late_host.o", "hip.o", "late_driver.o", "-lm", "-o", "late", cwd=programs)
    return programs


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_the_drop_in_is_the_serial_elision_however_late_copies_and_kernels_are(late, name):
    number, case = list(CASES).index(name), CASES[name]
    expected = run("./theirs", number, cwd=late).stdout
    for order in ("late", f"random:{number}"):
        environment = {**os.environ, "METAFORK_TRACE": "2", "STANDIN_ORDER": order}
        done = run("./late", number, cwd=late, env=environment)
        assert done.stdout == expected, order
        assert "left" not in done.stderr
        if case.to is not None:
            assert (copies(done.stderr, "to"), copies(done.stderr, "from")) == (case.to, case.back)


@pytest.mark.parametrize("deaf", ["streams", "host"])
@pytest.mark.parametrize("name", HOST_WAITS)
@pytest.mark.slow
def test_waits_that_do_nothing_are_seen(late, name, deaf):
    """Where events do not keep the order, results are wrong, or memory is freed that is in use."""
    number = list(CASES).index(name)
    environment = {**os.environ, "STANDIN_ORDER": "late", "STANDIN_DEAF": deaf}
    done = subprocess.run(
        ["./late", str(number)], cwd=late, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode != 0 or done.stdout != run("./theirs", number, cwd=late).stdout


@pytest.mark.slow
@needs_nvcc
def test_nvcc_takes_the_file(programs):
    options = ["-arch=sm_80", "-fmad=false", "-Icases.out", "-Icases.out/include"]
    run("nvcc", *options, "-c", "cases.out/cases.cu", "-o", "cuda.o", cwd=programs)
