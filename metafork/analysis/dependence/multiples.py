"""What conditions on whole numbers say beyond the reals: with ``n == 2*m``, ``2*j < n`` is ``2*j + 2 <= n``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from msgspec.structs import replace

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.analysis.references import Reference
from metafork.analysis.values.conditions import Meaning


class Multiples:
    """Symbols that are multiples of a number, from equations: ``n`` where ``n - 2*m == 0`` is known."""

    def __init__(self, known: Iterable[Constraint]) -> None:
        self.equations = tuple(dict.fromkeys(one for one in known if one.relation == "=="))
        self._values: dict[str, Polynomial] = {}
        for one in self.equations:
            self._learn(one.difference.substitute(self._values))

    def _learn(self, zero: Polynomial) -> None:
        if not zero.whole:
            return
        terms = zero.coefficients
        for mono, sign in terms.items():
            alone = len(mono) == 1 and mono[0][1] == 1 and abs(sign) == 1
            others = [other for other in terms if other is not mono]
            if not alone or any(name == mono[0][0] for other in others for name, _ in other):
                continue
            if gcd(*(int(terms[other]) for other in others if other)) > 1:
                name = mono[0][0]
                value = Polynomial.symbol(name) - zero * sign
                self._values = {one: known.substitute({name: value}) for one, known in self._values.items()}
                self._values[name] = value
                return

    def tightened(self, constraint: Constraint) -> Constraint:
        """Return a constraint that says as much of whole numbers as it can without other symbols."""
        zero = constraint.difference
        if constraint.relation == "==" or not zero.whole or self._values.keys().isdisjoint(zero.symbols):
            return constraint
        least = zero + (1 if constraint.relation == "<" else 0)
        terms = dict(least.substitute(self._values).coefficients)
        number = int(terms.pop((), 0))
        common = gcd(*(int(factor) for factor in terms.values()))
        more = -number % common if common > 1 else 0
        if not more:
            return constraint
        return Constraint(constraint.left + more + (1 if constraint.relation == "<" else 0), "<=", constraint.right)

    def tightened_where(self, accesses: Sequence[Reference]) -> tuple[Reference, ...]:
        """Return accesses of whose conditions more is known."""
        if not self._values:
            return tuple(accesses)
        known: dict[Meaning, Meaning] = {}

        def more(meaning: Meaning) -> Meaning:
            if meaning not in known:
                choices = tuple(
                    tuple(tuple(self.tightened(one) for one in case) for case in choice) for choice in meaning.choices
                )
                known[meaning] = replace(meaning, choices=choices)
            return known[meaning]

        return tuple(
            replace(access, guards=tuple(replace(one, meaning=more(one.meaning)) for one in access.guards))
            for access in accesses
        )
