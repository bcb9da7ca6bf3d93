"""Leaves that no supported machine can choose: named where that is shown, and nowhere else."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from comprehensive.supported_machines import leaves_for_no_machine
from metafork.algebra.polynomial import at_most, less_than
from tests.comprehensive.case_discussion.made_up import start, symbol

WORDS = replace(start(machine=("Z",)), machine={"shared_words": "Z"})
TARGET = replace(start(machine=("Z",), targets=("L",)), machine={"shared_words": "Z", "L": "L"})
INTEGER = replace(TARGET, targets=frozenset())


@pytest.mark.parametrize(
    ("begin", "system", "empty"),
    [
        (WORDS, (less_than(symbol("Z"), 16384),), True),
        (WORDS, (less_than(symbol("Z"), 16385),), False),
        (WORDS, (less_than(symbol("Z"), symbol("B") + 3), at_most(symbol("B"), 1024)), True),
        (WORDS, (less_than(symbol("Z"), symbol("B") + 3),), False),
        # Between 7 and 8 there is a target of 7.5, and no integer.
        (TARGET, (less_than(symbol("L"), 8), at_most(15, 2 * symbol("L"))), False),
        (INTEGER, (less_than(symbol("L"), 8), at_most(15, 2 * symbol("L"))), True),
    ],
)
def test_what_is_named_is_empty_on_every_supported_machine(begin, system, empty):
    leaves = [SimpleNamespace(id=1, systems=((),)), SimpleNamespace(id=2, systems=(system,))]
    assert leaves_for_no_machine(begin, leaves, ()) == ((2,) if empty else ())


def test_a_leaf_with_one_system_that_some_machine_meets_is_not_named():
    never = (less_than(symbol("Z"), 1),)
    leaves = [SimpleNamespace(id=1, systems=(never, ())), SimpleNamespace(id=2, systems=(never, never))]
    assert leaves_for_no_machine(WORDS, leaves, ()) == (2,)
