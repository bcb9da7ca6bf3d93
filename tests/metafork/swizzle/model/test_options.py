from itertools import product
from math import gcd

import numpy as np
import pytest

from metafork.swizzle.grammar.conditions import DROPPED, keeps, partitions
from metafork.swizzle.grammar.levels import transformations
from metafork.swizzle.grammar.transformation import rotations, template
from metafork.swizzle.grammar.vector import pairings
from metafork.swizzle.model.index import evaluate


@pytest.mark.parametrize(
    ("size", "row", "row_rotations", "columns"), [(3, 30, 3, 1347), (5, 100, 5, 1364), (7, 210, 7, 1365)]
)
def test_the_published_numbers_of_options(size, row, row_rotations, columns):
    assert len(transformations(size, 32, 3, outside=True)) == row
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
        assert np.array_equal(value, options.table(option)), option


def test_level_three_inside_the_modulus_is_made_of_permutations():
    permutations = template(12, 5, 3).tables.reshape(-1, 12, 5)
    for table in permutations:
        assert (np.sort(table, axis=0) == np.arange(12)[:, None]).all()
    rest = transformations(12, 5, 3).tables[len(permutations) :].reshape(-1, 12, 5)
    for table in rest:
        assert any((table // g == (np.arange(12) // g)[:, None]).all()
                   and all((group == group[0]).all() for group in table.reshape(-1, g, 5))
                   for g in (12, 6, 4, 3, 2)), table  # fmt: skip


@pytest.mark.parametrize("level", [1, 2, 3])
def test_every_broadcast_of_the_papers_is_in_levels_one_to_three(level):
    length, secondary = 6, 8
    known = {table.tobytes() for table in transformations(length, secondary, level).tables}
    k = np.arange(secondary)
    i = np.arange(length)[:, None]
    for group in [6, 3, 2] if level == 3 else [6]:
        for rotate, every, constant in product(range(group), (1, 2, 4, 8), range(group)):
            place = (rotate * k + (k // every if every < 8 else 0) + constant) % group
            assert (group * (i // group) + place).astype(np.int16).tobytes() in known


@pytest.mark.parametrize(("length", "secondary"), [(32, 6), (20, 32), (24, 5)])
def test_level_four_is_cut_nowhere(length, secondary):
    """Any two fans behind any rotation are an option, which says its own table."""
    options = transformations(length, secondary, 4)
    assert options.composition is not None, "small axes are listed; the test is for the others"
    generator = np.random.default_rng(length)
    i, k = (part.ravel() for part in np.meshgrid(np.arange(length), np.arange(secondary), indexing="ij"))
    for option in generator.integers(0, len(options), 60).tolist():
        value = np.broadcast_to(evaluate(options.expression(option), {"i": i, "k": k}), i.shape)
        assert np.array_equal(value, options.table(option)), option
    composed = {table.tobytes() for table in options.composition.tables}
    turns = {table.tobytes() for table in options.composition.turns}
    groups = [g for g in range(2, length + 1) if length % g == 0]
    steps = [d for d in range(1, secondary + 1) if secondary % d == 0]

    def fan(index, group, factor):
        inside = index % group
        return group * (index // group) + (factor * inside + inside * gcd(group, factor) // group) % group

    for _ in range(200):
        (g1, g2), every = generator.choice(groups, 2), int(generator.choice(steps))
        f1, f2, rotate = (int(generator.integers(1, top)) for top in (g1, g2, length))
        both = fan(fan(np.arange(length), int(g2), f2), int(g1), f1).astype(np.int16)
        assert both.tobytes() in composed
        turn = (i + rotate * k + (k // every if every < secondary else 0)) % length
        assert turn.astype(np.int16).tobytes() in turns


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
