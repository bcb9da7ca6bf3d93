"""Solutions in order of cost; sketches that are no code of threads keep the order in which they were found."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from metafork.swizzle.model.problem import Problem
from metafork.swizzle.output.cost import ARCHITECTURES, DEFAULT_ARCHITECTURE, Cost, accumulates, cost
from metafork.swizzle.output.instructions import NotLowerableError, ThreadCode
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.search.search import Solution

Objective = Literal["cost", "accumulates"]


class Ranked(Struct, frozen=True):
    """A solution with its code and cost, where it has one."""

    solution: Solution
    code: ThreadCode | None
    cost: Cost | None
    # Less is better: accumulation statements where they are the objective, then the cost.
    key: tuple[int, float] = (0, 0.0)


def rank(
    problem: Problem,
    solutions: list[Solution],
    *,
    architecture: str = DEFAULT_ARCHITECTURE,
    objective: Objective = "cost",
    element_bytes: int = 4,
) -> list[Ranked]:
    """Return the solutions, cheapest first; ties keep their order.

    ``accumulates`` minimises accumulation statements before anything else.  Raises ``KeyError`` for an architecture
    without weights.
    """
    return sorted(
        (
            priced(problem, one, architecture=architecture, objective=objective, element_bytes=element_bytes)
            for one in solutions
        ),
        key=lambda one: one.key,
    )


def priced(
    problem: Problem,
    solution: Solution,
    *,
    architecture: str = DEFAULT_ARCHITECTURE,
    objective: Objective = "cost",
    element_bytes: int = 4,
) -> Ranked:
    """Return a solution with its code and cost; raises ``KeyError`` for an architecture without weights."""
    weights = ARCHITECTURES[architecture]
    try:
        code: ThreadCode | None = lower(problem, solution)
    except NotLowerableError:
        code = None
    price = None if code is None else cost(problem, solution, code, weights, element_bytes=element_bytes)
    first = accumulates(problem, solution) if objective == "accumulates" else 0
    return Ranked(solution, code, price, (first, 0.0 if price is None else price.total))
