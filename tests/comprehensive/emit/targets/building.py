"""What back ends that a C compiler alone builds have in common: interfaces, packages, several files in one program."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.comprehensive.emit.targets.programs import EXAMPLES, LIBRARIES, program
from tests.runtime.compiling import built_with_pkg_config, succeed

TWO = """
#include "smooth.h"
#include "center.h"
#include <dlfcn.h>
#include <stdio.h>
static float x[402], y[402], z[402], zero[402];
int main(int argc, char **argv) {
  void (*one)(int, int, int, const float *, float *) = 0;
  (void)argc, (void)one;
  for (int i = 0; i < 402; i++) x[i] = (float)i;
#ifdef LIBRARIES
  for (int i = 0; i < 2; i++) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return puts(dlerror()), 2;
    *(void **)&one = dlsym(library, "smooth");
    one(402, 2, 16, x, y);
    dlclose(library);
    if (y[5] != 5) return 1;
    y[5] = 0;
  }
  return 0;
#else
  (void)argv;
  smooth(402, 2, 16, x, y);
  center(402, 17, y, z);
  return y[5] != 5 || z[5] == zero[5];
#endif
}
"""


@dataclass(frozen=True)
class TwoFiles:
    """A program of two files, one that loads one of them as a library, and the library."""

    main: Path
    loader: Path
    library: Path


def two_files(directory, backend):
    """Build a program of two files, and one that opens and closes a library twice."""
    objects, include = [], []
    for name in ("smooth", "center"):
        text, here = (EXAMPLES / f"{name}.mf").read_text(), directory / name
        program(text, f"{name}.mf", here, backend, counters=("shared_memory",), strategies=())
        objects += [here / "kernels.o", here / "host.o"]
        include += [f"-I{here}", f"-I{here / 'include'}"]
    source = directory / "main.c"
    source.write_text(TWO)
    found = TwoFiles(directory / "main", directory / "loader", directory / "libsmooth.so")
    succeed(["gcc", "-std=gnu11", *include, source, *objects, *LIBRARIES, "-o", found.main])
    sources = [directory / "smooth" / name for name in (backend.device_name("smooth"), "smooth_host.c")]
    succeed(["gcc", "-std=gnu11", "-shared", "-fPIC", *include, *sources, *LIBRARIES, "-o", found.library])
    succeed(["gcc", "-std=gnu11", "-DLIBRARIES", *include, source, *LIBRARIES, "-o", found.loader])
    return found


def interface(main, directory, backend, **options):
    """Build the product with a main program; return it, and the program as ``interface`` in the directory."""
    text = (EXAMPLES / "matmul.mf").read_text()
    one = program(text, "matmul.mf", directory, backend, static={"s": (3,), "B0": (4,)}, **options)
    objects = [directory / "kernels.o", directory / "host.o"]
    flags = ("-std=gnu11", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", *_include(one))
    succeed(["gcc", *flags, main, *objects, *LIBRARIES, "-o", directory / "interface"])
    return one


def leaves(one):
    """Return the numbers of a program's leaves."""
    return [leaf.id for leaf in one.result.schedules[0].leaves]


def used_by_cmake(one, directory):
    """Install the package of the product, and build programs with it that launch nothing; return that of CMake."""
    main = '#include "matmul.h"\nint main(void) { return matmul_k0_leaf_system(1) == 0; }\n'
    (directory / "main.c").write_text(main)
    (directory / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(user LANGUAGES C)\n"
        "find_package(matmul REQUIRED)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE matmul::matmul)\n"
    )
    prefix = directory / "prefix"
    succeed(["cmake", "-S", one.directory, "-B", directory / "package", f"-DCMAKE_INSTALL_PREFIX={prefix}"])
    succeed(["cmake", "--build", directory / "package", "--target", "install"])
    succeed(["cmake", "-S", directory, "-B", directory / "build", f"-DCMAKE_PREFIX_PATH={prefix}"])
    succeed(["cmake", "--build", directory / "build"])
    succeed([built_with_pkg_config(prefix, "matmul", directory / "main.c", directory / "by_pkg_config")])
    return directory / "build" / "main"


def refused_on_the_cpu(one, backend, directory):
    """Check that there is no CPU build, and that the compiler says what to do."""
    with pytest.raises(AssertionError, match="no CPU build: compile what metafork optimize --backend cuda writes"):
        succeed(["gcc", "-DMETAFORK_CPU", *_include(one), "-c", _device(one, backend), "-o", directory / "a.o"])


def compiled_as_c_and_as_cplusplus(one, backend, directory):
    """Compile the kernels' file as C of 1999 and as C++."""
    flags = ("-Wall", "-Wextra", "-Werror", *_include(one), "-c", _device(one, backend), "-o", directory / "a.o")
    succeed(["gcc", "-std=gnu99", *flags])
    succeed(["g++", "-x", "c++", "-std=c++17", *flags])


def _include(one):
    return f"-I{one.directory}", f"-I{one.directory}/include"


def _device(one, backend):
    return one.directory / backend.device_name("matmul")
