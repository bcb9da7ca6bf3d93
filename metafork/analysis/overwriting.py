"""Which elements of its arrays a program surely overwrites, and whether it reads one of them before.

An assignment overwrites a *region* where its index is a sum over spans of numbers::

    for b < G, u < B:  if (b*B + u < n) x[c + b*B + u] = ...    -->    c + v    for 0 <= v < min(G*B, n)
    for i < n, j < m:  a[i*p + j] = ...                         -->    p*i + j  for 0 <= i < n, 0 <= j < m

The loops of a condition are one span where they are the digits of its numbers.  What depends on data, on loops around
in another way, or on anything that is not known is no region: nothing is sure of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial
from metafork.algebra.positivity import rooms
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopRange
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir.program import Array, Program


class Span(Struct, frozen=True):
    """``step`` times each number that is at least 0 and all of ``least``, and less than all of ``behind``."""

    step: Polynomial
    least: tuple[Polynomial, ...]
    behind: tuple[Polynomial, ...]


class Region(Struct, frozen=True):
    """The elements, row by row, whose numbers are ``first`` and what each span adds to it."""

    first: Polynomial
    spans: tuple[Span, ...]

    @property
    def polynomials(self) -> tuple[Polynomial, ...]:
        """All that numbers of it are computed from."""
        spans = (one for span in self.spans for one in (span.step, *span.least, *span.behind))
        return (self.first, *spans)


class Overwriting(Struct, frozen=True):
    """What a program does to an array that it writes.

    All of the ``regions`` is overwritten; nothing else is written where that is ``exact``, and none of it is read
    before where it is ``first``.
    """

    regions: tuple[Region, ...]
    exact: bool
    first: bool


def overwriting(program: Program, facts: Facts, accesses: Sequence[Reference]) -> dict[str, Overwriting]:
    """Return what a program does to the arrays that it writes, by name; ``accesses`` are all of its own."""
    found: dict[str, Overwriting] = {}
    scope = Scope.of(facts)
    for array in program.arrays:
        own = [one for one in accesses if one.array == array.name]
        if not any(one.writes for one in own):
            continue
        rows = _rows(array, scope)
        writes = _behind_branches([one for one in own if one.writes])
        regions = {number: region for number, one in writes.items() if (region := _region(one, rows)) is not None}
        sure = [one for number, one in writes.items() if number in regions]
        exact = all(one.number in regions or any(_covers(write, one) for write in sure) for one in own if one.writes)
        plain = [one for one in sure if not one.reads]
        first = all(any(_covers(write, one) for write in plain) for one in own if one.reads)
        found[array.name] = Overwriting(tuple(dict.fromkeys(regions.values())), exact, first)
    return found


def _behind_branches(writes: Sequence[Reference]) -> dict[int, Reference]:
    """Return writes by number; two that write one element in both branches of a condition are one behind it."""
    found = {one.number: one for one in writes}
    waiting = [one for one in writes if one.guards]
    while waiting:
        last = waiting.pop()
        other = next((one for one in waiting if _stand_in_both_branches(one, last)), None)
        if other is not None:
            waiting.remove(other)
            both = replace(last, guards=last.guards[:-1], reads=last.reads or other.reads)
            found |= {number: both for number, one in found.items() if one in (last, other)}
            waiting += [both] if both.guards else []
    return found


def _stand_in_both_branches(one: Reference, other: Reference) -> bool:
    guard, opposite = one.guards[-1], other.guards[-1]
    return (
        guard.condition is opposite.condition
        and guard.truth is not opposite.truth
        and not (guard.lasts or opposite.lasts)  # one of them ends the loop
        and one.indices == other.indices
        and None not in one.indices
        and one.loops == other.loops
        and one.guards[:-1] == other.guards[:-1]
        and one.bounded
        and other.bounded
    )


def _rows(array: Array, scope: Scope) -> tuple[Polynomial, ...] | None:
    """Return how many elements an index of each axis counts, ``None`` where that is not known."""
    rows = [ONE]
    for extent in array.extents[:0:-1]:
        value = scope.polynomial(extent)
        if value is None:
            return None
        rows.append(rows[-1] * value)
    return tuple(reversed(rows))


def _covers(write: Reference, other: Reference) -> bool:
    """Say whether whoever makes another access has written the same element before."""
    return (
        write.number < other.number
        and write.indices == other.indices
        and None not in write.indices
        and write.loops == other.loops[: len(write.loops)]
        and write.guards == other.guards[: len(write.guards)]
    )


def _region(access: Reference, rows: tuple[Polynomial, ...] | None) -> Region | None:
    """Return the elements that an access touches, each of them for sure; ``None`` where that is not known."""
    if rows is None or not access.bounded or access.clamped or access.wrapped:
        return None
    if not all(loop.dense for loop in access.loops) or any(g.meaning.conjunction is None for g in access.guards):
        return None
    number = ZERO
    for index, row in zip(access.indices, rows, strict=True):
        if index is None:
            return None
        number = number + index * row
    spans = _spans([*access.loops], [c for guard in access.guards for c in guard.constraints])
    return None if spans is None else _summed(number, spans, {loop.var for loop in access.loops})


class _Linear(Struct, frozen=True):
    """``rest`` and so much of each loop's symbol; none of it has such a symbol."""

    rest: Polynomial
    factors: Mapping[str, Polynomial]


