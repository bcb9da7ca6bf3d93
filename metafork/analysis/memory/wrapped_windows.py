"""Indices that wrap at a border, for windows: where the array goes on for ever, ``x[(p + 1) % n]`` is ``x[p + 1]``.

An array along an axis of which some index is ``value mod period`` with the axis' extent for a period is taken as
repeated along that axis without end: an access then has the coordinate ``value``, less as many periods as leave a small
constant, and any other access keeps the coordinate that it has.  A window is a box of these coordinates; its copy takes
them modulo the period.  An element may have several copies then, so that what is written must lie in other windows,
apart along another axis: ``u[1 - now][p] = u[now][(p + 1) % n]``.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.references import Reference
from metafork.analysis.values.scope import Scope
from metafork.ir.program import Array

Periods = tuple[Polynomial | None, ...]
"""Of each axis the period of its coordinates, ``None`` where they have none."""


class CannotUnwindError(Exception):
    """An array with wrapped indices is not repeated; the message is the reason, ``access`` the one at fault."""

    def __init__(self, reason: str, access: Reference) -> None:
        super().__init__(reason)
        self.access = access


def unwound(array: Array, references: Sequence[Reference], scope: Scope) -> tuple[tuple[Reference, ...], Periods]:
    """Return the accesses to an array in coordinates without end, and their periods; raises ``CannotUnwindError``."""
    periods: list[Polynomial | None] = [None] * len(array.extents)
    for reference in references:
        for axis, turn in reference.turns:
            if reference.writes:
                reason = f"an index of {array.name} wraps at a border where elements are written"
                raise CannotUnwindError(reason, reference)
            periods[axis] = -turn.step
            if periods[axis] != scope.polynomial(array.extents[axis]):
                reason = f"an index of {array.name} wraps at another border than that of the array"
                raise CannotUnwindError(reason, reference)
    return tuple(_without_turns(reference) for reference in references), tuple(periods)


def _without_turns(reference: Reference) -> Reference:
    if not reference.turns:
        return reference
    indices = list(reference.indices)
    for axis, turn in reference.turns:
        whole, rest = turn.low.divide(-turn.step)
        indices[axis] = rest if whole.is_constant and whole.constant_value().denominator == 1 else turn.low
    loops = reference.loops[: len(reference.loops) - len(reference.turns)]
    return replace(reference, indices=tuple(indices), loops=loops, wrapped=())
