"""Search for the solutions of a sketch: propagation, then branching on one stage, until every stage has one option.

Every solution found is executed on the symbols before it is reported, so a reported solution is one; propagation only
removes what cannot be part of a solution, so with ``limit=None`` none is missed.  The order of the search, and so of
the solutions, depends on nothing but the problem.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log2

import numpy as np
from msgspec import Struct

from metafork.swizzle.model.problem import Problem, execute, hole_table, solves
from metafork.swizzle.search.failure import DeadEndError, Failure, failure, wrong_cell
from metafork.swizzle.search.least_accumulates import LeastAccumulates
from metafork.swizzle.search.lookahead import Requirements, is_exact, presences, with_copy_counts, with_forced_successor
from metafork.swizzle.search.memory import MemoryBudget
from metafork.swizzle.search.network import Network, build
from metafork.swizzle.search.pair_reachability import narrowed_by_pairs
from metafork.swizzle.search.propagation import State, propagate, start
from metafork.swizzle.search.stages import Candidates, Stage
from metafork.swizzle.search.steps import Steps, unknown_steps
from metafork.swizzle.search.tightness import tighten

# A stage with more options than this is filtered by presence before it is branched on.
_MANY = 16
_PROBES = 3
# Of options that were all dropped at once, so many are looked at to say why.
_EXPLAINED = 16


class Solution(Struct, frozen=True):
    """One option a hole, by the hole's name."""

    options: dict[str, int]


