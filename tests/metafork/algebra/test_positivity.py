from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra.polynomial import Constraint, Polynomial, at_most, less_than
from metafork.algebra.positivity import Positivity, rooms
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.facts import program_facts
from tests.metafork.interpreter import program
from tests.metafork.programs import JACOBI

X, Y, Z = (Polynomial.symbol(name) for name in "xyz")
SMALL = st.integers(-3, 3)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=0, max_size=3), st.tuples(*[SMALL] * 5))
def test_a_certificate_is_never_wrong(premises, value):
    known = [at_most(a * X + b * Y + c, Z) for a, b, c in premises]
    goal = value[0] * X * Y + value[1] * Y * Z + value[2] * X + value[3] * Z + value[4]
    if Positivity(known).positive(goal, search=True):
        for x, y, z in product(range(5), repeat=3):
            point = {"x": x, "y": y, "z": z}
            if all(constraint.holds(point) for constraint in known):
                assert goal.evaluate(point) >= 1


def test_certificates_use_ranges_and_quotients():
    facts = program_facts(program(JACOBI))
    i, j, k, n, b = (Polynomial.symbol(name) for name in ("i", "j", "k", "N", "B"))
    s, dim = Polynomial.symbol("s"), Polynomial.symbol("dim")
    inside = (less_than(i, dim), less_than(j, b), less_than(k, s))
    last = i * s * b + k * b + j + 2
    known = Positivity((*facts.constraints, *inside), facts.derived)
    assert known.positive(n - last, search=True)
    assert not known.positive(n - last - 1, search=True)
    assert known.non_negative(n - last - 1, search=True)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(SMALL, SMALL, SMALL, st.sampled_from(["<=", "<", "=="])), max_size=4), st.tuples(*[SMALL] * 5)
)
def test_what_follows_from_premises_that_are_added_up_holds(premises, value):
    known = [Constraint(a * X + b * X * Y + c, relation, Z) for a, b, c, relation in premises]
    goal = value[0] * X * Y + value[1] * Y + value[2] * X + value[3] * Z + value[4]
    if Positivity(known).follows_from(goal, rooms(known)):
        for x, y, z in product(range(5), repeat=3):
            point = {"x": x, "y": y, "z": z}
            if all(constraint.holds(point) for constraint in known):
                assert goal.evaluate(point) >= 0


def test_premises_are_added_up_and_rounded():
    n, half, b, dim = (Polynomial.symbol(name) for name in ("n", "half", "b", "dim"))
    known = [at_most(2 * half, n), less_than(n, 2 * half + 2), at_most(2 * b * dim, n), at_most(1, dim)]
    assert Positivity(known).follows_from(half - b, rooms(known))
    assert not Positivity(known).follows_from(half - b - 1, rooms(known))
    assert not Positivity(known).follows_from(half - b, rooms(known), steps=1)


def test_each_quotient_of_a_dividend_tells_of_it():
    n, p, q = (Polynomial.symbol(name) for name in "npq")
    quotients = [DerivedSymbol("p", "floor", (n, Polynomial.constant(64))), DerivedSymbol("q", "floor", (n, X))]
    known = Positivity([at_most(1, X)], quotients)
    assert known.non_negative(n - 64 * p)
    assert known.non_negative(n - X * q)
    assert not known.non_negative(n - 64 * p - X * q)
