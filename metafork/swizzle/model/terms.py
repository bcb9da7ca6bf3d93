"""Terms: what the cells of arrays hold during synthesis, interned so that equal terms have equal numbers.

A term is an input symbol, an integer constant, or a reduction of terms kept as a multiset, which is a canonical form
for commutative and associative operators (Swizzle Inventor, section 4.2); of the idempotent ones it is a set.  Neutral
elements are dropped, and so are pairs of factors -1; constants are not computed with otherwise.  A difference is
``a + -1*b``, and -1 times a sum is the sum of the negated members.  ``ZERO`` is the constant 0, ``UNDEFINED`` a cell
that must not be used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

ZERO = 0
UNDEFINED = 1
NEUTRAL_ZERO = frozenset("+^|")
ABSORBING_ZERO = frozenset("*&")
IDEMPOTENT = frozenset(("&", "|", "max", "min"))
OPERATORS = NEUTRAL_ZERO | ABSORBING_ZERO | IDEMPOTENT
# The neutral elements that are not zero; ``max`` and ``min`` have none.
_NEUTRAL_CONSTANTS = {"*": 1, "&": -1}


class Terms:
    """The intern table; numbers 0 and 1 are ``ZERO`` and ``UNDEFINED``, the others in order of creation."""

    def __init__(self) -> None:
        self._names: list[str | None] = ["0", "undefined"]
        self._folds: list[tuple[str, tuple[int, ...]] | None] = [None, None]
        self._atoms: dict[tuple[str, int], int] = {}
        self._constants: dict[int, int] = {0: ZERO}
        self._values: dict[int, int] = {ZERO: 0}
        self._known: dict[tuple[str, tuple[int, ...]], int] = {}

    def __len__(self) -> int:
        return len(self._names)

    def atom(self, array: str, position: int) -> int:
        """Return the number of an input symbol: the element of an array at a position (row-major).

        It is spelled ``x3``, or ``a1[3]`` where the array's name ends with a digit.
        """
        key = array, position
        if key not in self._atoms:
            self._atoms[key] = len(self._names)
            self._names.append(f"{array}[{position}]" if array[-1:].isdigit() else f"{array}{position}")
            self._folds.append(None)
        return self._atoms[key]

    def constant(self, value: int) -> int:
        """Return the number of an integer constant."""
        if value not in self._constants:
            number = self._constants[value] = len(self._names)
            self._values[number] = value
            self._names.append(str(value))
            self._folds.append(None)
        return self._constants[value]

    def known_constant(self, value: int) -> int | None:
        """Return the number of a constant that occurs, ``None`` for others."""
        return self._constants.get(value)

    def value(self, term: int) -> int | None:
        """Return the value of a constant, ``None`` for every other term."""
        return self._values.get(term)

    def neutral(self, op: str) -> int | None:
        """Return the neutral element of an operator, ``None`` where there is none or it does not occur."""
        if op in NEUTRAL_ZERO:
            return ZERO
        return self._constants.get(_NEUTRAL_CONSTANTS[op]) if op in _NEUTRAL_CONSTANTS else None

    def negated(self, term: int) -> int:
        """Return -1 times the term."""
        return self.fold("*", (self.constant(-1), term))

    def fold(self, op: str, members: Iterable[int]) -> int:
        """Return the reduction of ``members`` by ``op``: nested reductions by the same operator are one multiset.

        Raises ``KeyError`` for the maximum or minimum of nothing.
        """
        flat: list[int] = []
        for member in members:
            if member == UNDEFINED:
                return UNDEFINED
            inner = self._folds[member]
            flat.extend(inner[1] if inner is not None and inner[0] == op else (member,))
        if op in ABSORBING_ZERO and ZERO in flat:
            return ZERO
        neutral = self.neutral(op)
        kept = tuple(sorted(member for member in flat if member != neutral))
        if op in IDEMPOTENT:
            kept = tuple(sorted(set(kept)))
        if op == "*":
            kept = self._signed(kept)
            inner = self._folds[kept[-1]] if len(kept) == 2 and self._values.get(kept[0]) == -1 else None
            inner = self._folds[kept[0]] if len(kept) == 2 and self._values.get(kept[1]) == -1 else inner
            if inner is not None and inner[0] == "+":
                return self.fold("+", [self.negated(member) for member in inner[1]])
        if not kept:
            # Raises KeyError for a maximum or minimum of nothing.
            return ZERO if op in NEUTRAL_ZERO else self.constant(_NEUTRAL_CONSTANTS[op])
        if len(kept) == 1:
            return kept[0]
        number = self._known.get((op, kept))
        if number is None:
            number = self._known[op, kept] = len(self._names)
            self._names.append(None)
            self._folds.append((op, kept))
        return number

    def _signed(self, factors: tuple[int, ...]) -> tuple[int, ...]:
        """Leave at most one of several factors -1."""
        minus = self._constants.get(-1)
        if minus is None or factors.count(minus) < 2:
            return factors
        others = tuple(factor for factor in factors if factor != minus)
        if factors.count(minus) % 2:
            return tuple(sorted((minus, *others)))
        return others or (self.constant(1),)

    def members(self, term: int, op: str) -> tuple[int, ...]:
        """Return the multiset that ``op`` reduces to ``term``: its members, or the term alone, or nothing for zero.

        Of operators that zero is not neutral to, it is a member as any other.
        """
        inner = self._folds[term]
        if inner is not None and inner[0] == op:
            return inner[1]
        return () if term == self.neutral(op) or (term == ZERO and op in ABSORBING_ZERO) else (term,)

    def unsigned(self, term: int, op: str) -> Counter[int]:
        """Count the members, of products without their signs."""
        minus = self._constants.get(-1) if op == "*" else None
        members = self.members(term, op)
        if minus is None:
            return Counter(members)
        return Counter(min(one, self.negated(one)) for one in members if one != minus)

    def operator(self, term: int) -> str | None:
        """Return the operator of a reduction, ``None`` for a symbol."""
        inner = self._folds[term]
        return None if inner is None else inner[0]

    def text(self, term: int) -> str:
        """Spell the term, as in ``w0*x1 + w1*x2``."""
        inner = self._folds[term]
        if inner is None:
            return str(self._names[term])
        op, members = inner
        parts = [self.text(one) for one in members]
        if op in {"max", "min"}:
            return f"{op}({', '.join(parts)})"
        if op == "*":
            return "*".join(
                f"({part})" if self.operator(one) else part for one, part in zip(members, parts, strict=True)
            )
        return f" {op} ".join(f"({part})" if self.operator(one) not in {None, "*"} else part
                              for one, part in zip(members, parts, strict=True))  # fmt: skip

    def evaluate(self, term: int, values: dict[int, int]) -> int:
        """Return the term's value for integer symbols; raises ``KeyError`` for an unknown symbol or ``UNDEFINED``."""
        constant = self._values.get(term)
        if constant is not None:
            return constant
        inner = self._folds[term]
        if inner is None:
            return values[term]
        parts = [self.evaluate(one, values) for one in inner[1]]
        return reduce_integers(inner[0], parts)


def reduce_integers(op: str, values: Sequence[int]) -> int:
    """Reduce integers (or arrays of them) by a fold operator."""
    result = values[0]
    for value in values[1:]:
        match op:
            case "+":
                result = result + value
            case "*":
                result = result * value
            case "^":
                result = result ^ value
            case "&":
                result = result & value
            case "|":
                result = result | value
            case "max":
                result = np.maximum(result, value)
            case "min":
                result = np.minimum(result, value)
            case _:
                raise ValueError(f"unknown operator {op}")
    return result
