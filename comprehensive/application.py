"""Strategies applied one after the other, outside of a case discussion: for ``metafork apply`` and tests as text."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from metafork.analysis.analyses import Analyses
from metafork.ir.invariants import check_program, checking
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.program import Program, Version
from metafork.strategies.caching import with_cached_arrays
from metafork.strategies.strategy import NotApplied, Strategy


class Step(Struct, frozen=True):
    """What one strategy did; ``span`` is where the program is at fault that it did not apply to."""

    sentence: str
    span: Span = NOWHERE


class Application(Struct, frozen=True):
    """The version in the end, and the steps to it, one for each strategy in their order."""

    version: Version
    steps: tuple[Step, ...]


def applied(program: Program, strategies: Sequence[Strategy], analyses: Analyses | None = None) -> Application:
    """Apply strategies to a program, in this order, each to the result of those before it that applied.

    The start is that of the case discussion: the arrays that go through shared memory are chosen first.
    """
    analyses = analyses or Analyses()
    version = Version(with_cached_arrays(program, analyses).program)
    if checking():
        check_program(version.program)
        from metafork.strategies.checked import checked

        strategies = [checked(strategy) for strategy in strategies]
    steps: list[Step] = []
    for strategy in strategies:
        result = strategy.apply(version, analyses)
        if isinstance(result, NotApplied):
            steps.append(Step(f"{strategy.name} does not apply: {result.reason}", result.span))
        elif result.version == version:
            steps.append(Step(f"{strategy.name} does not apply: it changes nothing"))
        else:
            version = result.version
            steps.append(Step(f"{strategy.name}: {result.note}"))
    return Application(version, tuple(steps))
