"""Whether a greatest index is reached: iterations of a few small launches, gone through one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from random import Random

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.facts import Facts
from metafork.analysis.loop_ranges import LoopRange
from metafork.analysis.references import Guard, Reference
from metafork.lazy_dataclass import dataclass

POINTS = 8
"""Launches that are tried."""

TRIES = 400
"""Values of parameters that are looked at, to find as many launches."""

ITERATIONS = 8_000
"""Most iterations of the loops around an access that are looked at in a launch."""

FARTHEST = 2 * 9
"""Iterations of a loop whose number is not known."""

_LEAST, _MOST = 3, 9


Launch = Mapping[str, int]
"""Values of parameters and of all that is derived from them."""


def launches(programs: Sequence[Facts]) -> list[tuple[Launch, ...]]:
    """Return a few launches of programs with common parameters, small ones, and none where there are none."""
    random = Random(0)
    names = sorted({name for facts in programs for name in _parameters(facts)})
    found: list[tuple[Launch, ...]] = []
    for _ in range(TRIES):
        given = {name: random.randint(_LEAST, _MOST) for name in names}
        values = [_with_derived(given, facts) for facts in programs]
        possible = tuple(one for one in values if one is not None)
        if len(possible) == len(values):
            found.append(possible)
            if len(found) == POINTS:
                break
    return found


def least(bounds: Sequence[Polynomial], points: Sequence[Launch]) -> Polynomial | None:
    """Return the polynomial that is the least of several in all of some launches, ``None`` where none is."""
    values = {bound: [bound.evaluate(point) for point in points] for bound in bounds}
    together = [min(column) for column in zip(*values.values(), strict=True)]
    return next((bound for bound in bounds if values[bound] == together), None)


def is_reached(most: Polynomial, accesses: Sequence[Sequence[Reference]], points: Sequence[Sequence[Launch]]) -> bool:
    """Say whether some access of programs to an array has the index ``most``, a bound, in each of some launches."""
    for point in points:
        value = most.evaluate({name: value for launch in point for name, value in launch.items()})
        touched = (
            _touches(access, value, launch) for some, launch in zip(accesses, point, strict=True) for access in some
        )
        if not any(touched):
            return False
    return bool(points)


def _parameters(facts: Facts) -> frozenset[str]:
    derived = {symbol.name for symbol in facts.derived}
    used = frozenset(name for constraint in facts.constraints for name in constraint.symbols)
    return (used | frozenset(n for value in facts.values.values() for n in value.symbols)) - derived


def _with_derived(given: Mapping[str, int], facts: Facts) -> dict[str, int] | None:
    """Return the values of all symbols, ``None`` where there is no launch with them."""
    values = dict(given)
    for symbol in facts.derived:
        try:
            values[symbol.name] = symbol.evaluate(values)
        except ZeroDivisionError:
            return None
    return values if all(one.holds(values) for one in facts.constraints) else None


def _touches(access: Reference, value: int | Fraction, values: Launch) -> bool:
    """Say whether an access has an index in a launch; the last iterations are looked at first, and not too many."""
    (index,) = access.indices
    assert index is not None
    bound = set(values)
    asked: list[tuple[LoopRange, list[Guard]]] = []
    left = list(access.guards)
    for loop in access.loops:
        bound.add(loop.var)
        asked.append((loop, [guard for guard in left if guard.symbols <= bound]))
        left = [guard for guard in left if not guard.symbols <= bound]
    search = _Search()
    return any(
        index.evaluate(point) == value and all(guard.holds(point) for guard in left)
        for point in search.iterations(asked, dict(values))
    )


@dataclass(slots=True)
class _Search:
    """Goes through the iterations of nested loops; ``left`` are those that it may still look at."""

    left: int = ITERATIONS

    def iterations(
        self, loops: Sequence[tuple[LoopRange, list[Guard]]], values: dict[str, int]
    ) -> Iterator[dict[str, int]]:
        """Yield the iterations in which what is asked of each loop's own holds."""
        if not loops:
            yield values
            return
        (first, guards), *others = loops
        trips = FARTHEST if first.trips is None else int(first.trips.evaluate(values))
        for number in reversed(range(trips)):
            self.left -= 1
            if self.left < 0:
                return
            values[first.var] = number
            if not all(one.holds(values) for one in first.inside) or not all(guard.holds(values) for guard in guards):
                continue
            lasting = [guard for guard in guards if guard.lasts and first.var in guard.symbols]
            if all(guard.holds({**values, first.var: before}) for guard in lasting for before in range(number)):
                yield from self.iterations(others, values)
