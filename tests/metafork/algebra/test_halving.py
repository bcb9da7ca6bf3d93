from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra.halving import Halving
from metafork.algebra.polynomial import Constraint, Polynomial, at_most, equal, less_than
from metafork.algebra.symbols import DerivedSymbol

X, Y, LIMIT = (Polynomial.symbol(name) for name in ("x", "y", "limit"))
NAMES = ("up", "down", "again")
UP, DOWN, AGAIN = (Polynomial.symbol(name) for name in NAMES)
SMALL = st.integers(-4, 4)
RELATIONS = st.sampled_from(["<=", "<", "=="])


def quotients(first: int, second: int) -> list[DerivedSymbol]:
    """Return a ceiling, a floor of a product, and a ceiling of the first."""
    return [
        DerivedSymbol("up", "ceiling", (X, Polynomial.constant(first))),
        DerivedSymbol("down", "floor", (X * Y + 1, Polynomial.constant(second))),
        DerivedSymbol("again", "ceiling", (UP, Y)),
    ]


def known(symbols: list[DerivedSymbol], *more: Constraint) -> Halving:
    facts = [fact for symbol in symbols for fact in symbol.constraints()]
    return Halving([*facts, at_most(1, Y), *more], symbols, ["limit"])


def completed(symbols: list[DerivedSymbol], **point: int) -> dict[str, int]:
    for symbol in symbols:
        point[symbol.name] = symbol.evaluate(point)
    return point


rows = st.lists(st.tuples(SMALL, SMALL, SMALL, SMALL, SMALL, st.integers(-60, 60), RELATIONS), min_size=1, max_size=4)


@settings(max_examples=300, deadline=None)
@given(rows, st.sampled_from([2, 3, 8]), st.sampled_from([1, 5, 32]))
def test_what_is_called_empty_has_no_point(rows, first, second):
    symbols = quotients(first, second)
    system = [
        Constraint(a * UP + b * X * Y + c * DOWN * UP + d * X + g, relation, e * LIMIT + AGAIN)
        for a, b, c, d, e, g, relation in rows
    ]
    if known(symbols, at_most(LIMIT, 50)).excluded(system[:-1], system[-1]):
        large = (*range(12), 17, 31, 32, 33, 64, 100, 1000, 4097, 10**6)
        for x, y, limit in product(large, large[1:], (0, 1, 2, 3, 5, 8, 13, 21, 34, 49, 50)):
            point = completed(symbols, x=x, y=y, limit=limit)
            assert not all(condition.holds(point) for condition in system)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(SMALL, SMALL, SMALL, st.integers(-60, 60), RELATIONS), min_size=1, max_size=4))
def test_ranges_with_ends_are_decided(rows):
    symbols = [DerivedSymbol("up", "ceiling", (X, Polynomial.constant(4)))]
    symbols.append(DerivedSymbol("down", "floor", (3 * UP + X, Polynomial.constant(7))))
    system = [Constraint(a * X + b * UP + c * DOWN, relation, g) for a, b, c, g, relation in rows]
    solvable = any(all(one.holds(completed(symbols, x=x)) for one in system) for x in range(41))
    assert known(symbols, at_most(X, 40)).excluded(system[:-1], system[-1]) is not solvable


def test_large_values_are_excluded_by_bounds_and_small_ones_one_by_one():
    block, registers = Polynomial.symbol("B"), Polynomial.symbol("R")
    symbols = [
        DerivedSymbol("warps", "ceiling", (block, Polynomial.constant(32))),
        DerivedSymbol("half", "ceiling", (block, Polynomial.constant(2))),
        DerivedSymbol("fewer", "ceiling", (Polynomial.symbol("half"), Polynomial.constant(32))),
    ]
    warps, half, fewer = (Polynomial.symbol(symbol.name) for symbol in symbols)
    halving = Halving([fact for symbol in symbols for fact in symbol.constraints()], symbols, ["R"])

    path = [at_most(1056 * warps, registers), at_most(32, half)]
    assert halving.excluded(path, less_than(registers, 1120 * fewer))
    assert not halving.excluded(path[:1], less_than(registers, 1120 * fewer))  # one warp, as at a block of 32 threads
    assert halving.excluded(path, less_than(registers, 1584 * fewer))
    assert not halving.excluded(path, less_than(registers, 1585 * fewer))  # 65 threads: three warps, and two


def test_products_of_two_parameters_are_excluded():
    symbols = quotients(8, 32)
    warps = DerivedSymbol("warps", "ceiling", (UP * Y, Polynomial.constant(32)))
    halving = known([*symbols, warps])
    assert halving.excluded([at_most(2, X), at_most(64, UP * Y)], less_than(X * Y, Y + UP))
    path = [at_most(2, X), at_most(40 * DOWN + 40, LIMIT), at_most(32, UP * Y)]
    assert halving.excluded(path, less_than(LIMIT, 60 * Polynomial.symbol("warps")))
    assert not halving.excluded(path, less_than(LIMIT, 400 * Polynomial.symbol("warps")))


def test_limits_are_eliminated():
    halving = Halving([at_most(LIMIT, 9)], [], ["limit"])
    assert halving.excluded([], at_most(10, LIMIT))
    assert halving.excluded([at_most(3 * X, 2 * LIMIT)], at_most(7, X))
    assert not halving.excluded([at_most(3 * X, 2 * LIMIT)], at_most(6, X))
    assert not halving.excluded([at_most(X * LIMIT, 2)], at_most(6, X))
    assert halving.excluded([equal(2 * X, LIMIT)], equal(LIMIT, X + 5))
