from itertools import product

import numpy as np
import pytest

from metafork.ir.messages.source import Source
from metafork.swizzle.grammar.sketch import Sketch
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.problem import hole_table, solves
from metafork.swizzle.search.memory import DoesNotFitError
from metafork.swizzle.search.search import Search, solutions
from tests.metafork.swizzle.running import problem_of

SMALL = {
    "transposition": """
        x: [12] = input
        l: [4, 3] = \\i, j. x[i + 4 * j]
        a: [4, 3] = ?transform{axis=1, secondary=0, level=1}(l)
        b: [4, 3] = ?transform{axis=0, secondary=1, level=1}(a)
        goal b = \\i, j. x[(i + j) % 4 + 4 * ((j + (i + j) % 4) % 3)]""",
    "rotated stages": """
        x: [8] = input
        l: [4, 2] = \\i, j. x[i + 4 * j]
        a: [4, 2] = ?transform{axis=1, secondary=0}(l)
        b: [4, 2] = ?transform{axis=0, secondary=1, level=1}(a)
        c: [4, 2] = ?rotate{axis=0}(b)
        goal c = \\i, j. x[(3 * i + 3 + j) % 4 + 4 * ((j + (3 * i + 3 + j) % 4 / 2) % 2)]""",
    "axes of one place": """
        x: [6] = input
        l: [1, 6] = \\i, j. x[i + j]
        a: [1, 6] = ?transform{axis=0, secondary=1}(l)
        b: [1, 6] = ?transform{axis=1, secondary=0, level=3}(a)
        c: [1, 6] = ?transform{axis=0, secondary=1, level=4}(b)
        goal c = \\i, j. x[5 * j % 6]""",
    "sums of neighbours, with zeros to spare": """
        x: [5] = input
        l: [4, 2] = load_trunc(x)
        s: [4, 2] = ?select{axis=1}(l)
        t: [4, 2] = ?rotate{axis=0}(s)
        k: [4, 2] = ?keep(t)
        o: [4] = fold(+)(k)
        goal o = \\i. x[i]""",
    "products": """
        a: [3] = input
        b: [3] = input
        p: [3, 3] = ?transform{axis=0, secondary=1}(a)
        q: [3, 3] = ?transform{axis=0, secondary=1}(b)
        o: [3] = fold(+)(p * q)
        goal o = \\i. sum(j < 3) a[j] * b[(i + 3 - j) % 3]""",
    "repeated terms": """
        x: [2] = input
        l: [2, 2] = \\i, j. x[i]
        t: [2, 2] = ?transform{axis=0, secondary=1}(l)
        k: [2, 2] = ?keep(t)
        o: [2] = fold(+)(k)
        goal o = \\i. x[i] + x[i]""",
    "copies that broadcast": """
        define spread(v: [4]) -> [4] = \\i. v[i] | \\i. v[0] | \\i. v[3 - i] | \\i. i < 2 ? v[i] : 0
        x: [4] = input
        a: [4] = ?spread(x)
        b: [4] = ?spread(a)
        goal b = \\i. x[3]""",
    "a chain that nothing forces": """
        define move(v: [3]) -> [3] = \\i. v[(i + 1) % 3] | \\i. v[i] | \\i. v[i / 2] | \\i. v[2 - i]
        x: [3] = input
        a: [3] = ?move(x)
        b: [3] = ?move(a)
        c: [3] = ?move(b)
        goal c = \\i. x[i / 2]""",
}


def brute_force(problem):
    holes = problem.holes()
    found = set()
    for options in product(*(range(len(hole.options)) for hole in holes)):
        choice = {hole.name: hole_table(hole, option) for hole, option in zip(holes, options, strict=True)}
        if solves(problem, choice):
            found.add(tuple(sorted(choice_key(choice).items())))
    return found


def choice_key(choice):
    return {name: table.tobytes() for name, table in choice.items()}


@pytest.mark.parametrize("name", SMALL)
def test_no_solution_is_missed_and_none_is_wrong(name):
    problem = load(Source(name, SMALL[name]))
    wanted = brute_force(problem)
    assert wanted, "a problem without solutions shows little"
    found = set()
    for solution in Search(problem):
        choice = {hole.name: hole_table(hole, solution.options[hole.name]) for hole in problem.holes()}
        assert solves(problem, choice)
        found.add(tuple(sorted(choice_key(choice).items())))
    if name == "rotated stages":
        # A transformation and the rotation behind it count as one stage: compare their compositions.
        assert {stage_tables(problem, one) for one in found} == {stage_tables(problem, one) for one in wanted}
    else:
        assert found == wanted


def stage_tables(problem, solution):
    tables = {name: np.frombuffer(table, dtype=np.int32) for name, table in solution}
    return tables["a"].tobytes(), tables["b"][tables["c"]].tobytes()


def test_no_solution_is_found_where_there_is_none():
    problem = load(Source("none", SMALL["transposition"].replace("4 * ((j", "4 * ((i * i + j")))
    assert brute_force(problem) == set()
    assert solutions(problem) == []


