"""Extrema of polynomials over loop ranges: what an index can reach while some loops run.

A polynomial that is linear in a loop symbol takes its extrema at the ends of the symbol's range; loops are eliminated
from the innermost outwards, so that a range may depend on outer symbols.
"""

from __future__ import annotations

from collections.abc import Sequence

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most, less_than
from metafork.algebra.prover import Prover
from metafork.analysis.loop_ranges import LoopRange


def extreme(value: Polynomial, loops: Sequence[LoopRange], prover: Prover, *, largest: bool) -> Polynomial | None:
    """Return the largest (or smallest) value over ``loops`` (outermost first) as a polynomial in the other symbols.

    ``None`` where it is not linear in a loop symbol, a trip count is not known, or the sign of a coefficient is not
    proved from the prover's premises.
    """
    for loop in reversed(loops):
        factor = value.coefficient(loop.var)
        if factor is None:
            return None
        if not factor:
            continue
        sign = prover.sign(factor)
        if sign is None:
            return None
        if (sign > 0) == largest:
            if loop.trips is None:
                return None
            end = loop.trips - ONE
        else:
            end = ZERO
        value = value.substitute({loop.var: end})
    return value


def stays_within(
    value: Polynomial, extent: Polynomial, loops: Sequence[LoopRange], prover: Prover, *, cheaply: bool = False
) -> tuple[bool, bool]:
    """Say whether ``0 <= value`` and whether ``value < extent`` are proved for all values of the loop symbols.

    With ``cheaply`` only by certificates; for questions whose answer saves some work and decides nothing.
    """
    shows = prover.certifies if cheaply else prover.proves
    lowest = extreme(value, loops, prover, largest=False)
    highest = extreme(value - extent, loops, prover, largest=True)
    return (
        lowest is not None and bool(shows(at_most(0, lowest))),
        highest is not None and bool(shows(less_than(highest, 0))),
    )
