"""Mixed radix against all values of small digits: what is said to be one-to-one is."""

from dataclasses import dataclass
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.algebra.radix import is_mixed_radix

S, B = Polynomial.symbol("s"), Polynomial.symbol("b")
ONE = Polynomial.constant(1)
PROVER = Prover([at_most(1, S), at_most(1, B), at_most(S, 2 * B)])
PARAMETERS = [{"s": s, "b": b} for s, b in product((1, 2, 3, 4), (1, 2, 3)) if s <= 2 * b]
STEPS = [0 * ONE, ONE, 2 * ONE, -1 * ONE, S, B, -1 * B, 2 * B, -2 * B, S * B, -1 * S * B, S + B, S * B - 1, 1 - S]
TRIPS = [ONE, 2 * ONE, S, B, S + 1, 2 * B, None]
UNKNOWN = 5
"""Values tried of a digit whose range is not known."""


@dataclass(frozen=True)
class Digit:
    var: str
    trips: Polynomial | None


def distinct(index, digits, parameters):
    sizes = [UNKNOWN if digit.trips is None else int(digit.trips.evaluate(parameters)) for digit in digits]
    values = [
        index.evaluate({**parameters, **dict(zip((digit.var for digit in digits), point, strict=True))})
        for point in product(*map(range, sizes))
    ]
    return len(values) == len(set(values))


def made(rows):
    digits = [Digit(name, trips) for name, (_, trips) in zip("ijk", rows, strict=False)]
    index = sum((step * Polynomial.symbol(d.var) for d, (step, _) in zip(digits, rows, strict=True)), S)
    return index, digits


@settings(max_examples=400)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(TRIPS)), min_size=1, max_size=3))
def test_what_is_said_to_be_one_to_one_is(rows):
    index, digits = made(rows)
    if is_mixed_radix(index, digits, PROVER):
        assert all(distinct(index, digits, parameters) for parameters in PARAMETERS)


@settings(max_examples=400)
@given(st.permutations([(ONE, S), (S, B), (S * B, None)]))
def test_digits_are_found_in_any_order(rows):
    assert is_mixed_radix(*made(rows), PROVER)


@settings(max_examples=400)
@given(st.permutations([(ONE, S), (S, B), (S * B, None)]), st.tuples(*[st.sampled_from((1, -1))] * 3))
def test_digits_may_count_down(rows, signs):
    assert is_mixed_radix(
        *made([(step * sign, trips) for (step, trips), sign in zip(rows, signs, strict=True)]), PROVER
    )


def test_a_digit_that_overlaps_the_one_below_is_none():
    assert not is_mixed_radix(*made([(ONE, S + 1), (S, B)]), PROVER)
    assert not is_mixed_radix(*made([(ONE, None), (S, B)]), PROVER)
    assert not is_mixed_radix(*made([(-1 * ONE, S + 1), (S, B)]), PROVER)
    assert not is_mixed_radix(*made([(0 * ONE, S)]), PROVER)
