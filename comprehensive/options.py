"""What the user says beside the input: a machine, and inequalities that are to be assumed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Literal, TypeAlias

from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.comprehensive.registry import UnknownNameError, closest
from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.systems.signs import integral
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Expr, IntConst, Program, Var, binary
from metafork.ir.static_values import MOST_COMBINATIONS, StaticValues, static_parameters
from metafork.ir.translation_unit import TranslationUnit
from metafork.printing.expressions import representable
from metafork.runtime.machine import (
    FIELDS,
    PRESETS,
    SYMBOLS,
    Between,
    Machine,
    MachineError,
    OwnLimit,
    given_values,
    preset_name,
    preset_of_gpu,
    presets_between,
)

Order = Literal["cost", "paper"]
"""Which leaf goes first where several are possible: what is proved to do less, or what has fewest refusals."""

MachineLike = str | Machine | Mapping[str, int | Fraction] | None
"""A preset (``sm_80``, or a GPU that is one: ``a100``, ``RTX 4090``), a range of presets (``sm_80..sm_120``), values
(``T=1024,Z=12288``), several of these, ``all``, a ``Machine``, or numbers by field or symbol."""

ALL_MACHINES = "all"
"""The machine of which nothing is known: leaves for any."""


def machine_values(
    machine: MachineLike, targets: Sequence[str] = (), limits: Mapping[str, OwnLimit] | None = None
) -> dict[str, Number]:
    """Return the numbers that a machine gives, by field or target; ``limits`` are symbols that are no fields.

    Raises ``MachineError``, and ``UnknownNameError`` for a preset, field or target that does not exist.
    """
    limits = limits or {}
    if machine is None:
        return {}
    if isinstance(machine, Machine):
        return {**machine.fields(), **{name: limit.default for name, limit in limits.items()}, **machine.targets}
    if isinstance(machine, str):
        entries = [preset_of_gpu(entry) or entry for entry in machine.split(",")]
        for entry in entries:
            name = entry.strip()
            if "=" not in entry and name and preset_name(name) not in PRESETS:
                # Another compute capability is another machine, however close the names are.
                known = () if re.fullmatch(r"sm_?\d+[a-z]*", name) else PRESETS
                raise UnknownNameError("machine", name, PRESETS, closest(name, known), guess=False)
        machine = given_values(",".join(entries), limits)
    symbols = {symbol: name for name, symbol in SYMBOLS.items()}
    values = {symbols.get(name, name): number for name, number in machine.items()}
    for name in values:
        if name not in FIELDS and name not in targets and name not in limits:
            raise UnknownNameError("machine parameter", name, [*symbols, *FIELDS, *targets, *limits])
    return dict(values)


def machine_limits(
    machine: MachineLike, targets: Sequence[str] = (), limits: Mapping[str, OwnLimit] | None = None
) -> dict[str, Number | Between]:
    """Return what ``machine_values`` does, for texts with ranges of presets (``sm_80..sm_120``) as well.

    A limit that is the same on all presets of a range is a number.
    """
    if machine == ALL_MACHINES:
        return {}
    if not isinstance(machine, str):
        return {**machine_values(machine, targets, limits)}
    found: dict[str, Number | Between] = {}
    entries = machine.split(",")
    if machine.strip() and not all(entry.strip() for entry in entries):
        raise MachineError(f"{machine.strip()[:60]!r} has an empty entry")
    for entry in entries:
        each = [machine_values(name, targets, limits) for name in presets_between(entry) or (entry,)]
        for name in each[0]:
            least, most = min(values[name] for values in each), max(values[name] for values in each)
            found[name] = least if least == most else Between(least, most)
    return found


class StaticValueError(ValueError):
    """Values of a static parameter that cannot be used; the message says why."""


Static: TypeAlias = StaticValues | Literal["auto", "none"]
"""Values of static parameters beside those of the text, in whose place they stand; ``"auto"``: typical ones where the
text names none of a schedule, where they make the code of a leaf simpler; ``"none"``: not those of the text either."""


def asked_static(texts: Sequence[str], otherwise: Static) -> Static:
    """Return what ``--static`` asks for: ``auto``, ``none`` or values.  Raises ``StaticValueError``."""
    if not texts:
        return otherwise
    words = {"auto", "none"} & set(texts)
    if words and len(texts) > 1:
        raise StaticValueError(f"{min(words)} stands alone: it is no value of a parameter")
    return static_values(texts) if not words else "auto" if words == {"auto"} else "none"


def static_values(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the values of texts such as ``s=1,2,4``, in order.  Raises ``StaticValueError``."""
    static: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, numbers = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise StaticValueError(f"{text!r} is not NAME=VALUE,VALUE...")
        if name in static:
            raise StaticValueError(f"values of {name} are given twice")
        try:
            static[name] = tuple(int(number) for number in numbers.split(","))
        except ValueError:
            raise StaticValueError(f"{text!r}: the values of a static parameter are integers") from None
    return static


