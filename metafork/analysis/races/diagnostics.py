"""Races of the input as diagnostics: MF0401 and MF0402 for certain ones, MF0403 where nothing is proved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress

from msgspec.structs import replace

from metafork.algebra.polynomial import ONE
from metafork.analysis.loop_ranges import LoopKind
from metafork.analysis.races.assertions import Assertions
from metafork.analysis.races.proof import RaceKind, Unproved
from metafork.analysis.races.races import Race, race_report
from metafork.analysis.references import Reference
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError, Severity
from metafork.ir.program import (
    Declare,
    Expr,
    IntConst,
    Phase,
    Program,
    walk_statements,
)
from metafork.ir.rewriting import variables
from metafork.ir.translation_unit import Function, TranslationUnit
from metafork.printing.expressions import Spelling, as_written, expression

_CODES = {RaceKind.GRID: "MF0401", RaceKind.THREADS: "MF0402"}
_UNPROVED = "MF0403"
_NONE = "No assertion is known that would prove it."
_NO_WORDS = re.compile(r"//(?:\\\r?\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
"""What is no part of a program's names: comments, strings and characters."""
_MADE = re.compile(r"one(?:_\d+)?")
"""The loops of one iteration that the front end makes, whatever else in the text has such a name."""
_NUMBERED = re.compile(r"\b([A-Za-z_]\w*?)_\d+\b")


def check_races(
    unit: TranslationUnit, *, strict: bool = False, deadline: float | None = None
) -> tuple[Diagnostic, ...]:
    """Return warnings about accesses that are not proved free of races.

    Raises ``DiagnosticsError`` where a race is certain; with ``strict`` also where freedom from races is not proved.
    ``deadline`` (of ``time.monotonic``) ends the search for proofs, not that for races.
    An error names two iterations, the parameter values and the element; a warning says why nothing is known.  Both
    call variables what the text calls them.
    """
    found: list[Diagnostic] = []
    words = frozenset(re.findall(r"\w+", _NO_WORDS.sub(" ", unit.source.text)))
    for schedule in unit.schedules:
        program, name = schedule.program, unit.source.name
        function = next(one for one in unit.functions if one.name == schedule.function)
        members = {one.name: one.member for one in function.values if one.member}
        report = race_report(program, deadline, schedule.promises, _computed(program, function))
        sayable = {one.name for one in program.parameters if one.name in members or _of_text(one.name, words)}
        tried = Assertions(program, sayable, schedule.promises, deadline)
        here = []
        for race in report.races:
            one = _certain(race, program, name, words, tried)
            here.append(replace(one, way_out=_scratch(race, program, function) or one.way_out))
        severity = Severity.ERROR if strict else Severity.WARNING
        here += [_open(pair, program, name, severity, tried) for pair in report.unproved]
        found += [_in_words(one, members, words) for one in here]
    if any(one.severity is Severity.ERROR for one in found):
        raise DiagnosticsError(found)
    return tuple(found)


def _computed(program: Program, function: Function) -> set[str]:
    """Return the parameters that are variables of a function, computed in a way that is not known."""
    given = {one.name for one in function.values}
    body = range(function.body.start, function.body.end)
    own = (one for one in program.parameters if one.span.start in body and not one.of_serial_loop)
    return {one.name for one in own if one.name not in given}


def _scratch(race: Race, program: Program, function: Function) -> str:
    """Return the way out where all iterations use the same few elements of an array of the function's own."""
    array = next(one for one in program.arrays if one.name == race.first.array)
    own = array.span.start in range(function.body.start, function.body.end) and not array.members and not array.scalar
    if not own or not all(isinstance(extent, IntConst) for extent in array.extents):
        return ""
    for access in (race.first, race.second):
        alike = {loop.var for loop in access.loops if loop.kind is LoopKind.SERIAL}
        alike |= {parameter.name for parameter in program.parameters}
        if not all(index is not None and index.symbols <= alike for index in access.indices):
            return ""
    extents = "".join(f"[{expression(extent)}]" for extent in array.extents)
    declaration = f"{array.element.spelling} {array.name}{extents};"
    return (
        "declare it in the loop, where each iteration has its own, if none needs what another left in it: "
        f"`{declaration}`."
    )


def _written(text: str, words: Set[str]) -> str:
    """Give a variable the name back that it has in a file with these words: ``u`` where the program has ``u_1``.

    The front end makes such a name where one is taken already, and never one that the file has.
    """

    def name(found: re.Match[str]) -> str:
        return found[0] if found[0] in words or found[1] not in words else found[1]

    return _NUMBERED.sub(name, text)


def _in_words(one: Diagnostic, members: Mapping[str, str], words: Set[str]) -> Diagnostic:
    """Call variables, and members of structures, what the text calls them."""

    def told(text: str) -> str:
        return _written(re.sub(r"\w+", lambda found: members.get(found[0], found[0]), text), words)

    return replace(one, message=told(one.message), reason=told(one.reason), way_out=told(one.way_out))


