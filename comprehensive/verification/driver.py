"""A C driver that runs one function of a file twice at many points, as written and as generated, and compares.

The serial elision is the reference: the input compiled as C with the three keywords defined away and its functions
renamed.  The driver reads one point a line, ``MACHINE|VALUE ...`` with the function's scalars in order, fills two
copies of every array alike, calls both functions, compares the arrays bit for bit and prints ``same`` or where they
differ, after a line ``point N`` on both streams.  On its way the reference says to which schedules it comes.  Before
them the checked program runs (``contract``); where it leaves an array, the line is ``outside ...``, and neither runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from metafork.comprehensive.emit.header_file import OWN_HEADERS, includes, shadows_a_header
from metafork.comprehensive.emit.host.members import (
    FLAT_SUFFIX,
    flat_function,
    flat_parameters,
    flat_returns,
    is_flattened,
    member_declarations,
    moved_members,
)
from metafork.comprehensive.emit.host.small_floats import converts
from metafork.comprehensive.emit.host.small_floats import declarations as small_floats
from metafork.comprehensive.emit.host.stated_order import in_order
from metafork.comprehensive.verification.unordered_sums import CLOSE, TERMS, followed, telling
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.atomic_updates import unordered_sums
from metafork.ir.program import Array, Expr, IntConst, Var
from metafork.ir.rewriting import map_expression, variables
from metafork.ir.translation_unit import Function, FunctionParameter, Schedule, TranslationUnit
from metafork.printing.expressions import expression
from metafork.printing.metafork_text import serial_text

SERIAL_PREFIX = "metafork_serial_"
"""What the names of the reference functions start with."""

CONTRACT_PREFIX = "metafork_contract_"
"""What the names of the checked functions start with (``contract``)."""

HOST_PREFIX = "metafork_host_"
"""What the name of a file's own ``main`` starts with, since a driver has one too."""

INIT_SUFFIX = "_init"
"""What the name of a user's function that fills the arrays of a function ends with."""

LENT, LENT_BEFORE = 1 << 15, 1 << 10
"""How many elements there are where a pointer leads of which nothing says it, and how many of them stand before it.

That is more than the points of a verification touch."""

LENT_ROWS, LENT_ROW = 1 << 10, 1 << 11
"""How many rows a table of pointers has, and how many elements each of them."""

SUPPORT_DIRECTORY = Path(__file__).parent
"""Where the header is that a driver includes."""

ELISION_FLAGS = (
    *("-Dmeta_for=for", "-Dmeta_schedule=", "-Dmeta_atomic=", "-Dmeta_reduction(...)="),
    *("-Dmeta_grid(...)=", "-Dmeta_block(...)=", "-Dmeta_min_blocks(...)=", "-Dmeta_static(...)=", "-Dcache(...)="),
)
"""What turns an annotated file into the C program that it means."""


class CannotDriveError(Exception):
    """A function takes something that a driver cannot make up; the message names it."""


def reference_text(unit: TranslationUnit) -> str:
    """Return the serial elision of a file as C, its functions under ``SERIAL_PREFIX``; compile with ELISION_FLAGS.

    Schedules that are contracted, or add up in a stated order, stand there as they are then.
    """
    return as_reference(unit, edited(unit, dict(replaced(unit, _serial))))


def replaced(unit: TranslationUnit, text_of: Callable[[Schedule], str | None]) -> Iterator[tuple[int, tuple[int, str]]]:
    """Yield where schedules stand whose text is replaced, where they end, and what stands there then."""
    for place in unit.places:
        span = place[0].span
        texts = [text_of(one) for one in place]
        given = [text for text in texts if text is not None]
        if len(given) == len(texts):
            yield span.start, (span.end, in_order(place, given, unit.source.text[span.start : span.end]))


def _serial(schedule: Schedule) -> str | None:
    """Return the program of a schedule as C where its text is not what it computes."""
    sums = unordered_sums(schedule.program.body)
    same = not schedule.contracted and schedule.stated_order is None and not sums and not converts(schedule)
    return None if same else serial_text(schedule.program, telling(schedule.program))


