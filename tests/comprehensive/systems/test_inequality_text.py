from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metafork.algebra.polynomial import ONE, Constraint, Polynomial, at_most, equal, less_than
from metafork.comprehensive.systems.inequality_text import InequalityError, definition, inequality, value

X, Y = Polynomial.symbol("x"), Polynomial.symbol("I")
SYMBOLS = ("x", "I")

monomials = st.sampled_from([(), (("x", 1),), (("I", 2),), (("I", 1), ("x", 1))])
polynomials = st.dictionaries(monomials, st.fractions(-9, 9, max_denominator=4), max_size=4).map(Polynomial)


@given(polynomials, st.sampled_from(["<=", "<", "=="]), polynomials)
def test_what_is_printed_is_read(left, relation, right):
    constraint = Constraint(left, relation, right)
    again = inequality(constraint.text(), SYMBOLS)
    assert (again.left, again.relation, again.right) == (left, relation, right)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x >= 3*I", at_most(3 * Y, X)),
        ("x > -I - 1", less_than(-Y - 1, X)),
        ("2*(x + 1)*I == x/2", equal(2 * (X + 1) * Y, X * Fraction(1, 2))),
    ],
)
def test_forms(text, expected):
    assert inequality(text, SYMBOLS) == expected


def test_values_and_definitions():
    assert value("2*x + 1", SYMBOLS) == (2 * X + 1, ONE)
    assert value("(x)/(I*I)", SYMBOLS) == (X, Y * Y)
    assert value("(x + 1)*I", SYMBOLS) == ((X + 1) * Y, ONE)
    for text in ("(x - 2)/(x*I)", "x/I", "ceil((x + 1)/4)", "max(x, I, 3)", "min(x, 2*I)"):
        assert definition("d", text, SYMBOLS).definition() == text.replace("x*I", "I*x")


@pytest.mark.parametrize(
    "text", ["x", "x <", "x <= 1 <= 2", "x / I <= 1", "x ^ 2 <= 1", "x <= )", "(x <= 1", "x & 1 <= 0", "", "x / 0 <= 1"]
)
def test_what_is_no_inequality(text):
    with pytest.raises(InequalityError):
        inequality(text, SYMBOLS)


def test_the_character_that_has_no_place_is_told():
    with pytest.raises(InequalityError, match="'&' has no place"):
        inequality("x && 1 <= 0", SYMBOLS)


def test_an_unknown_name_is_told():
    with pytest.raises(InequalityError) as caught:
        inequality("x <= E", SYMBOLS)
    assert caught.value.unknown == "E"


def test_a_long_text_is_shown_by_its_start():
    for length, shown in ((200, 200), (201, 103)):
        with pytest.raises(InequalityError) as caught:
            inequality("x" * (length - 5) + " <= 1", SYMBOLS)
        assert str(caught.value).partition(": ")[0] == repr("x" * 195 + " <= 1" if shown == 200 else "x" * 100 + "...")
