from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from strategies.loops.dependence import iterations_independent
from tests.metafork.interpreter import program
from tests.metafork.programs import JACOBI, MATMUL, TRANSPOSE


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
