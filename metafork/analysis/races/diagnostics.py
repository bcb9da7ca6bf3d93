"""Races of the input as diagnostics: MF0401 and MF0402 for certain ones, MF0403 where nothing is proved.

Besides them stand warnings about accesses that leave their array (MF0404) and blocks that no GPU runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace

from metafork.algebra.polynomial import ONE
from metafork.analysis.block_sizes import crowded_blocks, oversized_blocks
from metafork.analysis.races.assertions import Assertions
from metafork.analysis.races.overruns import Overrun, overruns
from metafork.analysis.races.proof import RaceKind, Unproved
from metafork.analysis.races.race_help import RaceHelp
from metafork.analysis.races.races import Race, race_report
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError, Severity
from metafork.ir.rewriting import variables
from metafork.ir.translation_unit import Function, TranslationUnit
from metafork.printing.expressions import Spelling, as_written, expression

_CODES = {RaceKind.GRID: "MF0401", RaceKind.THREADS: "MF0402"}
_UNPROVED = "MF0403"
_NO_WORDS = re.compile(r"//(?:\\\r?\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
"""What is no part of a program's names: comments, strings and characters."""
_MADE = re.compile(r"one(?:_\d+)?")
"""The loops of one iteration that the front end makes, whatever else in the text has such a name."""
_NUMBERED = re.compile(r"\b([A-Za-z_]\w*?)_\d+\b")


def check_races(
    unit: TranslationUnit, *, strict: bool = False, deadline: float | None = None
) -> tuple[Diagnostic, ...]:
    """Return warnings: accesses not proved free of races, or outside of their array, and blocks that no GPU runs.

    Those of the file itself come first.

    Raises ``DiagnosticsError`` where a race is certain; with ``strict`` also where freedom from races is not proved.
    ``deadline`` (of ``time.monotonic``) ends the search for proofs, not that for races.
    An error names two iterations, the parameter values and the element; a warning says why nothing is known.  Both
    call variables what the text calls them.
    """
    found = [*unit.warnings]
    text = unit.source.text
    words = frozenset(re.findall(r"\w+", _NO_WORDS.sub(" ", unit.source.text)))
    for schedule in unit.schedules:
        program, name = schedule.program, unit.source.name
        function = next(one for one in unit.functions if one.name == schedule.function)
        members = {one.name: one.member for one in function.values if one.member}
        report = race_report(program, deadline, schedule.promises, _computed(program, function))
        sayable = {one.name for one in program.parameters if one.name in members or _of_text(one.name, words)}
        tried = Assertions(program, sayable, schedule.promises, deadline)
        advice = RaceHelp(text, schedule, function, words)
        here = []
        for race in _one_of_each_cause(report.races, advice):
            one = _certain(race, program, name, words, tried, advice)
            here.append(replace(one, way_out=_scratch(race, program, function) or one.way_out))
        severity = Severity.ERROR if strict else Severity.WARNING
        here += [
            _open(pair, program, name, severity, tried, advice) for pair in _one_of_each_cause(report.unproved, advice)
        ]
        here += [_beyond(one, program, name, words) for one in overruns(program)]
        found += [_in_words(one, members, words) for one in here]
        found += oversized_blocks(program, name)
        found += crowded_blocks(program, name)
    if any(one.severity is Severity.ERROR for one in found):
        raise DiagnosticsError(found)
    return tuple(found)


def _computed(program: ir.Program, function: Function) -> set[str]:
    """Return the parameters that are variables of a function, computed in a way that is not known."""
    given = {one.name for one in function.values}
    body = range(function.body.start, function.body.end)
    own = (one for one in program.parameters if one.span.start in body and not one.of_serial_loop)
    return {one.name for one in own if one.name not in given}


def _scratch(race: Race, program: ir.Program, function: Function) -> str:
    """Return the way out where all iterations use the same few elements of an array of the function's own."""
    array = next((one for one in program.arrays if one.name == race.first.array), None)
    if array is None:
        return ""  # one of the block's own
    own = array.span.start in range(function.body.start, function.body.end) and not array.members and not array.scalar
    if not own:
        return ""
    for access in (race.first, race.second):
        alike = {loop.var for loop in access.loops if loop.kind is LoopKind.SERIAL}
        alike |= {parameter.name for parameter in program.parameters}
        if not all(index is not None and index.symbols <= alike for index in access.indices):
            return ""
    if array.endless or not all(isinstance(extent, ir.IntConst) for extent in array.extents):
        declaration = f"{array.element.spelling} {array.name}{'[64]' * len(array.extents)};"
        return (
            "give each iteration an array of its own, in the loop and with constant extents that are large enough: "
            f"`{declaration}`; or make it a row for each iteration of a larger array."
        )
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


