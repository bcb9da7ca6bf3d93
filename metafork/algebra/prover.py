"""Three-valued proofs about polynomial constraints over non-negative integers.

``Prover(premises).proves(goal)`` first looks for a certificate by signs (``metafork.algebra.positivity``).  A goal that
fails at one of a few sample points is refuted.  What that does not settle goes to Z3, over the reals first (a proof
there holds over the integers too), then over the integers for a counterexample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from random import Random
from typing import Any, TypeAlias

from msgspec import Struct, field

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.positivity import Positivity, rooms
from metafork.algebra.ranges import Box, Counted, stays_within
from metafork.algebra.symbols import DerivedSymbol


class Verdict(Enum):
    """The outcome of a proof attempt; UNKNOWN never counts as YES."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Proof(Struct, frozen=True):
    """A verdict with its ground: the counterexample of a NO, the reason of an UNKNOWN."""

    verdict: Verdict
    counterexample: Mapping[str, int] | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        """Whether the goal is proved."""
        return self.verdict is Verdict.YES


PROVED = Proof(Verdict.YES)

Counters: TypeAlias = tuple[tuple[str, Polynomial | None], ...]
"""Symbols, and how many values they take."""

INTEGER_SEARCH = 6
"""Largest value that the search for an integer counterexample gives a symbol."""

EFFORT = 400_000
"""Z3's ``rlimit`` of one question: a hundred milliseconds or so, and the same on every machine."""

BACKSTOP_MS = 60_000
"""The time that no question outlasts; the effort ends it long before, on slow machines too."""


