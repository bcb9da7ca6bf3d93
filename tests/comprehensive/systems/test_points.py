from fractions import Fraction
from itertools import product
from random import Random

import pytest

from metafork.algebra.polynomial import Polynomial, at_most, equal, less_than
from metafork.comprehensive.systems.points import Points

B, S, Y, Z, R = (Polynomial.symbol(name) for name in ("B", "s", "Y", "Z", "R"))
FACTS = (at_most(1, B), at_most(1, S), at_most(0, Y), at_most(0, Z))
SMALL = {"B": range(1, 4), "s": range(1, 3)}


def points(facts=FACTS, machine=("Y", "Z"), real=frozenset()):
    return Points(facts, (), SMALL, machine, real)


def conditions(random, on):
    for _ in range(random.randint(1, 3)):
        left = sum((random.randint(-2, 2) * symbol for symbol in on), Polynomial.constant(random.randint(-4, 4)))
        yield random.choice((at_most, less_than, less_than, equal) if len(on) < 4 else (at_most, less_than))(
            left, B * S
        )


def holds(system, *values):
    point = dict(zip("BsYZ", values, strict=True))
    return all(constraint.holds(point) for constraint in system)


@pytest.mark.parametrize("on", [(B, S, Z), (B, S, Y, Z)])
def test_what_is_found_holds_with_the_least_machine(on):
    """Compared with all points: a point that is found is one, none is missed, and Z is the least for the others."""
    random = Random(1)
    seen = {True: 0, False: 0}
    for _ in range(120):
        system = tuple(conditions(random, on))
        found = points().find(system)
        if found is not None:
            at = tuple(found[name] for name in "BsYZ")
            assert at[3] == min(z for z in range(at[3] + 1) if holds(system, *at[:3], z))
            assert points().find_with({"B": at[0], "s": at[1]}, system) is not None
        elif Y not in on:
            # No sum is more than 2*3 + 2*2 + 4 away from the product, which is at most 6.
            assert not any(holds(system, *at, 0, z) for at in product((1, 2, 3), (1, 2)) for z in range(21)), system
        seen[found is not None] += 1
    assert min(seen.values()) > 10


@pytest.mark.parametrize(
    ("system", "least"),
    [
        ((), {"Y": 0, "Z": 0}),
        ((at_most(10, Y + Z),), {"Y": 0, "Z": 10}),
        ((at_most(10, Y + Z), at_most(Z, 9), less_than(2, Y)), {"Y": 3, "Z": 7}),
        ((at_most(Z, 10), at_most(Z, 3), at_most(5, Z)), None),
        ((at_most(Z, 3), at_most(Z, 10), at_most(5, Z)), None),
        ((less_than(Z, 5), at_most(Z, 5), at_most(5, Z)), None),
        ((at_most(Z, 5), less_than(Z, 5), at_most(5, Z)), None),
        ((less_than(5, Z), at_most(5, Z), at_most(Z, 6)), {"Y": 0, "Z": 6}),
    ],
)
def test_the_least_machine_at_given_parameters(system, least):
    found = points().find_with({"B": 2, "s": 1}, system)
    assert found == (None if least is None else {"B": 2, "s": 1, **least})


def test_what_a_solver_found_is_found_again():
    pool, system = points(), (equal(B, 7),)
    assert pool.find(system) is None
    assert pool.learn({"B": 7, "s": 2}, system) == {"B": 7, "s": 2, "Y": 0, "Z": 0}
    assert pool.find(system) == {"B": 7, "s": 2, "Y": 0, "Z": 0}


def test_a_symbol_that_nothing_bounds_from_below_is_zero():
    assert points((at_most(1, B), at_most(1, S)), ("Z",)).find_with({"B": 2}, (less_than(Z, B),))["Z"] == 0


@pytest.mark.parametrize(
    ("system", "value"),
    [
        ((less_than(B, 2 * R), less_than(R, B)), Fraction(3, 2)),
        ((at_most(B, 4 * R), less_than(2 * R, B)), Fraction(1, 2)),
        ((at_most(2, 3 * R), at_most(3 * R, 2)), Fraction(2, 3)),
        ((less_than(R, 4), at_most(0, R)), 0),
        ((less_than(2, 3 * R), at_most(3 * R, 2)), None),
        ((at_most(2, 3 * R), less_than(3 * R, 2)), None),
    ],
)
def test_a_real_symbol_may_lie_between_integers(system, value):
    found = points((at_most(1, B), at_most(1, S)), ("R",), frozenset({"R"})).find_with({"B": 2}, system)
    assert (found and found["R"]) == value
