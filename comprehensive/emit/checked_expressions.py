"""C text that computes integer expressions of the IR on the host in checked 64-bit arithmetic (``metafork/exact.h``).

Each step that leaves 64 bits, divides by zero, or whose result C would wrap or leave undefined in an unsigned or a
converted type sets ``metafork_failed`` instead; so a value is either the one that C gives or known to be unusable.
Floating subexpressions keep their own types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType, common_type

_STEPS = {
    "+": "METAFORK_ADD",
    "-": "METAFORK_SUB",
    "*": "METAFORK_MUL",
    "/": "METAFORK_DIV",
    "%": "METAFORK_REM",
    "<<": "METAFORK_SHL",
    ">>": "METAFORK_SHR",
}


class ComputationError(Exception):
    """The host cannot compute an expression: it reads an array, or a name that the host does not know."""


def int64_constant(value: int) -> str:
    """Return a constant that has this value wherever an ``int64_t`` is wanted."""
    if value == -(2**63):
        return "INT64_MIN"
    text = str(abs(value)) if abs(value) < 2**31 else f"INT64_C({abs(value)})"
    return text if value >= 0 else f"-{text}"


def within_type(text: str, type_: ScalarType) -> str:
    """Return ``text`` checked against the range of an integer type; 64-bit unsigned types keep their lower half."""
    if type_ is ScalarType.BOOL:
        return f"(int64_t)(({text}) != 0)"
    bits = 8 * type_.size
    if type_.signed:
        if bits in (32, 64):
            return text if bits == 64 else f"METAFORK_INT({text})"
        return f"METAFORK_WITHIN({text}, INT{bits}_MIN, INT{bits}_MAX)"
    return f"METAFORK_WITHIN({text}, 0, {'INT64_MAX' if bits == 64 else f'UINT{bits}_MAX'})"


def checked(expr: ir.Expr, names: Mapping[str, str]) -> str:
    """Return the text of an ``int64_t`` expression with the value of ``expr``; ``names`` gives the known scalars.

    Raises ``ComputationError``.
    """
    if expr.type.floating:
        return f"metafork_truncate(&metafork_failed, {_floating(expr, names)})"
    match expr:
        case ir.IntConst(value=value):
            if value >= 2**63:
                raise ComputationError(f"{value} does not fit 64 signed bits")
            return int64_constant(value)
        case ir.Var(name=name):
            # What an unsigned type holds would make C compute with it in that type.
            return _known(name, names) if expr.type.signed else f"(int64_t){_known(name, names)}"
        case ir.Unary(op=op, operand=operand):
            match op:
                case "+":
                    return checked(operand, names)
                case "-":
                    return _bounded(f"METAFORK_SUB(0, {checked(operand, names)})", expr.type)
                case "!":
                    return f"(int64_t)!{_truth(operand, names)}"
                case _:
                    return _bounded(f"~(int64_t)({checked(operand, names)})", expr.type)
        case ir.Cast(type=type_, operand=operand):
            if type_ is ScalarType.BOOL:
                return f"(int64_t){_truth(operand, names)}"
            return within_type(checked(operand, names), type_)
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            first, second = (_converted(arm, expr.type, names) for arm in (then, otherwise))
            return f"({_truth(condition, names)} ? {first} : {second})"
        case ir.Binary(op=op, left=left, right=right) if op in ir.LOGICAL:
            return f"(int64_t)({_truth(left, names)} {op} {_truth(right, names)})"
        case ir.Binary(op=op, left=left, right=right) if op in ir.COMPARISONS:
            common = common_type(left.type, right.type)
            return f"(int64_t)({_converted(left, common, names)} {op} {_converted(right, common, names)})"
        case ir.Binary(op=op, left=left, right=right):
            operands = [left, right]
            if op in ("<<", ">>"):
                first, second = (checked(operand, names) for operand in operands)
            else:
                first, second = (_converted(operand, expr.type, names) for operand in operands)
            if op in _STEPS:
                return _bounded(f"{_STEPS[op]}({first}, {second})", expr.type)
            return f"({first} {op} {second})"
        case ir.Call() | ir.Element() | ir.FloatConst():
            raise ComputationError("the host cannot read an array or call a function here")
        case _:
            assert_never(expr)


def _known(name: str, names: Mapping[str, str]) -> str:
    if name not in names:
        raise ComputationError(f"{name} is not known on the host")
    return names[name]


def _bounded(text: str, type_: ScalarType) -> str:
    """Signed results may use all 64 bits (C leaves their overflow undefined); unsigned ones would wrap in C."""
    return text if type_.signed else within_type(text, type_)


def _converted(expr: ir.Expr, type_: ScalarType, names: Mapping[str, str]) -> str:
    if type_.floating:
        return f"({type_.spelling}){_floating(expr, names)}"
    text = checked(expr, names)
    return within_type(text, type_) if expr.type.signed and not type_.signed else text


def _truth(expr: ir.Expr, names: Mapping[str, str]) -> str:
    text = _floating(expr, names) if expr.type.floating else checked(expr, names)
    return f"(({text}) != 0)"


def _floating(expr: ir.Expr, names: Mapping[str, str]) -> str:
    """Return the text of a floating value of the expression's own type (an integer's text where it is an integer)."""
    if not expr.type.floating:
        return f"({checked(expr, names)})"
    match expr:
        case ir.FloatConst(text=text):
            return f"({text})"
        case ir.Var(name=name):
            return _known(name, names)
        case ir.Unary(op=op, operand=operand):
            return f"({op}{_floating(operand, names)})"
        case ir.Cast(type=type_, operand=operand):
            return f"(({type_.spelling}){_floating(operand, names)})"
        case ir.Binary(op=op, left=left, right=right):
            return f"({_converted(left, expr.type, names)} {op} {_converted(right, expr.type, names)})"
        case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
            first, second = (_converted(arm, expr.type, names) for arm in (then, otherwise))
            return f"({_truth(condition, names)} ? {first} : {second})"
        case ir.Call(name=name, arguments=arguments):
            # The double form of a function converts its arguments itself; a cast keeps C++ from choosing another one.
            kind = "float" if expr.type is ScalarType.FLOAT else "double"
            return f"{name}({', '.join(f'({kind}){_floating(argument, names)}' for argument in arguments)})"
        case _:
            raise ComputationError("the host cannot read an array here")
