from itertools import product

import pytest

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol, placed, without_rounding

N, B = Polynomial.symbol("N"), Polynomial.symbol("B")


@pytest.mark.parametrize("kind", ["floor", "ceiling"])
def test_the_constraints_of_a_quotient_hold_for_its_value_alone(kind):
    symbol = DerivedSymbol("q", kind, (N + 1, 2 * B))
    for n, b in product(range(6), range(1, 4)):
        value = symbol.evaluate({"N": n, "B": b})
        assert value == ((n + 1) // (2 * b) if kind == "floor" else -(-(n + 1) // (2 * b)))
        satisfied = [q for q in range(-2, 9) if all(c.holds({"N": n, "B": b, "q": q}) for c in symbol.constraints())]
        assert satisfied == [value]


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
def test_the_constraints_of_an_extremum_hold_for_its_value_alone(kind):
    symbol = DerivedSymbol("q", kind, (N, 2 * B, B + 3))
    for n, b in product(range(6), range(4)):
        value = symbol.evaluate({"N": n, "B": b})
        assert value == (max if kind == "maximum" else min)(n, 2 * b, b + 3)
        satisfied = [q for q in range(-2, 9) if all(c.holds({"N": n, "B": b, "q": q}) for c in symbol.constraints())]
        assert satisfied == [value]


def test_a_quotient_by_zero_has_no_value():
    with pytest.raises(ZeroDivisionError):
        DerivedSymbol("q", "floor", (N, B)).evaluate({"N": 1, "B": 0})


def test_definitions_as_text():
    assert DerivedSymbol("q", "floor", (N - 2, B * N)).definition(("N", "B")) == "(N - 2)/(N*B)"
    assert DerivedSymbol("q", "ceiling", (N, B)).definition() == "ceil(N/B)"
    assert DerivedSymbol("q", "maximum", (N, B + 1)).definition() == "max(N, B + 1)"
    assert DerivedSymbol("q", "minimum", (N, B + 1)).definition() == "min(N, B + 1)"


def test_symbols_that_are_equal_at_values_are_equal_polynomials():
    def warps(threads, name="warps"):
        return DerivedSymbol(name, "ceiling", (threads, Polynomial.constant(32)))

    fourth = DerivedSymbol("ceil1", "ceiling", (B, Polynomial.constant(4)))
    derived = (fourth, warps(Polynomial.symbol("ceil1") * N))
    threads = Polynomial.symbol("warps") * 32
    at_16 = placed(Polynomial.symbol("own") * 32, (warps(4 * N, "own"),), {"B": 16})
    assert placed(threads, derived, {"B": 16}) == at_16
    assert placed(threads, derived, {"B": 13}) == at_16
    assert placed(threads, derived, {"B": 20}) != at_16
    assert placed(threads, derived, {"B": 16, "N": 12}) == Polynomial.constant(64)
    # 32 threads a warp, whatever N is.
    assert placed(threads, (warps(32 * N),), {}) == 32 * N


@pytest.mark.parametrize("relation", ["<=", "<"])
@pytest.mark.parametrize("kind", ["floor", "ceiling"])
def test_conditions_on_quotients_are_the_same_without_rounding(kind, relation):
    x, q = Polynomial.symbol("x"), DerivedSymbol("q", kind, (Polynomial.symbol("x"), Polynomial.constant(3)))
    outer = DerivedSymbol("p", kind, (Polynomial.symbol("q") + 1, Polynomial.constant(2)))
    for symbol, factor, bound in product((q, outer), (1, 3), range(-1, 9)):
        side = Polynomial.symbol(symbol.name) * factor
        for left, right in ((side, Polynomial.constant(bound)), (Polynomial.constant(bound), side)):
            exact = Constraint(left, relation, right)
            plain = without_rounding(exact, {"q": q, "p": outer})
            assert plain.symbols == x.symbols
            for value in range(30):
                values = {"x": value, "q": q.evaluate({"x": value})}
                values["p"] = outer.evaluate(values)
                assert plain.holds(values) == exact.holds(values)


def test_other_conditions_stay_as_they_are():
    q = DerivedSymbol("q", "ceiling", (Polynomial.symbol("x"), Polynomial.symbol("B")))
    for condition in (at_most(Polynomial.symbol("q"), 3), at_most(Polynomial.symbol("q"), Polynomial.symbol("Z"))):
        assert without_rounding(condition, {"q": q}) is condition
