"""Symbols are elements of arrays, whatever the arrays are called; of several goals every one is met."""

import pytest

from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.problem import execute, hole_table
from metafork.swizzle.model.terms import Terms
from metafork.swizzle.search.search import solutions
from tests.metafork.swizzle.running import check_c, check_cuda

PAIR = """
    a: [20] = input
    a1: [10] = input
    l: [4] = \\i. i == 0 ? WRONG : a[i]
    goal l = \\i. i == 0 ? a[10] : a[i]
"""


def test_elements_of_arrays_whose_names_end_with_digits_differ():
    assert solutions(load(Source("pair", PAIR.replace("WRONG", "a[10]"))))
    assert solutions(load(Source("pair", PAIR.replace("WRONG", "a1[0]")))) == []


def test_no_two_elements_of_any_two_arrays_have_one_number_or_one_spelling():
    terms = Terms()
    elements = [(name, place) for name in ("a", "a1", "a10", "a_", "a_1", "b") for place in range(120)]
    numbers = [terms.atom(*element) for element in elements]
    assert len(set(numbers)) == len({terms.text(number) for number in numbers}) == len(elements)
    assert [terms.atom(*element) for element in elements] == numbers


TWO_GOALS = """
    x: [8] = input
    a: [8] = ?rotate{axis=0}(x)
    b: [8] = ?rotate{axis=0}(a)
    goal a = \\i. x[(i + 1) % 8]
    goal b = \\i. x[(i + 3) % 8]
"""


@pytest.mark.parametrize("swapped", [False, True])
def test_both_of_two_goals_are_met_and_stored_one_behind_the_other(swapped, tmp_path):
    lines = TWO_GOALS.strip().splitlines()
    if swapped:
        lines[-2:] = lines[:-3:-1]
    problem = load(Source("both", "\n".join(lines)))
    (only,) = solutions(problem)
    made = execute(problem, {hole.name: hole_table(hole, only.options[hole.name]) for hole in problem.holes()})
    assert [problem.terms.text(term) for term in (made["a"][0], made["b"][0])] == ["x1", "x3"]
    assert problem.goal_terms.size == 16
    check_cuda(problem, [only], tmp_path)
    check_c(problem, [only], tmp_path)


def test_goals_before_and_behind_a_reduction(tmp_path):
    text = """
        x: [8] = input
        l: [4, 2] = \\i, j. x[i + 4 * j]
        t: [4, 2] = ?rotate{axis=0}(l)
        s: [4] = fold(+)(t)
        u: [4] = ?rotate{axis=0}(s)
        goal u = \\i. x[(i + 1) % 4] + x[(i + 1) % 4 + 4]
    """
    first = "goal t = \\i, j. x[(i + 3) % 4 + 4 * j]"
    alone, both = solutions(load(Source("alone", text))), solutions(load(Source("both", text + first)))
    assert len(both) == 1 < len(alone), "the first goal must exclude something"
    check_cuda(load(Source("both", text + first)), both, tmp_path)


def test_goals_that_no_choice_meets_together():
    other = TWO_GOALS.replace("goal b = \\i. x[(i + 3) % 8]", "c: [8] = \\i. a[7 - i]\ngoal c = \\i. x[(9 - i) % 8]")
    assert solutions(load(Source("apart", other))) == []


def test_an_input_may_be_a_goal(tmp_path):
    problem = load(Source("plain", "x: [8] = input\ngoal x = \\i. x[i]\n"))
    check_cuda(problem, solutions(problem), tmp_path)


def test_one_array_has_one_goal():
    with pytest.raises(DiagnosticsError) as caught:
        load(Source("twice", "x: [4] = input\ngoal x = \\i. x[i]\ngoal x = \\i. x[3 - i]\n"))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.span.line) == ("MF0904", 3)
    assert "has a goal already" in diagnostic.message
