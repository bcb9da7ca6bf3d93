"""``--backend hip``: the CUDA text of kernels, compiled by HIP's compiler; ``metafork/hip.h`` maps the runtime's names.

Leaves of IR strategies are PTX, which HIP does not have: they have no code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses, Hardware, NotCountedError
from metafork.comprehensive.emit.leaf_code import LeafCode, kernel_of
from metafork.comprehensive.emit.targets.cuda import launching_ours
from metafork.comprehensive.emit.targets.target import (
    Attempt,
    NoCodeError,
    Package,
    Target,
    TargetOptionError,
    for_machine,
)
from metafork.comprehensive.tree.schedule_tree import Variant
from metafork.ir.ir_strategies import IrStrategy
from metafork.ir.kernel import Kernel
from metafork.printing.cuda import kernel_text
from metafork.runtime.machine import PRESETS

_OPENING = """\
 *   hipcc -std=c++17 -O3 -ffp-contract=off -I"$(metafork include-dir)" -c @NAME@_hip.cpp
 */
#define METAFORK_HIP 1
"""

_LIBRARY = """\
cmake_minimum_required(VERSION 3.21)
if(NOT DEFINED CMAKE_HIP_ARCHITECTURES)
  set(CMAKE_HIP_ARCHITECTURES @ARCHITECTURE@)
endif()
enable_language(HIP)
find_package(hip REQUIRED)
add_library(${metafork_target} @NAME@_hip.cpp metafork_runtime_hip.cpp @NAME@_host.c)
set_property(SOURCE @NAME@_hip.cpp APPEND PROPERTY COMPILE_DEFINITIONS METAFORK_RUNTIME_APART)
set_source_files_properties(@NAME@_hip.cpp metafork_runtime_hip.cpp PROPERTIES LANGUAGE HIP)
target_compile_options(${metafork_target} PRIVATE -ffp-contract=off@LINES@)
target_link_libraries(${metafork_target} PUBLIC hip::host)
set(metafork_libraries "-L${hip_LIB_INSTALL_DIR} -lamdhip64 -lstdc++")
set_target_properties(${metafork_target} PROPERTIES HIP_STANDARD 17)
"""

_DEPENDENCIES = """\
include(CMakeFindDependencyMacro)
find_dependency(hip)
"""


class Hip(Struct, frozen=True):
    """Kernels are functions of ``NAME_hip.cpp``, compiled by the CMake package, and counted, for ``architecture``."""

    architecture: str = "gfx90a"
    name: str = "hip"
    headers: tuple[str, ...] = (
        "arrays.h", "borrowed.h", "byte_sets.h", "device.h", "dispatch.h", "dispatching.h", "exact.h", "hip.h",
        "host.h", "launch.h", "machine.h", "machine_query.h", "no_streams.h", "nvtx.h", "residents.h", "row_tables.h",
        "small_floats.h", "streams.h", "target_cuda.h",
    )  # fmt: skip
    own_headers: Mapping[str, str] = field(default_factory=dict)
    follows_machine: bool = True
    lines: bool = False

    def with_lines(self) -> Target:
        """Return the back end whose kernels say from which lines of the input they come."""
        return replace(self, lines=True)

    @property
    def hardware(self) -> Hardware:
        """Return waves of 64 for GCN and CDNA (``gfx9..`` and older), of 32 for RDNA, and the registers of objects.

        Objects are for one GPU, and so are trees if its limits are known.
        """
        width = 64 if int(self.architecture[3:-2]) < 10 else 32
        machines = self.architecture if self.architecture in PRESETS else "all"
        return Hardware(width, partial(_registers, self.architecture), ptx=False, machines=machines)

    def aimed_at(self, architecture: str) -> Target:
        """Return the back end whose CMake package compiles for that GPU.  Raises ``TargetOptionError``."""
        if not re.fullmatch(r"gfx[0-9]+[0-9a-f]{2}", architecture):
            raise TargetOptionError(f"{architecture} is no target of --backend hip; targets look like gfx90a")
        return replace(self, architecture=architecture)

    def leaf_code(self, variant: Variant, analyses: Analyses | None) -> LeafCode:
        """Return the CUDA text of a leaf.  Raises ``NoCodeError``."""
        if variant.version.ir_strategies:
            raise NoCodeError("its kernel is PTX")
        kernel = kernel_of(variant, analyses)
        return LeafCode(kernel, kernel_text(kernel))

    def device_name(self, stem: str) -> str:
        """Return ``NAME_hip.cpp``."""
        return f"{stem}_hip.cpp"

    def opening(self, stem: str) -> str:
        """Return the command for hipcc."""
        return _OPENING.replace("@NAME@", stem)

    def kernel(self, code: LeafCode) -> str:
        """Return the CUDA text."""
        return kernel_text(code.kernel, with_lines=True) if self.lines else code.text

    def launching(self, attempt: Attempt) -> list[str]:
        """Return the launch by the runtime."""
        return launching_ours(attempt)

    def package(self, stem: str, *, allow_fma: bool) -> Package:
        """Return the build by HIP's compiler.  Raises ``TargetOptionError`` where contraction is asked for."""
        if allow_fma:
            raise TargetOptionError("--backend hip never contracts a*b + c; --allow-fma is for --backend cuda")
        library = _LIBRARY.replace("@NAME@", stem).replace("@ARCHITECTURE@", self.architecture)
        library = library.replace("@LINES@", " -gline-tables-only" if self.lines else "")
        return Package("C CXX", library, _DEPENDENCIES)


def _registers(architecture: str, kernel: Kernel, ir_strategies: tuple[IrStrategy, ...]) -> int:
    """Return the registers that HIP's compiler gives a thread, with those for which there were none."""
    from metafork.llvm.amdgpu_target import amdgpu_object
    from metafork.llvm.ptx_target import TargetError

    try:
        found = amdgpu_object(kernel, ir_strategies, architecture).resources
    except TargetError as error:
        raise NotCountedError(str(error)) from error
    return found.vgprs + found.spilled


TARGET = Hip()


def gpu_of(machine: str) -> str:
    """Return the GPU of AMD's that ``--machine`` names, else the default."""
    found = for_machine(TARGET, machine)
    assert isinstance(found, Hip)
    return found.architecture
