"""Search for the solutions of a sketch: propagation, then branching on one stage, until every stage has one option.

Every solution found is executed on the symbols before it is reported, so a reported solution is one; propagation only
removes what cannot be part of a solution, so with ``limit=None`` none is missed.  The order of the search, and so of
the solutions, depends on nothing but the problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log2

import numpy as np

from metafork.swizzle.model.problem import Problem, hole_table, solves
from metafork.swizzle.search.lookahead import Requirements, is_exact, presences, with_copy_counts, with_forced_successor
from metafork.swizzle.search.memory import MemoryBudget
from metafork.swizzle.search.network import Network, build
from metafork.swizzle.search.pair_reachability import narrowed_by_pairs
from metafork.swizzle.search.propagation import DeadEndError, State, propagate, start
from metafork.swizzle.search.stages import Candidates, Stage
from metafork.swizzle.search.tightness import tighten

# A stage with more options than this is filtered by presence before it is branched on.
_MANY = 48
_PROBES = 3


@dataclass(frozen=True, slots=True)
class Solution:
    """One option a hole, by the hole's name."""

    options: dict[str, int]


@dataclass(slots=True)
class Statistics:
    """What the search did.  A state is a partial choice that was propagated."""

    options: int = 0
    states_built: int = 0
    states_pruned: int = 0
    states_on_solutions: int = 0
    dropped_ahead: int = 0
    reserved_bytes: int = 0

    @property
    def ineffectiveness(self) -> float:
        """States built over states that lie on the way to a solution (Swizzleflow, section 5.3); infinite if none."""
        return self.states_built / self.states_on_solutions if self.states_on_solutions else float("inf")


