"""Quotients of a kernel's arguments, computed on the host before the launch.

``before --> after``::

    for (int k = 0; k < n / B; k++)   -->   for (int k = 0; k < n_div_B; k++)      n_div_B = n / B on the host

A GPU has no instruction that divides integers: a quotient takes some 25 of them, in each thread.

Legality.  Both sides are made of arguments, which nothing in the kernel changes.  The host computes the quotient
whether the kernel comes to it or not, so that the divisor is proved to be at least 1, and the dividend not to be
negative, wherever the kernel is launched.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from metafork.algebra.polynomial import ONE, ZERO, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.names import fresh
from metafork.ir.rewriting import assigned_variables, map_body

INT = ScalarType.INT
MOST_OPERANDS = 4
"""Most operands of a side of a quotient, one nested in the other."""
Body = tuple[ir.Stmt, ...]


def with_host_quotients(
    body: Body, arguments: Mapping[str, ir.Var], scope: Scope, prover: Prover, taken: set[str]
) -> tuple[Body, tuple[ir.Derived, ...]]:
    """Return a kernel's body that reads its quotients, and their definitions; ``taken`` grows by their names."""
    if not _has_quotients(body):
        return body, ()
    hidden = {stmt.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Declare)} | assigned_variables(body)
    asked = {name for name, variable in arguments.items() if variable.type is INT and name not in hidden}
    known: dict[ir.Expr, ir.Var | None] = {}
    made: list[ir.Derived] = []

    def changed(expr: ir.Expr) -> ir.Expr | None:
        match expr:
            case ir.Binary(op="/", left=left, right=right, type=ScalarType.INT) if (
                not isinstance(right, ir.IntConst) and _of_arguments(left, asked) and _of_arguments(right, asked)
            ):
                if expr not in known:
                    known[expr] = named(left, right, expr)
                return known[expr]
            case _:
                return None

    def named(left: ir.Expr, right: ir.Expr, quotient: ir.Expr) -> ir.Var | None:
        least = ((ZERO, scope.polynomial(left)), (ONE, scope.polynomial(right)))
        if not all(value is not None and prover.derives(at_most(bound, value)) for bound, value in least):
            return None
        result = ir.Var(fresh("_div_".join(_name(side) for side in (left, right)), taken), INT)
        made.append(ir.Derived(result.name, INT, quotient))
        return result

    return map_body(body, changed), tuple(made)


def _has_quotients(body: Body) -> bool:
    """Say whether an expression of a body is divided by another one than a constant."""
    return any(
        isinstance(part, ir.Binary) and part.op == "/" and not isinstance(part.right, ir.IntConst)
        for part in ir.parts_of(body)
    )


def _of_arguments(expr: ir.Expr, asked: Set[str], most: int = MOST_OPERANDS) -> bool:
    """Say whether an expression is a few arguments and constants, added, subtracted and multiplied."""
    match expr:
        case ir.Var(name=name):
            return name in asked
        case ir.IntConst():
            return True
        case ir.Binary(op="+" | "-" | "*", left=left, right=right, type=ScalarType.INT) if most > 1:
            return all(_of_arguments(side, asked, most - 1) for side in (left, right))
        case _:
            return False


def _name(expr: ir.Expr) -> str:
    """Return the first argument of a side."""
    return next((part.name for part in ir.walk_expression(expr) if isinstance(part, ir.Var)), "all")
