from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra.polynomial import ONE, Polynomial, at_most, equal, less_than
from metafork.algebra.prover import Verdict
from metafork.algebra.symbols import DerivedSymbol
from metafork.comprehensive.systems.signs import Signs, integral
from metafork.comprehensive.systems.solver import PathSolver
from metafork.comprehensive.systems.systems import Consistency, Systems
from tests.comprehensive.case_discussion.made_up import start, symbol

S, B, N, Z, R = (symbol(name) for name in ("s", "B", "N", "Z", "R"))


def test_signs_prove_the_papers_contradictions():
    signs = Signs([at_most(1, S), at_most(1, B), at_most(0, Z)])
    assert signs.empty((less_than(Z, 2 * B + 2),), at_most(2 * S * B + 2, Z))
    assert not signs.empty((less_than(Z, 2 * S * B + 2),), at_most(2 * B + 2, Z))
    assert signs.empty((), less_than(Z, 0))
    assert signs.empty((at_most(Z, B),), less_than(B, Z))


def test_signs_use_integrality_of_integers_only():
    x, y = symbol("x"), symbol("y")
    facts = [at_most(0, x), at_most(0, y)]
    gap = (less_than(x, y + 1),)
    assert Signs(facts).empty(gap, less_than(y, x))
    assert not Signs(facts, frozenset({"x"})).empty(gap, less_than(y, x))


def test_integral_keeps_the_condition():
    half = integral(at_most(S * Fraction(1, 2), B * Fraction(1, 3)))
    assert half.text() == "3*s <= 2*B"


names = st.sampled_from(["s", "B"])
linear = st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(-3, 3), st.integers(-6, 6))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(linear, min_size=1, max_size=4))
def test_verdicts_agree_with_all_small_points(rows):
    """A system called empty has no point among small ones, and a witness is a point."""
    system = tuple(at_most(a * S + b * B + c * Z + d, S * B) for a, b, c, d in rows)
    begin = start(data=(), machine=("Z",))
    answer = Systems(begin).consistent(system[:-1], system[-1]) if Systems(begin).has_solution().kept else None
    # ``consistent`` takes its path to be consistent, so look at prefixes first.
    for length in range(1, len(system)):
        if not Systems(begin).consistent(system[: length - 1], system[length - 1]).kept:
            return
    small = [{"s": s, "B": b, "Z": z} for s in range(1, 5) for b in range(1, 5) for z in range(5)]
    holding = [point for point in small if all(c.holds(point) for c in system)]
    if answer.verdict is Verdict.NO:
        assert holding == []
    if answer.witness is not None:
        assert all(c.holds(answer.witness) for c in (*begin.constraints, *system))


def test_irredundance_drops_what_follows_over_the_integers():
    systems = Systems(start())
    path = (less_than(Z, 2 * S * B + 2), less_than(Z, 2 * B + 2), at_most(0, Z))
    assert systems.irredundant(path) == (less_than(Z, 2 * B + 2),)
    # 3 < 2*B and 2 <= B say the same of an integer; one of them stays.
    assert len(systems.irredundant((less_than(3, 2 * B), at_most(2, B)))) == 1


def test_implication_has_three_values():
    systems = Systems(start())
    assert systems.implies((at_most(S * B, Z),), at_most(S, Z)) is Verdict.YES
    assert systems.implies((at_most(S, Z),), at_most(S * B, Z)) is Verdict.NO
    assert systems.implies((at_most(S, 3), at_most(3, S)), equal(S, Polynomial.constant(3))) is Verdict.YES


def test_unknown_drops_nothing():
    # x^3 + y^3 = z^3 has no positive solution; no solver in this time says so, and reals have one.
    x, y, z = symbol("x"), symbol("y"), symbol("z")
    begin = start(program=("x", "y", "z"), data=(), machine=("Z",))
    systems = Systems(begin)
    answer = systems.consistent((), equal(x * x * x + y * y * y, z * z * z))
    assert answer.kept
    assert answer.witness is None
    assert systems.implies((), less_than(z * z * z, x * x * x + y * y * y + 1)) is not Verdict.YES


def test_a_quotient_is_known_to_the_solver():
    dim = DerivedSymbol("dim", "floor", (N - 2, S * B))
    systems = Systems(start(derived=(dim,), more=(at_most(1, symbol("dim")),)))
    assert systems.implies((), at_most(S * B + 2, N)) is Verdict.YES
    assert systems.implies((), at_most(S * B + 3, N)) is Verdict.NO
    assert systems.has_solution().witness["dim"] >= 1


