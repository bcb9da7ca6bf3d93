"""Emptiness by signs against all points of a small grid: a system that is called empty has no point."""

from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra.polynomial import Constraint, Polynomial, at_most, less_than
from metafork.comprehensive.systems.signs import Signs, integral

NAMES = "xyp"
REAL = frozenset("p")
X, Y, P = (Polynomial.symbol(name) for name in NAMES)
GRID = [
    dict(zip(NAMES, point, strict=True))
    for point in product(range(-2, 6), range(-2, 6), [Fraction(n, 2) for n in range(-4, 9)])
]
SMALL = st.integers(-3, 3)
POLYNOMIALS = st.tuples(*[SMALL] * 6).map(
    lambda c: c[0] * X + c[1] * Y + c[2] * P + c[3] * X * Y + c[4] * X * P + Polynomial.constant(c[5])
)
SCALED = st.builds(lambda value, by: value * Fraction(1, by), POLYNOMIALS, st.sampled_from([1, 1, 2, 3]))
RELATIONS = st.sampled_from(["<=", "<", "=="])
CONSTRAINTS = st.builds(Constraint, SCALED, RELATIONS, POLYNOMIALS)
BOUNDS = st.builds(
    lambda name, low, factor, strict: (less_than if strict else at_most)(low, factor * Polynomial.symbol(name)),
    st.sampled_from(NAMES), st.integers(-2, 3), st.integers(1, 3), st.booleans(),
)  # fmt: skip


def holding(constraints):
    return [point for point in GRID if all(one.holds(point) for one in constraints)]


@settings(max_examples=200)
@given(st.lists(BOUNDS | CONSTRAINTS, max_size=5), st.lists(CONSTRAINTS, max_size=2), CONSTRAINTS)
def test_what_is_called_empty_has_no_point(facts, system, last):
    if Signs(facts, REAL).empty(system, last):
        assert not holding([*facts, *system, last])


@settings(max_examples=200)
@given(st.lists(BOUNDS, min_size=3, max_size=6), BOUNDS)
def test_a_bound_against_known_bounds(facts, bound):
    """Where every symbol has a bound, the negation of another is called empty just where the bounds imply it."""
    signs = Signs([*facts, *(at_most(-2, Polynomial.symbol(name)) for name in NAMES)], REAL)
    if signs.empty((), bound.negated()):
        assert all(bound.holds(point) for point in holding(facts))


@settings(max_examples=200)
@given(CONSTRAINTS)
def test_integral_keeps_the_meaning(constraint):
    after = integral(constraint)
    assert all(c.denominator == 1 for side in (after.left, after.right) for c in side.terms().values())
    assert all(after.holds(point) == constraint.holds(point) for point in GRID[:: len(GRID) // 50])
