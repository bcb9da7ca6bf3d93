"""What is said of arrays whose number of elements nobody knows, and what the drop-in does about them."""

from __future__ import annotations

from metafork.analysis.extents.host_walk import host_walk
from metafork.analysis.extents.pointer_extents import Unknown
from metafork.ir.messages.diagnostics import Diagnostic, Severity
from metafork.ir.messages.source import Span
from metafork.ir.program import Array
from metafork.ir.translation_unit import Function, TranslationUnit
from metafork.printing.expressions import expression


def found_out(unit: TranslationUnit) -> dict[Span, str]:
    """Return what the drop-in does about each array without an extent, by the place of its declaration."""
    found: dict[Span, str] = {}
    for schedule in unit.schedules:
        walk = host_walk(schedule.program)
        for array in schedule.program.arrays:
            if array.table:
                continue  # its rows are packed
            if array.endless and walk is not None and (array.whole or array.name) in walk.least:
                found.setdefault(array.span, f"Where nothing else says it, the host {walk.effort} before each launch.")
            elif array.endless:
                found[array.span] = "Where nothing else says it, the serial code runs."
    return found


def unknown_extent(unit: TranslationUnit, function: Function, array: Array, unknown: Unknown) -> Diagnostic:
    """Return the warning that nobody knows how many elements a pointer leads to, and what can be done."""
    name = array.whole or array.name
    called = {one.name: one.member for one in function.values if one.member}
    for schedule in unit.schedules:
        called |= dict(schedule.led) if schedule.function == function.name else {}
    why = unknown.why.replace(f"`{name}", f"`{called.get(name, name)}")
    name = called.get(name, name)
    inner = array.extents[1 : len(array.extents) - bool(array.members)]
    rows = "".join(f"[{expression(extent)}]" for extent in inner)
    place = "function" if array.span.start < function.body.start else "schedule"
    pragma = f"`#pragma metafork extents({name}[{unknown.most or '?'}]{rows})`"
    if unknown.most:
        way_out = f"if it has as many elements in each launch, say so in front of the {place}: {pragma}."
    else:
        way_out = f"say it in front of the {place}, with their number for the `?`: {pragma}."
    return Diagnostic(
        "MF0405",
        Severity.WARNING,
        f"it is not known how many elements `{name}` has",
        array.span,
        unit.source.name,
        f"`{function.name}` copies `{name}` to the GPU, and accesses do not say how much: {why}.",
        f"{way_out} Or say it at run time, `metafork_extent({name}, bytes)`; arrays of Python do so themselves.",
    )
