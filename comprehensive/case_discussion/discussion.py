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
from typing import Generic, cast

from msgspec import structs

from comprehensive.case_discussion.measurements import OUT_OF_TIME, Measurements
from comprehensive.case_discussion.quintuple import (
    Case,
    CounterOf,
    OrderOf,
    Outcome,
    Precedence,
    Quintuple,
    Step,
)
from comprehensive.signals import OutOfTimeError, until
from comprehensive.systems.start import Start
from comprehensive.systems.systems import Consistency, System, Systems
from comprehensive.tree.schedule_tree import (
    ESTIMATED,
    ORDER,
    Inconsistent,
    LeafReference,
    Node,
    NoLeaf,
    Statistics,
    Tree,
)
from evaluators.counter import CounterValue, NotKnown, details_of
from metafork.algebra.polynomial import Constraint, at_most
from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from strategies.strategy import Effect, NotApplied, StrategyOf, V


class Discussion(Generic[V]):
    """One run.  Everything that is remembered (values, transformed versions, points) lives and dies with it."""

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
        self.start = start
        self._order = order
        self._reordered = False
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self.systems = Systems(start, self._deadline)
        self.statistics = Statistics()
        # As in the paper, resource counters stand before performance counters.
        self._counters = tuple(sorted(counters, key=lambda counter: counter.kind == "performance"))
        self._strategies = tuple(strategies)
        analyses = analyses or Analyses()
        self._warp_size = analyses.hardware.warp_size
        self.measured: Measurements[V] = Measurements(start, self.systems, self.statistics, analyses, self._deadline)
        self._notes: dict[tuple[str, str], None] = {}
        self._cases: list[Case[V]] = []
        self._complete = True
        self._progress = progress

    def run(self, version: V) -> Outcome[V]:
        """Discuss one version; the tree's leaves are numbered by preference, fewest refusals first."""
        began = time.monotonic()
        version = self.measured.keep(version)
        self._counters = tuple(counter for counter in self._counters if self._is_known(counter, version))
        first = self.systems.has_solution()
        root: Tree
        if first.kept:
            root = self._entered(Quintuple(version, self._strategies, self._counters, point=first.witness))
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
            self._complete and not self.measured.interrupted,
            self.statistics,
        )

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
            transformed = self._transformed(strategy, quintuple, measured=False)
            if isinstance(transformed, NotApplied):
                self._forget_since(notes, transformed)
                continue
            version, effect = transformed
            chosen = replace(
                quintuple,
                version=version,
                remaining=tuple(other for other in quintuple.remaining if other is not strategy),
                applied=(*quintuple.applied, strategy.name),
                effects=(*quintuple.effects, effect),
                otherwise=replace(quintuple, ordered=True),
                ordered=True,
            )
            precedence = self._precedence(self._order, version, [quintuple.version])
            if precedence.first:
                others = [self._at_its_leaf(quintuple, forked) for forked in (False, True)]
                precedence = self._precedence(self._order, self._at_its_leaf(chosen, forked=False), others)
            if precedence.first:
                transformed = self._transformed(strategy, quintuple)
                if isinstance(transformed, NotApplied):
                    self._forget_since(notes, transformed)
                    continue
            else:
                self._notes = notes  # those of what was tried for the comparison alone
            place = "goes before" if precedence.first else "does not go before"
            result = _described(quintuple.applied)
            self._note(ORDER, f"{result} with {strategy.name} {place} {result}: {precedence.reason}")
            if precedence.first:
                self._reordered = True
                return chosen
        return None

    def _forget_since(self, notes: dict[tuple[str, str], None], refusal: NotApplied) -> None:
        """Forget what was noted of a strategy that was only tried; where a limit asks for it, the reason is given."""
        if OUT_OF_TIME not in refusal.reason:
            self._notes = notes

    def _precedence(self, order: OrderOf[V], version: V, others: Sequence[V]) -> Precedence:
        try:
            with until(self._deadline):
                return order.precedence(version, others)
        except OutOfTimeError:
            self.measured.interrupted = True
            return Precedence(False, OUT_OF_TIME)

    def _at_its_leaf(self, quintuple: Quintuple[V], forked: bool) -> V:
        """Return a version with the strategies that are applied at leaves, and where ``forked`` with those at forks."""
        strategies = [one for one in quintuple.remaining if one.at_leaf and (forked or not one.at_fork)]
        return self._extended(quintuple, strategies).version

    def comprehensive_optimization(self, quintuple: Quintuple[V]) -> Tree:
        """Algorithm 1: a processed quintuple is a leaf, any other is split by Algorithm 2."""
        return self.optimize(quintuple) if quintuple.counters else self._leaf(quintuple)

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
        if not branch.kept:
            self._note_estimate(counter, value, condition, quintuple)
        else:
            accept = self.comprehensive_optimization(
                replace(
                    quintuple,
                    counters=rest,
                    system=_extended(quintuple.system, condition),
                    steps=(*quintuple.steps, Step(counter.name, None)),
                    point=branch.witness,
                )
            )

        refused_condition = condition.negated()
        branch = self._branch(quintuple, refused_condition)
        if not branch.kept:
            return Node(counter.name, value, condition, accept, None, Inconsistent())
        refused = replace(quintuple, system=_extended(quintuple.system, refused_condition), point=branch.witness)
        if quintuple.otherwise is not None:
            other = replace(quintuple.otherwise, system=refused.system, point=branch.witness)
            return Node(counter.name, value, condition, accept, None, self.comprehensive_optimization(other))
        if self._late():
            self._complete = False
            brief = f"time limit reached with {counter.name} refused"
            region = self._region(refused, brief, ("strategies left untried",))
            return Node(counter.name, value, condition, accept, None, region)
        improved = self._improved(refused, counter)
        if isinstance(improved, NoLeaf):
            return Node(counter.name, value, condition, accept, None, improved)
        last = next(one for one in self._strategies if one.name == improved.applied[-1])
        compared = last.on_ir or last.at_leaf  # versions without it were
        below = self.comprehensive_optimization(improved) if compared else self._entered(improved)
        return Node(counter.name, value, condition, accept, last.name, below)

    def _branch(self, quintuple: Quintuple[V], condition: Constraint) -> Consistency:
        point = quintuple.point
        found = self.systems.consistent(quintuple.system, condition, None if point is None else dict(point))
        if found.verdict is Verdict.UNKNOWN:
            order = self.start.order
            path = " and ".join(member.text(order) for member in quintuple.system)
            case = f"{condition.text(order)} with {path}" if path else condition.text(order)
            self._note(
                "undecided cases", f"kept, for Z3 did not decide within its limits whether there are any: {case}"
            )
        return found

    def _note_estimate(
        self, counter: CounterOf[V], value: CounterValue, condition: Constraint, left_out: Quintuple[V]
    ) -> None:
        """Note a version that is no leaf because an estimate exceeds the limit everywhere in Start."""
        if details_of(counter).measure is None or self.systems.consistent((), condition).kept:
            return
        limit = self.start.limit(counter.symbol)
        self._note(
            ESTIMATED,
            f"{_described(left_out.applied)} is not a leaf: its {counter.name} is estimated to be "
            f"{value.numerator.text(self.start.order)}, and the limit is {limit} (the compiler may take fewer)",
        )

    def _late(self) -> bool:
        """Say whether the time is up: from then on nothing is transformed, measured or simplified any more."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def _improved(self, refused: Quintuple[V], counter: CounterOf[V]) -> Quintuple[V] | NoLeaf:
        """Apply the next strategy of omega that may improve the counter, and put counters back onto gamma."""
        tried: list[str] = [step.strategy for step in refused.steps if step.strategy is not None]
        skipped: list[str] = []
        for strategy in refused.remaining:
            if counter.name not in strategy.improves:
                continue
            transformed = self._transformed(strategy, refused)
            if isinstance(transformed, NotApplied):
                skipped.append(f"{strategy.name} ({transformed.reason})")
                continue
            version, effect = transformed
            # After r_i: r1..ri.  After p_i: r1..rs, p1..pi.  What gamma still holds follows, so that all are there.
            return replace(
                refused,
                version=version,
                remaining=tuple(other for other in refused.remaining if other is not strategy),
                counters=self._counters,
                applied=(*refused.applied, strategy.name),
                effects=(*refused.effects, effect),
                steps=(*refused.steps, Step(counter.name, strategy.name)),
            )
        value = self.measured.value(counter, refused.version)
        assert isinstance(value, CounterValue)
        violated = self.measured.condition(counter, value).text(self.start.order)
        story = [f"applied: {', '.join(tried)}" if tried else "no strategy applied"]
        if skipped:
            story.append(f"not applicable: {', '.join(skipped)}")
        return self._region(refused, f"{counter.name}: {violated} does not hold", story)

    def _region(self, quintuple: Quintuple[V], brief: str, story: Sequence[str]) -> NoLeaf:
        return NoLeaf("; ".join((brief, *story)), self._irredundant(quintuple.system), brief)

    def _irredundant(self, system: System) -> System:
        return system if self._late() else self.systems.irredundant(system)

    def _transformed(
        self, strategy: StrategyOf[V], quintuple: Quintuple[V], measured: bool = True
    ) -> tuple[V, Effect] | NotApplied:
        """Apply a strategy; the result counts only where every counter is known on it (within Start and the path).

        With ``measured`` false the caller sees to the counters.
        """
        applied = self.measured.apply(strategy, quintuple.version)
        where = f"to {_described(quintuple.applied)}"
        if isinstance(applied, NotApplied):
            self._note(strategy.name, f"not applied {where}: {applied.reason}")
            return applied
        version, note, effect = applied
        if version is quintuple.version:
            self._note(strategy.name, f"not applied {where}: it changes nothing there")
            return NotApplied("it changes nothing")
        for counter in self._counters if measured else ():
            value = self.measured.value(counter, version)
            reason = value.reason if isinstance(value, NotKnown) else self.measured.outside(value, quintuple.system)
            if reason:
                self._note(strategy.name, f"not applied {where}: {counter.name} is not known afterwards: {reason}")
                return NotApplied(f"{counter.name} is not known afterwards: {reason}")
        self._note(strategy.name, f"applied {where}: {note}")
        return version, effect

    def _is_known(self, counter: CounterOf[V], version: V) -> bool:
        """Say whether a counter takes part: it does where its value is known on the input, throughout Start.

        That is found out whatever it takes: a limit that was not looked at is none that a leaf could keep.
        """
        value = self.measured.value(counter, version, patient=True)
        reason = value.reason if isinstance(value, NotKnown) else self.measured.outside(value, ())
        if reason:
            self._note(counter.name, f"left out: {reason}")
        return not reason

    def _leaf(self, quintuple: Quintuple[V]) -> Tree:
        """End a path: apply the strategies that worsen nothing, and split it where one costs what may be there."""
        finished = self._finished(quintuple)
        for strategy in finished.remaining:
            if not strategy.at_fork or not self._to_come(strategy, finished) or self._late():
                continue
            if self._extended(finished, [strategy]).version is finished.version:
                continue
            # Where registers are to be had, others that were too dear may come with it.
            dearer = self._extended(finished, [one for one in finished.remaining if self._to_come(one, finished)])
            to_pay = [
                (one, counter, number)
                for one in finished.remaining
                if self._to_come(one, finished) and one.name in dearer.applied
                for counter, number in self._floors(one)
            ]
            if to_pay or not self._still_accepted(finished, dearer):
                return self._worthwhile(quintuple, finished, dearer, to_pay)
            finished = dearer
        return self._case(quintuple, finished)

    def _to_come(self, strategy: StrategyOf[V], finished: Quintuple[V]) -> bool:
        return strategy.at_leaf and strategy.name not in finished.applied and not strategy.by_itself

    def _floors(self, strategy: StrategyOf[V]) -> list[tuple[CounterOf[V], int]]:
        """Return the counters that must be so large for a strategy to pay: of those that take part, and its own."""
        numbers = {
            name: self._warp_size if number == "warp_size" else number for name, number in strategy.least.items()
        }
        known = {one.name: one for one in self._counters}
        found = [(known[name], number) for name, number in numbers.items() if name in known]
        # A strategy's own counters measure the versions that it makes.
        return [*found, *((cast("CounterOf[V]", counter), 1) for counter in strategy.floors)]

    def _worthwhile(
        self,
        quintuple: Quintuple[V],
        finished: Quintuple[V],
        dearer: Quintuple[V],
        to_pay: Sequence[tuple[StrategyOf[V], CounterOf[V], int]],
    ) -> Tree:
        """Split a path by what must be there for a strategy to pay; below, the path ends without it."""
        if not to_pay:
            if self._still_accepted(finished, dearer):
                return self._case(quintuple, dearer)
            return self._forked(quintuple, finished, dearer, self._counters)
        (strategy, counter, number), *rest = to_pay
        value = self.measured.value(counter, dearer.version)
        others = tuple(one for one in quintuple.remaining if one is not strategy)
        if isinstance(value, NotKnown) or self.measured.outside(value, finished.system):
            if counter in self._counters:
                return self._worthwhile(quintuple, finished, dearer, rest)
            return self._leaf(replace(quintuple, remaining=others))
        condition = at_most(value.denominator * number, value.numerator)

        def above(start: Quintuple[V], plain: Quintuple[V], more: Quintuple[V]) -> Tree:
            return self._worthwhile(start, plain, more, rest)

        def below(start: Quintuple[V], _: Quintuple[V]) -> Tree:
            return self._leaf(replace(start, remaining=others))

        return self._split((quintuple, finished, dearer), counter, value, condition, above, below)

    def _forked(
        self,
        quintuple: Quintuple[V],
        finished: Quintuple[V],
        dearer: Quintuple[V],
        counters: Sequence[CounterOf[V]],
    ) -> Tree:
        """Split a path by the counters that a strategy worsens: accepted with it, and refused without."""
        if not counters:
            return self._case(quintuple, dearer)
        counter, rest = counters[0], counters[1:]
        value = self.measured.value(counter, dearer.version)
        if isinstance(value, NotKnown) or self.measured.outside(value, finished.system):
            return self._case(quintuple, finished)
        condition = self.measured.condition(counter, value)
        if value == self.measured.value(counter, finished.version) or condition in finished.system:
            return self._forked(quintuple, finished, dearer, rest)

        def accepted(start: Quintuple[V], plain: Quintuple[V], more: Quintuple[V]) -> Tree:
            return self._forked(start, plain, more, rest)

        def refused(start: Quintuple[V], plain: Quintuple[V]) -> Tree:
            given_up = [one for one in plain.remaining if one.falls_back and one.name in dearer.applied]
            if not given_up:
                return self._case(start, plain)
            return self._leaf(replace(start, remaining=tuple(one for one in start.remaining if one not in given_up)))

        return self._split((quintuple, finished, dearer), counter, value, condition, accepted, refused)

    def _split(
        self,
        found: tuple[Quintuple[V], Quintuple[V], Quintuple[V]],
        counter: CounterOf[V],
        value: CounterValue,
        condition: Constraint,
        accept: Callable[[Quintuple[V], Quintuple[V], Quintuple[V]], Tree],
        refuse: Callable[[Quintuple[V], Quintuple[V]], Tree],
    ) -> Tree:
        """Split a path by a condition; ``found`` are the quintuple, what it is finished, and with what costs more."""
        quintuple, finished, dearer = found
        accepted, refused = self._branch(finished, condition), self._branch(finished, condition.negated())
        if not accepted.kept:
            self._note_estimate(counter, value, condition, dearer)
            return refuse(quintuple, finished)
        if not refused.kept:
            return accept(quintuple, finished, dearer)

        def at(one: Quintuple[V], side: Constraint, branch: Consistency) -> Quintuple[V]:
            return replace(one, system=_extended(one.system, side), point=branch.witness)

        inside = [at(one, condition, accepted) for one in found]
        outside = [at(one, condition.negated(), refused) for one in (quintuple, finished)]
        self.statistics.nodes += 1
        with_it = accept(inside[0], inside[1], inside[2])
        return Node(counter.name, value, condition, with_it, None, refuse(outside[0], outside[1]))

    def _case(self, quintuple: Quintuple[V], finished: Quintuple[V]) -> Tree:
        """End a path with what it is finished, once more split by each strategy that splits leaves by itself."""
        for strategy in finished.remaining:
            if not strategy.by_itself or strategy.name in finished.applied or self._late():
                continue
            others = tuple(one for one in finished.remaining if one is not strategy)
            dearer = replace(self._extended(finished, [strategy]), remaining=others)
            if dearer.version is finished.version:
                continue
            if not self._still_accepted(finished, dearer):
                return self._forked(quintuple, replace(finished, remaining=others), dearer, self._counters)
            finished = dearer
        return self._noted(quintuple, finished)

    def _noted(self, quintuple: Quintuple[V], finished: Quintuple[V]) -> LeafReference:
        """Note the end of a path under a preliminary number."""
        self.statistics.paths += 1
        values = {counter.name: self.measured.value(counter, finished.version) for counter in self._counters}
        system = self._irredundant(quintuple.system)
        witness = None if self._late() else self.systems.witness(quintuple.system)
        self._cases.append(
            Case(
                finished.version,
                quintuple.version,
                len(quintuple.applied),
                (_displayed(system),),
                (quintuple.system,),
                finished.applied,
                finished.effects,
                quintuple.steps,
                quintuple.refusals,
                {name: value for name, value in values.items() if isinstance(value, CounterValue)},
                quintuple.point if witness is None else witness,
            )
        )
        return LeafReference(len(self._cases))

    def _finished(self, quintuple: Quintuple[V]) -> Quintuple[V]:
        candidates = [strategy for strategy in quintuple.remaining if strategy.at_leaf and not strategy.at_fork]
        if not candidates:
            return quintuple
        if self._late():
            self._complete = False
            names = ", ".join(strategy.name for strategy in candidates)
            self._note("time limit", f"{names} not tried at the leaf after {_described(quintuple.applied)}")
            return quintuple
        together = self._extended(quintuple, candidates)
        if self._still_accepted(quintuple, together):
            return together
        for strategy in candidates:
            extended = self._extended(quintuple, [strategy])
            if self._still_accepted(quintuple, extended):
                quintuple = extended
            else:
                self._note(strategy.name, f"not applied to {_described(quintuple.applied)}: a counter may get worse")
        return quintuple

    def _extended(self, quintuple: Quintuple[V], strategies: Sequence[StrategyOf[V]]) -> Quintuple[V]:
        for strategy in strategies:
            transformed = self._transformed(strategy, quintuple, measured=False)
            if not isinstance(transformed, NotApplied):
                version, effect = transformed
                applied, effects = (*quintuple.applied, strategy.name), (*quintuple.effects, effect)
                quintuple = replace(quintuple, version=version, applied=applied, effects=effects)
        return quintuple

    def _still_accepted(self, before: Quintuple[V], after: Quintuple[V]) -> bool:
        """Say whether the path's system implies that every counter is accepted on the new version too."""
        if after.version is before.version:
            return True
        for counter in self._counters:
            old, new = self.measured.value(counter, before.version), self.measured.value(counter, after.version)
            if isinstance(new, NotKnown) or self.measured.outside(new, before.system):
                return False
            condition = self.measured.condition(counter, new)
            if new != old and self.systems.implies(before.system, condition) is not Verdict.YES:
                return False
        return True

    def _merged(self, root: Tree) -> tuple[Tree, tuple[Case[V], ...]]:
        """Make one leaf of cases with the same version, and number leaves by preference."""
        groups: dict[int, list[int]] = {}
        for index, case in enumerate(self._cases):
            groups.setdefault(id(case.version), []).append(index)  # versions are kept: equal ones are the same
        for members in groups.values():
            members.sort(key=lambda index: (self._cases[index].refusals, index))
        ranked = sorted(groups.values(), key=lambda members: (self._cases[members[0]].refusals, members[0]))
        numbers = {index + 1: number for number, members in enumerate(ranked, 1) for index in members}
        cases = []
        for members in ranked:
            best = self._cases[members[0]]
            systems = dict.fromkeys(system for index in members for system in self._cases[index].systems)
            paths = tuple(path for index in members for path in self._cases[index].paths)
            joined = tuple(systems) if self._late() else self.systems.joined(tuple(systems))
            joined = tuple(_displayed(system) for system in joined)
            cases.append(replace(best, systems=joined, paths=paths))
        return _renumbered(root, numbers, self._reordered), tuple(cases)

    def _note(self, subject: str, sentence: str) -> None:
        self._notes[subject, sentence] = None


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


def _displayed(system: System) -> System:
    """Order a system for display: limits that hold first, then those that do not."""
    return tuple(sorted(system, key=lambda constraint: constraint.relation == "<"))


def _extended(system: System, condition: Constraint) -> System:
    """Add a condition to a path; a fixed machine may decide it, or it is there from before counters were put back."""
    return system if condition.difference.is_constant or condition in system else (*system, condition)


def _described(applied: Sequence[str]) -> str:
    return f"the result of {', '.join(applied)}" if applied else "the input"
