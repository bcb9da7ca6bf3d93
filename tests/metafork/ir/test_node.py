"""Nodes are compared and hashed as what they say, wherever they stand."""

from typing import get_type_hints

import pytest
from msgspec.structs import fields, replace

from metafork.ir import program
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.node import Node

ELSEWHERE = Span(3, 4, 3, 9, 30, 35)
KINDS = [
    kind for kind in vars(program).values() if isinstance(kind, type) and issubclass(kind, Node) and kind is not Node
]


def made(kind):
    return kind(**{one.name: NOWHERE if one.name == "span" else (one.name,) for one in fields(kind)})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_field_counts_unless_it_is_aside(kind):
    node = made(kind)
    assert kind.aside <= set(kind.__struct_fields__)
    for name in kind.__struct_fields__:
        other = replace(node, **{name: ELSEWHERE if name == "span" else ("other",)})
        same = name in kind.aside
        assert (node == other, node != other) == (same, not same)
        assert (hash(node) == hash(other)) == same


def test_kinds_differ_though_they_say_the_same():
    assert program.Break() != program.Continue()
    assert len({program.Break(), program.Continue(), program.Break(ELSEWHERE)}) == 2
    assert program.IntConst(1) != 1


def test_every_part_with_a_place_is_a_node():
    with_places = {
        name for name, kind in vars(program).items() if isinstance(kind, type) and "span" in get_type_hints(kind)
    }
    assert with_places - {"Span"} == {kind.__name__ for kind in KINDS}
