"""A file read with pointers for arrays: those of which no pragma says the extent get that of their accesses.

The file is parsed once, with such pointers as arrays without end; ``metafork.analysis.extents.solved`` gives them the
extents that are proved.  Where the file is refused, what is said of it is what is wrong without that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from metafork import frontend
from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError, Severity
from metafork.ir.messages.source import Source
from metafork.ir.translation_unit import Schedule, TranslationUnit


def parse(source: Source, *, reassociate: bool = False) -> TranslationUnit:
    """Return the parsed file; raises ``metafork.DiagnosticsError``."""
    unit = _parsed(source, reassociate=reassociate)
    faults = [one for schedule in unit.schedules for one in _not_packed(unit, schedule)]
    if faults:
        raise DiagnosticsError(faults)
    return unit


def _parsed(source: Source, *, reassociate: bool) -> TranslationUnit:
    """Return the parsed file with the extents of pointers."""
    try:
        unit = frontend.parse(source, reassociate=reassociate, following=True)
    except DiagnosticsError as others:
        try:
            return frontend.parse(source, reassociate=reassociate)
        except DiagnosticsError as refused:
            raise DiagnosticsError(_remaining(others.diagnostics, refused.diagnostics)) from None
    if not any(one.followed for one in unit.schedules):
        return unit
    from metafork.analysis.extents.solved import UnfitError, solved  # few files have pointers without an extent

    try:
        return solved(unit)
    except UnfitError:
        return frontend.parse(source, reassociate=reassociate)  # which says what they are


def _not_packed(unit: TranslationUnit, schedule: Schedule) -> Iterator[Diagnostic]:
    """Yield errors about tables of pointers of which the host cannot find out what a schedule touches."""
    tables = [one for one in schedule.program.arrays if one.table]
    if not tables:
        return
    from metafork.analysis.extents.host_walk import host_walk

    walk = host_walk(schedule.program)
    for array in tables:
        if walk is None or array.name not in walk.tables:
            element = array.element.spelling
            yield Diagnostic(
                "MF0201",
                Severity.ERROR,
                f"`{array.table}` is a table of pointers, and cannot be copied to the GPU",
                array.span,
                unit.source.name,
                "the host copies the elements of its rows that the schedule touches, and the schedule itself writes "
                "what decides which ones these are.",
                f"use one array for all rows, such as `{element} {array.table}[n][m]`; or numbers for the first index.",
            )


_POINTERS = ("MF0201", "MF0208")
"""The codes of what may be a pointer, or an array without its first extent."""


def _remaining(others: Sequence[Diagnostic], refused: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the errors that are left where pointers are arrays; at these themselves, what is said of the pointers.

    What their accesses say is known once the errors are corrected.
    """
    pointers = {one.span.start: one for one in refused if one.code in _POINTERS}
    own = ("MF0302", "MF0306")  # of what an element is used for
    return list(dict.fromkeys(one if one.code in own else pointers.get(one.span.start, one) for one in others))
