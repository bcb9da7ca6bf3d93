"""``--backend cuda``: kernels as CUDA text for nvcc, and for any C++17 compiler as the CPU build."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.analysis.analyses import NVIDIA, Analyses, Hardware
from metafork.comprehensive.emit import jit_text
from metafork.comprehensive.emit.leaf_code import LeafCode, leaf_code
from metafork.comprehensive.emit.targets.target import (
    Attempt,
    Package,
    Target,
    checked_arguments,
    embedded,
    launching_a_function,
    loading,
    pointers,
)
from metafork.comprehensive.tree.schedule_tree import Variant
from metafork.printing.cuda import kernel_text

_OPENING = """\
 *   nvcc -arch=native -fmad=false -I"$(metafork include-dir)" -c @NAME@.cu
 *   g++ -std=c++17 -ffp-contract=off -x c++ -DMETAFORK_CPU -I"$(metafork include-dir)" -c @NAME@.cu
 */
"""

_LIBRARY = """\
if(NOT DEFINED METAFORK_CPU)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(metafork_cpu_default OFF)
  else()
    set(metafork_cpu_default ON)
    message(STATUS "@NAME@: no CUDA compiler found, building for the CPU")
  endif()
endif()
option(METAFORK_CPU "Run kernels on the CPU" ${metafork_cpu_default})
option(METAFORK_CHECK "Check every access to shared memory (CPU build)" OFF)

if(METAFORK_CPU)
  add_library(${metafork_target} @NAME@.cu metafork_runtime.cu @NAME@_host.c)
  set_source_files_properties(@NAME@.cu metafork_runtime.cu PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-x;c++")
  target_compile_definitions(${metafork_target} PRIVATE METAFORK_CPU)
  if(METAFORK_CHECK)
    target_compile_definitions(${metafork_target} PRIVATE METAFORK_CHECK)
  endif()
  target_compile_options(${metafork_target} PRIVATE -ffp-contract=off)
  set(metafork_libraries -lstdc++)
else()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80)
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  add_library(${metafork_target} @NAME@.cu metafork_runtime.cu @NAME@_host.c)
  set_source_files_properties(@NAME@.cu metafork_runtime.cu PROPERTIES LANGUAGE CUDA)
@FLAGS@  target_compile_options(${metafork_target} PRIVATE
    $<$<COMPILE_LANGUAGE:C>:-ffp-contract=off>)
  target_link_libraries(${metafork_target} PUBLIC CUDA::cudart -lstdc++) # a program in C links no C++ by itself
  set(metafork_libraries "-L${CUDAToolkit_LIBRARY_DIR} -lcudart -lstdc++")
endif()
set_property(SOURCE @NAME@.cu APPEND PROPERTY COMPILE_DEFINITIONS METAFORK_RUNTIME_APART)
"""

_FLAG = """\
  target_compile_options(${{metafork_target}} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:{}>)
"""

_REMARK = "  METAFORK_CPU=ON builds for the processor, without CUDA."
_DEPENDENCIES = """\
set(METAFORK_CPU_BUILD ${METAFORK_CPU})
if(NOT METAFORK_CPU_BUILD)
  include(CMakeFindDependencyMacro)
  find_dependency(CUDAToolkit)
