"""Whether a greatest index is reached: all iterations of a few small launches, gone through one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.facts import Facts
from metafork.analysis.loop_ranges import LoopRange
from metafork.analysis.references import Reference

POINTS = 8
"""Launches that are tried."""

TRIES = 400
"""Values of parameters that are looked at, to find as many launches."""

ITERATIONS = 20_000
"""Most iterations of an access in a launch."""

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
    """Say whether ``most`` is the greatest index of the accesses of programs to an array in each of some launches."""
    for point in points:
        tops = [
            top
            for some, launch in zip(accesses, point, strict=True)
            for access in some
            if (top := _greatest(access, launch)) is not None
        ]
        if not tops or most.evaluate({name: value for launch in point for name, value in launch.items()}) != max(tops):
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


def _greatest(access: Reference, values: Mapping[str, int]) -> int | None:
    """Return the greatest index in a launch, ``None`` where the access is not made or there are too many iterations."""
    (index,) = access.indices
    assert index is not None
    greatest: int | None = None
    for number, point in enumerate(_iterations(access.loops, dict(values))):
        if number > ITERATIONS:
            return None
        if all(guard.holds(point) for guard in access.guards):
            here = int(index.evaluate(point))
            greatest = here if greatest is None else max(greatest, here)
    return greatest


def _iterations(loops: Sequence[LoopRange], values: dict[str, int]) -> Iterator[dict[str, int]]:
    if not loops:
        yield values
        return
    first, *others = loops
    trips = ITERATIONS if first.trips is None else int(first.trips.evaluate(values))
    for number in range(trips):
        values[first.var] = number
        if all(one.holds(values) for one in first.inside):
            yield from _iterations(others, values)
        elif first.trips is None and number > 2 * _MOST:
            return
