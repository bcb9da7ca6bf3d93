"""Where results go, and lane movements that loads and stores do."""

import numpy as np
import pytest

from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.index import evaluate
from metafork.swizzle.output.instructions import Load, Select, Shuffle
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.search.search import solutions
from tests.metafork.swizzle.running import check_everywhere, problem_of
from tests.sampling import sampled


def count(code, kind):
    return sum(isinstance(one, kind) for one in code.instructions)


def rows_of(code):
    """The elements that the warp touches at each load and at each store."""
    lanes = np.arange(code.lanes)
    loads = [one.index for one in code.instructions if isinstance(one, Load)]
    spread = [np.broadcast_to(evaluate(index, {"lane": lanes}), lanes.shape)
              for index in (*loads, *(store.index for store in code.stores))]  # fmt: skip
    return [set(one.tolist()) for one in spread]


@pytest.mark.parametrize(("name", "s"), sampled([("crc", 3), ("crc", 4), ("rcr", 3), ("rcr", 7)], 3))
@pytest.mark.sampled(1)
def test_a_transposition_loads_and_stores_whole_rows(name, s, tmp_path):
    problem = problem_of(name, s=s)
    found = solutions(problem)
    for one in found:
        rows = rows_of(lower(problem, one))
        assert len(rows) == 2 * s
        for row in rows:
            assert len(row) == 32
            assert max(row) - min(row) == 31
            assert min(row) % 32 == 0
    assert [problem.terms.text(term) for term in problem.goal_terms[:3]] == ["x0", "x1", "x2"]
    assert problem.positions()[:3].tolist() == [0, 32, 64]
    check_everywhere(problem, found, tmp_path)


@pytest.mark.parametrize("s", sampled((3, 5, 7), 1))
def test_row_column_row_needs_no_shuffle(s):
    problem = problem_of("rcr", s=s)
    assert [count(lower(problem, one), Shuffle) for one in solutions(problem)] == [0, 0, 0]


PLACED = {
    "a gap in every row": (
        "goal r = \\i, j. x[(i + 1) % 8 + 8 * j] -> out[j * 9 + i]", 17, lambda i, j: j * 9 + i),
    "names of its own": (
        "goal r = spec { for i < 8 { for j < 2 { r[i, j] = x[(i + 1) % 8 + 8 * j]; } } } "
        "-> \\a, b. out[15 - 8 * b - a]",
        16, lambda i, j: 15 - 8 * j - i),
    "by the thread alone": (
        "goal r = \\i, j. x[(i + 1) % 8 + 8 * j] -> out[j == 0 ? lane : 20 + lane]", 28, lambda i, j: 20 * j + i),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACED)
def test_places_of_a_goal(name, tmp_path):
    goal, size, where = PLACED[name]
    text = "x: [16] = input\nl: [8, 2] = \\i, j. x[i + 8 * j]\nr: [8, 2] = ?rotate{axis=0}(l)\n" + goal
    problem = load(Source("placed.swz", text))
    assert problem.output_size == size
    assert problem.positions().tolist() == [where(i, j) for i in range(8) for j in range(2)]
    check_everywhere(problem, solutions(problem), tmp_path)


def test_two_goals_of_which_one_has_a_place(tmp_path):
    text = """
        x: [8] = input
        a: [8] = ?rotate{axis=0}(x)
        b: [8] = \\i. a[7 - i]
        goal a = \\i. x[(i + 1) % 8] -> out[2 * i + 8]
        goal b = \\i. x[(8 - i) % 8] -> out[i < 4 ? 2 * i + 9 : i]
    """
    problem = load(Source("both.swz", text))
    check_everywhere(problem, solutions(problem), tmp_path)


def test_threads_of_two_axes(tmp_path):
    text = """
        warp 2
        x: [4, 8] = input
        a: [4, 8] = ?rotate{axis=1}(x)
        goal a = \\i, j. x[i, (j + 5) % 8] -> out[31 - lane]
    """
    problem = load(Source("grid.swz", text))
    assert problem.positions().reshape(4, 8)[1, 2] == 31 - (1 + 4 * 2)
    check_everywhere(problem, solutions(problem), tmp_path)


