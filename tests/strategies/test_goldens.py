"""What strategies make of programs, as text: ``golden/STRATEGY/*.mf``; ``--update-goldens`` renews what they make.

A file begins with the parameters to run it with, ``/* at n=20 s=2; n=9 s=1 */``, and the program before.  What stands
from the comment ``/* after`` on is the strategy's: what it said, and the program that ``metafork apply`` prints.
"""

import pytest

from metafork.comprehensive.application import applied
from metafork.comprehensive.registry import OPTIONAL_STRATEGIES, STRATEGIES, strategies
from metafork.printing.metafork_text import metafork_text
from tests.metafork.interpreter import program, results
from tests.strategies.goldens import AFTER, FILES, before, points


def named(path):
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", FILES, ids=named)
def test_text_in_text_out(path, request):
    (strategy,) = strategies([path.parent.name])
    result = applied(program(before(path)), [strategy])
    said = "\n   ".join(step.sentence for step in result.steps)
    text = f"{before(path)}{AFTER}: {said} */\n{metafork_text(result.version.program)}"
    if request.config.getoption("--update-goldens"):
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize("path", FILES, ids=named)
@pytest.mark.sampled(20)
def test_what_is_printed_means_the_same(path):
    """The text after reads back to a program with the results of that before, which the strategy leaves alone."""
    first, again = program(before(path)), program(path.read_text().partition(AFTER)[2].partition("*/")[2])
    for seed, point in enumerate(points(path)):
        assert results(first, point, seed) == results(again, point, seed)
    (strategy,) = strategies([path.parent.name])
    assert applied(again, [strategy]).version.program == again


def test_every_strategy_on_programs_has_three():
    on_programs = [strategy.name for strategy in strategies([*STRATEGIES, *OPTIONAL_STRATEGIES]) if not strategy.on_ir]
    found = {name: [path for path in FILES if path.parent.name == name] for name in on_programs}
    assert all(len(paths) >= 3 for paths in found.values()), found
    assert {path.parent.name for path in FILES} == set(on_programs)
