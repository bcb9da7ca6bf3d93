"""Solutions in order of cost; sketches that are no code of threads keep the order in which they were found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from metafork.swizzle.model.problem import Problem
from metafork.swizzle.output.cost import ARCHITECTURES, DEFAULT_ARCHITECTURE, Cost, accumulates, cost
from metafork.swizzle.output.lowering import NotLowerableError, ThreadCode, lower
from metafork.swizzle.search.search import Solution

Objective = Literal["cost", "accumulates"]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A solution with its code and cost, where it has one."""

    solution: Solution
    code: ThreadCode | None
    cost: Cost | None


def rank(
    problem: Problem,
    solutions: list[Solution],
    *,
    architecture: str = DEFAULT_ARCHITECTURE,
    objective: Objective = "cost",
) -> list[Ranked]:
    """Return the solutions, cheapest first; ties keep their order.

    ``accumulates`` minimises accumulation statements before anything else.  Raises ``KeyError`` for an architecture
    without weights.
    """
    weights = ARCHITECTURES[architecture]
    ranked: list[tuple[tuple[float, float], Ranked]] = []
    for solution in solutions:
        try:
            code: ThreadCode | None = lower(problem, solution)
        except NotLowerableError:
            code = None
        price = None if code is None else cost(problem, solution, code, weights)
        first = accumulates(problem, solution) if objective == "accumulates" else 0
        ranked.append(((first, 0.0 if price is None else price.total), Ranked(solution, code, price)))
    ranked.sort(key=lambda entry: entry[0])
    return [one for _, one in ranked]
