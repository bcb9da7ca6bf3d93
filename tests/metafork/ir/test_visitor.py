"""Visitors and rewriters: order, numbers of elements, scopes, and the same object where nothing changes."""

import pytest
from msgspec.structs import replace

from metafork.ir.invariants import check_program
from metafork.ir.program import IntConst, walk_statements
from metafork.ir.visitor import Rewriter, Visitor
from metafork.printing.expressions import expression
from tests.metafork.programs import program

TEXT = """
void f(int n, int B, int a[n], int b[n], int c[n]) {
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++) {
      int first = b[0];
      meta_for (int u = 0; u < B; u++) {
        int x = b[first + u] + c[i];
        a[b[1]] += c[2] * b[a[3]];
        for (int k = a[4]; k < b[5]; k += 1) {
          int x = c[6];
          while (c[7] < x)
            x += c[8] > 0 ? c[9] : a[10];
        }
        if (x)
          a[u] = x;
      }
    }
  }
}
"""
PROGRAM = program(TEXT)


ORDER = [
    *("b[0]", "b[first + u]", "c[i]", "c[2]", "a[3]", "b[a[3]]", "b[1]", "a[b[1]]", "a[4]", "b[5]"),
    *("c[6]", "c[7]", "c[8]", "c[9]", "a[10]", "a[u]"),
]
"""The elements in the order in which they are evaluated."""


class Seen(Visitor):
    """The elements with their numbers, and the names in scope there that are not those around the body."""

    scope = ()

    def __init__(self):
        self.seen = {}
        self.names = {}

    def declared(self, name, node):
        self.scope = (*self.scope, name)

    def element(self, node, number):
        self.seen[number] = expression(node)
        self.names[expression(node)] = " ".join(self.scope)


def test_elements_are_numbered_in_the_order_of_evaluation():
    seen = Seen()
    seen.body(PROGRAM.body)
    assert list(seen.seen.items()) == list(enumerate(ORDER))


def test_scopes_end_where_c_ends_them():
    seen = Seen()
    seen.body(PROGRAM.body)
    for element, names in {
        "b[0]": "",
        "b[first + u]": "first u",
        "c[2]": "first u x",
        "a[4]": "first u x",
        "b[5]": "first u x k",
        "c[6]": "first u x k",
        "c[7]": "first u x k x_1",
        "a[u]": "first u x",
    }.items():
        assert seen.names[element] == names
    assert seen.scope == ()


def test_a_pass_without_methods_for_expressions_does_not_look_into_them():
    walked = Visitor.__new__(type("Nothing", (Visitor,), {}))
    walked.body(PROGRAM.body)
    assert walked.elements == 0


class Numbered(Rewriter):
    """Puts the number of each element for its last index, where that is less than a bound."""

    def __init__(self, bound):
        self.bound = bound
        self.seen = []

    def element(self, node, number):
        self.seen.append(number)
        return replace(node, indices=(IntConst(number),)) if number < self.bound else node


def test_a_rewriter_numbers_elements_as_a_visitor_does():
    rewriter, seen = Numbered(len(ORDER)), Seen()
    seen.body(rewriter.body(PROGRAM.body))
    assert rewriter.seen == list(range(len(ORDER)))
    # Inside of an index nothing is left.
    assert list(seen.seen.values()) == [
        f"{name[0]}[{number}]" for number, name in enumerate(ORDER) if name not in ("a[3]", "b[1]")
    ]


class Nothing(Rewriter):
    def variable(self, node):
        return node


def test_what_does_not_change_is_the_same_object():
    assert Numbered(0).body(PROGRAM.body) is PROGRAM.body
    assert Nothing().body(PROGRAM.body) is PROGRAM.body
    one = Numbered(1).body(PROGRAM.body)
    assert one is not PROGRAM.body
    assert one[1:] == PROGRAM.body[1:]
    assert all(new is old for new, old in zip(one[1:], PROGRAM.body[1:], strict=True))


class Statements(Rewriter):
    def __init__(self, several):
        self.several = several

    def branch(self, node):
        return (node,) * self.several


@pytest.mark.parametrize("several", [0, 1, 2])
def test_several_statements_or_none_stand_for_one(several):
    body = Statements(several).body(PROGRAM.body)
    check_program(replace(PROGRAM, body=body))
    assert len(walk_statements(body)) == len(walk_statements(PROGRAM.body)) + 2 * (several - 1)