def test_the_search_is_deterministic_and_can_stop_early():
    problem = problem_of("crc", s=4)
    every = solutions(problem)
    assert [one.options for one in every] == [one.options for one in solutions(problem_of("crc", s=4))]
    assert solutions(problem, limit=1) == every[:1]
    search = Search(problem)
    assert list(search) == list(search) == every


def test_statistics_count_states():
    search = Search(problem_of("crc", s=4))
    count = len(list(search))
    statistics = search.statistics
    assert statistics.states_built > count
    assert 0 < statistics.states_pruned < statistics.states_built
    assert 1.0 <= statistics.ineffectiveness == statistics.states_built / statistics.states_on_solutions


def test_a_memory_bound_is_kept_with_a_message():
    with pytest.raises(
        DoesNotFitError, match=r"the composed options of s1\+r1 would take .* more than the 12 MB allowed"
    ):
        solutions(problem_of("crc", s=11), megabytes=12)
    search = Search(problem_of("crc", s=7), megabytes=60)
    assert len(list(search)) == 2
    assert 0 < search.statistics.reserved_bytes <= 60 << 20


def test_swizzleflows_wrap_has_no_solutions_for_two_and_four():
    """Its release adds the rotation outside the modulus; the facts of the papers' runs follow from that."""
    text = (
        "let s = 3\nx: [32 * s] = input\nl: [32, s] = load_rep(x)\n"
        "a: [32, s] = ?transform{axis=1, secondary=0, outside}(l)\nb: [32, s] = ?row_rots(a)\n"
        "c: [32, s] = ?transform{axis=0, secondary=1, outside}(b)\nd: [32, s] = ?col_rots(c)\n"
        "e: [32, s] = ?transform{axis=1, secondary=0, outside}(d)\nf: [32, s] = ?row_rots(e)\n"
        "goal f = \\i, j. x[s * i + j]\n"
    )
    for size, count in ((2, 0), (3, 2), (4, 0)):
        assert len(solutions(load(Source("outside", text), {"s": size}))) == count


def test_the_same_problem_by_calls():
    from metafork.swizzle.model.index import Name, Number, binary
    from metafork.swizzle.model.problem import Case, Read

    sketch = Sketch("crc")
    x = sketch.input("x", (96,))
    lane, register = Name("d0"), Name("d1")
    at = binary("+", lane, binary("*", Number(32), register))
    array = sketch.gather("loaded", (32, 3), [x], [Case(None, Read(0, (at,)))])
    for stage, axis in enumerate((1, 0, 1)):
        array = sketch.transform(f"s{stage}", array, axis=axis, secondary=1 - axis)
        array = sketch.rotate(f"r{stage}", array, axis=axis)

    def transposed(x, i, j):
        return x[3 * i + j]

    sketch.goal_function(array, transposed, [x])
    assert len(solutions(sketch.problem())) == len(solutions(problem_of("crc", s=3))) == 2


@pytest.mark.slow
def test_six_accumulates_where_the_hand_written_kernel_has_eight():
    from metafork.swizzle.output.ranking import rank

    fewest = {}
    for name in ("polynomial_wide", "polynomial_shared"):
        problem = problem_of(name)
        ranked = rank(problem, solutions(problem), objective="accumulates")
        assert [one.cost.accumulates for one in ranked] == sorted(one.cost.accumulates for one in ranked)
        fewest[name] = ranked[0].cost.accumulates
    assert fewest == {"polynomial_wide": 8, "polynomial_shared": 6}


TWISTED = """
    define twist(v: [4]) -> [4] = \\i. v[i] | \\i. v[i ^ 1] | \\i. v[i ^ 2] | \\i. v[3 - i]
    x: [4] = input
    a: [4] = ?twist(x)
    b: [4] = ?twist(a)
    goal b = \\i. WANTED
"""


def test_pairs_of_terms_that_cannot_both_arrive_are_seen_before_branching():
    """Each cell alone could get its term through the two holes, but no two holes bring both."""
    search = Search(load(Source("twisted", TWISTED.replace("WANTED", "i < 2 ? x[i] : x[5 - i]"))))
    assert list(search) == []
    assert search.statistics.states_built == 1, "no option was tried"
    possible = load(Source("twisted", TWISTED.replace("WANTED", "x[i ^ 3]")))
    assert {one.options["a"] ^ one.options["b"] for one in solutions(possible)} == {3}


def test_vector_instructions_on_registers_that_were_made_before():
    """Without the limit to the first registers, later holes may read earlier results: nothing is forced there."""
    text = """
        x: [12] = input
        r: [2, 4] = [[x[0], x[2], x[4], x[6]], [x[1], x[3], x[5], x[7]]]
        s: [3, 4] = ?vector(r)
        t: [4, 4] = ?vector(s)
        out: [4] = \\i. t[3, i]
        goal out = \\i. i < 2 ? x[1 + i] : (i == 2 ? x[5] : x[6])
    """
    problem = load(Source("vectors", text))
    found = solutions(problem)
    assert {tuple(sorted(choice_key(tables(problem, one)).items())) for one in found} == brute_force(problem)


def tables(problem, solution):
    return {hole.name: hole_table(hole, solution.options[hole.name]) for hole in problem.holes()}
