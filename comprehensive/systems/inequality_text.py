"""Reads polynomials, inequalities and definitions back from the text that trees carry (DESIGN section 8).

    sum        := product (("+" | "-") product)*
    product    := factor (("*" factor) | ("/" integer))*
    factor     := integer | name | "-" factor | "(" sum ")"
    inequality := sum ("<=" | "<" | "==" | ">=" | ">") sum
    value      := sum | "(" sum ")" "/" "(" sum ")"
    definition := factor "/" factor | "ceil(" factor "/" factor ")" | ("max" | "min") "(" sum ("," sum)* ")"

Names are taken only from a given set, never as anything else: ``N``, ``E`` or ``I`` mean nothing here.  Texts may come
from anywhere, so what they describe is bounded: see ``MOST_TERMS`` and what follows.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from fractions import Fraction

from metafork.algebra.polynomial import ONE, Constraint, Monomial, Polynomial, at_most, equal, less_than
from metafork.algebra.symbols import DerivedSymbol

MOST_TERMS = 4000
"""Terms of a polynomial; a product of 40 sums would have 2^40."""

MOST_DEGREE = 60
"""Degree of a polynomial; the dispatcher computes with at most 15."""

MOST_DIGITS = 200
"""Digits of a coefficient's numerator or denominator; the dispatcher computes with at most 38."""

MOST_TOKENS = 120_000
"""Names, numbers and signs of one text."""

MOST_NESTED = 100
"""Parentheses and signs around one factor."""

_LARGEST = 10**MOST_DIGITS
_TOKEN = re.compile(r"\s*(?:([0-9]+)|([A-Za-z_][A-Za-z_0-9]*)|(<=|>=|==|[-+*/(),<>]))", re.ASCII)


class InequalityError(ValueError):
    """A text is no inequality; ``unknown`` is the name that is not among the symbols, where that is the reason."""

    def __init__(self, message: str, unknown: str | None = None) -> None:
        super().__init__(message)
        self.unknown = unknown


def inequality(text: str, symbols: Collection[str]) -> Constraint:
    """Return the constraint; ``>=`` and ``>`` are turned round.  Raises ``InequalityError``."""
    reader = _Reader(text, symbols)
    left = reader.sum()
    relation = reader.take("<=", "<", "==", ">=", ">")
    right = reader.sum()
    reader.end()
    match relation:
        case "<=":
            return at_most(left, right)
        case "<":
            return less_than(left, right)
        case ">=":
            return at_most(right, left)
        case ">":
            return less_than(right, left)
        case _:
            return equal(left, right)


def value(text: str, symbols: Collection[str]) -> tuple[Polynomial, Polynomial]:
    """Return numerator and denominator of a counter's value.  Raises ``InequalityError``."""
    reader = _Reader(text, symbols)
    result = reader.quotient()
    reader.end()
    return result


def definition(name: str, text: str, symbols: Collection[str]) -> DerivedSymbol:
    """Return the derived symbol that a definition describes.  Raises ``InequalityError``."""
    reader = _Reader(text, {*symbols, "ceil", "max", "min"})
    head = text.strip()
    if head.startswith("ceil("):
        reader.take("ceil")
        reader.take("(")
        operands: tuple[Polynomial, ...] = reader.division()
        reader.take(")")
        symbol = DerivedSymbol(name, "ceiling", operands)
    elif head.startswith(("max(", "min(")):
        kind = reader.take("max", "min")
        reader.take("(")
        found = [reader.sum()]
        while reader.next() == ",":
            reader.take(",")
            found.append(reader.sum())
        reader.take(")")
        symbol = DerivedSymbol(name, "maximum" if kind == "max" else "minimum", tuple(found))
    else:
        symbol = DerivedSymbol(name, "floor", reader.division())
    reader.end()
    return symbol


