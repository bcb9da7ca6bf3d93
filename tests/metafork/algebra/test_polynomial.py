from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most, equal, less_than

N, B, s = (Polynomial.symbol(name) for name in ("N", "B", "s"))

NAMES = ("N", "B", "s", "E", "I")
numbers = st.integers(-5, 5)
monomials = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2), max_size=3).map(
    lambda d: tuple(sorted(d.items()))
)
polynomials = st.dictionaries(monomials, numbers, max_size=4).map(Polynomial)
points = st.fixed_dictionaries(dict.fromkeys(NAMES, numbers))


@given(polynomials, polynomials, points)
def test_arithmetic_is_that_of_values(p, q, point):
    x, y = p.evaluate(point), q.evaluate(point)
    assert (p + q).evaluate(point) == x + y
    assert (p - q).evaluate(point) == x - y
    assert (p * q).evaluate(point) == x * y
    assert (-p).evaluate(point) == -x
    assert (3 - p).evaluate(point) == 3 - x
    assert (p**2).evaluate(point) == x * x


@given(polynomials, polynomials, polynomials, points)
def test_substitution_is_evaluation_in_two_steps(p, q, r, point):
    whole = {**point, "N": q.evaluate(point), "B": r.evaluate(point)}
    assert p.substitute({"N": q, "B": r}).evaluate(point) == p.evaluate(whole)


@given(polynomials, polynomials)
def test_equal_polynomials_have_equal_hashes(p, q):
    total = p + q
    assert total == q + p
    assert hash(total) == hash(q + p)
    assert total - q == p
    assert (p == q) == (not p - q)


@given(polynomials, polynomials)
def test_exact_division_undoes_multiplication(p, q):
    if q:
        assert (p * q).divide_exactly(q) == p
    assert p.divide_exactly(ZERO) is None


@given(polynomials, polynomials)
def test_division_gives_quotient_and_remainder(p, q):
    if q:
        quotient, remainder = p.divide(q)
        assert quotient * q + remainder == p
        assert p.divide_exactly(q) == (None if remainder else quotient)


@given(polynomials, st.sampled_from(("N", "B", "")), st.fractions().filter(bool))
def test_division_by_one_term_is_division(p, name, scale):
    divisor = Polynomial.constant(scale) * (Polynomial.symbol(name) if name else 1)
    quotient, remainder = p.divide(divisor)
    found = p.divide_exactly(divisor)
    assert found == (None if remainder else quotient)
    if found is not None:
        assert all(type(one) is int or one.denominator > 1 for one in found.coefficients.values())


@settings(deadline=None)
@given(polynomials, points)
def test_printing_loses_nothing(p, point):
    assert eval(p.text().replace("/", "*1/"), {}, dict(point)) == p.evaluate(point)
    assert Fraction(str(p.to_sympy().as_expr().subs({**point}))) == p.evaluate(point)


def test_text_puts_high_degrees_first_and_follows_the_order_of_symbols():
    value = 2 * s * B + 2 - N
    assert value.text(("s", "B")) == "2*s*B - N + 2"
    assert (2 - N).text() == "2 - N"
    assert (-N).text() == "-N"
    assert ZERO.text() == "0"
    assert (N * Fraction(1, 2)).text() == "N/2"
    assert (B * B).text() == "B*B"


def test_coefficients():
    value = 2 * s * B * N + B - 3
    assert value.coefficient("N") == 2 * s * B
    assert value.coefficient("B") == 2 * s * N + 1
    assert value.coefficient("E") == ZERO
    assert (N * N + N).coefficient("N") is None
    assert value.without(["N"]) == B - 3


def test_what_is_one_symbol_says_which():
    x, y = Polynomial.symbol("x"), Polynomial.symbol("y")
    assert (x.only_symbol, (x + y - x).only_symbol) == ("x", "y")
    assert [one.only_symbol for one in (ZERO, ONE, x + 1, 2 * y, -x, x * x, x * y, x + y)] == [""] * 8


def test_constants():
    assert Polynomial.constant(Fraction(3, 2)).constant_value() == Fraction(3, 2)
    assert ZERO.is_constant
    assert ONE == 1
    with pytest.raises(ValueError, match="constant"):
        N.constant_value()
    with pytest.raises(KeyError):
        N.evaluate({"B": 1})


def test_symbols_that_mean_something_to_sympy_are_plain_names():
    euler = Polynomial.symbol("E") * Polynomial.symbol("I") + Polynomial.symbol("S")
    assert euler.symbols == {"E", "I", "S"}
    assert euler.evaluate({"E": 2, "I": 3, "S": 4}) == 10


def test_symbols_that_cancel_do_not_occur():
    assert (N + B - N).symbols == {"B"}
    assert (N + B - N) == B
    assert hash(N + B - N) == hash(B)


def test_constraints_are_equal_when_they_say_the_same():
    assert at_most(N, B) == at_most(N + 1, B + 1)
    assert at_most(N, B) != at_most(B, N)
    assert at_most(N, B) != less_than(N, B)
    assert equal(N, B) == equal(B, N)
    assert len({equal(N, B), equal(B, N), at_most(N, B), at_most(N - B, 0)}) == 2


def test_negation_is_the_other_half():
    for constraint in (at_most(N, B), less_than(2 * N, B + 1)):
        for n in range(4):
            for b in range(4):
                assert constraint.holds({"N": n, "B": b}) != constraint.negated().holds({"N": n, "B": b})
    with pytest.raises(ValueError, match="equation"):
        equal(N, B).negated()


def test_substitution_in_constraints():
    assert at_most(N, B).substitute({"N": 2 * s}) == at_most(2 * s, B)
    assert str(Constraint(2 * s * B + 2, "<=", N)) == "2*B*s + 2 <= N"
