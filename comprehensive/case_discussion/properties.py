"""The properties that a decision tree must have (DESIGN section 6), each proved by Z3 and not taken from the run.

Every function returns ``Check``s: a verdict with its ground.  *Yes* is a proof (a refutation over the reals or over the
integers of the opposite), *no* comes with a counterexample, *unknown* with what was not settled; unknown never counts
as yes.  The solver here is told only the start system and what the tree displays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from msgspec import Struct

from metafork.algebra.polynomial import Constraint
from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import Analyses
from metafork.comprehensive.case_discussion.quintuple import Outcome
from metafork.comprehensive.systems.points import Number
from metafork.comprehensive.systems.solver import PathSolver, as_integers
from metafork.comprehensive.systems.start import Start
from metafork.comprehensive.systems.systems import System
from metafork.comprehensive.tree.schedule_tree import (
    AS_WRITTEN,
    Inconsistent,
    LeafReference,
    Node,
    NoLeaf,
    ScheduleTree,
    Tree,
    leaf_name,
)
from metafork.evaluators.counter import CounterOf, CounterValue
from metafork.strategies.strategy import NotApplied, StrategyOf, V

EFFORT = 4_000_000

End = LeafReference | NoLeaf | Inconsistent
"""What stands at the end of a path of the tree."""


@dataclass(frozen=True, slots=True)
class Check:
    """One property of one tree: what was asked, the verdict, and its ground.

    ``leaves`` are the leaves that it is about; none where it is about the whole tree.  It is ``sampled`` where nothing
    but samples stand behind a yes: then it is tested, not proved.
    """

    name: str
    verdict: Verdict
    ground: str
    counterexample: Mapping[str, Number] | None = field(default=None, compare=False)
    leaves: frozenset[int] = frozenset()
    sampled: bool = False

    @property
    def outcome(self) -> str:
        """One word: proved, tested, refuted or unknown."""
        if self.verdict is Verdict.YES:
            return "tested" if self.sampled else "proved"
        return "refuted" if self.verdict is Verdict.NO else "unknown"


class Region(Struct, frozen=True):
    """A part of Start: a displayed system of a leaf, or one without a leaf (``leaf`` is 0)."""

    name: str
    system: System
    leaf: int = 0


class Subject(Struct, frozen=True):
    """A tree to be judged: ``systems[n - 1]`` are the displayed systems of leaf n, ``facts`` the start system.

    ``facts`` hold the definitions of derived symbols too; ``real`` names the symbols that are not integers, ``names``
    the leaves.
    """

    root: Tree
    systems: tuple[tuple[System, ...], ...]
    facts: tuple[Constraint, ...]
    real: frozenset[str]
    names: tuple[str, ...]

    @staticmethod
    def of_outcome(outcome: Outcome[V], start: Start) -> Subject:
        """Return the subject of a discussion's result."""
        names = tuple(
            leaf_name(number, ", ".join(case.strategies) or AS_WRITTEN) for number, case in enumerate(outcome.cases, 1)
        )
        facts = (*start.constraints, *(c for symbol in outcome.derived for c in symbol.constraints()))
        return Subject(outcome.root, tuple(case.systems for case in outcome.cases), facts, start.real, names)

    @staticmethod
    def of_tree(tree: ScheduleTree) -> Subject:
        """Return the subject of a finished tree."""
        names = tuple(leaf.name for leaf in tree.leaves)
        facts = (*tree.start, *(c for symbol in tree.derived for c in symbol.constraints()))
        real = frozenset(c.limit for c in tree.counters if c.kind == "performance")
        return Subject(tree.root, tuple(leaf.systems for leaf in tree.leaves), facts, real, names)

    def regions(self) -> list[Region]:
        """Return the displayed systems of leaves and the listed regions without a leaf."""
        named = [
            Region(f"{name} system {index}", system, number)
            for number, (name, systems) in enumerate(zip(self.names, self.systems, strict=True), 1)
            for index, system in enumerate(systems, 1)
        ]
        named += [
            Region(f"no-leaf region ({end.reason})", end.system) for _, end in self.ends() if isinstance(end, NoLeaf)
        ]
        return named

    def ends(self) -> Iterator[tuple[System, End]]:
        """Yield every path of the tree with what stands at its end."""

        def below(tree: Tree, path: System) -> Iterator[tuple[System, End]]:
            if isinstance(tree, Node):
                yield from below(tree.accept, (*path, tree.condition))
                yield from below(tree.refuse, (*path, tree.condition.negated()))
            else:
                yield path, tree

        yield from below(self.root, ())


