"""Which terms may stand before a reduction whose result is known: members, neutral elements, earlier results.

A term of the reduction is a multiset of members.  Where an array before the reduction holds results of the same
operator (a reduction in steps), a cell may hold any of these whose members are among those of the term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement

from metafork.swizzle.model.terms import IDEMPOTENT, Terms


class Operands:
    """The parts of terms under one operator; ``given`` are the terms of all arrays that are known.

    A known term may arrive through other operators, alone or with its sign turned.
    """

    def __init__(self, terms: Terms, op: str, given: Iterable[int]) -> None:
        self._terms, self.op = terms, op
        self._minus = terms.known_constant(-1) if op == "*" else None
        compound = {term for term in given if terms.operator(term) == op}
        if op == "+" and terms.known_constant(-1) is not None:
            compound |= {terms.negated(term) for term in compound}
        self._compound = sorted(compound)
        self._known: dict[int, tuple[int, ...]] = {}

    @property
    def neutral(self) -> int | None:
        """The neutral element, where it may stand in a cell."""
        return self._terms.neutral(self.op)

    @property
    def is_plain(self) -> bool:
        """Whether a term has no other parts than its members and neutral elements."""
        return self._minus is None and not self._compound

    def parts(self, term: int) -> tuple[int, ...]:
        """Return every term that may be a member of a reduction to ``term``, neutral elements included."""
        if term not in self._known:
            members, own = self._terms.members(term, self.op), self._terms.unsigned(term, self.op)
            found = [*members, *(one for one in self._compound if self._terms.unsigned(one, self.op) <= own)]
            if self._minus is not None:
                # A sum with its sign turned is no product: its factors are -1 and the negated sum.
                found += [self._minus, *(self._terms.negated(one) for one in (term, *members))]
            found += [] if self.neutral is None else [self.neutral]
            self._known[term] = tuple(dict.fromkeys(found))
        return self._known[term]

    def pairs(self, term: int) -> Iterator[tuple[int, int]]:
        """Yield the unordered pairs that reduce to ``term``."""
        parts = self.parts(term)
        if self.op in IDEMPOTENT or self._minus is not None:
            yield from (
                pair for pair in combinations_with_replacement(parts, 2) if self._terms.fold(self.op, pair) == term
            )
            return
        members = Counter(self._terms.members(term, self.op))
        for one in parts:
            rest = members - Counter(self._terms.members(one, self.op))
            if rest or self.neutral is not None:
                other = self._terms.fold(self.op, rest.elements())
                if one <= other and other in parts and self._terms.fold(self.op, (one, other)) == term:
                    yield one, other
