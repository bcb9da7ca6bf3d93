"""How a path of the case discussion ends (``docs/algorithm.md``, "At the leaf" and "Variants").

When all counters of a path are accepted, its version is finished by the strategies that worsen no counter.  Those that
cost what may be there propose versions that go before it, each with limits of its own: what it needs for it to pay, and
the counters that it worsens.  They change neither the path's system nor the tree.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic

from metafork.algebra.polynomial import Constraint, at_most
from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from metafork.comprehensive.case_discussion.measurements import Measurements
from metafork.comprehensive.case_discussion.quintuple import Case, Proposal, Quintuple
from metafork.comprehensive.systems.start import Start
from metafork.comprehensive.systems.systems import Consistency, System, Systems
from metafork.comprehensive.tree.schedule_tree import ESTIMATED, LeafReference, Statistics, Tree
from metafork.evaluators.counter import CounterOf, CounterValue, NotKnown, details_of
from metafork.strategies.strategy import AppliedOf, Effect, Need, NotApplied, StrategyOf, V
from metafork.transform.directive import then

MOST_PROPOSALS = 4
"""Most versions that go before that of a leaf."""


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
        proposing: bool = True,
    ) -> None:
        self.start = start
        self._proposing = proposing
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
        """End a path: apply the strategies that worsen nothing, and note what may go before the version."""
        finished = self._finished(quintuple)
        return self._noted(quintuple, finished, self._proposals(finished) if self._proposing else ())

    def _finished(self, quintuple: Quintuple[V]) -> Quintuple[V]:
        candidates = [strategy for strategy in quintuple.remaining if strategy.at_leaf]
        if not candidates:
            return quintuple
        if self._late():
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

    def _proposals(self, finished: Quintuple[V]) -> tuple[Proposal[V], ...]:
        """Return what may go before a finished version: with all strategies that apply, then with less of them.

        What needs something gives way, one at a time, to what its strategy has otherwise; the list ends with a version
        that has no limits.
        """
        found: list[Proposal[V]] = []
        waiting = [finished.remaining]
        while waiting and len(found) < MOST_PROPOSALS and not self._late():
            remaining = waiting.pop(0)
            # Where registers are to be had, others that were too dear may come with them.
            to_come = [one for one in remaining if one.name not in finished.applied and (one.at_leaf or one.proposes)]
            dearer, proposing = finished, list[tuple[StrategyOf[V], AppliedOf[V]]]()
            for strategy in to_come:
                extended = self._extended(dearer, [strategy])
                applied = self.measured.apply(strategy, dearer.version)
                if strategy.proposes and extended is not dearer and not isinstance(applied, NotApplied):
                    proposing.append((strategy, applied[1]))
                dearer = extended
            for strategy, made in reversed(proposing):
                if made.needs:
                    instead = () if made.otherwise is None else (made.otherwise,)
                    at = remaining.index(strategy)
                    waiting.append((*remaining[:at], *instead, *remaining[at + 1 :]))
            if not proposing or any(one.version is dearer.version for one in found):
                continue
            limits = self._limits(finished, dearer, [need for _, made in proposing for need in made.needs])
            known = None if limits is None else (*finished.system, *limits)
            # Where one runs, no later one does.
            if known is None or any(self._all_implied(known, one.limits) for one in found):
                continue
            assert limits is not None
            found.append(
                Proposal(dearer.version, dearer.applied, dearer.schedule, dearer.effects, self._values(dearer), limits)
            )
            if not limits:
                break
        return tuple(found)

    def _all_implied(self, known: System, limits: System) -> bool:
        return all(self.systems.implies(known, one) is Verdict.YES for one in limits)

    def _limits(self, finished: Quintuple[V], dearer: Quintuple[V], needs: Sequence[Need[V]]) -> System | None:
        """Return what must hold beside a path's system for a version to run and to pay; ``None``: it never does."""
        asked: list[tuple[CounterOf[V], int | None]] = [
            (need.counter, self._warp_size if need.least == "warp_size" else need.least) for need in needs
        ]
        asked += [(counter, None) for counter in self._counters]
        limits: System = ()
        for counter, least in asked:
            value = self.measured.value(counter, dearer.version)
            if isinstance(value, NotKnown) or self.measured.outside(value, finished.system):
                return None
            if least is not None:
                condition = at_most(value.denominator * least, value.numerator)
            elif value == self.measured.value(counter, finished.version):
                continue
            else:
                condition = self.measured.condition(counter, value)
            known = (*finished.system, *limits)
            if self.systems.implies(known, condition) is Verdict.YES:
                continue
            if not self._branch(replace(finished, system=known), condition).kept:
                if least is None:
                    self._note_estimate(counter, value, condition, dearer)
                return None
            limits = (*limits, condition)
        return limits

    def _noted(
        self, quintuple: Quintuple[V], finished: Quintuple[V], proposals: tuple[Proposal[V], ...]
    ) -> LeafReference:
        """Note the end of a path under a preliminary number."""
        self.statistics.paths += 1
        system = self._irredundant(quintuple.system)
        witness = None if self._late() else self.systems.witness(quintuple.system)
        self._cases.append(
            Case(
                finished.version,
                quintuple,
                (displayed(system),),
                (quintuple.system,),
                finished.applied,
                finished.schedule,
                finished.effects,
                quintuple.steps,
                quintuple.refusals,
                self._values(finished),
                quintuple.point if witness is None else witness,
                proposals,
            )
        )
        return LeafReference(len(self._cases))

    def _values(self, quintuple: Quintuple[V]) -> dict[str, CounterValue]:
        """Return the values of the counters that are known on a version."""
        values = {counter.name: self.measured.value(counter, quintuple.version) for counter in self._counters}
        return {name: value for name, value in values.items() if isinstance(value, CounterValue)}

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
        version, made = applied
        if version is quintuple.version:
            self._note(strategy.name, f"not applied {where}: it changes nothing there")
            return NotApplied("it changes nothing")
        for counter in self._counters if measured else ():
            value = self.measured.value(counter, version)
            reason = value.reason if isinstance(value, NotKnown) else self.measured.outside(value, quintuple.system)
            if reason:
                self._note(strategy.name, f"not applied {where}: {counter.name} is not known afterwards: {reason}")
                return NotApplied(f"{counter.name} is not known afterwards: {reason}")
        self._note(strategy.name, f"applied {where}: {made.note}")
        return replace(
            quintuple,
            version=version,
            remaining=tuple(other for other in quintuple.remaining if other is not strategy),
            applied=(*quintuple.applied, strategy.name),
            schedule=then(quintuple.schedule, made.schedule),
            effects=(*quintuple.effects, made.effect or Effect(strategy.name)),
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
        """Say whether the time is up: from then on nothing is transformed, measured or simplified any more.

        Who asks leaves something out then: the outcome is not complete.
        """
        late = self._deadline is not None and time.monotonic() > self._deadline
        self._complete = self._complete and not late
        return late

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
