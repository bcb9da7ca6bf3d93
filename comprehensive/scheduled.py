"""The directives that a file asks for, applied: ``#pragma metafork schedule(...)`` in front of a ``meta_schedule``."""

from __future__ import annotations

import re

from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.ir.messages.catalogue import CATALOGUE
from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError, Severity
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.program import Program
from metafork.ir.translation_unit import TranslationUnit
from metafork.transform.directive import Refused, Schedule, applied
from metafork.transform.schedule import ScheduleError, schedule_of


def scheduled_unit(unit: TranslationUnit, analyses: Analyses | None = None) -> TranslationUnit:
    """Return a file with the directives of its pragmas applied; raises ``DiagnosticsError`` (MF0601, MF0602)."""
    faults: list[Diagnostic] = []
    schedules = []
    for schedule in unit.schedules:
        if schedule.directives is not None:
            text, span = schedule.directives
            try:
                asked = _asked_for(text, span, unit.source.name)
                program = scheduled_program(schedule.program, asked, unit.source.name, analyses or Analyses(), span)
                schedule = replace(schedule, program=program, directives=None, written=schedule.program)
            except DiagnosticsError as error:
                faults += error.diagnostics
        schedules.append(schedule)
    if faults:
        raise DiagnosticsError(faults)
    return replace(unit, schedules=tuple(schedules))


def scheduled_program(
    program: Program, schedule: Schedule, source_name: str, analyses: Analyses, asked: Span = NOWHERE
) -> Program:
    """Return a program with directives applied, which stand at ``asked``; raises ``DiagnosticsError`` (MF0601)."""
    result = applied(program, schedule, analyses)
    if not isinstance(result, Refused):
        return result
    place = asked if result.span == NOWHERE else result.span
    related = () if asked in (place, NOWHERE) else ((asked, "asked for here"),)
    raise _refusal("MF0601", f"{result.directive} does not apply: {result.reason}", place, source_name, related)


def _asked_for(text: str, span: Span, source_name: str) -> Schedule:
    """Return the directives of a pragma."""
    found = re.fullmatch(r"metafork\s+schedule\s*\((.*)\)\s*", text, re.DOTALL)
    try:
        if found is None:
            raise ScheduleError("the pragma is not `#pragma metafork schedule(...)`")
        return schedule_of(found[1])
    except ScheduleError as error:
        raise _refusal("MF0602", str(error), span, source_name) from None


def _refusal(
    code: str, message: str, span: Span, source_name: str, related: tuple[tuple[Span, str], ...] = ()
) -> DiagnosticsError:
    entry = CATALOGUE[code]
    fault = Diagnostic(code, Severity.ERROR, message, span, source_name, entry.reason, entry.way_out, related)
    return DiagnosticsError([fault])
