"""Which integer arithmetic the host has done when a schedule begins: of what C leaves undefined, none."""

from __future__ import annotations

from collections.abc import Iterator

from metafork.ir.program import LOGICAL, Binary, Cast, Conditional, Expr, Program, Var, subexpressions, walk_expression


def signed_parts(program: Program) -> Iterator[Binary]:
    """Yield what is computed before the schedule in signed types alone: none of it has left its type.

    These are parts of definitions of derived scalars and of extents of arrays.
    """
    signed = {parameter.name for parameter in program.parameters if parameter.type.signed}
    whole = [extent for array in program.arrays for extent in array.extents]
    for derived in program.derived:
        whole.append(derived.definition)
        if _signed_alone(derived.definition, signed) and derived.type.holds(derived.definition.type):
            signed.add(derived.name)
    for expr in whole:
        for part in always_computed(expr):
            if isinstance(part, Binary) and _signed_alone(part, signed):
                yield part


def always_computed(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and those parts of it that are computed whenever it is."""
    yield expr
    if not isinstance(expr, Conditional) and not (isinstance(expr, Binary) and expr.op in LOGICAL):
        for operand in subexpressions(expr):
            yield from always_computed(operand)


def _signed_alone(expr: Expr, names: set[str]) -> bool:
    """Say whether no unsigned type and no conversion takes part in an expression over ``names``."""
    return all(
        part.type.integer
        and part.type.signed
        and not isinstance(part, Cast)
        and not (isinstance(part, Var) and part.name not in names)
        for part in walk_expression(expr)
    )
