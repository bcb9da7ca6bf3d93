"""How a path of the case discussion ends (``docs/algorithm.md``, "At the leaf" and "Forks at the leaf").

When all counters of a path are accepted, its version is finished by the strategies that worsen no counter.  One that
costs what may be there splits the path in two, with it and without: by the conditions under which it pays, then by the
counters that it worsens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, cast

from msgspec import Struct

from comprehensive.case_discussion.measurements import Measurements
from comprehensive.case_discussion.quintuple import Case, Quintuple
from comprehensive.systems.start import Start
from comprehensive.systems.systems import Consistency, System, Systems
from comprehensive.tree.schedule_tree import ESTIMATED, LeafReference, Node, Statistics, Tree
from evaluators.counter import CounterOf, CounterValue, NotKnown, details_of
from metafork.algebra.polynomial import Constraint, at_most
from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from strategies.strategy import NotApplied, StrategyOf, V


class Fork(Struct, Generic[V], frozen=True):
    """A path that may split: as it came, with what worsens nothing (``plain``), and with what costs more (``dearer``).

    All three have the same system.
    """

    begun: Quintuple[V]
    plain: Quintuple[V]
    dearer: Quintuple[V]

    def under(self, condition: Constraint, branch: Consistency) -> Fork[V]:
        """Return the path with a condition, which has a ``branch`` of its own."""
        return Fork(*(under(one, condition, branch) for one in (self.begun, self.plain, self.dearer)))


class Leaves(Generic[V]):
    """Ends paths, and knows what all of a discussion shares.

    Everything that is remembered (values, transformed versions, points) lives and dies with it.
    """

    def __init__(
        self,
        start: Start,
        counters: Sequence[CounterOf[V]],
        time_limit: float | None = None,
        analyses: Analyses | None = None,
    ) -> None:
        self.start = start
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self.systems = Systems(start, self._deadline)
        self.statistics = Statistics()
        # As in the paper, resource counters stand before performance counters.
        self._counters = tuple(sorted(counters, key=lambda counter: counter.kind == "performance"))
        analyses = analyses or Analyses()
        self._warp_size = analyses.hardware.warp_size
        self.measured: Measurements[V] = Measurements(start, self.systems, self.statistics, analyses, self._deadline)
        self._notes: dict[tuple[str, str], None] = {}
        self._cases: list[Case[V]] = []
        self._complete = True

    def leaf(self, quintuple: Quintuple[V]) -> Tree:
        """End a path: apply the strategies that worsen nothing, and split it where one costs what may be there."""
        plain = self._finished(quintuple)
        for strategy in plain.remaining:
            if not strategy.at_fork or not _to_come(strategy, plain) or self._late():
                continue
            if self._extended(plain, [strategy]).version is plain.version:
                continue
            # Where registers are to be had, others that were too dear may come with it.
            dearer = self._extended(plain, [one for one in plain.remaining if _to_come(one, plain)])
            new = [one for one in plain.remaining if one.name in dearer.applied and one.name not in plain.applied]
            to_pay = [(one, counter, number) for one in new for counter, number in self._floors(one)]
            if to_pay or not self._still_accepted(plain, dearer):
                return self._worthwhile(Fork(quintuple, plain, dearer), to_pay)
            plain = dearer
        return self._case(quintuple, plain)

    def _finished(self, quintuple: Quintuple[V]) -> Quintuple[V]:
        candidates = [strategy for strategy in quintuple.remaining if strategy.at_leaf and not strategy.at_fork]
        if not candidates:
            return quintuple
        if self._late():
            self._complete = False
            names = ", ".join(strategy.name for strategy in candidates)
            self._note("time limit", f"{names} not tried at the leaf after {described(quintuple.applied)}")
            return quintuple
        together = self._extended(quintuple, candidates)
        if self._still_accepted(quintuple, together):
            return together
        for strategy in candidates:
            extended = self._extended(quintuple, [strategy])
            if self._still_accepted(quintuple, extended):
                quintuple = extended
            else:
                self._note(strategy.name, f"not applied to {described(quintuple.applied)}: a counter may get worse")
        return quintuple

    def _floors(self, strategy: StrategyOf[V]) -> list[tuple[CounterOf[V], int]]:
        """Return the counters that must be so large for a strategy to pay: of those that take part, and its own."""
        known = {one.name: one for one in self._counters}
        found = [
            (known[name], self._warp_size if number == "warp_size" else number)
            for name, number in strategy.least.items()
            if name in known
        ]
        # A strategy's own counters measure the versions that it makes.
        return [*found, *((cast("CounterOf[V]", counter), 1) for counter in strategy.floors)]

    def _worthwhile(self, fork: Fork[V], to_pay: Sequence[tuple[StrategyOf[V], CounterOf[V], int]]) -> Tree:
        """Split a path by what must be there for a strategy to pay; below, the path ends without it."""
        if not to_pay and self._still_accepted(fork.plain, fork.dearer):
            return self._case(fork.begun, fork.dearer)
        if not to_pay:
            return self._forked(fork, self._counters)
        (strategy, counter, number), *rest = to_pay
        value = self._known(counter, fork)
        if value is None and counter in self._counters:
            return self._worthwhile(fork, rest)
        if value is None:
            return self._without(fork, [strategy])
        return self._split(
            fork,
            counter,
            value,
            at_most(value.denominator * number, value.numerator),
            lambda above: self._worthwhile(above, rest),
            lambda below: self._without(below, [strategy]),
        )

    def _forked(self, fork: Fork[V], counters: Sequence[CounterOf[V]]) -> Tree:
        """Split a path by the counters that strategies worsen: accepted with these, and refused without."""
        if not counters:
            return self._case(fork.begun, fork.dearer)
        counter, rest = counters[0], counters[1:]
        value = self._known(counter, fork)
        if value is None:
            return self._case(fork.begun, fork.plain)
        condition = self.measured.condition(counter, value)
        if value == self.measured.value(counter, fork.plain.version) or condition in fork.plain.system:
            return self._forked(fork, rest)

        def refused(below: Fork[V]) -> Tree:
            given_up = [one for one in fork.plain.remaining if one.falls_back and one.name in fork.dearer.applied]
            return self._without(below, given_up) if given_up else self._case(below.begun, below.plain)

        return self._split(fork, counter, value, condition, lambda above: self._forked(above, rest), refused)

    def _known(self, counter: CounterOf[V], fork: Fork[V]) -> CounterValue | None:
        """Return the value of a counter with what costs more, ``None`` where it is not known there."""
        value = self.measured.value(counter, fork.dearer.version)
        return None if isinstance(value, NotKnown) or self.measured.outside(value, fork.plain.system) else value

    def _without(self, fork: Fork[V], left_out: Sequence[StrategyOf[V]]) -> Tree:
        """End a path once more, without some strategies."""
        begun = fork.begun
        return self.leaf(replace(begun, remaining=tuple(one for one in begun.remaining if one not in left_out)))

    def _split(
        self,
        fork: Fork[V],
        counter: CounterOf[V],
        value: CounterValue,
        condition: Constraint,
        accept: Callable[[Fork[V]], Tree],
        refuse: Callable[[Fork[V]], Tree],
    ) -> Tree:
        """Split a path by a condition, where both sides have points."""
        accepted, refused = self._branch(fork.plain, condition), self._branch(fork.plain, condition.negated())
        if not accepted.kept:
            self._note_estimate(counter, value, condition, fork.dearer)
            return refuse(fork)
        if not refused.kept:
            return accept(fork)
        self.statistics.nodes += 1
        with_it = accept(fork.under(condition, accepted))
        without = refuse(fork.under(condition.negated(), refused))
        return Node(counter.name, value, condition, with_it, None, without)

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
                return self._forked(Fork(quintuple, replace(finished, remaining=others), dearer), self._counters)
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
                (displayed(system),),
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

    def _extended(self, quintuple: Quintuple[V], strategies: Sequence[StrategyOf[V]]) -> Quintuple[V]:
        """Return a quintuple with those strategies that apply, one after the other; they stay in omega."""
        for strategy in strategies:
            transformed = self._transformed(strategy, quintuple, measured=False)
            if not isinstance(transformed, NotApplied):
                quintuple = replace(transformed, remaining=quintuple.remaining)
        return quintuple

    def _transformed(
        self, strategy: StrategyOf[V], quintuple: Quintuple[V], measured: bool = True
    ) -> Quintuple[V] | NotApplied:
        """Apply a strategy of omega; the result counts only where every counter is known on it (within the path).

        With ``measured`` false the caller sees to the counters.
        """
        applied = self.measured.apply(strategy, quintuple.version)
        where = f"to {described(quintuple.applied)}"
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
        return replace(
            quintuple,
            version=version,
            remaining=tuple(other for other in quintuple.remaining if other is not strategy),
            applied=(*quintuple.applied, strategy.name),
            effects=(*quintuple.effects, effect),
        )

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
            f"{described(left_out.applied)} is not a leaf: its {counter.name} is estimated to be "
            f"{value.numerator.text(self.start.order)}, and the limit is {limit} (the compiler may take fewer)",
        )

    def _irredundant(self, system: System) -> System:
        return system if self._late() else self.systems.irredundant(system)

    def _late(self) -> bool:
        """Say whether the time is up: from then on nothing is transformed, measured or simplified any more."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def _note(self, subject: str, sentence: str) -> None:
        self._notes[subject, sentence] = None


def under(quintuple: Quintuple[V], condition: Constraint, branch: Consistency) -> Quintuple[V]:
    """Return a quintuple with a condition, which has a ``branch`` of its own.

    A fixed machine may decide the condition, or it is on the path from before counters were put back.
    """
    new = not condition.difference.is_constant and condition not in quintuple.system
    system = (*quintuple.system, condition) if new else quintuple.system
    return replace(quintuple, system=system, point=branch.witness)


def described(applied: Sequence[str]) -> str:
    """Say in words which strategies led to a version."""
    return f"the result of {', '.join(applied)}" if applied else "the input"


def displayed(system: System) -> System:
    """Order a system for display: limits that hold first, then those that do not."""
    return tuple(sorted(system, key=lambda constraint: constraint.relation == "<"))


def _to_come(strategy: StrategyOf[V], finished: Quintuple[V]) -> bool:
    return strategy.at_leaf and strategy.name not in finished.applied and not strategy.by_itself