@dataclass(slots=True)
class Search:
    """The solutions of a problem, one at a time; ``statistics`` is complete when the iteration has ended."""

    problem: Problem
    megabytes: int | None = None
    statistics: Statistics = field(default_factory=Statistics)

    def __iter__(self) -> Iterator[Solution]:
        """Yield every solution; raises ``DoesNotFitError`` where the memory bound does not suffice."""
        budget = MemoryBudget(self.megabytes)
        for hole in self.problem.holes():
            budget.reserve(hole.options.tables.nbytes, f"the options of {hole.name}")
        network = build(self.problem, budget)
        self.statistics.options = sum(stage.count for stage in network.stages)
        self.statistics.reserved_bytes = budget.peak
        state = start(network)
        self.statistics.states_built += 1
        try:
            propagate(network, state)
            if tighten(network, state):
                propagate(network, state)
        except DeadEndError:
            self.statistics.states_pruned += 1
            return
        found = 0
        for solution in self._below(network, state, budget, 0):
            found += 1
            yield solution
        if found:
            self.statistics.states_on_solutions += 1

    def _below(self, network: Network, state: State, budget: MemoryBudget, depth: int) -> Iterator[Solution]:
        try:
            self._look_ahead(network, state, depth)
            self._check_pairs(network, state)
        except DeadEndError:
            self.statistics.states_pruned += 1
            return
        number = self._branching_stage(network, state, depth)
        if number is None:
            yield from self._checked(network, state)
            return
        candidates = state.candidates[number]
        stage = network.stages[number]
        if candidates is None:
            budget.reserve(2 * stage.count * stage.local_count, f"every option of {stage.name}, which nothing forces")
            first, second = np.divmod(np.arange(stage.count), 1 if stage.turns is None else stage.turns.shape[0])
            candidates = stage.selected(first, second)
        for row in candidates.rows.tolist():
            child = self._child(network, state, number, candidates, row)
            if child is None:
                continue
            found = False
            for solution in self._below(network, child, budget, depth + 1):
                found = True
                yield solution
            self.statistics.states_on_solutions += found

    def _child(
        self, network: Network, state: State, number: int, candidates: Candidates, row: int
    ) -> State | None:  # fmt: skip
        child = state.copy()
        child.candidates[number] = candidates.only(np.array([row]))
        stage = network.stages[number]
        child.values[number] = stage.values(child.candidates[number], stage.reads)
        self.statistics.states_built += 1
        try:
            propagate(network, child, number)
        except DeadEndError:
            self.statistics.states_pruned += 1
            return None
        return child

    def _look_ahead(self, network: Network, state: State, depth: int) -> None:
        """Drop options of large stages by tests of all of them at once; raises ``DeadEndError`` when none is left."""
        requirements = Requirements(network, state)
        for number, stage in enumerate(network.stages):
            candidates = state.candidates[number]
            before = stage.count if candidates is None else len(candidates)
            if before <= _MANY:
                continue
            remaining = candidates
            if depth == 0 or is_exact(state, stage):
                remaining = stage.with_presence(candidates, presences(network, state, stage, requirements))
            if remaining is not None and len(remaining) > 0:
                remaining = with_copy_counts(network, state, stage, remaining)
            if remaining is not None and len(remaining) > 0:
                remaining = with_forced_successor(network, state, stage, remaining)
            if remaining is None or len(remaining) == before:
                continue
            self.statistics.dropped_ahead += before - len(remaining)
            if len(remaining) == 0:
                raise DeadEndError
            state.candidates[number] = remaining
            state.values[number] = stage.values(remaining, state.values[number])
            propagate(network, state, number)

    def _check_pairs(self, network: Network, state: State) -> None:
        """Drop options by pair reachability, between any two open stages of which one reads the other."""
        for second in range(len(network.stages)):
            for first in sorted(network.ancestors[second] - {second}):
                remaining = narrowed_by_pairs(network, state, first, second)
                now = state.candidates[second]
                if remaining is None or now is None or len(remaining) == len(now):
                    continue
                self.statistics.dropped_ahead += len(now) - len(remaining)
                if len(remaining) == 0:
                    raise DeadEndError
                state.candidates[second] = remaining
                state.values[second] = network.stages[second].values(remaining, state.values[second])
                propagate(network, state, second)

    def _branching_stage(self, network: Network, state: State, depth: int) -> int | None:
        sizes = {
            number: network.stages[number].count if candidates is None else len(candidates)
            for number, candidates in enumerate(state.candidates)
        }
        open_ = {number: size for number, size in sizes.items() if size > 1}
        if not open_:
            return None
        smallest = min(open_, key=lambda number: (open_[number], number))
        if depth > 0 or open_[smallest] <= 8 or len(open_) == 1:
            return smallest
        return min(open_, key=lambda number: (self._promise(network, state, number, open_[number]), -number))

    def _promise(self, network: Network, state: State, number: int, size: int) -> float:
        """Estimate the work below a branching on a stage, from a few of its options spread over the list."""
        candidates = state.candidates[number]
        if candidates is None:
            return log2(size) + 64.0
        left = 0.0
        rows = candidates.rows[np.linspace(0, len(candidates) - 1, _PROBES).astype(np.int64)]
        for row in rows.tolist():
            child = self._child(network, state, number, candidates, row)
            if child is not None:
                left += self._open_choices(network.stages, child)
        return log2(size) + left / _PROBES

    @staticmethod
    def _open_choices(stages: list[Stage], state: State) -> float:
        return sum(
            log2(stage.count if candidates is None else len(candidates))
            for stage, candidates in zip(stages, state.candidates, strict=True)
        )

    def _checked(self, network: Network, state: State) -> Iterator[Solution]:
        # A hole of which no cell depends on the option has no stage: any option will do.
        options = {hole.name: 0 for hole in self.problem.holes()}
        for stage, candidates in zip(network.stages, state.candidates, strict=True):
            if candidates is None:
                candidates = stage.selected(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
            row = int(candidates.rows[0])
            options[stage.holes[0].name] = int(stage.numbers[candidates.first[row]])
            if len(stage.holes) == 2:
                options[stage.holes[1].name] = int(candidates.second[row])
        choice = {hole.name: hole_table(hole, options[hole.name]) for hole in self.problem.holes()}
        if solves(self.problem, choice):
            yield Solution(options)
        else:
            self.statistics.states_pruned += 1


def solutions(problem: Problem, *, limit: int | None = None, megabytes: int | None = None) -> list[Solution]:
    """Return the first ``limit`` solutions (all for ``None``)."""
    result: list[Solution] = []
    for one in Search(problem, megabytes):
        result.append(one)
        if len(result) == limit:
            break
    return result
