"""The generated CMakeLists.txt: FetchContent and find_package, from a build tree and from an installation."""

import os
import re
from pathlib import Path

import pytest

from metafork.comprehensive.emit import write_outputs
from metafork.comprehensive.emit.cmake_file import cmake_file
from metafork.comprehensive.emit.targets.cuda import TARGET as CUDA
from tests.comprehensive.emit.blend_example import code_of, example
from tests.runtime.compiling import CMAKE, built_with_pkg_config, needs_nvcc, succeed

DRIVER = Path(__file__).with_name("driver.c")
USER = """\
cmake_minimum_required(VERSION 3.18)
project(user LANGUAGES C CXX)
add_library(m INTERFACE)  # a target of the user's, which is not the library of that name
target_link_libraries(m INTERFACE no_such_library)
{find}
add_executable(user {driver})
target_link_libraries(user PRIVATE blend::blend)
"""
pytestmark = pytest.mark.skipif(CMAKE is None, reason="NO CMAKE: the generated package is not built here")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    out = tmp_path_factory.mktemp("package") / "blend.out"
    write_outputs(example(), out, code_of=code_of)
    return out


def built(directory, find, *settings):
    source, build = directory / "user", directory / "build"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(USER.format(find=find, driver=DRIVER))
    succeed([CMAKE, "-S", source, "-B", build, "-DMETAFORK_CPU=ON", *settings])
    succeed([CMAKE, "--build", build])
    done = succeed([build / "user", "blend", "100", "7"], env={**os.environ, "METAFORK_TRACE": "1"})
    assert done.stdout == "same\n"
    assert "metafork: blend_k0 leaf 1 " in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("shared", ["OFF", "ON"])
def test_fetch_content(shared, package, tmp_path):
    find = (
        f'include(FetchContent)\nFetchContent_Declare(blend SOURCE_DIR "{package}")\nFetchContent_MakeAvailable(blend)'
    )
    built(tmp_path, find, "-DMETAFORK_CHECK=ON", f"-DBUILD_SHARED_LIBS={shared}")
    (library,) = tmp_path.rglob("libmetafork_blend.*")
    assert library.suffix == (".so" if shared == "ON" else ".a")


def test_find_package_in_a_build_tree_and_when_installed(package, tmp_path):
    tree, prefix = tmp_path / "tree", tmp_path / "prefix"
    succeed([CMAKE, "-S", package, "-B", tree, "-DMETAFORK_CPU=ON", f"-DCMAKE_INSTALL_PREFIX={prefix}"])
    succeed([CMAKE, "--build", tree, "--target", "install"])
    (tmp_path / "a").mkdir()
    built(tmp_path / "a", "find_package(blend REQUIRED)", f"-Dblend_DIR={tree}")
    (tmp_path / "b").mkdir()
    built(tmp_path / "b", "find_package(blend REQUIRED)", f"-DCMAKE_PREFIX_PATH={prefix}")
    host = tmp_path / "host.c"
    host.write_text('#include "metafork/host.h"\nvoid keep(float *x) { metafork_keep(x); metafork_drop(x); }\n')
    succeed(["gcc", "-Wall", "-Werror", "-fsyntax-only", f"-I{prefix}/include", host])
    main = built_with_pkg_config(prefix, "blend", DRIVER, tmp_path / "by_pkg_config")
    assert succeed([main, "blend", "100", "7"]).stdout == "same\n"


@pytest.mark.slow
@needs_nvcc
def test_a_program_in_c_links_what_nvcc_compiled(package, tmp_path):
    user = USER.replace("C CXX", "C").format(find=f'add_subdirectory("{package}" blend)', driver=DRIVER)
    (tmp_path / "CMakeLists.txt").write_text(user)
    flags = ("-DMETAFORK_CPU=OFF", "-DCMAKE_CUDA_ARCHITECTURES=80")
    succeed([CMAKE, "-S", tmp_path, "-B", tmp_path / "build", *flags])
    succeed([CMAKE, "--build", tmp_path / "build"])


@pytest.mark.slow
@needs_nvcc
def test_the_cuda_build(package, tmp_path):
    succeed([CMAKE, "-S", package, "-B", tmp_path, "-DMETAFORK_CPU=OFF", "-DCMAKE_CUDA_ARCHITECTURES=80"])
    done = succeed([CMAKE, "--build", tmp_path, "--verbose"])
    assert re.search(r"-fmad=false .*blend\.cu", done.stdout)
    assert (tmp_path / "libmetafork_blend.a").exists()


def test_contraction_is_left_to_nvcc_only_where_it_is_allowed():
    assert "-fmad=false" in cmake_file("blend", "0u", CUDA.package("blend", allow_fma=False))
    assert "-fmad" not in cmake_file("blend", "0u", CUDA.package("blend", allow_fma=True))
