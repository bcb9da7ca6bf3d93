"""The bound on accumulation statements is never above what a solution has, and often meets it."""

import pytest

from metafork.swizzle.output.cost import accumulates
from metafork.swizzle.search.least_accumulates import LeastAccumulates
from metafork.swizzle.search.memory import MemoryBudget
from metafork.swizzle.search.network import build
from metafork.swizzle.search.propagation import start
from metafork.swizzle.search.search import Search, solutions
from tests.metafork.swizzle.running import problem_of

PROBLEMS = [
    ("mult64", {"level": 1}, 6),
    ("polynomial", {"w": 4}, 2),
    ("polynomial_wide", {}, 6),
    ("stencil1d", {"k": 3}, 1),
    ("crc", {"s": 4}, 0),
]


@pytest.mark.parametrize(("name", "constants", "root"), PROBLEMS, ids=[name for name, _, _ in PROBLEMS])
def test_the_bound_holds_and_pruning_by_it_keeps_the_fewest(name, constants, root):
    problem = problem_of(name, **constants)
    fewest = min(accumulates(problem, one) for one in solutions(problem))
    network = build(problem, MemoryBudget(None))
    assert LeastAccumulates().least(network, start(network)) == root <= fewest
    bound, search = LeastAccumulates(), []
    for one in Search(problem, bound=bound):
        search.append(accumulates(problem, one))
        bound.reached = min(search)
    assert min(search) == fewest


def test_no_state_of_a_search_is_bounded_above_the_solutions_below_it(monkeypatch):
    problem, seen = problem_of("mult64", level=1), []
    below = Search._below

    def watched(self, network, state, depth):
        least = LeastAccumulates().least(network, state)
        found = list(below(self, network, state, depth))
        seen.extend((least, accumulates(problem, one)) for one in found)
        yield from found

    monkeypatch.setattr(Search, "_below", watched)
    assert list(Search(problem))
    assert all(least <= count for least, count in seen)
    assert any(least == count for least, count in seen)
