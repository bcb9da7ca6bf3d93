"""Counters measured and strategies applied, once for each version, in the symbols of one discussion.

The values that evaluators return are brought into the discussion: machine symbols get the names (or numbers) that they
have there, fresh derived symbols join its systems under short names, and a value is used only where its domain is
proved.
"""

from __future__ import annotations

from itertools import count
from typing import Generic

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most, less_than
from metafork.algebra.prover import Verdict
from metafork.algebra.symbols import DerivedKind, DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.comprehensive.signals import OutOfTimeError, until
from metafork.comprehensive.systems.signs import integral
from metafork.comprehensive.systems.start import Start
from metafork.comprehensive.systems.systems import System, Systems
from metafork.comprehensive.tree.schedule_tree import Statistics
from metafork.evaluators.counter import MACHINE_MARK, CounterOf, CounterValue, NotKnown
from metafork.strategies.strategy import AppliedOf, NotApplied, StrategyOf, V

OUT_OF_TIME = "the time limit was reached before it was done"


class Measurements(Generic[V]):
    """The values and transformed versions of one run; nothing of it outlives the run.

    What is being computed when the ``deadline`` (of ``time.monotonic``) passes is given up; ``interrupted`` says that
    something was.
    """

    def __init__(
        self,
        start: Start,
        systems: Systems,
        statistics: Statistics,
        analyses: Analyses,
        deadline: float | None = None,
    ) -> None:
        self.interrupted = False
        self._deadline = deadline
        self._start = start
        self._systems = systems
        self._statistics = statistics
        self._analyses = analyses
        # A version is a whole program: it is hashed once, and then known by the identity of the one kept here.
        self._versions: dict[V, V] = {}
        self._values: dict[tuple[str, int], CounterValue | NotKnown] = {}
        self._applications: dict[tuple[StrategyOf[V], int], tuple[V, AppliedOf[V]] | NotApplied] = {}
        self._names: dict[tuple[str, tuple[Polynomial, ...]], str] = {
            (symbol.kind, symbol.operands): symbol.name for symbol in start.derived
        }

    def value(self, counter: CounterOf[V], version: V, patient: bool = False) -> CounterValue | NotKnown:
        """Evaluate a counter, once for each version, in this discussion's symbols; to its end where ``patient``."""
        key = (counter.name, id(version))
        if key not in self._values:
            assert self._versions.get(version) is version, "only versions that were kept are measured"
            self._statistics.evaluations += 1
            value: CounterValue | NotKnown = NotKnown(OUT_OF_TIME)
            try:
                with until(None if patient else self._deadline):
                    value = counter.evaluate(version, self._analyses)
            except OutOfTimeError:
                self.interrupted = True
            self._values[key] = value if isinstance(value, NotKnown) else self._in_own_symbols(value)
        return self._values[key]

    def _in_own_symbols(self, value: CounterValue) -> CounterValue | NotKnown:
        """Name machine symbols as this input does, and take in fresh derived symbols, renamed where names clash."""
        names: dict[str, Polynomial] = {}
        derived = _used(value)
        polynomials = (value.numerator, value.denominator, *(p for s in derived for p in s.operands))
        for name in {n for polynomial in polynomials for n in polynomial.symbols if n.startswith(MACHINE_MARK)}:
            if name[1:] not in self._start.canonical:
                return NotKnown(f"its value depends on {name[1:]}, which this machine does not have")
            names[name] = self._start.limit(name[1:])
        of_machine = set(names)
        for symbol in derived:
            operands = tuple(operand.substitute(names) for operand in symbol.operands)
            if any(operand.symbols & of_machine for operand in symbol.operands):
                of_machine.add(symbol.name)
                operands = self._undecided(symbol.kind, operands)
                if len(operands) == 1 or all(operand.is_constant for operand in operands):
                    plain = DerivedSymbol(symbol.name, symbol.kind, operands)
                    names[symbol.name] = operands[0] if len(operands) == 1 else Polynomial.constant(plain.evaluate({}))
                    continue
            known = self._names.get((symbol.kind, operands))
            if known is None:
                fresh = DerivedSymbol(self._short_name(symbol), symbol.kind, operands)
                if symbol.kind in ("floor", "ceiling"):
                    for needed in (at_most(ONE, operands[1]), at_most(ZERO, operands[0])):
                        if self._systems.implies((), needed) is not Verdict.YES:
                            return NotKnown(f"{fresh.definition()} is defined only where {needed}, which is not proved")
                known = self._names[symbol.kind, operands] = fresh.name
                self._systems.define(fresh)
            if known != symbol.name:
                names[symbol.name] = Polynomial.symbol(known)
        if not names:
            return value
        return CounterValue(
            value.numerator.substitute(names),
            value.denominator.substitute(names),
            derived,
            tuple(constraint.substitute(names) for constraint in value.domain),
            value.sampled,
        )

    def _undecided(self, kind: DerivedKind, operands: tuple[Polynomial, ...]) -> tuple[Polynomial, ...]:
        """Return the operands without those that do not matter on any machine of this tree."""
        if kind in ("floor", "ceiling"):
            return operands[:1] if operands[1] == ONE else operands
        kept = list(dict.fromkeys(operands))
        for one in tuple(kept):
            others = [(one, other) if kind == "maximum" else (other, one) for other in kept if other != one]
            if any(self._systems.at_most(*pair) for pair in others):
                kept.remove(one)
        return tuple(kept)

    def _short_name(self, symbol: DerivedSymbol) -> str:
        """Return a name for a fresh symbol, short because conditions are read with it: ``ceil1``, ``max2``.

        A word that the evaluator gave (``warps``) stays, with a number only where it is taken.
        """
        taken = {*self._start.order, *self._start.opaque, *(symbol.name for symbol in self._systems.derived)}
        if symbol.name.isalpha() and len(symbol.name) > 3:
            names = (symbol.name if number == 1 else f"{symbol.name}{number}" for number in count(1))
            return next(name for name in names if name not in taken)
        stem = {"floor": "floor", "ceiling": "ceil", "maximum": "max", "minimum": "min"}[symbol.kind]
        return next(name for number in count(1) if (name := f"{stem}{number}") not in taken)

    def condition(self, counter: CounterOf[V], value: CounterValue) -> Constraint:
        """Return what the accept branch assumes: the value within the limit, or the target reached."""
        limit = self._start.limit(counter.symbol) * value.denominator
        if counter.kind == "performance" and not counter.less_is_better:
            return integral(at_most(limit, value.numerator))
        return integral(at_most(value.numerator, limit))

    def keep(self, version: V) -> V:
        """Return the one object that stands for this version from now on."""
        return self._versions.setdefault(version, version)

    def apply(self, strategy: StrategyOf[V], version: V) -> tuple[V, AppliedOf[V]] | NotApplied:
        """Apply a strategy, once for each kept version; return the new version, kept, and what was done."""
        key = (strategy, id(version))
        if key not in self._applications:
            assert self._versions.get(version) is version, "only versions that were kept are transformed"
            self._statistics.applications += 1
            applied: AppliedOf[V] | NotApplied = NotApplied(OUT_OF_TIME)
            try:
                with until(self._deadline):
                    applied = self._analyses.of(strategy.apply, version)
            except OutOfTimeError:
                self.interrupted = True
            self._applications[key] = (
                applied if isinstance(applied, NotApplied) else (self.keep(applied.version), applied)
            )
        return self._applications[key]

    def outside(self, value: CounterValue, system: System) -> str:
        """Return why a value may not be used under a system; empty where it may."""
        needed = list(value.domain)
        if not value.denominator.is_constant:
            needed.append(less_than(ZERO, value.denominator))
        for constraint in needed:
            if all(self._systems.implies(known, constraint) is not Verdict.YES for known in ((), system)):
                return f"its value holds where {constraint.text(self._start.order)}, which is not proved here"
        return ""


def _used(value: CounterValue) -> tuple[DerivedSymbol, ...]:
    """Return the derived symbols of a value without those that it does not depend on."""
    polynomials = [value.numerator, value.denominator, *(one.difference for one in value.domain)]
    needed = {name for one in polynomials for name in one.symbols}
    found: list[DerivedSymbol] = []
    for symbol in reversed(value.derived):
        if symbol.name in needed:
            needed |= {name for operand in symbol.operands for name in operand.symbols}
            found.insert(0, symbol)
    return tuple(found)
