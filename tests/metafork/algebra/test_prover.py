from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra import prover as prover_module
from metafork.algebra.polynomial import Polynomial, at_most, equal, less_than
from metafork.algebra.prover import Prover, Verdict
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.analysis.facts import program_facts
from tests.metafork.programs import JACOBI, MATADD, TRANSPOSE, program

N, B, s, q, x, y = (Polynomial.symbol(name) for name in ("N", "B", "s", "q", "x", "y"))

linear = st.tuples(*[st.integers(-3, 3)] * 4).map(lambda c: c[0] * x + c[1] * y + c[2] * x * y + c[3])
conditions = st.tuples(linear, st.sampled_from((at_most, less_than, equal))).map(lambda pair: pair[1](pair[0], 0))


@settings(max_examples=60, deadline=None)
@given(st.lists(conditions, max_size=3), conditions)
def test_verdicts_agree_with_trying_every_small_point(premises, goal):
    proof = Prover(premises).proves(goal)
    points = [{"x": a, "y": b} for a in range(9) for b in range(9)]
    inside = [point for point in points if all(premise.holds(point) for premise in premises)]
    match proof.verdict:
        case Verdict.YES:
            assert all(goal.holds(point) for point in inside)
        case Verdict.NO:
            point = {"x": 0, "y": 0, **proof.counterexample}
            assert all(premise.holds(point) for premise in premises)
            assert not goal.holds(point)
        case Verdict.UNKNOWN:
            assert proof.reason
            assert not proof


def test_symbols_are_never_negative():
    assert Prover(()).proves(at_most(0, N * B + s))
    assert Prover(()).proves(at_most(N, B)).verdict is Verdict.NO


def test_a_conjunction_needs_all_its_parts():
    prover = Prover((at_most(1, N),))
    assert prover.proves((at_most(0, N), at_most(1, N)))
    failed = prover.proves((at_most(0, N), at_most(2, N)))
    assert failed.verdict is Verdict.NO
    assert failed.counterexample["N"] == 1
    assert prover.proves(())


def test_each_factor_of_a_product_of_at_least_one_is_at_least_one():
    assert Prover((at_most(1, s * B),)).proves(at_most(1, B))
    assert Prover((at_most(1, s * B),)).proves(less_than(0, s))
    assert not Prover((at_most(0, s * B),)).proves(at_most(1, B))


def test_quotients_are_understood():
    quotient = DerivedSymbol("q", "floor", (N, B))
    prover = Prover(quotient.constraints(), (quotient,))
    assert prover.proves(at_most(q * B, N))
    assert prover.proves(less_than(N, q * B + B))
    assert prover.proves(at_most((q - 1) * B + B - 1, N))
    assert prover.proves(equal(q * B, N)).verdict is Verdict.NO


def test_strict_and_weak_order_differ_by_one():
    assert Prover(()).proves(less_than(N, N + 1))
    assert not Prover(()).proves(less_than(N, N))
    assert Prover((less_than(N, B),)).proves(at_most(N + 1, B))
    half = Polynomial.symbol("N").substitute({"N": N}) * 2
    assert Prover((less_than(half, 2 * B),)).proves(at_most(N + 1, B))


def test_signs():
    prover = Prover((at_most(1, B),))
    assert prover.sign(B - 1) == 1
    assert prover.sign(1 - B) == -1
    assert prover.sign(B - B) == 0
    assert prover.sign(B - 2) is None
    assert prover.sign(N - B) is None


def test_contradictory_premises_are_noticed():
    assert Prover((at_most(N, 3), at_most(5, N))).consistent() is False
    assert Prover((at_most(N, 3),)).consistent() is True


def test_indices_of_the_papers_programs_stay_in_their_arrays():
    facts = program_facts(program(JACOBI))
    prover = Prover(facts.constraints, facts.derived)
    dim = Polynomial.symbol("dim")
    last = (dim - 1) * s * B + (s - 1) * B + B - 1 + 2
    assert prover.proves(less_than(last, N))
    assert prover.proves(less_than(N + last, 2 * N))
    assert not prover.proves(less_than(last + 1, N))
    facts = program_facts(program(TRANSPOSE))
    prover = Prover(facts.constraints, facts.derived)
    dim1, b1 = Polynomial.symbol("dim1"), Polynomial.symbol("B1")
    assert prover.proves(less_than(((dim1 - 1) * s + s - 1) * b1 + b1 - 1, N))
    facts = program_facts(program(MATADD))
    prover = Prover(facts.constraints, facts.derived)
    assert prover.proves(less_than((dim1 - 1) * b1 + b1 - 1, N))


def test_more_premises_prove_more():
    prover = Prover((at_most(N, B),))
    assert not prover.proves(at_most(N, s))
    assert prover.with_premises((at_most(B, s),)).proves(at_most(N, s))
    assert not prover.proves(at_most(N, s))


def test_provers_of_one_run_ask_z3_once_and_another_run_asks_again(monkeypatch):
    asked = []
    ask = prover_module._refuted_over_reals

    def counted(*question):
        asked.append(question)
        return ask(*question)

    monkeypatch.setattr(prover_module, "_refuted_over_reals", counted)
    z = Polynomial.symbol("z")
    goal = at_most(2 * x * y, x * x + y * y)
    run = Analyses()
    # The second prover's further premise has nothing to do with the goal.
    provers = [run.prover((at_most(1, x),), ()), run.prover((at_most(1, x), at_most(1, z)), ())]
    assert [prover.proves(goal).verdict for prover in provers] == [Verdict.YES, Verdict.YES]
    assert len(asked) == 1
    assert provers[0].with_premises((at_most(3, z),)).proves(goal)
    assert len(asked) == 1
    assert Analyses().prover((at_most(1, x),), ()).proves(goal)
    assert len(asked) == 2