class Prover:
    """Proves polynomial constraints from premises in which every symbol is a non-negative integer.

    ``quotients`` are the derived symbols that the premises define; ``effort`` bounds each question in Z3's own units;
    ``answers`` are those that Z3 has given already, to other provers too; ``points`` are some that satisfy the
    premises, looked for where none are given.
    """

    def __init__(
        self,
        premises: Iterable[Constraint],
        quotients: Iterable[DerivedSymbol] = (),
        effort: int = EFFORT,
        answers: Answers | None = None,
        points: Sequence[Mapping[str, int]] | None = None,
    ) -> None:
        self.premises = tuple(dict.fromkeys(premises))
        self.quotients = tuple(quotients)
        self.effort = effort
        self._answers = Answers() if answers is None else answers
        self._cache: dict[Constraint, Proof] = {}
        self._shown: dict[Constraint, bool] = {}
        self._positivity = Positivity(self.premises, self.quotients)
        self._rooms: list[Polynomial] | None = None
        self._points = points
        self._within: dict[tuple[Polynomial, Polynomial, Counters], tuple[bool, bool]] = {}

    def proves(self, goal: Constraint | Iterable[Constraint]) -> Proof:
        """Say whether the goal (a constraint, or a conjunction of them) follows from the premises."""
        if not isinstance(goal, Constraint):
            for part in goal:
                proof = self.proves(part)
                if not proof:
                    return proof
            return PROVED
        if goal not in self._cache:
            self._cache[goal] = self._proof(goal)
        return self._cache[goal]

    def certifies(self, goal: Constraint) -> bool:
        """Say whether a certificate by signs shows the goal; much cheaper than ``proves``, and weaker."""
        return self._certified(goal)

    def derives(self, goal: Constraint) -> bool:
        """Say whether a certificate by signs shows the goal, or premises that are added up do; no solver is asked."""
        return self._certified(goal) or self._chained(goal)

    def derives_within(self, value: Polynomial, extent: Polynomial, counters: Sequence[Counted]) -> tuple[bool, bool]:
        """Say whether ``0 <= value`` and ``value < extent`` are derived for all values of the counters.

        Versions of a program share most of their copies, and with them these questions.
        """
        question = (value, extent, tuple((counter.var, counter.trips) for counter in counters))
        if question not in self._within:
            self._within[question] = stays_within(value, extent, counters, self, self.derives)
        return self._within[question]

    def shows(self, goal: Constraint | Iterable[Constraint]) -> bool:
        """Say whether the goal is proved; for what is not, no counterexample is looked for."""
        if not isinstance(goal, Constraint):
            return all(map(self.shows, goal))
        if goal not in self._shown:
            if goal.relation == "==":
                self._shown[goal] = self.shows((at_most(goal.left, goal.right), at_most(goal.right, goal.left)))
            else:
                self._shown[goal] = self._certified(goal) or (
                    self._failing_sample(goal) is None and (self._chained(goal) or self._refuted(goal))
                )
        return self._shown[goal]

    def with_premises(
        self,
        more: Iterable[Constraint],
        quotients: Iterable[DerivedSymbol] = (),
        points: Sequence[Mapping[str, int]] | None = None,
    ) -> Prover:
        """Return a prover with further premises, which may define further quotients."""
        return Prover((*self.premises, *more), (*self.quotients, *quotients), self.effort, self._answers, points)

    def consistent(self) -> bool | None:
        """Say whether the premises have a solution; ``None`` where that is not known."""
        proof = self.proves(Constraint(Polynomial.constant(1), "<=", Polynomial()))
        return {Verdict.YES: False, Verdict.NO: True, Verdict.UNKNOWN: None}[proof.verdict]

    def sign(self, value: Polynomial) -> int | None:
        """Return 1 or -1 where ``value >= 0`` or ``value <= 0`` is proved (0 where it is zero), else ``None``."""
        if not value:
            return 0
        if self.proves(at_most(0, value)):
            return 1
        return -1 if self.proves(at_most(value, 0)) else None

    def _proof(self, goal: Constraint) -> Proof:
        if self._certified(goal):
            return PROVED
        if goal.relation == "==":
            both = (at_most(goal.left, goal.right), at_most(goal.right, goal.left))
            return self.proves(both)
        point = self._failing_sample(goal)
        if point is not None:
            return Proof(Verdict.NO, point)
        return self._by_solver(goal)

    def _failing_sample(self, goal: Constraint) -> dict[str, int] | None:
        """Return a sample point of the premises at which the goal does not hold, if there is one."""
        if self._points is None:
            self._points = self._answers.samples(self.premises, self.quotients)
        for point in self._points:
            full = {**dict.fromkeys(goal.symbols, 0), **point}
            if not goal.holds(full):
                return full
        return None

    def _certified(self, goal: Constraint) -> bool:
        """Look for a proof of ``goal`` by signs of coefficients after substitution."""
        slack = goal.right - goal.left
        match goal.relation:
            case "==":
                return not slack
            case "<":
                # over the integers, 0 < slack is 0 <= slack - 1
                return slack.whole and self._positivity.non_negative(slack - 1)
            case "<=":
                return self._positivity.non_negative(slack)

    def _by_solver(self, goal: Constraint) -> Proof:
        if self._chained(goal):
            return PROVED
        if self._refuted(goal):
            return PROVED
        point = self._answers.counterexample(self.premises, goal, self.effort)
        if point is not None:
            return Proof(Verdict.NO, point)
        return Proof(Verdict.UNKNOWN, None, f"neither proved nor refuted: {goal}")

    def _refuted(self, goal: Constraint) -> bool:
        return self._answers.refuted_over_reals(self._relevant(goal), goal, self.effort)

    def _chained(self, goal: Constraint) -> bool:
        """Look for a proof by premises that are added up, which takes far less than to load Z3."""
        if self._rooms is None:
            self._rooms = rooms(self.premises)
        slack = goal.right - goal.left
        if goal.relation == "<":
            return slack.whole and self._positivity.follows_from(slack - 1, self._rooms)
        return goal.relation == "<=" and self._positivity.follows_from(slack, self._rooms)

    def _relevant(self, goal: Constraint) -> tuple[Constraint, ...]:
        """Return the premises connected with the goal through shared symbols."""
        if not goal.symbols:
            return self.premises  # it asks whether they contradict each other
        reached = set(goal.symbols)
        chosen: list[Constraint] = []
        rest = list(self.premises)
        while True:
            near = [premise for premise in rest if premise.symbols & reached]
            if not near:
                return tuple(chosen)
            chosen += near
            rest = [premise for premise in rest if not premise.symbols & reached]
            reached |= {name for premise in near for name in premise.symbols}


