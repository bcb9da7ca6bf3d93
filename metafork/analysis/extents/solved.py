"""A file with the extents that follow from accesses: a unit in, its arrays endless where nobody said more, a unit out.

An array that a function is given has one extent, in its parameters, at all of its schedules.  Where that is not proved,
and of pointers that are variables, there is one at each schedule, by what its program names.  Where there is none
either, the array stays without end, and a warning says why: kernels need no extents, but a copy of the array does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.analysis.exactness import exact_unit
from metafork.analysis.extents.host_loops import WholeLoops
from metafork.analysis.extents.pointer_extents import Unknown, extents_of
from metafork.analysis.extents.unknown_extents import found_out, unknown_extent
from metafork.ir.control import variables_of
from metafork.ir.messages.catalogue import CATALOGUE
from metafork.ir.messages.diagnostics import Diagnostic, DiagnosticsError, Severity
from metafork.ir.messages.source import Span
from metafork.ir.program import ENDLESS, Array, Cast, Expr, ParameterKind, Program, Var
from metafork.ir.rewriting import placed, substitute, variables
from metafork.ir.translation_unit import Function, FunctionParameter, Schedule, TranslationUnit
from metafork.printing.expressions import expression


class UnfitError(Exception):
    """Pointers are no arrays: what their extents name means something else at a schedule."""


class _Found(Struct):
    """The extents of one function's pointers.

    ``given`` are those of what it is given, ``here`` those at each of its places for schedules alone.
    """

    given: dict[str, Expr] = field(default_factory=dict)
    here: list[dict[str, Expr]] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)


def solved(unit: TranslationUnit) -> TranslationUnit:
    """Return the unit with the extents of arrays that are ``followed``, and warnings about those that have none.

    Raises ``UnfitError`` where pointers cannot be arrays, ``DiagnosticsError`` where a function changes what an extent
    of its parameters names.
    """
    exact = exact_unit(unit)
    found = {one.name: _exchanged(exact, one, _extents(exact, one)) for one in exact.functions}
    for function in unit.functions:
        _refuse_changed(unit, function, found[function.name].given)
    schedules: list[Schedule] = []
    for function in unit.functions:
        extents = found[function.name]
        for here, place in zip(extents.here, _places(unit, function), strict=True):
            entry = _entry_values(place, function, extents.given, here)
            at = [_with_extents(one, {**extents.given, **here}) for one in place]
            schedules += (replace(one, entry_values=entry) for one in at)
    schedules.sort(key=lambda one: one.number)
    functions = tuple(_with_given(unit, one, found[one.name].given) for one in unit.functions)
    result = replace(unit, functions=functions, schedules=tuple(schedules))
    left = found_out(result)
    told = dict.fromkeys(warning for one in found.values() for warning in one.warnings if warning.span in left)
    return replace(result, warnings=tuple(replace(one, reason=f"{one.reason} {left[one.span]}") for one in told))


def _schedules(unit: TranslationUnit, function: Function) -> list[Schedule]:
    return [one for one in unit.schedules if one.function == function.name]


def _places(unit: TranslationUnit, function: Function) -> list[tuple[Schedule, ...]]:
    return [place for place in unit.places if place[0].function == function.name]


def _followed(schedule: Schedule, function: Function, *, given: bool) -> dict[str, Array]:
    """Return a schedule's arrays whose extents are to be found: those that its function is given, or the others."""
    followed = () if schedule.followed is None else schedule.followed.arrays
    head = range(function.span.start, function.body.start)
    arrays = {one.whole or one.name: one for one in schedule.program.arrays if one.endless}
    return {name: one for name, one in arrays.items() if name in followed and (one.span.start in head) == given}


def _whole_loops(schedule: Schedule) -> WholeLoops:
    return () if schedule.followed is None else schedule.followed.whole_loops


def _given(unit: TranslationUnit, function: Function) -> dict[str, Array]:
    found = (_followed(one, function, given=True) for one in _schedules(unit, function))
    return {name: array for each in found for name, array in each.items()}


# --- what extents there are ---------------------------------------------------------------------------------------


