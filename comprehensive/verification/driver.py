"""A C driver that runs one function of a file twice at many points, as written and as generated, and compares.

The serial elision is the reference: the input compiled as C with the three keywords defined away and its functions
renamed.  The driver reads one point a line, ``MACHINE|VALUE ...`` with the function's scalars in order, fills two
copies of every array alike, calls both functions, compares the arrays bit for bit and prints ``same`` or where they
differ, after a line ``point N`` on both streams.  On its way the reference says to which schedules it comes.  Before
them the checked program runs (``contract``); where it leaves an array, the line is ``outside ...``, and neither runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from comprehensive.emit.header_file import OWN_HEADERS, shadows_a_header
from comprehensive.emit.stated_order import in_order, places
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.translation_unit import Function, FunctionParameter, Schedule, TranslationUnit
from metafork.printing.expressions import expression
from metafork.printing.metafork_text import serial_text

SERIAL_PREFIX = "metafork_serial_"
"""What the names of the reference functions start with."""

CONTRACT_PREFIX = "metafork_contract_"
"""What the names of the checked functions start with (``contract``)."""

INIT_SUFFIX = "_init"
"""What the name of a user's function that fills the arrays of a function ends with."""

SUPPORT_DIRECTORY = Path(__file__).parent
"""Where the header is that a driver includes."""