SAMPLES = 12
"""How many sample points are looked for, in at most twenty times as many tries."""
SCALES = (1, 4, 32)
"""By these the dividends of a point are multiplied to make room for a larger symbol."""


def sample_points(premises: Iterable[Constraint], quotients: Iterable[DerivedSymbol]) -> list[dict[str, int]]:
    """Return a few small integer points that satisfy all premises (none where the search finds none).

    Where a symbol is the same at all of them, there are points with larger ones behind them if they are found.
    """
    premises, quotients = tuple(premises), tuple(quotients)
    derived = {quotient.name for quotient in quotients}
    free = sorted({name for premise in premises for name in premise.symbols} - derived)
    numbers = Random(1)

    box = Box(premises)
    if any(least > box.greatest.get(name, least) for name, least in box.least.items()):
        return []
    known = {name: int(least) for name, least in box.least.items() if least == box.greatest.get(name)}

    def small(attempt: int) -> dict[str, int]:
        reach = 4 if attempt % 2 else 40
        return {name: numbers.randint(0, reach if numbers.random() < 0.5 else 3) for name in free} | known

    dividends = {name for quotient in quotients for name in quotient.operands[0].symbols}

    def large(attempt: int) -> dict[str, int]:
        reach = 4 * 10 ** (attempt % 4)
        if attempt % 8 < 4:  # all alike, then quotients that may be large although they have many divisors
            return {name: known.get(name, numbers.randint(0, reach)) for name in free}
        least = {name: int(box.least.get(name, 0)) for name in free}
        few = {name: one + numbers.randint(0, 2) for name, one in least.items()}
        return few | {name: numbers.randint(0, 100 * reach) for name in dividends if name in few} | known

    tried = range(20 * SAMPLES)
    found = _satisfying(map(small, tried), premises, quotients) or _satisfying(map(large, tried), premises, quotients)
    for name in free if found else ():
        if name not in known and len({point[name] for point in found}) == 1:
            larger = (
                {one: point[one] * (scale if one in dividends else 1) for one in free} | {name: point[name] + more}
                for scale in SCALES
                for more in (1, 2)
                for point in found[:SAMPLES]
            )
            found += _satisfying(larger, premises, quotients, 2)
    return found


def _satisfying(
    tried: Iterable[dict[str, int]],
    premises: Sequence[Constraint],
    quotients: Sequence[DerivedSymbol],
    most: int = SAMPLES,
) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []
    for point in tried:
        try:
            for quotient in quotients:
                point[quotient.name] = quotient.evaluate(point)
        except (KeyError, ZeroDivisionError):
            continue
        if all(premise.holds(point) for premise in premises):
            found.append(point)
            if len(found) == most:
                break
    return found


Question: TypeAlias = tuple[tuple[Constraint, ...], Constraint, int]
"""Premises, goal and effort."""


