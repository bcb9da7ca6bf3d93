"""The header is C to those who see neither the input's constants nor its variables."""

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli
from tests.runtime.compiling import WARNINGS, succeed

INPUT = """
#define D 2
static const int W = 8;
enum { K = 3 };
const long H = 2 * 4 + K;
const int E = D * 4;
int V = 6;
void rows(int n, int B, float x[n][W], double y[n][H * 2], const float z[n][V + 1], short q[E][n], float u[n + V])
{
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++) { x[i][1] = y[i][0] + z[i][0] + u[i]; q[0][i] = 1; }
  }
}
"""
MAIN = """
#include "rows.h"
int main(void)
{
  float x[4][8], z[28], u[10];
  double y[4][22];
  short q[8][4];
  rows(4, 2, %s);
  return 0;
}
"""


@pytest.mark.parametrize(
    ("compiler", "arguments"),
    [
        (("gcc", "-std=c99"), "x, y, z, q, u"),
        (("gcc", "-std=gnu17"), "x, y, z, q, u"),
        (("g++", "-std=c++17", "-x", "c++"), "&x[0][0], &y[0][0], z, &q[0][0], u"),
    ],
)
def test_extents_name_constants_and_variables_of_the_file(tmp_path, monkeypatch, compiler, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.mf").write_text(INPUT)
    (tmp_path / "main.c").write_text(MAIN % arguments)
    quick = ("--counters", "threads_per_block", "--strategies", "granularity", "--order", "paper")
    for backend, kernels in (("cuda", ()), ("opencl", ("rows.out/rows_opencl.c",))):
        done = CliRunner().invoke(cli, ["optimize", "rows.mf", *quick, "--backend", backend])
        assert done.exit_code == 0, done.output
        for source in ("main.c", *(kernels if compiler[0] == "gcc" else ())):
            flags = (*WARNINGS, "-Irows.out", "-Irows.out/include", "-Wno-vla-parameter")
            standard = ("gcc", "-std=gnu11", "-Wno-unused-function") if source != "main.c" else compiler
            succeed([*standard, *flags, "-Wno-uninitialized", "-fsyntax-only", source])
