"""``MetaFork.cmake``: a C project whose libraries are made at build time, and only when their texts change."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.comprehensive.metafork_command import METAFORK, metafork
from tests.runtime.compiling import CMAKE, succeed

TEXT = """
#include "factor.h"
void NAME(int n, float x[n]) {
  meta_schedule meta_block(32) { meta_for (int i = 0; i < n; i++) x[i] *= FACTOR; }
}
"""
MAIN = """
#include "one.h"
#include "two.h"
#include <stdio.h>
int main(void) { float x[2] = {1, 2}; one(2, x); two(2, x); printf("%g %g", x[0], x[1]); return 0; }
"""
PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
list(APPEND CMAKE_MODULE_PATH "MODULES")
include(MetaFork)
metafork_add_library(kernels SOURCES one.mf two.mf MACHINE sm_80 KIND
  OPTIONS --static none --counters threads_per_block --strategies granularity)
add_executable(user main.c)
target_link_libraries(user PRIVATE kernels)
"""


@pytest.mark.slow
@pytest.mark.skipif(CMAKE is None, reason="NO CMAKE: MetaFork.cmake is not tested here")
@pytest.mark.parametrize(
    ("generator", "kind"), [("Unix Makefiles", "CPU"), ("Ninja", "CPU STATIC"), ("Ninja", "BACKEND opencl STATIC")]
)
def test_a_library_is_made_when_it_has_to_be(generator, kind, tmp_path):
    if generator == "Ninja" and shutil.which("ninja") is None:
        pytest.skip("NO NINJA: MetaFork.cmake is not tested with it")
    for name in ("one", "two"):
        (tmp_path / f"{name}.mf").write_text(TEXT.replace("NAME", name))
    (tmp_path / "factor.h").write_text("#define FACTOR 3\n")
    (tmp_path / "main.c").write_text(MAIN)
    modules = metafork("cmake-dir").stdout.strip()
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.replace("MODULES", modules).replace("KIND", kind))
    found = {**os.environ, "PATH": f"{METAFORK.parent}{os.pathsep}{os.environ['PATH']}"}
    succeed([CMAKE, "-S", ".", "-B", "build", "-G", generator], cwd=tmp_path, env=found)

    def built():
        return succeed([CMAKE, "--build", "build"], cwd=tmp_path, env=found).stdout.count("metafork build ")

    def printed():
        return subprocess.run([tmp_path / "build/user"], capture_output=True, text=True, check=True).stdout

    assert (built(), printed()) == (2, "9 18")
    assert built() == 0
    (tmp_path / "two.mf").write_text((tmp_path / "two.mf").read_text().replace("FACTOR;", "5 * FACTOR;"))
    assert (built(), printed()) == (1, "45 90")
    (tmp_path / "factor.h").write_text("#define FACTOR 1\n")
    assert (built(), printed()) == (2, "5 10")


def test_the_module_is_where_it_is_said():
    assert (Path(metafork("cmake-dir").stdout.strip()) / "MetaFork.cmake").is_file()
