"""Whether an index is reached, the greatest or one below 0: iterations of a few small launches, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from msgspec import Struct

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.analysis.extents.launches import Launch
from metafork.analysis.hidden_values import HiddenValues
from metafork.analysis.loop_ranges import LoopRange
from metafork.analysis.references import Guard, Reference

ITERATIONS = 8_000
"""Most iterations of the loops around an access that are looked at in a launch."""

BELOW = 4
"""Indices below 0 that are looked for."""

FARTHEST = 2 * 9
"""Iterations of a loop whose number is not known."""


def least(bounds: Sequence[Polynomial], points: Sequence[Launch]) -> tuple[Polynomial, ...]:
    """Return the one or two polynomials that are the least of several in some launches, none where these are more."""
    bounds = sorted(bounds, key=lambda bound: (_degree(bound), str(bound)))
    values = {bound: [bound.evaluate(point) for point in points] for bound in bounds}
    together = [min(column) for column in zip(*values.values(), strict=True)]
    for some in (*combinations(bounds, 1), *combinations(bounds, 2)):
        if [min(column) for column in zip(*(values[one] for one in some), strict=True)] == together:
            return some
    return ()


def _degree(value: Polynomial) -> int:
    return max((sum(exponent for _, exponent in mono) for mono in value.terms()), default=0)


def is_reached(
    most: Sequence[Polynomial],
    accesses: Sequence[Sequence[Reference]],
    points: Sequence[Sequence[Launch]],
    hidden: Sequence[HiddenValues],
) -> bool:
    """Say whether some access of programs to an array has as index the least of ``most`` in each of some launches.

    ``hidden`` are what symbols of conditions stand for that are neither loops nor parameters, program by program.
    """
    for point in points:
        everything = {name: value for launch in point for name, value in launch.items()}
        value = min(one.evaluate(everything) for one in most)
        touched = (
            _touches(access, value, launch, values)
            for some, launch, values in zip(accesses, point, hidden, strict=True)
            for access in some
        )
        if not any(touched):
            return False
    return bool(points)


def is_below_zero(
    accesses: Sequence[Sequence[Reference]], points: Sequence[Sequence[Launch]], hidden: Sequence[HiddenValues]
) -> bool:
    """Say whether some access of programs to an array has one of the first indices below 0 in one of some launches."""
    return any(
        _touches(access, value, launch, values)
        for point in points
        for some, launch, values in zip(accesses, point, hidden, strict=True)
        for access in some
        for value in range(-BELOW, 0)
    )


def _touches(access: Reference, value: int | Fraction, values: Launch, hidden: HiddenValues) -> bool:
    """Say whether an access has an index in a launch; the last iterations are looked at first, and not too many."""
    (index,) = access.indices
    assert index is not None
    bound = set(values)
    asked: list[tuple[LoopRange, list[_Condition]]] = []
    left = [one for guard in access.guards for one in _Condition.parts(guard, hidden)]
    for loop in access.loops:
        bound.add(loop.var)
        asked.append((loop, [one for one in left if one.of <= bound]))
        left = [one for one in left if not one.of <= bound]
    search = _Search(_at_least(index, access.loops, values), value)
    for point in search.iterations(asked, dict(values)):
        there = hidden.numbers(index.symbols, point)
        if there is not None and index.evaluate(there) == value and all(one.holds(there) for one in left):
            return True
    return False


class _Condition(Struct, frozen=True):
    """A part of a guard: one of the ``cases`` holds, and did in all iterations before, where it ``lasts``.

    ``names`` are its symbols, which are quotients of the symbols ``of`` which it is, or these; where there are any,
    ``quotients`` knows them.
    """

    cases: Sequence[Sequence[Constraint]]
    lasts: bool
    names: frozenset[str]
    of: frozenset[str]
    quotients: HiddenValues | None

    @staticmethod
    def parts(guard: Guard, hidden: HiddenValues) -> Iterator[_Condition]:
        """Yield the conditions that together are a guard."""
        for choice in guard.meaning.choices:
            for cases in [[[one]] for one in choice[0]] if len(choice) == 1 else [choice]:
                names = frozenset([name for case in cases for one in case for name in one.symbols])
                behind = hidden.behind(names)
                own = {name for one in behind for name in one.symbols}
                of = frozenset([*names, *(name for one in behind for name in one.of)]) - own
                yield _Condition(cases, guard.lasts, names, of, hidden if behind else None)

    def holds(self, values: Mapping[str, int]) -> bool:
        """Say whether it is known to hold at a point."""
        here = values if self.quotients is None else self.quotients.numbers(self.names, values)
        return here is not None and any(all(one.holds(here) for one in case) for case in self.cases)


def _at_least(index: Polynomial, loops: Sequence[LoopRange], values: Launch) -> Mapping[str, Polynomial]:
    """Return by loop what an index is at least, in a launch, once the symbols up to this loop's are known.

    The symbols are not below 0: terms with one that is not known yet are left out, where none of them is negative.
    """
    result: dict[str, Polynomial] = {}
    rest = {loop.var for loop in loops}
    left = index.substitute({name: values[name] for name in index.symbols - rest if name in values})
    open_ = left.symbols - rest  # hidden values, of either sign
    for loop in loops:
        rest.discard(loop.var)
        later = {mono: factor for mono, factor in left.terms().items() if any(name in rest for name, _ in mono)}
        if not open_ and all(factor > 0 for factor in later.values()):
            result[loop.var] = left - Polynomial(later)
    return result


class _Search(Struct):
    """Goes through the iterations of nested loops that may lead to the index ``value``.

    ``at_least`` is what the index is at least once a loop's symbol is known, and ``left`` are the iterations that may
    still be looked at.
    """

    at_least: Mapping[str, Polynomial]
    value: int | Fraction
    left: int = ITERATIONS

    def iterations(
        self, loops: Sequence[tuple[LoopRange, list[_Condition]]], values: dict[str, int]
    ) -> Iterator[dict[str, int]]:
        """Yield the iterations in which what is asked of each loop's own holds."""
        if not loops:
            yield values
            return
        (first, conditions), *others = loops
        trips = FARTHEST if first.trips is None else int(first.trips.evaluate(values))
        for number in reversed(range(trips)):
            self.left -= 1
            if self.left < 0:
                return
            values[first.var] = number
            if first.var in self.at_least and self.at_least[first.var].evaluate(values) > self.value:
                continue
            if not all(one.holds(values) for one in first.inside) or not all(one.holds(values) for one in conditions):
                continue
            lasting = [one for one in conditions if one.lasts and first.var in one.of]
            if all(one.holds({**values, first.var: before}) for one in lasting for before in range(number)):
                yield from self.iterations(others, values)