_Pair = TypeVar("_Pair", Race, Unproved)


def _one_of_each_cause(pairs: Iterable[_Pair], advice: RaceHelp) -> tuple[_Pair, ...]:
    """Leave out what follows from another pair: blocks and threads that meet in the same statements."""
    found: dict[object, _Pair] = {}
    for pair in sorted(pairs, key=lambda one: one.kind is not RaceKind.GRID):
        places = (advice.statement(access) or access.element.span for access in (pair.first, pair.second))
        found.setdefault((pair.first.array, frozenset(places)), pair)
    return tuple(found.values())


def _verb(reference: Reference) -> str:
    if reference.atomic:
        return "updates it atomically"
    return "writes it" if reference.writes else "reads it"


def _at_the_same_time(first: Reference, second: Reference, element: str, may: str = "") -> str:
    """Say that two threads touch an element; with ``may`` that they perhaps do."""
    if first.writes and second.writes and not first.atomic and not second.atomic:
        return f"two threads {may}write {element} at the same time"
    one, other = (first, second) if not first.writes or second.atomic else (second, first)
    told = _verb(one).split() if not may else ["update" if one.atomic else "read", *_verb(one).split()[1:]]
    told[1] = element
    return f"one thread {may}{' '.join(told)} while another {_verb(other)}"


def _values(names: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in names.items())


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _iteration(
    access: Reference, values: Mapping[str, int], parameters: Mapping[str, int], program: ir.Program, words: Set[str]
) -> str:
    """Return the iteration of an access by the variables that the text has.

    Where the front end counts blocks and threads by others, their code begins with what those of the text are.
    """
    serial = {loop.var for loop in access.loops if loop.kind is LoopKind.SERIAL}
    made = {name for name in values if _written(name, words) not in words}
    single = {loop.var for loop in access.loops if loop.trips == ONE}
    told = {name for name in single if name in made or _MADE.fullmatch(name)}
    known = {**parameters, **values}
    shown = {name: value for name, value in values.items() if name not in serial}
    for body in (program.body, *(stmt.body for stmt in ir.walk_statements(program.body) if isinstance(stmt, ir.Phase))):
        for stmt in body:
            if not isinstance(stmt, ir.Declare):
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


def _certain(
    race: Race, program: ir.Program, source_name: str, words: Set[str], tried: Assertions, advice: RaceHelp
) -> Diagnostic:
    place = replace(race.first.element, indices=tuple(ir.IntConst(index) for index in race.element))
    element = expression(place, as_written(program))
    numbers = _numbers(program, race.parameters)
    iterations = [
        _iteration(access, values, race.parameters, program, words)
        for access, values in ((race.first, race.first_iteration), (race.second, race.second_iteration))
    ]
    if _verb(race.first) == _verb(race.second):
        told = f"{iterations[0]} and {iterations[1]} both {_verb(race.first).replace('s ', ' ')}"
    else:
        told = f"{iterations[0]} {_verb(race.first)}, and {iterations[1]} {_verb(race.second)}"
    reason = f"{told}{numbers}."
    apart = race.second.element.span != race.first.element.span
    return Diagnostic(
        _CODES[race.kind],
        Severity.ERROR,
        f"{_at_the_same_time(race.first, race.second, f'`{element}`')}: a race",
        race.first.element.span,
        source_name,
        f"{reason}{_alike(race, advice)}",
        _with_assertion(advice.of(race.kind, race.first, race.second), tried.against(race), program),
        ((race.second.element.span, f"another thread {_verb(race.second)} here"),) if apart else (),
    )


def _numbers(program: ir.Program, values: Mapping[str, int]) -> str:
    """Return which parameters an example has."""
    numbers = [f"{one.name} = {values[one.name]}" for one in program.parameters if one.name in values]
    return f", with {_listed(numbers)}" if numbers else ""


