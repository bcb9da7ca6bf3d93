"""The constraint network of a problem: variables with domains of terms, stages between them, and folds.

Every array has a *level*: a gather or hole copies terms and stays on its level, a fold makes terms of the next one.
The terms of a level that matter are those that the goal contains there, found from the goal backwards (Swizzleflow's
universes, section 4); everything else is one value, junk.  A domain is a row of bits: bit 0 zero, bit 1 junk, then
the terms of the level.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from metafork.swizzle.model.factors import Ints, Part
from metafork.swizzle.model.operands import Operands
from metafork.swizzle.model.options import OptionSet, first_of_each
from metafork.swizzle.model.problem import UNDEFINED_CELL, ZERO_CELL, Fold, Gather, Hole, Literal, Problem
from metafork.swizzle.model.terms import ABSORBING_ZERO, IDEMPOTENT, NEUTRAL_ZERO, UNDEFINED, ZERO
from metafork.swizzle.search.memory import MemoryBudget
from metafork.swizzle.search.stages import Stage, fusion

Bits = NDArray[np.uint64]
Watched = tuple[tuple[int, Ints], ...]
ZERO_BIT = np.uint64(1)
JUNK_BIT = np.uint64(2)
# Variables 0 and 1 of every level hold zero and junk.
ZERO_VARIABLE, JUNK_VARIABLE = 0, 1


class Level(Struct):
    """The terms that matter on a level, and how wide their domains are."""

    terms: list[int] = field(default_factory=list)
    bit: dict[int, int] = field(default_factory=dict)
    variables: int = 2

    def add(self, term: int) -> None:
        """Make room for a term of the goal."""
        if term not in self.bit and term not in (ZERO, UNDEFINED):
            self.bit[term] = len(self.terms) + 2
            self.terms.append(term)

    @property
    def words(self) -> int:
        """How many 64-bit words a domain has."""
        return (len(self.terms) + 2 + 63) // 64

    def domain(self, terms: list[int]) -> Bits:
        """Return the domain that holds exactly these terms (unknown ones as junk)."""
        row = np.zeros(self.words, dtype=np.uint64)
        for term in terms:
            position = 0 if term == ZERO else self.bit.get(term, 1)
            row[position // 64] |= np.uint64(1 << (position % 64))
        return row


class ExactFold(Struct, frozen=True):
    """Groups of variables whose reduction is known: each needs its multiset, and nothing else but what is ``spare``.

    Spare are neutral elements and zeros that count, and whatever is needed where it may come twice.
    """

    level: int
    groups: Ints
    needed: Bits
    once: Bits
    spare: Bits
    # How many terms each group needs, repeated ones counted as often as they occur.
    sizes: Ints


class PairFold(Struct, frozen=True):
    """Reductions of two variables into one, by the list of the pairs of terms that make a term that matters."""

    inner: int
    outer: int
    left: Ints
    right: Ints
    outputs: Ints
    one: Ints
    two: Ints
    result: Ints
    absorbing: bool


class LooseFold(Struct, frozen=True):
    """Any other reduction: its cells hold members of terms that matter, or zero."""

    level: int
    outer: int
    groups: Ints
    outputs: Ints
    allowed: Bits
    absorbing: bool


class Network(Struct):
    """Variables by array, initial domains by level, stages in order and folds in order."""

    problem: Problem
    levels: list[Level]
    level_of: dict[str, int]
    variables: dict[str, Ints]
    domains: list[Bits]
    stages: list[Stage]
    exact: list[ExactFold]
    pairs: list[PairFold]
    loose: list[LooseFold]
    # The variables by level of each constraint: exact, loose and pair folds, then stages.
    watched: list[Watched] = field(default_factory=list)
    # By level, the stage that makes each variable (-1: none), and by stage, those it may be traced back to.
    makers: list[Ints] = field(default_factory=list)
    ancestors: list[frozenset[int]] = field(default_factory=list)


def build(problem: Problem, budget: MemoryBudget) -> Network:
    """Lay out variables, fuse stages and collect folds; raises ``DoesNotFitError`` over the budget."""
    level_of = _levels(problem)
    levels = [Level() for _ in range(max(level_of.values()) + 1)]
    for goal in problem.goals:
        for term in goal.terms.tolist():
            levels[level_of[goal.array]].add(term)
    folds = [one for one in problem.statements if isinstance(one, Fold)]
    given = {term for one in problem.statements if isinstance(one, Literal) for term in one.terms.tolist()}
    partitions = {fold.name: Operands(problem.terms, fold.op, given) for fold in folds}
    known = -1
    while known != (known := sum(len(level.terms) for level in levels)):
        # Once, unless what is reduced and what is made of it share a level, as in x + shuffled(x) * y.
        for fold in reversed(folds):
            for term in list(levels[level_of[fold.name]].terms):
                for member in partitions[fold.name].parts(term):
                    levels[level_of[fold.argument]].add(member)
    variables, stages = _layout(problem, level_of, levels)
    size = sum(8 * level.variables * level.words for level in levels)
    budget.reserve(3 * size, "the domains of the variables")
    domains = [np.zeros((level.variables, level.words), dtype=np.uint64) for level in levels]
    for level, rows in zip(levels, domains, strict=True):
        rows[:] = level.domain([ZERO, UNDEFINED, *level.terms])
        rows[ZERO_VARIABLE], rows[JUNK_VARIABLE] = level.domain([ZERO]), level.domain([UNDEFINED])
    for one in problem.statements:
        if isinstance(one, Literal):
            level = levels[level_of[one.name]]
            rows = np.stack([level.domain([term]) for term in one.terms.tolist()])
            domains[level_of[one.name]][variables[one.name]] = rows
    for goal in problem.goals:
        number = level_of[goal.array]
        for variable, term in zip(variables[goal.array].tolist(), goal.terms.tolist(), strict=True):
            domains[number][variable] &= levels[number].domain([term])
    network = Network(problem, levels, level_of, variables, domains, stages, [], [], [])
    for fold in folds:
        _add_fold(network, fold, partitions[fold.name])
    for stage in stages:
        stage.prepare(budget)
    network.watched = [((exact.level, np.unique(exact.groups)),) for exact in network.exact]
    network.watched += [
        ((loose.level, np.unique(loose.groups)), (loose.outer, np.unique(loose.outputs))) for loose in network.loose
    ]
    for pair in network.pairs:
        factors = np.unique(np.concatenate([pair.left, pair.right]))
        network.watched.append(((pair.inner, factors), (pair.outer, np.unique(pair.outputs))))
    for stage in stages:
        seen = np.unique(np.concatenate([stage.sources.ravel(), stage.outputs]))
        network.watched.append(((stage.level, seen),))
    network.makers = [np.full(level.variables, -1, dtype=np.int64) for level in levels]
    for number, stage in enumerate(stages):
        direct = set(np.unique(network.makers[stage.level][stage.sources]).tolist()) - {-1}
        network.ancestors.append(frozenset({number}).union(*(network.ancestors[one] for one in direct)))
        network.makers[stage.level][stage.outputs] = number
    return network


def _levels(problem: Problem) -> dict[str, int]:
    """Number the levels: arrays joined by gathers and holes share one."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for one in problem.statements:
        root[one.name] = one.name
        arguments = one.arguments if isinstance(one, Gather) else (one.argument,) if isinstance(one, Hole) else ()
        for argument in arguments:
            root[find(argument)] = find(one.name)
    numbers: dict[str, int] = {}
    for one in problem.statements:
        numbers.setdefault(find(one.name), len(numbers))
    return {one.name: numbers[find(one.name)] for one in problem.statements}


