"""Counters and strategies made for tests: a version is the tuple of the names of the strategies applied to it."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.comprehensive.systems.start import Start
from metafork.comprehensive.tree.document import (
    LeafDocument,
    ScheduleDocument,
    TreeDocument,
    VariantDocument,
    displayed_start,
)
from metafork.comprehensive.tree.schedule_tree import CounterInfo
from metafork.evaluators.counter import CounterValue, NotKnown
from metafork.strategies.strategy import Effect, Need, NotApplied

Version = tuple[str, ...]


def symbol(name):
    return Polynomial.symbol(name)


@dataclass(frozen=True)
class MadeCounter:
    name: str
    symbol: str
    value: Callable[[Version], CounterValue | NotKnown | Polynomial | int]
    kind: str = "resource"
    less_is_better: bool = True
    default_target: Fraction | None = None

    def evaluate(self, version, analyses=None):
        value = self.value(version)
        if isinstance(value, int):
            value = Polynomial.constant(value)
        return CounterValue(value) if isinstance(value, Polynomial) else value


@dataclass(frozen=True)
class Result:
    version: Version
    note: str = "made up"
    effect: Effect | None = None
    needs: tuple[Need, ...] = ()
    otherwise: None = None
    schedule: None = None


@dataclass(frozen=True)
class MadeStrategy:
    name: str
    improves: frozenset[str]
    on_ir: bool = False
    at_leaf: bool = False
    proposes: bool = False
    needs: tuple[Need, ...] = ()
    by_choice: bool = False
    refuses: Callable[[Version], str | None] = lambda version: None

    def apply(self, version, analyses=None):
        reason = self.refuses(version)
        if reason:
            return NotApplied(reason)
        return Result(version) if self.name in version else Result((*version, self.name), needs=self.needs)


def start(program=("s", "B"), data=("N",), machine=("R", "Z"), targets=(), ratios=(), more=(), fixed=None, derived=()):
    fixed = fixed or {}
    names = [*machine, *targets]
    constraints = [at_most(1, symbol(p)) for p in program] + [at_most(0, symbol(p)) for p in data]
    constraints += [at_most(0, symbol(m)) for m in names if m not in fixed]
    constraints += [at_most(symbol(p), 1) for p in ratios if p not in fixed]
    for one in derived:
        constraints += one.constraints()
    return Start(
        data=tuple(data),
        program=tuple(program),
        machine={name: name for name in names},
        constraints=(*constraints, *more),
        canonical={name: name for name in names},
        derived=tuple(derived),
        targets=frozenset(targets),
        fixed=fixed,
    )


def jacobi():
    """The counters and strategies of the paper's Figure 7, with its register numbers."""
    s, b = symbol("s"), symbol("B")

    def words(version):
        if "caching" in version:
            return 0
        return 2 * b + 2 if "granularity" in version else 2 * s * b + 2

    counters = [
        MadeCounter("registers_per_thread", "R", lambda version: 9),
        MadeCounter("shared_memory", "Z", words),
    ]
    both = frozenset({"registers_per_thread", "shared_memory"})
    registers = frozenset({"registers_per_thread"})
    strategies = [
        MadeStrategy("cse1", registers, at_leaf=True),
        MadeStrategy("cse2", registers, at_leaf=True),
        MadeStrategy("granularity", both),
        MadeStrategy("caching", frozenset({"shared_memory"})),
    ]
    return counters, strategies


def document(begin, outcome, strategies, source="made.mf"):
    """The outcome of a discussion as a document of one schedule."""
    schedule = ScheduleDocument(
        name="made",
        function="f",
        line=1,
        data=begin.data,
        program=begin.program,
        machine=begin.unknown_machine,
        fields={symbol: name for name, symbol in begin.machine.items()},
        derived=outcome.derived,
        start=displayed_start(begin.constraints, outcome.derived),
        counters=tuple(
            CounterInfo(c.name, c.kind, c.symbol, c.less_is_better, c.default_target) for c in outcome.counters
        ),
        strategies=tuple(strategy.name for strategy in strategies),
        root=outcome.root,
        leaves=tuple(
            LeafDocument(
                number,
                case.systems,
                (),
                (VariantDocument(1, f"made_leaf{number}", case.strategies, None, case.counters),),
                case.witness,
            )
            for number, case in enumerate(outcome.cases, 1)
        ),
        fixed=begin.fixed,
        complete=outcome.complete,
    )
    return TreeDocument(source, (schedule,))
