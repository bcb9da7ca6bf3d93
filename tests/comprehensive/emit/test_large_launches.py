"""Each kernel exists twice: for the program's own grid and offsets of 31 bits, and for any grid and any array."""

import os
import re

import pytest

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.optimize import optimize
from tests.runtime.compiling import run, succeed

INPUT = """
void touch(int n, int m, int B, char a[n][m]) {
  meta_schedule {
    meta_for (int i = 0; i < n; i++)
      meta_for (int u = 0; u < B; u++)
        a[i][u] += i + u + 1;
  }
}
"""
DRIVER = """
#include "input.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(int count, char **words) {
  (void)count;
  const long long n = atoll(words[1]), m = atoll(words[2]), B = 3;
  char *a = mmap(NULL, (size_t)(n * m), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (a == MAP_FAILED) return 3;
  const int error = input_k0_launch(1, NULL, n, m, B, a);
  if (error != 0) return 2;
  for (long long i = 0; i < n; i++)
    for (long long u = 0; u < B; u++)
      if (a[i * m + u] != (char)(i + u + 1)) return 1;
  return 0;
}
"""


WINDOWS = """
void sums(int n, long m, int B, char x[(n + 1) * m], char y[n][B]) {
  meta_schedule cache(x) {
    meta_for (int i = 0; i < n; i++)
      meta_for (int u = 0; u < B; u++)
        y[i][u] = x[i * m + u] + x[i * m + u + 1];
  }
}
"""
WINDOW_DRIVER = """
#include "input.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(int count, char **words) {
  (void)count;
  const long long n = atoll(words[1]), m = atoll(words[2]), B = 3;
  const size_t size = (size_t)((n + 1) * m);
  char *x = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), y[100];
  if (x == MAP_FAILED) return 3;
  for (long long i = 0; i < n; i++)
    for (long long u = 0; u <= B; u++) x[i * m + u] = (char)(i * i + 5 * u);
  if (input_k0_launch(1, NULL, n, m, B, x, y) != 0) return 2;
  for (long long i = 0; i < n; i++)
    for (long long u = 0; u < B; u++)
      if (y[i * B + u] != (char)(x[i * m + u] + x[i * m + u + 1])) return 1;
  return 0;
}
"""


def built(out, text, driver, **options):
    """Return the program that launches leaf 1 of a text."""
    result = optimize(text, order="paper", **options)
    write_outputs(result, out)
    (out / "driver.c").write_text(driver)
    flags = ["-Wall", "-Wextra", "-Werror", "-DMETAFORK_CPU", "-DMETAFORK_CHECK", f"-I{out}", f"-I{out}/include"]
    succeed(["g++", "-std=c++17", *flags, "-x", "c++", "-c", out / "input.cu", "-o", out / "input.o"])
    succeed(["gcc", "-std=gnu11", *flags, "-c", out / "driver.c", "-o", out / "driver.o"])
    succeed(["g++", out / "input.o", out / "driver.o", "-o", out / "driver"])
    return out / "driver"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    return built(tmp_path_factory.mktemp("large"), INPUT, DRIVER, counters=("threads_per_block",), strategies=())


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    counters = ("threads_per_block", "shared_memory")
    program = built(tmp_path_factory.mktemp("windows"), WINDOWS, WINDOW_DRIVER, counters=counters)
    assert "shared_x_0_at = METAFORK_OFFSET(" in (program.parent / "input.cu").read_text()
    return program


@pytest.mark.parametrize(
    ("n", "m", "machine", "large"),
    [
        (5, 7, "", False),
        (5, 7, "grid_dim_x=5", False),
        (5, 7, "grid_dim_x=4", True),
        (5, 7, "grid_dim_x=1", True),
        (1, 2**31 - 1, "", False),
        (2, 2**30, "", True),
        (5, 2**31 - 1, "", True),
        (5, 2**31 - 1, "grid_dim_x=2", True),
    ],
)
def test_the_large_kernel_is_launched_where_it_is_needed(driver, n, m, machine, large):
    assert launched_large(driver, n, m, machine) == large


@pytest.mark.parametrize(("m", "large"), [(8, False), (2**30 - 2, False), (2**30, True), (2**32, True)])
def test_coordinates_of_windows_are_narrow_where_all_that_are_reached_fit(windows, m, large):
    assert launched_large(windows, 3, m, "") == large


def launched_large(program, n, m, machine):
    """Launch, and say whether the large kernel ran."""
    done = run([program, str(n), str(m)], env={**os.environ, "METAFORK_TRACE": "1", "METAFORK_MACHINE": machine})
    assert done.returncode == 0, done.stderr
    (line,) = re.findall(r"^metafork: input_k0 leaf 1 .*$", done.stderr, re.MULTILINE)
    return line.endswith(" large")