def telling_reference_text(unit: TranslationUnit) -> str:
    """Return the same, but each schedule tells ``driver_reached`` its name and parameters when control comes to it."""

    def told(schedule: Schedule) -> str:
        program = schedule.program
        names = [parameter.name for parameter in program.parameters]
        # What only the drop-in computes has no name here.
        own_names = {name: f"{pointer} != 0" for name, pointer in schedule.asked}
        pitches = [one.extents[1] for one in program.arrays if one.table]
        own_names |= {one.name: "0" for one in pitches if isinstance(one, Var)}
        form = "".join(f" {name}=%lld" for name in names)
        values = "".join(f", (long long)({own_names.get(name, name)})" for name in names)
        call = f'driver_reached("reached {schedule.program.name}{form}\\n"{values})'
        # One statement before and after, so that it may stand wherever the schedule does.
        once = f"for (int metafork_once = ({call}, 1); metafork_once; metafork_once = 0) "
        own = _serial(schedule)
        return once + (unit.source.text[schedule.span.start : schedule.span.end] if own is None else own)

    told_at = dict(replaced(unit, told))
    return "extern void driver_reached(const char *, ...);\n" + as_reference(unit, edited(unit, told_at))


def edited(unit: TranslationUnit, changes: Mapping[int, tuple[int, str]]) -> str:
    """Return the text of a file with stretches (from a start to an end) replaced by others.

    What a fragment's host leaves out is left out.
    """
    edits = [(start, end, more) for start, (end, more) in changes.items()]
    edits += [(span.start, span.end, "") for function in unit.functions for span in function.dropped]
    entered = [(function.body.start + 1, member_declarations(function)) for function in unit.functions]
    named = [(function.span, *moved_members(function)) for function in unit.functions]
    entered += [(at, text) for span, before, behind in named for at, text in ((span.start, before), (span.end, behind))]
    edits += [(start, start, more) for start, more in entered if more]
    text = unit.source.text
    for start, end, more in sorted(edits, reverse=True):
        text = text[:start] + more + text[end:]
    return text


def as_reference(unit: TranslationUnit, text: str, prefix: str = SERIAL_PREFIX) -> str:
    """Return a file's text, as it may have been edited, as C that stands by itself, its functions under a prefix."""
    own = f"#define {OWN_HEADERS}\n" if shadows_a_header(unit) else ""
    own += "".join(f"{line}\n" for line in small_floats(unit))
    own += TERMS if any(unordered_sums(one.program.body) for one in unit.schedules) else ""
    renaming = own + "".join(f"#define {f.name} {prefix}{f.name}\n" for f in unit.functions)
    if not any(function.fragment for function in unit.functions):
        # What the drop-in's file includes for the user, the reference includes too.
        included = "".join(
            f"#include <{header}>\n"
            for header, used in (("assert.h", "assert"), ("math.h", ""))
            if used in unit.source.text and not includes(unit.source.text, header)
        )
        return f"{included}{renaming}#line 1 {quoted(unit.source.name)}\n{text}\n{flat_functions(unit, prefix)}"
    function = unit.functions[0]
    declarations = ", ".join(parameter.declaration for parameter in function.parameters)
    return f"#include <assert.h>\n#include <math.h>\n{renaming}void {function.name}({declarations})\n{{\n{text}\n}}\n"


def flat_functions(unit: TranslationUnit, prefix: str = "") -> str:
    """Return functions that drivers call in the place of those which are given structures; empty where none are."""
    given = [one for one in unit.functions if is_flattened(one)]
    return "".join(flat_function(one, prefix) for one in given)


