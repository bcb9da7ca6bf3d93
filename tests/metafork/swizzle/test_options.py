import numpy as np
import pytest

from metafork.swizzle.grammar.conditions import DROPPED, keeps, partitions
from metafork.swizzle.grammar.transformation import rotations, transformations
from metafork.swizzle.grammar.vector import pairings
from metafork.swizzle.model.index import evaluate


@pytest.mark.parametrize(
    ("size", "row", "row_rotations", "columns"), [(3, 30, 3, 1347), (5, 100, 5, 1364), (7, 210, 7, 1365)]
)
def test_the_published_numbers_of_options(size, row, row_rotations, columns):
    assert len(transformations(size, 32, 3)) == row
    assert len(rotations(size, size, 3)) == row_rotations
    assert len(transformations(32, size, 3, outside=True)) == columns
    assert len(rotations(32, 32, 3)) == 58


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize(("length", "secondary", "level"), [(12, 6, 3), (8, 5, 1), (9, 4, 3), (6, 8, 4)])
def test_expressions_compute_their_tables_and_tables_are_distinct(length, secondary, level, outside):
    options = transformations(length, secondary, level, outside=outside)
    i, k = (part.ravel() for part in np.meshgrid(np.arange(length), np.arange(secondary), indexing="ij"))
    assert len({table.tobytes() for table in options.tables}) == len(options)
    for option in range(0, len(options), 7):
        value = np.broadcast_to(evaluate(options.expression(option), {"i": i, "k": k}), i.shape)
        assert np.array_equal(value, options.tables[option]), option


def test_level_three_inside_the_modulus_is_made_of_permutations():
    for table in transformations(12, 5, 3).tables.reshape(-1, 12, 5):
        assert (np.sort(table, axis=0) == np.arange(12)[:, None]).all()


def test_the_simplest_expression_of_a_class_is_the_identity_itself():
    options = transformations(32, 3, 3)
    identity = np.repeat(np.arange(32), 3)
    assert (options.tables[0] == identity).all()
    assert options.expression(0).name == "i"


def test_partitions_are_the_position_of_the_first_condition_that_holds():
    options = partitions([4, 7], [0, 1, -1, 4, -4], 3)
    d0, d1 = (part.ravel() for part in np.meshgrid(np.arange(4), np.arange(7), indexing="ij"))
    assert set(np.unique(options.tables)) == {0, 1, 2}
    for option in range(0, len(options), 50):
        value = np.broadcast_to(evaluate(options.expression(option), {"d0": d0, "d1": d1}), d0.shape)
        assert np.array_equal(value, options.tables[option])


def test_too_many_partitions_are_refused():
    with pytest.raises(ValueError, match="lists of 7"):
        partitions([32, 7], [0, 1, -1, 32, -32], 8)


def test_keeps_contain_both_constant_conditions():
    tables = keeps([4, 4], [0, 1, -1, 4, -4]).tables
    assert (tables == DROPPED).all(axis=1).sum() == 1
    assert (tables == 0).all(axis=1).sum() == 1


def test_vector_instructions_read_as_documented():
    options = pairings(2, 8)
    by_name = {options.expression(one).name: options.tables[one].tolist() for one in range(len(options))}
    assert by_name["valign(r0, r1, 3)"] == [11, 12, 13, 14, 15, 0, 1, 2]
    assert by_name["vlalign(r0, r1, 3)"] == [13, 14, 15, 0, 1, 2, 3, 4]
    assert by_name["vshuffe(r0, r1)"] == [8, 0, 10, 2, 12, 4, 14, 6]
    assert by_name["vshuffo(r0, r1)"] == [9, 1, 11, 3, 13, 5, 15, 7]
