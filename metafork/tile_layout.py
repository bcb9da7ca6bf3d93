"""The layout of a tile in shared memory: the C expressions of ``metafork.ir.Layout``.

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
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from metafork.ir import Declare, Expr, IntConst, Layout, Stmt, Var, binary, unary
from metafork.names import fresh
from metafork.types import ScalarType

BANKS = 32
WORD = 4
"""Bytes of a word; bank ``b`` holds the words whose address is ``b`` modulo ``BANKS``."""


def unit_of(element: ScalarType) -> int:
    """Return how many elements move together: those of a word, at least one."""
    return max(1, WORD // element.size)


def places_of(element: ScalarType) -> int:
    """Return how many units there are before banks repeat: 32, or 16 for elements of two words."""
    return BANKS * WORD // (unit_of(element) * element.size)


def mask_key(columns: Expr, element: ScalarType) -> str:
    """Return the name under which ``symbols`` hold the mask of rows of that many columns (no name of C)."""
    return f"mask of {unit_of(element)}, {places_of(element)} in {columns!r}"


def mask_of(columns: Expr, element: ScalarType) -> Expr:
    """Return the mask: the bits below the lowest set bit of the columns that move elements between banks."""
    movable = (places_of(element) - 1) * unit_of(element)
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
        key = mask_key(columns, element)
        if layout.turn == "none" or key in symbols:
            continue
        value = mask_of(columns, element)
        if not isinstance(value, IntConst):
            name = fresh("row_mask", taken)
            result.append(Declare(name, value.type, value))
            value = Var(name, value.type)
        symbols[key] = value
    return result


def place_in_tile(
    layout: Layout, element: ScalarType, row: Expr, column: Expr, columns: Expr, symbols: Mapping[str, Expr]
) -> Expr:
    """Return the offset of (row, column) in a tile with that many columns, in elements.

    ``symbols`` hold the mask under ``mask_key`` where the layout turns rows.
    """
    pitch = binary("+", columns, IntConst(layout.padding)) if layout.padding else columns
    base = binary("*", row, pitch)
    mask = symbols.get(mask_key(columns, element), IntConst(0))
    if layout.turn == "none" or mask == IntConst(0):
        return binary("+", base, column)
    turn = row if layout.turn == "row" else _reversed(row, places_of(element))
    if unit_of(element) > 1:
        turn = binary("*", turn, IntConst(unit_of(element)))
    return binary("+", base, binary("^", column, binary("&", turn, mask)))


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
