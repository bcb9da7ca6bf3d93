"""Emptiness of a system by signs of coefficients: cheap proofs, tried before any solver.

Every member of a system is brought to ``p <= 0`` or ``p < 0``.  Where the sum of one or two members is a polynomial
that is never negative (every symbol written as its lower bound plus a rest, all coefficients are then positive), the
system has no solution.  This settles nearly all branches that Algorithm 2 drops: ``2*s*B + 2 <= Z`` together with
``Z < 2*B + 2`` where ``1 <= s``.  A failure here means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, lcm

from metafork.algebra.polynomial import Constraint, Polynomial

Signed = tuple[Polynomial, bool]
"""A polynomial that is ``<= 0``, or ``< 0`` where the flag is set."""


def denominators(polynomial: Polynomial) -> int:
    """Return the least common denominator of the coefficients."""
    return lcm(*(coefficient.denominator for coefficient in polynomial.terms().values()))


def integral(constraint: Constraint) -> Constraint:
    """Return the same condition with integer coefficients on both sides."""
    factor = lcm(denominators(constraint.left), denominators(constraint.right))
    if factor == 1:
        return constraint
    return Constraint(constraint.left * factor, constraint.relation, constraint.right * factor)


class Signs:
    """Knows lower bounds of symbols; ``real`` names the symbols that are not integers."""

    def __init__(self, facts: Iterable[Constraint], real: frozenset[str] = frozenset()) -> None:
        self._real = real
        self._lower: dict[str, int] = {}
        self._never: dict[Signed, bool] = {}
        self._normal: dict[Constraint, tuple[Signed, ...]] = {}
        self._exclusive: dict[tuple[Constraint, Constraint], bool] = {}
        self.add(facts)

    def add(self, facts: Iterable[Constraint]) -> None:
        """Learn lower bounds from facts of the form ``c <= k*x`` (others teach nothing)."""
        for fact in facts:
            terms = dict(fact.difference.terms())
            constant = terms.pop((), Fraction(0))
            if fact.relation == "==" or len(terms) != 1:
                continue
            [(mono, coefficient)] = terms.items()
            if len(mono) != 1 or mono[0][1] != 1 or coefficient > 0:
                continue
            name = mono[0][0]
            bound = constant / -coefficient
            if name not in self._real:
                bound = Fraction(int(bound) + 1 if fact.relation == "<" and bound.denominator == 1 else ceil(bound))
            floor = int(bound // 1)
            if name not in self._lower or self._lower[name] < floor:
                self._lower[name] = floor
        self._never.clear()
        self._exclusive.clear()

    def empty(self, system: Iterable[Constraint], last: Constraint) -> bool:
        """Say whether ``system`` with ``last`` is shown to have no solution; only sums with ``last`` are tried."""
        if any(self._impossible(one) for one in self._signed(last)):
            return True
        symbols = last.symbols
        return any(self._excludes(member, last) for member in system if not symbols.isdisjoint(member.symbols))

    def _excludes(self, member: Constraint, last: Constraint) -> bool:
        """Say whether two members of a system contradict each other by the signs of their sum."""
        key = (member, last)
        if key not in self._exclusive:
            self._exclusive[key] = any(
                self._impossible((one[0] + other[0], one[1] or other[1]))
                for one in self._signed(last)
                for other in self._signed(member)
            )
        return self._exclusive[key]

    def _signed(self, constraint: Constraint) -> tuple[Signed, ...]:
        if constraint not in self._normal:
            self._normal[constraint] = tuple(self._brought_to_zero(constraint))
        return self._normal[constraint]

    def _brought_to_zero(self, constraint: Constraint) -> Iterable[Signed]:
        polynomial = integral(constraint).difference
        whole = not polynomial.symbols & self._real
        match constraint.relation:
            case "<=":
                yield polynomial, False
            case "<":
                yield (polynomial + 1, False) if whole else (polynomial, True)
            case "==":
                yield polynomial, False
                yield -polynomial, False

    def _impossible(self, signed: Signed) -> bool:
        """Say whether ``p <= 0`` (or ``p < 0``) is shown never to hold."""
        if signed not in self._never:
            polynomial, strict = signed
            known = all(name in self._lower for name in polynomial.symbols)
            if known:
                shifted = polynomial.substitute(
                    {name: Polynomial.symbol(name) + self._lower[name] for name in polynomial.symbols}
                ).terms()
                known = all(coefficient > 0 for coefficient in shifted.values()) and (strict or () in shifted)
            self._never[signed] = known
        return self._never[signed]
