from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metafork.algebra.symbols import DerivedSymbol
from metafork.comprehensive.case_discussion.discussion import Discussion
from metafork.comprehensive.tree.selection import MissingValueError, select, without_unasked
from metafork.evaluators.counter import CounterValue
from tests.comprehensive.case_discussion.made_up import MadeCounter, MadeStrategy, document, jacobi, start, symbol

DIM = DerivedSymbol("dim", "floor", (symbol("N") - 2, symbol("s") * symbol("B")))


def schedule_of(counters, strategies, begin):
    outcome = Discussion(begin, counters, strategies).run(())
    return document(begin, outcome, strategies).schedules[0]


JACOBI = schedule_of(*jacobi(), start(derived=(DIM,)))


def at(**values):
    return {"N": 100, "s": 2, "B": 4, "R": 63, "Z": 1000, **values}


@pytest.mark.parametrize(("words", "leaf"), [(18, 1), (17, 2), (10, 2), (9, 3), (0, 3)])
def test_the_leaf_follows_the_limits(words, leaf):
    selection = select(JACOBI, at(Z=words))
    assert selection.leaf == leaf
    assert selection.derived == {"dim": 12}
    assert set(selection.violated) == {1, 2, 3} - {leaf}


def test_the_others_are_told_with_numbers():
    selection = select(JACOBI, at(Z=12))
    assert selection.estimates == {"registers_per_thread": 9, "shared_memory": 10}
    assert str(selection.violated[1][0]) == "2*s*B + 2 <= Z does not hold: 18 > 12"
    assert str(selection.violated[3][0]) == "Z < 2*B + 2 does not hold: 12 >= 10"


def test_no_leaf_says_which_limit():
    selection = select(JACOBI, at(R=8))
    assert selection.leaf == 0
    assert "registers_per_thread: 9 <= R does not hold" in selection.region
    assert [str(v) for v in selection.violated[1]] == ["9 <= R does not hold: 9 > 8"]


def test_outside_of_start():
    assert [str(v) for v in select(JACOBI, at(s=0)).outside] == ["1 <= s*B does not hold: 1 > 0"]
    assert any("0 <= Z does not hold" in str(v) for v in select(JACOBI, at(Z=-1)).outside)
    assert [v.condition for v in select(JACOBI, at(N=1)).outside] == ["0 <= N - 2"]


def test_values_must_be_complete():
    with pytest.raises(MissingValueError) as caught:
        select(JACOBI, {"N": 1, "s": 1})
    assert caught.value.names == ("B", "R", "Z")


def test_parameters_that_decide_nothing_may_be_left_out():
    less, unasked = without_unasked(JACOBI, {"s", "B", "R", "Z"})
    assert unasked == ("N",)
    assert select(less, at()).leaf == select(JACOBI, at()).leaf == 1
    with pytest.raises(MissingValueError) as caught:
        select(*without_unasked(JACOBI, {"R", "Z"})[:1], {"R": 20, "Z": 100})
    assert caught.value.names == ("s", "B")
    # What Start says of the others still counts.
    assert select(less, at(s=0)).outside
    assert without_unasked(JACOBI, at()) == (JACOBI, ())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.fixed_dictionaries({n: st.integers(0, 40) for n in ("N", "s", "B", "R", "Z")}))
def test_the_walk_and_the_systems_agree(point):
    selection = select(JACOBI, point)
    if selection.outside:
        return
    point |= selection.derived
    chosen = [leaf.id for leaf in JACOBI.leaves if any(all(c.holds(point) for c in system) for system in leaf.systems)]
    assert chosen == ([selection.leaf] if selection.leaf else [])


def test_targets_may_be_fractions():
    counters = [
        MadeCounter(
            "occupancy",
            "P",
            lambda version: CounterValue(symbol("B"), symbol("B") * (2 if version else 3)),
            "performance",
            False,
            Fraction(1, 2),
        )
    ]
    strategies = [MadeStrategy("more", frozenset({"occupancy"}))]
    schedule = schedule_of(counters, strategies, start(machine=(), targets=("P",), ratios=("P",)))
    values = {"N": 1, "s": 1, "B": 8}
    assert select(schedule, {**values, "P": Fraction(1, 3)}).leaf == 1
    better = select(schedule, {**values, "P": Fraction(1, 2)})
    assert (better.leaf, better.estimates) == (2, {"occupancy": Fraction(1, 2)})
    assert select(schedule, {**values, "P": Fraction(2, 3)}).leaf == 0