def _of_text(name: str, words: Set[str]) -> bool:
    return _written(name, words) in words


def _verb(reference: Reference) -> str:
    if reference.atomic:
        return "updated atomically"
    return "written" if reference.writes else "read"


def _values(names: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in names.items())


def _iteration(access: Reference, values: Mapping[str, int], race: Race, program: Program, words: Set[str]) -> str:
    """Return the iteration of an access by the variables that the text has.

    Where the front end counts blocks and threads by others, their code begins with what those of the text are.
    """
    serial = {loop.var for loop in access.loops if loop.kind is LoopKind.SERIAL}
    made = {name for name in values if _written(name, words) not in words}
    single = {loop.var for loop in access.loops if loop.trips == ONE}
    told = {name for name in single if name in made or _MADE.fullmatch(name)}
    known = {**race.parameters, **values}
    shown = {name: value for name, value in values.items() if name not in serial}
    for body in (program.body, *(stmt.body for stmt in walk_statements(program.body) if isinstance(stmt, Phase))):
        for stmt in body:
            if not isinstance(stmt, Declare):
                break
            # The front end cuts a loop over `i` into `i_block` and `i_thread`.
            whole = _NUMBERED.sub(r"\1", stmt.name)
            parts = re.compile(rf"{whole}_(?:block|thread)(?:_\d+)?")
            own = made | {name for name in values if parts.fullmatch(name)}
            used = frozenset() if stmt.value is None else own & variables(stmt.value)
            with suppress(NoValueError):
                if stmt.value is not None and used:
                    known[stmt.name] = shown[stmt.name] = integer_value(stmt.value, known)
                    told |= used
    return _values({name: value for name, value in shown.items() if name not in told})


def _certain(race: Race, program: Program, source_name: str, words: Set[str], tried: Assertions) -> Diagnostic:
    from metafork.ir.messages.catalogue import CATALOGUE  # most files have no race

    code = _CODES[race.kind]
    entry = CATALOGUE[code]
    place = replace(race.first.element, indices=tuple(IntConst(index) for index in race.element))
    element = expression(place, as_written(program))
    parameters = {p.name: race.parameters[p.name] for p in program.parameters if p.name in race.parameters}
    where = "in one launch" if race.kind is RaceKind.GRID else "between two barriers"
    message = (
        f"{entry.title} on {element} {where}: {_verb(race.first)} for "
        f"{_iteration(race.first, race.first_iteration, race, program, words)} and {_verb(race.second)} for "
        f"{_iteration(race.second, race.second_iteration, race, program, words)}, with {_values(parameters)}"
    )
    related = (
        ((race.second.element.span, f"the other access, {_verb(race.second)}"),)
        if race.second.element.span != race.first.element.span
        else ()
    )
    return Diagnostic(
        code,
        Severity.ERROR,
        message,
        race.first.element.span,
        source_name,
        entry.reason,
        _way_out(entry.way_out, tried.against(race), program),
        related,
    )


def _way_out(usual: str, conditions: Sequence[Expr], program: Program) -> str:
    """Return a way out; where a condition on parameters is another one, also how to say that it holds."""
    if not conditions:
        return usual
    said = [expression(one, as_written(program)) for one in conditions]
    always = f"Where {' and '.join(said)} always hold{'' if len(said) > 1 else 's'}, say so in front of the schedule"
    return f"{usual} {always}: `assert({' && '.join(said)});`."


def _open(pair: Unproved, program: Program, source_name: str, severity: Severity, tried: Assertions) -> Diagnostic:
    from metafork.ir.messages.catalogue import CATALOGUE

    entry = CATALOGUE[_UNPROVED]
    found = tried.for_proof(pair)
    who = "blocks" if pair.kind is RaceKind.GRID else "threads"
    related = (
        ((pair.second.element.span, "the other access"),) if pair.second.element.span != pair.first.element.span else ()
    )
    return Diagnostic(
        _UNPROVED,
        severity,
        f"accesses of different {who} to {pair.first.array} are not proved free of races",
        pair.first.element.span,
        source_name,
        _reason(pair, as_written(program)),
        _way_out(entry.way_out, found, program) if found else f"{entry.way_out} {_NONE}",
        related,
    )


def _reason(pair: Unproved, spelling: Spelling) -> str:
    """Return why nothing is known, with every index of either access that is not known."""
    unknown = list(dict.fromkeys((*_unknown_indices(pair.first, spelling), *_unknown_indices(pair.second, spelling))))
    parts = []
    if pair.compared:
        parts.append(f"it is not proved that different iterations touch different elements of {pair.first.array}")
    if unknown:
        verb = "is no known polynomial" if len(unknown) == 1 else "are no known polynomials"
        parts.append(f"{' and '.join(unknown)} {verb} in loop variables and parameters")
    return "; ".join(parts)


def _unknown_indices(access: Reference, spelling: Spelling) -> Iterator[str]:
    element = access.element
    for code, value in zip(element.indices, access.indices, strict=True):
        if value is None:
            yield f"the index {expression(code, spelling)} of {expression(element, spelling)}"
