"""Does an integer stay within its C type?  What is known of the symbols of a scope, for that question.

Polynomials are over the integers, C's unsigned types count modulo 2^w, and conversions cut off what does not fit.  A
value of such a type is a polynomial where ``least <= value <= greatest`` holds in every iteration.  Bounds over the
loops around it (``metafork.algebra.ranges``) are polynomials in parameters; what is left to show of them follows from
ranges of symbols, or from a premise that is at least as strong.  No solver is asked: there are many such questions,
and the same ones again in every version of a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from fractions import Fraction

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.positivity import Positivity, rooms
from metafork.algebra.ranges import Counter, bounds
from metafork.algebra.symbols import DerivedSymbol

SMALL = 16
"""Arithmetic that leaves its type while no symbol exceeds this is meant to."""


class ValueRanges:
    """What is known of the symbols of a scope.

    ``premises`` hold for parameters and derived symbols, all of them non-negative integers; loop symbols are entered
    with their trip counts, outermost first.  ``quotients`` may grow; those past ``lasting`` are known here alone, and
    stand in no condition.  ``copy`` gives an inner scope its own loops and
    guards.
    """

    def __init__(
        self, premises: Iterable[Constraint] = (), quotients: Sequence[DerivedSymbol] = (), lasting: int | None = None
    ) -> None:
        self._premises = dict.fromkeys(premises)
        self._quotients = quotients
        self._lasting = lasting
        self._loops: dict[str, Polynomial | None] = {}
        self._guards: tuple[Constraint, ...] = ()
        self._known: Positivity | None = None

    def copy(self) -> ValueRanges:
        """Return what is known here, for an inner scope that may learn more."""
        other = copy(self)
        other._premises, other._loops = dict(self._premises), dict(self._loops)
        return other

    @property
    def loops(self) -> Mapping[str, Polynomial | None]:
        """The loop symbols with their trip counts."""
        return self._loops

    def enter(self, symbol: str, trips: Polynomial | None) -> None:
        """Learn of a loop symbol: ``0 <= symbol < trips``, or ``0 <= symbol`` alone."""
        self._loops.pop(symbol, None)
        self._loops[symbol] = trips

    def learn(self, premises: Iterable[Constraint]) -> None:
        """Learn what holds of parameters and derived symbols."""
        self._premises |= dict.fromkeys(premises)
        self._known = None

    def assume(self, guards: Iterable[Constraint]) -> None:
        """Learn what holds where the code of this scope runs."""
        self._guards += tuple(guards)

    def needed(self, value: Polynomial, low: int | None, high: int | None) -> tuple[Constraint, ...] | None:
        """Return what is left to show for ``low <= value <= high``: conditions without loop symbols; empty if proved.

        A bound that is ``None`` is not asked about.  ``None`` where there is no such condition.
        """
        found: list[Constraint] = []
        for bound, largest in ((low, False), (high, True)):
            if bound is None or self._signs.follows(self._slack(value, bound, largest), self._guards):
                continue
            counters = [Counter(symbol, trips) for symbol, trips in self._loops.items()]
            guarded = list(self._guarded(value, bound, largest))
            reached = [*bounds(value, counters, self._signs, largest=largest), *guarded]
            if all(one.symbols & self._loops.keys() for one in reached):
                reached += [most for one in guarded for most in bounds(one, counters, self._signs, largest=largest)]
            if any(self._signs.follows(self._slack(one, bound, largest), self._premises) for one in reached):
                continue
            worst = next((one for one in reached if not one.symbols & self._loops.keys()), None)
            if worst is None:
                return None
            local = self._local
            if any(quotient.name in worst.symbols for quotient in local):
                slack = self._signs.without_quotients(self._slack(worst, bound, largest), local)
                worst = bound - slack if largest else bound + slack
            found.append(at_most(worst, bound) if largest else at_most(bound, worst))
        return tuple(found)

    def never_negative(self, value: Polynomial, known: Iterable[Constraint]) -> bool:
        """Say whether a value is shown not to be below 0 by what is known of it besides, and by a guard."""
        guards = rooms(self._guards)
        for rest in [value, *(value - room for room in rooms(known))]:
            if self.needed(rest, 0, None) == ():
                return True
            for guard in guards:
                shared = [mono for mono in guard.coefficients if mono]
                times = {Fraction(rest.coefficients.get(mono, 0)) / guard.coefficients[mono] for mono in shared}
                if any(one > 0 and self.needed(rest - guard * one, 0, None) == () for one in times):
                    return True
        return False

    def lasts(self, condition: Constraint) -> bool:
        """Say whether a condition is about symbols that are known elsewhere too."""
        return condition.symbols.isdisjoint(quotient.name for quotient in self._local)

    @property
    def _local(self) -> Sequence[DerivedSymbol]:
        return () if self._lasting is None else self._quotients[self._lasting :]

    def implied(self, constraint: Constraint) -> bool:
        """Say whether a condition ``left <= right`` on parameters follows from what is known of them."""
        return self._signs.follows(constraint.right - constraint.left, self._premises)

    @staticmethod
    def _slack(value: Polynomial, bound: int, largest: bool) -> Polynomial:
        return bound - value if largest else value - bound

    def _guarded(self, value: Polynomial, bound: int, largest: bool) -> Iterator[Polynomial]:
        """Yield bounds of a value that a guard gives: at most 9 where it is ``x + 2`` and x < 8 holds."""
        for guard in self._guards:
            if guard.symbols & value.symbols:
                rest = self._slack(value, bound, largest) - (guard.right - guard.left - (guard.relation == "<"))
                yield bound - rest if largest else bound + rest

    @property
    def _signs(self) -> Positivity:
        if self._known is None:
            self._known = Positivity(tuple(self._premises), self._quotients)
        return self._known


def ordinary(condition: Constraint) -> bool:
    """Say whether a condition that keeps arithmetic exact leaves room for parameters of ordinary size.

    ``i*n + j < 2^32`` does, ``p + (2^32 - 1) < 2^32`` does not: that program counts on the wrap-around.
    """
    slack = condition.right - condition.left
    constant = slack.terms().get((), Fraction(0))
    if constant > 0:
        worst = Polynomial({mono: value for mono, value in slack.terms().items() if not mono or value < 0})
        return worst.evaluate(dict.fromkeys(worst.symbols, SMALL)) >= 0
    return all(slack.evaluate(dict.fromkeys(slack.symbols, size)) >= 0 for size in (SMALL, SMALL**2))
