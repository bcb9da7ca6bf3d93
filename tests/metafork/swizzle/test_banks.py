import numpy as np
import pytest

from metafork.swizzle.output.banks import (
    TileLayout,
    bank_degree,
    conflict_free_layout,
    padded_layout,
    row_accesses,
    worst_degree,
)

TILES = [(32, 32), (32, 24), (32, 40), (32, 48), (32, 96)]


def test_degree_of_one_access():
    assert bank_degree(range(32)) == 1
    assert bank_degree([7] * 32) == 1, "one word is served to everybody at once"
    assert bank_degree([2 * lane for lane in range(32)]) == 2
    assert bank_degree([32 * lane for lane in range(32)]) == 32
    assert bank_degree([33 * lane for lane in range(32)]) == 1
    assert bank_degree([]) == 0


@pytest.mark.parametrize("stride", range(1, 33))
def test_degree_of_a_stride_is_its_common_divisor_with_the_banks(stride):
    assert bank_degree(stride * np.arange(32)) == np.gcd(stride, 32)


def test_rows_longer_and_shorter_than_a_warp_are_split():
    accesses = row_accesses(np.arange(2 * 40).reshape(2, 40))
    assert accesses.shape == (4, 32)
    assert set(accesses[1]) == set(range(32, 40))
    assert worst_degree(accesses) == 1


@pytest.mark.parametrize(("rows", "columns"), TILES)
def test_a_layout_without_padding_frees_rows_and_columns_of_conflicts(rows, columns):
    plain = TileLayout(rows, columns, "plain", 0, rows, columns)
    assert max(plain.degrees()) > 1, "the test would show nothing"
    layout = conflict_free_layout(rows, columns)
    assert layout is not None
    assert layout.words == rows * columns
    addresses = layout.addresses()
    assert sorted(addresses.ravel()) == list(range(rows * columns)), "every word once"
    # Counted here again, thread by thread, by rows and by columns.
    for access in [*addresses, *addresses.T]:
        for start in range(0, len(access), 32):
            banks = [word % 32 for word in access[start : start + 32]]
            assert len(set(banks)) == len(banks)


@pytest.mark.parametrize(("rows", "columns"), TILES)
def test_padding_is_the_least_that_works(rows, columns):
    layout = padded_layout(rows, columns)
    assert layout.degrees() == (1, 1)
    for pitch in range(columns, layout.pitch):
        assert max(TileLayout(rows, columns, "plain", 0, rows, pitch).degrees()) > 1


def test_rotations_are_layouts_too():
    turned = TileLayout(32, 32, "rotate", 1, 32, 32)
    assert turned.degrees() == (1, 1)
    assert sorted(turned.addresses().ravel()) == list(range(1024))
