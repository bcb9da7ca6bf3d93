"""Only what a schedule writes comes back: the rest of its arrays stands in pages that may not be written.

So it is with arrays of which other threads write other elements meanwhile.  All functions stand in one file, which is
optimized, built for the CPU, and run once for each; the reference is the same file compiled as C.
"""

import pytest

from tests.end_to_end.commands import METAFORK, run

BLOCKS = "meta_schedule meta_block(B) { meta_for (int i = "
CASES = {
    "a range": BLOCKS + "lo; i < hi; i++) x[i] += 1; }",
    "a range that is overwritten": BLOCKS + "lo; i < hi; i++) x[i] = i; }",
    "a range by a condition": BLOCKS + "0; i < n; i++) if (i >= lo && i < hi) x[i] *= 3; }",
    "where data says so": BLOCKS + "0; i < n; i++) if (x[i] % 3 == 1 && i >= lo && i <= hi - 1) x[i] = 7; }",
    "by an index that is data": BLOCKS + "0; i < hi - lo; i++) x[lo + (i + key[0]) % (hi - lo)] += 2; }",
    "no element": BLOCKS + "0; i < n; i++) if (i < lo && x[i] > 1000000) x[i] = 0; }",
    "none, by a parameter": BLOCKS + "0; i < n; i++) if (lo > hi) x[i] = 0; }",
    "only what is read before": BLOCKS
    + "lo; i < hi; i++) y[i] = x[i]; }"
    + BLOCKS
    + "lo; i < hi; i++) x[i] += y[i]; }",
    "read, then written by data": BLOCKS + "0; i < n; i++) y[i] = x[i]; }"
    " for (int s = 0; s < 2; s++) { " + BLOCKS + "lo; i < hi; i++) if (y[i] % 2) x[i] += s + 1; } y[lo] += s; }",
    "a while": BLOCKS + "lo; i < hi; i++) { int k = i; while (k < i + 1) { x[k] += 4; k++; } } }",
    "threads that stride": "meta_schedule { meta_for (int b = 0; b < 4; b++) meta_for (int t = 0; t < B; t++)"
    " for (int i = lo + b * B + t; i < hi; i += 4 * B) x[i] -= 2; }",
    "downwards": BLOCKS + "0; i < hi - lo; i++) x[hi - 1 - i] = i; }",
    "rows": "meta_schedule meta_block(B, B) { meta_for (int i = 1; i < 2; i++) meta_for (int j = 0; j < 1024; j++)"
    " R[i][j] = j; }",
    "a triangle within rows": "meta_schedule meta_block(B, B) { meta_for (int i = 1; i < 2; i++)"
    " meta_for (int j = 0; j < 1024; j++) if (j >= 4 * i) R[i][j] = i - R[i][j]; }",
    "a flat row": "meta_schedule meta_block(B, B) { meta_for (int i = 0; i < 1; i++)"
    " meta_for (int j = 0; j < 1024; j++)"
    " x[(i + 1) * 1024 + j] = 3; }",
}
PARAMETERS = "int n, int B, int lo, int hi, int x[n], int R[3][1024], int y[n], const int key[1]"
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
{declarations}
enum {{ N = 3 * 1024 }};
int main(int argc, char **argv)
{{
  int *x = mmap(0, N * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), y[N], key = 5;
  for (int i = 0; i < N; i++) x[i] = i * 7919 % 1013, y[i] = i;
  mprotect(x, 4096, PROT_READ), mprotect(x + 2048, 4096, PROT_READ);
  switch (argc > 1 ? atoi(argv[1]) : 0) {{
{calls}  }}
  for (int i = 0; i < N; i++) printf("%d %d\\n", x[i], y[i]);
  return 0;
}}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    text = "".join(f"void case_{k}({PARAMETERS})\n{{\n{body}\n}}\n" for k, body in enumerate(CASES.values()))
    (folder / "cases.mf").write_text("#include <stdlib.h>\n" + text)
    run(METAFORK, "optimize", "cases.mf", "--counters", "threads_per_block", "--strategies", "granularity", cwd=folder)
    declarations = "".join(
        f"void case_{k}(int, int, int, int, int *, void *, int *, int *);\n" for k in range(len(CASES))
    )
    calls = "".join(
        f"  case {k}: case_{k}(N, 32, 1024 + 37, 2048 - 90, x, x, y, &key); break;\n" for k in range(len(CASES))
    )
    (folder / "driver.c").write_text(DRIVER.format(declarations=declarations, calls=calls))
    c = ["gcc", "-std=gnu11", "-O0", "-w", "-I.", "-Icases.out/include"]
    run(*c, "-c", "cases.out/cases_host.c", "-o", "host.o", cwd=folder)
    cxx = ["g++", "-std=c++17", "-O0", "-x", "c++", "-DMETAFORK_CPU", "-Icases.out", "-Icases.out/include"]
    run(*cxx, "-c", "cases.out/cases.cu", "-o", "device.o", cwd=folder)
    run(*c, "-c", "driver.c", "-o", "driver.o", cwd=folder)
    run("g++", "host.o", "device.o", "driver.o", "-lm", "-o", "ours", cwd=folder)
    words = ["-Dmeta_for=for", "-Dmeta_schedule=", "-Dmeta_block(...)="]
    run(*c, *words, "-x", "c", "cases.mf", "driver.c", "-lm", "-o", "theirs", cwd=folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_nothing_else_is_written(programs, name):
    number = list(CASES).index(name)
    done = run("./ours", number, cwd=programs, env={"METAFORK_TRACE": "1"})
    assert done.stdout == run("./theirs", number, cwd=programs).stdout
    assert " leaf " in done.stderr
    assert "serial code" not in done.stderr
