"""Accesses that leave their array whatever the parameters are (MF0404, a warning).

Iterations are played through at a few small parameter values that Start allows, and at some where the extents are
larger.  An access is reported only where one of its iterations is outside at every point at which it runs: a program
that is right for sensible values has one where it stays inside.  Accesses that may not happen take no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from metafork.algebra.prover import sample_points
from metafork.analysis.cfg.source_cfg import launch_paths
from metafork.analysis.facts import program_facts
from metafork.analysis.races.playing import MOST_ITERATIONS, Effort, certain, lengths, played, values_at, within
from metafork.analysis.reference_walk import references_and_quotients
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
        accesses, quotients = references_and_quotients(path.program, facts)
        declared = {array.name for array in path.program.arrays}
        accesses = tuple(one for one in accesses if one.array in declared and certain(one))
        for point in _points(program, facts):
            values = values_at(path, facts, quotients, point)
            extents = {} if values is None else lengths(path.program, facts, values)
            for access in accesses if values is not None else ():
                place = access.element.span
                if place in inside:
                    continue
                found = _outside(access, values or {}, point, extents.get(access.array), effort)
                if isinstance(found, Overrun):
                    outside.setdefault(place, []).append(found)
                elif found:
                    inside.add(place)
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
    small = sample_points((*facts.constraints, *facts.running), facts.derived)
    small.sort(key=lambda one: sum(one.values()))
    yield from small
    grown = {name for array in program.arrays for extent in array.extents for name in variables(extent)}
    for length in LARGER:
        for one in small:
            point = {name: length if name in grown else value for name, value in one.items()}
            for quotient in facts.derived:
                point[quotient.name] = quotient.evaluate(point)
            if all(premise.holds(point) for premise in facts.constraints):
                yield point


def _outside(
    access: Reference,
    values: Mapping[str, int],
    point: Mapping[str, int],
    extents: tuple[int, ...] | None,
    effort: Effort,
) -> Overrun | bool:
    """Return an iteration outside of the array; else whether some run and all are known to be inside."""
    ran, most = False, min(MOST_ITERATIONS, effort.left)
    own = Effort(most)
    try:
        for iteration, element in played(access, values, own):
            ran = True
            if not all(ScalarType.INT.least <= index <= ScalarType.INT.greatest for index in element):
                return False  # C computes another one, or none
            if extents is not None and not within(extents, element):
                shown = {loop.var: int(loop.value.evaluate(iteration)) for loop in access.loops}
                return Overrun(access, shown, point, element, extents)
        return ran and own.left >= 0
    finally:
        effort.left -= most - own.left
