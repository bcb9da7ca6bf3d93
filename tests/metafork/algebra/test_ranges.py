"""Extrema and bounds over ranges against all points of small ones."""

from fractions import Fraction
from itertools import product

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metafork.algebra.polynomial import Constraint, Polynomial, at_most, less_than
from metafork.algebra.positivity import Positivity
from metafork.algebra.prover import Prover
from metafork.algebra.ranges import Box, bounds, extreme, stays_within
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange

N, B = Polynomial.symbol("n"), Polynomial.symbol("b")
ONE = Polynomial.constant(1)
PROVER = Prover([at_most(1, N), at_most(1, B)])
PARAMETERS = [dict(zip("nb", point, strict=True)) for point in product((1, 2, 4), (1, 3))]
SIZES = [ONE, 2 * ONE, N, B, N + 1, N * B]
FACTORS = [0 * ONE, ONE, -1 * ONE, 3 * ONE, N, -1 * B, N * B - 1, N - B]
LOOPS = "ijk"


def loops(trips):
    return [LoopRange(name, size, LoopKind.SERIAL) for name, size in zip(LOOPS, trips, strict=False)]


def iterations(ranges, parameters):
    def walk(done, rest):
        if not rest:
            yield done
            return
        for index in range(int(rest[0].trips.evaluate(done))):
            yield from walk({**done, rest[0].var: index}, rest[1:])

    return list(walk(parameters, ranges))


VALUES = st.tuples(*[st.sampled_from(FACTORS)] * 4).map(
    lambda factors: sum((f * Polynomial.symbol(name) for f, name in zip(factors, LOOPS, strict=False)), factors[3])
)
RECTANGLES = st.lists(st.sampled_from(SIZES), min_size=1, max_size=3)


@settings(max_examples=300)
@given(VALUES, RECTANGLES, st.booleans())
def test_extrema_over_boxes_are_reached(value, trips, largest):
    ranges = loops(trips)
    value = value.substitute({name: Polynomial() for name in LOOPS[len(trips) :]})
    found = extreme(value, ranges, PROVER, largest=largest)
    assume(found is not None)
    for parameters in PARAMETERS:
        reached = [value.evaluate(point) for point in iterations(ranges, parameters)]
        assert found.evaluate(parameters) == (max(reached) if largest else min(reached))


TRIANGLES = st.tuples(
    st.sampled_from(SIZES),
    st.sampled_from([Polynomial.symbol("i") + 1, N + Polynomial.symbol("i"), Polynomial.symbol("i"), B]),
)


@settings(max_examples=300)
@given(VALUES, TRIANGLES, st.sampled_from([ONE, N, B, N * B, 3 * N + 2]))
def test_what_is_said_of_triangles_holds_in_every_iteration(value, trips, extent):
    ranges = loops(trips)
    value = value.substitute({"k": Polynomial()})
    low, high = extreme(value, ranges, PROVER, largest=False), extreme(value, ranges, PROVER, largest=True)
    above, below = stays_within(value, extent, ranges, PROVER, PROVER.proves)
    for parameters in PARAMETERS:
        for point in iterations(ranges, parameters):
            reached = value.evaluate(point)
            assert low is None or low.evaluate(parameters) <= reached
            assert high is None or reached <= high.evaluate(parameters)
            assert not above or reached >= 0
            assert not below or reached < extent.evaluate(parameters)


def test_a_square_stays_within_itself_and_an_unknown_length_is_not_assumed():
    i, j = Polynomial.symbol("i"), Polynomial.symbol("j")
    assert stays_within(i * B + j, N * B, loops([N, B]), PROVER, PROVER.proves) == (True, True)
    assert stays_within(i * B + j + 1, N * B, loops([N, B]), PROVER, PROVER.proves) == (True, False)
    unknown = [LoopRange("i", None, LoopKind.SERIAL)]
    assert extreme(i, unknown, PROVER, largest=True) is None
    assert extreme(i, unknown, PROVER, largest=False) == 0 * ONE


CURVED = st.lists(st.tuples(st.sampled_from(FACTORS), st.tuples(*[st.integers(0, 2)] * 3)), min_size=1, max_size=4).map(
    lambda terms: sum((f * monomial(exponents) for f, exponents in terms), 0 * ONE)
)