def _layout(problem: Problem, level_of: dict[str, int], levels: list[Level]) -> tuple[dict[str, Ints], list[Stage]]:
    """Give each cell a variable, sharing those of cells that are copied, and make a stage of every (fused) hole."""
    uses: dict[str, int] = {}
    for one in problem.statements:
        arguments = one.arguments if isinstance(one, Gather) else () if isinstance(one, Literal) else (one.argument,)
        for argument in arguments:
            uses[argument] = uses.get(argument, 0) + 1
    variables: dict[str, Ints] = {}
    waiting: dict[str, Hole] = {}
    stages: list[Stage] = []
    holes = {hole.argument: hole for hole in problem.holes()}
    wanted = {goal.array for goal in problem.goals}

    def fresh(name: str, count: int) -> Ints:
        level = levels[level_of[name]]
        level.variables += count
        return np.arange(level.variables - count, level.variables)

    for one in problem.statements:
        match one:
            case Literal():
                variables[one.name] = fresh(one.name, prod(one.shape))
            case Fold():
                variables[one.name] = fresh(one.name, prod(one.shape))
            case Gather():
                joined = np.concatenate([variables[argument] for argument in one.arguments])
                variables[one.name] = _copied(joined, one.table)
            case Hole():
                follower = holes.get(one.name)
                if follower is not None and uses[one.name] == 1 and one.name not in wanted:
                    fused = None if one.argument in waiting else fusion(one, follower)
                    if fused is not None:
                        waiting[one.name] = one
                        continue
                first = waiting.get(one.argument)
                source = variables[one.argument if first is None else first.argument]
                variables[one.name], stage = _stage(first, one, source, level_of[one.name], fresh)
                if stage.outputs.size:
                    stages.append(stage)
    return variables, stages


def _copied(values: Ints, table: NDArray[np.int32] | Ints) -> Ints:
    result = values[np.maximum(table, 0)]
    result = np.where(table == ZERO_CELL, ZERO_VARIABLE, result)
    return np.where(table == UNDEFINED_CELL, JUNK_VARIABLE, result)


