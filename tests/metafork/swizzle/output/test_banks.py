import numpy as np
import pytest

from metafork.swizzle.output.banks import (
    TileLayout,
    bank_degree,
    conflict_free_layout,
    padded_layout,
    passes,
    row_accesses,
    worst_degree,
)
from metafork.swizzle.output.cost import ARCHITECTURES, cost
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.search.search import solutions
from tests.metafork.swizzle.running import problem_of

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


def served(elements, size):
    """Count by hand: the parts of a warp one after the other, each as long as its busiest bank."""
    threads = {4: 32, 8: 16, 16: 8}[size]
    degrees = []
    for start in range(0, len(elements), threads):
        asked = {}
        for element in elements[start : start + threads]:
            for word in range(element * size // 4, (element + 1) * size // 4):
                asked.setdefault(word % 32, set()).add(word)
        degrees.append(max(len(words) for words in asked.values()))
    return degrees


@pytest.mark.parametrize("size", [4, 8, 16])
def test_wide_elements_are_served_in_parts(size):
    random = np.random.default_rng(size)
    for _ in range(200):
        elements = random.integers(0, 128, size=int(random.integers(1, 33))).tolist()
        assert bank_degree(elements, size=size) == max(served(elements, size))
        assert passes(elements, size=size) == sum(served(elements, size))
    assert bank_degree(range(32), size=size) == 1
    assert passes(range(32), size=size) == size // 4
    assert passes([], size=size) == 0
    with pytest.raises(ValueError, match="not 12"):
        bank_degree([0], size=12)


@pytest.mark.parametrize(("stride", "size", "degree"), [(2, 8, 2), (16, 8, 16), (17, 8, 1), (8, 16, 8), (9, 16, 1)])
def test_strides_of_wide_elements(stride, size, degree):
    assert bank_degree(stride * np.arange(32), size=size) == degree


@pytest.mark.parametrize("size", [8, 16])
@pytest.mark.parametrize(("rows", "columns"), [(32, 32), (32, 24), (16, 16), (32, 48)])
def test_layouts_of_wide_elements(rows, columns, size):
    assert max(TileLayout(rows, columns, "plain", 0, rows, columns).degrees(size=size)) > 1
    layout = conflict_free_layout(rows, columns, size=size)
    assert layout is not None
    assert sorted(layout.addresses().ravel()) == list(range(rows * columns))
    for access in [*layout.addresses(), *layout.addresses().T]:
        for start in range(0, len(access), 32):
            assert set(served(access[start : start + 32].tolist(), size)) == {1}
    assert padded_layout(rows, columns, size=size).degrees(size=size) == (1, 1)


def test_costs_of_wide_elements():
    problem = problem_of("crc_shared", s=4)
    (only,) = solutions(problem)
    code = lower(problem, only)
    narrow, wide = (cost(problem, only, code, ARCHITECTURES["sm_70"], element_bytes=size) for size in (4, 16))
    assert wide.shared_cycles > narrow.shared_cycles
    assert wide.total - narrow.total == 2 * (wide.shared_cycles - narrow.shared_cycles)