def checked_static(unit: TranslationUnit, static: StaticValues) -> dict[str, tuple[int, ...]]:
    """Return values of static parameters, each once.

    Raises ``UnknownNameError`` where no schedule has such a parameter, ``StaticValueError`` where it is no program
    parameter of any, there is no value, one that the parameter cannot have, or there are too many combinations.
    """
    programs = [schedule.program for schedule in unit.schedules]
    known = sorted({name for program in programs for name in static_parameters(program)})
    for name, values in static.items():
        if name not in known:
            if any(name == parameter.name for program in programs for parameter in program.parameters):
                raise StaticValueError(
                    f"{name} is no program parameter: it sizes an array, or a serial loop changes it"
                )
            raise UnknownNameError("program parameter", name, known)
        types = [p.type for program in programs for p in program.parameters if p.name == name]
        if not values:
            raise StaticValueError(f"there is no value of {name}")
        for value in values:
            if value < 1 or not all(representable(value, type_) for type_ in types):
                raise StaticValueError(
                    f"{name} = {value}: a static parameter is at least 1, and what its type can hold"
                )
    checked = {name: tuple(dict.fromkeys(values)) for name, values in static.items()}
    for program in programs:
        tried = prod(len(values) for values in listed_values(program, checked).values())
        if tried > MOST_COMBINATIONS:
            message = f"{tried} combinations of values for {program.name}; at most {MOST_COMBINATIONS} are looked at"
            raise StaticValueError(message)
    return checked


def listed_values(program: Program, static: Static | None) -> StaticValues:
    """Return the values that a program's text lists, and the options: these in place of those, by parameter."""
    if static == "none":
        return {}
    listed = dict(program.static)
    if isinstance(static, Mapping):
        known = static_parameters(program)
        listed |= {name: tuple(values) for name, values in static.items() if name in known}
    return listed


def with_assumptions(unit: TranslationUnit, assume: Sequence[str]) -> TranslationUnit:
    """Return the unit with inequalities added to the schedules that have their symbols.

    Raises ``InequalityError`` for a text that is none, ``UnknownNameError`` where no schedule has all its names.
    """
    if not assume:
        return unit
    from metafork.comprehensive.systems.inequality_text import InequalityError, inequality

    for text in assume:
        placed = False
        unknown: InequalityError | None = None
        schedules = []
        for schedule in unit.schedules:
            types = _scalar_types(schedule.program)
            try:
                assumption = _as_condition(integral(inequality(text, types)), types)
            except InequalityError as error:
                if error.unknown is None:
                    raise
                unknown = error
                schedules.append(schedule)
                continue
            placed = True
            program = replace(schedule.program, assumptions=(*schedule.program.assumptions, assumption))
            schedules.append(replace(schedule, program=program))
        if not placed and unknown is not None and unknown.unknown is not None:
            known = {name for schedule in unit.schedules for name in _scalar_types(schedule.program)}
            raise UnknownNameError("parameter", unknown.unknown, sorted(known))
        unit = replace(unit, schedules=tuple(schedules))
    return unit


def _scalar_types(program: Program) -> dict[str, ScalarType]:
    return {p.name: p.type for p in program.parameters} | {d.name: d.type for d in program.derived}


def _as_condition(constraint: Constraint, types: Mapping[str, ScalarType]) -> Expr:
    """Return a constraint as a C condition whose two sides have positive coefficients only."""
    terms = constraint.difference.terms()
    positive = Polynomial({mono: coefficient for mono, coefficient in terms.items() if coefficient > 0})
    negative = Polynomial({mono: -coefficient for mono, coefficient in terms.items() if coefficient < 0})
    return binary(constraint.relation, _as_expression(positive, types), _as_expression(negative, types))


def _as_expression(polynomial: Polynomial, types: Mapping[str, ScalarType]) -> Expr:
    total: Expr | None = None
    for mono, coefficient in polynomial.terms().items():
        factors: list[Expr] = [Var(name, types[name]) for name, exponent in mono for _ in range(exponent)]
        if coefficient != 1 or not factors:
            if coefficient >= 2**63:
                from metafork.comprehensive.systems.inequality_text import (
                    InequalityError,  # for those who assume so much
                )

                raise InequalityError(f"{coefficient} does not fit 64 bits")
            long = coefficient >= 2**31
            factors.insert(0, IntConst(int(coefficient), ScalarType.LONG_LONG if long else ScalarType.INT))
        product = factors[0]
        for factor in factors[1:]:
            product = binary("*", product, factor)
        total = product if total is None else binary("+", total, product)
    return total if total is not None else IntConst(0)
