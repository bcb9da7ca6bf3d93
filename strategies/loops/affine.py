"""Affine systems over the integers, decided exactly by islpy."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import lcm

from metafork.algebra.polynomial import Constraint, Polynomial

OPERATIONS = 5_000_000
"""What isl may do for one question, in its own units: some seconds."""


def affine_conflict(constraints: Iterable[Constraint]) -> bool | None:
    """Say whether constraints over non-negative integers have a common solution.

    Constraints that are not affine are left out at first: without them an empty system is empty all the more
    (``False``).  ``None`` where something was left out and the rest has a solution, or isl came to its limit.
    """
    rows = list(dict.fromkeys(constraints))
    affine = [row for row in rows if _is_affine(row.difference)]
    names = sorted({name for row in affine for name in row.symbols})
    import islpy as isl  # the border to the untyped library; imported where it is first needed

    position = {name: f"x{number}" for number, name in enumerate(names)}
    conditions = [f"{position[name]} >= 0" for name in names]
    conditions += [f"{_text(row.difference, position)} {_RELATIONS[row.relation]} 0" for row in affine]
    variables = ", ".join(position[name] for name in names)
    solutions = isl.Set(f"{{ [{variables}] : {' and '.join(conditions) or 'true'} }}")
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
    return True if len(affine) == len(rows) else None


_RELATIONS = {"<=": "<=", "<": "<", "==": "="}


def _is_affine(value: Polynomial) -> bool:
    return all(sum(exponent for _, exponent in mono) <= 1 for mono in value.terms())


def _text(value: Polynomial, position: dict[str, str]) -> str:
    """Return an affine form with integer coefficients (scaled by a positive number where it has fractions)."""
    terms = value.terms()
    scale = reduce(lcm, (coeff.denominator for coeff in terms.values()), 1)
    parts = []
    for mono, coeff in terms.items():
        number = int(coeff * scale)
        parts.append(f"{number}*{position[mono[0][0]]}" if mono else str(number))
    return " + ".join(parts) or "0"
