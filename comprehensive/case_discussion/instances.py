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
from dataclasses import replace
from itertools import product

from comprehensive.case_discussion.quintuple import Case
from comprehensive.case_discussion.typical_values import is_simpler
from comprehensive.systems.systems import Systems
from comprehensive.tree.schedule_tree import Instance, Leaf, ScheduleTree, values_text
from metafork.analysis.analyses import Analyses
from metafork.ir.kernel import Kernel
from metafork.ir.program import Version
from metafork.ir.static_values import StaticValues, with_static_values
from metafork.lazy_dataclass import dataclass
from metafork.lowering.lowering import CannotLowerError, lower
from strategies.strategy import Applied, Strategy, by_itself

MOST_INSTANCES = 8
"""Most instances of one leaf."""
NOTHING_TYPICAL = "none: no parameter is an extent of the block, or a trip count of thread code; --static names values"
CHOSEN = "for typical values with which a leaf is simpler; --static names others, --static none leaves them out"


def all_combinations(static: StaticValues) -> tuple[Mapping[str, int], ...]:
    """Return every combination of values, the last parameter's changing first."""
    return tuple(dict(zip(static, values, strict=True)) for values in product(*static.values()))


@dataclass(frozen=True, slots=True)
class InstanceMaker:
    """Makes the instances of one schedule's leaves.

    ``combinations`` are the values to try, in order; ``typical`` says that nobody asked for them.  ``systems`` are
    those of its discussion; after ``deadline`` (of ``time.monotonic``) nothing is begun.
    """

    combinations: Sequence[Mapping[str, int]]
    strategies: Sequence[Strategy]
    systems: Systems
    analyses: Analyses
    deadline: float | None = None
    typical: bool = False

    def with_instances(self, tree: ScheduleTree, cases: Sequence[Case[Version]]) -> ScheduleTree:
        """Return the tree with the instances of its leaves, and notes about the values that have none.

        ``cases`` are those of the leaves, in order.
        """
        leaves: list[Leaf] = []
        notes = list(tree.notes)
        for leaf, case in zip(tree.leaves, cases, strict=True):
            said: list[str] = []
            wanted = not self.typical or leaf.id not in tree.for_no_machine
            leaves.append(replace(leaf, instances=self._instances(case, leaf.kernel, said) if wanted else ()))
            if not self.typical:
                notes += [(f"instances of leaf {leaf.id}", sentence) for sentence in said]
        if self.typical:
            tried = "; ".join(map(values_text, self.combinations))
            none = f"none: for typical values ({tried}) no kernel is simpler; --static names others"
            notes.append(("instances", CHOSEN if any(leaf.instances for leaf in leaves) else none))
        return replace(tree, leaves=tuple(leaves), notes=tuple(notes))

    def _instances(self, case: Case[Version], kernel: str, notes: list[str]) -> tuple[Instance, ...]:
        if case.version.ir_strategies:
            notes.append("none: the kernel is the PTX that LLVM makes of the dynamic one")
            return ()
        made: list[Instance] = []
        dynamic = lower(case.version.program, kernel, self.analyses)
        seen = [_without_name(dynamic)]
        left = list(self._possible(case, notes))
        while left and len(made) < MOST_INSTANCES:
            if self.deadline is not None and time.monotonic() > self.deadline:
                notes.append(f"none for {'; '.join(map(values_text, left))}: the time limit was reached")
                return tuple(made)
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
            seen.append(own)
            number = len(made) + 1
            made.append(Instance(number, values, version, f"{kernel}_instance{number}"))
        if left:
            rest = "; ".join(map(values_text, left))
            notes.append(f"none tried for {rest}: a leaf has at most {MOST_INSTANCES}, the first of the order given")
        return tuple(made)

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
                applied = strategy.apply(version, self.analyses)
                if isinstance(applied, Applied):
                    version = applied.version
        return version


def _without_name(kernel: Kernel) -> tuple[object, ...]:
    """Return what a thread runs: two kernels that are equal in it are one."""
    return kernel.scalars, kernel.memories, kernel.body, kernel.block, kernel.shared_bytes
