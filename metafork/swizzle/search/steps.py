"""Reductions in steps: a reduction of what the same operator has reduced before, as in a butterfly sum or a scan.

What a cell between two steps must hold is not known from the goal: any part of its members.  So the holes before such
a reduction are filled in order, one option after the other, and everything that is known then becomes an array of given
terms; what remains has no unknown steps and goes to the search.  A choice is dropped when a cell that certainly ends in
a goal holds what the goal does not, or when too few terms can arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from metafork.swizzle.model.problem import (
    ZERO_CELL,
    Cells,
    Fold,
    Gather,
    Hole,
    Literal,
    Problem,
    Statement,
    execute,
    hole_table,
)
from metafork.swizzle.model.terms import ABSORBING_ZERO, IDEMPOTENT, UNDEFINED, ZERO
from metafork.swizzle.search.stages import fusion


class Counts(Protocol):
    """What is counted of the search."""

    states_built: int
    states_pruned: int


def unknown_steps(problem: Problem) -> list[Fold]:
    """Return the reductions of something that an earlier reduction by the same operator may have made."""
    operators: dict[str, frozenset[str]] = {}
    constants: dict[str, frozenset[int]] = {}
    steps: list[Fold] = []
    for one in problem.statements:
        arguments = _arguments(one)
        found = frozenset[str]().union(*(operators[name] for name in arguments))
        seen = frozenset[int]().union(*(constants[name] for name in arguments))
        match one:
            case Literal():
                values = {problem.terms.value(term) for term in one.terms.tolist()}
                seen = frozenset(value for value in values if value is not None)
            case Gather(table=table):
                seen |= {0} if bool((table == ZERO_CELL).any()) else frozenset()
            case Hole(options=options):
                seen |= {0} if bool(options.tables.min(initial=0) < 0) else frozenset()
            case Fold(op=op):
                if op in found:
                    steps.append(one)
                # Neutral elements, repetitions and signs let a single member through with its own operator.
                neutral = {"*": {1, -1}, "&": {-1}, "max": set(), "min": set()}.get(op, {0})
                found = found | {op} if op in IDEMPOTENT or neutral & seen else frozenset((op,))
        operators[one.name], constants[one.name] = found, seen
    return steps


def _arguments(one: Statement) -> tuple[str, ...]:
    match one:
        case Literal():
            return ()
        case Gather(arguments=arguments):
            return arguments
        case Hole(argument=argument) | Fold(argument=argument):
            return (argument,)


class Steps(Struct):
    """Fills the holes before the unknown steps of a problem."""

    counts: Counts
    # Of a hole whose option turns that of the hole before it: the table of the latter, and the compositions seen.
    _before: dict[str, tuple[Cells, set[bytes]]] = field(default_factory=dict)

    def resolved(self, problem: Problem) -> Iterator[tuple[dict[str, int], Problem]]:
        """Yield choices for the holes before unknown steps, each with the problem that remains."""
        problem = _simplified(problem)
        steps = unknown_steps(problem)
        if not steps:
            yield {}, problem
            return
        hole = _first_hole(problem, steps[0])
        arrays = {one.name: one.terms for one in problem.statements if isinstance(one, Literal)}
        argument = arrays[hole.argument]
        readers = [one for one in problem.statements if hole.name in _arguments(one)]
        follower = readers[0] if len(readers) == 1 else None
        turned = isinstance(follower, Hole) and fusion(hole, follower) is not None
        compositions: set[bytes] = set()
        before = self._before.get(hole.name)
        for option in range(len(hole.options)):
            table = hole_table(hole, option)
            if before is not None:
                composed = before[0][table].tobytes()
                if composed in before[1]:
                    continue
                before[1].add(composed)
            if turned and follower is not None:
                self._before[follower.name] = table, compositions
            result = np.where(table == ZERO_CELL, np.int32(ZERO), argument[np.maximum(table, 0)])
            self.counts.states_built += 1
            rest = _with(problem, hole, result.astype(np.int32))
            if not viable(rest, steps[0].op):
                self.counts.states_pruned += 1
                continue
            for options, remaining in self.resolved(rest):
                yield {hole.name: option, **options}, remaining


def _with(problem: Problem, hole: Hole, terms: Cells) -> Problem:
    literal = Literal(hole.name, hole.shape, terms)
    return replace(problem, statements=tuple(literal if one is hole else one for one in problem.statements))


def _simplified(problem: Problem) -> Problem:
    """Replace what no hole decides by its terms, where a step depends on it."""
    if not unknown_steps(problem):
        return problem
    known: set[str] = set()
    for one in problem.statements:
        if not isinstance(one, Hole) and known.issuperset(_arguments(one)):
            known.add(one.name)
    determined = replace(problem, statements=tuple(one for one in problem.statements if one.name in known))
    arrays = execute(determined, {})
    return replace(
        problem,
        statements=tuple(
            Literal(one.name, one.shape, arrays[one.name])
            if one.name in known and not isinstance(one, Literal)
            else one
            for one in problem.statements
        ),
    )


def _first_hole(problem: Problem, step: Fold) -> Hole:
    """Return the first hole that decides what the step's operator has reduced before it."""
    by_name = {one.name: one for one in problem.statements}
    wanted: set[str] = set()
    waiting = [step.argument]
    while waiting:
        one = by_name[waiting.pop()]
        if isinstance(one, Fold):
            wanted.add(one.name)
        else:
            waiting.extend(_arguments(one))
    for one in reversed(problem.statements):
        if one.name in wanted:
            wanted.update(_arguments(one))
    return next(one for one in problem.statements if isinstance(one, Hole) and one.name in wanted)


