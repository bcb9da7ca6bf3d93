"""Instances of leaves: kernels for values of static parameters, beside the dynamic one (DESIGN section 11).

Values are put into the program before the strategies that are applied at a leaf, and before lowering; what has a
constant extent then stays in registers, and copies and loops have constant bounds.  A leaf's conditions, and which leaf
is chosen, do not change: whoever launches a leaf compares the arguments with an instance's values and checks that it
fits too.

Where the user names no values, those of ``typical_values`` are tried, and kept where the kernel is simpler.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product, repeat

from msgspec import Struct, structs

from comprehensive.case_discussion.instance_registers import RegisterCount, Registers, derived_at, placed
from comprehensive.case_discussion.quintuple import Case, CounterOf
from comprehensive.case_discussion.typical_values import is_simpler
from comprehensive.signals import OutOfTimeError, until
from comprehensive.systems.systems import System, Systems
from comprehensive.tree.schedule_tree import Instance, Leaf, ScheduleTree, values_text
from evaluators.counter import NotKnown
from evaluators.shared_memory import COUNTER as SHARED_MEMORY
from metafork.algebra.polynomial import ZERO, Polynomial
from metafork.analysis.analyses import Analyses
from metafork.ir.kernel import Kernel
from metafork.ir.program import Version
from metafork.ir.static_values import StaticValues, with_static_values
from metafork.lowering.lowering import CannotLowerError, lower
from strategies.strategy import Applied, Strategy, by_itself, floors, least

MOST_INSTANCES = 8
"""Most instances of one leaf."""
NOTHING_TYPICAL = "none: no parameter is an extent of the block, or a trip count of thread code; --static names values"
OUT_OF_TIME = "the time limit was reached"
LATE = f"none: {OUT_OF_TIME} before typical values were tried"
CHOSEN = "for typical values with which a leaf is simpler; --static names others, --static none leaves them out"


def all_combinations(static: StaticValues) -> tuple[Mapping[str, int], ...]:
    """Return every combination of values, the last parameter's changing first."""
    return tuple(dict(zip(static, values, strict=True)) for values in product(*static.values()))


class _Counted(Struct, frozen=True):
    """An instance to be: ``registers`` are ``None`` where the tree does not count them."""

    values: Mapping[str, int]
    version: Version
    registers: Registers | None