class Statistics(Struct):
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
    """The solutions of a problem, one at a time; ``statistics`` is complete when the iteration has ended.

    With a ``bound``, states below which nothing is better than what the bound says was reached are dropped.
    """

    problem: Problem
    megabytes: int | None = None
    bound: LeastAccumulates | None = None
    statistics: Statistics = field(default_factory=Statistics)
    _known: set[bytes] = field(init=False, default_factory=set)
    # The dead end at the latest stage, and the options of that stage where all were dropped at once.
    _failure: Failure | None = field(init=False, default=None)
    _dropped: tuple[Network, State, int] | None = field(init=False, default=None)

    def __iter__(self) -> Iterator[Solution]:
        """Yield every solution; raises ``DoesNotFitError`` where the memory bound does not suffice."""
        if unknown_steps(self.problem):
            yield from self._in_steps()
            return
        self._known.clear()
        budget = MemoryBudget(self.megabytes)
        for hole in self.problem.holes():
            budget.reserve(hole.options.bytes_held, f"the options of {hole.name}")
        network = build(self.problem, budget)
        self.statistics.options = sum(stage.count for stage in network.stages)
        self.statistics.reserved_bytes = budget.peak
        state = start(network)
        self.statistics.states_built += 1
        try:
            _none_empty(state)
            propagate(network, state)
            if tighten(network, state):
                propagate(network, state)
        except DeadEndError as dead:
            self._prune(network, dead)
            return
        found = 0
        for solution in self._below(network, state, 0):
            found += 1
            yield solution
        if found:
            self.statistics.states_on_solutions += 1

    def _in_steps(self) -> Iterator[Solution]:
        options = sum(len(hole.options) for hole in self.problem.holes())
        for chosen, remaining in Steps(self.statistics).resolved(self.problem):
            inner = Search(remaining, self.megabytes, self.bound, self.statistics)
            for solution in inner:
                self.statistics.options = options
                yield Solution({**chosen, **solution.options})
            self._failure = self._failure or inner.why_none()
        self.statistics.options = options

    def _below(self, network: Network, state: State, depth: int) -> Iterator[Solution]:
        try:
            self._look_ahead(network, state, depth)
            self._check_pairs(network, state)
        except DeadEndError as dead:
            self._prune(network, dead, state)
            return
        number = self._branching_stage(network, state, depth)
        if number is None:
            yield from self._checked(network, state)
            return
        listed = state.candidates[number]
        blocks = network.stages[number].blocks(state.values[number]) if listed is None else [listed]
        for candidates, row in ((block, row) for block in blocks for row in block.rows.tolist()):
            if self.bound is not None and self.bound.hopeless(network, state):
                return
            child = self._child(network, state, number, candidates, row)
            if child is None:
                continue
            found = False
            for solution in self._below(network, child, depth + 1):
                found = True
                yield solution
            self.statistics.states_on_solutions += found

    def _child(
        self, network: Network, state: State, number: int, candidates: Candidates, row: int
    ) -> State | None:  # fmt: skip
        child = self._chosen(network, state, number, candidates, row)
        self.statistics.states_built += 1
        try:
            propagate(network, child, number)
        except DeadEndError as dead:
            self._prune(network, dead)
            return None
        return child

    @staticmethod
    def _chosen(network: Network, state: State, number: int, candidates: Candidates, row: int) -> State:
        child = state.copy()
        child.candidates[number] = candidates.only(np.array([row]))
        stage = network.stages[number]
        child.values[number] = stage.values(child.candidates[number], stage.reads)
        return child

    def _prune(self, network: Network, dead: DeadEndError, state: State | None = None) -> None:
        self.statistics.states_pruned += 1
        here = int(network.makers[dead.level][dead.variable])
        if self._failure is None or here > self._failure.order:
            self._failure = failure(network, dead)
            self._dropped = None if state is None or dead.dropped is None else (network, state, dead.dropped)

    def why_none(self) -> Failure | None:
        """Return the first stage that fails and the goal cell, after a search that found no solution."""
        if self._failure is None or self._dropped is None:
            return self._failure
        # All options fell to a test of many at once: see what becomes of the simplest ones.
        network, state, number = self._dropped
        listed = state.candidates[number]
        blocks = network.stages[number].blocks(state.values[number]) if listed is None else iter([listed])
        found = []
        for row in (block := next(blocks)).rows[:_EXPLAINED].tolist():
            try:
                propagate(network, self._chosen(network, state, number, block, row), number)
            except DeadEndError as dead:
                found.append(failure(network, dead))
        return max(found, key=lambda one: one.order, default=self._failure)

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
                raise DeadEndError(stage.level, int(stage.outputs[0]), dropped=number)
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
                    stage = network.stages[second]
                    raise DeadEndError(stage.level, int(stage.outputs[0]), dropped=second)
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
        key = hashlib.blake2b()
        for stage, candidates in zip(network.stages, state.candidates, strict=True):
            assert candidates is not None
            assert len(candidates) == 1
            row = int(candidates.rows[0])
            key.update(candidates.tables[row].tobytes())
            options[stage.holes[0].name] = int(candidates.first[row])
            if len(stage.holes) == 2:
                options[stage.holes[1].name] = int(candidates.second[row])
        # Blocks of a factored stage may repeat a table.
        if key.digest() in self._known:
            return
        self._known.add(key.digest())
        choice = {hole.name: hole_table(hole, options[hole.name]) for hole in self.problem.holes()}
        if solves(self.problem, choice):
            yield Solution(options)
            return
        self.statistics.states_pruned += 1
        last = network.stages[-1].name if network.stages else None
        if self._failure is None or self._failure.order < len(network.stages) - 1:
            self._failure = wrong_cell(self.problem, execute(self.problem, choice), len(network.stages) - 1, last)


def _none_empty(state: State) -> None:
    """Raise ``DeadEndError`` for a cell of which fixed parts and goals want different things."""
    for level, rows in enumerate(state.domains):
        empty = np.flatnonzero(~rows.any(axis=1))
        if empty.size:
            raise DeadEndError(level, int(empty[0]))


def solutions(problem: Problem, *, limit: int | None = None, megabytes: int | None = None) -> list[Solution]:
    """Return the first ``limit`` solutions (all for ``None``)."""
    result: list[Solution] = []
    for one in Search(problem, megabytes):
        result.append(one)
        if len(result) == limit:
            break
    return result
