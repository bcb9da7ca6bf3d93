"""Integer expressions and conditions as isl sees them, against the values that C gives them."""

from itertools import product
from random import Random

import islpy as isl
import pytest

from metafork.comprehensive.verification.translation.affine import AffineScope, NotAffineError, is_number, number_of
from metafork.ir.arithmetic.evaluation import integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import COMPARISONS, Cast, Conditional, IntConst, Unary, Var, binary

NAMES = ("x", "y")
POINTS = [dict(zip(NAMES, values, strict=True)) for values in product(range(-3, 6), repeat=len(NAMES))]
INDEX = binary("+", binary("*", Var("i"), Var("N")), Var("j"))


def scope(inside="{ : }"):
    made = AffineScope()
    for name in NAMES:
        made.names[name] = {(): made.symbol(name)}
    made.domain = isl.Set(inside)
    return made


def linearised(inside):
    """Return a scope in which ``N`` is a symbolic parameter and ``i`` and ``j`` are loop variables."""
    made = AffineScope()
    for name in ("N", "i", "j"):
        made.names[name] = {(): made.symbol(name)}
    made.symbols["N"] = made.symbol("N")
    made.domain = isl.Set(inside)
    return made


def number(numbers, depth):
    choice = numbers.random()
    if not depth or choice < 0.2:
        return Var(numbers.choice(NAMES)) if numbers.random() < 0.7 else IntConst(numbers.randrange(4))
    if choice < 0.6:
        return binary(numbers.choice("+-"), number(numbers, depth - 1), number(numbers, depth - 1))
    if choice < 0.7:
        return binary("*", IntConst(numbers.randrange(4)), number(numbers, depth - 1))
    if choice < 0.9:
        return binary(numbers.choice("/%"), number(numbers, depth - 1), IntConst(numbers.randrange(1, 4)))
    then, otherwise = number(numbers, depth - 1), number(numbers, depth - 1)
    return Conditional(truth(numbers, 1), then, otherwise, ScalarType.INT)


def truth(numbers, depth):
    if depth and numbers.random() < 0.5:
        if numbers.random() < 0.3:
            return Unary("!", truth(numbers, depth - 1), ScalarType.INT)
        return binary(numbers.choice(("&&", "||")), truth(numbers, depth - 1), truth(numbers, depth - 1))
    return binary(numbers.choice(sorted(COMPARISONS)), number(numbers, 1), number(numbers, 1))


def at(points, point):
    """Say whether a set of parameter values holds a point."""
    where = " and ".join(f"{name} = {value}" for name, value in point.items())
    return not points.intersect(isl.Set(f"[{', '.join(point)}] -> {{ : {where} }}")).is_empty()


def test_expressions_have_the_values_of_c():
    numbers = Random(3)
    for _ in range(60):
        expr, made = number(numbers, 3), scope()
        value = made.value(expr)
        for point in numbers.sample(POINTS, 6):
            assert at(value.eq_set(made.constant(integer_value(expr, point))), point), (expr, point)


def test_conditions_hold_where_they_do_in_c():
    numbers = Random(4)
    for _ in range(60):
        expr = truth(numbers, 3)
        holds = scope().condition(expr)
        for point in numbers.sample(POINTS, 6):
            assert at(holds, point) == bool(integer_value(expr, point)), (expr, point)


def test_a_variable_of_few_values_may_multiply_another():
    expr = binary("*", Var("x"), Var("y"))
    inside = scope("[x] -> { : 0 <= x < 3 }")
    for point in (point for point in POINTS if 0 <= point["x"] < 3):
        assert at(inside.value(expr).eq_set(inside.constant(point["x"] * point["y"])), point)
    with pytest.raises(NotAffineError, match="product of two variables"):
        scope().value(expr)


def test_an_index_splits_into_row_and_column_where_the_column_stays_in_its_row():
    inside = linearised("[N, i, j] -> { : 0 <= j < N }")
    row, column = inside.coordinates(INDEX)
    assert row.is_equal(inside.symbol("i"))
    assert column.is_equal(inside.symbol("j"))
    with pytest.raises(NotAffineError, match="rows and columns"):
        linearised("[N, i, j] -> { : 0 <= j <= N }").coordinates(INDEX)


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (Var("z"), "z is not determined"),
        (binary("/", Var("x"), Var("y")), "divisor"),
        (binary("-", Cast(ScalarType.UNSIGNED_INT, Var("x")), IntConst(1)), "may leave the range of unsigned int"),
        (binary("<<", Var("x"), IntConst(1)), "not affine"),
    ],
)
def test_what_isl_cannot_say_has_a_reason(expr, reason):
    made = scope()
    with pytest.raises(NotAffineError, match=reason):
        made.value(expr)
    assert made.known(expr) is None


def test_numbers_are_recognised():
    made = scope()
    assert number_of(made.value(binary("-", IntConst(3), IntConst(5)))) == -2
    assert number_of(made.symbol("x")) is None
    assert is_number(made.constant(4))
