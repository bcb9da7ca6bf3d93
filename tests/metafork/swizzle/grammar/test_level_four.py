"""Level 4 in full: nothing is cut, one-dimensional arguments have it too, and what cannot be listed is refused."""

import numpy as np
import pytest
from msgspec.structs import replace

from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.swizzle.grammar.levels import transformations
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.problem import Wanted, execute, hole_table
from metafork.swizzle.search.search import solutions
from tests.metafork.swizzle.running import check_cuda, problem_of

ONE_STAGE = """
    x: [32, 6] = input
    t: [32, 6] = ?transform{axis=0, secondary=1, level=4}(x)
    u: [32, 6] = TURN(t)
    goal u = \\i, k. x[i, k]
"""


def planted(text, name, option, turn=0):
    """The problem whose goal is what one option makes, with that option's tables."""
    problem = load(Source("planted", text))
    choice = {hole.name: hole_table(hole, option if hole.name == name else turn) for hole in problem.holes()}
    goals = tuple(Wanted(goal.array, execute(problem, choice)[goal.array]) for goal in problem.goals)
    return replace(problem, goals=goals)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.sampled(1)
def test_any_composition_is_found_again(turned):
    text = ONE_STAGE.replace("TURN(t)", "?rotate{axis=0}(t)" if turned else "\\i, k. t[i, k]")
    count = len(transformations(32, 6, 4))
    assert count > 200_000, "the test would show nothing of large families"
    for option in np.random.default_rng(3).integers(0, count, 2).tolist():
        problem = planted(text, "t", option, 7)
        found = solutions(problem)
        assert found
        tables = {hole.name: hole_table(hole, option if hole.name == "t" else 7) for hole in problem.holes()}
        made = tables["t"][tables["u"]] if turned else tables["t"]
        keys = [
            hole_table(problem.statement("t"), one.options["t"])[hole_table(problem.statement("u"), one.options["u"])]
            if turned
            else hole_table(problem.statement("t"), one.options["t"])
            for one in found
        ]
        assert sum(np.array_equal(key, made) for key in keys) == 1


LOOSE = """
    x: [32, 6] = input
    t: [32, 6] = ?transform{axis=0, secondary=1, level=4}(x)
    u: [WIDTH] = \\k. t[9, k]
    goal u = \\k. x[9 + 2 * k, k]
"""


def test_a_stage_that_little_forces_keeps_every_option_that_fits():
    problem = load(Source("loose", LOOSE.replace("WIDTH", "6")))
    options = problem.statement("t").options
    wanted = {tuple(table) for table in options.tables.tolist() if table[54:60] == [9, 11, 13, 15, 17, 19]}
    for turn in options.composition.turns:
        made = options.composition.tables[:, turn[54:60]]
        for row in np.flatnonzero((made == [9, 11, 13, 15, 17, 19]).all(axis=1)).tolist():
            wanted.add(tuple(options.composition.tables[row][turn].tolist()))
    found = [tuple(options.table(one.options["t"]).tolist()) for one in solutions(problem)]
    assert len(found) == len(wanted) > 5
    assert set(found) == wanted


def test_a_stage_of_which_too_much_fits_to_be_listed_is_walked_in_blocks():
    problem = load(Source("loose", LOOSE.replace("WIDTH", "1")))
    found = [problem.statement("t").options.table(one.options["t"]) for one in solutions(problem, limit=400)]
    assert len({table.tobytes() for table in found}) == 400
    assert all(table[54] == 9 for table in found)


@pytest.mark.slow
def test_twenty_words_a_structure(tmp_path):
    problem = problem_of("crc", s=20, level=4)
    found = solutions(problem)
    assert found
    check_cuda(problem, found, tmp_path)


def test_one_dimensional_arguments_have_level_four():
    text = "x: [8] = input\nt: [8, 4] = ?transform{axis=0, secondary=1, level=LEVEL}(x)\ngoal t = \\i, k. x[0]\n"
    problems = {level: load(Source("pick", text.replace("LEVEL", str(level)))) for level in (3, 4)}
    (narrow,), (wide,) = (problem.holes() for problem in problems.values())
    tables = [{table.tobytes() for table in hole.options.tables} for hole in (narrow, wide)]
    assert tables[0] < tables[1]
    assert {table.tobytes() for table in transformations(8, 4, 4).tables} <= tables[1]
    # A column-major linearisation with an inner modulus: nothing below level 4 does it.
    unit = "goal t = \\i, k. x[(3 * i + (k + 5 * i) % 4) % 8]"
    for level, expected in ((3, 0), (4, 1)):
        assert (
            len(solutions(load(Source("unit", text.replace("LEVEL", str(level)).split("goal")[0] + unit)))) == expected
        )


@pytest.mark.parametrize("level", [1, 2, 3])
def test_broadcasts_of_arrays_with_registers(level, tmp_path):
    text = f"""
        x: [16] = input
        l: [8, 2] = \\i, j. x[i + 8 * j]
        t: [8, 2] = ?transform{{axis=0, secondary=1, level={level}}}(l)
        goal t = \\i, j. x[(3 * j + 5) % 8 + 8 * j]
    """
    problem = load(Source("spread", text))
    (only,) = solutions(problem)
    check_cuda(problem, [only], tmp_path)


def test_axes_whose_families_cannot_be_listed_are_refused_by_number():
    text = "x: [64, 64] = input\ny: [64, 64] = ?transform{axis=0, secondary=1, level=4}(x)\ngoal y = \\i, j. x[i, j]\n"
    with pytest.raises(DiagnosticsError, match=r"too many options to list: about \d+ entries .* at most 200000000"):
        load(Source("large", text))
