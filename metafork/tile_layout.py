"""The layout of a tile in shared memory: the C expressions of ``metafork.ir.Layout``.

The number by which a row is turned must stay below the number of columns, so that one comparison brings a column back
into its row and no access divides.  It is cut to the largest power of two that fits (and to the 32 places that are
enough for 32 banks): the *mask*, a function of the number of columns alone, which a kernel computes once.  So every
layout is a permutation of each row whatever the extents are.

Elements below four bytes are turned in whole words.  Reversed, the 32 (or, for elements of 8 bytes, 16) rows of one
bank's column spread so that any aligned power of two of neighbouring rows lies evenly apart: blocks of threads with 8,
16 or 32 columns find no two of their words in one bank, along rows and along columns alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from metafork.ir import Conditional, Declare, Expr, IntConst, Layout, Stmt, Var, binary
from metafork.names import fresh
from metafork.types import ScalarType

BANKS = 32
WORD = 4
"""Bytes of a word; bank ``b`` holds the words whose address is ``b`` modulo ``BANKS``."""


def unit_of(element: ScalarType) -> int:
    """Return in what number of elements a row is turned: those of a word, at least one."""
    return max(1, WORD // element.size)


def places_of(element: ScalarType) -> int:
    """Return how many units there are before banks repeat: 32, or 16 for elements of two words."""
    return BANKS * WORD // (unit_of(element) * element.size)


def mask_key(columns: Expr, element: ScalarType) -> str:
    """Return the name under which ``symbols`` hold the mask of rows of that many columns (no name of C)."""
    return f"mask of {unit_of(element)}, {places_of(element)} in {columns!r}"


def mask_of(columns: Expr, element: ScalarType) -> Expr:
    """Return the mask: one less than the largest power of two that is at most the units of a row and the places."""
    unit, width = unit_of(element), places_of(element)
    if isinstance(columns, IntConst):
        units = min(width, max(1, columns.value // unit))
        return IntConst((1 << (units.bit_length() - 1)) - 1)
    result: Expr = IntConst(0)
    power = 2
    while power <= width:
        fits = binary("<=", IntConst(power * unit), columns)
        result = Conditional(fits, IntConst(power - 1), result, ScalarType.INT)
        power *= 2
    return result


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
    if layout.turn == "none":
        return binary("+", base, column)
    turn = binary("&", row if layout.turn == "row" else _reversed(row, places_of(element)),
                  symbols[mask_key(columns, element)])  # fmt: skip
    if unit_of(element) > 1:
        turn = binary("*", turn, IntConst(unit_of(element)))
    if layout.exclusive:
        return binary("+", base, binary("^", column, turn))
    place = binary("+", column, turn)
    back = Conditional(binary("<", place, columns), IntConst(0), columns, columns.type)
    return binary("-", binary("+", base, place), back)


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
