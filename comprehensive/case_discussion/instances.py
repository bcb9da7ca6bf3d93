"""Instances of leaves: kernels for values of static parameters, beside the dynamic one (DESIGN section 11).

Values are put into the program before the strategies that are applied at a leaf, and before lowering; what has a
constant extent then stays in registers, and copies and loops have constant bounds.  A leaf's conditions, and which leaf
is chosen, do not change: whoever launches a leaf compares the arguments with an instance's values and checks that it
fits too.

Where the user names no values, those of ``typical_values`` are tried, and kept where the kernel is simpler; the others
are not tried where it is not for the first that a leaf can have.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from msgspec import structs

from metafork.algebra.polynomial import ZERO, Polynomial
from metafork.algebra.symbols import placed
from metafork.analysis.analyses import Analyses
from metafork.comprehensive.case_discussion.measurements import Measurements
from metafork.comprehensive.case_discussion.quintuple import Case
from metafork.comprehensive.case_discussion.typical_values import is_simpler
from metafork.comprehensive.systems.systems import System, Systems
from metafork.comprehensive.tree.schedule_tree import Leaf, ScheduleTree, Variant, numbered, values_text
from metafork.evaluators.counter import CounterOf, CounterValue, NotKnown
from metafork.evaluators.shared_memory import COUNTER as SHARED_MEMORY
from metafork.ir.kernel import Kernel
from metafork.ir.marks import several_results
from metafork.ir.program import Version
from metafork.ir.static_values import StaticValues, with_static_values
from metafork.lowering.lowering import CannotLowerError, lower
from metafork.strategies.strategy import Applied, NotApplied, Strategy
from metafork.transform.directive import then
from metafork.transform.specialize import Specialize

MOST_INSTANCES = 8
"""Most instances of one leaf."""
NOTHING_TYPICAL = "none: no parameter is an extent of the block, or a trip count of thread code; --static names values"
OUT_OF_TIME = "the time limit was reached"
LATE = f"none: {OUT_OF_TIME} before typical values were tried"
CHOSEN = "for typical values with which a leaf is simpler; --static names others, --static none leaves them out"


def all_combinations(static: StaticValues) -> tuple[Mapping[str, int], ...]:
    """Return every combination of values, the last parameter's changing first."""
    return tuple(dict(zip(static, values, strict=True)) for values in product(*static.values()))


