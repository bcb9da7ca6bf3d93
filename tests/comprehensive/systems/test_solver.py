from fractions import Fraction

import pytest

from metafork.algebra.polynomial import Polynomial, at_most, equal, less_than
from metafork.comprehensive.systems.solver import PathSolver, as_integers

X, Y = (Polynomial.symbol(name) for name in ("x", "y"))
TWO = Polynomial.constant(2)


@pytest.mark.parametrize(
    ("system", "over_reals", "over_integers"),
    [
        ((equal(X * X, TWO),), "sat", "unsat"),
        ((less_than(0, X), less_than(X, 1)), "sat", "unsat"),
        ((less_than(X * Y, 7), less_than(5, X * Y), at_most(4, X), at_most(X, 5)), "sat", "unsat"),
        ((less_than(X * X + Y * Y, 0),), "unsat", "unsat"),
        ((at_most(X * X, 30), at_most(25, X * Y), at_most(Y, X)), "sat", "sat"),
    ],
)
def test_reals_and_integers(system, over_reals, over_integers):
    assert PathSolver((), integers=False).check(system) == over_reals
    assert PathSolver((), integers=True).check(system) == over_integers


def test_real_symbols_among_integers():
    solver = PathSolver((), integers=True, real=frozenset({"y"}))
    assert solver.check((less_than(0, Y), less_than(Y, 1), at_most(3, X), less_than(X, 4))) == "sat"
    point = solver.model()
    assert point["x"] == 3
    assert 0 < point["y"] < 1
    assert solver.check((less_than(0, X), less_than(X, 1))) == "unsat"


def test_as_integers():
    point = {"x": Fraction(4), "y": Fraction(1, 2)}
    found = as_integers(point, frozenset({"y"}))
    assert found == {"x": 4, "y": Fraction(1, 2)}
    assert isinstance(found["x"], int)
    assert as_integers(point, frozenset()) is None
