"""All operators on elements, constants and reductions in steps: in goals, in sketches, in the search, in code."""

import re
from itertools import product

import numpy as np
import pytest

from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.swizzle.grammar.sketch import Sketch
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.index import Number
from metafork.swizzle.model.options import OptionSet, first_of_each
from metafork.swizzle.model.problem import ZERO_CELL, Gather, Hole, Literal, execute, hole_table, solves
from metafork.swizzle.model.specification import Symbolic
from metafork.swizzle.model.terms import OPERATORS, Terms
from metafork.swizzle.output.instructions import Combine, Shuffle
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.search.search import Search, solutions
from metafork.swizzle.search.steps import unknown_steps
from tests.metafork.swizzle.running import check_cuda, check_everywhere, problem_of


@pytest.mark.parametrize("w", [4, 8])
def test_finite_field_multiplication(w, tmp_path):
    problem = problem_of("finite_field", w=w, level=3)
    found = solutions(problem)
    assert len(found) == 2
    check_everywhere(problem, found, tmp_path)


@pytest.mark.slow
def test_finite_field_multiplication_of_degree_32(tmp_path):
    problem = problem_of("finite_field")
    found = solutions(problem)
    assert len(found) == 2
    assert {one.op for one in lower(problem, found[0]).instructions if isinstance(one, Combine)} == {"^", "&"}
    check_cuda(problem, found[:1], tmp_path)


OPERATORS_IN_SKETCHES = {
    "differences of neighbours": """
        l: [8, 2] = \\i, j. x[i + 8 * j]
        r: [8, 2] = ?rotate{axis=0}(l)
        o: [8, 2] = r - l
        goal o = \\i, j. x[(i + 3) % 8 + 8 * j] - x[i + 8 * j]""",
    "a Laplacian with constants": """
        l: [8] = \\i. x[i]
        e: [8] = ?rotate{axis=0}(l)
        w: [8] = ?rotate{axis=0}(l)
        o: [8] = e + w - 2 * l
        goal o = \\i. x[(i + 1) % 8] - 2 * x[i] + x[(i + 7) % 8]""",
    "the larger of two": """
        l: [8] = \\i. x[i]
        r: [8] = ?exchange{axis=0}(l)
        o: [8] = max(l, r) - min(r, l)
        goal o = \\i. max(x[i], x[i ^ 4]) - min(x[i], x[i ^ 4])""",
    "windows of a maximum": """
        l: [8, 2] = \\i, j. x[i + 8 * j]
        s: [8, 3] = ?select{axis=1}(l)
        t: [8, 3] = ?transform{axis=0, secondary=1}(s)
        o: [8] = fold(max)(t)
        goal o = \\i. max(j < 3) x[i + j]""",
    "masks and bits": """
        l: [8] = \\i. x[i]
        r: [8] = ?rotate{axis=0}(l)
        o: [8] = (l & 12) | (r & 3) ^ 64
        goal o = \\i. x[i] & 12 | x[(i + 5) % 8] & 3 ^ 64""",
    "masks in indices": """
        l: [8] = \\i. x[i]
        r: [8] = ?rotate{axis=0}(l)
        o: [8] = \\i. r[(i & 5 | i == 6) ^ 2]
        goal o = \\i. x[((i & 5 | i == 6) ^ 2) + 3 & 7]""",
    "weights and signs": """
        l: [8, 3] = \\i, j. x[i + j]
        t: [8, 3] = ?transform{axis=1, secondary=0}(l)
        w: [8, 3] = \\i, j. j == 1 ? -1 : j + 1
        o: [8] = fold(+)(w * t)
        goal o = \\i. x[i] - x[i + 1] + 3 * x[i + 2]""",
    "a rectifier": """
        l: [8] = \\i. x[i]
        r: [8] = ?rotate{axis=0}(l)
        o: [8] = max(r, 0)
        goal o = \\i. max(0, x[(i + 6) % 8])""",
    "a constant that a thread knows": """
        l: [8] = \\i. x[i]
        r: [8] = ?rotate{axis=0}(l)
        k: [8] = \\i. i * i
        o: [8] = r * k - i_s
        goal o = \\i. i * i * x[(i + 2) % 8] - i""",
    "a running maximum in steps": """
        l: [8] = \\i. x[i]
        a: [8] = max(l, ?rotate{axis=0}(l))
        b: [8] = max(a, ?rotate{axis=0}(a))
        c: [8] = max(b, ?rotate{axis=0}(b))
        goal c = \\i. max(j < 7) x[(i + j) % 8]""",
}