@dataclass(frozen=True, slots=True)
class InstanceMaker:
    """Makes the instances of one schedule's leaves.

    ``combinations`` are the values to try, in order; ``typical`` says that nobody asked for them.  ``systems`` are
    those of its discussion, ``counters`` those that took part in it.  After ``deadline`` (of ``time.monotonic``)
    nothing is begun.
    """

    combinations: Sequence[Mapping[str, int]]
    strategies: Sequence[Strategy]
    systems: Systems
    analyses: Analyses
    deadline: float | None = None
    typical: bool = False
    counters: Sequence[CounterOf[Version]] = ()

    def with_instances(self, tree: ScheduleTree, cases: Sequence[Case[Version]]) -> ScheduleTree:
        """Return the tree with the instances of its leaves, and notes about the values that have none.

        ``cases`` are those of the leaves, in order.
        """
        leaves: list[Leaf] = []
        notes = list(tree.notes)
        late = False
        count = RegisterCount.of(self.systems.start, self.analyses, self.systems.derived, self.counters, cases)
        for leaf, case in zip(tree.leaves, cases, strict=True):
            said: list[str] = []
            leaves.append(structs.replace(leaf, instances=self._instances(case, leaf.kernel, count, said)))
            late = late or any(OUT_OF_TIME in sentence for sentence in said)
            if not self.typical:
                notes += [(f"instances of leaf {leaf.id}", sentence) for sentence in said]
        if self.typical:
            tried = "; ".join(map(values_text, self.combinations))
            none = f"none: for typical values ({tried}) no kernel that a machine runs is simpler; --static names others"
            notes.append(("instances", CHOSEN if any(leaf.instances for leaf in leaves) else LATE if late else none))
        return replace(tree, leaves=tuple(leaves), notes=tuple(notes), complete=tree.complete and not late)

    def _instances(
        self, case: Case[Version], kernel: str, count: RegisterCount, notes: list[str]
    ) -> tuple[Instance, ...]:
        if case.version.ir_strategies:
            notes.append("none: the kernel is the PTX that LLVM makes of the dynamic one")
            return ()
        made: list[_Counted] = []
        dynamic = lower(case.version.program, kernel, self.analyses)
        seen = [_without_name(dynamic)]
        left = list(self._possible(case, notes))
        while left and len(made) < MOST_INSTANCES:
            if self._late():
                break
            values = left.pop(0)
            version = self._version(case, values)
            try:
                lowered = lower(version.program, kernel, self.analyses)
            except CannotLowerError as reason:
                notes.append(f"none for {values_text(values)}: {reason}")
                continue
            own = _without_name(lowered)
            if own in seen or (self.typical and not is_simpler(lowered, dynamic)):
                notes.append(f"none for {values_text(values)}: the kernel does not depend on them")
                continue
            one = self._counted(case, values, version, count)
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
        return tuple(self._with_conditions(case, kernel, made, count))

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _counted(
        self, case: Case[Version], values: Mapping[str, int], version: Version, count: RegisterCount
    ) -> _Counted | NotKnown:
        """Return an instance with its registers, or why there is none: they are not known, or never there."""
        if not count.wanted:
            return _Counted(values, version, None)
        own: Registers | NotKnown = NotKnown(OUT_OF_TIME)
        with suppress(OutOfTimeError), until(self.deadline):
            own = count.of_instance(version, values)
        if isinstance(own, NotKnown):
            return own
        (system,) = count.conditions([(values, own)])[-1]
        if not self._runs(case, values, system):
            return NotKnown(f"{own.per_thread} registers a thread are not there where the leaf is chosen with them")
        return _Counted(values, version, own)

    def _with_conditions(
        self, case: Case[Version], kernel: str, made: Sequence[_Counted], count: RegisterCount
    ) -> Iterator[Instance]:
        counted = [(one.values, one.registers) for one in made if one.registers is not None]
        conditions = count.conditions(counted) if counted else [((),) * len(made)]
        numbers = conditions[-1]
        systems = next(
            systems
            for systems in conditions
            if systems is numbers or all(map(self._still_runs, repeat(case), made, systems, numbers))
        )
        for number, (one, system) in enumerate(zip(made, systems, strict=True), 1):
            values = {} if one.registers is None else count.values(one.registers)
            yield Instance(number, one.values, one.version, f"{kernel}_instance{number}", values, system)

    def _still_runs(self, case: Case[Version], one: _Counted, system: System, numbers: System) -> bool:
        """Say whether an instance runs somewhere under conditions that may ask for more registers than it takes."""
        at = derived_at(self.systems.derived, one.values)
        if [each.substitute(at) for each in system] == [each.substitute(at) for each in numbers]:
            return True
        return self._runs(case, one.values, system)

    def _runs(self, case: Case[Version], values: Mapping[str, int], system: System) -> bool:
        """Say whether some point of the leaf with these values satisfies a system."""
        return any(self.systems.consistent_at(values, (*own, *system)).kept for own in case.systems)

    def _possible(self, case: Case[Version], notes: list[str]) -> Iterator[dict[str, int]]:
        """Yield the combinations that some point of the leaf has."""
        for values in self.combinations:
            if any(self.systems.consistent_at(values, system).kept for system in case.systems):
                yield dict(values)
            else:
                notes.append(f"none for {values_text(values)}: the leaf is never chosen with them")

    def _version(self, case: Case[Version], values: Mapping[str, int]) -> Version:
        version = Version(with_static_values(case.unfinished.program, values))
        for strategy in self.strategies:
            # What splits leaves by itself costs what an instance has no more of than its leaf: shared memory.
            left_out = by_itself(strategy) and strategy.name not in case.strategies
            decided = left_out or strategy.name in case.strategies[: case.decided]
            if strategy.at_leaf and not strategy.on_ir and not decided:
                applied = self.analyses.of(strategy.apply, version)
                if isinstance(applied, Applied) and self._pays(strategy, applied.version, values):
                    version = applied.version
        # Where fewer results at a time are in shared memory than there are, the leaf's own program takes less of it.
        more = self._shared_memory(version, values) - self._shared_memory(case.version, values)
        if any(coefficient > 0 for coefficient in more.coefficients.values()):
            return Version(with_static_values(case.version.program, values))
        return version

    def _shared_memory(self, version: Version, values: Mapping[str, int]) -> Polynomial:
        value = SHARED_MEMORY.evaluate(version, self.analyses)
        return ZERO if isinstance(value, NotKnown) else placed(value.numerator, value.derived, values)

    def _pays(self, strategy: Strategy, version: Version, values: Mapping[str, int]) -> bool:
        """Say whether no counter is less at these values than a strategy asks for, as far as that is a number."""
        numbers = least(strategy)
        asked = [(one, numbers[one.name]) for one in self.counters if one.name in numbers]
        asked += [(one, 1) for one in floors(strategy)]
        for counter, number in asked:
            value = counter.evaluate(version, self.analyses)
            if isinstance(value, NotKnown):
                continue
            floor = value.denominator * (self.analyses.hardware.warp_size if number == "warp_size" else number)
            room = placed(value.numerator - floor, value.derived, values)
            if room.is_constant and room.constant_value() < 0:
                return False
        return True


def _without_name(kernel: Kernel) -> tuple[object, ...]:
    """Return what a thread runs: two kernels that are equal in it are one."""
    return kernel.scalars, kernel.memories, kernel.body, kernel.block, kernel.shared_bytes
