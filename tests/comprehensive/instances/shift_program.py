"""A program whose parameters ``s`` and ``B`` may be static, and its driver on the CPU build."""

from metafork.comprehensive.emit import write_outputs
from tests.runtime.compiling import succeed

SHIFT = """
void shift(int N, int B, int s, const int a[N], int b[N]) {
  int dim = (N - 1) / (B * s);
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++)
        for (int k = 0; k < s; k++) {
          int p = (i * s + k) * B + j;
          b[p] = a[p] + a[p + 1];
        }
  }
}
"""

DRIVER = r"""
#include "input.h"
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
  int N = 100, B = 4, s = atoi(words[1]), a[100], b[100] = {0}, c[100] = {0};
  for (int i = 0; i < N; i++) a[i] = i * i % 37;
  if (count > 2) return printf("%d\n", input_k0_launch_variant(1, atoi(words[2]), NULL, N, B, s, a, c)) < 0;
  shift(N, B, s, a, b);
  if (input_k0_launch(1, NULL, N, B, s, a, c) != 0) return 2;
  for (int i = 0; i < (N - 1) / (B * s) * B * s; i++)
    if (b[i] != a[i] + a[i + 1] || c[i] != b[i]) return 1;
  return 0;
}
"""


def built(result, directory, **options):
    """Return the driver of ``DRIVER``, linked with what is written of a program for the CPU."""
    write_outputs(result, directory, **options)
    (directory / "driver.c").write_text(DRIVER)
    flags = ["-Wall", "-Wextra", "-Werror", "-DMETAFORK_CPU", f"-I{directory}", f"-I{directory}/include"]
    succeed(["g++", "-std=c++17", *flags, "-x", "c++", "-c", directory / "input.cu", "-o", directory / "a.o"])
    for name in ("input_host", "driver"):
        succeed(["gcc", "-std=gnu11", *flags, "-c", directory / f"{name}.c", "-o", directory / f"{name}.o"])
    objects = [directory / f"{name}.o" for name in ("a", "input_host", "driver")]
    succeed(["g++", *objects, "-o", directory / "driver"])
    return directory / "driver"
