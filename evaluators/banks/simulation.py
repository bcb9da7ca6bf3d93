"""The bank degree of one access to shared memory: proved for every block shape, or simulated for the listed ones.

Shared memory has 32 banks of one word.  The accesses of a warp to different words of one bank are served one after the
other; the *bank degree* is the largest number of different words asked of one bank.  Elements of two words are served
half a warp at a time.  A wave of 64 threads is served half by half too, so that a warp here is always 32.

*Listed shapes*: parameters that the block's extents depend on take the values ``BLOCK_EXTENTS``, other program
parameters ``FACTORS``, data parameters ``DATA_EXTENTS``; points with more than 1024 threads, and points at which an
assertion or another fact of the program fails, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import assert_never

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from metafork.algebra.polynomial import ZERO, Constraint, Polynomial
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.memory.tile_layout import BANKS, WORD, line_shift, movable_bits, places_of, unit_of
from metafork.analysis.values.loop_ranges import LoopRange
from metafork.analysis.values.scope import Facts
from metafork.evaluators.banks.shared_accesses import COLUMN, ROW, THREADS, SharedAccess
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.mapping import Layout
from metafork.ir.program import ParameterKind, Program

WARP = 32
THREAD_LIMIT = 1024
BLOCK_EXTENTS = (8, 16, 32, 64)
SAMPLED = f"the largest found where blocks extend to {', '.join(map(str, BLOCK_EXTENTS))}; others may have another"
"""What is to be said of a degree that is not proved of every block shape."""
FACTORS = (1, 2, 3, 4)
DATA_EXTENTS = (32, 96, 100)
POINT_LIMIT = 4096
SAMPLES = 4
"""Values taken of each loop symbol around an access, besides the last of its range."""

Integers = NDArray[np.int64]
Value = int | Integers


class UnknownDegreeError(Exception):
    """The degree of an access is neither proved nor can it be simulated; the message says why."""


class Listed(Struct, frozen=True):
    """What the listed shapes of a program are made of."""

    program: Program
    facts: Facts
    derived: tuple[DerivedSymbol, ...]

    def points(self, access: SharedAccess, layout: Layout) -> Iterator[Mapping[str, int]]:
        """Yield values of every parameter and derived symbol that an access depends on."""
        bound = {*THREADS, ROW, COLUMN, *(loop.var for loop in access.loops)}
        symbols = {name for value in access.polynomials(layout) for name in value.symbols} - bound
        shaping = self._parameters({name for extent in access.block for name in extent.symbols})
        needed = self._parameters(symbols)
        data = {p.name for p in self.program.parameters if p.kind is ParameterKind.DATA}
        ranges = [
            BLOCK_EXTENTS if name in shaping else DATA_EXTENTS if name in data else FACTORS for name in sorted(needed)
        ]
        if np.prod([len(values) for values in ranges], dtype=np.float64) > POINT_LIMIT:
            raise UnknownDegreeError(f"an access to {access.array} depends on too many parameters")
        for values in product(*ranges):
            point = dict(zip(sorted(needed), values, strict=True))
            if self._complete(point) and self._possible(point):
                yield point

    def _parameters(self, symbols: Iterable[str]) -> set[str]:
        """Return the parameters that symbols depend on, derived ones through their definitions."""
        definitions = {symbol.name: symbol for symbol in self.derived}
        names = {parameter.name for parameter in self.program.parameters}
        found: set[str] = set()
        pending = list(symbols)
        while pending:
            name = pending.pop()
            if name in definitions:
                pending += [other for operand in definitions[name].operands for other in operand.symbols]
            elif name in names:
                found.add(name)
            else:
                raise UnknownDegreeError(f"{name} is no known function of the parameters")
        return found

    def _complete(self, point: dict[str, int]) -> bool:
        """Add the derived symbols that a point decides; say whether all of them have a value."""
        for symbol in self.derived:
            if all(operand.symbols <= point.keys() for operand in symbol.operands):
                try:
                    point[symbol.name] = symbol.evaluate(point)
                except ZeroDivisionError:
                    return False
        return True

    def _possible(self, point: Mapping[str, int]) -> bool:
        return all(fact.holds(point) for fact in self.facts.constraints if fact.symbols <= point.keys())


def access_degree(access: SharedAccess, layout: Layout, listed: Listed) -> int:
    """Return the bank degree of an access under a layout: for every shape where proved, else over the listed shapes.

    Raises ``UnknownDegreeError``.
    """
    if without_conflict(access, layout):
        return 1
    worst = 0
    tried = False
    for point in listed.points(access, layout):
        block = [int(extent.evaluate(point)) for extent in access.block]
        if not 0 < np.prod(block) <= THREAD_LIMIT:
            continue
        tried = True
        worst = max(worst, _degree_at(access, layout, point, block))
        if worst == BANKS:
            break
    if not tried:
        raise UnknownDegreeError(f"no listed block shape is one for the accesses to {access.array}")
    return worst


def without_conflict(access: SharedAccess, layout: Layout) -> bool:
    """Say whether the threads of a warp touch one element together, or consecutive ones, whatever the shape."""
    if layout.turn != "none":
        return False
    pitch = Polynomial.symbol("pitch ") if layout.padding == 1 else access.columns + layout.padding
    address = access.row * pitch + access.column
    if access.walk is not None:
        along, down = address.coefficient(COLUMN), address.coefficient(ROW)
        if along is None or down is None or down != along * access.walk.length:
            return False
        address = address.without((ROW, COLUMN)) + along * access.walk.place
    steps = [address.coefficient(name) for name in THREADS[: len(access.block)]]
    if all(step == ZERO for step in steps):
        return True
    weight = Polynomial.constant(1)
    for step, extent in zip(steps, access.block, strict=True):
        if step != weight:
            return False
        weight = weight * extent
    return True


def _degree_at(access: SharedAccess, layout: Layout, point: Mapping[str, int], block: Sequence[int]) -> int:
    count = int(np.prod(block))
    number = np.arange(-(-count // WARP) * WARP, dtype=np.int64)
    active: NDArray[np.bool_] = number < count
    values: dict[str, Value] = dict(point)
    rest = number
    for name, size, work in zip(THREADS, block, access.threads, strict=False):
        values[name] = rest % size
        rest = rest // size
        if work is not None and work.symbols <= values.keys():
            active = active & np.asarray(values[name] < _value(work, values))
    sampled, there = _sampled(access.loops, values, SAMPLES if layout.turn != "none" else 2)
    if access.walk is not None:
        place, length = _value(access.walk.place, sampled), _value(access.walk.length, sampled)
        sampled = {**sampled, ROW: place // length, COLUMN: place % length}
    return _warps_degree(access, layout, sampled, active & there)


def _sampled(
    loops: Sequence[LoopRange], values: Mapping[str, Value], size: int
) -> tuple[Mapping[str, Value], NDArray[np.bool_]]:
    """Return few values of each loop symbol around an access, all combinations along a first axis, and which occur."""
    sets: list[Sequence[int]] = []
    for loop in loops:
        samples = set(range(size))
        if loop.trips is not None and loop.trips.symbols <= values.keys():
            trips = _value(loop.trips, values)
            if isinstance(trips, int):
                samples = {value for value in (*samples, trips - 1) if 0 <= value < trips}
        sets.append(sorted(samples))
    rows = list(product(*sets))
    result = dict(values)
    there = np.ones((len(rows), 1), dtype=np.bool_)
    for axis, loop in enumerate(loops):
        own = np.array([row[axis] for row in rows], dtype=np.int64).reshape(-1, 1)
        if loop.trips is not None and loop.trips.symbols <= result.keys():
            there = there & np.asarray(own < _value(loop.trips, result))
        result[loop.var] = own
    return result, there


def _warps_degree(access: SharedAccess, layout: Layout, values: Mapping[str, Value], active: NDArray[np.bool_]) -> int:
    for condition in access.conditions:
        if condition.symbols <= values.keys():
            active = active & _holds(condition, values)
    if not active.any():
        return 0
    column = np.broadcast_to(_value(access.column, values), active.shape)
    place: Integers = column
    if not access.line or layout.turn != "none":
        row = np.broadcast_to(_value(access.row, values), active.shape)
        columns = _value(access.columns, values)
        assert isinstance(columns, int)
        place = addresses(layout, access.element, row, column, columns, line=access.line)
    if access.element.size <= WORD:
        return worst_degree((place * access.element.size // WORD).reshape(-1, WARP), active.reshape(-1, WARP), BANKS)
    half = WARP // 2
    return worst_degree(place.reshape(-1, half), active.reshape(-1, half), BANKS // 2)


def addresses(
    layout: Layout, element: ScalarType, row: Integers, column: Integers, columns: int, *, line: bool = False
) -> Integers:
    """Return where elements stand, in elements (``metafork.analysis.memory.tile_layout`` writes the same in C)."""
    base = row * (columns | 1 if layout.padding == 1 else columns + layout.padding)
    unit, places = unit_of(element), places_of(element)
    if line:
        row = column >> line_shift(element)
    match layout.turn:
        case "none":
            return base + column
        case "row":
            turn = row
        case "reversed":
            turn = np.zeros_like(row)
            width = places.bit_length() - 1
            for bit in range(width):
                turn = turn | ((row >> bit & 1) << (width - 1 - bit))
        case _:
            assert_never(layout.turn)
    mask = ~columns & (columns - 1) & movable_bits(layout, element)
    return base + (column ^ turn * unit & mask)


def worst_degree(words: Integers, active: NDArray[np.bool_], banks: int) -> int:
    """Return the largest bank degree of several accesses, one a row; threads that are not active ask for nothing."""
    order = np.where(active, words, np.iinfo(np.int64).max)
    order = np.sort(order, axis=1)
    first = np.ones_like(active)
    first[:, 1:] = order[:, 1:] != order[:, :-1]
    first &= order != np.iinfo(np.int64).max
    rows = np.broadcast_to(np.arange(len(words))[:, None], words.shape)
    asked = np.bincount((rows * banks + order % banks)[first], minlength=1)
    return int(asked.max())


def _holds(condition: Constraint, values: Mapping[str, Value]) -> NDArray[np.bool_]:
    left, right = _value(condition.left, values), _value(condition.right, values)
    match condition.relation:
        case "<=":
            return np.asarray(left <= right)
        case "<":
            return np.asarray(left < right)
        case "==":
            return np.asarray(left == right)
        case _:
            assert_never(condition.relation)


def _value(polynomial: Polynomial, values: Mapping[str, Value]) -> Value:
    """Return the value of a polynomial with integer values, for all threads at once; scaled to integers on the way."""
    terms = polynomial.terms()
    scale = int(np.lcm.reduce([1, *(coefficient.denominator for coefficient in terms.values())]))
    total: Value = 0
    for mono, coefficient in terms.items():
        term: Value = int(coefficient * scale)
        for name, exponent in mono:
            term = term * values[name] ** exponent
        total = total + term
    return total // scale
