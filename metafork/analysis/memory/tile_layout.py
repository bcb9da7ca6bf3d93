"""The layout of a tile in shared memory: the C expressions of ``metafork.ir.program.Layout``.

The column is combined by exclusive or with a number that depends on the row alone.  That is a permutation of the row
where a power of two above that number divides the number of columns; so the number is cut to the bits below the lowest
set bit of the number of columns (and to as many as banks differ by): the *mask*, which a kernel computes once.  The
layout is then right for every extent, needs neither padding nor a division, and changes nothing where the number of
columns is odd, when columns have no conflicts anyway.

Why the row's bits in reverse order: with ``columns = 2**p * odd``, the address of a row's start tells 32/2**p
neighbouring rows apart, by their lowest bits.  The higher bits of the row must do the rest, and the lowest of them
most coarsely, so that 4 rows of 8 columns find no two words in one bank either, nor 2 rows of 16.  So for all powers
of two: rows and columns are free of conflicts whatever the width of the block.  The row's own bits do for whole rows
and columns of 32 only.  Elements below four bytes are moved in whole words.

A window of one dimension is laid out as a tile of rows of 32 words: accesses with a constant even stride, as those to
an array of structures are, lose their conflicts in this way.  Let ``stride = 2**b * odd``.  All words of a warp agree
in their lowest b bits, and the 2**b of them that share a bank lie in rows that differ by multiples of ``odd``: the
lowest b bits of the row (``Layout.bits``), which are different for all of them, replace those that agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.mapping import Layout
from metafork.ir.names import fresh
from metafork.ir.program import Declare, Expr, IntConst, Stmt, Var, binary, unary

BANKS = 32
WORD = 4
"""Bytes of a word; bank ``b`` holds the words whose address is ``b`` modulo ``BANKS``."""


def unit_of(element: ScalarType) -> int:
    """Return how many elements move together: those of a word, at least one."""
    return max(1, WORD // element.size)


def places_of(element: ScalarType) -> int:
    """Return how many units there are before banks repeat: 32, or 16 for elements of two words."""
    return BANKS * WORD // (unit_of(element) * element.size)


def movable_bits(layout: Layout, element: ScalarType) -> int:
    """Return the bits of a column that the layout may change: they move elements between banks, in whole words."""
    return (min(places_of(element), 1 << layout.bits) - 1) * unit_of(element)


def mask_key(layout: Layout, columns: Expr, element: ScalarType) -> str:
    """Return the name under which ``symbols`` hold the mask of rows of that many columns (no name of C)."""
    return f"mask of {movable_bits(layout, element)} in {columns!r}"


def mask_of(layout: Layout, columns: Expr, element: ScalarType) -> Expr:
    """Return the mask: those movable bits that are below the lowest set bit of the columns."""
    movable = movable_bits(layout, element)
    if isinstance(columns, IntConst):
        return IntConst(~columns.value & (columns.value - 1) & movable)
    below = binary("&", unary("~", columns), binary("-", columns, IntConst(1)))
    return binary("&", below, IntConst(movable))


def declare_masks(
    tiles: Iterable[tuple[Layout, Expr, ScalarType]], symbols: dict[str, Expr], taken: set[str]
) -> list[Stmt]:
    """Declare the masks that (layout, columns, element type) need, and enter them in ``symbols``."""
    result: list[Stmt] = []
    for layout, columns, element in tiles:
        key = mask_key(layout, columns, element)
        if layout.turn == "none" or key in symbols:
            continue
        value = mask_of(layout, columns, element)
        if not isinstance(value, IntConst):
            name = fresh("row_mask", taken)
            result.append(Declare(name, value.type, value))
            value = Var(name, value.type)
        symbols[key] = value
    return result


def pitch_of(layout: Layout, columns: Expr) -> Expr:
    """Return the elements from one row of a tile to the next."""
    match layout.padding, columns:
        case 0, _:
            return columns
        case 1, IntConst(value=value):
            return IntConst(value | 1)
        case 1, _:
            return binary("|", columns, IntConst(1))
        case _:
            return binary("+", columns, IntConst(layout.padding))


def place_in_tile(
    layout: Layout, element: ScalarType, row: Expr, column: Expr, columns: Expr, symbols: Mapping[str, Expr]
) -> Expr:
    """Return the offset of (row, column) in a tile with that many columns, in elements.

    ``symbols`` hold the mask under ``mask_key`` where the layout turns rows.
    """
    if row == IntConst(0):
        return column
    base = binary("*", row, pitch_of(layout, columns))
    mask = symbols.get(mask_key(layout, columns, element), IntConst(0))
    if layout.turn == "none" or mask == IntConst(0):
        return binary("+", base, column)
    return binary("+", base, binary("^", column, _moved(layout, element, row, mask)))


def place_in_line(layout: Layout, element: ScalarType, index: Expr, extent: Expr, symbols: Mapping[str, Expr]) -> Expr:
    """Return the offset of an element of a window of one dimension: a tile whose rows are as long as there are banks.

    The last row may be shorter; the mask permutes it too, since it comes from the extent of the whole.
    """
    mask = symbols.get(mask_key(layout, extent, element), IntConst(0))
    if layout.turn == "none" or mask == IntConst(0):
        return index
    row = binary(">>", index, IntConst(line_shift(element)))
    return binary("^", index, _moved(layout, element, row, mask))


def line_shift(element: ScalarType) -> int:
    """Return the logarithm of the elements between two that share their bank."""
    return (places_of(element) * unit_of(element)).bit_length() - 1


def _moved(layout: Layout, element: ScalarType, row: Expr, mask: Expr) -> Expr:
    turn = row if layout.turn == "row" else _reversed(row, places_of(element))
    if unit_of(element) > 1:
        turn = binary("*", turn, IntConst(unit_of(element)))
    return binary("&", turn, mask)


def _reversed(row: Expr, places: int) -> Expr:
    """Return the low bits of a number in reverse order."""
    width = places.bit_length() - 1
    result: Expr | None = None
    for bit in range(width):
        distance = width - 1 - 2 * bit
        part: Expr = binary("&", row, IntConst(1 << bit))
        if distance:
            part = binary("<<" if distance > 0 else ">>", part, IntConst(abs(distance)))
        result = part if result is None else binary("|", result, part)
    assert result is not None
    return result