def _extents(unit: TranslationUnit, function: Function) -> _Found:
    """Return the extents of a function's pointers, and why others have none."""
    schedules = _schedules(unit, function)
    programs, whole = [one.program for one in schedules], [_whole_loops(one) for one in schedules]
    pointers = _given(unit, function)
    hidden = {one.name for each in programs for one in each.derived}  # a local may have a parameter's name
    integers = [one for one in function.values if one.type is not None and one.type.integer and one.name not in hidden]
    names: dict[str, Expr] = {one.name: Var(one.name, one.type) for one in integers if one.type is not None}
    names |= _derived(programs, names)
    others = {name for one in schedules for name in _followed(one, function, given=False)}
    untold = {name: Unknown(f"another variable is called `{name}` too") for name in others & pointers.keys()}
    least = {one.name: one.least for one in function.parameters}
    fit = [name for name in pointers if name not in untold]
    said = extents_of(programs, fit, names, _beside(schedules), least, whole)
    untold |= said.unknown
    result = _Found(dict(said.known))
    told = set[str]()
    failed = list[tuple[dict[str, Expr], str]]()
    # Of two programs of one place, the second adds up what the first has.
    for schedule, *_ in _places(unit, function):
        program, around = schedule.program, [_whole_loops(schedule)]
        # A copy that grows with a loop around the schedule would move again and again.
        names_here: dict[str, Expr] = {one.name: Var(one.name, one.type) for one in program.derived}
        names_here |= {one.name: Var(one.name, one.type) for one in program.parameters if not one.of_serial_loop}
        here = dict[str, Expr]()
        if own := _followed(schedule, function, given=False):
            found = extents_of([program], own, names_here, whole=around)
            here |= {**found.known, **dict.fromkeys(found.unknown, ENDLESS)}
            result.warnings += (unknown_extent(unit, function, own[name], why) for name, why in found.unknown.items())
        # Parameters without one extent in parameters are what variables are.
        other = {name for name, why in untold.items() if why.other or len(programs) > 1}
        if left := sorted(_followed(schedule, function, given=True).keys() & other):
            found = extents_of([program], left, names_here, whole=around)
            here |= found.known
            told |= found.known.keys()
            failed += ((here, name) for name in found.unknown)
        result.here.append(here)
    for here, name in failed:
        if name in told:
            here[name] = ENDLESS
    result.given |= dict.fromkeys(untold.keys() - told, ENDLESS)
    missing = {name for name in untold if name not in told} | {name for _, name in failed}
    result.warnings += (unknown_extent(unit, function, pointers[name], untold[name]) for name in sorted(missing))
    return result


def _beside(schedules: Sequence[Schedule]) -> list[list[int]]:
    """Return for each schedule of a function the numbers of those that run whenever it does."""
    together: list[int] = []
    for number, schedule in enumerate(schedules):
        together.append(together[-1] if schedule.beside else number)
    return [[other for other, group in enumerate(together) if group == own] for own in together]


def _derived(programs: Sequence[Program], names: Collection[str]) -> dict[str, Expr]:
    """Return what derived scalars are in terms of some names; of those that mean several things nothing."""
    found: dict[str, Expr] = {}
    several = {one.name for program in programs for one in program.parameters}
    for program in programs:
        known: dict[str, Expr] = {}
        for one in program.derived:
            value = substitute(one.definition, known)
            if {part.name for part in variables_of(value)} <= {*names}:
                known[one.name] = value if value.type is one.type else Cast(one.type, value)
                if found.setdefault(one.name, value) != value:
                    several.add(one.name)
    return {name: value for name, value in found.items() if name not in several and name not in names}


def _exchanged(unit: TranslationUnit, function: Function, found: _Found) -> _Found:
    """Return extents without those of arrays that change places, if one of these has none or another one."""
    given, warnings = dict(found.given), list(found.warnings)
    called = {one.name: one.member for one in function.values if one.member}
    pointers = _given(unit, function)
    groups = [
        {array, *others}
        for one in _schedules(unit, function)
        if one.followed is not None
        for array, others in one.followed.exchanged.items()
    ]
    for own in (sorted(group & given.keys()) for group in groups):
        unknown = next((name for name in own if given[name] == ENDLESS), None)
        unlike = next((name for name in own if given[name] != given[own[0]]), None)
        said = {name: f"{called.get(name, name)}[{expression(given[name])}]" for name in own}
        for name in own if unknown or unlike else ():
            if given[name] != ENDLESS:
                other = next(one for one in (unknown, unlike, own[0]) if one not in (None, name))
                of_others = f", of which they say `{said[other]}`, and of this one `{said[name]}`"
                why = Unknown(f"it changes places with `{called.get(other, other)}`{'' if unknown else of_others}")
                warnings.append(unknown_extent(unit, function, pointers[name], why))
                given[name] = ENDLESS
    return replace(found, given=given, warnings=warnings)