def _linear(value: Polynomial, loops: Iterable[str]) -> _Linear | None:
    factors: dict[str, Polynomial] = {}
    rest = value
    for name in loops:
        if name not in value.symbols:
            continue
        factor = value.coefficient(name)
        if factor is None:
            return None
        factors[name] = factor
        rest = rest.without((name,))
    plain = not any(one.symbols & set(loops) for one in (rest, *factors.values()))
    return _Linear(rest, {name: one for name, one in factors.items() if one}) if plain else None


class _Numbers(Struct):
    """The numbers that loops count together: the sum of their symbols, each times its place.

    They are at least 0 and all of ``least``, and less than all of ``behind``.
    """

    places: dict[str, Polynomial]
    least: list[Polynomial]
    behind: list[Polynomial]


def _spans(loops: Sequence[LoopRange], guards: Sequence[Constraint]) -> list[_Numbers] | None:
    """Return what loops count together, with the conditions as bounds; ``None`` where these are of another kind."""
    names = {loop.var for loop in loops}
    if len(names) < len(loops):
        return None
    trips = {loop.var: loop.trips for loop in loops if loop.trips is not None and not loop.trips.symbols & names}
    asked = [c for loop in loops for c in (loop.constraints() if loop.var not in trips else loop.inside)]
    slacks = _needed(rooms((*asked, *guards)))
    conditions = [_linear(slack, names) for slack in slacks]
    if any(one is None for one in conditions):
        return None
    linear = [one for one in conditions if one is not None]
    groups: list[_Numbers] = []
    for condition in sorted(linear, key=lambda one: -len(one.factors)):
        # Where it is bounded, the sum has the signs of all factors.
        above = all(_positive(-factor) for factor in condition.factors.values())
        below = all(_positive(factor) for factor in condition.factors.values())
        if not condition.factors:
            groups.append(_Numbers({}, [], [condition.rest + 1]))
            continue
        if not (above or below):
            return None
        places = {name: -factor if above else factor for name, factor in condition.factors.items()}
        group = next((one for one in groups if one.places.keys() & places.keys()), None)
        if group is None:
            group = _Numbers(places, [], [])
            groups.append(group)
        if group.places != places:
            return None
        if above:
            group.behind.append(condition.rest + 1)
        else:
            group.least.append(-condition.rest)
    for group in groups:
        if group.places and not _count(group, trips):
            return None
    grouped = {name for group in groups for name in group.places}
    for loop in loops:
        if loop.var not in grouped and loop.var not in trips:
            return None
        if loop.var not in grouped:
            groups.append(_Numbers({loop.var: ONE}, [], [trips[loop.var]]))
    return groups


def _needed(slacks: Sequence[Polynomial]) -> list[Polynomial]:
    """Return them without those that others imply, for no symbol is below 0."""
    kept = list(dict.fromkeys(slacks))
    for one in tuple(kept):
        if any(other != one and (one - other).only_adds for other in kept):
            kept.remove(one)
    return kept


def _positive(value: Polynomial) -> bool:
    return bool(value) and value.only_adds


def _count(group: _Numbers, trips: Mapping[str, Polynomial]) -> bool:
    """Learn how far the loops of a group count; false where they do not count one number after the other."""
    left = dict(group.places)
    place = ONE
    while left:
        name = next((name for name, own in left.items() if own == place), None)
        if name is None:
            return False
        del left[name]
        if name in trips:
            place = place * trips[name]
        elif left:
            return False
        else:
            return bool(group.behind)
    group.behind.append(place)
    return True


def _summed(number: Polynomial, groups: Sequence[_Numbers], loops: set[str]) -> Region | None:
    index = _linear(number, loops)
    if index is None:
        return None
    spans: list[Span] = []
    for group in groups:
        unit = next((name for name, place in group.places.items() if place == ONE), None)
        step = ZERO if unit is None else index.factors.get(unit, ZERO)
        if any(index.factors.get(name, ZERO) != step * place for name, place in group.places.items()):
            return None
        spans.append(Span(step, tuple(dict.fromkeys(group.least)), tuple(dict.fromkeys(group.behind))))
    region = Region(index.rest, tuple(spans))
    return region if all(one.whole for one in region.polynomials) else None
