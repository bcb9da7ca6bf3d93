"""A file read with pointers for arrays: those of which no pragma says the extent get that of their accesses.

Such pointers are taken as arrays without end first.  Where a schedule uses one, its greatest index is looked for
(``metafork.analysis.extents``), and the file is parsed with the extents that are proved.  Where one is not, the array
stays without end, and a warning says why: kernels need no extents, but a copy of the array does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from metafork import frontend
from metafork.analysis.exactness import exact_unit
from metafork.frontend.pragmas.pointers import NOT_KNOWN
from metafork.ir.control import variables_of
from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError, Severity
from metafork.ir.messages.source import Source, Span
from metafork.ir.program import ENDLESS, Array, Expr, Program
from metafork.ir.rewriting import substitute
from metafork.ir.translation_unit import Function, Schedule, TranslationUnit
from metafork.printing.expressions import expression

if TYPE_CHECKING:
    from metafork.analysis.extents.pointer_extents import Unknown


def parse(source: Source, *, reassociate: bool = False) -> TranslationUnit:
    """Return the parsed file; raises ``metafork.DiagnosticsError``."""
    unit = _parsed(source, reassociate=reassociate)
    faults = [one for schedule in unit.schedules for one in _not_packed(unit, schedule)]
    if faults:
        raise DiagnosticsError(faults)
    return unit


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


def _parsed(source: Source, *, reassociate: bool) -> TranslationUnit:
    """Return the parsed file with the extents of pointers."""
    asked: set[tuple[str, str]] = set()

    def without_end(function: str, name: str, schedule: int | None) -> str:
        asked.add((function, name))
        return f"{ENDLESS.value}L"

    try:
        endless = frontend.parse(source, reassociate=reassociate, extents=without_end)
    except DiagnosticsError as others:
        refused = _refusal(source, reassociate)
        if isinstance(refused, TranslationUnit):
            return refused
        if not any(one.code in _POINTERS for one in refused.diagnostics):
            raise refused from None
        raise DiagnosticsError(_remaining(others.diagnostics, refused.diagnostics)) from None
    if not asked:
        return endless
    if not any(array.endless for one in endless.schedules for array in one.program.arrays):
        return frontend.parse(source, reassociate=reassociate)  # no schedule uses these pointers
    read = _extents(exact_unit(endless), asked)
    try:
        try:
            unit = frontend.parse(source, reassociate=reassociate, extents=read.extent)
        except DiagnosticsError as others:
            if not read.forget(endless, others.diagnostics):
                raise
            unit = frontend.parse(source, reassociate=reassociate, extents=read.extent)
        found = _found_out(unit)
        told = dict.fromkeys(one for one in read.warnings if one.span in found)
        left = [replace(one, reason=f"{one.reason} {found[one.span]}") for one in told]
        return replace(unit, warnings=tuple(left))
    except DiagnosticsError as others:
        refused = _refusal(source, reassociate)
        if isinstance(refused, TranslationUnit):
            return refused
        if read.unfit:
            explained = [_explained(one, read.unfit) for one in refused.diagnostics]
            raise DiagnosticsError([one for one in explained if one is not None] or refused.diagnostics) from None
        # What the function moves, or does to a size, is told; of what these extents name, nobody wrote anything.
        if not any(one.code in ("MF0309", "MF0316") for one in others.diagnostics):
            raise refused from None
        raise DiagnosticsError([_moved(one, endless, read.given) for one in others.diagnostics]) from None


def _refusal(source: Source, reassociate: bool) -> DiagnosticsError | TranslationUnit:
    """Return why the file is refused as it stands, or the parsed file."""
    try:
        return frontend.parse(source, reassociate=reassociate)
    except DiagnosticsError as refused:
        return refused


class _Read(Struct):
    """The extents that accesses say, and warnings about others.

    ``given`` are those of parameters, by function and name; ``here`` those of variables at a function's schedules.
    Pointers that are ``unfit`` to be arrays are listed with the place of their function.
    """

    given: dict[str, dict[str, str]] = field(default_factory=dict)
    here: dict[tuple[str, int], dict[str, str]] = field(default_factory=dict)
    warnings: list[Diagnostic] = field(default_factory=list)
    unfit: list[tuple[Span, Mapping[str, Unknown]]] = field(default_factory=list)

    def extent(self, function: str, name: str, schedule: int | None) -> str | None:
        """Return the extent of a parameter, or of a variable at a schedule."""
        said = self.given.get(function, {}) if schedule is None else self.here.get((function, schedule), {})
        return said.get(name)

    def forget(self, unit: TranslationUnit, refused: Sequence[Diagnostic]) -> bool:
        """Let arrays that change places have no extents, if one has none or another one; say if there are any."""
        from metafork.analysis.extents.pointer_extents import Unknown

        moves = [span for one in refused if one.code == "MF0316" for span, _ in one.related]
        moved = {name for span in moves for name in _PATH.findall(unit.source.text[span.start : span.end])}
        count = len(self.warnings)
        for function in unit.functions:
            given = self.given[function.name]
            own = sorted(one.name for one in function.values if one.name in given and moved & {one.name, one.member})
            unknown = next((name for name in own if given[name] == NOT_KNOWN), None)
            unlike = next((name for name in own if given[name] != given[own[0]]), None)
            called = {one.name: one.member for one in function.values if one.member}
            said = {name: f"{called.get(name, name)}[{given[name]}]" for name in own}
            programs = [one.program for one in unit.schedules if one.function == function.name]
            arrays = {one.whole or one.name: one for each in programs for one in each.arrays if one.endless}
            for name in own if unknown or unlike else ():
                if given[name] != NOT_KNOWN:
                    other = next(one for one in (unknown, unlike, own[0]) if one not in (None, name))
                    given[name] = NOT_KNOWN
                    of_others = f", of which they say `{said[other]}`, and of this one `{said[name]}`"
                    why = Unknown(f"it changes places with `{called.get(other, other)}`{'' if unknown else of_others}")
                    self.warnings.append(_warning(unit, function, arrays[name], why))
        return len(self.warnings) > count


def _extents(unit: TranslationUnit, asked: Collection[tuple[str, str]]) -> _Read:
    """Return the extents of pointers, those that were ``asked`` for by function and name, and why others have none."""
    # few files have pointers without an extent
    from metafork.analysis.extents.pointer_extents import Unknown, extents_of

    result = _Read()
    for function in unit.functions:
        schedules = [one for one in unit.schedules if one.function == function.name]
        programs = [one.program for one in schedules]
        pointers = {name for of, name in asked if of == function.name}
        endless = {name: one for each in programs for name, one in _endless(each, function, pointers).items()}
        ranks = {one.name: len(one.array.extents) for one in function.values if one.array is not None}
        unfit = {
            name: Unknown(f"`{name}` leads to rows of another array")
            for name, one in endless.items()
            if len(one.extents) > ranks.get(name, 1 + bool(one.members))
        }
        if unfit:
            result.unfit.append((function.span, unfit))
        variables = {name for each in programs for name in _endless(each, function, pointers, given=False)}
        untold = {name: Unknown(f"another variable is called `{name}` too") for name in variables & endless.keys()}
        hidden = {one.name for each in programs for one in each.derived}  # a local may have a parameter's name
        names = [one.name for one in function.values if one.type is not None and one.type.integer]
        names = [name for name in names if name not in hidden]
        derived = _derived(programs, names)
        fit = [name for name in endless if name not in unfit and name not in untold]
        least = _least(function)
        beside, whole = _beside(unit, function, schedules), [one.whole_loops for one in schedules]
        given = extents_of(programs, fit, [*names, *derived], beside, least, whole)
        result.given[function.name] = {name: _written_out(text, derived) for name, text in given.known.items()}
        untold |= given.unknown
        told = set[str]()
        failed = list[tuple[int, str]]()
        # Of two programs of one place, the second adds up what the first has.
        firsts = (place[0] for place in unit.places if place[0].function == function.name)
        for number, schedule in enumerate(firsts):
            program = schedule.program
            # A copy that grows with a loop around the schedule would move again and again.
            names = [one.name for one in program.parameters if not one.of_serial_loop]
            names += [one.name for one in program.derived]
            here = dict[str, str]()
            if own := _endless(program, function, pointers, given=False):
                found = extents_of([program], own, names, whole=[schedule.whole_loops])
                here |= {**found.known, **dict.fromkeys(found.unknown, NOT_KNOWN)}
                result.warnings += (_warning(unit, function, own[name], why) for name, why in found.unknown.items())
            # Parameters without one extent in parameters are what variables are.
            other = {name for name, why in untold.items() if why.other or len(programs) > 1}
            if left := sorted(_endless(program, function, pointers).keys() & other):
                found = extents_of([program], left, names, whole=[schedule.whole_loops])
                here |= found.known
                told |= found.known.keys()
                failed += ((number, name) for name in found.unknown)
            result.here[function.name, number] = here
        for number, name in failed:
            if name in told:
                result.here[function.name, number][name] = NOT_KNOWN
        result.given[function.name] |= dict.fromkeys(untold.keys() - told, NOT_KNOWN)
        missing = {name for name in untold if name not in told} | {name for _, name in failed}
        result.warnings += (_warning(unit, function, endless[name], untold[name]) for name in sorted(missing))
    return result


def _endless(
    program: Program, function: Function, pointers: Collection[str], *, given: bool = True
) -> dict[str, Array]:
    """Return the arrays of a program without a known end: of some pointers, those that its function is given or not."""
    head = range(function.span.start, function.body.start)
    found = {one.whole or one.name: one for one in program.arrays if one.endless}
    return {name: one for name, one in found.items() if name in pointers and (one.span.start in head) == given}


def _beside(unit: TranslationUnit, function: Function, schedules: Sequence[Schedule]) -> list[list[int]]:
    """Return for each schedule of a function those that run whenever it does, with the same parameters.

    These stand in one block of it, and between them nothing that may leave that block or give parameters values.
    """
    text, body = unit.source.text, function.body
    together = list(range(len(schedules)))
    for number in range(1, len(schedules)):
        one, other = schedules[number - 1], schedules[number]
        between = _COMMENTS.sub(" ", text[one.span.end : other.span.start])
        names = {parameter.name for each in (one, other) for parameter in each.program.parameters}
        alone = any(
            _BEHIND_A_HEAD.search(_COMMENTS.sub(" ", text[body.start : each.span.start])) for each in (one, other)
        )
        changed = any(
            re.search(rf"[&+-]\s*{name}\b|\b{name}\s*(?:[-+*/%&|^]|<<|>>)?=|\b{name}\s*(?:\+\+|--)", between)
            for name in names
        )
        if one.span == other.span or not (alone or changed or _LEAVES.search(between)):
            together[number] = together[number - 1]
    return [[other for other, group in enumerate(together) if group == own] for own in together]


def _least(function: Function) -> dict[str, int]:
    """Return how many elements parameters have at least: 4, if one is ``x[static 4]``."""
    found = ((one.name, re.search(r"\[\s*static\s+(\d+)\s*\]", one.declaration)) for one in function.parameters)
    return {name: int(number[1]) for name, number in found if number is not None}


_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*", re.DOTALL | re.MULTILINE)
_BEHIND_A_HEAD = re.compile(r"(?:[):]|\belse|\bdo)\s*$")
_LEAVES = re.compile(r"[{}]|\b(?:if|else|for|while|do|switch|case|default|return|goto|break|continue)\b")


def _derived(programs: Sequence[Program], names: Collection[str]) -> dict[str, str]:
    """Return what derived scalars are in terms of some names, as C; of those that mean several things nothing."""
    found: dict[str, str] = {}
    several: set[str] = set()
    for program in programs:
        known: dict[str, Expr] = {}
        for one in program.derived:
            value = substitute(one.definition, known)
            if not {part.name for part in variables_of(value)} <= {*names}:
                continue
            known[one.name] = value
            text = f"({expression(value)})"
            if found.setdefault(one.name, text) != text:
                several.add(one.name)
    return {name: text for name, text in found.items() if name not in several and name not in names}


def _written_out(text: str, derived: Mapping[str, str]) -> str:
    return re.sub(r"[A-Za-z_]\w*", lambda word: derived.get(word[0], word[0]), text)


_PATH = re.compile(r"\w+(?:(?:->|\.)\w+)*")
_POINTERS = ("MF0201", "MF0208")
"""The codes of what may be a pointer, or an array without its first extent."""


def _remaining(others: Sequence[Diagnostic], refused: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the errors that are left where pointers are arrays; at these themselves, what is said of the pointers.

    What their accesses say is known once the errors are corrected.
    """
    pointers = {one.span.start: one for one in refused if one.code in _POINTERS}
    own = ("MF0302", "MF0306")  # of what an element is used for
    return list(dict.fromkeys(one if one.code in own else pointers.get(one.span.start, one) for one in others))


