"""Extrema over loop ranges against all iterations of small loops."""

from itertools import product

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.bounds import extreme, stays_within
from metafork.analysis.loop_ranges import LoopKind, LoopRange

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
    above, below = stays_within(value, extent, ranges, PROVER)
    for parameters in PARAMETERS:
        for point in iterations(ranges, parameters):
            reached = value.evaluate(point)
            assert low is None or low.evaluate(parameters) <= reached
            assert high is None or reached <= high.evaluate(parameters)
            assert not above or reached >= 0
            assert not below or reached < extent.evaluate(parameters)


def test_a_square_stays_within_itself_and_an_unknown_length_is_not_assumed():
    i, j = Polynomial.symbol("i"), Polynomial.symbol("j")
    assert stays_within(i * B + j, N * B, loops([N, B]), PROVER) == (True, True)
    assert stays_within(i * B + j + 1, N * B, loops([N, B]), PROVER) == (True, False)
    unknown = [LoopRange("i", None, LoopKind.SERIAL)]
    assert extreme(i, unknown, PROVER, largest=True) is None
    assert extreme(i, unknown, PROVER, largest=False) == 0 * ONE
