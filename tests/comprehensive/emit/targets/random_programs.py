"""Random programs behind the stand-in of a driver: their seeds, and the comparison with the serial elision."""

from metafork.comprehensive import registry
from metafork.comprehensive.optimize import Result, discuss
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import Assign, walk_statements
from tests.comprehensive.emit.targets.programs import PTX, LeafTexts, Program, build, write_outputs
from tests.random_programs.batch import COUNTERS, SECONDS
from tests.random_programs.batch import _points as points_of
from tests.random_programs.generator import file_text

SEEDS = (
    3, 20, 100, 102, 103, 104, 105, 106, 107, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 121,
    122, 123, 125, 127, 128, 129, 130, 131, 133, 134, 136, 137, 138, 139, 141, 142, 143, 144, 146, 147,
)  # fmt: skip
"""Forty programs, in none of which a floating value becomes an integer: C does not say what where it does not fit."""
MACHINES = ("", "Z=300", "Z=0", "grid_dim_x=1")


def check(seed, driver, directory, backend=PTX):
    """Compare a program at a few points, on machines with less shared memory and with a small grid."""
    unit = parse(Source(f"p{seed}.mf", file_text([seed])))
    (schedule,) = unit.schedules
    assert not _truncates(schedule.program)
    tree = discuss(schedule.program, registry.counters(COUNTERS), registry.strategies(None), time_limit=SECONDS)
    texts = LeafTexts(Result(unit, (tree,), COUNTERS, tree.strategies).analyses, None, backend)
    result = texts.in_time(Result(unit, (tree,), COUNTERS, tree.strategies), None)
    write_outputs(result, directory, code_of=texts.code_of, target=backend)
    one = Program(result, directory, build(result, directory, backend))
    (function,) = unit.functions
    points = [(MACHINES[number % len(MACHINES)], point) for number, point in enumerate(points_of(tree, seed) * 2)]
    done, said, calls = one.compare(driver, function.name, points)
    assert said == ["same"] * len(points), done.stderr
    assert (calls.violations, calls.left, calls.ended) == ([], [], True)
    assert calls.ran == one.launched(done)
    assert calls.ran


def _truncates(program):
    return any(
        isinstance(stmt, Assign) and stmt.target.type.integer and stmt.value.type.floating
        for stmt in walk_statements(program.body)
    )
