"""What is read from expressions that choose, against C's own arithmetic at random points."""

from random import Random

import pytest

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.symbols import Value
from metafork.analysis.values.choices import extremum_of, upper_bounds
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.evaluation import NoValueError, converted, integer_value
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.program import Cast, Conditional, IntConst, Var, binary

INT, LONG, UNSIGNED, SHORT = ScalarType.INT, ScalarType.LONG, ScalarType.UNSIGNED_INT, ScalarType.SHORT
SIZES = (0, 1, 2, 5, 100, 32767, 2**31 - 1)
TYPES = {"n": INT, "m": INT, "i": INT, "w": LONG, "u": UNSIGNED}
"""``w`` is not known in the scope."""


def scope():
    values = {name: Polynomial.symbol(name) for name in "nmiu"}
    limits = [at_most(Polynomial.symbol(name), TYPES[name].greatest) for name in "nmu"]
    result = Scope(values, "nmu", premises=limits)
    result.ranges.enter("i", Polynomial.symbol("n"))
    return result


def choice(condition, then, otherwise):
    return Conditional(condition, then, otherwise, common_type(then.type, otherwise.type))


def expression(random, depth):
    if depth == 0 or random.random() < 0.2:
        name = random.choice("nmiwu")
        plain = Var(name, TYPES[name])
        return random.choice((plain, plain, IntConst(random.choice((0, 0, 1, 7))), binary("-", plain, IntConst(1))))
    if random.random() < 0.2:
        return Cast(random.choice((INT, LONG, UNSIGNED, SHORT)), expression(random, depth - 1))
    left, right = expression(random, depth - 1), expression(random, depth - 1)
    sides = random.choice(((left, right), (left, right), (right, left), (left, expression(random, 0))))
    return choice(binary(random.choice(("<", "<=", ">", ">=", "==", "!=")), *sides), left, right)


def points(random):
    for _ in range(12):
        n = random.choice(SIZES)
        point = {"n": n, "m": random.choice(SIZES), "u": random.choice((*SIZES, 2**32 - 1))}
        point["w"] = random.choice((0, 1, -1, n, n + 1, -(2**31), -(2**31) - 1, 2**31, 2**40, -(2**40)))
        if n:
            yield point | {"i": random.choice((0, n - 1, n // 2))}


def checked(seed):
    random = Random(seed)
    expr = expression(random, random.choice((1, 2, 3)))
    type_ = random.choice((None, None, INT, LONG, UNSIGNED))
    known = scope()
    most, exact = upper_bounds(known, expr, type_), extremum_of(known, expr, type_)
    for point in points(random):
        try:
            value = integer_value(expr, point)
        except NoValueError:
            continue
        value = value if type_ is None else converted(value, type_)
        for bound in most.operands:
            assert value <= bound.evaluate(point), (seed, str(bound), point)
        if exact:
            numbers = [operand.evaluate(point) for operand in exact.operands]
            assert value == (min(numbers) if exact.kind == "minimum" else max(numbers)), (seed, point)
    return bool(most), bool(most) and not exact


def test_a_value_does_not_exceed_its_bounds_and_is_its_extremum():
    found = [checked(seed) for seed in range(600)]
    assert sum(bounded for bounded, _ in found) > 160
    assert sum(alone for _, alone in found) > 24


@pytest.mark.slow
def test_a_value_does_not_exceed_its_bounds_at_length():
    assert any(alone for _, alone in map(checked, range(10_000, 60_000)))


def test_the_end_of_a_copy_is_bounded_and_no_extremum():
    n, i = Var("n", INT), Var("i", INT)
    room = binary("-", Cast(LONG, Var("w", LONG)), Cast(LONG, i))  # nothing is known of w
    inner = Conditional(binary("<", IntConst(0), room), Cast(INT, room), IntConst(0), INT)
    end = Conditional(binary("<", room, Cast(LONG, n)), inner, n, INT)
    assert not extremum_of(scope(), end)
    assert upper_bounds(scope(), end) == Value("bounded", (Polynomial.symbol("n"),))
    # Without the test of its sign the room may be cut to anything.
    cut = Conditional(binary("<", room, Cast(LONG, n)), Cast(INT, room), n, INT)
    assert not upper_bounds(scope(), cut)


def test_a_number_that_was_a_float_has_no_bound():
    # (float)16777219 is 16777220.
    through_float = Cast(INT, Cast(ScalarType.FLOAT, Var("n", INT)))
    assert not upper_bounds(scope(), through_float)
    assert upper_bounds(scope(), Cast(INT, Cast(LONG, Var("n", INT))))