def test_a_path_solver_goes_back_and_forth():
    solver = PathSolver([at_most(1, B)], integers=True)
    one, two = at_most(B, 5), less_than(5, B)
    assert solver.check((one,)) == "sat"
    assert solver.check((one, two)) == "unsat"
    assert solver.check((two,)) == "sat"
    assert solver.model()["B"] > 5
    assert solver.check((), (one,), (two,)) == "unsat"
    solver.add([at_most(B, 3)])
    assert solver.check((two,)) == "unsat"
    assert solver.check(()) == "sat"
    assert solver.calls == 6


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
def test_extrema_have_their_values(kind):
    top = DerivedSymbol("m", kind, (S, B))
    begin = start(derived=(top,))
    systems = Systems(begin)
    m = symbol("m")
    goal = at_most(S, m) if kind == "maximum" else at_most(m, S)
    assert systems.implies((), goal) is Verdict.YES
    assert systems.implies((at_most(B, S),), equal(m, S if kind == "maximum" else B)) is Verdict.YES
    assert systems.implies((), equal(m, S)) is Verdict.NO
    assert systems.implies((), at_most(ONE, m)) is Verdict.YES


def test_systems_are_joined_without_gain_or_loss():
    systems = Systems(start())
    fits, spills = at_most(S * B, Z), less_than(Z, S * B)
    low, high, rest = at_most(5, R), at_most(7, R), less_than(R, 7)
    assert systems.joined(((high, fits), (low, rest, fits))) == ((fits, low),)
    # Each side has a condition that the other does not imply: there is no one system for the union.
    apart = ((high, fits), (low, rest))
    assert systems.joined(apart) == apart
    four = ((high, fits), (high, spills), (rest, fits), (rest, spills))
    assert systems.joined(four) == ((),)


def test_a_bound_without_a_constant_is_zero():
    signs = Signs([at_most(0, S), less_than(0, B)])
    assert not signs.empty((), at_most(S, 0))
    assert signs.empty((), less_than(S, 0))
    assert signs.empty((), at_most(B, 0))
    assert not signs.empty((), at_most(B, 1))


CEILING = DerivedSymbol("ceil1", "ceiling", (S, Polynomial.constant(8)))
tiled = st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-2, 2), st.integers(-3, 3), st.integers(-90, 90))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(tiled, min_size=1, max_size=4))
def test_conditions_that_are_added_up_and_larger_points_tell_no_lies(rows):
    """Without a solver: what is called empty has no point with blocks of usual extents, and a witness is a point."""
    ceiling = symbol("ceil1")
    system = tuple(at_most(a * B * ceiling + b * S * B + c * Z + d * S + e, 0) for a, b, c, d, e in rows)
    begin = start(data=(), machine=("Z",))
    systems = Systems(begin)
    systems.define(CEILING)
    systems._by_solver = lambda _: Consistency(Verdict.UNKNOWN)
    for length in range(1, len(system)):
        if not systems.consistent(system[: length - 1], system[length - 1]).kept:
            return
    answer = systems.consistent(system[:-1], system[-1])
    extents = (1, 2, 3, 7, 8, 9, 16, 32, 33)
    points = [{"s": s, "B": b, "ceil1": -(-s // 8), "Z": z} for s in extents for b in extents for z in (0, 1, 45, 90)]
    if answer.verdict is Verdict.NO:
        assert not any(all(c.holds(point) for c in system) for point in points)
    if answer.witness is not None:
        assert all(c.holds(answer.witness) for c in (*begin.constraints, *CEILING.constraints(), *system))
    for s, b in ((1, 32), (16, 16), (3, 5)):
        placed = systems.consistent_at({"s": s, "B": b}, system)
        rests = [(c, a * b * -(-s // 8) + x * s * b + d * s + e) for a, x, c, d, e in rows]
        least = max([0, *(-(rest // c) for c, rest in rests if c < 0)])
        here = least <= min([least, *(-rest // c for c, rest in rests if c > 0)])
        here = here and all(rest <= 0 for c, rest in rests if c == 0)
        assert placed.verdict is (Verdict.YES if here else Verdict.NO)
        if placed.witness is not None:
            assert (placed.witness["s"], placed.witness["B"], placed.witness["Z"]) == (s, b, least)


def test_a_product_of_a_ceiling_is_excluded_without_a_solver():
    ceiling, threads = symbol("ceil1"), symbol("Z")
    systems = Systems(start(data=(), machine=("Z",)))
    systems.define(CEILING)

    assert systems.consistent((at_most(S * B, threads), at_most(32, B * ceiling)), less_than(threads, B * ceiling)) == (
        Consistency(Verdict.NO)
    )
    found = systems.consistent((at_most(S * B, threads),), at_most(32, B * ceiling))
    assert found.witness is not None
    assert found.witness["B"] * found.witness["ceil1"] >= 32
    assert systems.solver_calls == 0