@dataclass(frozen=True, slots=True)
class InstanceMaker:
    """Makes the instances of one schedule's leaves.

    ``combinations`` are the values to try, in order; ``typical`` says that nobody asked for them.  ``systems`` and
    ``measured`` are those of its discussion, ``counters`` those that took part in it.  After ``deadline`` (of
    ``time.monotonic``) nothing is begun.
    """

    combinations: Sequence[Mapping[str, int]]
    strategies: Sequence[Strategy]
    counters: Sequence[CounterOf[Version]]
    systems: Systems
    measured: Measurements[Version]
    analyses: Analyses
    deadline: float | None = None
    typical: bool = False

    def with_instances(self, tree: ScheduleTree, cases: Sequence[Case[Version]]) -> ScheduleTree:
        """Return the tree with the instances of its leaves, and notes about the values that have none.

        ``cases`` are those of the leaves, in order.
        """
        leaves: list[Leaf] = []
        notes = list(tree.notes)
        late, any_ = False, False
        for leaf, case in zip(tree.leaves, cases, strict=True):
            said: list[str] = []
            made = self._instances(case, leaf, said)
            leaves.append(structs.replace(leaf, variants=numbered(leaf.kernel, (*made, *leaf.variants))))
            any_ = any_ or bool(made)
            late = late or any(OUT_OF_TIME in sentence for sentence in said)
            if not self.typical:
                notes += [(f"instances of leaf {leaf.id}", sentence) for sentence in said]
        if self.typical:
            first = values_text(self.combinations[0])
            none = f"none: no kernel is simpler for typical values ({first} and others); --static names others"
            notes.append(("instances", CHOSEN if any_ else LATE if late else none))
        return replace(
            tree,
            leaves=tuple(leaves),
            notes=tuple(notes),
            derived=tuple(self.systems.derived),
            complete=tree.complete and not late and not self.systems.late,
        )

    def _instances(self, case: Case[Version], leaf: Leaf, notes: list[str]) -> list[Variant]:
        if case.version.ir_strategies:
            notes.append("none: the kernel is the PTX that LLVM makes of the dynamic one")
            return []
        made: list[Variant] = []
        seen: list[tuple[object, ...]] = []
        left = list(self._possible(case, notes))
        while left and len(made) < MOST_INSTANCES:
            if self._late():
                break
            values = left.pop(0)
            dynamic = self._dynamic(case, leaf, values)
            instance = self._version(case, dynamic, values)
            try:
                lowered = lower(instance.version.program, leaf.kernel, self.analyses)
            except CannotLowerError as reason:
                notes.append(f"none for {values_text(values)}: {reason}")
                continue
            own, other = _without_name(lowered), lower(dynamic.version.program, leaf.kernel, self.analyses)
            tiled, untiled = (bool(several_results(one.program)) for one in (instance.version, dynamic.version))
            worth = not self.typical or tiled > untiled or is_simpler(lowered, other)
            if own in (*seen, _without_name(other)) or not worth:
                notes.append(f"none for {values_text(values)}: the kernel does not depend on them")
                if self.typical and not made:
                    return made  # the other ones are hardly ever simpler then
                continue
            one = self._within_limits(case, instance)
            if isinstance(one, NotKnown):
                notes.append(f"none for {values_text(values)}: {one.reason}")
                continue
            seen.append(own)
            made.append(one)
        if left and len(made) < MOST_INSTANCES:
            notes.append(f"none for {'; '.join(map(values_text, left))}: {OUT_OF_TIME}")
        elif left:
            rest = "; ".join(map(values_text, left))
            notes.append(f"none tried for {rest}: a leaf has at most {MOST_INSTANCES}, the first of the order given")
        return made

    def _dynamic(self, case: Case[Version], leaf: Leaf, values: Mapping[str, int]) -> Variant:
        """Return the variant that would run at some values, on a machine that has what it asks for."""
        return next(one for one in leaf.variants if not one.limits or self._is_chosen(case, values, one.limits))

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _within_limits(self, case: Case[Version], instance: Variant) -> Variant | NotKnown:
        """Return an instance with the values of its counters, and those limits that its leaf and its values leave open.

        It is not known where a counter is not, or where no point of the leaf is within the limits.
        """
        version = self.measured.keep(instance.version)
        values: dict[str, CounterValue] = {}
        limits: System = ()
        for counter in self.counters:
            value = self.measured.value(counter, version)
            reason = value.reason if isinstance(value, NotKnown) else self.measured.outside(value, ())
            if isinstance(value, NotKnown) or reason:
                return NotKnown(reason)
            values[counter.name] = value
            limit = self.measured.condition(counter, value)
            if self._is_chosen(case, instance.values, (*limits, limit.negated())):
                limits = (*limits, limit)
        if limits and not self._is_chosen(case, instance.values, limits):
            texts = " and ".join(limit.text(self.systems.start.order) for limit in limits)
            return NotKnown(f"{texts} holds nowhere where the leaf is chosen with them")
        return structs.replace(instance, counters=values, limits=limits)

    def _is_chosen(self, case: Case[Version], values: Mapping[str, int], limits: System = ()) -> bool:
        """Say whether some point of the leaf has these values, within limits."""
        return any(self.systems.consistent_at(values, (*system, *limits)).kept for system in case.systems)

    def _possible(self, case: Case[Version], notes: list[str]) -> Iterator[dict[str, int]]:
        """Yield the combinations that some point of the leaf has."""
        for values in self.combinations:
            if self._is_chosen(case, values):
                yield dict(values)
            else:
                notes.append(f"none for {values_text(values)}: the leaf is never chosen with them")

    def _version(self, case: Case[Version], dynamic: Variant, values: Mapping[str, int]) -> Variant:
        """Return the version for some values, with the strategies and directives that led to it."""
        begun, fixed = case.unfinished, Specialize(tuple(values.items()))
        version = Version(with_static_values(begun.version.program, values))
        names, schedule = list(begun.applied), then(begun.schedule, (fixed,))
        for strategy in self.strategies:
            if (strategy.at_leaf or strategy.proposes) and not strategy.on_ir and strategy.name not in begun.applied:
                applied = self._applied(strategy, version, values)
                if applied is not None:
                    version = applied.version
                    names.append(strategy.name)
                    schedule = then(schedule, applied.schedule)
        # Where fewer results at a time are in shared memory than there are, the dynamic program takes less of it.
        more = self._shared_memory(version, values) - self._shared_memory(dynamic.version, values)
        if any(coefficient > 0 for coefficient in more.coefficients.values()):
            version = Version(with_static_values(dynamic.version.program, values))
            names, schedule = list(dynamic.strategies), then(dynamic.schedule, (fixed,))
        return Variant(0, "", version, tuple(names), schedule, values=values)

    def _shared_memory(self, version: Version, values: Mapping[str, int]) -> Polynomial:
        value = SHARED_MEMORY.evaluate(version, self.analyses)
        return ZERO if isinstance(value, NotKnown) else placed(value.numerator, value.derived, values)

    def _applied(self, strategy: Strategy | None, version: Version, values: Mapping[str, int]) -> Applied | None:
        """Return what a strategy, or what it has otherwise, makes of a version that pays at these values."""
        while strategy is not None:
            applied = self.analyses.of(strategy.apply, version)
            if isinstance(applied, NotApplied):
                return None
            if self._pays(applied, values):
                return applied
            strategy = applied.otherwise
        return None

    def _pays(self, applied: Applied, values: Mapping[str, int]) -> bool:
        """Say whether no counter is less at these values than is needed, as far as that is a number."""
        for need in applied.needs:
            value = need.counter.evaluate(applied.version, self.analyses)
            if isinstance(value, NotKnown):
                continue
            least = self.analyses.hardware.warp_size if need.least == "warp_size" else need.least
            floor = value.denominator * least
            room = placed(value.numerator - floor, value.derived, values)
            if room.is_constant and room.constant_value() < 0:
                return False
        return True


def _without_name(kernel: Kernel) -> tuple[object, ...]:
    """Return what a thread runs: two kernels that are equal in it are one."""
    return kernel.scalars, kernel.memories, kernel.body, kernel.block, kernel.shared_bytes