def _moved(one: Diagnostic, unit: TranslationUnit, extents: Mapping[str, Mapping[str, str]]) -> Diagnostic:
    """Return an error with the extents that accesses say, where an array is moved that has another one."""
    function = next((f.name for f in unit.functions if f.span.start <= one.span.start < f.span.end), "")
    said = ", ".join(f"{name}[{text}]" for name, text in extents.get(function, {}).items())
    if one.code != "MF0316" or not said:
        return one
    way_out = (
        "say one extent for all arrays that are exchanged, by `#pragma metafork extents(...)` before the function."
    )
    return replace(one, reason=f"{one.reason} These are what accesses say: {said}.", way_out=way_out)


def _explained(one: Diagnostic, unfit: list[tuple[Span, Mapping[str, Unknown]]]) -> Diagnostic | None:
    """Return the refusal of a pointer with the reason why it is no array; ``None`` where it is one."""
    here = [whys for span, whys in unfit if span.start <= one.span.start < span.end]
    found = next(((name, why) for whys in here for name, why in whys.items() if f"`{name}`" in one.message), None)
    if found is None:
        return None
    name, why = found
    way_out = one.way_out.replace("`float a[n]`", f"`{name}[n]` in place of `*{name}`").replace("a[n]", f"{name}[n]")
    if one.message == f"`{name}` is a pointer":
        one = replace(one, message=f"it is not known how many elements `{name}` has")
    return replace(one, reason=f"{one.reason} Its accesses do not say how many: {why.why}.", way_out=way_out)


def _found_out(unit: TranslationUnit) -> dict[Span, str]:
    """Return what the drop-in does about each array without an extent, by the place of its declaration."""
    from metafork.analysis.extents.host_walk import host_walk

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


def _warning(unit: TranslationUnit, function: Function, array: Array, unknown: Unknown) -> Diagnostic:
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
    pragma = f"`#pragma metafork extents({name}[{unknown.most or NOT_KNOWN}]{rows})`"
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
