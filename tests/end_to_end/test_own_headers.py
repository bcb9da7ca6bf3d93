"""An input with headers of its own, one of them named like the generated header."""

import subprocess
import sys
from pathlib import Path

import pytest

METAFORK = Path(sys.executable).with_name("metafork")

HEADER = """
#ifndef MEAN_H
#define MEAN_H
#include "sizes.h"
typedef struct { int shift; } options;
void mean(int n, int B, const options *o, const int x[], int y[]);
#endif
"""
INPUT = """
#include "mean.h"
void mean(int n, int B, const options *o, const int x[n], int y[n])
{
  int blocks = (n - 2) / B, s = o->shift;
  meta_schedule {
    meta_for (int i = 0; i < blocks; i++)
      meta_for (int u = 0; u < B; u++) {
        int p = i * B + u;
        y[p + 1] = (x[p] + x[p + 1] + x[p + 2]) / WIDTH + s;
      }
  }
}
"""
MAIN = """
#include <stdio.h>
#include "mean.h"
int main(void)
{
  int x[40], y[40] = {0};
  for (int k = 0; k < 40; k++) x[k] = k * k;
  options o = {7};
  mean(40, 4, &o, x, y);
  for (int k = 0; k < 40; k++) printf("%d\\n", y[k]);
  return 0;
}
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mean")
    (folder / "sizes.h").write_text("#define WIDTH 3\n")
    (folder / "mean.h").write_text(HEADER)
    (folder / "mean.mf").write_text(INPUT)
    (folder / "main.c").write_text(MAIN)
    options = ["--counters", "threads_per_block", "--strategies", "granularity", "--depfile", "mean.d"]
    run(METAFORK, "optimize", "mean.mf", *options, cwd=folder)
    return folder


@pytest.mark.parametrize("own", [["-I."], ["-Imean.out", "-I."], ["-I.", "-Imean.out"]])
@pytest.mark.sampled(1)
def test_the_host_file_reaches_the_header_of_the_input(folder, own):
    c = ["gcc", "-std=gnu11", "-DMETAFORK_CPU", *own, "-Imean.out/include"]
    run(*c, "-c", "mean.out/mean_host.c", "-o", "host.o", cwd=folder)
    cxx = ["g++", "-std=c++17", "-x", "c++", "-DMETAFORK_CPU", "-Imean.out", "-Imean.out/include"]
    run(*cxx, "-c", "mean.out/mean.cu", "-o", "device.o", cwd=folder)
    run("gcc", "-I.", "-c", "main.c", "-o", "main.o", cwd=folder)
    run("gcc", "host.o", "device.o", "main.o", "-lm", "-o", "ours", cwd=folder)
    elision = ["-Dmeta_for=for", "-Dmeta_schedule="]
    run("gcc", "-std=gnu11", *elision, "-x", "c", "mean.mf", "main.c", "-o", "theirs", cwd=folder)
    done = run("./ours", cwd=folder, env={"METAFORK_TRACE": "1"})
    assert done.stdout == run("./theirs", cwd=folder).stdout
    assert "mean_k0 leaf 1" in done.stderr


def test_users_reach_the_generated_header(folder):
    (folder / "user.c").write_text('#include "mean.h"\nint (*chosen)() = mean_k0_select;\n')
    (folder / "elsewhere").mkdir()
    (folder / "user.c").rename(folder / "elsewhere" / "user.c")
    own = ["-Imean.out", "-Imean.out/include"]
    run("gcc", "-std=gnu11", *own, "-c", "elsewhere/user.c", "-o", "user.o", cwd=folder)


def test_outputs_depend_on_the_headers(folder):
    targets, sources = (folder / "mean.d").read_text().split(": ")
    assert "mean.out/mean.cu" in targets
    assert sources.split() == ["mean.mf", "mean.h", "sizes.h"]
