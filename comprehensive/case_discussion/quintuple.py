"""Quintuples (section 3.6 of the paper), and what they become.

The discussion knows nothing of programs: a version is anything hashable that counters measure and strategies transform
(``evaluators.counter.CounterOf``, ``strategies.strategy.StrategyOf``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol

from msgspec import Struct

from metafork.algebra.symbols import DerivedSymbol
from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.systems.systems import System
from metafork.comprehensive.tree.schedule_tree import Statistics, Tree
from metafork.evaluators.counter import CounterOf, CounterValue, V_contra
from metafork.strategies.strategy import Effect, StrategyOf, V
from metafork.transform.directive import Schedule


class Precedence(Struct, frozen=True):
    """Whether a version goes before others where all of them are possible, and why, or why not."""

    first: bool
    reason: str


class OrderOf(Protocol[V_contra]):
    """Which of several versions goes first; what is not decided leaves them as the algorithm has them."""

    def precedence(self, version: V_contra, others: Sequence[V_contra]) -> Precedence:
        """Say whether a version goes before all others."""
        ...


class Step(Struct, frozen=True):
    """One decision on a path: a counter accepted, or refused and the strategy then applied."""

    counter: str
    strategy: str | None


@dataclass(frozen=True, slots=True)
class Quintuple(Generic[V]):
    """Q(S) of section 3.6: G_C and lambda are ``version``, then omega, gamma and C (on top of Start).

    ``applied`` are the strategies applied so far, ``schedule`` their directives, ``effects`` what they did, and
    ``steps`` the decisions, for people;
    ``point`` is a known integer solution of the system, where there is one.  ``otherwise`` is what takes the place of a
    version that an order has put first, where one of its counters is refused; ``ordered`` says that no other is to be
    put before this one any more.
    """

    version: V
    remaining: tuple[StrategyOf[V], ...]
    counters: tuple[CounterOf[V], ...]
    system: System = ()
    applied: tuple[str, ...] = ()
    schedule: Schedule | None = ()
    effects: tuple[Effect, ...] = ()
    steps: tuple[Step, ...] = ()
    point: Mapping[str, Number] | None = field(default=None, compare=False)
    otherwise: Quintuple[V] | None = None
    ordered: bool = False

    @property
    def refusals(self) -> int:
        """How many refuse edges lead here."""
        return sum(step.strategy is not None for step in self.steps)


@dataclass(frozen=True, slots=True)
class Proposal(Generic[V]):
    """A version that costs more than that of its leaf, and goes before it where ``limits`` hold."""

    version: V
    strategies: tuple[str, ...]
    schedule: Schedule | None
    effects: tuple[Effect, ...]
    counters: Mapping[str, CounterValue] = field(compare=False)
    limits: System


@dataclass(frozen=True, slots=True)
class Case(Generic[V]):
    """A leaf of the discussion: a version, the systems under which it is chosen, and how it came about.

    ``unfinished`` is the end of the path before the strategies that are applied at a leaf.  ``proposals`` go before the
    version, in their order.
    """

    version: V
    unfinished: Quintuple[V]
    systems: tuple[System, ...]
    paths: tuple[System, ...]
    strategies: tuple[str, ...]
    schedule: Schedule | None
    effects: tuple[Effect, ...]
    steps: tuple[Step, ...]
    refusals: int
    counters: Mapping[str, CounterValue] = field(compare=False)
    witness: Mapping[str, Number] | None = field(compare=False)
    proposals: tuple[Proposal[V], ...] = ()


class Outcome(Struct, Generic[V], frozen=True):
    """The result of a discussion; leaf n of the tree is ``cases[n - 1]``."""

    root: Tree
    cases: tuple[Case[V], ...]
    counters: tuple[CounterOf[V], ...]
    derived: tuple[DerivedSymbol, ...]
    notes: tuple[tuple[str, str], ...]
    complete: bool
    statistics: Statistics
