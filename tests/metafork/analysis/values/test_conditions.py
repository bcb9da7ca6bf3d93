from itertools import product
from random import Random

import pytest

from metafork.algebra.polynomial import Polynomial, equal, less_than
from metafork.analysis.values.conditions import MOST_CASES, meaning
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.evaluation import integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import COMPARISONS, IntConst, Unary, Var, binary

NAMES = ("x", "y", "z")
POINTS = [dict(zip(NAMES, values, strict=True)) for values in product(range(4), repeat=len(NAMES))]


def scope(unknown=()):
    return Scope({name: None if name in unknown else Polynomial.symbol(name) for name in NAMES}, NAMES, closed=True)


def term(numbers):
    first, more = Var(numbers.choice(NAMES)), numbers.choice((IntConst(1), Var(numbers.choice(NAMES))))
    return binary("+", first, more) if numbers.random() < 0.4 else first


def condition(numbers, depth):
    choice = numbers.random()
    if depth and choice < 0.25:
        return Unary("!", condition(numbers, depth - 1), ScalarType.INT)
    if depth and choice < 0.9:
        return binary(numbers.choice(("&&", "||")), condition(numbers, depth - 1), condition(numbers, depth - 1))
    return binary(numbers.choice(sorted(COMPARISONS)), term(numbers), term(numbers))


def holds(found, point):
    return all(any(all(c.holds(point) for c in case) for case in choice) for choice in found.choices)


@pytest.mark.parametrize("unknown", [(), ("z",)])
def test_a_meaning_never_says_more_than_its_condition_and_an_exact_one_says_it_all(unknown):
    numbers = Random(7)
    exact = weaker = 0
    for _ in range(400):
        expr, truth = condition(numbers, 3), numbers.random() < 0.5
        found = meaning(scope(unknown), expr, truth)
        for point in POINTS:
            said, real = holds(found, point), (integer_value(expr, point) != 0) == truth
            assert said or not real, (expr, truth, point)
            assert said == real or not found.exact, (expr, truth, point)
        assert all(len(choice) <= MOST_CASES for choice in found.choices)
        exact += found.exact
        weaker += not found.exact
    assert exact > 20
    assert weaker > 5


def test_an_inequality_is_the_choice_of_its_two_sides():
    x, y = Polynomial.symbol("x"), Polynomial.symbol("y")
    for expr, truth in ((binary("!=", Var("x"), Var("y")), True), (binary("==", Var("x"), Var("y")), False)):
        found = meaning(scope(), expr, truth)
        assert found.alternatives == (((less_than(x, y),), (less_than(y, x),)),)
        assert found.constraints == ()
    assert meaning(scope(), binary("!=", Var("x"), Var("y")), False).constraints == (equal(x, y),)


def test_an_integer_is_a_condition():
    x = Polynomial.symbol("x")
    assert meaning(scope(), Var("x")).choices == (((less_than(x, 0),), (less_than(0, x),)),)
    for expr, truth in ((Var("x"), False), (Unary("!", Var("x"), ScalarType.INT), True)):
        found = meaning(scope(), expr, truth)
        assert found.exact
        assert found.constraints == (equal(x, Polynomial.constant(0)),)


def test_alternatives_have_the_cases_of_both_sides_as_long_as_they_are_few():
    x, y, z = (Var(name) for name in NAMES)
    two, other = binary("!=", x, y), binary("!=", y, z)
    four, eight = binary("&&", two, other), binary("&&", binary("&&", two, other), binary("!=", x, z))
    for expr, count in ((two, 2), (four, 4), (eight, 8)):
        (choice,) = meaning(scope(), binary("||", expr, binary("&&", two, binary("<", z, x)))).choices or ((),)
        assert len(choice) == (count + 2 if count + 2 <= MOST_CASES else 0)


def test_what_may_hold_for_an_unknown_reason_leaves_no_choice():
    known, unknown = binary("<", Var("x"), Var("y")), binary("<", Var("z"), Var("y"))
    assert meaning(scope(("z",)), binary("||", known, unknown)).choices == ()
    assert meaning(scope(("z",)), binary("&&", known, unknown)).constraints == (
        less_than(Polynomial.symbol("x"), Polynomial.symbol("y")),
    )


def test_floating_comparisons_say_nothing():
    left, right = Var("x", ScalarType.FLOAT), Var("y", ScalarType.FLOAT)
    assert not meaning(scope(), binary("!=", left, right)).exact
    assert meaning(scope(), binary("!=", left, right)).choices == ()