@pytest.mark.parametrize("name", OPERATORS_IN_SKETCHES)
@pytest.mark.sampled(4)
def test_operators_are_solved_and_run(name, tmp_path):
    text = "x: [16] = input\n" + OPERATORS_IN_SKETCHES[name].replace("i_s", "(\\i. i)")
    problem = load(Source("operators.swz", text))
    found = solutions(problem, limit=4)
    assert found
    check_everywhere(problem, found, tmp_path)


def test_a_difference_is_one_instruction():
    problem = load(Source("d.swz", "x: [16] = input\n" + OPERATORS_IN_SKETCHES["differences of neighbours"]))
    (only,) = solutions(problem)
    assert [one.op for one in lower(problem, only).instructions if isinstance(one, Combine)] == ["-", "-"]


def test_a_butterfly_and_a_scan_take_five_steps(tmp_path):
    for name in ("butterfly", "scan"):
        problem = problem_of(name)
        (first,) = solutions(problem, limit=1)
        assert sum(isinstance(one, Shuffle) for one in lower(problem, first).instructions) == 5
        check_everywhere(problem, [first], tmp_path)


STEPS = """
    let n = 8
    x: [n] = input
    a: [n] = x + ?HOLE{axis=0}(x)
    b: [n] = a + ?HOLE{axis=0}(a)
    c: [n] = b + ?HOLE{axis=0}(b)
    goal c = \\i. sum(j < n GUARD) x[j]
"""


@pytest.mark.parametrize(
    ("hole", "guard", "count"),
    # Exchanges: any basis of the three bits in order; rotations: one of 4, one of 2 mod 4, one odd in any order.
    [("exchange", "", 7 * 6 * 4), ("rotate", "", 6 * 1 * 2 * 4), ("shift", ", j <= i", 6), ("shift", ", j >= i", 6)],
)
def test_every_way_in_steps_is_found(hole, guard, count):
    problem = load(Source("steps.swz", STEPS.replace("HOLE", hole + "s_whole" * 0).replace("GUARD", guard)))
    if hole == "rotate":
        problem = load(
            Source("steps.swz", STEPS.replace("?HOLE{axis=0", "?rotate{axis=0, level=2").replace("GUARD", ""))
        )
    found = solutions(problem)
    assert len(found) == len({tuple(sorted(one.options.items())) for one in found}) == count
    for one in found:
        assert solves(problem, {hole.name: hole_table(hole, one.options[hole.name]) for hole in problem.holes()})


def test_a_sum_over_registers_and_then_over_threads(tmp_path):
    text = """
        x: [32] = input
        l: [8, 4] = \\i, j. x[i + 8 * j]
        a: [8] = fold(+)(l)
        b: [8] = a + ?exchange{axis=0}(a)
        c: [8] = b + ?exchange{axis=0}(b)
        d: [8] = c + ?exchange{axis=0}(c)
        goal d = \\i. sum(j < 32) x[j]
    """
    problem = load(Source("two.swz", text))
    found = solutions(problem)
    assert len(found) == 7 * 6 * 4
    check_everywhere(problem, found[:2], tmp_path)


def test_steps_that_cannot_reach_the_goal_have_no_solution():
    assert solutions(load(Source("few.swz", STEPS.replace("HOLE", "exchange").replace("GUARD", "").replace(
        "goal c", "goal b")))) == []  # fmt: skip


