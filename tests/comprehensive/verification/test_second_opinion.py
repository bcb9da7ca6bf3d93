from pathlib import Path

import pytest

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.prover import Verdict
from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.verification.second_opinion import agrees, sympy_check

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("name", ["jacobi1d", "matmul", "transpose"])
def test_sympy_agrees_with_every_polynomial_of_a_tree(name):
    result = optimize(EXAMPLES / f"{name}.mf", strategies=["granularity", "caching"], order="paper")
    for tree in result.schedules:
        check = sympy_check(tree)
        assert check.verdict is Verdict.YES, check.ground


def test_a_text_that_means_something_else_is_noticed():
    n, s = Polynomial.symbol("N"), Polynomial.symbol("S")
    assert agrees(2 * n * s + 1, "2*N*S + 1")
    assert agrees((n - s) * (n + s), "N*N - S*S")
    assert not agrees(2 * n * s + 1, "2*N*S - 1")
    assert not agrees(n * s, "N*N")


def test_names_that_are_words_of_python():
    word, other = Polynomial.symbol("class"), Polynomial.symbol("class_0")
    assert agrees(word * other + 1, "class*class_0 + 1")
    assert not agrees(word * other + 1, "class*class + 1")
