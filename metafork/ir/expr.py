"""Expressions of programs and kernels, part of the grammar in ``metafork.ir.program``."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from msgspec import Struct

from metafork.ir.arithmetic.types import ScalarType, common_type, promoted
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.node import Node

INT = ScalarType.INT


class IntConst(Node, frozen=True):
    """An integer constant."""

    value: int
    type: ScalarType = INT
    span: Span = NOWHERE


class FloatConst(Node, frozen=True):
    """A floating constant, as the source spells it (``0.25f``)."""

    text: str
    type: ScalarType
    span: Span = NOWHERE


class Var(Node, frozen=True):
    """A scalar variable: a parameter, a derived scalar, a value argument, a loop variable or a local."""

    name: str
    type: ScalarType = INT
    span: Span = NOWHERE


class Unary(Node, frozen=True):
    """``op operand`` with ``op`` one of ``+ - ! ~``."""

    op: str
    operand: Expr
    type: ScalarType
    span: Span = NOWHERE


class Binary(Node, frozen=True):
    """``left op right``; ``op`` is one of ``* / % + - << >> < > <= >= == != & ^ | && ||``."""

    op: str
    left: Expr
    right: Expr
    type: ScalarType
    span: Span = NOWHERE


class Conditional(Node, frozen=True):
    """``condition ? then : otherwise``."""

    condition: Expr
    then: Expr
    otherwise: Expr
    type: ScalarType
    span: Span = NOWHERE


class Cast(Node, frozen=True):
    """``(type) operand``."""

    type: ScalarType
    operand: Expr
    span: Span = NOWHERE


class Call(Node, frozen=True):
    """A call of a ``math.h`` function that CUDA has (``sqrtf(x)``)."""

    name: str
    arguments: tuple[Expr, ...]
    type: ScalarType
    span: Span = NOWHERE


class Element(Node, frozen=True):
    """``array[i][j]``: a read where an expression stands, a write where it is the target of an ``Assign``."""

    array: str
    indices: tuple[Expr, ...]
    type: ScalarType
    span: Span = NOWHERE
    part: Part | None = None


class Part(Struct, frozen=True):
    """In a kernel: an element is number ``place`` of ``lanes`` neighbours that one access may move together.

    The first of them lies at a multiple of their size in bytes, and all of them lie in the array.
    """

    lanes: int
    place: int


Expr = IntConst | FloatConst | Var | Unary | Binary | Conditional | Cast | Call | Element


COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!="})
LOGICAL = frozenset({"&&", "||"})


def binary(op: str, left: Expr, right: Expr, span: Span = NOWHERE) -> Binary:
    """Make ``left op right`` with the type that C gives it."""
    if op in COMPARISONS or op in LOGICAL:
        type_ = INT
    elif op in ("<<", ">>"):
        type_ = promoted(left.type)
    else:
        type_ = common_type(left.type, right.type)
    return Binary(op, left, right, type_, span)


def unary(op: str, operand: Expr, span: Span = NOWHERE) -> Unary:
    """Make ``op operand`` with the type that C gives it."""
    return Unary(op, operand, INT if op == "!" else promoted(operand.type), span)


def subexpressions(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct operands of an expression, left to right."""
    return _OPERANDS[type(expr)](expr)


_OPERANDS: dict[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    IntConst: lambda _: (),
    FloatConst: lambda _: (),
    Var: lambda _: (),
    Unary: lambda expr: (expr.operand,),
    Cast: lambda expr: (expr.operand,),
    Binary: attrgetter("left", "right"),
    Conditional: attrgetter("condition", "then", "otherwise"),
    Call: attrgetter("arguments"),
    Element: attrgetter("indices"),
}
"""By kind of expression: every pass asks for operands, thousands of times in a large kernel."""
_LEAVES = frozenset({IntConst, FloatConst, Var})


def walk_expression(expr: Expr) -> list[Expr]:
    """Return an expression and everything below it, parents first."""
    found: list[Expr] = []
    pending: list[Expr] = []
    while True:
        found.append(expr)
        if isinstance(expr, Binary):  # most are
            pending.append(expr.right)
            expr = expr.left
            continue
        if type(expr) not in _LEAVES:
            pending += _OPERANDS[type(expr)](expr)[::-1]
        if not pending:
            return found
        expr = pending.pop()