class Judge:
    """Asks Z3 about a subject; ``effort`` bounds each question in Z3's own units."""

    def __init__(self, subject: Subject, effort: int = EFFORT) -> None:
        self._subject = subject
        self._reals = PathSolver(subject.facts, integers=False, real=subject.real, effort=effort)
        self._integers = PathSolver(subject.facts, integers=True, real=subject.real, effort=effort, beside=self._reals)

    def empty(self, system: System, *negated: System) -> Check:
        """Say whether Start, ``system`` and the negations of the systems ``negated`` have no common point."""
        if self._reals.check(system, *negated) == "unsat":
            return Check("empty", Verdict.YES, "no real solution")
        match self._integers.check(system, *negated):
            case "unsat":
                return Check("empty", Verdict.YES, "no integer solution")
            case "sat":
                point = as_integers(self._integers.model(), self._subject.real)
                return Check("empty", Verdict.NO, f"holds at {_shown(point)}", point)
        return Check("empty", Verdict.UNKNOWN, "neither refuted nor satisfied within the effort")

    def has_real_solution(self, system: System) -> Check:
        """Say whether Start and ``system`` have a real solution."""
        match self._reals.check(system):
            case "sat":
                return Check("consistent", Verdict.YES, "a real solution exists")
            case "unsat":
                return Check("consistent", Verdict.NO, "no real solution")
        # An integer point is a real one.
        if self._integers.check(system) == "sat":
            return Check("consistent", Verdict.YES, f"holds at {_shown(self._integers.model())}")
        return Check("consistent", Verdict.UNKNOWN, "no solution found and none excluded")


def consistent(subject: Subject, judge: Judge) -> list[Check]:
    """Constraint soundness: every displayed system has a real solution within Start."""
    return [
        _named(f"{region.name} is consistent", judge.has_real_solution(region.system), region.leaf)
        for region in subject.regions()
        if region.leaf
    ]


def disjoint(subject: Subject, judge: Judge) -> list[Check]:
    """No two regions (leaves' systems and no-leaf regions) share an integer point of Start."""
    checks = []
    for first, second in combinations(subject.regions(), 2):
        name = f"{first.name} and {second.name} are disjoint"
        if any(member.relation != "==" and member.negated() in second.system for member in first.system):
            check = Check(name, Verdict.YES, "a condition of one is the negation of one of the other")
        else:
            check = judge.empty((*first.system, *second.system))
        checks.append(_named(name, check, first.leaf, second.leaf))
    return checks


def covers_start(subject: Subject, judge: Judge) -> list[Check]:
    """The union of all regions is Start: asked at once, and where that is too hard path by path."""
    name = "the leaves and no-leaf regions cover Start"
    whole = judge.empty((), *(region.system for region in subject.regions()))
    if whole.verdict is not Verdict.UNKNOWN:
        return [_named(name, whole)]
    return [_named(f"{name}: {part.name}", part, *part.leaves) for part in _paths_are_displayed(subject, judge)]


def _paths_are_displayed(subject: Subject, judge: Judge) -> Iterator[Check]:
    """Every path that is called inconsistent is empty, and every other lies in a displayed system of its end."""
    for path, end in subject.ends():
        shown = " and ".join(map(str, path)) or "Start"
        match end:
            case Inconsistent():
                yield _named(f"{shown} is empty", judge.empty(path))
            case NoLeaf(system=system):
                yield _named(f"{shown} is displayed", judge.empty(path, system))
            case LeafReference(leaf=leaf):
                answers = [judge.empty(path, system) for system in subject.systems[leaf - 1]]
                best = next((a for a in answers if a.verdict is Verdict.YES), answers[0])
                yield _named(f"{shown} is a system of {subject.names[leaf - 1]}", best, leaf)


def height(tree: Tree) -> int:
    """Return the number of conditions on the longest path."""
    return 1 + max(height(tree.accept), height(tree.refuse)) if isinstance(tree, Node) else 0