def _beyond(one: Overrun, program: ir.Program, source_name: str, words: Set[str]) -> Diagnostic:
    access, spelling = one.access, as_written(program)
    place = replace(access.element, indices=tuple(ir.IntConst(index) for index in one.element))
    axis = next(k for k, index in enumerate(one.element) if not 0 <= index < one.extents[k])
    array = next(array for array in program.arrays if array.name == access.array)
    before, index = one.element[axis] < 0, access.element.indices[axis]
    check = ir.binary(">=", index, ir.IntConst(0)) if before else ir.binary("<", index, array.extents[axis])
    iteration = _iteration(access, one.iteration, one.parameters, program, words)
    count = " x ".join(map(str, one.extents))
    return Diagnostic(
        "MF0404",
        Severity.WARNING,
        f"`{expression(access.element, spelling)}` goes {'before the start' if before else 'beyond the end'} of "
        f"`{array.name}`",
        access.element.span,
        source_name,
        f"{iteration or 'an iteration'} touches `{expression(place, spelling)}`, and `{array.name}` has {count} "
        f"element{'' if count == '1' else 's'}{_numbers(program, one.parameters)}.",
        f"let the loops end earlier, or check the index: `if ({expression(check, spelling)})`.\n"
        f"if `{array.name}` is larger, declare it so.",
    )


def _alike(race: Race, advice: RaceHelp) -> str:
    """Say which loops make threads of which all touch the same element."""
    loops = [f"`{name}`" for name in advice.repeated(race.first, race.second)]
    if not loops:
        return ""
    what = "loop" if len(loops) == 1 else "loops"
    return f" All iterations of the {what} over {_listed(loops)} touch the same element, and run at the same time."


def _with_assertion(usual: str, conditions: Sequence[ir.Expr], program: ir.Program) -> str:
    """Return a help; where a condition on parameters is a better one, how to say that it holds."""
    if not conditions:
        return usual
    said = [expression(one, as_written(program)) for one in conditions]
    always = f"if {' and '.join(f'`{one}`' for one in said)} always hold{'' if len(said) > 1 else 's'}"
    return f"{always}, say so in front of the schedule: `assert({' && '.join(said)});`\nor {usual}"


def _open(
    pair: Unproved, program: ir.Program, source_name: str, severity: Severity, tried: Assertions, advice: RaceHelp
) -> Diagnostic:
    array = pair.first.array
    apart = pair.second.element.span != pair.first.element.span
    update = advice.updated(pair.first, pair.second)
    ways = [] if update is None else [f"if they may, {one}" for one in advice.atomically(update)]
    ways += advice.greatest(pair.first, pair.second)
    ways = ways or ["if they may, let every iteration write elements of its own, or make the loop a `for`."]
    ways.append(f"if they never do, say so in the line before: `#pragma metafork disjoint({array})`")
    return Diagnostic(
        _UNPROVED,
        severity,
        _at_the_same_time(pair.first, pair.second, f"the same element of `{array}`", "may "),
        pair.first.element.span,
        source_name,
        _reason(pair, as_written(program)),
        _with_assertion("\n".join(ways), tried.for_proof(pair), program),
        ((pair.second.element.span, f"another thread {_verb(pair.second)} here"),) if apart else (),
    )


def _reason(pair: Unproved, spelling: Spelling) -> str:
    """Return why nothing is known, with every index of either access that is not known."""
    unknown: dict[str, bool] = {}
    for text, from_memory in (*_unknown_indices(pair.first, spelling), *_unknown_indices(pair.second, spelling)):
        unknown[text] = unknown.get(text, False) or from_memory
    parts = []
    if pair.compared:
        parts.append(f"It is not proved that different iterations touch different elements of `{pair.first.array}`.")
    if read := [f"`{text}`" for text, from_memory in unknown.items() if from_memory]:
        what, verb = ("index", "comes") if len(read) == 1 else ("indices", "come")
        parts.append(f"The {what} {_listed(read)} {verb} from memory. Two threads may find the same number there.")
    if computed := [f"`{text}`" for text, from_memory in unknown.items() if not from_memory]:
        what, verb = ("index", "is not a") if len(computed) == 1 else ("indices", "are not")
        kind = "polynomial" if len(computed) == 1 else "polynomials"
        parts.append(f"The {what} {_listed(computed)} {verb} {kind} of loop variables and parameters.")
    told = " ".join(parts)
    return told[:1].lower() + told[1:]


def _unknown_indices(access: Reference, spelling: Spelling) -> Iterator[tuple[str, bool]]:
    """Yield each index that is not known, and whether it reads memory."""
    element = access.element
    for code, value in zip(element.indices, access.indices, strict=True):
        if value is None:
            yield expression(code, spelling), any(isinstance(part, ir.Element) for part in ir.walk_expression(code))
