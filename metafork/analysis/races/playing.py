"""Playing a program's accesses through, iteration by iteration, at small parameter values that Start allows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from math import prod
from typing import Protocol

from msgspec import Struct

from metafork.algebra.prover import sample_points
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.cfg.source_cfg import UniformPath
from metafork.analysis.reference_walk import references_and_quotients
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopRange
from metafork.analysis.values.scope import Facts
from metafork.ir.arithmetic.evaluation import NoValueError, converted, integer_value
from metafork.ir.program import Expr, Program

MOST_ITERATIONS = 20_000
"""Values of the loops around one access that are played through, those included that its guards leave out."""


def small_points(facts: Facts) -> list[dict[str, int]]:
    """Return parameter values of launches whose loops run, small ones first."""
    samples = sample_points((*facts.constraints, *facts.running), facts.derived)
    return sorted(samples, key=lambda point: sum(point.values()))


Point = Mapping[str, int]
"""What parameters, or all symbols, are."""


class Launch(Struct, frozen=True):
    """A path of a program with those accesses to some arrays that surely happen, and the quotients in them."""

    path: UniformPath
    facts: Facts
    accesses: tuple[Reference, ...]
    quotients: tuple[DerivedSymbol, ...]

    @staticmethod
    def of(path: UniformPath, facts: Facts, arrays: Collection[str]) -> Launch:
        """Return the accesses of a path to some arrays."""
        accesses, quotients = references_and_quotients(path.program, facts)
        return Launch(path, facts, tuple(one for one in accesses if one.array in arrays and certain(one)), quotients)

    def at(self, points: Iterable[Point]) -> Iterator[tuple[Point, Point, Mapping[str, tuple[int, ...]]]]:
        """Yield those points at which the path is taken, with what all symbols and the extents of arrays are there."""
        for point in points:
            values = _with_definitions(self.path.program, self.facts, point)
            if values is not None and _on_path(self.path, self.facts, values):
                for quotient in self.quotients:
                    values[quotient.name] = quotient.evaluate(values)
                yield point, values, _lengths(self.path.program, self.facts, values)


def _with_definitions(program: Program, facts: Facts, point: Mapping[str, int]) -> dict[str, int] | None:
    """Return a point where scalars that are no polynomials have the values of their definitions.

    ``None`` where one has no known value, or premises do not hold of them.
    """
    values = dict(point)
    if any(_fails(one, point) for one in program.assumptions):
        return None
    if not facts.opaque:
        return values
    scalars = dict(point)
    try:
        for one in program.derived:
            if one.name in facts.opaque:
                values[one.name] = converted(integer_value(one.definition, scalars), one.type)
            scalars[one.name] = int(facts.values[one.name].evaluate(values))
        for quotient in facts.derived:
            values[quotient.name] = quotient.evaluate(values)
    except (KeyError, NoValueError, ZeroDivisionError):
        return None
    return values if all(one.holds(values) for one in facts.constraints) else None


def _fails(assumption: Expr, point: Mapping[str, int]) -> bool:
    """Say whether an assertion does not hold at a point, be it one of polynomials or not (``s == 3 || s == 4``)."""
    with suppress(NoValueError):
        return not integer_value(assumption, point)
    return False


def certain(access: Reference) -> bool:
    """Say whether the access surely happens where its guards, all polynomial, hold."""
    return (
        access.bounded
        and access.phase is not None
        and all(index is not None for index in access.indices)
        and all(guard.meaning.exact for guard in access.guards)
        and all(loop.trips is not None and loop.dense for loop in access.loops)
    )


def _on_path(path: UniformPath, facts: Facts, point: Mapping[str, int]) -> bool:
    """Say whether the conditions of a path have their truth values at a point (conditions on the grid: unknown)."""
    values = dict(point)
    for name, value in facts.values.items():
        try:
            values.setdefault(name, int(value.evaluate(point)))
        except KeyError:
            return False
    for condition, truth in path.conditions:
        try:
            if bool(integer_value(condition, values)) != truth:
                return False
        except NoValueError:
            return False
    return True


def _lengths(program: Program, facts: Facts, point: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the extents of the arrays at a point, as far as they are known there."""
    values = dict(point)
    for name, value in facts.values.items():
        if value.symbols <= point.keys():
            values.setdefault(name, int(value.evaluate(point)))
    found: dict[str, tuple[int, ...]] = {}
    for array in (one for one in program.arrays if not one.endless):
        with suppress(NoValueError):
            found[array.name] = tuple(integer_value(extent, values) for extent in array.extents)
    return found


class _Condition(Protocol):
    @property
    def symbols(self) -> Set[str]: ...

    def holds(self, values: Mapping[str, int], /) -> bool: ...


class Effort:
    """How many values of loops may still be played through."""

    def __init__(self, most: int = MOST_ITERATIONS) -> None:
        self.left = most


def _iterations(
    loops: Sequence[LoopRange], asked: Sequence[Sequence[_Condition]], values: dict[str, int], effort: Effort
) -> Iterator[dict[str, int]]:
    """Yield the values of all symbols for the iterations of a nest, as many as the effort allows.

    The conditions ``asked`` in front of each loop, and the last behind all, hold there.
    """
    now, *later = asked
    if not all(one.holds(values) for one in now):
        return
    if not loops:
        yield values
        return
    first, *rest = loops
    assert first.trips is not None
    for value in range(int(first.trips.evaluate(values))):
        effort.left -= 1
        if effort.left < 0:
            return
        values[first.var] = value
        yield from _iterations(rest, later, values, effort)
    values.pop(first.var, None)


def iterations(access: Reference, point: Mapping[str, int], effort: Effort) -> Iterator[dict[str, int]]:
    """Yield the iterations of an access at a point."""
    open_: list[_Condition] = [
        *(guard.meaning for guard in access.guards),
        *(one for loop in access.loops for one in loop.inside),
    ]
    asked: list[list[_Condition]] = []
    for depth in range(len(access.loops) + 1):  # each as soon as it is known
        unknown = {loop.var for loop in access.loops[depth:]}
        asked.append([one for one in open_ if not one.symbols & unknown])
        open_ = [one for one in open_ if one.symbols & unknown]
    return _iterations(access.loops, asked, dict(point), effort)


def element_at(access: Reference, iteration: Mapping[str, int]) -> tuple[int, ...]:
    """Return the element that an access touches in an iteration."""
    return tuple(int(index.at(iteration)) for index in access.indices if index is not None)


def played(
    access: Reference, point: Mapping[str, int], effort: Effort
) -> Iterator[tuple[dict[str, int], tuple[int, ...]]]:
    """Yield the iterations of an access at a point, each with the element that it touches."""
    return ((iteration, element_at(access, iteration)) for iteration in iterations(access, point, effort))


def within(extents: Sequence[int] | None, element: Sequence[int]) -> bool:
    """Say whether an element lies in the memory of its array, as far as its extents are known."""
    if extents is None or len(extents) != len(element):
        return True
    place = 0
    for index, length in zip(element, extents, strict=True):
        place = place * length + index
    return 0 <= place < prod(extents)
