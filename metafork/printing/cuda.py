"""CUDA C++ text of a kernel: one ``METAFORK_KERNEL`` definition, the same for nvcc and for the CPU build.

The text stands after ``#include "metafork/device.h"`` and uses macros of that header: ``METAFORK_KERNEL(kind, name,
parameters, arguments)``, which makes two kernels of it (``metafork.printing.launches``), ``METAFORK_RESTRICT``,
``METAFORK_SHARED(name)`` (the dynamic shared memory, as ``unsigned char *``), ``METAFORK_SHARED_ARRAY(type, name,
base, offset_bytes, extent)`` (one array in it), ``METAFORK_THREADS(axis, count)`` and ``METAFORK_TABLE`` (what an array
in constant memory is declared with).  It computes what
``metafork.llvm.llvm_ir`` lowers the same kernel to, when compiled without contraction (``-fmad=false``,
``-ffp-contract=off``).

No compiler has a reason to warn: variables that are never read are marked, conversions that C makes silently and C++
compilers question are written out, identifiers that C++, CUDA or common headers take are renamed by appending ``_``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from metafork.ir.kernel import Argument, Kernel, Memory, Space
from metafork.ir.program import Declare, Expr, IntConst, Var, parts_of, walk_expression, walk_statements
from metafork.ir.rewriting import variables
from metafork.ir.unread import unread
from metafork.printing.expressions import Spelling, expression, table_rows
from metafork.printing.input_lines import END
from metafork.printing.launches import for_both
from metafork.printing.rerolled import rerolled
from metafork.printing.statements import statements
from metafork.printing.steps import steps

# Keywords and alternative tokens of C and C++.
_KEYWORDS = """\
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
do double dynamic_cast else enum explicit export extern false final float for friend goto if inline int import
long module mutable namespace new noexcept not not_eq nullptr operator or or_eq override private protected public
register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct
switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
virtual void volatile wchar_t while xor xor_eq"""
# Variables and types of CUDA, and names that a kernel's text itself may use.
_CUDA_NAMES = "threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 std main metafork_shared"
# Macros of the headers that nvcc includes by itself, and of GNU dialects.
_MACROS = """\
assert errno linux unix i386 major minor makedev stdin stdout stderr NULL EOF BUFSIZ RAND_MAX EXIT_SUCCESS
EXIT_FAILURE HUGE_VAL HUGE_VALF INFINITY NAN DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS X_TLOSS signbit isnan isinf
isfinite isnormal math_errhandling CHAR_BIT CHAR_MIN CHAR_MAX SCHAR_MIN SCHAR_MAX UCHAR_MAX SHRT_MIN SHRT_MAX
USHRT_MAX INT_MIN INT_MAX UINT_MAX LONG_MIN LONG_MAX ULONG_MAX LLONG_MIN LLONG_MAX ULLONG_MAX M_E M_LOG2E
M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2 FLT_MAX FLT_MIN FLT_EPSILON
DBL_MAX DBL_MIN DBL_EPSILON SIZE_MAX INT8_MAX INT16_MAX INT32_MAX INT64_MAX INT8_MIN INT16_MIN INT32_MIN INT64_MIN
UINT8_MAX UINT16_MAX UINT32_MAX UINT64_MAX CLOCKS_PER_SEC"""
_RESERVED = frozenset(f"{_KEYWORDS} {_CUDA_NAMES} {_MACROS}".split())
_RESERVED_FORM = re.compile(r"__.*|_[A-Z].*|METAFORK_.*|CUDART_.*|CUDA_.*")
_BUILT_IN = re.compile(r"(threadIdx|blockIdx|blockDim|gridDim)\.[xyz]")
_SHARED_BASE = "metafork_shared"


def is_reserved(name: str) -> bool:
    """Say whether CUDA C++ text must not use the identifier for a variable of the program."""
    return name in _RESERVED or _RESERVED_FORM.fullmatch(name) is not None


def renamed(names: Iterable[str]) -> dict[str, str]:
    """Map each reserved name to one that is free, by appending ``_`` (as often as needed)."""
    taken = {name for name in names if not is_reserved(name)}
    result = {}
    for name in sorted({name for name in names if is_reserved(name) and not _BUILT_IN.fullmatch(name)}):
        free = name.lstrip("_") if name.startswith("_") else name
        free = f"{free or 'v'}_"
        while free in taken or is_reserved(free):
            free = f"v{free}" if _RESERVED_FORM.fullmatch(free) else f"{free}_"
        taken.add(free)
        result[name] = free
    return result


def identifiers(kernel: Kernel) -> frozenset[str]:
    """Return every identifier of a kernel's arguments, memories and body, built-in variables left out."""
    names = {argument.name for argument in kernel.scalars} | {memory.name for memory in kernel.memories}
    names |= {stmt.name for stmt in walk_statements(kernel.body) if isinstance(stmt, Declare)}
    names |= {part.name for part in parts_of(kernel.body) if isinstance(part, Var)}
    return frozenset([name for name in names if not _BUILT_IN.fullmatch(name)])


