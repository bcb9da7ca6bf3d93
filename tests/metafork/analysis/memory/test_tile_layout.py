"""Layouts of tiles, by the numbers that their expressions have."""

from itertools import product

import pytest

from metafork.analysis.memory.tile_layout import declare_masks, mask_key, place_in_line, place_in_tile
from metafork.ir.arithmetic.evaluation import integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.mapping import Layout
from metafork.ir.program import IntConst, Var

TURNED = [Layout("row"), Layout("reversed"), Layout("row", bits=3), Layout("reversed", bits=2)]
ELEMENTS = [ScalarType.CHAR, ScalarType.FLOAT, ScalarType.DOUBLE]
ROW, COLUMN, COLUMNS, INDEX = (Var(name) for name in ("row", "column", "columns", "index"))


def place(layout, element, columns):
    """Return the place of (row, column) as a function, for columns that only the launch knows."""
    symbols = {}
    masks = declare_masks([(layout, COLUMNS, element)] * 2, symbols, set())
    assert len(masks) == 1  # one for both
    known = {"columns": columns, masks[0].name: integer_value(masks[0].value, {"columns": columns})}
    expr = place_in_tile(layout, element, ROW, COLUMN, COLUMNS, symbols)
    return lambda row, column: integer_value(expr, {**known, "row": row, "column": column})


@pytest.mark.parametrize("layout", TURNED)
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("columns", [1, 4, 6, 16, 24, 33, 64])
def test_a_layout_permutes_every_row(layout, element, columns):
    at = place(layout, element, columns)
    for row in range(1, 40):
        assert sorted(at(row, column) for column in range(columns)) == [row * columns + c for c in range(columns)]


@pytest.mark.parametrize("columns", [4, 8, 16, 32, 64])
def test_columns_and_rows_have_no_conflicts_by_reversed_rows(columns):
    at = place(Layout("reversed"), ScalarType.FLOAT, columns)
    for first in (0, 32):
        column = {at(row, 3) % 32 if row else 3 for row in range(first, first + 32)}
        assert len(column) == 32
    rows = 32 // min(columns, 32)
    assert len({at(row, c) % 32 for row, c in product(range(4, 4 + rows), range(min(columns, 32)))}) == 32


def test_columns_of_32_have_no_conflicts_by_their_rows():
    at = place(Layout("row"), ScalarType.FLOAT, 32)
    assert len({at(row, 5) % 32 for row in range(1, 33)}) == 32


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("columns", [1, 6, 16, 33, 64])
def test_constant_columns_need_no_declaration_and_mean_the_same(element, columns):
    for layout in TURNED:
        symbols, constant = {}, IntConst(columns)
        assert declare_masks([(layout, constant, element)], symbols, set()) == []
        assert mask_key(layout, constant, element) in symbols
        expr = place_in_tile(layout, element, ROW, COLUMN, constant, symbols)
        at = place(layout, element, columns)
        for row, column in product(range(1, 9), range(columns)):
            assert integer_value(expr, {"row": row, "column": column}) == at(row, column)


def test_what_turns_nothing_has_no_mask():
    symbols = {}
    assert (
        declare_masks(
            [(Layout(), COLUMNS, ScalarType.INT), (Layout(padding=1), COLUMNS, ScalarType.INT)], symbols, set()
        )
        == []
    )
    assert symbols == {}
    for padding, columns, pitch in ((0, 6, 6), (1, 6, 7), (1, 7, 7), (2, 6, 8)):
        expr = place_in_tile(Layout(padding=padding), ScalarType.INT, ROW, COLUMN, COLUMNS, {})
        assert integer_value(expr, {"row": 3, "column": 2, "columns": columns}) == 3 * pitch + 2


@pytest.mark.parametrize("layout", TURNED)
@pytest.mark.parametrize("stride", [2, 4, 8])
def test_strides_within_a_line_lose_their_conflicts(layout, stride):
    extent = IntConst(32 * stride)
    symbols = {}
    declare_masks([(layout, extent, ScalarType.FLOAT)], symbols, set())
    expr = place_in_line(layout, ScalarType.FLOAT, INDEX, extent, symbols)
    places = [integer_value(expr, {"index": index}) for index in range(32 * stride)]
    assert sorted(places) == list(range(32 * stride))
    if layout == Layout("row"):
        assert len({places[stride * thread] % 32 for thread in range(32)}) == 32
