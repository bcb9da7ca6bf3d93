"""For which parameters index arithmetic of unsigned and narrower types is exact (DESIGN section 6, "Start").

``i*n + j`` in ``unsigned`` is what the polynomial says where its largest value over the loops, a polynomial in
parameters, is below 2^32.  Such conditions are found once, in the input, and go with the program through all its
versions: they join Start, and outside of Start the serial elision runs.  What no ordinary size would satisfy (a program
that counts on the wrap-around) becomes no condition; the value is then not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.facts import program_facts
from metafork.analysis.reference_walk import demanded
from metafork.analysis.values.ranges import ValueRanges
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.control import control_names
from metafork.ir.program import Declare, Expr, Phase, Program, expressions_of, walk_expression, walk_statements
from metafork.ir.translation_unit import TranslationUnit

ROUNDS = 4
"""A value that is exact may give the next one a polynomial; so often the program is looked through again."""


def exact_unit(unit: TranslationUnit) -> TranslationUnit:
    """Return the unit with the conditions of each of its programs."""
    schedules = (replace(schedule, program=with_exactness(schedule.program)) for schedule in unit.schedules)
    return replace(unit, schedules=tuple(schedules))


def with_exactness(program: Program) -> Program:
    """Return the program with the conditions that its own text asks for, whatever it had before."""
    program = replace(program, exactness=())
    types = set(_types(program))
    if len(types) == 1 and all(type_.signed for type_ in types):
        return program  # nothing wraps, nothing is converted
    control = control_names(program.grid, program.body)
    for _ in range(ROUNDS):
        early: list[Constraint] = []
        facts = program_facts(program, early)
        # While the facts are being found, none of them is known yet.
        early = irredundant(early, (), ())
        known = (*facts.constraints, *facts.limits, *early)
        more = [*early, *irredundant(demanded(program, facts, control), known, facts.derived)]
        if not more:
            break
        program = replace(program, exactness=(*program.exactness, *more))
    return program


def irredundant(
    conditions: Iterable[Constraint], known: Iterable[Constraint], quotients: Sequence[DerivedSymbol]
) -> list[Constraint]:
    """Return the conditions without those that follow from what is known and from the others."""
    kept = list(dict.fromkeys(conditions))
    known = tuple(known)
    for condition in tuple(kept):
        others = [other for other in kept if other != condition]
        if ValueRanges((*known, *others), quotients).implied(condition):
            kept = others
    return kept


def _types(program: Program) -> Iterator[ScalarType]:
    """Yield the integer types of scalars and of whatever is computed."""
    exprs: list[Expr] = [extent for array in program.arrays for extent in array.extents]
    exprs += [derived.definition for derived in program.derived] + [loop.extent for loop in program.grid]
    yield from (parameter.type for parameter in program.parameters)
    yield from (derived.type for derived in program.derived)
    yield from (loop.type for loop in program.grid)
    for stmt in walk_statements(program.body):
        exprs += expressions_of(stmt)
        if isinstance(stmt, Declare) and stmt.type.integer:
            yield stmt.type
        if isinstance(stmt, Phase):
            yield from (loop.type for loop in stmt.threads)
    for expr in exprs:
        yield from (part.type for part in walk_expression(expr) if part.type.integer)
