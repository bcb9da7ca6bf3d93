"""Polynomials in parameters, and conditions on them, as C: how extents of pointers are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol

TERMS_TOGETHER = 64
"""Terms of a sum without parentheses: expressions are read to a depth."""


class Names(Struct, frozen=True):
    """What may be written: some names, and quotients of what may be written; and where one of several cases holds.

    ``either`` are symbols that are 1 where one of their cases holds, and 0 elsewhere.
    """

    names: frozenset[str] = frozenset()
    quotients: Mapping[str, DerivedSymbol] = field(default_factory=dict)
    either: Mapping[str, Sequence[Sequence[Constraint]]] = field(default_factory=dict)

    def others(self, value: Polynomial) -> set[str]:
        """Return what a value depends on but for the given names, quotients taken apart."""
        found: set[str] = set()
        for name in value.symbols:
            if name in self.quotients and name not in self.names:
                for operand in self.quotients[name].operands:
                    found |= self.others(operand)
            elif name not in self.names:
                found.add(name)
        return found

    def text(self, name: str) -> str | None:
        """Return a symbol as C; ``None`` where it cannot be written."""
        if name in self.names:
            return name
        symbol = self.quotients.get(name)
        if symbol is None or symbol.kind not in ("floor", "ceiling"):
            return None
        dividend, divisor = symbol.operands
        above, below = (
            value_text(dividend if symbol.kind == "floor" else dividend + divisor - 1, self),
            value_text(divisor, self),
        )
        return None if above is None or below is None else f"(({above}) / ({below}))"


def value_text(value: Polynomial, names: Names) -> str | None:
    """Return a polynomial as C, quotients written out; ``None`` where that cannot be."""
    ordered = sorted(value.terms().items(), key=lambda term: (term[1] < 0, not term[0]))
    if len(ordered) > TERMS_TOGETHER:
        parts = (ordered[first : first + TERMS_TOGETHER] for first in range(0, len(ordered), TERMS_TOGETHER))
        texts = [value_text(Polynomial(dict(part)), names) for part in parts]
        return None if None in texts else " + ".join(f"({text})" for text in texts)
    terms: list[str] = []
    for monomial, coefficient in ordered:
        powers = [(names.text(name), exponent) for name, exponent in monomial]
        factors = [text for text, exponent in powers if text is not None for _ in range(exponent)]
        if coefficient.denominator != 1 or any(text is None for text, _ in powers):
            return None
        number = abs(int(coefficient))
        if number != 1 or not factors:
            factors.insert(0, str(number))
        terms += ["-" if coefficient < 0 else "+", " * ".join(factors)]
    if not terms:
        return "0"
    return " ".join(terms[1:] if terms[0] == "+" else ["0", *terms])


def condition_text(condition: Constraint, names: Names) -> str | None:
    """Return a condition as C, what is subtracted on the other side; ``None`` where that cannot be."""
    value, relation = condition.difference, condition.relation
    for name, cases in names.either.items():
        if condition == at_most(1, Polynomial.symbol(name)):
            texts = [[condition_text(one, names) for one in case] for case in cases]
            if any(None in case for case in texts):
                return None
            return "(" + " || ".join(" && ".join(map(str, case)) for case in texts) + ")"
    constant = value.coefficients.get((), 0)
    if relation == "<" and constant <= -1:
        value, relation = value + 1, "<="  # of integers
    terms = value.coefficients
    left = value_text(Polynomial({mono: c for mono, c in terms.items() if c > 0}), names)
    right = value_text(Polynomial({mono: -c for mono, c in terms.items() if c < 0}), names)
    return None if left is None or right is None else f"{left} {relation} {right}"