def kernel_text(
    kernel: Kernel,
    constants: Sequence[tuple[Argument, Expr | None]] = (),
    *,
    with_lines: bool = False,
    in_loops: bool = True,
) -> str:
    """Return the definition of the kernel: scalar arguments first, then the pointers of its global memories.

    ``constants`` are scalars that are no arguments: what they are computed as, or ``None`` where a macro
    (``constant_macro``) is the value.  ``with_lines`` marks the line of the input that each statement comes from
    (``metafork.printing.input_lines``), ``in_loops`` has copies of statements as loops
    (``metafork.printing.rerolled``).  Raises ``ValueError`` where a memory of the shared space has no offset.
    """
    kernel = rerolled(kernel) if in_loops else kernel
    outer = [one.name for one in (*kernel.scalars, *(one for one, _ in constants))] + [
        memory.name for memory in kernel.memories
    ]
    body = for_both(kernel.body)
    never_read = unread(outer, body)
    needed = {
        memory.name: memory
        for memory in kernel.memories
        if memory.space in (Space.SHARED, Space.PRIVATE) and memory.name not in never_read.outer
    }
    used_by_extents = {
        part.name
        for memory in needed.values()
        for expr in (memory.extent, memory.offset)
        if memory.space is Space.SHARED and expr is not None
        for part in walk_expression(expr)
        if isinstance(part, Var)
    }
    tables = {memory.name: memory for memory in kernel.memories if memory.space is Space.CONSTANT}
    known = frozenset(one.name for one, _ in constants)
    identified = identifiers(kernel) | known
    names = {**renamed(identified), **{name: table_name(name) for name in tables}}
    line = kernel.line if with_lines else None
    told = steps(body, kernel.memories)
    spelling = Spelling(names, cplusplus=True, unread=never_read.declarations, line=line, steps=told)
    unused = never_read.outer - used_by_extents
    parameters = ", ".join(_parameters(kernel, spelling, unused))
    pointers = (memory.name for memory in kernel.memories if memory.space is Space.GLOBAL)
    arguments = ", ".join(spelling.name(name) for name in (*(one.name for one in kernel.scalars), *pointers))
    lines = [line for table in tables.values() for line in _table(table, spelling)]
    bounds = "" if kernel.bounds is None else f" METAFORK_LAUNCH_BOUNDS({kernel.bounds[0]}, {kernel.bounds[1]})"
    lines += [f"METAFORK_KERNEL(__global__ void{bounds}, {kernel.name}, ({parameters}), ({arguments}))", "{"]
    for one, definition in constants:
        value = constant_macro(one.name) if definition is None else expression(definition, spelling)
        lines.append(f"  [[maybe_unused]] constexpr {spelling.type(one.type)} {spelling.name(one.name)} = {value};")
    base = _SHARED_BASE
    if any(memory.space is Space.SHARED for memory in needed.values()):
        lines.append(f"  METAFORK_SHARED({base});")
    lines += [f"  {_local_memory(memory, base, spelling)};" for memory in needed.values()]
    if kernel.told or known:
        for axis, extent in known_threads(kernel, known).items():
            text = (
                f"{extent.value}u"
                if isinstance(extent, IntConst)
                else f"(unsigned int)({expression(extent, spelling)})"
            )
            lines.append(f"  METAFORK_THREADS({axis}, {text});")
    end = [END] if with_lines else []
    return "\n".join([*lines, *statements(body, 2, spelling), *end, "}", ""])


def table_name(name: str) -> str:
    """Return what a table of the file is called in code for the device."""
    return f"metafork_table_{name}"


def _table(memory: Memory, spelling: Spelling) -> list[str]:
    """Return the definition of a table; kernels that use the same one share it."""
    name = spelling.name(memory.name)
    values = table_rows(memory.values, len(memory.values), spelling)
    return [
        f"#if !defined({name})",
        f"#define {name} {name}",
        f"METAFORK_TABLE {spelling.type(memory.element)} {name}[{len(memory.values)}] = {values};",
        "#endif",
    ]


def constant_macro(name: str) -> str:
    """Return the macro that the value of a constant is in a kernel's text."""
    return f"METAFORK_STATIC_{name}"


def known_threads(kernel: Kernel, constants: AbstractSet[str] = frozenset()) -> dict[str, Expr]:
    """Return the extents of the block that are constants, by axis; a block that may be wider has none in x."""
    return {
        axis: extent
        for axis, extent in zip("xyz", kernel.block, strict=True)
        if (isinstance(extent, IntConst) or (constants and variables(extent) <= constants))
        and (kernel.widest is None or axis != "x")
    }


def _parameters(kernel: Kernel, spelling: Spelling, unused: frozenset[str]) -> list[str]:
    texts = []
    for argument in kernel.scalars:
        mark = "[[maybe_unused]] " if argument.name in unused else ""
        texts.append(f"{mark}{spelling.type(argument.type)} {spelling.name(argument.name)}")
    for memory in kernel.memories:
        if memory.space is Space.GLOBAL:
            mark = "[[maybe_unused]] " if memory.name in unused else ""
            const = "const " if memory.read_only else ""
            element, name = spelling.type(memory.element), spelling.name(memory.name)
            texts.append(f"{mark}{const}{element} *METAFORK_RESTRICT {name}")
    return texts


def _local_memory(memory: Memory, base: str, spelling: Spelling) -> str:
    element, name = spelling.type(memory.element), spelling.name(memory.name)
    extent = expression(memory.extent, spelling)
    if memory.space is Space.PRIVATE:
        return f"{element} {name}[{extent}]"
    if memory.offset is None:
        raise ValueError(f"the shared memory {memory.name} has no offset")
    return f"METAFORK_SHARED_ARRAY({element}, {name}, {base}, {expression(memory.offset, spelling)}, {extent})"
