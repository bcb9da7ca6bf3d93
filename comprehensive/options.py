"""What the user says beside the input: a machine, and inequalities that are to be assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from comprehensive.registry import UnknownNameError
from comprehensive.systems.inequality_text import InequalityError, inequality
from comprehensive.systems.points import Number
from comprehensive.systems.signs import integral
from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.ir.program import Expr, IntConst, Program, Var, binary
from metafork.ir.translation_unit import TranslationUnit
from metafork.ir.types import ScalarType
from metafork.runtime.machine import FIELDS, PRESETS, SYMBOLS, Machine, OwnLimit, given_values

MachineLike = str | Machine | Mapping[str, int | Fraction] | None
"""A preset (``sm_80``), values (``T=1024,Z=12288``), both, a ``Machine``, or numbers by field or symbol."""


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
        for entry in machine.split(","):
            if "=" not in entry and entry.strip() and entry.strip() not in PRESETS:
                raise UnknownNameError("machine", entry.strip(), PRESETS)
        machine = given_values(machine, limits)
    symbols = {symbol: name for name, symbol in SYMBOLS.items()}
    values = {symbols.get(name, name): number for name, number in machine.items()}
    for name in values:
        if name not in FIELDS and name not in targets and name not in limits:
            raise UnknownNameError("machine parameter", name, [*symbols, *FIELDS, *targets, *limits])
    return dict(values)


def with_assumptions(unit: TranslationUnit, assume: Sequence[str]) -> TranslationUnit:
    """Return the unit with inequalities added to the schedules that have their symbols.

    Raises ``InequalityError`` for a text that is none, ``UnknownNameError`` where no schedule has all its names.
    """
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
            factors.insert(0, IntConst(int(coefficient)))
        product = factors[0]
        for factor in factors[1:]:
            product = binary("*", product, factor)
        total = product if total is None else binary("+", total, product)
    return total if total is not None else IntConst(0)
