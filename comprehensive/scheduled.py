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
from metafork.transform.directive import Refused
from metafork.transform.schedule import Schedule, ScheduleError, applied, schedule_of


def scheduled_unit(unit: TranslationUnit, analyses: Analyses | None = None) -> TranslationUnit:
    """Return a file with the directives of its pragmas applied; raises ``DiagnosticsError`` (MF0601, MF0602)."""
    faults: list[Diagnostic] = []
    schedules = []
    for schedule in unit.schedules:
        if schedule.directives is not None and schedule.written is None:
            text, span = schedule.directives
            result = _scheduled(schedule.program, text, span, unit.source.name, analyses or Analyses())
            if isinstance(result, Diagnostic):
                faults.append(result)
            else:
                schedule = replace(schedule, program=result, written=schedule.program)
        schedules.append(schedule)
    if faults:
        raise DiagnosticsError(faults)
    return replace(unit, schedules=tuple(schedules))


def scheduled_program(program: Program, schedule: Schedule, source_name: str, analyses: Analyses) -> Program:
    """Return a program with directives applied; raises ``DiagnosticsError`` (MF0601)."""
    result = applied(program, schedule, analyses)
    if isinstance(result, Refused):
        raise DiagnosticsError([_fault("MF0601", result.span, f"{program.name}: {result.reason}", source_name)])
    return result


def _scheduled(program: Program, text: str, span: Span, source_name: str, analyses: Analyses) -> Program | Diagnostic:
    found = re.fullmatch(r"metafork\s+schedule\s*\((.*)\)\s*", text, re.DOTALL)
    try:
        if found is None:
            raise ScheduleError("the pragma is not `#pragma metafork schedule(...)`")
        result = applied(program, schedule_of(found[1]), analyses)
    except ScheduleError as error:
        return _fault("MF0602", span, str(error), source_name)
    if isinstance(result, Refused):
        place = span if result.span == NOWHERE else result.span
        return _fault("MF0601", place, result.reason, source_name, () if place == span else ((span, "asked for here"),))
    return result


def _fault(
    code: str, span: Span, message: str, source_name: str, related: tuple[tuple[Span, str], ...] = ()
) -> Diagnostic:
    entry = CATALOGUE[code]
    return Diagnostic(code, Severity.ERROR, message, span, source_name, entry.reason, entry.way_out, related)
