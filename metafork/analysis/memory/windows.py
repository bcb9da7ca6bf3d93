"""Windows: what one block touches of each cached array, and where it is held (DESIGN section 4, ``shared_memory``).

With the grid variables and the outer serial variables fixed, each index of a reference is a polynomial, linear in the
loops that vary inside the block.  Its *window* in that dimension is the interval from the smallest value to the
largest, ``1 + sum |c_v| * (trips_v - 1)`` long; ``k*B + j`` with ``j < B`` and ``k < s`` gives ``s*B``.  References
that differ by constants share a window; others are merged where the common box is provably no larger than the sum, or
where they may overlap and one is written.  A one-dimensional array indexed as ``i*N + j`` is split into row and column
where ``0 <= j < N`` is proved.  What cannot be shown to be coherent is not cached, with the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, product
from math import gcd

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most, less_than
from metafork.algebra.prover import Prover
from metafork.algebra.ranges import bounds, extreme
from metafork.analysis.delinearization import VARYING, coordinates, split_factors
from metafork.analysis.memory.wrapped_windows import CannotUnwindError, Periods, unwound
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.analysis.values.scope import Scope
from metafork.ir.mapping import ROW_BY_ROW, Layout
from metafork.ir.program import Array, Program


class Interleaving(Struct, frozen=True):
    """Rows of ``trips*apart`` columns, ``together`` of the ``trips`` that a thread has side by side.

    ``metafork.analysis.memory.interleaving`` says where column ``w*apart + u`` is kept, and when.
    """

    apart: Polynomial
    trips: int
    together: int


class Window(Struct, frozen=True):
    """A box of one array, per block.

    Coordinate d of element e of the window is ``lows[d] + strides[d]*e`` with ``0 <= e < extents[d]`` (elements).
    ``lows`` may hold grid variables and the block-level loop symbols of ``level``; ``extents`` hold parameters only.
    ``factors`` are the extents of all coordinates but the first where a one-dimensional array was split, else empty.
    ``fixed`` are the ranges of the loop symbols that may occur in ``lows``.  ``layout`` says where elements stand, and
    ``kept`` where the columns of a row do that is not kept in order.  Coordinates of an axis with a period
    (``wrapped_windows``) are to be taken modulo it.
    """

    array: Array
    factors: tuple[Polynomial, ...]
    level: tuple[str, ...]
    lows: tuple[Polynomial, ...]
    extents: tuple[Polynomial, ...]
    strides: tuple[int, ...]
    references: tuple[Reference, ...]
    fixed: tuple[LoopRange, ...]
    layout: Layout = ROW_BY_ROW
    periods: Periods = ()
    kept: Interleaving | None = None

    @property
    def reads(self) -> bool:
        """Whether some reference reads through the window."""
        return any(reference.reads for reference in self.references)

    @property
    def writes(self) -> bool:
        """Whether some reference writes through the window."""
        return any(reference.writes for reference in self.references)

    @property
    def elements(self) -> Polynomial:
        """The number of elements of the box, padding included."""
        product = ONE
        for extent in self.extents[:-1]:
            product = product * extent
        return product * (self.extents[-1] + self.layout.padding)


class NotCacheableError(Exception):
    """An array cannot go through shared memory; the message is the reason for the report.

    ``access`` is the one at fault; ``loop`` names the variable of the loop whose range is not known, where that is why.
    """

    def __init__(self, reason: str, access: Reference, loop: str = "") -> None:
        super().__init__(reason)
        self.access = access
        self.loop = loop


def array_windows(
    program: Program, scope: Scope, prover: Prover, array: Array, references: Sequence[Reference]
) -> tuple[Window, ...]:
    """Return the windows of one array, given all references to it on one path of the program.

    Raises ``NotCacheableError`` with the reason where there is no coherent set of windows.
    """
    if not references:
        return ()
    for reference in references:
        if reference.atomic:
            raise NotCacheableError(f"threads of all blocks update {array.name} atomically", reference)
        if any(index is None for index in reference.indices):
            raise NotCacheableError(
                f"an index of {array.name} is no known polynomial in loop variables and parameters", reference
            )
    if array.endless:
        reason = f"it is not known how many elements {array.name} has, and a copy may not leave it"
        raise NotCacheableError(reason, references[0])
    turned = {reference.number for reference in references if reference.turns}
    try:
        references, periods = unwound(array, references, scope)
    except CannotUnwindError as error:
        raise NotCacheableError(str(error), error.access) from None
    factors = () if turned else split_factors(program, prover, array, references)
    windows = [_window(array, factors, prover, reference) for reference in references]
    boxes = _merge_boxes(_merge_shifted(windows), periods, scope, prover)
    boxes = [replace(box, extents=_never_negative(box, scope, prover)) for box in boxes]
    if not turned:
        return tuple(boxes)
    for box in boxes:
        wrapped = [reference for reference in box.references if reference.number in turned]
        if box.writes and wrapped:
            reason = (
                f"an index of {array.name} wraps at a border, and elements are written that are not proved to be others"
            )
            raise NotCacheableError(reason, wrapped[0])
    return tuple(box if box.writes else replace(box, periods=periods) for box in boxes)


def _never_negative(window: Window, scope: Scope, prover: Prover) -> tuple[Polynomial, ...]:
    """Return extents that are 0 where loops have so few iterations that they would be less."""
    return tuple(
        extent if prover.proves(at_most(ZERO, extent)) else scope.extremum("maximum", (ZERO, extent))
        for extent in window.extents
    )


def _window(array: Array, factors: tuple[Polynomial, ...], prover: Prover, reference: Reference) -> Window:
    """Return the window of one reference alone."""
    own = coordinates(reference, factors)
    occurring = {name for index in own for name in index.symbols}
    block_loops = [loop for loop in reference.loops if loop.kind is LoopKind.BLOCK]
    depth = max((i + 1 for i, loop in enumerate(block_loops) if loop.var in occurring), default=0)
    fixed = tuple(loop for loop in reference.loops if loop.kind is LoopKind.GRID) + tuple(block_loops[:depth])
    varying = [loop for loop in reference.loops if loop.kind in VARYING]
    # What nobody comes to, where a loop has no iterations, may lie outside.
    symbols = {loop.var for loop in reference.loops}
    counts = [loop.trips for loop in varying if loop.kind is LoopKind.SERIAL and loop.trips is not None]
    running = [at_most(ONE, trips) for trips in counts if not (trips.is_constant or trips.symbols & symbols)]
    prover = prover.with_premises(running) if running else prover
    intervals = [_interval(array, index, varying, reference, prover) for index in own]
    lows = [interval[0] for interval in intervals]
    extents = [interval[1] for interval in intervals]
    strides = [interval[2] for interval in intervals]
    level = tuple(loop.var for loop in block_loops[:depth])
    return Window(array, factors, level, tuple(lows), tuple(extents), tuple(strides), (reference,), fixed)


def _interval(
    array: Array, index: Polynomial, varying: Sequence[LoopRange], reference: Reference, prover: Prover
) -> tuple[Polynomial, Polynomial, int]:
    """Return the least value of an index over some loops, how many values lie up to the largest, and their distance."""
    loop_symbols = {loop.var for loop in reference.loops}
    low, span = index.without(loop.var for loop in varying), ZERO
    steps: list[Polynomial] = []
    unknown: LoopRange | None = None
    for loop in varying:
        step = index.coefficient(loop.var)
        if step is None or step.symbols & loop_symbols:
            raise NotCacheableError(f"an index of {array.name} is not linear in {loop.var}", reference)
        if not step:
            continue
        sign = prover.sign(step)
        trips = None if loop.trips is None else _widest(loop, reference.loops, prover)
        steps.append(step)
        if trips is None or sign is None:
            unknown = unknown or loop
            continue
        span = span + (trips - ONE) * step * sign
        if sign < 0:
            low = low + (trips - ONE) * step
    if low.symbols & {loop.var for loop in varying}:
        raise NotCacheableError(f"an index of {array.name} is not linear in the loops of a block", reference)
    # Where a loop's own bounds say more of the index than its range does, they are taken.
    found = None
    if unknown is not None or any(loop.inside and loop.var in index.symbols for loop in varying):
        found = _between(index, varying, reference, prover, None if unknown else (low, span))
    if found is not None:
        return found[0], found[1] + 1, 1
    if unknown is not None:
        raise NotCacheableError(
            f"the range of {unknown.var} in an index of {array.name} is not known",
            reference,
            unknown.var if unknown.trips is None else "",
        )
    stride = gcd(*(int(step.constant_value()) for step in steps)) if steps and _constant(steps) else 1
    return low, _exactly(span, stride) + 1, stride


def _between(
    index: Polynomial,
    varying: Sequence[LoopRange],
    reference: Reference,
    prover: Prover,
    known: tuple[Polynomial, Polynomial] | None,
) -> tuple[Polynomial, Polynomial] | None:
    """Return the least value of an index and its span as the conditions of loops say them, where that is less.

    ``known`` are both as the ranges of loops say them.
    """
    own = [constraint for loop in reference.loops for constraint in loop.inside]
    conditions = [*own, *(constraint for guard in reference.guards for constraint in guard.constraints)]
    slacks = [c.room for c in conditions if c.relation != "=="]
    slacks = [ZERO, *(slack for slack in slacks if slack.symbols & index.symbols)]
    # A slack is not negative: it may be taken away from the index on one side, and added to it on the other.
    least = [extreme(index - slack, varying, prover, largest=False) for slack in slacks]
    most = [extreme(index + slack, varying, prover, largest=True) for slack in slacks]
    best = known
    # A low end may hold what the index itself holds, so that it is known where the window is copied.
    changing = {loop.var for loop in reference.loops if loop.kind is not LoopKind.GRID} - index.symbols
    for low, high in product(least, most):
        if low is not None and high is not None and not low.symbols & changing:
            span = extreme(high - low, reference.loops, prover, largest=True)
            if span is not None and (best is None or (span != best[1] and prover.proves(at_most(span, best[1])))):
                best = low, span
    return None if best == known else best


def _constant(steps: Sequence[Polynomial]) -> bool:
    return all(step.is_constant and step.constant_value().denominator == 1 for step in steps)


def _exactly(value: Polynomial, divisor: int) -> Polynomial:
    quotient = value.divide_exactly(Polynomial.constant(divisor))
    assert quotient is not None
    return quotient


def _widest(loop: LoopRange, loops: Sequence[LoopRange], prover: Prover) -> Polynomial | None:
    """Return the largest trip count of a loop over all values of the loops around it."""
    assert loop.trips is not None
    return extreme(loop.trips, [other for other in loops if other.var != loop.var], prover, largest=True)


def _merge_shifted(windows: Sequence[Window]) -> list[Window]:
    """Merge windows that are the same up to constant shifts; keep a common stride where the shifts allow it."""
    groups: dict[object, list[Window]] = defaultdict(list)
    for window in windows:
        key = (window.level, window.extents, window.strides, tuple(low - _constant_part(low) for low in window.lows))
        groups[key].append(window)
    merged: list[Window] = []
    for group in groups.values():
        first = group[0]
        lows: list[Polynomial] = []
        extents: list[Polynomial] = []
        strides: list[int] = []
        for axis in range(len(first.lows)):
            shifts = [int(_constant_part(window.lows[axis])) for window in group]
            least, most = min(shifts), max(shifts)
            old, stride = first.strides[axis], gcd(first.strides[axis], *(shift - least for shift in shifts))
            lows.append(first.lows[axis] - shifts[0] + least)
            extents.append((first.extents[axis] - 1) * (old // stride) + (most - least) // stride + 1)
            strides.append(stride)
        references = tuple(reference for window in group for reference in window.references)
        merged.append(replace(first, lows=tuple(lows), extents=tuple(extents), strides=tuple(strides),
                              references=references))  # fmt: skip
    return merged


def _constant_part(value: Polynomial) -> int:
    return int(value.terms().get((), 0))


def _merge_boxes(windows: list[Window], periods: Periods, scope: Scope, prover: Prover) -> list[Window]:
    """Merge what must share a copy, and what is no larger together; refuse copies that would be incoherent."""
    axes = [axis for axis in range(len(windows[0].lows)) if not (axis < len(periods) and periods[axis] is not None)]
    while True:
        for first, second in combinations(windows, 2):
            must = (first.writes or second.writes) and not _disjoint(first, second, axes, prover)
            box = _box(first, second, scope, prover)
            if box is None:
                if must:
                    raise NotCacheableError(
                        f"two windows of {first.array.name} may overlap, one of them is written, "
                        "and no common box is known",
                        second.references[0],
                    )
                continue
            smaller = prover.proves(at_most(box.elements, first.elements + second.elements))
            if must or smaller:
                windows = [window for window in windows if window is not first and window is not second] + [box]
                break
        else:
            return windows


def _box(first: Window, second: Window, scope: Scope, prover: Prover) -> Window | None:
    """Return the smallest box that is known to hold both windows, ``None`` where there is none."""
    if first.level != second.level:
        return None
    loops = {loop.var for loop in (*first.fixed, *second.fixed)}
    lows: list[Polynomial] = []
    extents: list[Polynomial] = []
    for axis in range(len(first.lows)):
        distance = second.lows[axis] - first.lows[axis]
        sign = None if distance.symbols & loops else prover.sign(distance)
        if sign is None:
            return None
        low = first.lows[axis] if sign >= 0 else second.lows[axis]
        ends = [
            window.lows[axis] - low + (window.extents[axis] - 1) * window.strides[axis] + 1
            for window in (first, second)
        ]
        larger = prover.sign(ends[0] - ends[1])
        if larger is None and not (ends[0].symbols | ends[1].symbols) <= scope.constants:
            return None
        extent = scope.extremum("maximum", tuple(ends)) if larger is None else ends[0 if larger >= 0 else 1]
        lows.append(low)
        extents.append(extent)
    fixed = first.fixed if len(first.fixed) >= len(second.fixed) else second.fixed
    return Window(
        first.array, first.factors, first.level, tuple(lows), tuple(extents), (1,) * len(lows),
        first.references + second.references, fixed,
    )  # fmt: skip


def _disjoint(first: Window, second: Window, axes: Sequence[int], prover: Prover) -> bool:
    """Say whether the windows are proved to have no element in common, by their coordinates along some axes."""
    fixed = tuple(dict.fromkeys((*first.fixed, *second.fixed)))
    for axis in axes:
        for left, right in ((first, second), (second, first)):
            last = left.lows[axis] + (left.extents[axis] - 1) * left.strides[axis]
            gaps = bounds(last - right.lows[axis], fixed, prover, largest=True)
            if any(prover.proves(less_than(gap, 0)) for gap in gaps):
                return True
        if _never_meet(first, second, axis):
            return True
    return False


def _never_meet(first: Window, second: Window, axis: int) -> bool:
    """Say whether a remainder keeps coordinates apart: ``2 * i`` and ``2 * i + 1``, ``now`` and ``1 - now``."""
    distance = second.lows[axis] - first.lows[axis]
    rest = _constant_part(distance)
    strides = [one.strides[axis] for one in (first, second) if one.extents[axis] != ONE]
    coefficients = (distance - rest).terms().values()
    if any(step.denominator != 1 for step in distance.terms().values()):
        return False
    divisor = gcd(*(int(step) for step in coefficients), *strides)
    return divisor > 1 and rest % divisor != 0
