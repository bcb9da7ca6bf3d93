from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra.affine import affine_conflict
from metafork.algebra.polynomial import Polynomial, at_most, equal, less_than
from metafork.algebra.positivity import Positivity
from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from metafork.analysis.facts import program_facts
from strategies.loops.dependence import iterations_independent
from tests.metafork.programs import JACOBI, MATMUL, TRANSPOSE
from tests.strategies.interpreter import program

X, Y, Z = (Polynomial.symbol(name) for name in "xyz")
SMALL = st.integers(-3, 3)


def test_the_papers_granularity_loops_are_independent():
    for text, loop in ((JACOBI, "k"), (TRANSPOSE, "k"), (MATMUL, "w")):
        assert iterations_independent(program(text), loop, Analyses()).verdict is Verdict.YES


def test_a_sum_over_a_loop_is_a_conflict():
    proof = iterations_independent(program(MATMUL), "z", Analyses())
    assert proof.verdict is Verdict.NO
    assert "element of c" in proof.reason


def test_a_guarded_conflict_is_not_called_certain():
    text = MATMUL.replace("c[p][q + x] +=", "if (w == 0) c[p][q] +=")
    assert iterations_independent(program(text), "w", Analyses()).verdict is Verdict.UNKNOWN


def test_systems_that_are_not_affine_are_not_called_solvable():
    assert affine_conflict([equal(X * Y, 6)]) is None
    assert affine_conflict([equal(X * Y, 6), less_than(X, 0)]) is False
    assert affine_conflict([equal(2 * X, 2 * Y + 1)]) is False
    assert affine_conflict([equal(2 * X, Y), less_than(3, Y)]) is True


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(SMALL, SMALL, SMALL, st.sampled_from(["<=", "<", "=="])), min_size=1, max_size=4))
def test_affine_systems_are_decided_as_by_trying_all_values(rows):
    make = {"<=": at_most, "<": less_than, "==": equal}
    constraints = [make[relation](a * X + b * Y, c) for a, b, c, relation in rows]
    bounded = [*constraints, at_most(X, 6), at_most(Y, 6)]
    solvable = any(all(c.holds({"x": x, "y": y}) for c in bounded) for x, y in product(range(7), repeat=2))
    assert affine_conflict(bounded) is solvable


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
