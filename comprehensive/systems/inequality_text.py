"""Reads polynomials, inequalities and definitions back from the text that trees carry (DESIGN section 8).

    sum        := product (("+" | "-") product)*
    product    := factor (("*" factor) | ("/" integer))*
    factor     := integer | name | "-" factor | "(" sum ")"
    inequality := sum ("<=" | "<" | "==" | ">=" | ">") sum
    value      := sum | "(" sum ")" "/" "(" sum ")"
    definition := factor "/" factor | "ceil(" factor "/" factor ")" | ("max" | "min") "(" sum ("," sum)* ")"

Names are taken only from a given set, never as anything else: ``N``, ``E`` or ``I`` mean nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from fractions import Fraction

from metafork.algebra.polynomial import ONE, Constraint, Polynomial, at_most, equal, less_than
from metafork.algebra.symbols import DerivedSymbol

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(<=|>=|==|[-+*/(),<>]))")


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
        position = 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise InequalityError(f"{text!r}: {text[position:].strip()[:1]!r} has no place in an inequality")
            self._tokens.append(match[match.lastindex or 0])
            position = match.end()

    def next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.next()
        if expected and token not in expected:
            raise InequalityError(f"{self._text!r}: expected {' or '.join(expected)} before {token or 'the end'!r}")
        self._place += 1
        return token

    def end(self) -> None:
        if self.next():
            raise InequalityError(f"{self._text!r}: nothing was expected before {self.next()!r}")

    def sum(self) -> Polynomial:
        total = self._product()
        while self.next() in ("+", "-"):
            total = total + self._product() if self.take() == "+" else total - self._product()
        return total

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
                total = total * self._factor()
            else:
                divisor = self._factor()
                if not divisor.is_constant or not divisor:
                    raise InequalityError(f"{self._text!r}: only division by an integer is possible here")
                total = total * (Fraction(1) / divisor.constant_value())
        return total

    def _factor(self) -> Polynomial:
        token = self.take()
        if token.isdigit():
            return Polynomial.constant(int(token))
        if token == "-":
            return -self._factor()
        if token == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if token and (token[0].isalpha() or token[0] == "_"):
            if token not in self._symbols:
                raise InequalityError(f"{self._text!r}: {token!r} is not known here", token)
            return Polynomial.symbol(token)
        raise InequalityError(f"{self._text!r}: a term was expected before {token or 'the end'!r}")