def test_specifications_with_every_assignment():
    text = """
        x: [4] = input
        o: [6] = \\i. x[0]
        goal o = spec {
            o[0] = x[0]; o[0] -= x[1];
            o[1] = x[0]; o[1] *= x[1];
            o[2] = x[0]; o[2] &= x[1];
            o[3] = x[0]; o[3] |= x[1]; o[3] |= x[0];
            o[4] = max(x[0], min(x[1], 3));
            o[5] = x[0]; for j < 4 { o[5] = max(o[5], x[j]); }
        }
    """
    problem = load(Source("all.swz", text))
    spelled = [problem.terms.text(term) for term in problem.goal_terms]
    assert spelled[1:4] == ["x0*x1", "x0 & x1", "x0 | x1"]
    assert spelled[5] == "max(x0, x1, x2, x3)"
    values = {problem.terms.atom("x", at): value for at, value in enumerate((5, 7, 2, 9))}
    assert [problem.terms.evaluate(term, values) for term in problem.goal_terms] == [-2, 35, 5, 7, 5, 9]


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("o: [4] = 3 * 4", "MF0904", "combines constants only"),
        ("o: [4] = \\i. x[i] + 1", "MF0904", "a gather gives an element of an array, or an integer"),
        ("o: [4] = 3", "MF0904", "a number alone is no array"),
        ("o: [4] = max(x, y)", "MF0902", "there is no array 'y'"),
        ("goal x = \\i. max(j < 0) x[j]", "MF0904", "a reduction by 'max' of nothing"),
        ("goal x = \\i. x[i] / 2", "MF0904", "'/' is no operator on elements"),
        ("goal x = \\i. x[i] < 2", "MF0904", "'<' is no operator on elements"),
        ("o: [6] = ?exchange{axis=0}(y)", "MF0902", "there is no array 'y'"),
        ("z: [6] = input\no: [6] = ?exchange{axis=0}(z)", "MF0903", "is no power of two"),
    ],
)
def test_faults(line, code, message):
    with pytest.raises(DiagnosticsError) as caught:
        load(Source("fault.swz", "x: [4] = input\n" + line + "\n"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert message in diagnostic.message


def random_value(random, terms, depth):
    """A term built by operators, and the value of the same expression on integers."""
    if depth == 0 or random.random() < 0.2:
        if random.random() < 0.4:
            constant = int(random.integers(-2, 4))
            return terms.constant(constant), constant
        place = int(random.integers(4))
        return terms.atom("x", place), VALUES[place]
    one, left = random_value(random, terms, depth - 1)
    two, right = random_value(random, terms, depth - 1)
    op = str(random.choice([*sorted(OPERATORS), "-"]))
    made = Symbolic(terms, one) - Symbolic(terms, two) if op == "-" else Symbolic(terms, terms.fold(op, (one, two)))
    return made.term, MEANING[op](left, right)


VALUES = (13, -7, 100, 6)
MEANING = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "max": max,
    "min": min,
}


def test_canonical_terms_keep_the_value():
    """Whatever is dropped, merged or turned round: equal terms have equal values."""
    random = np.random.default_rng(11)
    terms, seen = Terms(), {}
    atoms = {terms.atom("x", place): value for place, value in enumerate(VALUES)}
    for _ in range(4000):
        term, value = random_value(random, terms, 4)
        assert terms.evaluate(term, atoms) == value, terms.text(term)
        assert seen.setdefault(term, value) == value
    assert len(seen) > 500


def random_move(sketch, random, name, argument):
    (size,) = sketch.shape(argument)
    width = int(random.integers(2, 4))
    sources = np.stack([random.permutation(size) for _ in range(width)], axis=1).astype(np.int32)
    sources[:, 0] = np.arange(size)
    tables = random.integers(-1 if random.random() < 0.3 else 0, width, size=(int(random.integers(2, 5)), 1))
    tables = tables[first_of_each(tables.astype(np.int16))].astype(np.int16)
    hole = Hole(
        name, (size,), argument, "random", OptionSet(tables, Number), np.zeros(size, np.int32), sources,
        (0,), None, ("d0",), lambda _: (),
    )  # fmt: skip
    return sketch._add(hole)


def random_problem(seed):
    """Arrays of one shape combined by random operators, in steps or not, with movements and constants between."""
    random = np.random.default_rng(seed)
    sketch = Sketch(f"random{seed}")
    size = int(random.integers(2, 5))
    arrays = [sketch.input("x", (size,)), sketch.input("y", (size,))]
    if random.random() < 0.5:
        arrays.append(sketch.constant("k", (size,), random.integers(-1, 3, size=size)))
    operators = [str(one) for one in random.choice(sorted(OPERATORS), size=2)]
    moves = 0
    for step in range(int(random.integers(2, 5))):
        left, right = (arrays[int(place)] for place in random.integers(len(arrays), size=2))
        if moves < 3:
            right, moves = random_move(sketch, random, f"h{step}", right), moves + 1
        if random.random() < 0.15:
            right = sketch._add(Gather(f"g{step}", (size,), (right,), np.full(size, ZERO_CELL, np.int32), ()))
        op = str(random.choice(operators))
        if op == "+" and random.random() < 0.4:
            right = sketch.elementwise(f"n{step}", (-1, right), "*")
        arrays.append(sketch.product(f"s{step}", left, right, op))
    sketch.goal(arrays[-1], [0] * size)
    probe = sketch.problem()
    choice = {hole.name: hole_table(hole, int(random.integers(len(hole.options)))) for hole in probe.holes()}
    wanted = execute(probe, choice)[arrays[-1]]
    sketch.goals.clear()
    sketch.goal(arrays[-1], wanted.tolist())
    return sketch.problem()


@pytest.mark.parametrize("start", range(0, 300, 60))
@pytest.mark.sampled(2)
def test_the_search_finds_what_enumeration_finds(start):
    several = stepped = 0
    for seed in range(start, start + 60):
        problem = random_problem(seed)
        names = [hole.name for hole in problem.holes()]
        wanted = set()
        for numbers in product(*(range(len(hole.options)) for hole in problem.holes())):
            options = dict(zip(names, numbers, strict=True))
            if solves(problem, {hole.name: hole_table(hole, options[hole.name]) for hole in problem.holes()}):
                wanted.add(key(problem, options))
        search = Search(problem)
        found = [key(problem, one.options) for one in search]
        assert wanted
        # Holes that nothing reads take any option.
        assert set(found) == wanted or unread(problem), seed
        assert set(found) <= wanted, seed
        several += len(wanted) > 1
        stepped += bool(unknown_steps(problem))
    assert several > 5
    assert stepped > 5


def key(problem, options):
    return tuple(hole_table(hole, options[hole.name]).tobytes() for hole in problem.holes())


def unread(problem):
    """Holes that do not lead to the goal."""
    needed = {goal.array for goal in problem.goals}
    for one in reversed(problem.statements):
        if one.name in needed and not isinstance(one, Literal):
            needed.update(one.arguments if isinstance(one, Gather) else (one.argument,))
    return [hole for hole in problem.holes() if hole.name not in needed]


def test_alternatives_and_bits_do_not_clash():
    text = """
        define f(v: [4]) -> [4] = \\i. v[i | 1] | \\i. v[i & 2]
          | \\i. v[i ^ 3]
        x: [4] = input
        a: [4] = ?f(x)
        goal a = \\i. x[i & 2]
    """
    problem = load(Source("alternatives.swz", text))
    (hole,) = problem.holes()
    assert len(hole.options) == 3
    (only,) = solutions(problem)
    assert re.fullmatch(r"f_1", hole.options.expression(only.options["a"]).name)
