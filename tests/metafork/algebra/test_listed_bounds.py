from fractions import Fraction
from itertools import product

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra.listed_bounds import MOST_DEGREE, SLACK, upper_bound
from metafork.algebra.polynomial import Polynomial

S, B, K = (Polynomial.symbol(name) for name in "sBK")
LISTED = st.sampled_from([1, 2, 3, 4, 6, 8, 16, 32])


def points(names, values):
    return [dict(zip(names, one, strict=True)) for one in values]


def distances(found, listed, values):
    return [found.evaluate(point) - value for point, value in zip(listed, values, strict=True)]


def assert_bounds(found, listed, values):
    assert all(0 <= distance <= SLACK for distance in distances(found, listed, values))
    for monomial in found.coefficients:
        assert all(power <= MOST_DEGREE for _, power in monomial)
    assert found.symbols <= listed[0].keys()


def exists(names, listed, values):
    """Say by Z3 whether there is such a polynomial."""
    solver = z3.Solver()
    powers = list(product(range(MOST_DEGREE + 1), repeat=len(names)))
    coefficients = [z3.Real(f"c{number}") for number in range(len(powers))]
    for point, value in zip(listed, values, strict=True):
        factors = []
        for power in powers:
            factor = 1
            for name, exponent in zip(names, power, strict=True):
                factor *= point[name] ** exponent
            factors.append(factor)
        total = z3.Sum([c * factor for c, factor in zip(coefficients, factors, strict=True)])
        solver.add(total >= value, total <= value + SLACK)
    return solver.check() == z3.sat


@pytest.mark.parametrize(
    ("listed", "values", "expected"),
    [
        ((1, 2, 4, 8), (27, 30, 36, 48), 3 * S + 24),
        ((7,), (30,), Polynomial.constant(30)),
        ((1, 2, 3), (31, 30, 32), Polynomial.constant(32)),
        ((1, 2, 3), (31, 29, 32), 3 * S * S - 11 * S + 39),
        ((1, 2, 3), (20, 25, 60), 15 * S * S - 40 * S + 45),
        ((2, 4), (40, 60), 10 * S + 20),
    ],
)
def test_few_terms_and_integers_are_preferred(listed, values, expected):
    assert upper_bound(points("s", [(one,) for one in listed]), values) == expected


def test_terms_of_several_parameters():
    listed = points("sB", product((1, 2, 4), (8, 16)))
    assert upper_bound(listed, [20 + 2 * one["s"] * one["B"] for one in listed]) == 2 * S * B + 20
    # ``B`` does not matter, and is left out.
    assert upper_bound(listed, [20 + 9 * one["s"] for one in listed]) == 9 * S + 20
    around = points("sBK", [(4, 16, 16), (2, 16, 16), (4, 32, 16), (4, 16, 32)])
    assert upper_bound(around, [50, 40, 50, 58]) == 5 * S + K * Fraction(1, 2) + 22


def test_thresholds_of_unrolling_are_no_polynomial():
    listed = points("s", [(one,) for one in (1, 2, 3, 4, 6, 8, 12, 16)])
    assert upper_bound(listed, (55, 59, 63, 67, 56, 62, 82, 99)) is None
    assert upper_bound(listed, (20, 20, 20, 20, 60, 60, 60, 60)) is None


def test_parameters_may_be_large():
    listed = points("s", [(1,), (2**31 - 1,), (2**30,)])
    found = upper_bound(listed, (20, 90, 20))
    assert_bounds(found, listed, (20, 90, 20))


def test_as_many_values_as_there_may_be_instances_have_a_bound_of_as_many_terms():
    listed = points("sBK", product((1, 4), (2, 4), (8, 16)))
    values = (71, 36, 80, 27, 22, 64, 41, 55)
    assert_bounds(upper_bound(listed, values), listed, values)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_bound_is_found_exactly_where_there_is_one(data):
    names = "sBK"[: data.draw(st.integers(1, 3))]
    places = data.draw(st.lists(st.tuples(*[LISTED] * len(names)), min_size=1, max_size=6, unique=True))
    listed = points(names, places)
    values = data.draw(st.lists(st.integers(10, 40), min_size=len(listed), max_size=len(listed)))
    found = upper_bound(listed, values)
    assert (found is not None) == exists(names, listed, values)
    if found is not None:
        assert_bounds(found, listed, values)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(LISTED, LISTED), min_size=3, max_size=8, unique=True),
    st.integers(0, 9), st.integers(0, 9), st.integers(0, 60), st.data(),
)  # fmt: skip
def test_a_bound_has_no_more_terms_than_a_plain_one_that_there_is(places, of_s, of_b, constant, data):
    listed = points("sB", places)
    slack = data.draw(st.lists(st.integers(0, SLACK), min_size=len(listed), max_size=len(listed)))
    planted = of_s * S + of_b * B + constant
    values = [int(planted.evaluate(one)) - below for one, below in zip(listed, slack, strict=True)]
    found = upper_bound(listed, values)
    assert_bounds(found, listed, values)
    assert len(found.coefficients.keys() - {()}) <= len(planted.coefficients.keys() - {()})
