"""Under which conditions the instances of a leaf have the registers they take (DESIGN section 11).

An instance is another kernel than the leaf's dynamic one, and takes other registers.  They are estimated for the
values of each instance; what bounds them at all of these is a polynomial in the static parameters, where there is one
of degree 2 at most in each that is nowhere more than 2 registers above: ``3*s + 24 <= R``.  Else each instance has its
own number.  Registers of a block are those of a thread times the threads of its warps, for which the tree has a symbol
in most cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from msgspec import Struct
from msgspec.structs import replace

from comprehensive.case_discussion.quintuple import Case, CounterOf
from comprehensive.systems.signs import integral
from comprehensive.systems.start import Start
from comprehensive.systems.systems import System
from evaluators.counter import CounterValue, Measure, NotKnown, details_of
from evaluators.registers_per_block import in_whole_warps
from evaluators.registers_per_thread import registers
from metafork.algebra.listed_bounds import upper_bound
from metafork.algebra.polynomial import ONE, Constraint, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.ir.program import Version

Values = Mapping[str, int]


class Registers(Struct, frozen=True):
    """What an instance takes: registers of a thread, and the threads of its warps, in symbols of the tree.

    ``threads`` may be more than there are where the tree has no symbol for the number of warps; ``None`` where nobody
    asks.  ``others`` are further ways to say the same number at these values.
    """

    per_thread: int
    threads: Polynomial | None = None
    others: frozenset[Polynomial] = frozenset()

    @property
    def per_block(self) -> Polynomial | None:
        """Registers of a block."""
        return None if self.threads is None else self.threads * self.per_thread


class RegisterCount(Struct, frozen=True):
    """Counts the registers of instances in one tree, whose counters of registers are given (``None``: it has none).

    ``warps`` are the products that stand in the tree for the threads of the warps of a block.
    """

    start: Start
    analyses: Analyses
    derived: Sequence[DerivedSymbol]
    per_thread: CounterOf[Version] | None
    per_block: CounterOf[Version] | None
    warps: tuple[Polynomial, ...] = ()

    @staticmethod
    def of(
        start: Start,
        analyses: Analyses,
        derived: Sequence[DerivedSymbol],
        counters: Sequence[CounterOf[Version]],
        cases: Sequence[Case[Version]],
    ) -> RegisterCount:
        """Return the count for the cases of a discussion and the counters that took part in it."""
        measures = {details_of(counter).measure: counter for counter in reversed(counters)}
        per_block = measures.get(Measure.REGISTERS_PER_BLOCK)
        count = RegisterCount(start, analyses, derived, measures.get(Measure.REGISTERS_PER_THREAD), per_block)
        if per_block is None:
            return count
        found: dict[Polynomial, None] = {}
        for case in cases:
            value, own = case.counters.get(per_block.name), count.of_a_thread(case.version)
            if value is not None and value.denominator == ONE and isinstance(own, int) and own > 0:
                found[value.numerator.divide_exactly(Polynomial.constant(own)) or value.numerator] = None
        return replace(count, warps=tuple(found))

    @property
    def wanted(self) -> bool:
        """Whether the tree counts registers."""
        return self.per_thread is not None or self.per_block is not None

    def of_a_thread(self, version: Version) -> int | NotKnown:
        """Return the estimated registers of a thread."""
        if self.per_thread is None:
            return registers(version, self.analyses)
        value = self.per_thread.evaluate(version, self.analyses)
        if isinstance(value, NotKnown):
            return value
        number = value.numerator.divide_exactly(value.denominator)
        if number is None or not number.is_constant or number.constant_value().denominator > 1:
            return NotKnown(f"{value.numerator} registers are no number")
        return int(number.constant_value())

    def of_instance(self, version: Version, values: Values) -> Registers | NotKnown:
        """Return what an instance takes, or why that is not known."""
        own = self.of_a_thread(version)
        if isinstance(own, NotKnown) or self.per_block is None:
            return own if isinstance(own, NotKnown) else Registers(own)
        threads = in_whole_warps(version, self.analyses)
        if isinstance(threads, NotKnown):
            return threads
        here = placed(threads.numerator, threads.derived, values)
        same = [warps for warps in self.warps if placed(warps, self.derived, values) == here]
        if here.is_constant or same:
            return Registers(own, here if here.is_constant else same[0], frozenset(same))
        above = _above(threads.numerator, threads.derived)
        if above is None or not above.symbols <= {*self.start.program, *self.start.data}:
            return NotKnown(f"its blocks have {threads.numerator} threads, for which the tree has no symbol")
        return Registers(own, above)

    def conditions(self, counted: Sequence[tuple[Values, Registers]]) -> list[tuple[System, ...]]:
        """Return the conditions of instances, one system each: by a polynomial where there is one, then by numbers."""
        common = self._common_threads(counted)
        numbers = [Polynomial.constant(one.per_thread) for _, one in counted]
        bound = upper_bound([values for values, _ in counted], [one.per_thread for _, one in counted])
        found = []
        if bound is not None and common is not None:
            found.append(tuple(self._system(bound, bound * common) for _ in counted))
        elif bound is not None:
            found.append(tuple(self._system(bound, one.per_block) for _, one in counted))
        found.append(tuple(map(self._system, numbers, [one.per_block for _, one in counted])))
        return found

    def values(self, one: Registers) -> dict[str, CounterValue]:
        """Return what an instance takes as values of the tree's counters."""
        found: dict[str, CounterValue] = {}
        if self.per_thread is not None:
            found[self.per_thread.name] = CounterValue(Polynomial.constant(one.per_thread))
        if self.per_block is not None and one.per_block is not None:
            found[self.per_block.name] = CounterValue(one.per_block)
        return found

    def _common_threads(self, counted: Sequence[tuple[Values, Registers]]) -> Polynomial | None:
        """Return what stands for the threads of all instances."""
        return next((warps for warps in self.warps if all(warps in one.others for _, one in counted)), None)

    def _system(self, per_thread: Polynomial, per_block: Polynomial | None) -> System:
        found: list[Constraint] = []
        if self.per_thread is not None:
            found.append(integral(at_most(per_thread, self.start.limit(self.per_thread.symbol))))
        if self.per_block is not None and per_block is not None:
            found.append(integral(at_most(per_block, self.start.limit(self.per_block.symbol))))
        # A limit that is a number may hold of a number: that is not a condition.
        return tuple(one for one in found if not (one.difference.is_constant and one.holds({})))


