"""Files that a compiler is given with ``-D`` and ``-I``: every command reads them, and what is written builds."""

import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli
from tests.runtime.compiling import CPLUSPLUS, C, run, succeed

QUICK = ("--counters", "threads_per_block", "--strategies", "granularity")
SIZES = "#ifndef ROWS\n#define ROWS 3\n#endif\nstatic inline real twice(real v) { return 2 * v; }\n"
INPUT = """
#ifndef WIDTH
#define WIDTH 64
#endif
#ifdef USE_DOUBLE
typedef double real;
#else
typedef float real;
#endif
#include "sizes.h"
void scale(int n, real x[n])
{
  meta_schedule meta_block(WIDTH) { meta_for (int i = 0; i < n; i++) x[i] = twice(x[i]) + ROWS + WIDTH; }
}
"""
MAIN = """
#include <stdio.h>
#ifndef real
#define real float
#endif
void scale(int n, real x[]);
int main(void)
{
  real x[100];
  for (int k = 0; k < 100; k++) x[k] = k / (real)3;
  scale(100, x);
  for (int k = 0; k < 100; k++) printf("%a\\n", (double)x[k]);
}
"""
CMAKE = shutil.which(str(Path(sys.executable).parent / "cmake")) or shutil.which("cmake")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my inc").mkdir()
    Path("my inc/sizes.h").write_text(SIZES)
    Path("scale.mf").write_text(INPUT)
    Path("main.c").write_text(MAIN)
    return tmp_path


def command(*words, status=0):
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == status, done.output
    return done


def compiled_host(*definitions):
    flags = (*definitions, "-DMETAFORK_CPU", "-Imy inc", "-Iscale.out/include")
    return run([*C, *flags, "-c", "scale.out/scale_host.c", "-o", "host.o"])


@pytest.mark.parametrize("given", [(), ("-D", "WIDTH=32", "-DUSE_DOUBLE", "-DROWS=5")])
def test_what_is_written_computes_what_the_compiler_of_the_input_would(folder, given):
    command("optimize", "scale.mf", *QUICK, "-I", "my inc", *given)
    real = "double" if given else "float"
    assert f"{real} x[n]" in Path("scale.out/scale.h").read_text()
    assert compiled_host().returncode == 0
    succeed([*CPLUSPLUS, "-Iscale.out", "-Iscale.out/include", "-c", "scale.out/scale.cu", "-o", "device.o"])
    succeed([*C, f"-Dreal={real}", "main.c", "-c", "-o", "main.o"])
    succeed(["g++", "host.o", "device.o", "main.o", "-o", "ours"])
    words = ("-Dmeta_for=for", "-Dmeta_schedule=", "-Dmeta_block(n)=", "-Imy inc", *given)
    succeed([*C, *words, "-x", "c", "-c", "scale.mf", "-o", "serial.o"])
    succeed(["gcc", "serial.o", "main.o", "-o", "theirs"])
    done = succeed(["./ours"], env={"METAFORK_TRACE": "1"})
    assert "scale_k0 leaf 1" in done.stderr
    assert done.stdout == succeed(["./theirs"]).stdout


def test_a_compiler_that_is_told_otherwise_refuses_what_was_written(folder):
    command("optimize", "scale.mf", *QUICK, "-I", "my inc")
    assert compiled_host("-DWIDTH=64", "-DROWS=3").returncode == 0
    for other in ("WIDTH=32", "USE_DOUBLE", "ROWS=4"):
        done = compiled_host(f"-D{other}")
        assert f"give -D{other.partition('=')[0]}=... to metafork optimize too" in done.stderr


def test_every_command_reads_such_files(folder):
    given = ("-Imy inc", "-D", "WIDTH=32")
    command("check", *given, "scale.mf")
    assert "32" in command("apply", "granularity", "scale.mf", *given).stdout
    command("explain", "scale.mf", *given)
    assert "MF0018" in command("check", "scale.mf", status=1).stderr
    for wrong in ("1x", "", "a b", "-x"):
        command("check", *given, "-D", wrong, "scale.mf", status=2)


OF_HEADERS = """
#include <math.h>
#include <stdio.h>
#define SQUARE(v) ((v) * (v))
void scale(int n, float x[n])
{
  meta_schedule meta_block(8) {
    meta_for (int i = 0; i < n; i++)
      x[i] = i % 5 ? fminf(sqrtf(x[i]) + M_PI, INFINITY) + SQUARE(M_E) : HUGE_VAL;
#line 7 "other.c"
  }
}
"""


def test_what_a_preprocessor_has_written_is_read(folder):
    Path("scale.c").write_text(OF_HEADERS)
    Path("scale.mf").write_text(succeed(["gcc", "-E", "scale.c"]).stdout)
    command("optimize", "scale.mf", *QUICK)
    assert compiled_host().returncode == 0
    succeed([*CPLUSPLUS, "-Iscale.out", "-Iscale.out/include", "-c", "scale.out/scale.cu", "-o", "device.o"])
    succeed(["gcc", "main.c", "host.o", "device.o", "-lm", "-lstdc++", "-o", "ours"])
    words = ("-Dmeta_for=for", "-Dmeta_schedule=", "-Dmeta_block(n)=")
    succeed(["gcc", "-std=gnu11", *words, "scale.c", "main.c", "-lm", "-o", "theirs"])
    done = succeed(["./ours"], env={"METAFORK_TRACE": "1"})
    assert "scale_k0 leaf 1" in done.stderr
    assert done.stdout == succeed(["./theirs"]).stdout


@pytest.mark.slow
def test_verify_and_cmake_know_the_folders(folder):
    given = ("-Imy inc", "-D", "WIDTH=32")
    done = command("verify", *given, *QUICK, "--points", "2", "--registers", "none", "scale.mf")
    assert "verified" in done.stdout
    command("optimize", *given, *QUICK, "scale.mf", "-o", "out/scale.out")
    succeed([CMAKE, "-S", "out/scale.out", "-B", "b", "-DMETAFORK_CPU=ON"])
    succeed([CMAKE, "--build", "b"])
