"""Two accesses in two instances of the loops around them: what is said of them in one set of symbols.

Symbols of the second access that may have another value than at the first are primed.  Loop symbols are those of
``Instances``; an opaque value is primed where one that it is a function of is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations, product

from msgspec import Struct

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.analysis.dependence.equations import IndexPair
from metafork.analysis.references import Reference
from metafork.analysis.values.conditions import Choice
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.analysis.values.opaque import OpaqueSymbols

PRIME = "'"
"""Ends the name of a symbol of the second point."""


class Instances(Struct, frozen=True):
    """Which points are compared: loop symbols ``same`` at both, and ``apart``, at least one of which differs.

    In ``one_stretch``, between two barriers, what a block computes once has one value at both.
    """

    same: frozenset[str]
    apart: tuple[str, ...]
    one_stretch: bool = False


class TwoQuotients(Struct, frozen=True):
    """Quotients by one divisor, one of each point, and by how much the dividend of the second is greater."""

    mine: str
    theirs: str
    apart: Polynomial
    divisor: Polynomial


class AtInstances:
    """Two accesses to one array at two points, in one set of symbols."""

    def __init__(self, first: Reference, second: Reference, instances: Instances, opaque: OpaqueSymbols) -> None:
        self.first = first
        self.second = second
        self.instances = instances
        self.symmetric = first == second
        self._own = opaque.behind(_symbols(first))
        theirs = opaque.behind(_symbols(second))
        primed = {loop.var for loop in second.loops if loop.var not in instances.same}
        same = set(instances.same)
        behind = opaque.behind((*_symbols(first), *_symbols(second)))
        for one in behind:  # in the order of their definitions
            one_value = one.of <= same and (instances.one_stretch or not one.once_a_block)
            (same if one_value else primed).update(one.symbols)
        self._primes = {name: Polynomial.symbol(name + PRIME) for name in primed}
        self.with_opaque = bool(behind)
        self.bits = frozenset(name for one in behind if one.bit for name in one.symbols if name in same)
        self.quotients = tuple(
            TwoQuotients(
                one.symbols[0],
                other.symbols[0] + PRIME,
                self.primed(other.operands[0]) - one.operands[0],
                one.operands[1],
            )
            for one in self._own
            for other in theirs
            if one.kind == other.kind == "quotient" and len(one.symbols) == len(other.symbols) == 1
            if one.operands[1] == other.operands[1] and one.operands[1].symbols.isdisjoint(self._primes)
            if other.symbols[0] in self._primes
        )
        own = {loop.var for loop in first.loops} | {name for one in behind for name in one.symbols}
        self.of_one_point = frozenset({*own, *primed, *(name + PRIME for name in primed)} - same)
        self.loops: tuple[LoopRange, ...] = (
            *first.loops,
            *(loop.renamed(self._primes) for loop in second.loops if loop.var in primed),
        )
        premises = [c for loop in self.loops for c in loop.constraints()]
        guards = [guard.meaning for guard in first.guards]
        guards += [guard.meaning.of_each(lambda one: one.substitute(self._primes)) for guard in second.guards]
        points = [*((one, dict[str, Polynomial]()) for one in self._own), *((one, self._primes) for one in theirs)]
        premises += [c for guard in guards for c in guard.constraints]
        premises += [c.substitute(primes) for one, primes in points for c in one.constraints]
        self.premises: tuple[Constraint, ...] = tuple(dict.fromkeys(premises))
        self.choices: tuple[Choice, ...] = tuple(
            dict.fromkeys(choice for guard in guards for choice in guard.alternatives)
        )
        unlike = [(one.value - one.operands[0]).substitute(primes) for one, primes in points if one.kind == "not"]
        self.never = frozenset([*unlike, *(-one for one in unlike)])
        self._involutions, self._other_involutions = (
            [
                [side.substitute(primes) for side in (one.value, *one.operands)]
                for one in some
                if one.kind == "exclusive"
            ]
            for some, primes in ((self._own, {}), (theirs, self._primes))
        )

    def primed(self, value: Polynomial) -> Polynomial:
        """Return a polynomial of the second access in the symbols of the second point."""
        return value.substitute(self._primes)

    def other(self, symbol: str) -> str:
        """Return what a loop symbol is called at the second point."""
        return symbol + PRIME if symbol in self._primes else symbol

    def partners(self) -> Mapping[str, str]:
        """Return the loop symbol at the second point that plays the part of each at the first: by kind and position."""
        result: dict[str, str] = {}
        for kind in LoopKind:
            mine = [loop for loop in self.first.loops if loop.kind is kind]
            theirs = [loop for loop in self.second.loops if loop.kind is kind]
            result |= {a.var: self.other(b.var) for a, b in zip(mine, theirs, strict=False) if a.trips == b.trips}
        return result

    def with_involutions(self, pairs: Sequence[IndexPair]) -> list[IndexPair]:
        """Return pairs of indices with those that are equal besides: ``x^j == y^j`` has ``x == y``, and so on.

        With one ``j`` at both points, ``x^j == y`` has ``y^j == x`` besides.
        """
        result = list(pairs)
        known = {left - right for left, right in pairs} | {right - left for left, right in pairs}
        for mine, theirs in product(self._involutions, self._other_involutions):
            for (mask, left, one), (other_mask, right, other) in product(permutations(mine), permutations(theirs)):
                if mask == other_mask and left - right in known and (one, other) not in result:
                    result.append((one, other))
        return result


def _symbols(access: Reference) -> Iterable[str]:
    """Return the symbols in what is known of an access."""
    found = {name for index in access.indices if index is not None for name in index.symbols}
    found |= {name for loop in access.loops for constraint in loop.constraints() for name in constraint.symbols}
    found |= {name for guard in access.guards for name in guard.meaning.symbols}
    return found
