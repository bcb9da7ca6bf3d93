"""The case discussion: Algorithms 1 and 2 of the paper (section 3.7) on quintuples (section 3.6).

In comes a version of a program, its Start, counters r1..rs, p1..pt and strategies O1..Ow; out comes a decision tree
with its cases.  The algorithms know nothing of programs: a version is anything hashable that counters measure and
strategies transform, so that they are tested on made-up ones.

Where this differs from the printed algorithms, DESIGN section 6 and ``docs/algorithm.md`` say why.  The main point:
after a refusal, r1..ri are put back *in that order*.  gamma is then always a suffix of r1..rs, p1..pt, every leaf
has had all its counters accepted on its final version, and the height is at most (w + 1)(s + t).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from msgspec import structs

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.case_discussion.leaves import Leaves, described, displayed, under
from metafork.comprehensive.case_discussion.measurements import OUT_OF_TIME
from metafork.comprehensive.case_discussion.quintuple import (
    Case,
    OrderOf,
    Outcome,
    Precedence,
    Proposal,
    Quintuple,
    Step,
)
from metafork.comprehensive.signals import OutOfTimeError, until
from metafork.comprehensive.systems.start import Start
from metafork.comprehensive.tree.schedule_tree import ORDER, Inconsistent, LeafReference, Node, NoLeaf, Statistics, Tree
from metafork.evaluators.counter import CounterOf, CounterValue, NotKnown
from metafork.strategies.strategy import NotApplied, StrategyOf, V
from metafork.transform.directive import Schedule


class Discussion(Leaves[V]):
    """One run."""

    def __init__(
        self,
        start: Start,
        counters: Sequence[CounterOf[V]],
        strategies: Sequence[StrategyOf[V]],
        time_limit: float | None = None,
        progress: Callable[[Statistics], None] | None = None,
        analyses: Analyses | None = None,
        order: OrderOf[V] | None = None,
    ) -> None:
        super().__init__(start, counters, time_limit, analyses, proposing=order is not None)
        self._strategies = tuple(strategies)
        self._progress = progress
        self._order = order
        self._reordered = False

    def run(self, version: V, schedule: Schedule = ()) -> Outcome[V]:
        """Discuss one version, made by a schedule; leaves are numbered by preference, fewest refusals first."""
        began = time.monotonic()
        version = self.measured.keep(version)
        self._counters = tuple(counter for counter in self._counters if self._is_known(counter, version))
        first = self.systems.has_solution()
        root: Tree
        if first.kept:
            root = self._entered(
                Quintuple(version, self._strategies, self._counters, schedule=schedule, point=first.witness)
            )
        else:
            self._note("start", "the start system has no solution: no parameter values satisfy the assertions")
            root = Inconsistent()
        root, cases = self._merged(root)
        self.statistics.leaves = len(cases)
        self.statistics.solver_calls = self.systems.solver_calls
        self.statistics.seconds = time.monotonic() - began
        return Outcome(
            root,
            cases,
            self._counters,
            tuple(self.systems.derived),
            tuple(self._notes),
            self._complete and not self.measured.interrupted and not self.systems.late,
            self.statistics,
        )

    def _is_known(self, counter: CounterOf[V], version: V) -> bool:
        """Say whether a counter takes part: it does where its value is known on the input, throughout Start.

        This is never skipped to save time: a leaf must satisfy every limit.
        """
        value = self.measured.value(counter, version, patient=True)
        reason = value.reason if isinstance(value, NotKnown) else self.measured.outside(value, ())
        if reason:
            self._note(counter.name, f"left out: {reason}")
        return not reason

    def comprehensive_optimization(self, quintuple: Quintuple[V]) -> Tree:
        """Algorithm 1: a processed quintuple is a leaf, any other is split by Algorithm 2."""
        return self.optimize(quintuple) if quintuple.counters else self.leaf(quintuple)

    def optimize(self, quintuple: Quintuple[V]) -> Tree:
        """Algorithm 2: take the next counter, and split into the branch that accepts its value and that which does not.

        The systems that are inconsistent are removed on the way (the printed algorithm removes them at its end).
        """
        self.statistics.nodes += 1
        if self._progress is not None:
            self._progress(self.statistics)
        counter, rest = quintuple.counters[0], quintuple.counters[1:]
        value = self.measured.value(counter, quintuple.version)
        assert isinstance(value, CounterValue), "versions with unknown counters are not entered"
        condition = self.measured.condition(counter, value)

        accept: Tree = Inconsistent()
        branch = self._branch(quintuple, condition)
        if branch.kept:
            accepted = under(quintuple, condition, branch)
            steps = (*quintuple.steps, Step(counter.name, None))
            accept = self.comprehensive_optimization(replace(accepted, counters=rest, steps=steps))
        else:
            self._note_estimate(counter, value, condition, quintuple)

        strategy: str | None = None
        refuse: Tree = Inconsistent()
        branch = self._branch(quintuple, condition.negated())
        if branch.kept:
            strategy, refuse = self._refused(under(quintuple, condition.negated(), branch), counter)
        return Node(counter.name, value, condition, accept, strategy, refuse)

    def _refused(self, quintuple: Quintuple[V], counter: CounterOf[V]) -> tuple[str | None, Tree]:
        """Go on where a counter was refused: by the next strategy of omega that may improve it; return which."""
        if quintuple.otherwise is not None:
            other = replace(quintuple.otherwise, system=quintuple.system, point=quintuple.point)
            return None, self.comprehensive_optimization(other)
        if self._late():
            brief = f"time limit reached with {counter.name} refused"
            return None, self._region(quintuple, brief, ("strategies left untried",))
        skipped: list[str] = []
        for strategy in quintuple.remaining:
            if counter.name not in strategy.improves:
                continue
            improved = self._transformed(strategy, quintuple)
            if isinstance(improved, NotApplied):
                skipped.append(f"{strategy.name} ({improved.reason})")
                continue
            # After r_i: r1..ri.  After p_i: r1..rs, p1..pi.  What gamma still holds follows, so that all are there.
            steps = (*quintuple.steps, Step(counter.name, strategy.name))
            improved = replace(improved, counters=self._counters, steps=steps)
            compared = strategy.on_ir or strategy.at_leaf or strategy.proposes  # versions without it were
            go_on = self.comprehensive_optimization if compared else self._entered
            return strategy.name, go_on(improved)
        value = self.measured.value(counter, quintuple.version)
        assert isinstance(value, CounterValue)
        violated = self.measured.condition(counter, value).text(self.start.order)
        tried = [step.strategy for step in quintuple.steps if step.strategy is not None]
        story = [f"applied: {', '.join(tried)}" if tried else "no strategy applied"]
        if skipped:
            story.append(f"not applicable: {', '.join(skipped)}")
        return None, self._region(quintuple, f"{counter.name}: {violated} does not hold", story)

    def _region(self, quintuple: Quintuple[V], brief: str, story: Sequence[str]) -> NoLeaf:
        return NoLeaf("; ".join((brief, *story)), self._irredundant(quintuple.system), brief)

    def _entered(self, quintuple: Quintuple[V]) -> Tree:
        """Discuss a version that a path has come to; one that the order puts before it is tried first."""
        return self.comprehensive_optimization(self._put_first(quintuple) or quintuple)

    def _put_first(self, quintuple: Quintuple[V]) -> Quintuple[V] | None:
        if self._order is None or quintuple.ordered:
            return None
        for strategy in quintuple.remaining:
            if not strategy.by_choice or self._late():
                continue
            notes = dict(self._notes)
            # Counters are measured only on a version that does go first: that costs more than the comparison.
            chosen = self._transformed(strategy, quintuple, measured=False)
            if not isinstance(chosen, NotApplied):
                precedence = self._precedence(self._order, chosen, quintuple)
                if precedence.first:
                    chosen = self._transformed(strategy, quintuple)
                else:
                    self._notes = notes  # those of what was tried for the comparison alone
            if isinstance(chosen, NotApplied):
                if OUT_OF_TIME not in chosen.reason:
                    self._notes = notes  # where a limit asks for the strategy, the reason is given
                continue
            place = "goes before" if precedence.first else "does not go before"
            result = described(quintuple.applied)
            self._note(ORDER, f"{result} with {strategy.name} {place} {result}: {precedence.reason}")
            if precedence.first:
                self._reordered = True
                return replace(chosen, otherwise=replace(quintuple, ordered=True), ordered=True)
        return None

    def _precedence(self, order: OrderOf[V], chosen: Quintuple[V], quintuple: Quintuple[V]) -> Precedence:
        """Say whether a version goes first: as it is, and with what would be applied at the leaves of both."""
        try:
            with until(self._deadline):
                first = order.precedence(chosen.version, [quintuple.version])
            if first.first:
                others = [self._at_its_leaf(quintuple, proposing) for proposing in (False, True)]
                own = self._at_its_leaf(chosen, proposing=False)
                with until(self._deadline):
                    first = order.precedence(own, others)
        except OutOfTimeError:
            self.measured.interrupted = True
            return Precedence(False, OUT_OF_TIME)
        return first

    def _at_its_leaf(self, quintuple: Quintuple[V], proposing: bool) -> V:
        """Return a version with the strategies that are applied at leaves, and with those that propose variants."""
        strategies = [one for one in quintuple.remaining if one.at_leaf or (proposing and one.proposes)]
        return self._extended(quintuple, strategies).version

    def _merged(self, root: Tree) -> tuple[Tree, tuple[Case[V], ...]]:
        """Make one leaf of cases with the same versions, and number leaves by preference.

        Where a version has no limits on a path, nothing stands behind it there: what does so on others does no harm.
        """
        groups: dict[tuple[int, ...], list[int]] = {}
        for index in sorted(range(len(self._cases)), key=lambda index: -len(self._cases[index].proposals)):
            case = self._cases[index]  # versions are kept: equal ones are the same
            versions = tuple(map(id, (case.version, *(one.version for one in case.proposals))))
            if case.proposals and not case.proposals[-1].limits:
                versions = next((one for one in groups if one[: len(versions)] == versions), versions)
            groups.setdefault(versions, []).append(index)
        for members in groups.values():
            members.sort(key=lambda index: (self._cases[index].refusals, index))
        ranked = sorted(groups.values(), key=lambda members: (self._cases[members[0]].refusals, members[0]))
        numbers = {index + 1: number for number, members in enumerate(ranked, 1) for index in members}
        cases = []
        for members in ranked:
            systems = tuple(dict.fromkeys(system for index in members for system in self._cases[index].systems))
            paths = tuple(path for index in members for path in self._cases[index].paths)
            joined = systems if self._late() else self.systems.joined(systems)
            case = replace(self._cases[members[0]], systems=tuple(map(displayed, joined)), paths=paths)
            cases.append(_with_proposals(case, [self._cases[index].proposals for index in members]))
        return _renumbered(root, numbers, self._reordered), tuple(cases)


def _with_proposals(case: Case[V], alike: list[tuple[Proposal[V], ...]]) -> Case[V]:
    """Return a case with the proposals of all that became it, under the limits of each; what has none is the last."""
    proposals: list[Proposal[V]] = []
    for same in zip_longest(*alike):
        each = [one for one in same if one is not None]
        limits = tuple(dict.fromkeys(limit for one in each for limit in one.limits))
        proposals.append(replace(each[0], limits=limits))
    if proposals and not proposals[-1].limits:
        last = proposals.pop()
        case = replace(
            case,
            version=last.version,
            strategies=last.strategies,
            schedule=last.schedule,
            effects=last.effects,
            counters=last.counters,
        )
    return replace(case, proposals=tuple(proposals))


def _renumbered(tree: Tree, numbers: Mapping[int, int], shorter: bool) -> Tree:
    """Number the leaves; ``shorter`` leaves out the conditions of which one side is empty."""
    match tree:
        case LeafReference(leaf=leaf):
            return LeafReference(numbers[leaf])
        case Node(condition=condition, accept=accept, refuse=refuse):
            if condition.difference.is_constant:  # a fixed machine has decided it
                return _renumbered(accept if condition.holds({}) else refuse, numbers, shorter)
            accept, refuse = _renumbered(accept, numbers, shorter), _renumbered(refuse, numbers, shorter)
            if shorter and isinstance(accept, Inconsistent):
                return refuse
            if shorter and isinstance(refuse, Inconsistent):
                return accept
            return structs.replace(tree, accept=accept, refuse=refuse)
        case NoLeaf() | Inconsistent():
            return tree
