"""The text of a leaf that NVRTC compiles at run time (``--jit``), for any values of its static parameters.

It is the leaf's kernel with these as constants: macros that whoever compiles it defines.  What is computed from them
alone is a constant too.  No strategy works on it: what an instance has of those (accumulators in registers, register
tiles) it has not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from importlib import resources

from msgspec.structs import replace

from metafork.comprehensive.case_discussion.typical_values import typical_values
from metafork.comprehensive.emit.identifiers import c_string
from metafork.comprehensive.emit.leaf_code import LeafCode
from metafork.comprehensive.tree.schedule_tree import ScheduleTree, Variant
from metafork.ir.kernel import Argument, Kernel
from metafork.ir.program import Expr, Program
from metafork.ir.rewriting import variables
from metafork.ir.static_values import static_parameters
from metafork.printing.cuda import constant_macro, kernel_text

MOST_STATIC = 16
"""Most static parameters of a text (``METAFORK_JIT_NAMES``)."""

HEADERS = ("jit.h", "library.h", "program_cache.h")
"""What generated files include for it, beside ``device_text.h``."""


def with_text(variant: Variant, code: LeafCode) -> LeafCode:
    """Return the code of a variant, with the text for any values where it has static parameters."""
    if variant.values or variant.version.ir_strategies:
        return code
    return replace(code, compiled=jit_code(variant.version.program, code.kernel))


def jit_code(program: Program, kernel: Kernel) -> LeafCode | None:
    """Return the text of a program's kernel with constants for its static parameters; ``None`` where it has none."""
    names = static_names(program)
    computed = (*program.derived, *kernel.host_scalars)
    read = {one.name for one in kernel.scalars}.union(*map(variables, kernel.block))
    for derived in reversed(computed):
        read |= variables(derived.definition) if derived.name in read else set()
    statics = tuple(one for one in program.parameters if one.name in names and one.name in read)[:MOST_STATIC]
    if not statics:
        return None
    constants: list[tuple[Argument, Expr | None]] = [(Argument(one.name, one.type), None) for one in statics]
    known = {one.name for one in statics}
    for derived in computed:
        if derived.name not in known and variables(derived.definition) <= known:
            constants.append((Argument(derived.name, derived.type), derived.definition))
            known.add(derived.name)
    scalars = tuple(one for one in kernel.scalars if one.name not in known)
    own = replace(kernel, name=f"{kernel.name}_jit", scalars=scalars)
    return LeafCode(own, kernel_text(own, constants), statics=tuple(one.name for one in statics))


def static_names(program: Program) -> frozenset[str]:
    """Return the parameters that kernels are compiled for at run time.

    Those are the extents of blocks and the trip counts for which there are typical values, and what the text lists.
    Others may change from launch to launch (``k`` of an elimination), and each value would be compiled.
    """
    typical = (name for values in typical_values(program) for name in values)
    return frozenset({*typical, *(name for name, _ in program.static)}) & static_parameters(program)


def with_note(tree: ScheduleTree) -> ScheduleTree:
    """Return the tree with a note which parameters' values its kernels are compiled for at run time."""
    names = [
        one.name
        for one in tree.program.parameters
        if any(one.name in static_names(leaf.version.program) for leaf in tree.leaves)
    ]
    said = f"NVRTC compiles kernels at run time, for any values of {', '.join(names)}"
    note = ("--jit", said if names else "no kernel: there are no static parameters")
    return dataclasses.replace(tree, notes=(*tree.notes, note))


def jit_definition(code: LeafCode, contraction: str) -> str:
    """Return the C definition of a text, one literal a line; ``contraction`` is the flag that the build has."""
    name = code.kernel.name
    names = ", ".join(c_string(one) for one in (name, f"{name}_large"))
    macros = ", ".join(c_string(constant_macro(one)) for one in code.statics)
    return (
        '#include "metafork/jit.h"\n'
        f"{_lines(f'{name}_text', code.text)}"
        f"static const char *const {name}_macros[] = {{{macros}}};\n"
        f"static metafork_jit {name} = {{\n"
        f"    {{{names}}}, {c_string(contraction)}, {name}_text, {len(code.statics)}, {name}_macros, NULL, 0}};\n"
    )


def launching_compiled(code: LeafCode, values: Sequence[str], functions: str) -> list[str]:
    """Return the statements of an attempt that get the kernels for some values; ``functions`` says what they are."""
    return [
        f"    const int64_t metafork_values[] = {{{', '.join(values)}}};",
        f"    metafork_jit_kernel *const metafork_own = metafork_jit_get(&{code.kernel.name}, metafork_values);",
        "    if (metafork_own == NULL) return METAFORK_EUNSUPPORTED;",
        f"    const void *const metafork_functions[] = {{{functions}}};",
    ]


def device_text_header() -> str:
    """Return ``device_text.h``: the header that kernels are compiled against, as a text for NVRTC."""
    folder = resources.files("metafork.runtime").joinpath("include/metafork")
    text, inner = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("device.h", "small_floats.h"))
    text = text.replace('#include "metafork/small_floats.h"\n', inner)
    return (
        "/* metafork/device.h as a text, for kernels that are compiled at run time. */\n"
        "#ifndef METAFORK_DEVICE_TEXT_H\n#define METAFORK_DEVICE_TEXT_H\n#include <stddef.h>\n\n"
        f"{_lines('metafork_device_text', text)}\n#endif\n"
    )


def _lines(name: str, text: str) -> str:
    """Return the definition of an array of lines: C99 promises no longer literals than 4095 bytes."""
    lines = "".join(f"    {c_string(line)},\n" for line in text.splitlines(keepends=True))
    return f"static const char *const {name}[] = {{\n{lines}    NULL}};\n"