class _Reader:
    def __init__(self, text: str, symbols: Collection[str]) -> None:
        self._text = text
        self._symbols = symbols
        self._tokens: list[str] = []
        self._place = 0
        self._depth = 0
        position = 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._fault(f"{text[position:].strip()[:1]!r} has no place in an inequality")
            self._tokens.append(match[match.lastindex or 0])
            position = match.end()
            if len(self._tokens) > MOST_TOKENS:
                raise self._fault(f"it has more than {MOST_TOKENS} names, numbers and signs")

    def _fault(self, message: str, unknown: str | None = None) -> InequalityError:
        """Return what is wrong, with the text, or its start where it is long."""
        shown = self._text if len(self._text) <= 200 else f"{self._text[:100]}..."
        return InequalityError(f"{shown!r}: {message}", unknown)

    def next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.next()
        if expected and token not in expected:
            raise self._fault(f"expected {' or '.join(expected)} before {token[:40] or 'the end'!r}")
        self._place += 1
        return token

    def end(self) -> None:
        if self.next():
            raise self._fault(f"nothing was expected before {self.next()[:40]!r}")

    def sum(self) -> Polynomial:
        terms: dict[Monomial, Fraction] = {}
        sign = 1
        while True:
            # Added up in one table: a sum of many terms takes as many steps.
            for mono, coefficient in self._product().terms().items():
                terms[mono] = terms.get(mono, Fraction(0)) + sign * coefficient
            if len(terms) > MOST_TERMS:
                raise self._fault(f"it has more than {MOST_TERMS} terms")
            if self.next() not in ("+", "-"):
                return self._bounded(Polynomial(terms))
            sign = 1 if self.take() == "+" else -1

    def _bounded(self, value: Polynomial) -> Polynomial:
        for mono, coefficient in value.terms().items():
            if sum(exponent for _, exponent in mono) > MOST_DEGREE:
                raise self._fault(f"its degree is more than {MOST_DEGREE}")
            if max(abs(coefficient.numerator), coefficient.denominator) >= _LARGEST:
                raise self._fault(f"a coefficient has more than {MOST_DIGITS} digits")
        return value

    def division(self) -> tuple[Polynomial, Polynomial]:
        """Read ``n/B0`` or ``(N - 2)/(s*B)``: two operands, each a name, a number or a sum in parentheses."""
        numerator = self._factor()
        self.take("/")
        return numerator, self._factor()

    def quotient(self) -> tuple[Polynomial, Polynomial]:
        """Read ``(a)/(b)``, or a sum, whose denominator is 1."""
        start = self._place
        if self.next() == "(":
            self.take("(")
            numerator = self.sum()
            self.take(")")
            if self.next() == "/":
                self.take("/")
                if self.next() == "(":
                    self.take("(")
                    denominator = self.sum()
                    self.take(")")
                    return numerator, denominator
            self._place = start
        return self.sum(), ONE

    def _product(self) -> Polynomial:
        total = self._factor()
        while self.next() in ("*", "/"):
            if self.take() == "*":
                factor = self._factor()
                if len(total.terms()) * len(factor.terms()) > MOST_TERMS:
                    raise self._fault(f"multiplied out it may have more than {MOST_TERMS} terms")
                total = total * factor
            else:
                divisor = self._factor()
                if not divisor.is_constant or not divisor:
                    raise self._fault("only division by an integer is possible here")
                total = total * (Fraction(1) / divisor.constant_value())
            self._bounded(total)
        return total

    def _factor(self) -> Polynomial:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise self._fault(f"parentheses and signs nest more than {MOST_NESTED} deep")
        value = self._unnested()
        self._depth -= 1
        return value

    def _unnested(self) -> Polynomial:
        token = self.take()
        if token.isdigit():
            if len(token) > MOST_DIGITS:
                raise self._fault(f"a number has more than {MOST_DIGITS} digits")
            return Polynomial.constant(int(token))
        if token == "-":
            return -self._factor()
        if token == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if token and (token[0].isalpha() or token[0] == "_"):
            if token not in self._symbols:
                raise self._fault(f"{token[:60]!r} is not known here", token)
            return Polynomial.symbol(token)
        raise self._fault(f"a term was expected before {token or 'the end'!r}")