def driver_text(unit: TranslationUnit, function: Function) -> str:
    """Return the driver of one function; pointers that it has no use for are null.

    Raises ``CannotDriveError`` for other parameters that are no scalars or arrays.
    """
    taken = flat_parameters(function)
    tables = tables_of(unit, function)
    given = [_lent(unit, function, parameter, tables) for parameter in taken]
    lent = [one.name for one, other in zip(taken, given, strict=True) if one.array != other.array]
    lent = [name for name in lent if name not in tables]
    suffix = FLAT_SUFFIX if is_flattened(function) else ""
    arrays = [parameter for parameter in given if parameter.array is not None]
    scalars = [parameter for parameter in given if parameter.type is not None]
    idle = {p.name for p in given if p.array is None and p.type is None}
    for parameter in given:
        if parameter.name in idle and not _is_idle_pointer(unit, function, parameter):
            more = ""
            if parameter.declaration.count("*") == 1:
                more = f" (`#pragma metafork extents({parameter.name}[...])` says how many elements it leads to)"
            raise CannotDriveError(f"{function.name}: no values for the parameter {parameter.declaration}{more}")
    known = {parameter.name for parameter in scalars}
    for parameter in arrays:
        assert parameter.array is not None
        for name in sorted(frozenset().union(*map(variables, parameter.array.extents)) - known):
            raise CannotDriveError(f"{function.name}: no value for {name}, which says how large {parameter.name} is")
    # What the extents of an array are in the file's words, the driver need not know.
    declared = ["void *" if parameter.type is None else parameter.declaration for parameter in given]
    declarations = ", ".join(declared) or "void"
    main = HOST_PREFIX if function.name == "main" else ""
    prefixes = (("ours", main), ("theirs", SERIAL_PREFIX), ("checked", CONTRACT_PREFIX))
    # Functions are called under names of the driver's own, whatever the file calls them.
    called = [
        f'extern {flat_returns(function)} driver_run_{mine}({declarations}) __asm__("{prefix}{function.name}{suffix}");'
        for mine, prefix in prefixes
    ]
    close = ("#if !defined(METAFORK_CLOSE)", f"#define METAFORK_CLOSE {CLOSE}", "#endif")
    lines = [
        "#define _GNU_SOURCE",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        *(close if followed(unit, function) else ()),
        '#include "driver_support.h"',
        "extern void metafork_extent(const void *, long long);",
        *called,
        f'extern void driver_init({declarations}) __asm__("{function.name}{INIT_SUFFIX}") __attribute__((weak));',
        "int main(void) {",
        "  static char driver_line[4096];",
        "  driver_begin();",
        "  for (long driver_point = 0; fgets(driver_line, sizeof driver_line, stdin); driver_point++) {",
        "    char *driver_values = strchr(driver_line, '|');",
        "    if (!driver_values) return 2;",
        "    driver_seed(driver_line);",
        "    driver_forget_terms();",
        "    *driver_values++ = 0;",
        '    if (*driver_line) setenv("METAFORK_MACHINE", driver_line, 1); else unsetenv("METAFORK_MACHINE");',
        '    fprintf(driver_report, "point %ld\\n", driver_point), fprintf(stderr, "point %ld\\n", driver_point);',
        "    fflush(driver_report);",
    ]
    lines += [f"    {_scalar(parameter)}" for parameter in scalars]
    for parameter in arrays:
        lines += [f"    {line}" for line in _buffers(parameter)]
    # The user may fill arrays that the function only reads: C does not see their qualifiers here.
    names = {p.name: "NULL" if p.name in idle else _of(p.name) for p in given}
    places = {p.name: f" + {LENT_BEFORE} * ({_of(p.name)}_bytes / {LENT})" if p.name in lent else "" for p in arrays}
    ours, theirs = (
        ", ".join(
            names[p.name]
            if p.array is None
            else f"(void *){names[p.name]}_{which}_rows"
            if p.name in tables
            else f"(void *)((char *){names[p.name]}_{which}{places[p.name]})"
            for p in given
        )
        for which in ("ours", "theirs")
    )
    copies = [f"    memcpy({names[p.name]}_theirs, {names[p.name]}_ours, {names[p.name]}_bytes);" for p in arrays]
    for name in tables:
        lines += [f"    static void *{_of(name)}_{which}_rows[{LENT_ROWS}];" for which in ("ours", "theirs")]
        own, row = _of(name), f"({_of(name)}_bytes / {LENT_ROWS})"
        copies.append(f"    for (size_t row = 0; row < {LENT_ROWS}; row++)")
        pairs = (f"{own}_{which}_rows[row] = (char *){own}_{which} + row * {row}" for which in ("ours", "theirs"))
        copies.append(f"      {', '.join(pairs)};")
    result = _result(unit, function)
    release = " ".join(f"free({names[p.name]}_ours); free({names[p.name]}_theirs);" for p in arrays)
    lines += [
        f"    if (driver_init) driver_init({ours});",
        *copies,
        "#if !defined(METAFORK_NO_CONTRACT)",
        f"    if (setjmp(driver_home)) {{ {release} continue; }}",
        f"    driver_run_checked({theirs});",
        *copies,
        "#endif",
        f"    {result and f'{result} driver_result_theirs = '}driver_run_theirs({theirs});",
        '    fprintf(driver_report, "reference\\n"), fflush(driver_report);',
        *(f"    metafork_extent({_of(name)}_ours, (long long){_of(name)}_bytes);" for name in lent),
        f"    {result and f'{result} driver_result_ours = '}driver_run_ours({ours});",
        *(f"    metafork_extent({_of(name)}_ours, 0);" for name in lent),
        "    int driver_differ = 0;",
    ]
    if result:
        floating = str("float" in result or "double" in result).lower()
        compared = f"&driver_result_ours, &driver_result_theirs, sizeof({result}), sizeof({result}), {floating}, 0"
        lines.append(f'    driver_differ |= driver_compare("what is returned", {compared});')
    for parameter in arrays:
        own = names[parameter.name]
        size = _structure_size(parameter) if parameter.slots else _element(parameter).size
        lines += [f"    {line}" for line in _without_padding(parameter)]
        before = LENT_BEFORE if parameter.name in lent else 0
        floating = str(not parameter.slots and not _element(parameter).stored.integer).lower()
        compared = f'"{parameter.name}", {own}_ours, {own}_theirs, {own}_bytes, {size}, {floating}, {before}'
        lines.append(f"    driver_differ |= driver_compare({compared});")
    lines += [
        f"    {release}",
        '    if (!driver_differ) fprintf(driver_report, "same\\n");',
        "    fflush(driver_report);",
        "  }",
        "  return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _result(unit: TranslationUnit, function: Function) -> str:
    """Return the type of the number that a function surely returns at its end, empty where there is none."""
    returns = flat_returns(function)
    ends = re.search(r"\breturn\b[^;{}]+;\s*}$", unit.source.text[function.body.start : function.body.end])
    number = ends and not {"void", "*"} & set(re.findall(r"\w+|\*", returns)) and "long double" not in returns
    return returns if number else ""


def tables_of(unit: TranslationUnit, function: Function) -> dict[str, ScalarType]:
    """Return the parameters that are tables of pointers, and what elements their rows have."""
    found: dict[str, ScalarType] = {}
    given = {one.name for one in function.parameters if one.type is None and one.array is None}
    for schedule in unit.schedules:
        if schedule.function != function.name:
            continue
        rows = {name: text.partition("[")[0] for name, text in schedule.led}
        for array in schedule.program.arrays:
            table = array.table or rows.get(array.whole or array.name, "")
            if table in given:
                found.setdefault(table, array.element)
    return found


def _lent(
    unit: TranslationUnit, function: Function, parameter: FunctionParameter, tables: Mapping[str, ScalarType]
) -> FunctionParameter:
    """Return a pointer of which nobody knows how many elements it leads to as an array of more than a point needs.

    What the rows of one of the ``tables`` lead to is an array, too.
    """
    array = parameter.array
    if parameter.name in tables:
        rows = (IntConst(LENT_ROWS), IntConst(LENT_ROW))
        return replace(parameter, array=Array(parameter.name, tables[parameter.name], rows))
    if array is not None and array.endless:
        return replace(parameter, array=replace(array, extents=(IntConst(LENT), *array.extents[1:])))
    unknown = array is None and parameter.type is None and parameter.pointed is not None
    if not unknown or _is_idle_pointer(unit, function, parameter):
        return parameter
    assert parameter.pointed is not None
    extents = (IntConst(LENT), *([IntConst(parameter.columns)] if parameter.columns else []))
    return replace(parameter, array=Array(parameter.name, parameter.pointed, extents))


def _is_idle_pointer(unit: TranslationUnit, function: Function, parameter: FunctionParameter) -> bool:
    """Say whether a parameter is a pointer whose name stands neither in its function's body nor in a directive."""
    text = unit.source.text
    directives = re.findall(r"^[ \t]*#.*$", text.replace("\\\n", " "), re.MULTILINE)
    read = "\n".join([text[function.body.start : function.body.end], *directives])
    return bool({"*", "["} & set(parameter.declaration)) and not re.search(rf"\b{parameter.name}\b", read)


def point_line(machine: str, scalars: Sequence[str | int | float]) -> str:
    """Return a line of the driver's input."""
    return f"{machine}|{' '.join(str(value) for value in scalars)}\n"


def quoted(name: str) -> str:
    """Return a text as a string of C."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _element(parameter: FunctionParameter) -> ScalarType:
    assert parameter.array is not None
    return parameter.array.element


def _of(name: str) -> str:
    """Return what the driver calls a parameter: no name of the file hides what the driver uses."""
    return f"driver_of_{name}"


def _scalar(parameter: FunctionParameter) -> str:
    assert parameter.type is not None
    read = "strtod" if parameter.type.floating else "strtoll"
    more = "" if parameter.type.floating else ", 10"
    type_ = parameter.type.spelling
    return f"{type_} {_of(parameter.name)} = ({type_}){read}(driver_values, &driver_values{more});"


def _buffers(parameter: FunctionParameter) -> list[str]:
    assert parameter.array is not None
    name, element = _of(parameter.name), parameter.array.element
    extents = " * ".join(f"(size_t)({expression(map_expression(one, _renamed))})" for one in parameter.array.extents)
    filled = [f"driver_fill_{_kind(element)}({name}_ours, {name}_bytes, {element.size});"]
    if parameter.slots:
        filled = [f"memset({name}_ours, 0, {name}_bytes);"]
        filled += [
            _each_structure(parameter, f"driver_fill_{_kind(slot.type)}(driver_at + {slot.offset}, {size}, {size});")
            for slot in parameter.slots
            for size in (slot.type.size,)
        ]
    return [
        f"size_t {name}_bytes = {extents} * {element.size};",
        f"void *{name}_ours = malloc({name}_bytes + !{name}_bytes), "
        f"*{name}_theirs = malloc({name}_bytes + !{name}_bytes);",
        f"if (!{name}_ours || !{name}_theirs) return 3;",
        *filled,
    ]


def _kind(type_: ScalarType) -> str:
    if type_.small:
        return type_.spelling
    return "float" if type_ is ScalarType.FLOAT else "double" if type_.floating else "integer"


def _each_structure(parameter: FunctionParameter, done: str, which: str = "ours") -> str:
    """Return a loop that does something at the beginning of each structure of an array."""
    name = f"{_of(parameter.name)}_{which}"
    end = f"(char *){name} + {_of(parameter.name)}_bytes"
    return f"for (char *driver_at = {name}; driver_at < {end}; driver_at += {_structure_size(parameter)}) {{ {done} }}"


def _structure_size(parameter: FunctionParameter) -> int:
    assert parameter.array is not None
    columns = parameter.array.extents[-1]
    assert isinstance(columns, IntConst)
    return columns.value * parameter.array.element.size


def _without_padding(parameter: FunctionParameter) -> list[str]:
    """Return loops that clear the bytes of structures that belong to no member: C leaves open what is in them."""
    used = {slot.offset + byte for slot in parameter.slots for byte in range(slot.type.size)}
    gaps = [byte for byte in range(_structure_size(parameter)) if byte not in used] if used else []
    cleared = " ".join(f"driver_at[{byte}] = 0;" for byte in gaps)
    return [_each_structure(parameter, cleared, which) for which in ("ours", "theirs") if gaps]


def _renamed(expr: Expr) -> Expr | None:
    return replace(expr, name=_of(expr.name)) if isinstance(expr, Var) else None
