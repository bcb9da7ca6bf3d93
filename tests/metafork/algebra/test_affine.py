from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra.affine import affine_conflict
from metafork.algebra.polynomial import Polynomial, at_most, equal, less_than

X, Y = (Polynomial.symbol(name) for name in "xy")
SMALL = st.integers(-3, 3)


def test_systems_that_are_not_affine_are_not_called_solvable():
    assert affine_conflict([equal(X * Y, 6)]) is None
    assert affine_conflict([equal(X * Y, 6), less_than(X, 0)]) is False
    assert affine_conflict([equal(2 * X, 2 * Y + 1)]) is False
    assert affine_conflict([equal(2 * X, Y), less_than(3, Y)]) is True


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(SMALL, SMALL, SMALL, st.sampled_from(["<=", "<", "=="])), min_size=1, max_size=4))
def test_affine_systems_are_decided_as_by_trying_all_values(rows):
    make = {"<=": at_most, "<": less_than, "==": equal}
    constraints = [make[relation](a * X + b * Y, c) for a, b, c, relation in rows]
    bounded = [*constraints, at_most(X, 6), at_most(Y, 6)]
    solvable = any(all(c.holds({"x": x, "y": y}) for c in bounded) for x, y in product(range(7), repeat=2))
    assert affine_conflict(bounded) is solvable


def test_one_case_of_each_choice_holds():
    either = [[less_than(X, Y)], [less_than(Y, X)]]
    assert affine_conflict([equal(X, Y)], [either]) is False
    assert affine_conflict([at_most(X, Y)], [either]) is True


def test_a_product_is_a_variable_of_its_own():
    assert affine_conflict([less_than(X * Y, 3), less_than(3, X * Y)]) is False
    assert affine_conflict([equal(X * Y, 3), equal(X, 0)]) is None
