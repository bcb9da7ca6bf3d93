"""Is a polynomial never negative, given what is known of its symbols?  Certificates, without any solver.

``Positivity(premises).non_negative(p)`` looks for a way to write ``p`` with coefficients of one sign, all symbols being
non-negative integers.  In turn, and as far as is asked for:

- by ranges: the least value that the symbols' own ranges allow is not negative, a dividend perhaps being
  ``divisor*quotient + remainder``;
- by search: bounds of symbols are put in, one after the other, until every coefficient is non-negative;
- by size: a premise ``0 <= q`` is taken away, and the least value of what is left is not negative.

A failure says nothing.  Everything here is cheap beside a question to Z3 (``metafork.algebra.prover``, which asks here
first): the by-ranges part takes microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from heapq import heappop, heappush

from metafork.algebra.polynomial import ONE, Constraint, Monomial, Polynomial
from metafork.algebra.ranges import Box
from metafork.algebra.symbols import DerivedSymbol

MOST_TERMS = 1_000
"""Terms that the substitutions of one search give; searches that find something take some hundreds."""
MOST_DEPTH = 5
"""Symbols that are replaced one after the other."""
MOST_QUOTIENTS = 8
"""Quotients that are replaced by their dividends in one bound."""
_REST = ("slack ", "remainder ")


class Positivity:
    """What is known of symbols, and proofs of positivity from it.

    ``premises`` hold of non-negative integers; ``quotients`` are the derived symbols that they define, and may grow.
    """

    def __init__(self, premises: Iterable[Constraint] = (), quotients: Sequence[DerivedSymbol] = ()) -> None:
        self._premises = tuple(premises)
        self._quotients = quotients
        self._before: Positivity | None = None
        self._box: Box | None = None
        self._dividends: list[tuple[str, Polynomial]] | None = None
        self._definitions: dict[str, list[Polynomial]] | None = None
        self._numbered = 0
        self._asked: dict[Polynomial, bool] = {}

    def extended(self, more: Iterable[Constraint]) -> Positivity:
        """Return what is known with further premises; what the first ones say is not read again."""
        result = Positivity(more, self._quotients)
        result._before = self
        return result

    def positive(self, value: Polynomial, *, search: bool = False) -> bool:
        """Say whether ``value >= 1`` is shown; all coefficients must be integers for that to be ``value > 0``."""
        return bool(value) and value.whole and self.non_negative(value - 1, search=search)

    def non_negative(self, value: Polynomial, *, search: bool = False) -> bool:
        """Say whether ``value >= 0`` is shown, by ranges or also by a search."""
        if not search:
            return self._by_ranges(value)
        return all(coeff >= 0 for coeff in value.coefficients.values()) or self._search(value)

    def sign(self, value: Polynomial) -> int | None:
        """Return 1 or -1 where ``value >= 0`` or ``value <= 0`` is shown (0 where it is zero), else ``None``."""
        if not value:
            return 0
        if self._by_ranges(value):
            return 1
        return -1 if self._by_ranges(-value) else None

    def follows(self, value: Polynomial, premises: Iterable[Constraint]) -> bool:
        """Say whether ``value >= 0`` is shown by ranges or sizes, one of ``premises`` taken away from it."""
        if self._by_size(value):
            return True
        for premise in premises:
            if premise.symbols.isdisjoint(value.symbols):
                continue
            room = premise.room
            if self._by_size(value - room) or (premise.relation == "==" and self._by_size(value + room)):
                return True
        return False

    def follows_from(self, value: Polynomial, known: Sequence[Polynomial], steps: int = 2) -> bool:
        """Say whether ``value >= 0`` is shown by ranges or sizes after some of ``known`` were taken away, one by one.

        These are never negative (``rooms``).  One is taken away where a term of it is one of the value, which may be
        multiplied for that: with an integer q, ``q >= 0`` is ``2*q + 1 >= 0``.
        """
        if self._by_size(value):
            return True
        if not steps:
            return False
        terms, integer = {mono: coeff for mono, coeff in value.coefficients.items() if mono and coeff > 0}, value.whole
        for one in known:
            scales = {
                Fraction(coefficient) / terms[mono]
                for mono, coefficient in one.coefficients.items()
                if mono in terms and coefficient > 0
            }
            scales = {scale for scale in scales if scale == 1 or (integer and scale.denominator == 1)}
            if any(self.follows_from(value * by + (by - 1) - one, known, steps - 1) for by in sorted(scales)):
                return True
        return False

    # --- by ranges --------------------------------------------------------------------------------------------

    def _by_ranges(self, value: Polynomial) -> bool:
        if value not in self._asked:  # four times of five it was: bounds of one index are wanted at many places
            self._asked[value] = self._shown_by_ranges(value)
        return self._asked[value]

    def _shown_by_ranges(self, value: Polynomial) -> bool:
        box = self._known_box()
        if box.never_negative(value):
            return True
        return any(
            name in value.symbols and box.never_negative(value.substitute({name: dividend}))
            for name, dividend in self._known_dividends()
        )

    def _known_box(self) -> Box:
        if self._box is None:
            self._box = Box() if self._before is None else self._before._known_box().copy()
            self._box.learn(self._premises)
        return self._box

    def _known_dividends(self) -> list[tuple[str, Polynomial]]:
        if self._dividends is None:
            before = self._before
            self._dividends = _dividends(self._quotients) if before is None else before._known_dividends()
        return self._dividends

    # --- by search --------------------------------------------------------------------------------------------

    def _defined(self) -> dict[str, list[Polynomial]]:
        """Return what symbols are: ``x >= e`` gives ``x = e + slack``, a quotient gives its dividend."""
        if self._definitions is None:
            self._definitions = {}
            if self._before is not None:
                self._definitions = {name: list(values) for name, values in self._before._defined().items()}
                self._numbered = self._before._numbered
            for symbol in self._quotients if self._before is None else ():
                if symbol.kind == "floor":
                    numerator, denominator = symbol.operands
                    self._enter(numerator - denominator * Polynomial.symbol(symbol.name) - self._fresh("remainder"))
            for premise in self._premises:
                self._define(premise)
        return self._definitions

    def _define(self, premise: Constraint) -> None:
        if premise.relation == "==":
            self._enter(premise.difference)
            self._enter(-premise.difference)
        else:
            strict = 1 if premise.relation == "<" else 0
            self._enter(premise.right - premise.left - strict - self._fresh("slack"))

    def _fresh(self, kind: str) -> Polynomial:
        self._numbered += 1
        return Polynomial.symbol(f"{kind} {self._numbered}")

    def _enter(self, zero: Polynomial) -> None:
        """Take up an equation ``zero == 0`` as definitions of the symbols that stand in it alone, with factor 1."""
        assert self._definitions is not None
        terms = zero.coefficients
        # Only a definition that says more than ``x >= 0`` helps.
        if not any(coeff < 0 and not _is_rest(mono) for mono, coeff in terms.items()):
            return
        alone = [mono[0][0] for mono, coeff in terms.items() if coeff == 1 and len(mono) == 1 and mono[0][1] == 1]
        for name in sorted(alone):
            if not name.startswith(_REST) and sum(name == other for mono in terms for other, _ in mono) == 1:
                self._definitions.setdefault(name, []).append(Polynomial.symbol(name) - zero)

    def _search(self, value: Polynomial) -> bool:
        """Put in definitions where the fewest negative coefficients are left; those of a proof are few soon."""
        none: frozenset[str] = frozenset()
        open_, seen, terms = [(0, 0, value, none)], {(value, none)}, 0
        while open_ and terms <= MOST_TERMS:
            _, _, value, used = heappop(open_)
            helpful = {name for mono, coeff in value.coefficients.items() if coeff > 0 for name, _ in mono}
            for name in sorted(helpful - used):
                for definition in self._defined().get(name, ()):
                    result = value.substitute({name: definition})
                    negative = sum(coeff < 0 for coeff in result.coefficients.values())
                    if not negative:
                        return True
                    terms += len(result.coefficients)
                    step = result, used | {name}  # the same symbols may be replaced in another order
                    if len(used) < MOST_DEPTH and step not in seen:
                        seen.add(step)
                        heappush(open_, (negative, len(seen), *step))
        return False

    # --- by size ----------------------------------------------------------------------------------------------

    def _by_size(self, value: Polynomial) -> bool:
        if self._by_ranges(value):
            return True
        less = self.without_quotients(value, self._quotients[:MOST_QUOTIENTS][::-1])
        return less is not value and self._known_box().never_negative(less)

    def without_quotients(self, value: Polynomial, quotients: Iterable[DerivedSymbol]) -> Polynomial:
        """Replace ``divisor*quotient``, or else a quotient, by its dividend where it is subtracted.

        The result is at most the value.
        """
        for quotient in quotients:
            if quotient.kind not in ("floor", "ceiling") or quotient.name not in value.symbols:
                continue
            factor = value.coefficient(quotient.name)
            if factor is None:
                continue
            numerator, denominator = quotient.operands
            times = (-factor).divide_exactly(denominator)
            most = numerator if quotient.kind == "floor" else numerator + denominator - 1
            if times is None:
                # t*q <= n/r where the divisor is r*t, and t*q <= t*n in any case.
                part = denominator.divide_exactly(-factor)
                alone = part is not None and self._by_ranges(part - 1)
                times, most = (ONE if alone else -factor), numerator
            if not self._by_ranges(times):
                continue
            value = value - factor * Polynomial.symbol(quotient.name) - times * most
        return value


def rooms(premises: Iterable[Constraint]) -> list[Polynomial]:
    """Return what premises say is never negative, all symbols being integers: ``y - x`` for ``x <= y``."""
    found = []
    for premise in premises:
        room = premise.room
        found += [room, -room] if premise.relation == "==" else [room]
    return found


def _is_rest(mono: Monomial) -> bool:
    return len(mono) == 1 and mono[0][0].startswith(_REST)


def _dividends(quotients: Iterable[DerivedSymbol]) -> list[tuple[str, Polynomial]]:
    """Return a symbol of each dividend by way of its quotient; two quotients of one dividend define it twice."""
    equations: list[tuple[str, Polynomial]] = []
    for index, quotient in enumerate(quotients):
        if quotient.kind != "floor":
            continue
        numerator, denominator = quotient.operands
        for name in sorted(numerator.symbols - denominator.symbols):
            if numerator.coefficient(name) == ONE and name != quotient.name:
                rest = numerator - Polynomial.symbol(name)
                remainder = Polynomial.symbol(f"remainder {index}")
                equations.append((name, denominator * Polynomial.symbol(quotient.name) + remainder - rest))
                break
    return equations