def height_bound(tree: Tree, strategies: int, counters: int, ordered: bool = False) -> Check:
    """The height is at most (w + 1)(s + t); the printed Lemma 1 forgets the last run of accept edges.

    An order puts at most one version before those of a path, which makes it (w + 2)(s + t).
    """
    runs = strategies + (2 if ordered else 1)
    found, bound = height(tree), runs * counters
    verdict = Verdict.YES if found <= bound else Verdict.NO
    return Check("height", verdict, f"{found}, and (w + {runs - strategies})(s + t) = {bound}")


def idempotence(
    versions: Iterable[V],
    counters: Sequence[CounterOf[V]],
    strategies: Sequence[StrategyOf[V]],
    analyses: Analyses | None = None,
) -> list[Check]:
    """Applying a strategy to its own result changes no counter, on every version given."""
    checks = []
    analyses = analyses or Analyses()
    for strategy in strategies:
        changed = [
            f"{counter.name} of {version}"
            for version in versions
            for once in [_result(strategy, version, analyses)]
            for twice in [_result(strategy, once, analyses)]
            for counter in counters
            if once != twice and counter.evaluate(once, analyses) != counter.evaluate(twice, analyses)
        ]
        name = f"{strategy.name} is idempotent"
        checks.append(Check(name, Verdict.NO if changed else Verdict.YES, "; ".join(changed) or "no counter changes"))
    return checks


def commuting(
    version: V,
    counters: Sequence[CounterOf[V]],
    strategies: Sequence[StrategyOf[V]],
    analyses: Analyses | None = None,
) -> Check:
    """Any two strategies give the same counters in either order (a premise that the printed Lemma 3 needs)."""
    analyses = analyses or Analyses()
    for first, second in combinations(strategies, 2):
        one = _result(second, _result(first, version, analyses), analyses)
        other = _result(first, _result(second, version, analyses), analyses)
        if one != other:
            for counter in counters:
                if counter.evaluate(one, analyses) != counter.evaluate(other, analyses):
                    ground = f"{counter.name} depends on the order of {first.name} and {second.name}"
                    return Check("strategies commute", Verdict.NO, ground)
    return Check("strategies commute", Verdict.YES, "no counter depends on the order of any two of them")


def optimality(
    counters: Sequence[CounterOf[V]],
    versions: Sequence[V],
    strategies: Sequence[StrategyOf[V]],
    same: Callable[[CounterValue, CounterValue], bool] = lambda one, other: one == other,
    names: Sequence[str] = (),
    analyses: Analyses | None = None,
) -> list[Check]:
    """Definition 2 (iv): each counter has a leaf at which no strategy of its sigma changes it.

    ``versions`` are those of the leaves, in their order; ``names`` what the leaves are called; ``analyses`` those of
    the run that made the tree: they know its hardware.
    """
    checks = []
    analyses = analyses or Analyses()
    shown = dict(enumerate(names or [f"leaf {number}" for number in range(1, len(versions) + 1)], 1))
    for counter in counters:
        improving = [strategy for strategy in strategies if counter.name in strategy.improves]
        left: dict[int, list[str]] = {}
        for number, version in enumerate(versions, 1):
            here = counter.evaluate(version, analyses)
            left[number] = []
            for strategy in improving:
                there = counter.evaluate(_result(strategy, version, analyses), analyses)
                if isinstance(here, CounterValue) and isinstance(there, CounterValue) and same(here, there):
                    continue
                left[number].append(strategy.name)
        optimal = next((number for number, those in left.items() if not those), None)
        if optimal is not None:
            checks.append(Check(f"{counter.name} is optimal", Verdict.YES, f"at {shown[optimal]}"))
        else:
            ground = "; ".join(f"{shown[n]}: {', '.join(those)} may change it" for n, those in left.items())
            checks.append(Check(f"{counter.name} is optimal", Verdict.NO, ground or "there is no leaf"))
    return checks


def _result(strategy: StrategyOf[V], version: V, analyses: Analyses) -> V:
    applied = strategy.apply(version, analyses)
    return version if isinstance(applied, NotApplied) else applied.version


def _named(name: str, check: Check, *leaves: int) -> Check:
    return Check(name, check.verdict, check.ground, check.counterexample, frozenset(leaves) - {0})


def _shown(point: Mapping[str, object] | None) -> str:
    return "an irrational point" if point is None else ", ".join(f"{name} = {v}" for name, v in sorted(point.items()))
