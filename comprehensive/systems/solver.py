"""The border to Z3: polynomial systems over the reals or the integers, one solver a path.

A ``PathSolver`` holds one Z3 solver; asked about a path, it pops back to what the path shares with the last one and
pushes the rest, so that a walk through a tree asserts each condition once.  Effort is bounded by Z3's own counter
(``rlimit``), which does not depend on how busy the machine is; a generous clock stands behind it, and no question
outlasts the ``deadline`` of the whole run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.comprehensive.systems.signs import integral

Answer = Literal["sat", "unsat", "unknown"]
EFFORT = 400_000
TIMEOUT_MS = 60_000


class PathSolver:
    """A solver over the reals (``integers`` false) or the integers; symbols in ``real`` are never integers.

    Two that are used by turns share a context of Z3 (``beside``), which takes a while to be made.  ``late`` says that
    the deadline left a question open.
    """

    def __init__(
        self,
        background: Iterable[Constraint],
        integers: bool,
        real: frozenset[str] = frozenset(),
        effort: int = EFFORT,
        timeout_ms: int = TIMEOUT_MS,
        deadline: float | None = None,
        beside: PathSolver | None = None,
    ) -> None:
        import z3  # imported where a system is first put to it: `metafork --help` needs none

        self._z3 = z3
        self._context: Any = z3.Context() if beside is None else beside._context
        self._integers = integers
        self._real = real
        self._symbols: dict[str, Any] = {}
        self._formulas: dict[Constraint, Any] = {}
        self._solver = z3.SolverFor("QF_NIA" if integers and not real else "QF_NRA", ctx=self._context)
        if integers and real:
            self._solver = z3.Solver(ctx=self._context)
        self._solver.set("rlimit", effort)
        self._solver.set("timeout", timeout_ms)
        self._solver.set("ctrl_c", False)  # Z3 would take an interrupt as the end of one question, and go on
        self._timeout_ms = timeout_ms
        self._deadline = deadline
        self._path: list[Constraint] = []
        self._background = list(background)
        self.calls = 0
        self.late = False
        for fact in self._background:
            self._solver.add(self.formula(fact))

    def add(self, facts: Sequence[Constraint]) -> None:
        """Add facts that hold on every path."""
        self._pop_to(0)
        self._background += facts
        for fact in facts:
            self._solver.add(self.formula(fact))

    def check(self, path: Sequence[Constraint], *negated: Sequence[Constraint]) -> Answer:
        """Decide background, path, and the negation of each conjunction in ``negated``; unknown past the deadline."""
        if self._deadline is not None:
            left = int(1000 * (self._deadline - time.monotonic()))
            if left <= 0:
                self.late = True
                return "unknown"
            self._solver.set("timeout", min(left, self._timeout_ms))
        self._move_to(path)
        if negated:
            self._solver.push()
            for conjunction in negated:
                formula = self._z3.And([self.formula(member) for member in conjunction], self._context)
                self._solver.add(self._z3.Not(formula, ctx=self._context))
        self.calls += 1
        result = self._solver.check()
        answer: Answer = "unknown"
        if result == self._z3.sat:
            answer = "sat"
            self._model = self._solver.model()
        elif result == self._z3.unsat:
            answer = "unsat"
        elif self._deadline is not None and time.monotonic() > self._deadline:
            self.late = True
        if negated:
            self._solver.pop()
        return answer

    def model(self) -> dict[str, Fraction]:
        """Return the point of the last ``sat`` answer; irrational coordinates are left out."""
        point = {}
        for name, symbol in self._symbols.items():
            value = self._model.eval(symbol, model_completion=True)
            if self._z3.is_int_value(value):
                point[name] = Fraction(value.as_long())
            elif self._z3.is_rational_value(value):
                point[name] = Fraction(value.numerator_as_long(), value.denominator_as_long())
        return point

    def formula(self, constraint: Constraint) -> Any:
        """Return a constraint as a Z3 formula."""
        if constraint not in self._formulas:
            difference = self._term(integral(constraint).difference)
            match constraint.relation:
                case "<=":
                    formula = difference <= 0
                case "<":
                    formula = difference < 0
                case "==":
                    formula = difference == 0
            self._formulas[constraint] = formula
        return self._formulas[constraint]

    def _term(self, polynomial: Polynomial) -> Any:
        total: Any = self._z3.IntVal(0, self._context) if self._integers else self._z3.RealVal(0, self._context)
        for mono, coefficient in polynomial.terms().items():
            term: Any = None
            for name, exponent in mono:
                symbol = self._symbol(name)
                for _ in range(exponent):
                    term = symbol if term is None else term * symbol
            number = int(coefficient)
            total = total + (number if term is None else term if number == 1 else term * number)
        return total

    def _symbol(self, name: str) -> Any:
        if name not in self._symbols:
            integer = self._integers and name not in self._real
            self._symbols[name] = (self._z3.Int if integer else self._z3.Real)(name, self._context)
        return self._symbols[name]

    def _move_to(self, path: Sequence[Constraint]) -> None:
        shared = 0
        for mine, wanted in zip(self._path, path, strict=False):
            if mine is not wanted and mine != wanted:
                break
            shared += 1
        self._pop_to(shared)
        for member in path[shared:]:
            self._solver.push()
            self._solver.add(self.formula(member))
            self._path.append(member)

    def _pop_to(self, depth: int) -> None:
        if len(self._path) > depth:
            self._solver.pop(len(self._path) - depth)
            del self._path[depth:]


def as_integers(point: Mapping[str, Fraction], real: frozenset[str]) -> dict[str, int | Fraction] | None:
    """Return a point with integers as ``int``; ``None`` where a symbol that must be an integer is none."""
    result: dict[str, int | Fraction] = {}
    for name, value in point.items():
        if value.denominator == 1:
            result[name] = int(value)
        elif name in real:
            result[name] = value
        else:
            return None
    return result