def viable(problem: Problem, op: str) -> bool:
    """Say whether the known arrays leave room for the goals, as far as reductions by ``op`` are concerned."""
    return _fits(problem, op) and _suffices(problem, op)


def _fits(problem: Problem, op: str) -> bool:
    """Follow the goals back through what is fixed: every known cell on the way must be a part of its goal."""
    containers: dict[str, list[set[int]]] = {
        one.name: [set() for _ in range(int(np.prod(one.shape)))] for one in problem.statements
    }
    for goal in problem.goals:
        for cell, term in enumerate(goal.terms.tolist()):
            containers[goal.array][cell].add(term)
    for one in reversed(problem.statements):
        own = containers[one.name]
        match one:
            case Literal(terms=terms):
                if not all(
                    _part(problem, op, term, whole) for term, wholes in zip(terms.tolist(), own, strict=True)
                    for whole in wholes
                ):  # fmt: skip
                    return False
            case Fold(argument=argument) if one.op == op:
                size = len(containers[argument]) // len(own)
                for cell, inner in enumerate(containers[argument]):
                    inner |= own[cell // size]
            case Gather(arguments=arguments, table=table):
                joined = [cell for name in arguments for cell in containers[name]]
                for cell, source in enumerate(table.tolist()):
                    if source >= 0:
                        joined[source] |= own[cell]
            case _:
                # What an open hole or another operator makes of it is not known.
                pass
    return True


def _part(problem: Problem, op: str, term: int, whole: int) -> bool:
    if whole == UNDEFINED or (whole == ZERO and op in ABSORBING_ZERO):
        return True
    return problem.terms.unsigned(term, op) <= problem.terms.unsigned(whole, op)


def _suffices(problem: Problem, op: str) -> bool:
    """Compare how many members can arrive at each goal with how many it has."""

    def count(term: int) -> int:
        return problem.terms.unsigned(term, op).total()

    most: dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
    for one in problem.statements:
        match one:
            case Literal(terms=terms):
                most[one.name] = np.array([count(term) for term in terms.tolist()])
            case Gather(arguments=arguments, table=table):
                joined = np.concatenate([most[name] for name in arguments])
                most[one.name] = np.where(table >= 0, joined[np.maximum(table, 0)], count(ZERO))
            case Hole(argument=argument, sources=sources):
                most[one.name] = np.maximum(most[argument][sources].max(axis=1), count(ZERO))
            case Fold(argument=argument, shape=shape):
                inner = most[argument].reshape(int(np.prod(shape)), -1)
                most[one.name] = inner.sum(axis=1) if one.op == op else np.maximum(inner.max(axis=1), 1)
    return all(
        bool((most[goal.array] >= [count(term) for term in goal.terms.tolist()]).all()) for goal in problem.goals
    )
