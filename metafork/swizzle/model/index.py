"""Integer index expressions over named indices: evaluated on arrays, simplified, printed as C.

Division and remainder round towards minus infinity, as the papers' formulas mean them; ``to_c`` prints C's own
operators only where an interval of the operands shows that both agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, assert_never

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Arithmetic = Literal["+", "-", "*", "/", "%", "^", "&", "|"]
Comparison = Literal["==", "!=", "<", "<=", ">", ">=", "&&", "||"]
Interval = tuple[int, int]


class Number(Struct, frozen=True):
    """An integer constant."""

    value: int


class Name(Struct, frozen=True):
    """An index or a named constant."""

    name: str


class Binary(Struct, frozen=True):
    """``left op right`` over integers."""

    op: Arithmetic
    left: Index
    right: Index


class Compare(Struct, frozen=True):
    """``left op right`` as 0 or 1."""

    op: Comparison
    left: Index
    right: Index


class Choose(Struct, frozen=True):
    """``condition ? yes : no``."""

    condition: Index
    yes: Index
    no: Index


Index = Number | Name | Binary | Compare | Choose

_PRECEDENCE = {"||": 1, "&&": 2, "|": 4, "^": 5, "&": 6, "==": 8, "!=": 8, "<": 9, "<=": 9, ">": 9, ">=": 9}
_PRECEDENCE |= {"+": 10, "-": 10, "*": 11, "/": 11, "%": 11}


def evaluate(expression: Index, values: Mapping[str, Any]) -> Any:
    """Return the value for integers or (broadcast) integer arrays; raises ``KeyError`` on an unknown name."""
    match expression:
        case Number(value):
            return value
        case Name(name):
            return values[name]
        case Binary(op, left, right):
            return _arithmetic(op, evaluate(left, values), evaluate(right, values))
        case Compare(op, left, right):
            one = evaluate(left, values)
            if op in {"&&", "||"} and isinstance(one, int | np.integer) and bool(one) == (op == "||"):
                return int(op == "||")
            return _comparison(op, one, evaluate(right, values))
        case Choose(condition, yes, no):
            test = evaluate(condition, values)
            if isinstance(test, int | np.integer):
                return evaluate(yes if test else no, values)
            return np.where(test, evaluate(yes, values), evaluate(no, values))
        case _:
            assert_never(expression)


def _arithmetic(op: Arithmetic, left: Any, right: Any) -> Any:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left // _divisor(right)
        case "%":
            return left % _divisor(right)
        case "^":
            return left ^ right
        case "&":
            return left & right
        case "|":
            return left | right
        case _:
            assert_never(op)


def _divisor(right: Any) -> Any:
    """Cells of an array that do not use a quotient may divide by zero there: any value will do."""
    return np.where(right == 0, 1, right) if isinstance(right, np.ndarray) else right


def _comparison(op: Comparison, left: Any, right: Any) -> Any:
    match op:
        case "==":
            result = left == right
        case "!=":
            result = left != right
        case "<":
            result = left < right
        case "<=":
            result = left <= right
        case ">":
            result = left > right
        case ">=":
            result = left >= right
        case "&&":
            result = (left != 0) & (right != 0)
        case "||":
            result = (left != 0) | (right != 0)
        case _:
            assert_never(op)
    return int(result) if isinstance(result, bool | np.bool_) else result.astype(np.int64)


def substitute(expression: Index, values: Mapping[str, Index]) -> Index:
    """Replace names by expressions and simplify."""
    match expression:
        case Number():
            return expression
        case Name(name):
            return values.get(name, expression)
        case Binary(op, left, right):
            return binary(op, substitute(left, values), substitute(right, values))
        case Compare(op, left, right):
            return compare(op, substitute(left, values), substitute(right, values))
        case Choose(condition, yes, no):
            return choose(substitute(condition, values), substitute(yes, values), substitute(no, values))
        case _:
            assert_never(expression)


def binary(op: Arithmetic, left: Index, right: Index) -> Index:
    """Build ``left op right``, folding constants and neutral elements."""
    match op, left, right:
        case (("/" | "%"), _, Number(0)):
            return Binary(op, left, right)
        case _, Number(one), Number(two):
            return Number(int(_arithmetic(op, one, two)))
        case "+", Number(0), _:
            return right
        case (("+" | "-" | "^" | "|"), _, Number(0)):
            return left
        case "+", Binary("+", inner, Number(one)), Number(two):
            return binary("+", inner, Number(one + two))
        case "*", Number(0), _:
            return left
        case "*", _, Number(0):
            return right
        case "*", Number(1), _:
            return right
        case (("*" | "/"), _, Number(1)):
            return left
        case "%", _, Number(1):
            return Number(0)
    return Binary(op, left, right)


def compare(op: Comparison, left: Index, right: Index) -> Index:
    """Build a comparison, folding constants and equal sides."""
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(int(_comparison(op, left.value, right.value)))
    if op in {"&&", "||"}:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Number):
                # The neutral side leaves the other one (a truth value), the absorbing side decides.
                return Number(int(op == "||")) if (one.value != 0) == (op == "||") else other
    if left == right and op in {"==", "<=", ">="}:
        return Number(1)
    if left == right and op in {"!=", "<", ">"}:
        return Number(0)
    return Compare(op, left, right)


def choose(condition: Index, yes: Index, no: Index) -> Index:
    """Build a conditional, folding a constant condition and equal sides."""
    if isinstance(condition, Number):
        return yes if condition.value else no
    return yes if yes == no else Choose(condition, yes, no)


def names(expression: Index) -> frozenset[str]:
    """Return the names that occur."""
    match expression:
        case Number():
            return frozenset()
        case Name(name):
            return frozenset((name,))
        case Binary(_, left, right) | Compare(_, left, right):
            return names(left) | names(right)
        case Choose(condition, yes, no):
            return names(condition) | names(yes) | names(no)
        case _:
            assert_never(expression)


@cache
def operations(expression: Index) -> int:
    """Return how many operators the expression has; a remainder or division by other than a power of two counts 4."""
    match expression:
        case Number() | Name():
            return 0
        case Binary(op, left, right):
            power = isinstance(right, Number) and right.value > 0 and right.value & (right.value - 1) == 0
            own = 4 if op in {"/", "%"} and not power else 1
            return own + operations(left) + operations(right)
        case Compare(_, left, right):
            return 1 + operations(left) + operations(right)
        case Choose(condition, yes, no):
            return 1 + operations(condition) + operations(yes) + operations(no)
        case _:
            assert_never(expression)


def interval(expression: Index, ranges: Mapping[str, Interval]) -> Interval:
    """Return bounds (both inclusive) of the expression for names within ``ranges``."""
    match expression:
        case Number(value):
            return value, value
        case Name(name):
            return ranges.get(name, (-(2**31), 2**31))
        case Compare():
            return 0, 1
        case Choose(condition, yes, no):
            (a, b), (c, d) = interval(yes, ranges), interval(no, ranges)
            if isinstance(yes, Number) and condition == Compare("<", no, yes):
                return max(a, c), max(b, d)
            return min(a, c), max(b, d)
        case Binary(op, left, right):
            (a, b), (c, d) = interval(left, ranges), interval(right, ranges)
            if op == "+":
                return a + c, b + d
            if op == "-":
                return a - d, b - c
            if op == "*":
                products = (a * c, a * d, b * c, b * d)
                return min(products), max(products)
            if op == "/" and c == d and c > 0:
                return a // c, b // c
            if op == "%" and c == d and c > 0:
                return (a, b) if a >= 0 and b < c else (0, c - 1)
            if op == "&" and a >= 0 and c >= 0:
                return 0, min(b, d)
            if op in {"^", "|"} and a >= 0 and c >= 0:
                return 0, (1 << max(b.bit_length(), d.bit_length())) - 1
            return -(2**31), 2**31
        case _:
            assert_never(expression)


def reduce(expression: Index, ranges: Mapping[str, Interval]) -> Index:
    """Drop remainders and quotients that the ranges make the identity or a constant."""
    match expression:
        case Number() | Name():
            return expression
        case Binary(op, left, right):
            one, two = reduce(left, ranges), reduce(right, ranges)
            if op in {"%", "/"} and isinstance(two, Number) and two.value > 0:
                low, high = interval(one, ranges)
                if low // two.value == high // two.value:
                    quotient = low // two.value
                    return Number(quotient) if op == "/" else binary("-", one, Number(quotient * two.value))
            return binary(op, one, two)
        case Compare(op, left, right):
            one, two = reduce(left, ranges), reduce(right, ranges)
            (a, b), (c, d) = interval(one, ranges), interval(two, ranges)
            if (op == "<" and b < c) or (op == "<=" and b <= c) or (op == ">" and a > d) or (op == ">=" and a >= d):
                return Number(1)
            if (op == "<" and a >= d) or (op == "<=" and a > d) or (op == ">" and b <= c) or (op == ">=" and b < c):
                return Number(0)
            if op in {"==", "!="} and (b < c or a > d):
                return Number(int(op == "!="))
            return compare(op, one, two)
        case Choose(condition, yes, no):
            return choose(reduce(condition, ranges), reduce(yes, ranges), reduce(no, ranges))
        case _:
            assert_never(expression)


def total(expression: Index, ranges: Mapping[str, Interval]) -> Index:
    """Replace divisors that may be below 1 by ones that are not: code that is run for all threads divides always."""
    match expression:
        case Number() | Name():
            return expression
        case Binary(op, left, right):
            one, two = total(left, ranges), total(right, ranges)
            if op in {"/", "%"} and interval(two, ranges)[0] < 1:
                two = Choose(Compare("<", two, Number(1)), Number(1), two)
            return binary(op, one, two)
        case Compare(op, left, right):
            return compare(op, total(left, ranges), total(right, ranges))
        case Choose(condition, yes, no):
            return choose(total(condition, ranges), total(yes, ranges), total(no, ranges))
        case _:
            assert_never(expression)


def to_c(expression: Index, ranges: Mapping[str, Interval]) -> str:
    """Print the expression in C, equal to ``evaluate`` for names within ``ranges``."""
    return _print(reduce(expression, ranges), ranges, 0)


def to_text(expression: Index) -> str:
    """Print the expression as a sketch spells it."""
    return _print(expression, None, 0)


def _print(expression: Index, ranges: Mapping[str, Interval] | None, outer: int) -> str:
    match expression:
        case Number(value):
            return str(value) if value >= 0 or outer == 0 else f"({value})"
        case Name(name):
            return name
        case Binary(op, left, right):
            if ranges is not None and op in {"/", "%"} and interval(left, ranges)[0] < 0:
                return _print_floored(op, left, right, ranges)
            return _infix(op, left, right, ranges, outer)
        case Compare(op, left, right):
            return _infix(op, left, right, ranges, outer)
        case Choose(condition, yes, no):
            text = f"{_print(condition, ranges, 1)} ? {_print(yes, ranges, 1)} : {_print(no, ranges, 0)}"
            return f"({text})" if outer > 0 else text
        case _:
            assert_never(expression)


def _infix(op: str, left: Index, right: Index, ranges: Mapping[str, Interval] | None, outer: int) -> str:
    own = _PRECEDENCE[op]
    text = f"{_print(left, ranges, own)} {op} {_print(right, ranges, own + 1)}"
    mixed = op in {"^", "&", "|"} or (op == "&&" and outer > 0)
    # Compilers warn of comparisons among bit operators.
    compared = _PRECEDENCE["=="] <= own <= _PRECEDENCE["<"] and _PRECEDENCE["|"] <= outer <= _PRECEDENCE["&"] + 1
    return f"({text})" if own < outer or compared or (mixed and outer > 0) else text


def _print_floored(op: str, left: Index, right: Index, ranges: Mapping[str, Interval]) -> str:
    """Shift a possibly negative dividend by a multiple of the (positive) divisor, so that C's operators floor."""
    if not isinstance(right, Number):
        divisor = _print(right, ranges, _PRECEDENCE["%"] + 1)
        rest = f"({_print(left, ranges, _PRECEDENCE['%'])} % {divisor} + {divisor}) % {divisor}"
        return f"({rest})" if op == "%" else f"(({_print(left, ranges, _PRECEDENCE['-'])} - {rest}) / {divisor})"
    turns = -(interval(left, ranges)[0] // right.value)
    inner = _print(binary("+", left, Number(turns * right.value)), ranges, _PRECEDENCE["%"])
    if not inner.startswith("("):
        inner = f"({inner})"
    return f"{inner} % {right.value}" if op == "%" else f"({inner} / {right.value} - {turns})"


Table = NDArray[np.int64]
