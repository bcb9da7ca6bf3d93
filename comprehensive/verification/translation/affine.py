"""Integer expressions of a program as isl's piecewise quasi-affine functions, and conditions as its sets.

Some names stand for symbols of isl, others for functions of them; divisions by numbers are exact.  What may leave an
unsigned or a narrower type is affine only where it is known not to: from elsewhere, or because isl says so.

A value may also be a sum of products of symbolic parameters with functions (``Parts``): an index ``i*N + j`` with a
symbolic ``N`` counts as the two coordinates ``i`` and ``j`` where ``0 <= j < N`` holds throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import pairwise
from typing import Any

from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.program import Binary, Cast, Conditional, Expr, IntConst, Unary, Var
from metafork.printing.expressions import expression

FEW = 4
"""A variable of so many values, from 0, may multiply a symbol: value by value."""


class NotAffineError(Exception):
    """The program is outside of what isl can say; the message names what stands in the way."""


Parts = dict[tuple[str, ...], Any]
"""An integer value: under each product of symbolic parameters what it is a factor of; the affine part under none."""


class AffineScope:
    """What names stand for, and the ``domain`` at which expressions are evaluated: an isl set of parameter values.

    ``names`` holds ``Parts`` for integers; any other value makes a name one that is no integer known here.  ``kept``
    says of expressions whether they stay within types (``metafork.analysis.references.kept_within``).
    """

    def __init__(self, kept: Mapping[tuple[int, ScalarType], tuple[Expr, bool]] | None = None) -> None:
        import islpy as isl  # the border to the untyped library; imported where it is first needed

        self._isl = isl
        self._kept = kept or {}
        self.names: dict[str, object] = {}
        self.symbols: dict[str, Any] = {}
        self.domain = isl.Set("{ : }")

    def constant(self, value: int) -> Any:
        """Return the function that is a number everywhere."""
        return self._isl.PwAff(f"{{ [({value})] }}")

    def symbol(self, name: str) -> Any:
        """Return the function that is a parameter of isl."""
        return self._isl.PwAff(f"[{name}] -> {{ [({name})] }}")

    def known(self, expr: Expr, type_: ScalarType | None = None) -> Parts | None:
        """Return the value of an integer expression, converted to a type; ``None`` where it is not affine."""
        try:
            return self.parts(expr) if type_ is None else self.converted(expr, type_)
        except NotAffineError:
            return None

    def value(self, expr: Expr) -> Any:
        """Return an integer expression as one function.  Raises ``NotAffineError``, also for products of symbols."""
        return _plain(self.parts(expr), expr)

    def parts(self, expr: Expr) -> Parts:
        """Return an integer expression as a sum of products.  Raises ``NotAffineError``."""
        value = self._computed(expr)
        wraps = isinstance(expr, Unary | Binary) and expr.type.integer and not expr.type.signed
        return self._within(expr, expr.type, value) if wraps else value

    def converted(self, expr: Expr, type_: ScalarType) -> Parts:
        """Return an integer expression as a value of a type.  Raises ``NotAffineError`` where that may change it."""
        if not (type_.integer and expr.type.integer):
            raise NotAffineError(f"{_spelled(expr)} is not affine")
        value = self.parts(expr)
        return value if type_.holds(expr.type) else self._within(expr, type_, value)

    def _within(self, expr: Expr, type_: ScalarType, value: Parts) -> Parts:
        if self._kept.get((id(expr), type_), (expr, False))[1]:
            return value
        if value.keys() == {()}:
            inside = (
                value[()].ge_set(self.constant(type_.least)).intersect(value[()].le_set(self.constant(type_.greatest)))
            )
            if self.domain.is_subset(inside):
                return value
        raise NotAffineError(f"{_spelled(expr)} may leave the range of {type_.spelling}")

    def _computed(self, expr: Expr) -> Parts:
        match expr:
            case IntConst(value=value):
                return {(): self.constant(value)}
            case Var(name=name, type=type_) if type_.integer:
                known = self.names.get(name)
                if isinstance(known, dict):
                    return known
                raise NotAffineError(f"{name} is not determined by parameters and loop variables")
            case Unary(op="+", operand=operand):
                return self.converted(operand, expr.type)
            case Unary(op="-", operand=operand):
                return {factor: part.neg() for factor, part in self.converted(operand, expr.type).items()}
            case Cast(type=type_, operand=operand):
                return self.converted(operand, type_)
            case Conditional(condition=condition, then=then, otherwise=otherwise) if expr.type.integer:
                holds = self.condition(condition)
                if not all(expr.type.holds(arm.type) for arm in (then, otherwise)):
                    raise NotAffineError("a value is converted in one of two cases")
                first = self.value(then).intersect_domain(holds)
                return {(): first.union_add(self.value(otherwise).intersect_domain(holds.complement()))}
            case Binary(op=("+" | "-") as op, left=left, right=right) if expr.type.integer:
                first_parts, second_parts = self.converted(left, expr.type), self.converted(right, expr.type)
                zero = self.constant(0)
                result = {}
                for factor in sorted({*first_parts, *second_parts}):
                    one, other = first_parts.get(factor, zero), second_parts.get(factor, zero)
                    result[factor] = one.add(other) if op == "+" else one.sub(other)
                return result
            case Binary(op="*", left=left, right=right) if expr.type.integer:
                return self._product(self.converted(left, expr.type), self.converted(right, expr.type))
            case Binary(op=("/" | "%") as op, left=left, right=right) if expr.type.integer:
                first, second = (_plain(self.converted(side, expr.type), side) for side in (left, right))
                return {(): self._quotient(op, first, second)}
        raise NotAffineError(f"{_spelled(expr)} is not affine")

    def _product(self, left: Parts, right: Parts) -> Parts:
        for one, other in ((left, right), (right, left)):
            if set(other) == {()} and is_number(other[()]):
                return {factor: part.mul(other[()]) for factor, part in one.items()}
        for one, other in ((left, right), (right, left)):
            factor = next((n for n, s in self.symbols.items() if other.keys() == {()} and s.is_equal(other[()])), None)
            if factor is not None:
                moved = {tuple(sorted((*key, factor))): part for key, part in one.items()}
                return {(): self.constant(0), **moved}
        for one, other in ((left, right), (right, left)):
            if one.keys() == other.keys() == {()} and self._few_values(one[()]):
                pieces = [
                    other[()].mul(self.constant(number)).intersect_domain(one[()].eq_set(self.constant(number)))
                    for number in range(FEW)
                ]
                return {(): reduce(lambda first, second: first.union_add(second), pieces)}
        raise NotAffineError("a product of two variables is not affine")

    def _few_values(self, value: Any) -> bool:
        inside = value.ge_set(self.constant(0)).intersect(value.lt_set(self.constant(FEW)))
        return bool(self.domain.is_subset(inside))

    def _quotient(self, op: str, left: Any, right: Any) -> Any:
        if not is_number(right) or not right.gt_set(self.constant(0)).intersect(self.domain).is_equal(self.domain):
            raise NotAffineError("a divisor is no positive number")
        if self.domain.is_subset(left.ge_set(self.constant(0))):
            quotient = left.div(right).floor()
        else:
            quotient = left.tdiv_q(right)
        return quotient if op == "/" else left.sub(quotient.mul(right))

    def condition(self, expr: Expr) -> Any:
        """Return the isl set of the parameter values where a condition holds.  Raises ``NotAffineError``."""
        match expr:
            case Unary(op="!", operand=operand):
                return self.condition(operand).complement()
            case Binary(op="&&", left=left, right=right):
                return self.condition(left).intersect(self.condition(right))
            case Binary(op="||", left=left, right=right):
                return self.condition(left).union(self.condition(right))
            case Binary(op=("<" | "<=" | ">" | ">=" | "==" | "!=") as op, left=left, right=right):
                if not (left.type.integer and right.type.integer):
                    raise NotAffineError("a condition depends on data")
                type_ = common_type(left.type, right.type)
                first, second = (_plain(self.converted(side, type_), side) for side in (left, right))
                names = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
                return getattr(first, f"{names[op]}_set")(second)
            case _:
                return self.value(expr).ne_set(self.constant(0))

    def coordinates(self, index: Expr) -> list[Any]:
        """Split ``(x*N1 + y)*N2 + z`` into x, y, z, where ``0 <= y < N1`` and ``0 <= z < N2`` throughout.

        Raises ``NotAffineError`` where the index is not affine, or does not split.
        """
        parts = self.parts(index)
        products = sorted(parts, key=len)
        coordinates = [parts[products[-1]]]
        for whole, rest in reversed(list(pairwise(products))):
            names = list(rest)
            for name in whole:
                if name in names:
                    names.remove(name)
            if len(rest) != len(whole) + 1 or len(names) != 1:
                break
            digit = parts[whole]
            inside = digit.ge_set(self.constant(0)).intersect(digit.lt_set(self.symbols[names[0]]))
            if not self.domain.is_subset(inside):
                break
            coordinates.append(digit)
        if len(coordinates) == len(products):
            return coordinates
        raise NotAffineError(f"{_spelled(index)} does not split into rows and columns")


def _plain(parts: Parts, expr: Expr) -> Any:
    if parts.keys() != {()}:
        raise NotAffineError(f"{_spelled(expr)} has a product of a variable and a symbolic parameter")
    return parts[()]


def number_of(value: Any) -> int | None:
    """Return the number that a function is everywhere, ``None`` where it is no number."""
    if not value.is_cst() or value.n_piece() != 1:
        return None
    _, function = value.get_pieces()[0]
    constant = function.get_constant_val()
    return int(constant.to_python()) if constant.is_int() else None


def is_number(value: Any) -> bool:
    """Say whether a function is one number everywhere."""
    return number_of(value) is not None


def _spelled(expr: Expr) -> str:
    return f"`{expression(expr)}`"
