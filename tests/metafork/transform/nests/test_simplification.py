"""Simplification against C's integers: types are kept, and so is every value that C defines."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metafork.ir.arithmetic.evaluation import NoValueError, integer_value
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.program import Cast, Conditional, IntConst, Unary, Var, binary
from metafork.transform.nests.simplification import factors, product, simplified, summands

INT, UNSIGNED, LONG, CHAR = ScalarType.INT, ScalarType.UNSIGNED_INT, ScalarType.LONG, ScalarType.CHAR
LIMITS = {INT: (-(2**31), 2**31 - 1), UNSIGNED: (0, 2**32 - 1), LONG: (-(2**63), 2**63 - 1), CHAR: (-128, 127)}
VARIABLES = {"x": INT, "y": INT, "u": UNSIGNED, "l": LONG, "c": CHAR}
CONSTANTS = st.builds(IntConst, st.sampled_from([0, 0, 1, 1, 2, 3]), st.sampled_from([INT, INT, UNSIGNED, LONG]))
NEUTRAL = "+-*/%"
OTHERS = ["<<", ">>", "&", "|", "^", "<", "==", "&&"]


def variables(names=tuple(VARIABLES)):
    return st.sampled_from(names).map(lambda name: Var(name, VARIABLES[name]))


def number(type_):
    low, high = LIMITS[type_]
    special = [value for value in (low, high, -1, 0, 1, 2, 7) if low <= value <= high]
    return st.sampled_from(special) | st.integers(max(low, -9), min(high, 9))


def conditional(condition, then, otherwise):
    return Conditional(condition, then, otherwise, common_type(then.type, otherwise.type))


def larger(inner):
    return st.one_of(
        st.builds(binary, st.sampled_from([*NEUTRAL, *NEUTRAL, *OTHERS]), inner, inner),
        st.builds(binary, st.sampled_from([*NEUTRAL, "<<", ">>"]), inner, CONSTANTS),
        st.builds(binary, st.sampled_from(NEUTRAL), CONSTANTS, inner),
        st.builds(Cast, st.sampled_from(list(LIMITS)), inner),
        st.builds(conditional, inner, inner, inner),
        inner.map(lambda operand: Unary("-", operand, common_type(operand.type, INT))),
    )


EXPRESSIONS = st.recursive(variables() | CONSTANTS, larger, max_leaves=8)
POINTS = st.fixed_dictionaries({name: number(type_) for name, type_ in VARIABLES.items()})


def value(expr, point):
    try:
        return integer_value(expr, point)
    except NoValueError:
        return None


@settings(max_examples=400)
@given(EXPRESSIONS, POINTS)
def test_types_and_defined_values_are_kept(expr, point):
    after = simplified(expr)
    assert after.type is expr.type
    before = value(expr, point)
    assume(before is not None)
    assert value(after, point) == before


@settings(max_examples=400)
@given(variables(), st.sampled_from([*NEUTRAL, "<<", ">>"]), CONSTANTS, st.booleans(), POINTS)
def test_one_operation_with_a_constant(variable, op, constant, first, point):
    expr = binary(op, constant, variable) if first else binary(op, variable, constant)
    after = simplified(expr)
    assert after.type is expr.type
    before = value(expr, point)
    assume(before is not None)
    assert value(after, point) == before


@settings(max_examples=400)
@given(EXPRESSIONS)
def test_nothing_is_left_to_simplify(expr):
    assert simplified(simplified(expr)) == simplified(expr)


SMALL = st.fixed_dictionaries(
    {name: st.integers(0 if type_ is UNSIGNED else -9, 9) for name, type_ in VARIABLES.items()}
)
ARITHMETIC = st.recursive(
    variables() | CONSTANTS, lambda inner: st.builds(binary, st.sampled_from("+-*"), inner, inner), max_leaves=6
)


@settings(max_examples=400)
@given(ARITHMETIC, SMALL)
def test_summands_and_factors_make_up_their_expression(expr, point):
    """As numbers, up to the wrapping of unsigned types."""
    modulus = 2 ** (8 * expr.type.size)
    whole = value(expr, point)
    assume(whole is not None)
    terms = [(-1 if negative else 1, value(term, point)) for negative, term in summands(expr)]
    assume(all(term is not None for _, term in terms))
    assert (sum(sign * term for sign, term in terms) - whole) % modulus == 0
    again = value(product(factors(expr), expr.type), point)
    assume(again is not None)
    assert (again - whole) % modulus == 0
    assert product(factors(expr), expr.type).type is expr.type


def test_factors_are_those_of_products_of_one_type():
    x, y, long, char = (Var(name, VARIABLES[name]) for name in "xylc")
    plain, inner = binary("+", x, y), binary("*", x, y)
    assert factors(binary("*", inner, binary("*", plain, IntConst(3)))) == [x, y, plain, IntConst(3)]
    # The inner product may wrap where the outer one does not.
    assert factors(binary("*", inner, long)) == [inner, long]
    assert factors(binary("*", binary("*", char, x), y)) == [char, x, y]
    assert factors(plain) == [plain]
