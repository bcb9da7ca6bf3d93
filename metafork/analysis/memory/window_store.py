"""How the elements that a block wrote in a window reach global memory: exactly those, under the guards of the writes.

``COPY``: after the last phase all threads copy the written elements back together, in the order of memory.  This needs,
for every writing reference, the way back from an element to the iteration that wrote it: its loops must tile the
window without gaps or overlap (a mixed radix), every other loop must run at least once, and its guards must be
polynomial conditions on what the element determines.  ``THROUGH``: the writing thread also writes to global memory at
once; right for every program, at the price of an uncoalesced store.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from metafork.algebra.polynomial import ONE, Constraint, Polynomial, at_most, equal
from metafork.algebra.prover import Prover
from metafork.analysis.delinearization import coordinates
from metafork.analysis.memory.windows import Window
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopRange, all_run


class Store(Enum):
    """How writes through a window reach global memory."""

    NONE = "none"
    COPY = "copy"
    THROUGH = "through"


class Digit(Struct, frozen=True):
    """One loop symbol of a mixed radix: ``symbol = (offset / weight) % trips`` (the highest digit needs no ``%``)."""

    symbol: str
    weight: Polynomial
    trips: Polynomial


class WrittenBox(Struct, frozen=True):
    """The elements that one reference writes: a box, the digits of each coordinate, and the guards.

    Coordinate d runs over ``lows[d] + scales[d]*e`` for ``0 <= e < extents[d]``.
    """

    lows: tuple[Polynomial, ...]
    scales: tuple[int, ...]
    extents: tuple[Polynomial, ...]
    digits: tuple[tuple[Digit, ...], ...]
    guards: tuple[Constraint, ...]


def written_boxes(window: Window, prover: Prover) -> tuple[WrittenBox, ...] | None:
    """Return what each writing reference writes, or ``None`` where that is not known exactly."""
    boxes: list[WrittenBox] = []
    doubtful: list[WrittenBox] = []
    for reference in window.references:
        if reference.writes:
            found = _written_box(window, reference, prover)
            if found is None:
                return None
            box, sure = found
            if box not in boxes:
                (boxes if sure else doubtful).append(box)
    # What a loop without iterations may leave out is written by another reference all the same.
    return tuple(boxes) if all(box in boxes for box in doubtful) else None


def _written_box(window: Window, reference: Reference, prover: Prover) -> tuple[WrittenBox, bool] | None:
    """Return what a reference writes where each of its loops has iterations, and whether they are known to have some.

    Loops that say which elements it writes must have some.
    """
    if not reference.bounded or not all(one.meaning.conjunction is not None for one in reference.guards):
        return None
    fixed = {loop.var for loop in window.fixed}
    varying = [loop for loop in reference.loops if loop.var not in fixed]
    loop_symbols = {loop.var for loop in reference.loops}
    if any(loop.trips is None or not loop.dense or loop.trips.symbols & loop_symbols for loop in varying):
        return None
    if any(loop.inside and not (loop.step == ONE or loop.step == -ONE) for loop in varying):
        return None  # its trip count may be much too large, and the copy would walk all of it
    lows: list[Polynomial] = []
    scales: list[int] = []
    extents: list[Polynomial] = []
    digits: list[tuple[Digit, ...]] = []
    used: set[str] = set()
    for axis, index in enumerate(coordinates(reference, window.factors)):
        found = _digits(index, varying, window.strides[axis], prover)
        if found is None or used & {digit.symbol for digit in found[0]}:
            return None
        tiles, scale, extent = found
        used |= {digit.symbol for digit in tiles}
        lows.append(index.without(loop.var for loop in varying))
        scales.append(scale)
        extents.append(extent)
        digits.append(tiles)
    if not all(prover.proves(at_most(ONE, digit.trips)) for axis in digits for digit in axis):
        return None
    sure = all_run([loop for loop in varying if loop.var not in used], prover)
    guards = tuple(constraint for loop in varying for constraint in loop.inside)
    guards += tuple(constraint for guard in reference.guards for constraint in guard.constraints)
    unknown = {loop.var for loop in varying} - used
    if any(constraint.symbols & unknown for constraint in guards):
        return None
    return WrittenBox(tuple(lows), tuple(scales), tuple(extents), tuple(digits), guards), sure


def _digits(
    index: Polynomial, varying: Sequence[LoopRange], stride: int, prover: Prover
) -> tuple[tuple[Digit, ...], int, Polynomial] | None:
    """Return the mixed radix of one coordinate (lowest digit first), its scale and extent; ``None`` where none fits."""
    steps = {loop.var: index.coefficient(loop.var) for loop in varying}
    occurring = [loop for loop in varying if steps[loop.var] != 0]
    if not occurring:
        return (), 1, ONE
    scale = Polynomial.constant(stride)
    weight = ONE
    digits: list[Digit] = []
    while occurring:
        for loop in occurring:
            step = steps[loop.var]
            if step is not None and prover.proves(equal(step, weight * scale)):
                break
        else:
            return None
        assert loop.trips is not None
        digits.append(Digit(loop.var, weight, loop.trips))
        weight = weight * loop.trips
        occurring.remove(loop)
    return tuple(digits), stride, weight
