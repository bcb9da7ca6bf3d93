"""Sectors of loads: what a warp asks for, a result, where a thread runs several rows of several columns.

Elements that several results of a thread read count once.  Of a row of an array, elements that lie side by side from an
even place on are one access of two, and of a thread with four columns of four, if they begin at a multiple of four and
rows are as long.  An access takes the sectors of 32 threads that lie ``columns`` elements apart, whatever its width,
and one sector where all threads read the same element.  Loops of few constant trips are unrolled as
``unrolling.shared_loads`` does it; what a trip of another loop reads is no other trip's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from fractions import Fraction
from itertools import product
from math import prod

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.memory.block_memory import BlockMemory
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.analysis.values.scope import Scope
from metafork.ir.marks import phases
from metafork.ir.program import Array, Declare, For, If, Stmt
from metafork.unrolling.short_loops import is_unrolled, places_of
from metafork.unrolling.vectors import WARP, sectors_of_access

ONE, ALL = Fraction(1), Fraction(WARP)

Indices = tuple[Polynomial | None, ...]


def sectors_of_loads(memory: BlockMemory, loop: int, rows: int, columns: int) -> Fraction:
    """Return the sectors of a warp's loads in the text, a result: ``rows`` iterations of thread loop ``loop``.

    Of the innermost thread loop a thread runs ``columns`` iterations.
    """
    total = Fraction(0)
    for path in memory.paths:
        arrays = path.program.arrays if columns % 4 == 0 else ()
        fours = {one.name for one in arrays if _in_fours(one, Scope.of(memory.facts))}
        for number, phase in enumerate(phases(path.program)):
            unrolled = _unrolled(phase.body, rows * columns)
            counts = {phase.threads[loop].var: rows, phase.threads[-1].var: columns}
            reads = [one for one in path.references if one.reads and one.phase == number]
            total += _of_phase(reads, counts, unrolled, fours)
    return total / (rows * columns)


class _Line(Struct, frozen=True):
    """Elements of an array that differ in their places in a row alone.

    An access of a warp to one of them takes so many ``sectors``, and a thread makes it ``often`` times.
    """

    array: str
    sectors: Fraction
    often: int
    rest: tuple[Polynomial, ...]


def _of_phase(
    reads: Sequence[Reference], counts: Mapping[str, int], unrolled: frozenset[str], fours: Set[str]
) -> Fraction:
    """Return the sectors of what a thread reads in a phase; ``counts`` are those of its rows and of its columns.

    ``fours`` are the arrays of which an access may have four elements.
    """
    _, columns = counts.values()
    result, lines = Fraction(0), dict[_Line, set[int]]()
    for array, size, indices, loops in {(one.array, one.element.type.size, one.indices, one.loops) for one in reads}:
        trips, often = _trips(loops, unrolled)
        ranges = [*counts.values(), *trips.values()]
        steps = _steps(indices, (*counts, *trips))
        if steps is None:
            result += often * prod(ranges) * ALL
            continue
        across = [each[1] for each in steps]
        aside = across[-1] == 1 and not any(across[:-1])
        sectors = (sectors_of_access(columns * size) if aside else ALL) if any(across) else ONE
        for place in product(*map(range, ranges)):
            *others, last = (
                sum((step * k for step, k in zip(each, place, strict=True) if k), index)
                for index, each in zip(indices, steps, strict=True)
                if index is not None
            )
            constant = int(last.terms().get((), 0)) if aside else 0
            lines.setdefault(_Line(array, sectors, often, (*others, last - constant)), set()).add(constant)
    for line, places in lines.items():
        result += line.sectors * line.often * _accesses(places, (4, 2) if line.array in fours else (2,))
    return result


def _in_fours(array: Array, scope: Scope) -> bool:
    """Say whether rows of an array have a multiple of four elements of at most 4 bytes where parameters are such."""
    row = scope.polynomial(array.extents[-1])
    return array.element.size <= 4 and row is not None and int(row.terms().get((), 0)) % 4 == 0


def _accesses(places: Set[int], widths: Iterable[int]) -> int:
    """Return how many accesses elements at these places of a row take, of which some take several."""
    left, vectors = set(places), 0
    for width in widths:
        for first in sorted(one for one in left if one % width == 0):
            if (group := set(range(first, first + width))) <= left:
                left -= group
                vectors += 1
    return vectors + len(left)


def _trips(loops: Sequence[LoopRange], unrolled: frozenset[str]) -> tuple[dict[str, int], int]:
    """Return the trips of the loops of a thread that are unrolled, and how often the others run by a constant."""
    trips, often = dict[str, int](), 1
    for one in loops:
        if one.kind is LoopKind.SERIAL and one.trips is not None and one.trips.is_constant:
            count = max(0, int(one.trips.constant_value()))
            if one.var in unrolled:
                trips[one.var] = count
            else:
                often *= count
    return trips, often


def _steps(indices: Indices, variables: Sequence[str]) -> list[list[Polynomial]] | None:
    """Return by how much each index grows with each variable; ``None`` where that is not the same everywhere."""
    result = []
    for index in indices:
        if index is None:
            return None
        steps = [index.substitute({name: Polynomial.symbol(name) + 1}) - index for name in variables]
        if any(step.symbols & set(variables) for step in steps):
            return None
        result.append(steps)
    return result


def _unrolled(body: Sequence[Stmt], results: int) -> frozenset[str]:
    """Return the variables of the loops of a thread that are unrolled where so many results run side by side."""
    verdicts: dict[str, bool] = {}
    sum(_statements(stmt, results, verdicts) for stmt in body)
    return frozenset(name for name, unrolled in verdicts.items() if unrolled)


def _statements(stmt: Stmt, results: int, verdicts: dict[str, bool]) -> int:
    """Return how many statements stand for one where loops of few trips are unrolled; ``verdicts`` grows by loops."""
    match stmt:
        case For(init=Declare(name=name), body=body):
            inside = sum(_statements(one, results, verdicts) for one in body)
            places = places_of(stmt)
            fits = is_unrolled(places, inside * results)
            verdicts[name] = fits and verdicts.get(name, True)
            return len(places) * inside if fits else 1 + inside
        case If(then=then, otherwise=otherwise):
            return 1 + sum(_statements(one, results, verdicts) for one in (*then, *otherwise))
        case _:
            return 1