endif()
"""


class Cuda(Struct, frozen=True):
    """Kernels are functions of the ``.cu`` file; leaves of IR strategies are PTX in it, loaded by the runtime.

    ``jit`` is the flag for contraction with which kernels are compiled at run time, ``None`` where none are.  With
    ``lines``, kernels say from which lines of the input they come, and the package has nvcc keep that.
    """

    name: str = "cuda"
    hardware: Hardware = NVIDIA
    headers: tuple[str, ...] = (
        "arrays.h", "borrowed.h", "byte_sets.h", "cpu_blocks.h", "device.h", "dispatch.h", "dispatching.h", "exact.h",
        "host.h", "launch.h", "library.h", "machine.h", "machine_query.h", "no_streams.h", "nvtx.h", "race.h",
        "residents.h", "row_tables.h", "small_floats.h", "streams.h", "target_cuda.h",
    )  # fmt: skip
    own_headers: Mapping[str, str] = field(default_factory=dict)
    jit: str | None = None
    lines: bool = False

    def with_lines(self) -> Target:
        """Return the back end whose kernels say from which lines of the input they come."""
        return replace(self, lines=True)

    def jitting(self, *, allow_fma: bool) -> Target:
        """Return the back end whose kernels are also compiled at run time, contracted as nvcc does where it may."""
        own = {**self.own_headers, "device_text.h": jit_text.device_text_header()}
        flag = "-fmad=true" if allow_fma else "-fmad=false"
        more = (name for name in jit_text.HEADERS if name not in self.headers)
        return replace(self, headers=(*self.headers, *more), own_headers=own, jit=flag)

    def aimed_at(self, architecture: str) -> Target:
        """Return itself: what the kernels are compiled for is said to nvcc."""
        return self

    def leaf_code(self, variant: Variant, analyses: Analyses | None) -> LeafCode:
        """Return the CUDA text of a leaf, and its PTX where IR strategies were applied.  Raises ``NoCodeError``."""
        code = checked_arguments(leaf_code(variant, analyses))
        return code if self.jit is None else jit_text.with_text(variant, code)

    def device_name(self, stem: str) -> str:
        """Return ``NAME.cu``."""
        return f"{stem}.cu"

    def opening(self, stem: str) -> str:
        """Return the commands for nvcc and for the CPU build."""
        return _OPENING.replace("@NAME@", stem)

    def kernel(self, code: LeafCode) -> str:
        """Return the CUDA text, with PTX beside it where the device runs that."""
        if code.statics:
            return f"#if !defined(METAFORK_CPU)\n{jit_text.jit_definition(code, self.jit or '')}#endif\n"
        text = kernel_text(code.kernel, with_lines=True) if self.lines else code.text
        if code.ptx is None:
            return text
        return f"#if defined(METAFORK_CPU)\n{text}#else\n{embedded(code)}#endif\n"

    def launching(self, attempt: Attempt) -> list[str]:
        """Return the launch by the CUDA runtime, and that of the CPU build."""
        if attempt.code.statics:
            loaded = ", ".join(f"metafork_own->kernels[{number}].kernel" for number in (0, 1))
            return [
                "#if defined(METAFORK_CPU)",
                "    (void)metafork_go;",
                "    return METAFORK_EUNSUPPORTED;",
                "#else",
                *jit_text.launching_compiled(attempt.code, attempt.values, loaded),
                *chain(*launching_a_function(attempt)),
                "#endif",
            ]
        ours = launching_ours(attempt)
        if attempt.code.ptx is None:
            return ours
        from_ptx = [*loading(attempt.code), *chain(*launching_a_function(attempt))]
        return ["#if defined(METAFORK_CPU)", *ours, "#else", *from_ptx, "#endif"]

    def package(self, stem: str, *, allow_fma: bool) -> Package:
        """Return the build by nvcc, and by the C++ compiler with ``METAFORK_CPU``."""
        flags = [*([] if allow_fma else ["-fmad=false"]), *(["-lineinfo"] if self.lines else [])]
        library = _LIBRARY.replace("@FLAGS@", "".join(map(_FLAG.format, flags)))
        if self.jit is not None:
            cudart = "PUBLIC CUDA::cudart"
            library = library.replace(cudart, f"{cudart} ${{CMAKE_DL_LIBS}}").replace("-lcudart", "-lcudart -ldl")
        return Package("C CXX", library.replace("@NAME@", stem), _DEPENDENCIES, _REMARK)


def launching_ours(attempt: Attempt) -> list[str]:
    """Return the statements that check and launch a kernel that the file's compiler makes (``METAFORK_KERNEL``)."""
    name = attempt.code.kernel.name
    return [
        f"    METAFORK_CHECK_KERNEL({name});",
        *attempt.trace,
        *pointers(attempt),
        f"    return METAFORK_LAUNCH_KERNEL({name});",
    ]


TARGET = Cuda()