ELISION_FLAGS = (
    *("-Dmeta_for=for", "-Dmeta_schedule=", "-Dmeta_atomic=", "-Dmeta_reduction(...)="),
    *("-Dmeta_grid(...)=", "-Dcache(...)="),
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
    for place in places(unit):
        span = place[0].span
        texts = [text_of(one) for one in place]
        given = [text for text in texts if text is not None]
        if len(given) == len(texts):
            yield span.start, (span.end, in_order(place, given, unit.source.text[span.start : span.end]))


def _serial(schedule: Schedule) -> str | None:
    """Return the program of a schedule as C where its text is not what it computes."""
    same = not schedule.contracted and schedule.stated_order is None
    return None if same else serial_text(schedule.program, schedule.program.body)


def telling_reference_text(unit: TranslationUnit) -> str:
    """Return the same, but each schedule tells ``driver_reached`` its name and parameters when control comes to it."""

    def told(schedule: Schedule) -> str:
        names = [parameter.name for parameter in schedule.program.parameters]
        form = "".join(f" {name}=%lld" for name in names)
        values = "".join(f", (long long)({name})" for name in names)
        call = f'driver_reached("reached {schedule.program.name}{form}\\n"{values})'
        # One statement before and after, so that it may stand wherever the schedule does.
        once = f"for (int metafork_once = ({call}, 1); metafork_once; metafork_once = 0) "
        own = _serial(schedule)
        return once + (unit.source.text[schedule.span.start : schedule.span.end] if own is None else own)

    telling = dict(replaced(unit, told))
    return "extern void driver_reached(const char *, ...);\n" + as_reference(unit, edited(unit, telling))


def edited(unit: TranslationUnit, changes: Mapping[int, tuple[int, str]]) -> str:
    """Return the text of a file with stretches (from a start to an end) replaced by others.

    What a fragment's host leaves out is left out.
    """
    edits = [(start, end, more) for start, (end, more) in changes.items()]
    edits += [(span.start, span.end, "") for function in unit.functions for span in function.dropped]
    text = unit.source.text
    for start, end, more in sorted(edits, reverse=True):
        text = text[:start] + more + text[end:]
    return text


def as_reference(unit: TranslationUnit, text: str, prefix: str = SERIAL_PREFIX) -> str:
    """Return a file's text, as it may have been edited, as C that stands by itself, its functions under a prefix."""
    own = f"#define {OWN_HEADERS}\n" if shadows_a_header(unit) else ""
    renaming = own + "".join(f"#define {f.name} {prefix}{f.name}\n" for f in unit.functions)
    if not any(function.fragment for function in unit.functions):
        # What the drop-in's file includes for the user, the reference includes too.
        included = "".join(
            f"#include <{header}>\n"
            for header, used in (("assert.h", "assert"), ("math.h", ""))
            if used in unit.source.text and f"<{header}>" not in unit.source.text
        )
        return f"{included}{renaming}#line 1 {quoted(unit.source.name)}\n{text}\n"
    function = unit.functions[0]
    declarations = ", ".join(parameter.declaration for parameter in function.parameters)
    return f"#include <assert.h>\n#include <math.h>\n{renaming}void {function.name}({declarations})\n{{\n{text}\n}}\n"


def driver_text(unit: TranslationUnit, function: Function) -> str:
    """Return the driver of one function; raises ``CannotDriveError`` for parameters that are no scalars or arrays."""
    arrays = [parameter for parameter in function.parameters if parameter.array is not None]
    scalars = [parameter for parameter in function.parameters if parameter.type is not None]
    for parameter in function.parameters:
        if parameter.array is None and parameter.type is None:
            raise CannotDriveError(f"{function.name}: no values for the parameter {parameter.declaration}")
    declarations = ", ".join(parameter.declaration for parameter in function.parameters) or "void"
    # The header leaves out what takes structures without a tag.
    untagged = any(parameter.members and not parameter.structure for parameter in function.parameters)
    unnamed = [f"extern {function.returns} {function.name}({declarations});"] if untagged else []
    lines = [
        "#define _GNU_SOURCE",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        '#include "driver_support.h"',
        f'#include "{unit.name}.h"',
        *unnamed,
        f"extern {function.returns} {SERIAL_PREFIX}{function.name}({declarations});",
        f"extern {function.returns} {CONTRACT_PREFIX}{function.name}({declarations});",
        f"extern void {function.name}{INIT_SUFFIX}({declarations}) __attribute__((weak));",
        "int main(void) {",
        "  static char line[4096];",
        "  driver_begin();",
        "  for (long point = 0; fgets(line, sizeof line, stdin); point++) {",
        "    char *values = strchr(line, '|');",
        "    if (!values) return 2;",
        "    driver_seed(line);",
        "    *values++ = 0;",
        '    if (*line) setenv("METAFORK_MACHINE", line, 1); else unsetenv("METAFORK_MACHINE");',
        '    fprintf(driver_report, "point %ld\\n", point), fprintf(stderr, "point %ld\\n", point);',
        "    fflush(driver_report);",
    ]
    lines += [f"    {_scalar(parameter)}" for parameter in scalars]
    for parameter in arrays:
        lines += [f"    {line}" for line in _buffers(parameter)]
    # The user may fill arrays that the function only reads: C does not see their qualifiers here.
    first = ", ".join(f"{p.name}_ours" if p.array is not None else p.name for p in function.parameters)
    lines.append(f"    if ({function.name}{INIT_SUFFIX}) {function.name}{INIT_SUFFIX}({first});")
    lines += [f"    memcpy({p.name}_theirs, {p.name}_ours, {p.name}_bytes);" for p in arrays]
    ours = ", ".join(f"{p.name}_ours" if p.array is not None else p.name for p in function.parameters)
    theirs = ", ".join(f"{p.name}_theirs" if p.array is not None else p.name for p in function.parameters)
    release = " ".join(f"free({p.name}_ours); free({p.name}_theirs);" for p in arrays)
    lines += [
        "#if !defined(METAFORK_NO_CONTRACT)",
        f"    if (setjmp(driver_home)) {{ {release} continue; }}",
        f"    {CONTRACT_PREFIX}{function.name}({theirs});",
        *(f"    memcpy({p.name}_theirs, {p.name}_ours, {p.name}_bytes);" for p in arrays),
        "#endif",
        f"    {SERIAL_PREFIX}{function.name}({theirs});",
        '    fprintf(driver_report, "reference\\n"), fflush(driver_report);',
        f"    {function.name}({ours});",
        "    int differ = 0;",
    ]
    for parameter in arrays:
        name = parameter.name
        lines.append(
            f'    differ |= compare("{name}", {name}_ours, {name}_theirs, {name}_bytes, {_element(parameter).size});'
        )
    lines += [
        f"    {release}",
        '    if (!differ) fprintf(driver_report, "same\\n");',
        "    fflush(driver_report);",
        "  }",
        "  return 0;",
        "}",
        "",
    ]
    return "\n".join(lines)


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


def _scalar(parameter: FunctionParameter) -> str:
    assert parameter.type is not None
    read = "strtod(values, &values)" if parameter.type.floating else "strtoll(values, &values, 10)"
    return f"{parameter.type.spelling} {parameter.name} = ({parameter.type.spelling}){read};"


def _buffers(parameter: FunctionParameter) -> list[str]:
    assert parameter.array is not None
    name, element = parameter.name, parameter.array.element
    extents = " * ".join(f"(size_t)({expression(extent)})" for extent in parameter.array.extents)
    fill = "fill_float" if element is ScalarType.FLOAT else "fill_double" if element.floating else "fill_integer"
    return [
        f"size_t {name}_bytes = {extents} * {element.size};",
        f"void *{name}_ours = malloc({name}_bytes + !{name}_bytes), "
        f"*{name}_theirs = malloc({name}_bytes + !{name}_bytes);",
        f"if (!{name}_ours || !{name}_theirs) return 3;",
        f"{fill}({name}_ours, {name}_bytes, {element.size});",
    ]
