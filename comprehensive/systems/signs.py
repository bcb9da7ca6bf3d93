"""Emptiness of a system by signs of coefficients: cheap proofs, tried before any solver.

Every member of a system is brought to ``p <= 0`` or ``p < 0``.  Where the sum of one or two members is a polynomial
that is never negative in the ranges of the symbols (``metafork.algebra.ranges``), the system has no solution.  This
settles nearly all branches that Algorithm 2 drops: ``2*s*B + 2 <= Z`` together with ``Z < 2*B + 2`` where ``1 <= s``.
A failure here means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.algebra.ranges import Box

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
    """Knows the ranges of symbols; ``real`` names the symbols that are not integers."""

    def __init__(self, facts: Iterable[Constraint], real: frozenset[str] = frozenset()) -> None:
        self._real = real
        self._box = Box((), real, signed=True)
        self._never: dict[Signed, bool] = {}
        self._normal: dict[Constraint, tuple[Signed, ...]] = {}
        self._exclusive: dict[tuple[Constraint, Constraint], bool] = {}
        self.add(facts)

    def add(self, facts: Iterable[Constraint]) -> None:
        """Learn the ranges of symbols from facts about one symbol each (others teach nothing)."""
        self._box.learn(facts)
        self._never.clear()
        self._exclusive.clear()

    def empty(self, system: Iterable[Constraint], last: Constraint) -> bool:
        """Say whether ``system`` with ``last`` is shown to have no solution; only sums with ``last`` are tried."""
        if any(self._impossible(one) for one in self._signed(last)):
            return True
        symbols = last.symbols
        return any(self._excludes(member, last) for member in system if not symbols.isdisjoint(member.symbols))

    def non_negative(self, symbols: Iterable[str]) -> bool:
        """Say whether symbols are known to be non-negative integers."""
        return all(
            symbol not in self._real and self._box.never_negative(Polynomial.symbol(symbol)) for symbol in symbols
        )

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
            least = self._box.at_least(polynomial)
            self._never[signed] = least is not None and (least > 0 or (strict and least == 0))
        return self._never[signed]
