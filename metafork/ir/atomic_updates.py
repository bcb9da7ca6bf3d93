"""Atomic updates: ``meta_atomic a[e] += v``, whose order among themselves does not matter.

An ``Assign`` that is ``atomic`` has an element of an array as its target, and one of ``OPERATORS`` as ``op``, of which
``min`` and ``max`` stand nowhere else; its value is converted to the element's type first.  To integers that changes
nothing.  A sum of floating-point numbers, the only update of such elements, depends on the order: it is there only
where the user asked to reassociate, and two orders of it differ by a bound that ``docs/language.md`` states.
"""

from __future__ import annotations

from collections.abc import Iterable

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Assign, Conditional, Element, Expr, Stmt, binary, walk_statements

OPERATORS = ("+", "-", "*", "&", "|", "^", "min", "max")
"""Operations that are associative and commutative (a difference is a sum), so that any order gives the same."""


SUMS = ("+", "-")
"""Operations of atomic updates of floating-point elements."""


def kind(stmt: Assign) -> str:
    """Return what an atomic update has in common with those that it may change places with; empty where it is none."""
    if not stmt.atomic:
        return ""
    return "+" if stmt.op == "-" else stmt.op


def updated(stmt: Assign) -> Expr:
    """Return the new value of the target of an assignment, in terms of the old one."""
    match stmt.op:
        case "":
            return stmt.value
        case "min" | "max" as op:
            left, right = (stmt.target, stmt.value) if op == "max" else (stmt.value, stmt.target)
            test = binary("<", left, right)
            return Conditional(test, stmt.value, stmt.target, binary("+", stmt.value, stmt.target).type)
        case op:
            return binary(op, stmt.target, stmt.value)


def may_update(type_: ScalarType, op: str) -> bool:
    """Say whether an element of a type may be updated atomically by an operation."""
    return op in (SUMS if type_.floating else OPERATORS)


def unordered_sums(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the names of the arrays in which a body adds up floating-point numbers in any order."""
    return frozenset(
        stmt.target.array
        for stmt in walk_statements(tuple(body))
        if isinstance(stmt, Assign) and stmt.atomic and isinstance(stmt.target, Element) and stmt.target.type.floating
    )


def atomic_arrays(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the names of the arrays that a body updates atomically somewhere."""
    return frozenset(
        stmt.target.array
        for stmt in walk_statements(tuple(body))
        if isinstance(stmt, Assign) and stmt.atomic and isinstance(stmt.target, Element)
    )
