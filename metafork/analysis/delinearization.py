"""Delinearization: an index ``i*n + j`` is column j of row i of an array of rows, where ``0 <= j < n`` is proved.

Where an index runs backwards, what is left of a division by the length of a row may be a row too low:
``(n - 1 - y)*m + x`` is column ``x`` of row ``n - 1 - y``, and ``y*m + (m - 1 - x)``, that is ``(y + 1)*m - 1 - x``, is
column ``m - 1 - x`` of row ``y``.  Such splits, and rows of a computed length, are for proofs alone
(``row_factors``); memory is laid out by those that run forwards, by lengths that are parameters
(``split_factors``).  Of several indices the first one is split.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from math import gcd

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most, less_than
from metafork.algebra.prover import Prover
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.analysis.values.opaque import OpaqueSymbols
from metafork.ir.program import Array, ParameterKind, Program

VARYING = (LoopKind.THREAD, LoopKind.SERIAL)
"""The loops that vary within a block, whatever its serial loops are at."""
Factors = tuple[Polynomial, ...]
"""The extents of all coordinates but the first, outermost first."""
_ROWS_OFF = (ZERO, ONE, -ONE)
NO_SYMBOLS = OpaqueSymbols()


def coordinates(reference: Reference, factors: Sequence[Polynomial]) -> tuple[Polynomial, ...]:
    """Return the indices of a reference, a linear one split by ``factors`` (outermost first)."""
    indices = tuple(index for index in reference.indices if index is not None)
    if not factors:
        return indices
    rest = indices[0]
    found: list[Polynomial] = []
    for factor in reversed(factors):
        rest, column = rest.divide(factor)
        found.insert(0, column)
    return (rest, *found)


def split_factors(program: Program, prover: Prover, array: Array, references: Sequence[Reference]) -> Factors:
    """Return the factors by which a linear index is split into coordinates, as far as each split is proved.

    What the index grows by in the loops of threads and inside them is tried.
    """
    data = {parameter.name for parameter in program.parameters if parameter.kind is ParameterKind.DATA}
    if len(array.extents) != 1 or not data:
        return ()
    return _factors(
        {step for step in _index_steps(references, VARYING) if step.symbols & data},
        lambda factor: bool(factor.symbols & data),
        lambda factors: all(row_coordinates(prover, one, factors, off_by=(ZERO,)) for one in references),
    )


def row_factors(prover: Prover, references: Sequence[Reference], opaque: OpaqueSymbols) -> Factors:
    """Return the factors (outermost first) by which all first indices are split, as far as each split is proved."""
    loops = {loop.var for reference in references for loop in reference.loops}
    grows = {step for step in _index_steps(references, tuple(LoopKind)) if not step.symbols & loops}
    # The column of row i may have i in it too: i*n + (i + c)%2 + 2*h grows by n + 1.
    terms = {Polynomial({mono: factor}) for step in grows for mono, factor in step.terms().items()}
    steps = {step for step in grows | terms if step.symbols}
    steps |= {_primitive(step) for step in steps}  # 2*h*g + h + k is column k of row 2*g + 1
    return _factors(
        steps | {-step for step in steps},
        lambda factor: bool(factor.symbols),
        lambda factors: all(row_coordinates(prover, one, factors, opaque) for one in references),
    )


def _factors(
    lengths: Iterable[Polynomial], fits: Callable[[Polynomial], bool], proved: Callable[[Factors], bool]
) -> Factors:
    """Return the factors whose products are some of the lengths, the shorter ones tried first."""
    factors: Factors = ()
    product = ONE
    for length in sorted(lengths, key=lambda one: (one.degree, one.text())):
        factor = length.divide_exactly(product)
        if factor is not None and fits(factor) and proved((factor, *factors)):
            factors, product = (factor, *factors), product * factor
    return factors


def _index_steps(references: Iterable[Reference], kinds: Collection[LoopKind]) -> Iterator[Polynomial]:
    """Yield what linear indices grow by in each loop of some kinds."""
    for reference in references:
        index = reference.indices[0]
        assert index is not None
        for loop in reference.loops:
            step = index.coefficient(loop.var) if loop.kind in kinds else None
            if step:
                yield step


def _primitive(value: Polynomial) -> Polynomial:
    """Return a polynomial without the integer that divides all its coefficients."""
    return value * Fraction(1, gcd(*map(int, value.coefficients.values()))) if value.whole else value


def row_coordinates(
    prover: Prover,
    reference: Reference,
    factors: Factors,
    opaque: OpaqueSymbols = NO_SYMBOLS,
    off_by: Sequence[Polynomial] = _ROWS_OFF,
) -> tuple[Polynomial | None, ...] | None:
    """Return the coordinates of a linear index, ``None`` where a column is not proved to lie within its row.

    They stand in front of the other indices.  The rows of a division are ``off_by`` one of some numbers.
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
        turning = (one for one in behind if one.kind == "quotient" and one.operands[1] == factor)
        wrapped = (Polynomial.symbol(one.symbols[0]) for one in turning)
        for off in (off - turns for turns in (ZERO, *wrapped) for off in off_by):
            moved = column + factor * off
            if all(prover.derives_within(moved, factor, reference.loops)) or inside.shows(
                (at_most(0, moved), less_than(moved, factor))
            ):
                rest = row - off
                columns.insert(0, moved)
                break
        else:
            return None
    return (rest, *columns, *reference.indices[1:])
