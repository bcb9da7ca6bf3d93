"""Derived symbols: fresh integers that stand for a quotient, a ceiling or an extremum of polynomials.

Polynomial systems have no division and no maximum.  Where a value needs one, a fresh integer symbol takes its place;
its defining constraints join the system, and generated C computes it (DESIGN section 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, gcd
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most, equal, less_than

DerivedKind = Literal["floor", "ceiling", "maximum", "minimum"]


class DerivedSymbol(Struct, frozen=True):
    """An integer defined by polynomials in earlier symbols.

    ``floor`` and ``ceiling`` have two operands, numerator and denominator (numerator >= 0, denominator >= 1 are
    assumed, and are among ``constraints``); ``maximum`` and ``minimum`` have two or more.
    """

    name: str
    kind: DerivedKind
    operands: tuple[Polynomial, ...]

    def constraints(self) -> tuple[Constraint, ...]:
        """Return polynomial constraints that hold exactly when the symbol has its value (over the integers)."""
        symbol = Polynomial.symbol(self.name)
        match self.kind:
            case "floor" | "ceiling":
                numerator, denominator = self.operands
                preconditions = (at_most(1, denominator), at_most(0, numerator), at_most(0, symbol))
                product = symbol * denominator
                if self.kind == "floor":
                    return (*preconditions, at_most(product, numerator), less_than(numerator, product + denominator))
                return (*preconditions, at_most(numerator, product), less_than(product, numerator + denominator))
            case "maximum" | "minimum":
                sides = tuple(
                    at_most(operand, symbol) if self.kind == "maximum" else at_most(symbol, operand)
                    for operand in self.operands
                )
                product = Polynomial.constant(1)
                for operand in self.operands:
                    product = product * (symbol - operand)
                return (*sides, equal(product, ZERO))

    def evaluate(self, values: Mapping[str, int | Fraction]) -> int:
        """Return the value at a point; raises ``ZeroDivisionError`` where a denominator is 0."""
        numbers = [operand.at(values) for operand in self.operands]
        match self.kind:
            case "floor":
                return int(numbers[0] // numbers[1])
            case "ceiling":
                return int(-(-numbers[0] // numbers[1]))
            case "maximum":
                return int(max(numbers))
            case "minimum":
                return int(min(numbers))

    def definition(self, order: Sequence[str] = ()) -> str:
        """Return the definition as text: ``(N - 2)/(s*B)``, ``ceil((B + 1)/4)``, ``max(a, b)``."""
        texts = [operand.text(order) for operand in self.operands]
        match self.kind:
            case "floor":
                return "/".join(_factor(text) for text in texts)
            case "ceiling":
                return f"ceil({'/'.join(_factor(text) for text in texts)})"
            case "maximum":
                return f"max({', '.join(texts)})"
            case "minimum":
                return f"min({', '.join(texts)})"


def _factor(text: str) -> str:
    """Return a polynomial's text as an operand of a division."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def placed(polynomial: Polynomial, derived: Sequence[DerivedSymbol], values: Mapping[str, int]) -> Polynomial:
    """Return a polynomial at values of some parameters.

    Derived symbols that are numbers then are replaced by these, and the others are named by their definitions, so that
    equal ones are equal.
    """
    numbers = {name: Polynomial.constant(value) for name, value in values.items()}
    for symbol in derived:
        operands = tuple(operand.substitute(numbers) for operand in symbol.operands)
        numbers[symbol.name] = _value_of(replace(symbol, operands=operands))
    return polynomial.substitute(numbers)


def _value_of(symbol: DerivedSymbol) -> Polynomial:
    """Return a derived symbol as a number, as its operand over 1, or as a symbol named by its definition."""
    operands = symbol.operands
    if symbol.kind in ("floor", "ceiling"):
        coefficients = [value for operand in operands for value in operand.coefficients.values()]
        if operands[1] and all(isinstance(value, int) for value in coefficients):
            common = gcd(*(value.numerator for value in coefficients))
            operands = tuple(operand.divide_exactly(Polynomial.constant(common)) or operand for operand in operands)
        if operands[1] == ONE:
            return operands[0]
    if all(operand.is_constant for operand in operands) and (symbol.kind in ("maximum", "minimum") or operands[1]):
        return Polynomial.constant(replace(symbol, operands=operands).evaluate({}))
    return Polynomial.symbol(replace(symbol, operands=operands).definition())


def without_rounding(constraint: Constraint, derived: Mapping[str, DerivedSymbol]) -> Constraint:
    """Return the same condition on integers, without a quotient by a number that alone is compared with a number.

    ``3*ceil(x/32) <= 20`` is ``x <= 192``, and ``3 <= ceil(x/32)`` is ``65 <= x``.
    """
    while (found := _rounded(constraint, derived)) is not None:
        constraint = found
    return constraint


def _rounded(constraint: Constraint, derived: Mapping[str, DerivedSymbol]) -> Constraint | None:
    """Take away the rounding of one quotient, by ``ceil(x/d) <= k iff x <= d*k`` and its like."""
    upper = constraint.right.is_constant  # it bounds the quotient from above
    side, bound = (constraint.left, constraint.right) if upper else (constraint.right, constraint.left)
    terms = dict(side.coefficients)
    added = terms.pop((), 0)
    if constraint.relation == "==" or not bound.is_constant or len(terms) != 1:
        return None
    monomial, factor = next(iter(terms.items()))
    quotient = derived.get(monomial[0][0]) if len(monomial) == 1 and monomial[0][1] == 1 and factor > 0 else None
    if quotient is None or quotient.kind not in ("floor", "ceiling"):
        return None
    numerator, denominator = quotient.operands
    numbers = (*numerator.coefficients.values(), *denominator.coefficients.values())
    if not denominator.is_constant or not all(isinstance(one, int) for one in numbers):
        return None
    d, strict = int(denominator.constant_value()), constraint.relation == "<"
    limit = (bound.constant_value() - added) / factor
    if upper:
        most = ceil(limit) - 1 if strict else floor(limit)
        return at_most(numerator, d * most + (0 if quotient.kind == "ceiling" else d - 1))
    least = floor(limit) + 1 if strict else ceil(limit)
    return at_most(d * (least - 1) + 1 if quotient.kind == "ceiling" else d * least, numerator)


ValueKind = Literal["minimum", "maximum", "modular", "bounded"]


class Value(Struct, frozen=True):
    """What an integer is, as far as it is known.

    It is the least (``minimum``) or largest of its operands; of one polynomial, both.  ``modular`` is the first operand
    less as many of the second, the period, as bring it between 0 and the period, which is at least 1.  ``bounded`` is
    at most each operand, and need not be any of them: without operands, nothing is known.
    """

    kind: ValueKind
    operands: tuple[Polynomial, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.operands)

    @property
    def known(self) -> bool:
        """Whether it is one polynomial."""
        return len(self.operands) == 1 and self.kind in ("minimum", "maximum")

    def as_kind(self, kind: ValueKind) -> tuple[Polynomial, ...]:
        """Return the operands if this is a value of that kind, and none otherwise."""
        return self.operands if self.kind == kind or (self.known and kind in ("minimum", "maximum")) else ()

    @staticmethod
    def of(polynomial: Polynomial) -> Value:
        """Return a polynomial as a value."""
        return Value("minimum", (polynomial,))


UNKNOWN = Value("bounded")
