"""``--backend opencl``: kernels as OpenCL C 1.2 in strings of a C file, built for the device when first needed.

The C file speaks to the OpenCL library alone, which is opened when a device is first needed.  Leaves of IR strategies
are PTX, shuffles need lanes that OpenCL 1.2 does not have (nor does any later version say which thread is which lane
of a sub-group), and functions that it does not give exactly are not called: such leaves have no code.  What else a
kernel needs of the device (doubles, exact division) is asked when it is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from metafork.analysis.analyses import Analyses, Hardware
from metafork.comprehensive.emit.identifiers import c_string
from metafork.comprehensive.emit.leaf_code import LeafCode, argument_bytes, kernel_of
from metafork.comprehensive.emit.targets.target import Attempt, Handles, NoCodeError, Package, Target, TargetOptionError
from metafork.comprehensive.tree.schedule_tree import Variant
from metafork.ir.kernel import Kernel
from metafork.printing.opencl import NoOpenClError, OpenClText, kernel_text

_OPENING = """\
 *   cc -std=gnu11 -O2 -ffp-contract=off -I"$(metafork include-dir)" -c @NAME@_opencl.c   (link with -ldl -lpthread)
 */
#define METAFORK_TARGET_HEADER "metafork/target_opencl.h"
"""

_LIBRARY = """\
find_package(Threads REQUIRED)
add_library(${metafork_target} @NAME@_opencl.c metafork_runtime_opencl.c @NAME@_host.c)
set_property(SOURCE @NAME@_opencl.c APPEND PROPERTY COMPILE_DEFINITIONS METAFORK_RUNTIME_APART)
target_compile_options(${metafork_target} PRIVATE -ffp-contract=off)
target_link_libraries(${metafork_target} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
set(metafork_libraries "-ldl -lpthread")
"""

_DEPENDENCIES = """\
include(CMakeFindDependencyMacro)
find_dependency(Threads)
"""

_HANDLES = Handles(
    "cl", "struct _cl_command_queue *", "struct _cl_mem *", ("struct _cl_command_queue;", "struct _cl_mem;")
)

_HARDWARE = Hardware(ptx=False)


class OpenCl(Struct, frozen=True):
    """Kernels are strings; each is built twice at most, for grids of the program and for those that it walks."""

    name: str = "opencl"
    hardware: Hardware = _HARDWARE
    headers: tuple[str, ...] = (
        "arrays.h", "borrowed.h", "byte_sets.h", "dispatch.h", "dispatching.h", "exact.h", "host.h", "launch.h",
        "library.h", "machine.h", "machine_query.h", "no_streams.h", "nvtx.h", "program_cache.h", "residents.h",
        "row_tables.h", "small_floats.h", "streams.h", "target_opencl.h",
    )  # fmt: skip
    own_headers: Mapping[str, str] = field(default_factory=dict)
    handles: Handles = _HANDLES

    def aimed_at(self, architecture: str) -> Target:
        """Refuse ``--target``."""
        raise TargetOptionError("--backend opencl builds kernels for the device that it finds; leave --target out")

    def leaf_code(self, variant: Variant, analyses: Analyses | None) -> LeafCode:
        """Return the OpenCL C text of a leaf.  Raises ``NoCodeError``."""
        if variant.version.ir_strategies:
            raise NoCodeError("its kernel is PTX")
        kernel = kernel_of(variant, analyses)
        return LeafCode(kernel, _text(kernel).text)

    def device_name(self, stem: str) -> str:
        """Return ``NAME_opencl.c``."""
        return f"{stem}_opencl.c"

    def opening(self, stem: str) -> str:
        """Return the command for a C compiler."""
        return _OPENING.replace("@NAME@", stem)

    def kernel(self, code: LeafCode) -> str:
        """Return the text as a string, and the two kernels that are built of it."""
        name = code.kernel.name
        made = _text(code.kernel)
        rows = "\n".join(f"    {c_string(line)}" for line in made.text.splitlines(keepends=True))
        # Each array is an object and where it begins there, both 8 bytes; shared memory is an argument too.
        taken = argument_bytes(code.kernel, numbers=2) + 8 * made.shared
        common = f"{c_string(name)}, {name}_text, {_needs(made)}, {int(made.shared)}, {taken}"
        both = ", ".join(f"{{{common}, {large}, METAFORK_NOT_BUILT}}" for large in (0, 1))
        return (
            f"static const char {name}_text[] =\n{rows};\n"
            f"static metafork_opencl_kernel {_kernels(code.kernel)}[] = {{{both}}};\n"
        )

    def launching(self, attempt: Attempt) -> list[str]:
        """Return the launch on the queue that the attempt is given."""
        count = len(attempt.code.kernel.scalars)
        scalars, arrays = attempt.arguments[:count], attempt.arguments[count:]
        sizes = (str(one.type.size) for one in attempt.code.kernel.scalars)
        kernels = _kernels(attempt.code.kernel)
        return [
            f"    const int metafork_error = metafork_opencl_check({kernels}, metafork_s, metafork_stream);",
            "    if (metafork_error != METAFORK_OK || !metafork_go) return metafork_error;",
            *attempt.trace,
            f"    const void *const metafork_scalars[] = {{{_list(f'&{one}' for one in scalars)}}};",
            f"    const size_t metafork_sizes[] = {{{_list(sizes, '0')}}};",
            f"    const void *const metafork_arrays[] = {{{_list(arrays)}}};",
            "    const metafork_opencl_arguments metafork_arguments = {",
            f"        metafork_scalars, metafork_sizes, {len(scalars)}, metafork_arrays, {len(arrays)}}};",
            f"    return metafork_opencl_launch({kernels}, metafork_s, metafork_stream, &metafork_arguments);",
        ]

    def package(self, stem: str, *, allow_fma: bool) -> Package:
        """Return the build by the C compiler.  Raises ``TargetOptionError`` where contraction is asked for."""
        if allow_fma:
            raise TargetOptionError("--backend opencl never contracts a*b + c; --allow-fma is for --backend cuda")
        return Package("C", _LIBRARY.replace("@NAME@", stem), _DEPENDENCIES)


def _text(kernel: Kernel) -> OpenClText:
    try:
        return kernel_text(kernel)
    except NoOpenClError as error:
        raise NoCodeError(str(error)) from error


def _needs(text: OpenClText) -> str:
    """Return what a device must give, as the header names it."""
    asked = {"DOUBLES": text.doubles, "FLOATS": text.floats, "DIVIDES": text.divides, "ATOMICS_64": text.atomics_64}
    return " | ".join(f"METAFORK_CL_{name}" for name, needed in asked.items() if needed) or "0"


def _kernels(kernel: Kernel) -> str:
    """Return the name of the variable that holds a kernel's two builds."""
    return f"{kernel.name}_cl"


def _list(parts: Iterable[str], nothing: str = "NULL") -> str:
    """Return the elements of an array of C, which has one at least."""
    return ", ".join(parts) or nothing


TARGET = OpenCl()
