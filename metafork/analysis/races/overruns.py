"""Accesses that leave their array whatever the parameters are (MF0404, a warning).

Iterations are played through at a few small parameter values that Start allows, and at some where the extents are
larger.  An access is reported only where one of its iterations is outside at every point at which it runs: a program
that is right for sensible values has one where it stays inside.  Accesses that may not happen take no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from metafork.analysis.cfg.source_cfg import launch_paths
from metafork.analysis.facts import program_facts
from metafork.analysis.races.playing import (
    MOST_ITERATIONS,
    Effort,
    Launch,
    element_at,
    iterations,
    small_points,
    within,
)
from metafork.analysis.references import Reference
from metafork.analysis.values.scope import Facts
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span
from metafork.ir.program import Program
from metafork.ir.rewriting import variables

ALTOGETHER = 400_000
"""Values of loops that are played through for one program."""
LARGER = (100, 1000)
"""What extents are besides: small constants in an index are no fault of a program for large arrays."""


class Overrun(Struct, frozen=True):
    """An iteration of an access that is outside of the array, which has so many elements in each dimension."""

    access: Reference
    iteration: Mapping[str, int]
    parameters: Mapping[str, int]
    element: tuple[int, ...]
    extents: tuple[int, ...]


def overruns(program: Program) -> tuple[Overrun, ...]:
    """Return accesses that are outside of their arrays at all points, one for each array, in the order of the text."""
    facts = program_facts(program)
    effort, inside = Effort(ALTOGETHER), set[Span]()
    outside: dict[Span, list[Overrun]] = {}
    for path in launch_paths(program):
        launch = Launch.of(path, facts, {array.name for array in path.program.arrays})
        for point, values, extents in launch.at(_points(program, facts)):
            for those in _together(launch.accesses):
                open_ = [one for one in those if one.element.span not in inside]
                for access, found in _outside(open_, values, point, extents, effort) if open_ else ():
                    if isinstance(found, Overrun):
                        outside.setdefault(access.element.span, []).append(found)
                    elif found:
                        inside.add(access.element.span)
    if effort.left < 0:
        return ()  # not all points were tried
    result: dict[str, Overrun] = {}
    for place in sorted(outside.keys() - inside, key=lambda span: span.start):
        example = min(outside[place], key=_is_degenerate)
        result.setdefault(example.access.array, example)
    return tuple(result.values())


def _is_degenerate(one: Overrun) -> bool:
    return min(one.parameters.values(), default=2) < 2


def _points(program: Program, facts: Facts) -> Iterator[dict[str, int]]:
    """Yield parameter values, small ones first, then some of them with larger extents."""
    small = small_points(facts)
    yield from small
    grown = {name for array in program.arrays for extent in array.extents for name in variables(extent)}
    for length in LARGER:
        for one in small:
            point = {name: length if name in grown else value for name, value in one.items()}
            for quotient in facts.derived:
                point[quotient.name] = quotient.evaluate(point)
            if all(premise.holds(point) for premise in facts.constraints):
                yield point


def _together(accesses: Iterable[Reference]) -> Iterable[list[Reference]]:
    """Return accesses by the iterations in which they are made."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Reference]] = {}
    for access in accesses:
        found.setdefault((tuple(map(id, access.loops)), tuple(map(id, access.guards))), []).append(access)
    return found.values()


def _outside(
    accesses: Sequence[Reference],
    values: Mapping[str, int],
    point: Mapping[str, int],
    extents: Mapping[str, tuple[int, ...]],
    effort: Effort,
) -> Iterator[tuple[Reference, Overrun | bool]]:
    """Yield, of each access, an iteration outside of its array; else whether some run and all are known to be inside.

    All are made in the same iterations.
    """
    most = min(MOST_ITERATIONS, effort.left)
    own, ran, open_ = Effort(most), False, [*accesses]
    for iteration in iterations(accesses[0], values, own):
        ran = True
        effort.left -= len(open_) - 1
        for access in [*open_]:
            element = element_at(access, iteration)
            if not all(ScalarType.INT.least <= index <= ScalarType.INT.greatest for index in element):
                open_.remove(access)
                yield access, False  # C computes another one, or none
            elif not within(extents.get(access.array), element):
                open_.remove(access)
                shown = {loop.var: int(loop.value.evaluate(iteration)) for loop in access.loops}
                yield access, Overrun(access, shown, point, element, extents[access.array])
        if not open_ or effort.left < 0:
            break
    known = ran and own.left >= 0 and effort.left >= 0
    effort.left -= most - own.left
    for access in open_:
        yield access, known