def _refuse_changed(unit: TranslationUnit, function: Function, given: Mapping[str, Expr]) -> None:
    """Raise an error where integers that extents name are not at a schedule what the function was given."""
    changes: dict[Array, tuple[str, Span | None]] = {}
    for schedule in _schedules(unit, function):
        changed = {} if schedule.followed is None else schedule.followed.changed
        for name, array in _followed(schedule, function, given=True).items():
            names = [part.name for part in variables_of(given.get(name, ENDLESS)) if part.name in changed]
            if names:
                changes.setdefault(array, (names[0], changed[names[0]]))
    entry = CATALOGUE["MF0309"]
    faults = [
        Diagnostic(
            "MF0309",
            Severity.ERROR,
            f"the extent of `{array.whole or array.name}` uses `{name}`, which may change before the schedule",
            array.span,
            unit.source.name,
            entry.reason,
            entry.way_out,
            ((place, f"`{name}` may change here"),),
        )
        for array, (name, place) in changes.items()
        if place is not None
    ]
    if faults:
        raise DiagnosticsError(faults)
    if changes or not _given(unit, function).keys() <= {one.name for one in function.values if one.array is not None}:
        raise UnfitError


# --- where they go ------------------------------------------------------------------------------------------------


def _entry_values(
    place: Sequence[Schedule], function: Function, given: Mapping[str, Expr], here: Mapping[str, Expr]
) -> tuple[str, ...]:
    """Return the parameters that must not have changed at a place, those that extents name among them."""
    arrays = {name for one in place for name in _followed(one, function, given=True)} - here.keys()
    named = {part.name for name in arrays for part in variables_of(given[name])}
    doubted = {name for one in place if one.followed is not None for name in one.followed.doubted}
    kept = {name for one in place for name in one.entry_values} - here.keys()
    return tuple(sorted(kept | (named & doubted)))


def _with_extents(schedule: Schedule, extents: Mapping[str, Expr]) -> Schedule:
    """Return a schedule with extents; of those that are not known, that of the memory that malloc has given."""
    known = schedule.followed
    if known is None:
        return schedule
    first = {name: extents.get(name, ENDLESS) for name in known.arrays}
    first |= {name: extent for name, extent in known.memory.items() if first[name] == ENDLESS}
    sizing = {part.name for extent in first.values() for part in variables_of(extent)}
    program, wider = schedule.program, known.wider
    for each in reversed(wider.derived):
        sizing |= {part.name for part in variables_of(each.definition)} if each.name in sizing else set()
    kept = sizing.union((one.name for one in program.parameters), (one.name for one in program.derived))
    data = (replace(one, kind=ParameterKind.DATA) if one.name in sizing else one for one in wider.parameters)
    program = replace(
        program,
        parameters=tuple(one for one in data if one.name in kept),
        values=tuple(one for one in program.values if one.name not in kept),
        derived=tuple(one for one in wider.derived if one.name in kept),
        assumptions=tuple(one for one in wider.assumptions if variables(one) <= kept),
        arrays=tuple(_with_first(one, first.get(one.whole or one.name, ENDLESS)) for one in program.arrays),
    )
    return replace(schedule, program=program, followed=None)


def _with_first(array: Array, extent: Expr) -> Array:
    return array if extent == ENDLESS else replace(array, extents=(placed(extent, array.span), *array.extents[1:]))


def _with_given(unit: TranslationUnit, function: Function, given: Mapping[str, Expr]) -> Function:
    """Return a function with the extents of what it is given; what has none but at a schedule is no array to it."""
    pointers = _given(unit, function)

    def leading(parameter: FunctionParameter) -> FunctionParameter:
        array = parameter.array
        if array is not None and parameter.name in pointers:
            array = _with_first(array, given[parameter.name]) if parameter.name in given else None
        return replace(parameter, array=array, parts=tuple(map(leading, parameter.parts)))

    return replace(function, parameters=tuple(map(leading, function.parameters)))