def monomial(exponents):
    result = ONE
    for name, exponent in zip(LOOPS, exponents, strict=True):
        result = result * Polynomial.symbol(name) ** exponent
    return result


@settings(max_examples=120)
@given(CURVED, TRIANGLES, st.sampled_from([ONE, N, None]), st.booleans())
def test_bounds_hold_where_a_value_is_not_linear_and_a_range_not_known(value, trips, last, largest):
    ranges = [*loops(trips), LoopRange("k", last, LoopKind.SERIAL)]
    found = bounds(value, ranges, Positivity([at_most(1, N), at_most(1, B)]), largest=largest)
    corner = extreme(value, ranges, PROVER, largest=largest)
    for parameters in PARAMETERS:
        some = [LoopRange("k", last or 3 * ONE, LoopKind.SERIAL) if one.var == "k" else one for one in ranges]
        for point in iterations(some, parameters):
            reached = value.evaluate(point)
            for bound in found:
                assert reached <= bound.evaluate(point) if largest else bound.evaluate(point) <= reached
            if corner is not None:
                assert reached <= corner.evaluate(parameters) if largest else corner.evaluate(parameters) <= reached
    for bound in found:
        assert bound.symbols <= ({"n", "b"} if last is not None else {"n", "b", "k"})


def test_a_square_has_a_bound_and_no_extreme():
    i, j = Polynomial.symbol("i"), Polynomial.symbol("j")
    ranges = loops([N, B])
    assert extreme(i * i - j, ranges, PROVER, largest=True) is None
    assert bounds(i * i - j, ranges, PROVER, largest=True) == ((N - 1) * (N - 1),)
    # i - j reaches its bounds over each other's ranges, i*(n - b) has none of known sign.
    assert bounds(i - j, ranges, PROVER, largest=False) == (1 - B,)
    assert extreme(i * (N - B), ranges, PROVER, largest=True) is None
    assert bounds(i * (N - B), ranges, PROVER, largest=True) == (N * (N - 1),)


NAMES = "xyz"
NUMBERS = [Fraction(number, 2) for number in range(-4, 9)]
CONDITIONS = st.lists(
    st.tuples(
        st.sampled_from(["x", "y", "z", "xy"]),
        st.integers(-3, 3).filter(bool),
        st.sampled_from(NUMBERS),
        st.sampled_from(["<", "<=", "=="]),
    ),
    max_size=5,
)


def condition(names, factor, number, relation):
    product_ = ONE
    for name in names:
        product_ = product_ * Polynomial.symbol(name)
    return Constraint(product_ * factor, relation, Polynomial.constant(number))


@settings(max_examples=120)
@given(CONDITIONS, st.tuples(*[st.integers(-3, 3)] * 6), st.booleans(), st.booleans())
def test_no_point_of_a_box_has_less_than_the_box_says(conditions, factors, signed, real):
    x, y, z = (Polynomial.symbol(name) for name in NAMES)
    value = sum((f * term for f, term in zip(factors, (x, y, z, x * y, y * z * z), strict=False)), factors[5] * ONE)
    known = [condition(*one) for one in conditions]
    least = Box(known, frozenset("z" if real else ""), signed=signed).at_least(value)
    if least is None:
        return
    for numbers in product(NUMBERS, repeat=3):
        point = dict(zip(NAMES, numbers, strict=True))
        whole = all(number.denominator == 1 or (real and name == "z") for name, number in point.items())
        natural = signed or min(numbers) >= 0
        if whole and natural and all(one.holds(point) for one in known):
            assert value.evaluate(point) >= least


def test_a_box_reads_equations_products_and_greatest_values():
    x, y = Polynomial.symbol("x"), Polynomial.symbol("y")
    assert Box([Constraint(2 * x, "==", 6 * ONE)]).at_least(x * y - x) == -3
    assert Box([less_than(0 * ONE, x * y)]).at_least(x * y + x) == 2
    assert Box([at_most(x, Polynomial.constant(Fraction(7, 2)))]).at_least(10 - x * x) == 1
    assert Box([at_most(1, x)], signed=True).at_least(x + y) is None
    assert Box([at_most(-2, x)]).at_least(x) == 0
    assert Box([at_most(-2, x)], signed=True).at_least(x) == -2