def placed(polynomial: Polynomial, derived: Sequence[DerivedSymbol], values: Values) -> Polynomial:
    """Return a polynomial at values of some parameters.

    Derived symbols that are numbers then are replaced by these, and the others are named by their definitions, so that
    equal ones are equal.
    """
    return polynomial.substitute(derived_at(derived, values))


def derived_at(derived: Sequence[DerivedSymbol], values: Values) -> dict[str, Polynomial]:
    """Return what parameters and derived symbols are at values of some parameters."""
    numbers = {name: Polynomial.constant(value) for name, value in values.items()}
    for symbol in derived:
        operands = tuple(operand.substitute(numbers) for operand in symbol.operands)
        numbers[symbol.name] = _value_of(replace(symbol, operands=operands))
    return numbers


def _value_of(symbol: DerivedSymbol) -> Polynomial:
    """Return a derived symbol as a number, as its operand over 1, or as a symbol named by its definition."""
    operands = symbol.operands
    if symbol.kind in ("floor", "ceiling"):
        coefficients = [value for operand in operands for value in operand.coefficients.values()]
        if operands[1] and all(isinstance(value, int) for value in coefficients):
            common = gcd(*(value.numerator for value in coefficients))
            operands = tuple(operand.divide_exactly(Polynomial.constant(common)) or operand for operand in operands)
        if operands[1] == ONE:
            return operands[0]
    if all(operand.is_constant for operand in operands) and (symbol.kind in ("maximum", "minimum") or operands[1]):
        return Polynomial.constant(replace(symbol, operands=operands).evaluate({}))
    return Polynomial.symbol(replace(symbol, operands=operands).definition())


def _above(threads: Polynomial, derived: Sequence[DerivedSymbol]) -> Polynomial | None:
    """Return a polynomial without derived symbols that is never less; ``None`` where none is at hand.

    ``ceil(a/b)`` is at most ``(a + b - 1)/b`` for a number ``b``, and ``a/b`` rounded down at most ``a/b``.
    """
    for symbol in reversed(derived):
        factor = threads.coefficient(symbol.name)
        if factor is None or any(value < 0 for value in factor.coefficients.values()):
            return None
        if not factor:
            continue
        divisor = symbol.operands[1]
        if symbol.kind not in ("floor", "ceiling") or not divisor.is_constant or divisor.constant_value() < 1:
            return None
        most = symbol.operands[0] + (divisor - 1 if symbol.kind == "ceiling" else 0)
        threads = threads.without([symbol.name]) + factor * most * (1 / divisor.constant_value())
    return threads