@pytest.mark.parametrize(
    ("place", "code", "message"),
    [
        ("out[i / 2]", "MF0904", "two cells of the goals go to out[0]"),
        ("out[i - 1]", "MF0904", "goes to out[-1]"),
        ("out[i * 9000000]", "MF0904", "goes to out["),
        ("here[i]", "MF0901", "expected 'out'"),
        ("out[k]", "MF0902", "'k' is neither an index nor a constant"),
        ("\\a, b. out[a]", "MF0903", "a place over 2 indices is none in the shape [4]"),
        ("out[x[i]]", "MF0904", "swizzles do not depend on data"),
    ],
)
def test_faults_of_places(place, code, message):
    with pytest.raises(DiagnosticsError) as caught:
        load(Source("fault.swz", "x: [4] = input\ngoal x = \\i. x[i] -> " + place))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.span.line) == (code, 2)
    assert message in diagnostic.message


def test_two_goals_may_not_share_a_place():
    text = "x: [4] = input\na: [4] = ?rotate{axis=0}(x)\ngoal a = \\i. x[i]\ngoal x = \\i. x[i] -> out[i + 3]\n"
    with pytest.raises(DiagnosticsError, match=r"two cells of the goals go to out\[3\]"):
        load(Source("shared.swz", text))


MOVES = {
    "a load": (
        "l: [8, 2] = \\i, j. x[i + 8 * j]\nr: [8, 2] = ?rotate{axis=0}(l)\n"
        "goal r = \\i, j. x[(i + 3) % 8 + 8 * j]", 0),
    "a guarded load of two registers": (
        "l: [8, 2] = \\i, j. i + 8 * j < 13 ? x[i + 8 * j] : j == 0 ? 0 : i\n"
        "r: [8, 2] = ?rotate{axis=0}(l)\n"
        "goal r = \\i, j. (i + 3) % 8 + 8 * j < 13 ? x[(i + 3) % 8 + 8 * j] : (i + 3) % 8", 0),
    "a store behind arithmetic": (
        "l: [8, 2] = \\i, j. x[i + 8 * j]\na: [8] = fold(+)(l)\nr: [8] = ?rotate{axis=0}(a)\n"
        "goal r = \\i. x[(i + 3) % 8] + x[(i + 3) % 8 + 8] -> out[7 - i]", 0),
    # What is also used otherwise stays: loading it twice is what the shuffle avoids.
    "a value with two uses": (
        "l: [8] = \\i. x[i]\nr: [8] = ?rotate{axis=0}(l)\no: [8] = l + r\ngoal o = \\i. x[i] + x[(i + 3) % 8]", 1),
    "a result with two uses": (
        "l: [8] = \\i. x[i]\na: [8] = l * l\nr: [8] = ?rotate{axis=0}(a)\no: [8] = r + 1\n"
        "goal o = \\i. x[(i + 3) % 8] * x[(i + 3) % 8] + 1\ngoal r = \\i. x[(i + 3) % 8] * x[(i + 3) % 8]", 1),
    "no permutation": (
        "define f(v: [8]) -> [8] = \\i. v[i / 2] | \\i. v[i]\nl: [8] = \\i. x[i]\na: [8] = l * l\nr: [8] = ?f(a)\n"
        "goal r = \\i. x[i / 2] * x[i / 2]", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_shuffles_that_loads_and_stores_do(name, tmp_path):
    text, shuffles = MOVES[name]
    problem = load(Source("moves.swz", "x: [16] = input\n" + text))
    found = solutions(problem)
    assert len(found) == 1
    code = lower(problem, found[0])
    assert count(code, Shuffle) == shuffles
    check_everywhere(problem, found, tmp_path)


def test_a_stencil_loads_no_more_than_it_did():
    problem = problem_of("stencil1d", k=5)
    code = lower(problem, solutions(problem, limit=1)[0])
    assert (count(code, Load), count(code, Shuffle)) == (2, 4)
    assert count(code, Select) >= 4
