import pytest

from comprehensive.case_discussion.instance_registers import RegisterCount, Registers, _above, placed
from evaluators.counter import NotKnown
from metafork.algebra.polynomial import Polynomial
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from tests.comprehensive.case_discussion.made_up import MadeCounter, start

A, B, U, S = (Polynomial.symbol(name) for name in "ABUS")


def constant(number):
    return Polynomial.constant(number)


def warps(threads, name="warps"):
    return DerivedSymbol(name, "ceiling", (threads, constant(32)))


FOURTH = DerivedSymbol("ceil1", "ceiling", (B, constant(4)))
PARTS = DerivedSymbol("parts", "floor", (B * U, constant(3)))
IN_TREE = (FOURTH, warps(Polynomial.symbol("ceil1") * U))
WARPS = Polynomial.symbol("warps") * 32


def test_symbols_that_are_equal_at_the_values_are_equal_polynomials():
    own = (warps(4 * U, "own"),)
    at_16 = placed(Polynomial.symbol("own") * 32, own, {"B": 16})
    assert placed(WARPS, IN_TREE, {"B": 16}) == at_16
    assert placed(WARPS, IN_TREE, {"B": 13}) == at_16
    assert placed(WARPS, IN_TREE, {"B": 20}) != at_16
    assert placed(WARPS, IN_TREE, {"B": 16, "U": 12}) == constant(64)
    # 32 threads a warp, whatever U is.
    assert placed(WARPS, (warps(32 * U),), {}) == 32 * U


@pytest.mark.parametrize(
    "derived", [IN_TREE, (warps(4 * U),), (PARTS, warps(Polynomial.symbol("parts") + U)), (FOURTH, warps(B))]
)
def test_threads_without_a_symbol_in_the_tree_are_bounded_from_above(derived):
    found = _above(WARPS, derived)
    assert found.symbols <= {"B", "U"}
    for b in range(1, 70):
        for u in (1, 2, 3, 7, 8, 33):
            point = {"B": b, "U": u}
            for symbol in derived:
                point[symbol.name] = symbol.evaluate(point)
            assert WARPS.evaluate(point) <= found.evaluate(point)


def test_what_may_be_less_than_there_is_no_bound():
    less = DerivedSymbol("rest", "ceiling", (A, constant(4)))
    assert _above(U - Polynomial.symbol("rest"), (less,)) is None
    assert _above(WARPS, (less, warps(U - Polynomial.symbol("rest")))) is None
    assert _above(WARPS, (DerivedSymbol("most", "maximum", (A, B)), warps(Polynomial.symbol("most")))) is None
    assert _above(WARPS, (DerivedSymbol("part", "ceiling", (A, S)), warps(Polynomial.symbol("part")))) is None


@pytest.mark.parametrize("found", [9, NotKnown("too long")])
def test_a_tree_without_registers_of_blocks_asks_for_those_of_a_thread_alone(found):
    counter = MadeCounter("registers_per_thread", "R", lambda version: found)
    count = RegisterCount(start(), Analyses(), (), counter, None)
    assert count.of_instance((), {}) == (Registers(9) if found == 9 else found)
