"""Why a sketch has no solution: the first stage that fails, and the goal cell that it fails for.

Of all the dead ends of a search the one at the latest stage is named: the stages before it can be filled so that
everything up to it is still possible, and nothing gets beyond it.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from metafork.swizzle.model.problem import Problem, Wanted
from metafork.swizzle.model.terms import ZERO
from metafork.swizzle.search.network import JUNK_BIT, ZERO_BIT, Bits, Network

# Longer terms are cut in messages.
_LONGEST = 60


class DeadEndError(Exception):
    """No completion of the partial choice meets the goal.

    ``variable`` of ``level`` is a cell that cannot hold what it must, one of ``wanted`` where that is known.
    ``dropped`` is the stage of which all options fell at once.
    """

    def __init__(self, level: int, variable: int, wanted: Bits | None = None, dropped: int | None = None) -> None:
        self.level, self.variable, self.wanted, self.dropped = level, variable, wanted, dropped
        super().__init__(f"variable {variable} of level {level}")


class Failure(Struct, frozen=True):
    """A stage by the names of its holes (none: only fixed parts fail), and the goal cell with what it needs."""

    order: int
    stage: str | None
    cell: str
    term: str

    def __str__(self) -> str:
        where = "the parts without holes fail" if self.stage is None else f"the first stage that fails is {self.stage}"
        return f"{where}, for the goal {self.cell} = {self.term}"


def failure(network: Network, dead: DeadEndError) -> Failure:
    """Describe a dead end."""
    number = int(network.makers[dead.level][dead.variable])
    if number < 0:
        # A cell that no stage makes: it is what the first stage that reads it was to be given.
        readers = [
            place for place, stage in enumerate(network.stages)
            if stage.level == dead.level and bool((stage.sources == dead.variable).any())
        ]  # fmt: skip
        number = min(readers, default=-1)
    stage = None if number < 0 else network.stages[number].name
    goal, cell = _goal_cell(network, dead)
    return Failure(number, stage, *_spelled(network.problem, goal, cell))


def wrong_cell(problem: Problem, arrays: dict[str, np.ndarray], order: int, stage: str | None) -> Failure:
    """Describe the first goal cell that an executed choice does not meet."""
    for goal in problem.goals:
        wrong = np.flatnonzero(arrays[goal.array] != goal.terms)
        if wrong.size:
            return Failure(order, stage, *_spelled(problem, goal, int(wrong[0])))
    raise ValueError("every goal is met")


def _spelled(problem: Problem, goal: Wanted, cell: int) -> tuple[str, str]:
    at = np.unravel_index(cell, problem.statement(goal.array).shape)
    text = problem.terms.text(int(goal.terms[cell]))
    short = text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + " …"
    return f"{goal.array}[{', '.join(str(int(one)) for one in at)}]", short


def _goal_cell(network: Network, dead: DeadEndError) -> tuple[Wanted, int]:
    """Return the goal cell itself, or the first one that needs what the variable was to hold."""
    problem = network.problem
    for goal in problem.goals:
        if network.level_of[goal.array] == dead.level:
            at = np.flatnonzero(network.variables[goal.array] == dead.variable)
            if at.size:
                return goal, int(at[0])
    level = network.levels[dead.level]
    wanted = network.domains[dead.level][dead.variable] if dead.wanted is None else dead.wanted
    row = wanted.copy()
    row[0] &= ~(ZERO_BIT | JUNK_BIT)
    flags = np.unpackbits(row.view(np.uint8), bitorder="little")
    held = {level.terms[int(bit) - 2] for bit in np.flatnonzero(flags)}
    for goal in problem.goals:
        for cell, term in enumerate(goal.terms.tolist()):
            if _contains(problem, term, held):
                return goal, cell
    return problem.goals[0], 0


def _contains(problem: Problem, term: int, wanted: set[int]) -> bool:
    waiting = [term]
    while waiting:
        one = waiting.pop()
        if one in wanted:
            return True
        op = problem.terms.operator(one)
        if op is not None and one != ZERO:
            waiting.extend(problem.terms.members(one, op))
    return False
