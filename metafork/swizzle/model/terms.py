"""Terms: what the cells of arrays hold during synthesis, interned so that equal terms have equal numbers.

A term is an input symbol, or a reduction of terms kept as a multiset, which is a canonical form for commutative and
associative operators (Swizzle Inventor, section 4.2).  ``ZERO`` is the neutral element of sums, ``UNDEFINED`` a cell
that must not be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

ZERO = 0
UNDEFINED = 1
NEUTRAL_ZERO = frozenset("+^|")
ABSORBING_ZERO = frozenset("*&")
OPERATORS = NEUTRAL_ZERO | ABSORBING_ZERO


class Terms:
    """The intern table; numbers 0 and 1 are ``ZERO`` and ``UNDEFINED``, the others in order of creation."""

    def __init__(self) -> None:
        self._names: list[str | None] = ["0", "undefined"]
        self._folds: list[tuple[str, tuple[int, ...]] | None] = [None, None]
        self._atoms: dict[str, int] = {}
        self._known: dict[tuple[str, tuple[int, ...]], int] = {}

    def __len__(self) -> int:
        return len(self._names)

    def atom(self, name: str) -> int:
        """Return the number of an input symbol."""
        if name not in self._atoms:
            self._atoms[name] = len(self._names)
            self._names.append(name)
            self._folds.append(None)
        return self._atoms[name]

    def fold(self, op: str, members: Iterable[int]) -> int:
        """Return the reduction of ``members`` by ``op``: nested reductions by the same operator are one multiset."""
        flat: list[int] = []
        for member in members:
            if member == UNDEFINED:
                return UNDEFINED
            inner = self._folds[member]
            flat.extend(inner[1] if inner is not None and inner[0] == op else (member,))
        if op in ABSORBING_ZERO and ZERO in flat:
            return ZERO
        kept = tuple(sorted(member for member in flat if member != ZERO))
        if not kept:
            return ZERO
        if len(kept) == 1:
            return kept[0]
        number = self._known.get((op, kept))
        if number is None:
            number = self._known[op, kept] = len(self._names)
            self._names.append(None)
            self._folds.append((op, kept))
        return number

    def members(self, term: int, op: str) -> tuple[int, ...]:
        """Return the multiset that ``op`` reduces to ``term``: its members, or the term alone, or nothing for zero."""
        inner = self._folds[term]
        if inner is not None and inner[0] == op:
            return inner[1]
        return () if term == ZERO else (term,)

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
        if op == "*":
            return "*".join(
                f"({part})" if self.operator(one) else part for one, part in zip(members, parts, strict=True)
            )
        return f" {op} ".join(f"({part})" if self.operator(one) not in {None, "*"} else part
                              for one, part in zip(members, parts, strict=True))  # fmt: skip

    def evaluate(self, term: int, values: dict[int, int]) -> int:
        """Return the term's value for integer symbols; raises ``KeyError`` for an unknown symbol or ``UNDEFINED``."""
        if term == ZERO:
            return 0
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
            case _:
                raise ValueError(f"unknown operator {op}")
    return result
