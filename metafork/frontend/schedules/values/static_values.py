"""What ``meta_static`` says in front of a schedule: values of its program parameters, each one that it can have."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from msgspec import Struct

from metafork.frontend.text import syntax
from metafork.frontend.text.clauses.keywords import similar
from metafork.frontend.text.reporter import Reporter
from metafork.ir.messages.source import Span
from metafork.ir.program import ParameterKind, Program
from metafork.ir.static_values import MOST_COMBINATIONS, static_parameters

Listed = tuple[tuple[str, tuple[int, ...]], ...]


class StaticReader(Struct, frozen=True):
    """Reads the clauses of schedules; ``constant`` gives the value of an expression, ``visible`` are names there."""

    reporter: Reporter
    constant: Callable[[syntax.Expression], int | None]
    visible: frozenset[str]

    def read(self, statement: syntax.ScheduleStatement, program: Program) -> Listed:
        """Return the values by parameter, in the order of the text; what is wrong with one is reported (MF0226)."""
        known = static_parameters(program)
        first: dict[str, Span] = {}
        found: dict[str, tuple[int, ...]] = {}
        for clause in statement.static:
            name, place = clause.name.name, clause.name.span
            if name in first:
                self._error(place, f"values of `{name}` are given twice", (first[name], "here already"))
            elif name in known:
                found[name] = self._values(clause, program)
            else:
                self._error(place, self._why_not(name, program))
            first.setdefault(name, place)
        tried = prod(map(len, found.values()))
        if statement.static_words is not None and tried > MOST_COMBINATIONS:
            message = f"these are {tried} combinations of values; at most {MOST_COMBINATIONS} are looked at"
            self._error(statement.static_words, message)
        return tuple(found.items())

    def _values(self, clause: syntax.StaticClause, program: Program) -> tuple[int, ...]:
        name = clause.name.name
        (type_,) = (one.type for one in program.parameters if one.name == name)
        found: list[int] = []
        for text in clause.values:
            value = self.constant(text)
            if value is None:
                self._error(text.span, f"this value of `{name}` is no integer constant")
            elif not 1 <= value <= type_.greatest:
                self._error(text.span, f"`{name}` is never {value}: it is at least 1, and what its type can hold")
            elif value in found:
                self._error(text.span, f"the value {value} of `{name}` is given twice")
            else:
                found.append(value)
        return tuple(found)

    def _why_not(self, name: str, program: Program) -> str:
        """Say why a name cannot be static."""
        for parameter in program.parameters:
            if parameter.name == name and parameter.of_serial_loop:
                return f"a serial loop around the schedule changes `{name}`"
            if parameter.name == name and parameter.kind is ParameterKind.DATA:
                return f"`{name}` sizes an array"
        if any(one.name == name for one in program.derived):
            return f"`{name}` is computed from other parameters: give values of those"
        if any(one.name == name for one in program.values):
            return f"`{name}` decides no extent, index or condition of the schedule"
        known = sorted(static_parameters(program))
        meant = similar(name, known)
        hint = (
            f"; did you mean `{meant}`?" if meant else f": those are {', '.join(known)}" if known else ": it has none"
        )
        if name in self.visible:
            return f"`{name}` is no program parameter of this schedule{hint}"
        return f"`{name}` is not declared{hint}" if meant else f"`{name}` is not declared"

    def _error(self, place: Span, message: str, *related: tuple[Span, str]) -> None:
        self.reporter.error("MF0226", place, message, related=related)
