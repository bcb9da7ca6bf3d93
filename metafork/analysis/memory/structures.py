"""Structures: the neighbouring elements of an array that one thread touches, at a constant distance from lane to lane.

In an array of structures thread x touches elements ``stride*x + base + field``, fields below the stride.  Lanes of a
warp that touch the same field lie ``stride`` elements apart, so that each access asks for that many times the memory
that it uses; but all of a warp's structures together are one piece of memory.  The kernel moves that piece in the order
of memory and hands the fields out by shuffles (``metafork.analysis.memory.lane_transpose``,
``metafork.lowering.structures``).

That is right where, in one phase, the thread's accesses lie in structures of its own: the array is only read, or every
access of the phase lies in one structure, all of whose fields every thread writes whenever the block runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.memory.lane_transpose import LARGEST_STRIDE
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.analysis.values.scope import Scope
from metafork.ir.marks import several_results
from metafork.ir.program import Array, Program


class NoStructureError(Exception):
    """An array is not accessed as structures; the message says why."""


class Field(Struct, frozen=True):
    """One reference into a structure: its field is ``offset``, a polynomial in serial loop variables of the thread."""

    reference: Reference
    offset: Polynomial


class Structure(Struct, frozen=True):
    """What a thread touches of ``array`` in one phase: elements ``base + f``, ``f`` in ``fields``.

    ``base`` counts elements, in parameters, grid, block-level and thread variables; it grows by ``stride`` with the x
    variable of the phase.  ``fields`` start at 0 and are below ``stride``; ``sure`` are those that
    every thread touches whenever the block runs.  ``loaded`` and ``stored`` say which ways it is moved.
    """

    array: Array
    phase: int
    stride: int
    base: Polynomial
    members: tuple[Field, ...]
    fields: tuple[int, ...]
    sure: frozenset[int]
    loaded: bool
    stored: bool

    @property
    def span(self) -> int:
        """How many neighbouring elements a thread touches, gaps included."""
        return self.fields[-1] + 1


class _Access(Struct, frozen=True):
    reference: Reference
    stride: int
    base: Polynomial  # without constant term
    constant: int
    digits: Polynomial
    reach: int  # the largest value of the digits


def structures_of(
    program: Program, scope: Scope, prover: Prover, array: Array, own: Sequence[Reference]
) -> tuple[Structure, ...]:
    """Return the structures in which a path accesses an array, phase by phase; all its references are in one.

    Raises ``NoStructureError`` where some reference is in none, or moving them would not be right or of no use.
    """
    if array.whole:
        raise NoStructureError(f"the structures of {array.whole} have members of several types")
    if array.endless:
        raise NoStructureError(f"it is not known how many elements {array.name} has")
    if program.striding is not None:
        raise NoStructureError("threads stride over the thread loops")
    if several_results(program):
        raise NoStructureError("a thread runs several iterations of a thread loop")
    extents = [scope.polynomial(extent) for extent in array.extents[1:]]
    result: list[Structure] = []
    by_phase: dict[int, list[_Access]] = {}
    for reference in own:
        if reference.phase is None:
            raise NoStructureError(f"{array.name} is read outside the thread loops")
        if reference.atomic:
            raise NoStructureError(f"threads of all blocks update {array.name} atomically")
        by_phase.setdefault(reference.phase, []).append(_access(array, reference, extents))
    for phase, accesses in by_phase.items():
        clusters = [cluster for group in _alike(accesses) for cluster in _clusters(group)]
        written = any(access.reference.writes for access in accesses)
        if written and len(clusters) > 1:
            raise NoStructureError(f"threads write {array.name}, and touch more of it than one structure")
        result += [_structure(array, phase, cluster, prover) for cluster in clusters]
    return tuple(result)


def _access(array: Array, reference: Reference, extents: Sequence[Polynomial | None]) -> _Access:
    linear = reference.indices[0]
    for index, extent in zip(reference.indices[1:], extents, strict=True):
        if linear is None or index is None or extent is None:
            linear = None
            break
        linear = linear * extent + index
    if linear is None:
        raise NoStructureError(f"an index of {array.name} is no known polynomial")
    thread = next(loop for loop in reversed(reference.loops) if loop.kind is LoopKind.THREAD)
    step = linear.coefficient(thread.var)
    if step is None or not step.is_constant or not 2 <= step.constant_value() <= LARGEST_STRIDE:
        raise NoStructureError(
            f"neighbouring threads do not access {array.name} at a constant distance of 2 to {LARGEST_STRIDE} elements"
        )
    loops = [loop for loop in reference.loops if loop.kind is LoopKind.SERIAL and loop.var in linear.symbols]
    base = linear.without(loop.var for loop in loops)
    digits = linear - base
    constant = int(base.substitute(dict.fromkeys(base.symbols, ZERO)).constant_value())
    reach = _reach(array, linear, loops)
    return _Access(reference, int(step.constant_value()), base - constant, constant, digits, reach)


def _reach(array: Array, linear: Polynomial, loops: Iterable[LoopRange]) -> int:
    reach = 0
    for loop in loops:
        step = linear.coefficient(loop.var)
        known = step is not None and step.is_constant and loop.trips is not None and loop.trips.is_constant
        if step is None or loop.trips is None or not known or step.constant_value() < 0:
            raise NoStructureError(f"which fields of {array.name} a loop touches is not known")
        reach += int(step.constant_value()) * max(0, int(loop.trips.constant_value()) - 1)
    return reach


def _alike(accesses: Iterable[_Access]) -> list[list[_Access]]:
    """Group accesses that differ by constants."""
    groups: dict[tuple[int, Polynomial], list[_Access]] = {}
    for access in accesses:
        groups.setdefault((access.stride, access.base), []).append(access)
    return list(groups.values())


def _clusters(group: Sequence[_Access]) -> list[list[_Access]]:
    """Split accesses that differ by constants into structures, from the lowest constant on."""
    clusters: list[list[_Access]] = []
    for access in sorted(group, key=lambda one: one.constant):
        low = clusters[-1][0].constant if clusters else 0
        if clusters and access.constant + access.reach < low + access.stride:
            clusters[-1].append(access)
        elif access.reach < access.stride:
            clusters.append([access])
        else:
            raise NoStructureError(f"a thread touches more elements of {access.reference.array} than lie between two")
    return clusters


def _structure(array: Array, phase: int, cluster: Sequence[_Access], prover: Prover) -> Structure:
    first = cluster[0]
    members: list[Field] = []
    fields: set[int] = set()
    sure: set[int] = set()
    certain: set[int] = set()
    for access in cluster:
        low = access.constant - first.constant
        members.append(Field(access.reference, access.digits + low))
        touched = {low + value for value in _values(access)}
        fields |= touched
        if _always(access.reference, prover):
            sure |= touched
            certain |= touched if access.reference.writes else set()
    stored = any(access.reference.writes for access in cluster)
    if stored and certain != set(range(first.stride)):
        raise NoStructureError(f"not every thread is proved to write all {first.stride} fields of {array.name}")
    if 2 * len(fields) < first.stride:
        raise NoStructureError(f"a thread uses {len(fields)} of {first.stride} fields of {array.name}")
    return Structure(
        array,
        phase,
        first.stride,
        first.base + first.constant,
        tuple(members),
        tuple(sorted(fields)),
        frozenset(sure),
        not stored or any(access.reference.reads for access in cluster),
        stored,
    )


def _values(access: _Access) -> set[int]:
    """Return every value of the digits of an access; where a loop skips some of its range, these are too many."""
    values = {0}
    for loop in access.reference.loops:
        step = access.digits.coefficient(loop.var)
        if loop.kind is LoopKind.SERIAL and step is not None and step and loop.trips is not None:
            ends = range(max(0, int(loop.trips.constant_value())))
            values = {value + int(step.constant_value()) * end for value in values for end in ends}
    return values


def _always(reference: Reference, prover: Prover) -> bool:
    """Say whether an access, for each value of its digits, happens in every thread whenever its phase runs."""
    own = [loop for loop in reference.loops if loop.kind is LoopKind.SERIAL]
    return (
        reference.bounded
        and not reference.guards
        and all(
            loop.dense and not loop.inside and loop.trips is not None and bool(prover.proves(at_most(ONE, loop.trips)))
            for loop in own
        )
    )
