"""What the screen says of a tree: which leaf runs where, in the order in which it is asked."""

import pytest

from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.tree.outline import WIDTH, outline, wrapped
from tests.metafork.programs import JACOBI, MATMUL

PLAIN = {"counters": ["shared_memory"], "strategies": ["granularity", "caching"], "order": "paper"}
COPY = """
void copy(int n, int B, const float x[n], float y[n])
{
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++)
      y[i] = x[i];
  }
}
"""


def said(program, **options):
    return [line for schedule in optimize(program, **options).document.schedules for line in outline(schedule)]


def test_conditions_stand_in_the_order_in_which_they_are_asked():
    assert said(JACOBI, **PLAIN, static=None) == [
        "|- 2*s*B + 2 <= Z: leaf 1 (a in shared memory)",
        "|- 2*B + 2 <= Z: leaf 2 (a in shared memory, s joined the grid)",
        "`- otherwise: leaf 3 (no shared memory, s joined the grid)",
    ]


def test_of_two_ends_of_a_condition_the_one_that_ends_there_comes_first():
    lines = said(MATMUL, static=None)
    assert lines[:2] == [
        "all: common subexpressions reused",
        "|- more than 1024 threads per block (B0*ub1): the serial code runs",
    ]
    assert "  |- " not in "\n".join(lines)


def test_nested_conditions_and_what_a_leaf_does_are_said_once():
    lines = said(MATMUL, order="paper")
    assert any(line.startswith("|  |  |- ") for line in lines)
    assert max(map(len, lines)) <= WIDTH
    text = " ".join(lines)
    numbers = [leaf.id for leaf in optimize(MATMUL, order="paper").document.schedules[0].leaves]
    assert [text.count(f"leaf {number} (") for number in numbers] == [1] * len(numbers)


def test_a_tree_without_conditions_is_its_leaf():
    much = COPY.replace("x[i];", "((((x[i] + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2;")
    assert said(much, static=None) == ["leaf 1 (as written)"]


def test_a_long_tree_is_cut(monkeypatch):
    monkeypatch.setattr("metafork.comprehensive.tree.outline.MOST_LINES", 2)
    whole = ["|- 2*s*B + 2 <= Z: leaf 1 (a in shared memory)", "... report.md has the rest"]
    assert said(JACOBI, **PLAIN)[::2] == whole


@pytest.mark.parametrize("text", ["x <= y", "also compiled for B = 1", "word " * 50 + "s = 1; B = 32"])
def test_formulas_are_not_broken(text):
    lines = wrapped(text)
    assert " ".join(lines) == text
    assert all(not line.endswith((" =", " <=")) and not line.startswith(("=", "<=")) for line in lines)
