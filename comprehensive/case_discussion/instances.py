"""Instances of leaves: kernels for values of static parameters, beside the dynamic one (DESIGN section 11).

Values are put into the program before the strategies that are applied at a leaf, and before lowering; what has a
constant extent then stays in registers, and copies and loops have constant bounds.  A leaf's conditions, and which leaf
is chosen, do not change: whoever launches a leaf compares the arguments with an instance's values and checks that it
fits too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from comprehensive.case_discussion.quintuple import Case
from comprehensive.systems.systems import Systems
from comprehensive.tree.schedule_tree import Instance, Leaf, ScheduleTree, values_text
from metafork.algebra.polynomial import Polynomial, equal
from metafork.analysis.analyses import Analyses
from metafork.ir.kernel import Kernel
from metafork.ir.program import Version
from metafork.ir.static_values import StaticValues, with_static_values
from metafork.lazy_dataclass import dataclass
from metafork.lowering.lowering import CannotLowerError, lower
from strategies.strategy import Applied, Strategy

MOST_INSTANCES = 8
"""Most instances of one leaf."""


@dataclass(frozen=True, slots=True)
class InstanceMaker:
    """Makes the instances of one schedule's leaves.

    ``systems`` are those of its discussion; after ``deadline`` (of ``time.monotonic``) nothing is begun.
    """

    static: StaticValues
    strategies: Sequence[Strategy]
    systems: Systems
    analyses: Analyses
    deadline: float | None = None

    def with_instances(self, tree: ScheduleTree, cases: Sequence[Case[Version]]) -> ScheduleTree:
        """Return the tree with the instances of its leaves, and notes about the values that have none.

        ``cases`` are those of the leaves, in order.
        """
        leaves: list[Leaf] = []
        notes = list(tree.notes)
        for leaf, case in zip(tree.leaves, cases, strict=True):
            said: list[str] = []
            leaves.append(replace(leaf, instances=self._instances(case, leaf.kernel, said)))
            notes += [(f"instances of leaf {leaf.id}", sentence) for sentence in said]
        return replace(tree, leaves=tuple(leaves), notes=tuple(notes))

    def _instances(self, case: Case[Version], kernel: str, notes: list[str]) -> tuple[Instance, ...]:
        if case.version.ir_strategies:
            notes.append("none: the kernel is the PTX that LLVM makes of the dynamic one")
            return ()
        made: list[Instance] = []
        seen = [_without_name(lower(case.version.program, kernel, self.analyses))]
        left = list(self._possible(case, notes))
        while left and len(made) < MOST_INSTANCES:
            if self.deadline is not None and time.monotonic() > self.deadline:
                notes.append(f"none for {'; '.join(map(values_text, left))}: the time limit was reached")
                return tuple(made)
            values = left.pop(0)
            version = self._version(case, values)
            try:
                own = _without_name(lower(version.program, kernel, self.analyses))
            except CannotLowerError as reason:
                notes.append(f"none for {values_text(values)}: {reason}")
                continue
            if own in seen:
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
        """Yield the combinations that some point of the leaf has, the last parameter's values changing first."""
        for combination in product(*self.static.values()):
            values = dict(zip(self.static, combination, strict=True))
            *most, last = (equal(Polynomial.symbol(name), Polynomial.constant(v)) for name, v in values.items())
            if any(self.systems.consistent((*system, *most), last).kept for system in case.systems):
                yield values
            else:
                notes.append(f"none for {values_text(values)}: the leaf is never chosen with them")

    def _version(self, case: Case[Version], values: Mapping[str, int]) -> Version:
        version = Version(with_static_values(case.unfinished.program, values))
        for strategy in self.strategies:
            if strategy.at_leaf and not strategy.on_ir and strategy.name not in case.strategies[: case.decided]:
                applied = strategy.apply(version, self.analyses)
                if isinstance(applied, Applied):
                    version = applied.version
        return version


def _without_name(kernel: Kernel) -> tuple[object, ...]:
    """Return what a thread runs: two kernels that are equal in it are one."""
    return kernel.scalars, kernel.memories, kernel.body, kernel.block, kernel.shared_bytes
