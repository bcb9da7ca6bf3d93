"""``--backend ptx``: the PTX of every leaf in a C file that speaks to the driver, built by a C compiler alone.

LLVM makes the PTX from the IR that has exactly the meaning of the CUDA text without contraction, for the oldest GPU
that is supported unless told otherwise; the driver compiles it for the one it finds.  A leaf whose PTX would call the
device library of CUDA has no code.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.analysis.analyses import NVIDIA, Analyses, Hardware
from metafork.comprehensive.emit import jit_text
from metafork.comprehensive.emit.leaf_code import EMBEDDED_TARGET, LeafCode, kernel_of, ptx_code
from metafork.comprehensive.emit.targets.target import (
    Attempt,
    NoCodeError,
    Package,
    Target,
    TargetOptionError,
    checked_arguments,
    embedded,
    launching_a_function,
    ptx_names,
)
from metafork.comprehensive.tree.schedule_tree import Variant

_OPENING = """\
 *   cc -std=gnu11 -O2 -ffp-contract=off -I"$(metafork include-dir)" -c @NAME@_ptx.c      (link with -ldl -lpthread)
 */
#define METAFORK_TARGET_HEADER "metafork/target_ptx.h"
"""

_LIBRARY = """\
find_package(Threads REQUIRED)
add_library(${metafork_target} @NAME@_ptx.c metafork_runtime_ptx.c @NAME@_host.c)
set_property(SOURCE @NAME@_ptx.c APPEND PROPERTY COMPILE_DEFINITIONS METAFORK_RUNTIME_APART)
target_compile_options(${metafork_target} PRIVATE -ffp-contract=off)
target_link_libraries(${metafork_target} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
set(metafork_libraries "-ldl -lpthread")
"""

_DEPENDENCIES = """\
include(CMakeFindDependencyMacro)
find_dependency(Threads)
"""


class Ptx(Struct, frozen=True):
    """Kernels are strings, compiled by the driver when they are first needed on a device.

    ``architecture`` is the oldest GPU that they run on.  ``jit`` says whether NVRTC compiles some at run time.
    """

    architecture: str = EMBEDDED_TARGET
    name: str = "ptx"
    hardware: Hardware = NVIDIA
    headers: tuple[str, ...] = (
        "arrays.h", "borrowed.h", "byte_sets.h", "dispatch.h", "dispatching.h", "exact.h", "host.h", "launch.h",
        "library.h", "machine.h", "machine_query.h", "no_streams.h", "nvtx.h", "residents.h", "row_tables.h",
        "small_floats.h", "streams.h", "target_ptx.h",
    )  # fmt: skip
    own_headers: Mapping[str, str] = field(default_factory=dict)
    jit: bool = False

    def jitting(self, *, allow_fma: bool) -> Target:
        """Return the back end whose kernels are also compiled at run time; nothing is contracted."""
        own = {**self.own_headers, "device_text.h": jit_text.device_text_header()}
        more = (name for name in jit_text.HEADERS if name not in self.headers)
        return replace(self, headers=(*self.headers, *more), own_headers=own, jit=True)

    def aimed_at(self, architecture: str) -> Target:
        """Return the back end whose PTX is for that GPU and newer ones."""
        return replace(self, architecture=architecture)

    def leaf_code(self, variant: Variant, analyses: Analyses | None) -> LeafCode:
        """Return the PTX of a leaf.  Raises ``NoCodeError``, and ``TargetError`` for an unknown architecture."""
        from metafork.llvm.addresses import whole_grid_ptx_of_choice
        from metafork.llvm.ptx_target import ExternalFunctionError
        from metafork.printing.cuda import kernel_text

        kernel = kernel_of(variant, analyses)
        try:
            strategies = variant.version.ir_strategies
            texts = ptx_code(kernel, strategies, self.architecture, analyses, whole_grid_ptx_of_choice)
        except ExternalFunctionError as error:
            raise NoCodeError(str(error)) from error
        code = checked_arguments(LeafCode(kernel, kernel_text(kernel), *texts))
        return jit_text.with_text(variant, code) if self.jit else code

    def device_name(self, stem: str) -> str:
        """Return ``NAME_ptx.c``."""
        return f"{stem}_ptx.c"

    def opening(self, stem: str) -> str:
        """Return the command for a C compiler."""
        return _OPENING.replace("@NAME@", stem)

    def kernel(self, code: LeafCode) -> str:
        """Return the PTX as a string, or the text that NVRTC compiles."""
        return jit_text.jit_definition(code, "-fmad=false") if code.statics else embedded(code)

    def launching(self, attempt: Attempt) -> list[str]:
        """Return the launch by the driver, which compiles the kernel that is launched when it is asked for first."""
        if attempt.code.statics:
            functions = "&metafork_own->kernels[0], &metafork_own->kernels[1]"
            own = jit_text.launching_compiled(attempt.code, attempt.values, functions)
            return [*own, *chain(*launching_a_function(attempt))]
        whole, large = ptx_names(attempt.code)
        return [
            f"    const void *const metafork_functions[] = {{&{whole}, &{large}}};",
            *chain(*launching_a_function(attempt)),
        ]

    def package(self, stem: str, *, allow_fma: bool) -> Package:
        """Return the build by the C compiler.  Raises ``TargetOptionError`` where contraction is asked for."""
        if allow_fma:
            raise TargetOptionError("--backend ptx never contracts a*b + c; --allow-fma is for --backend cuda")
        return Package("C", _LIBRARY.replace("@NAME@", stem), _DEPENDENCIES)


TARGET = Ptx()
