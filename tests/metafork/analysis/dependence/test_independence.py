import pytest

from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from metafork.analysis.dependence.independence import iterations_independent
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


def in_a_loop(body):
    text = f"""
    void f(int n, int s, int B, int m, float z[n * s], float a[n * s], float b[n * s]) {{
      int d = n / B;
      meta_schedule {{
        meta_for (int i = 0; i < d; i++)
          meta_for (int j = 0; j < B; j++)
            for (int k = 0; k < s; k++) {{ int p = (i * B + j) * s + k; {body} }}
      }}
    }}"""
    return iterations_independent(program(text), "k", Analyses())


@pytest.mark.parametrize("names", [("z", "a"), ("a", "z")])
def test_elements_of_different_arrays_are_never_one(names):
    first, second = names
    assert in_a_loop(f"if (k + 1 < s) {{ {first}[p] = 1; {second}[p + 1] = {second}[p + 1] + 2; }}")
    found = in_a_loop(f"if (k + 1 < s) {{ {first}[p] = 1; {first}[p + 1] = {second}[p + 1] + 2; }}")
    assert found.verdict is not Verdict.YES


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("a[(int)b[p]] = 1;", "an index of a is no known polynomial"),
        ("a[p] = a[(int)b[p]];", "an index of a is no known polynomial"),
        ("a[p] = a[p - m];", "it is not proved that no two iterations of k may touch one element of a"),
        ("a[i * B + j] = b[p];", "iterations of k touch one element of a"),
    ],
)
def test_the_reason_says_what_is_not_known(body, reason):
    found = in_a_loop(body)
    assert not found
    assert found.reason == reason


@pytest.mark.parametrize("body", ["a[k] = a[k + 1];", "a[k + j] = 1; a[2 * k + j] = 2;"])
def test_iterations_that_meet_are_a_certain_conflict(body):
    text = f"""
    void f(int n, int s, float a[n + 2 * s]) {{
      meta_schedule {{
        meta_for (int i = 0; i < n; i++)
          meta_for (int j = 0; j < 4; j++)
            for (int k = 0; k < s; k++) {{ {body} }}
      }}
    }}"""
    found = iterations_independent(program(text), "k", Analyses())
    assert found.verdict is Verdict.NO
    assert found.reason == "iterations of k may touch one element of a"
