"""Random schedules of the programs of ``tests/strategies/golden``: what is not refused computes the same."""

import random

import pytest

from metafork.analysis.analyses import Analyses
from metafork.ir.invariants import check_program
from metafork.ir.marks import phases
from metafork.ir.program import Declare, For, walk_statements
from metafork.printing.metafork_text import metafork_text
from metafork.transform.directive import Refused, applied
from metafork.transform.schedule import DIRECTIVES, schedule_of
from tests.metafork.interpreter import program, results
from tests.strategies.goldens import FILES, before, points

SERIAL = ("to_grid({loop})", "strips({loop})", "strips({loop}, size=4)", "interchange({loop}, {other})")
MARKS = ("coarsen({any}, {count})", "unroll_and_jam({loop}, {count})", "stride(7)", "stride(32)")
MEMORY = ("cache({array})", "uncache({array})", "lay_out({array}, {form})", "transpose({array})", "vectorize()",
          "stages(2)")  # fmt: skip
OTHERS = ("tile({any}, {count})", "tile({any}, 3, layout=strided)", "tile({any}, {count}, tail=peel)", "cse(1)",
          "grow({any}, 2)", "promote({array})", "reroll({count})", "align(4)", "delinearize()", "cse(2)")  # fmt: skip


def words(read, draw):
    """Return names and numbers for a directive."""
    threads = [loop.var for phase in phases(read) for loop in phase.threads]
    loops = [one.init for one in walk_statements(read.body) if isinstance(one, For)]
    serial = [one.name for one in loops if isinstance(one, Declare)] or threads
    return {
        "any": draw.choice([*(loop.var for loop in read.grid), *threads, *serial]),
        "loop": draw.choice(serial),
        "other": draw.choice(serial),
        "array": draw.choice([array.name for array in read.arrays]),
        "count": draw.choice([2, 4]),
        "form": draw.choice(["padded", "xor", "xor2", "reversed"]),
    }


def test_every_directive_is_drawn():
    drawn = {text.partition("(")[0] for text in (*SERIAL, *MARKS, *MEMORY, *OTHERS)}
    assert drawn == {*DIRECTIVES} - {"specialize"}


@pytest.mark.parametrize("seed", range(400))
@pytest.mark.sampled(20)
def test_a_random_schedule_computes_the_same(seed):
    draw = random.Random(seed)
    path = draw.choice(FILES)
    first = scheduled = program(before(path))
    applied_once, left = False, draw.randint(1, 5)
    while left or not applied_once:
        text = draw.choice(draw.choice([SERIAL, MARKS, MEMORY, OTHERS]))
        result = applied(scheduled, schedule_of(text.format(**words(scheduled, draw))), Analyses())
        if not isinstance(result, Refused):
            applied_once |= result != scheduled
            scheduled = result
        left = max(0, left - 1)
    check_program(scheduled)
    again = program(metafork_text(scheduled))
    assert (again.body, again.mapping.cached) == (scheduled.body, scheduled.mapping.cached)
    for point in points(path):
        assert results(first, point, seed) == results(scheduled, point, seed)
