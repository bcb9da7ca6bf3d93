"""Fused multiply-add by contract: sums of a product become calls of ``fma``, by one rule, in the program itself.

``before --> after``::

    x * y + z,  z + x * y    -->    fma(x, y, z)          fmaf in float
    x * y - z                -->    fma(x, y, -z)
    z - x * y,  -(x*y) + z   -->    fma(-x, y, z)
    z += x * y;              -->    z = fma(x, y, z);     likewise for -=
    a * b + c * d            -->    fma(a, b, c * d)

The rule: every sum or difference of type ``float`` or ``double`` one of whose operands is a product of the same type is
one fused operation; where both are products, the left one is fused.  A product may have signs in front; a cast between
product and sum, or an assignment, keeps them apart.  So C allows it within an expression (``FP_CONTRACT``).  Negation
is exact, and the product is never rounded: the value does not depend on how the sign is put.

This is done before any strategy and for the serial code alike, so that all that is made of a program computes the same
bits, wherever it runs.  Nothing else is ever contracted.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import names_of
from metafork.ir.translation_unit import Schedule, TranslationUnit
from metafork.ir.visitor import Body, Rewriter


class NameTakenError(ValueError):
    """A file whose sums are to be fused has a ``fma`` of its own; the message names the schedule."""


_FUSED = {ScalarType.FLOAT: "fmaf", ScalarType.DOUBLE: "fma"}


def contracted_unit(unit: TranslationUnit, everywhere: bool = False) -> TranslationUnit:
    """Return a file with the programs contracted where its text says so, or ``everywhere`` that it does not forbid.

    Raises ``NameTakenError``.
    """
    schedules = []
    for schedule in unit.schedules:
        if schedule.contraction or (everywhere and schedule.contraction is None):
            program = contracted(schedule.program)
            if program.body != schedule.program.body:
                _check_names(unit, schedule)
                schedule = replace(schedule, program=program, contracted=True)
        schedules.append(schedule)
    return replace(unit, schedules=tuple(schedules))


def _check_names(unit: TranslationUnit, schedule: Schedule) -> None:
    """Refuse a text in which the names of the operation are something else: the serial code has to call it."""
    for name in _FUSED.values():
        defined = rf"#\s*define\s+{name}\b|\b{name}\s*\([^;{{}}]*\)\s*{{"
        if name in names_of(schedule.program) or re.search(defined, unit.source.text):
            line = schedule.span.line
            raise NameTakenError(f"the schedule at line {line} is to call {name}, which is another name in this file")


def contracted(program: ir.Program) -> ir.Program:
    """Return the program with its sums of products fused."""
    return replace(program, body=_Contraction().body(program.body))


class _Contraction(Rewriter):
    def binary(self, node: ir.Binary) -> ir.Expr:
        fused = _sum_of_a_product(node)
        return super().binary(node) if fused is None else self.call(fused)

    def assign(self, node: ir.Assign) -> ir.Stmt | Body:
        if node.op in ("+", "-") and not node.atomic:
            total = ir.binary(node.op, node.target, node.value, node.span)
            if _sum_of_a_product(total) is not None:
                node = replace(node, op="", value=total)
        return super().assign(node)

    def extent(self, expr: ir.Expr) -> ir.Expr:
        return expr


def _sum_of_a_product(expr: ir.Expr) -> ir.Call | None:
    if not isinstance(expr, ir.Binary) or expr.op not in ("+", "-") or expr.type not in _FUSED:
        return None
    minus = expr.op == "-"
    for one, other, negated, subtracted in (
        (expr.left, expr.right, False, minus),
        (expr.right, expr.left, minus, False),
    ):
        negative, product = _without_signs(one)
        if isinstance(product, ir.Binary) and product.op == "*" and product.type is expr.type:
            first = _signed(product.left, expr.type, negative != negated)
            arguments = (first, product.right, _signed(other, expr.type, subtracted))
            return ir.Call(_FUSED[expr.type], arguments, expr.type, expr.span)
    return None


def _without_signs(expr: ir.Expr) -> tuple[bool, ir.Expr]:
    """Return whether the signs in front of an expression negate it, and the expression behind them."""
    negative = False
    while isinstance(expr, ir.Unary) and expr.op in ("+", "-"):
        negative, expr = negative != (expr.op == "-"), expr.operand
    return negative, expr


def _signed(expr: ir.Expr, type_: ScalarType, negative: bool) -> ir.Expr:
    """Negate an operand, if at all, in the type of the sum: in its own, an integer might wrap."""
    if not negative:
        return expr
    return ir.unary("-", expr if expr.type is type_ else ir.Cast(type_, expr), expr.span)