def _stage(
    first: Hole | None, hole: Hole, source: Ints, level: int, fresh: Callable[[str, int], Ints]
) -> tuple[Ints, Stage]:  # fmt: skip
    locals_, reads = hole.locals_.astype(np.int64), hole.sources.astype(np.int64)
    options, turns = hole.options, np.arange(hole.options.tables.shape[1])[None, :]
    if first is not None:
        fused = fusion(first, hole)
        assert fused is not None
        locals_, reads, turns = fused
        options = first.options
    cells = np.flatnonzero(locals_ >= 0)
    # Locals that no cell looks at make options differ in nothing.
    used, compact = np.unique(locals_[cells], return_inverse=True)
    result = _copied(source, reads[:, 0])
    result[cells] = fresh(hole.name, cells.size)
    columns = np.stack([_copied(source, column) for column in reads[cells].T], axis=1)
    if bool(options.tables.min(initial=0) < 0):
        columns = np.concatenate([columns, np.full((cells.size, 1), ZERO_VARIABLE)], axis=1)
    holes = (hole,) if first is None else (first, hole)
    parts = _parts(options, turns[:, used])
    return result, Stage(holes, level, result[cells], columns, compact.ravel(), used.size, parts)


def _parts(options: OptionSet, turns: Ints) -> tuple[Part, ...]:
    """Return the families of a stage whose first hole has these options, behind the turns of its second."""
    rows, everywhere = np.arange(options.listed), np.arange(turns.shape[1])
    behind = np.arange(turns.shape[0])
    listed = Part(options.tables, turns, rows, np.zeros_like(behind), behind, everywhere)
    composed = options.composition
    if composed is None:
        return (listed,)
    inner = composed.turns.shape[0]
    product = composed.turns[:, turns].reshape(-1, turns.shape[1])
    kept = first_of_each(product)
    # Where the inner turns agree, only the second hole makes a difference.
    agreeing = (composed.turns == composed.turns[0]).all(axis=0)
    anchor = np.flatnonzero(agreeing[turns].all(axis=0))
    first = options.listed + np.arange(composed.tables.shape[0]) * inner
    added, second = np.divmod(kept, turns.shape[0])
    return listed, Part(
        composed.tables, product[kept], first, added, second, anchor if anchor.size else everywhere
    )  # fmt: skip


def _add_fold(network: Network, fold: Fold, operands: Operands) -> None:
    problem, terms = network.problem, network.problem.terms
    inner, outer = network.level_of[fold.argument], network.level_of[fold.name]
    outputs = network.variables[fold.name]
    groups = network.variables[fold.argument].reshape(outputs.size, -1)
    inside, outside = network.levels[inner], network.levels[outer]
    goal = {
        variable: term
        for one in problem.goals
        if network.level_of[one.array] == outer
        for variable, term in zip(network.variables[one.array].tolist(), one.terms.tolist(), strict=True)
    }
    size = groups.shape[1]
    if all(variable in goal for variable in outputs.tolist()) and operands.is_plain:
        multisets = [terms.members(goal[variable], fold.op) for variable in outputs.tolist()]
        # A product that is zero says nothing of its factors.
        if all(multisets) or fold.op in NEUTRAL_ZERO:
            needed = [[member for member in one if member != ZERO] for one in multisets]
            network.exact.append(
                ExactFold(
                    inner,
                    groups,
                    np.stack([inside.domain(one) for one in needed]),
                    np.stack([_once(inside, one) for one in needed]),
                    np.stack([_spare(inside, operands, one, size) for one in multisets]),
                    np.array([len(one) for one in multisets]),
                )
            )
            return
    absorbing = fold.op in ABSORBING_ZERO
    if size == 2:
        pairs = [(*pair, term) for term in outside.terms for pair in operands.pairs(term)]
        positions = [
            (_position(inside, one), _position(inside, two), _position(outside, term)) for one, two, term in pairs
        ]
        table = np.array(positions, dtype=np.int64).reshape(-1, 3)
        network.pairs.append(
            PairFold(
                inner, outer, groups[:, 0], groups[:, 1], outputs, table[:, 0], table[:, 1], table[:, 2], absorbing
            )
        )  # fmt: skip
        return
    members = [one for term in outside.terms for one in operands.parts(term)]
    allowed = inside.domain([ZERO, *dict.fromkeys(members)])
    network.loose.append(LooseFold(inner, outer, groups, outputs, allowed, absorbing))


def _spare(level: Level, operands: Operands, multiset: tuple[int, ...], size: int) -> Bits:
    spare = [ZERO] if ZERO in multiset else []
    if len(multiset) < size:
        spare += [] if operands.neutral is None else [operands.neutral]
        spare += multiset if operands.op in IDEMPOTENT else ()
    return level.domain(spare)


def _once(level: Level, multiset: list[int]) -> Bits:
    return level.domain([one for one in set(multiset) if multiset.count(one) == 1])


def _position(level: Level, term: int) -> int:
    return 0 if term == ZERO else level.bit[term]
