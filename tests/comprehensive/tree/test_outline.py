"""What the screen says of a tree: which leaf runs where, in the order in which it is asked."""

import re

import pytest

from metafork.comprehensive.optimize import optimize
from metafork.comprehensive.tree.examples import gpus_for, point_to_show
from metafork.comprehensive.tree.outline import WIDTH, example_lines, outline, wrapped
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
COMPUTED = COPY.replace("x[i];", "((((x[i] + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2;")


def said(program, **options):
    return [line for schedule in optimize(program, **options).document.schedules for line in outline(schedule)]


def test_conditions_stand_in_the_order_in_which_they_are_asked():
    assert said(JACOBI, **PLAIN, static=None) == [
        "|- 2*s*B + 2 <= Z ... leaf 1 (a in shared memory)",
        "|- 2*B + 2 <= Z ..... leaf 2 (a in shared memory, s joined the grid)",
        "`- otherwise ........ leaf 3 (no shared memory, s joined the grid)",
    ]


def test_of_two_ends_of_a_condition_the_one_that_ends_there_comes_first():
    lines = said(MATMUL, static=None)
    assert lines[:2] == [
        "all leaves: common subexpressions reused",
        "|- more than 1024 threads per block (B0*ub1) ... the serial code",
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
    assert said(COMPUTED, static=None) == ["leaf 1 (as written)"]


def test_a_long_tree_is_cut(monkeypatch):
    monkeypatch.setattr("metafork.comprehensive.tree.outline.MOST_LINES", 2)
    whole = ["|- 2*s*B + 2 <= Z ... leaf 1 (a in shared memory)", "... report.md has the rest"]
    assert said(JACOBI, **PLAIN)[::2] == whole


@pytest.mark.parametrize("text", ["x <= y", "also compiled for B = 1", "word " * 50 + "s = 1; B = 32"])
def test_formulas_are_not_broken(text):
    lines = wrapped(text)
    assert " ".join(lines) == text
    assert all(not line.endswith((" =", " <=")) and not line.startswith(("=", "<=")) for line in lines)


def test_each_variant_has_its_registers_and_its_limits():
    lines = said(MATMUL, static={"s": (4,)})
    rows = [line.strip("| ") for line in lines]
    assert any(re.match(r"4 results per thread +\d+ registers, if at least one full warp \(", row) for row in rows)
    assert sum(row.startswith("general kernel") and row.endswith(" registers") for row in rows) == 2
    assert any(row.startswith("also compiled for s=4") for row in rows)


LONG = "one_name_that_takes_much_of_a_line"


def test_what_runs_under_a_long_condition_stands_in_the_next_line():
    lines = said(JACOBI.replace("B", LONG), **PLAIN, static=None)
    assert lines[:2] == [f"|- 2*s*{LONG} + 2 <= Z:", "|    leaf 1 (a in shared memory)"]
    dots = "." * (len(f"|- 2*{LONG} + 2 <= Z") - len("`- otherwise") + 3)
    assert lines[-1] == f"`- otherwise {dots} leaf 3 (no shared memory, s joined the grid)"


def examples(program, **options):
    (schedule,) = optimize(program, **options).document.schedules
    return example_lines(schedule, point_to_show(schedule, dict(gpus_for(schedule))))


def test_two_points_are_shown_at_which_different_kernels_run():
    said = " ".join(line.strip() for line in examples(JACOBI, **PLAIN, static={"s": (4,), "B": (256,)}))
    assert said.startswith(
        "on sm_80: N=4096 s=4 B=256 t=256 -> leaf 1, compiled for these values; N=1048576 s=256 B=256"
    )
    assert said.endswith(" t=256 -> leaf 2, general kernel")
    assert examples(COMPUTED) == ["on sm_80, n=4096: B=256 -> leaf 1"]


def test_for_no_known_gpu_nothing_is_shown():
    assert examples(COPY, machine="R=1000,RB=2000,T=7,Z=1") == []
