"""Coordinates of linear indices that run backwards, or in rows of a computed length; of several indices, the first.

``(n - 1 - y)*m + x`` is column ``x`` of row ``n - 1 - y``, and ``y*m + (m - 1 - x)``, that is ``(y + 1)*m - 1 - x``, is
column ``m - 1 - x`` of row ``y``: what is left of a division by the length of a row may be a row too low.  For windows,
``metafork.analysis.memory.windows`` splits what runs forwards, by lengths that are parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most, less_than
from metafork.algebra.prover import Prover
from metafork.analysis.memory.windows import index_steps
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.analysis.values.opaque import OpaqueSymbols

_ROWS_OFF = (ZERO, ONE, -ONE)


def mirrored_factors(prover: Prover, references: Sequence[Reference], opaque: OpaqueSymbols) -> tuple[Polynomial, ...]:
    """Return the factors (outermost first) by which all first indices are split, as far as each split is proved."""
    loops = {loop.var for reference in references for loop in reference.loops}
    grows = {step for step in index_steps(references, tuple(LoopKind)) if not step.symbols & loops}
    # The column of row i may have i in it too: i*n + (i + c)%2 + 2*h grows by n + 1.
    terms = {Polynomial({mono: factor}) for step in grows for mono, factor in step.terms().items()}
    steps = {step for step in grows | terms if step.symbols}
    steps |= {primitive(step) for step in steps}  # 2*h*g + h + k is column k of row 2*g + 1
    lengths = steps | {-step for step in steps}
    factors: tuple[Polynomial, ...] = ()
    product = ONE
    for length in sorted(lengths, key=lambda p: (max(sum(e for _, e in m) for m in p.terms()), p.text())):
        factor = length.divide_exactly(product)
        if factor is None or not factor.symbols:
            continue
        if all(mirrored_coordinates(prover, reference, (factor, *factors), opaque) for reference in references):
            factors, product = (factor, *factors), product * factor
    return factors


def primitive(value: Polynomial) -> Polynomial:
    """Return a polynomial without the integer that divides all its coefficients."""
    return value * Fraction(1, gcd(*map(int, value.coefficients.values()))) if value.whole else value


def mirrored_coordinates(
    prover: Prover, reference: Reference, factors: Sequence[Polynomial], opaque: OpaqueSymbols
) -> tuple[Polynomial | None, ...] | None:
    """Return the coordinates of a linear index, ``None`` where a column is not proved to lie within its row.

    They stand in front of the other indices.
    """
    rest, columns = reference.indices[0], list[Polynomial]()
    assert rest is not None
    behind = opaque.behind(rest.symbols)
    known = (constraint for one in behind for constraint in one.constraints)
    inside = prover.with_premises((*reference.constraints(), *known))
    for factor in reversed(factors):
        row, column = rest.divide(factor)
        if not (row.whole and column.whole):
            return None
        wrapped = (Polynomial.symbol(one.symbols[0]) for one in behind if one.divisor == factor)
        for off in (off - turns for turns in (ZERO, *wrapped) for off in _ROWS_OFF):
            moved = column + factor * off
            if inside.proves((at_most(0, moved), less_than(moved, factor))):
                rest = row - off
                columns.insert(0, moved)
                break
        else:
            return None
    return (rest, *columns, *reference.indices[1:])