class Answers(Struct):
    """Z3's answers of one run, and sample points: several provers ask the same question, and it is put once.

    Each question has a context of its own: what Z3 was asked before does not change its answer.  Only the first
    ``most`` proofs are looked for.
    """

    most: int | None = None
    _refuted: dict[Question, bool] = field(default_factory=dict)
    _points: dict[Question, Mapping[str, int] | None] = field(default_factory=dict)
    _samples: dict[tuple[tuple[Constraint, ...], tuple[DerivedSymbol, ...]], list[dict[str, int]]] = field(
        default_factory=dict
    )

    def samples(self, premises: tuple[Constraint, ...], quotients: tuple[DerivedSymbol, ...]) -> list[dict[str, int]]:
        """Return a few small points that satisfy the premises."""
        if (premises, quotients) not in self._samples:
            self._samples[premises, quotients] = sample_points(premises, quotients)
        return self._samples[premises, quotients]

    def refuted_over_reals(self, *question: *Question) -> bool:
        """Say whether the premises with the negation of the goal are shown to have no real solution."""
        if question not in self._refuted:
            if self.most is not None and len(self._refuted) >= self.most:
                return False
            self._refuted[question] = _refuted_over_reals(*question)
        return self._refuted[question]

    def counterexample(self, *question: *Question) -> Mapping[str, int] | None:
        """Return a small integer point of the premises at which the goal does not hold, where one is found."""
        if question not in self._points:
            self._points[question] = _counterexample(*question)
        return self._points[question]


def _refuted_over_reals(premises: tuple[Constraint, ...], goal: Constraint, effort: int) -> bool:
    import z3  # the border to the untyped library; imported where it is first needed

    context = z3.Context()
    solver = _bounded(z3.SolverFor("QF_NRA", ctx=context), effort)
    _Translation(z3, z3.Real, context).assume(solver, premises, goal)
    return bool(solver.check() == z3.unsat)


def _counterexample(premises: tuple[Constraint, ...], goal: Constraint, effort: int) -> Mapping[str, int] | None:
    import z3

    context = z3.Context()
    solver = _bounded(z3.Solver(ctx=context), effort)
    integers = _Translation(z3, z3.Int, context)
    integers.assume(solver, premises, goal)
    for symbol in integers.symbols.values():
        solver.add(symbol <= INTEGER_SEARCH)
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    return {name: int(model.eval(symbol, model_completion=True).as_long()) for name, symbol in integers.symbols.items()}


def _bounded(solver: Any, effort: int) -> Any:
    solver.set("rlimit", effort)
    solver.set("timeout", BACKSTOP_MS)
    solver.set("ctrl_c", False)  # Z3 would take an interrupt as the end of this question, and the run would go on
    return solver


class _Translation:
    """Polynomials as Z3 terms over one sort."""

    def __init__(self, z3: Any, make: Any, context: Any) -> None:
        self._z3 = z3
        self._make = make
        self._context = context
        self.symbols: dict[str, Any] = {}

    def assume(self, solver: Any, premises: Iterable[Constraint], goal: Constraint) -> None:
        """Add the premises, the signs of the symbols and the negation of the goal."""
        for premise in premises:
            solver.add(self.constraint(premise))
        solver.add(self.constraint(goal.negated()))
        for symbol in self.symbols.values():
            solver.add(symbol >= 0)

    def constraint(self, constraint: Constraint) -> Any:
        """Return a constraint as a Z3 formula."""
        value = constraint.difference
        if constraint.relation == "<" and value.whole:
            return self._polynomial(value) <= -1  # the same over the integers, and more over the reals
        difference = self._polynomial(value)
        match constraint.relation:
            case "<=":
                return difference <= 0
            case "<":
                return difference < 0
            case "==":
                return difference == 0

    def _polynomial(self, polynomial: Polynomial) -> Any:
        terms = polynomial.terms()
        scale = 1
        for coefficient in terms.values():
            scale = scale * coefficient.denominator
        total: Any = None
        for mono, coefficient in terms.items():
            product: Any = None
            for name, exponent in mono:
                symbol = self._symbol(name)
                for _ in range(exponent):
                    product = symbol if product is None else product * symbol
            number = int(coefficient * scale)
            term = number if product is None else (product if number == 1 else number * product)
            total = term if total is None else total + term
        # A bare Python number would make ``difference <= 0`` a Python truth value.
        return self._z3.RealVal(total or 0, self._context) if total is None or isinstance(total, int) else total

    def _symbol(self, name: str) -> Any:
        if name not in self.symbols:
            self.symbols[name] = self._make(name, self._context)
        return self.symbols[name]
