"""Affine systems over the integers, decided exactly by islpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import lcm

from metafork.algebra.polynomial import Constraint, Monomial, Polynomial

OPERATIONS = 5_000_000
"""What isl may do for one question, in its own units: some seconds."""


def affine_conflict(
    constraints: Iterable[Constraint], choices: Iterable[Sequence[Sequence[Constraint]]] = ()
) -> bool | None:
    """Say whether constraints over non-negative integers have a common solution, one case of each choice included.

    A product of symbols is taken for a variable of its own: where even that leaves no solution, there is none
    (``False``).  ``None`` where there was such a product and the rest has a solution, or isl came to its limit.
    """
    rows = list(dict.fromkeys(constraints))
    disjunctions = [[list(case) for case in choice] for choice in choices]
    every = [*rows, *(row for choice in disjunctions for case in choice for row in case)]
    monomials = sorted({mono for row in every for mono in row.difference.terms() if mono})
    import islpy as isl  # the border to the untyped library; imported where it is first needed

    position = {mono: f"x{number}" for number, mono in enumerate(monomials)}

    def text(row: Constraint) -> str:
        return f"{_text(row.difference, position)} {_RELATIONS[row.relation]} 0"

    conditions = [f"{name} >= 0" for name in position.values()]
    conditions += [text(row) for row in rows]
    conditions += [
        f"({' or '.join(' and '.join(map(text, case)) or 'true' for case in choice)})" for choice in disjunctions
    ]
    solutions = isl.Set(f"{{ [{', '.join(position.values())}] : {' and '.join(conditions) or 'true'} }}")
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(OPERATIONS)
    try:
        empty = solutions.is_empty()
    except isl.Error as error:
        if "number of operations exceeded" not in str(error):
            raise
        return None
    finally:
        context.set_max_operations(0)
        context.reset_operations()
    if empty:
        return False
    return None if any(sum(exponent for _, exponent in mono) > 1 for mono in monomials) else True


_RELATIONS = {"<=": "<=", "<": "<", "==": "="}


def _text(value: Polynomial, position: Mapping[Monomial, str]) -> str:
    """Return an affine form with integer coefficients (scaled by a positive number where it has fractions)."""
    terms = value.terms()
    scale = reduce(lcm, (coeff.denominator for coeff in terms.values()), 1)
    parts = []
    for mono, coeff in terms.items():
        number = int(coeff * scale)
        parts.append(f"{number}*{position[mono]}" if mono else str(number))
    return " + ".join(parts) or "0"
