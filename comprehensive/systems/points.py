"""Integer points of constraint systems, found without a solver where that is possible.

A point gives every parameter a value; derived symbols are computed from it, and the machine's symbols follow: at a
point of the parameters a condition on ``Z`` is an interval of ``Z``.  A *pool* keeps the parameter values that satisfy
Start: small ones tried in order, and those that a solver found.  A branch or a case that contains a point of the
pool needs no solver to be called consistent, and no solver to be called irredundant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from math import ceil, floor

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.algebra.symbols import DerivedSymbol
from metafork.comprehensive.systems.signs import denominators, integral

Number = int | Fraction
Point = Mapping[str, Number]

TRIED = 1500
KEPT = 96
LARGER_TRIED = 400
LARGE = 1 << 16
_LARGER = (1, 32, 16, 8, 3, 64, 256)
"""Extents of blocks and numbers of results per thread, the usual ones first."""
_LARGER_DATA = (4096, 32, 1)
"""Extents of data, which mostly have to hold some blocks."""


class Points:
    """The pool of a run.  ``small`` gives each parameter the values to be tried, best first; ``data`` are extents.

    What a constraint says at a point of the pool is computed once: true or false, or the interval that it leaves to
    its one machine symbol.
    """

    def __init__(
        self,
        facts: Iterable[Constraint],
        derived: Iterable[DerivedSymbol],
        small: Mapping[str, Sequence[int]],
        machine: Sequence[str],
        real: frozenset[str],
        data: Sequence[str] = (),
    ) -> None:
        self._data = tuple(data)
        self._machine = tuple(machine)
        self._real = real
        self._small = dict(small)
        self._derived = [(symbol.name, _quotient(symbol)) for symbol in derived]
        self._late: dict[str, Callable[[Point], Number]] = {}  # derived from the machine: computed when that is chosen
        self._compiled: dict[Constraint, _Compiled] = {}
        self._facts = [self._compile(fact) for fact in facts]
        self._pool: list[dict[str, Number]] | None = None
        # Points with larger blocks: those that were looked at, and those that are to come.
        self._larger: list[dict[str, Number]] = []
        self._larger_to_come: Iterator[dict[str, Number]] | None = None
        self._order: list[int] = []
        self._recent: list[int] = []

    def define(self, symbol: DerivedSymbol, facts: Iterable[Constraint]) -> None:
        """Take in a derived symbol; points of the pool get its value."""
        value = _quotient(symbol)
        if self.depends_on_machine(symbol):
            self._late[symbol.name] = value
            return
        self._derived.append((symbol.name, value))
        self._facts += [self._compile(fact) for fact in facts]
        if self._pool is not None:
            self._replace_pool(_with_value(symbol.name, value, self._pool))
        self._larger = _with_value(symbol.name, value, self._larger)

    def depends_on_machine(self, symbol: DerivedSymbol) -> bool:
        """Say whether a derived symbol has a machine symbol without a number in its definition."""
        return any(operand.symbols & {*self._machine, *self._late} for operand in symbol.operands)

    def on_machine(self, system: Iterable[Constraint]) -> bool:
        """Say whether a system has derived symbols that depend on the machine."""
        return any(constraint.symbols & self._late.keys() for constraint in system)

    def find(self, system: Sequence[Constraint], smallest: bool = False) -> dict[str, Number] | None:
        """Return a point of the pool that satisfies Start and ``system``, with the least machine that fits.

        Points that were of use lately are tried first, unless the smallest is asked for.
        """
        compiled = [self._compile(constraint) for constraint in system]
        on_parameters = [c for c in compiled if not c.machine]
        bounds = [c for c in compiled if c.symbol is not None]
        others = [c for c in compiled if c.machine and c.symbol is None]
        touched = {c.symbol for c in bounds}
        facts = [c for c in self._facts if c.symbol in touched]
        simple = not others and all(c.symbol is not None for c in self._facts if c.machine)
        pool = self._points()
        for place, index in enumerate(self._order if smallest else self._recent):
            point = pool[index]
            if not all(c.truth(index, point) for c in on_parameters):
                continue
            least = _least_machine(index, point, (*facts, *bounds))
            if least is None:
                continue
            if simple:
                rest = [c for c in self._facts if c.symbol is not None and c.symbol not in touched]
                untouched = _least_machine(index, point, rest)
                if untouched is not None:
                    if not smallest:
                        self._recent.insert(0, self._recent.pop(place))
                    return {**point, **dict.fromkeys(self._machine, 0), **untouched, **least}
                continue
            found = self._with_machine(point, [*bounds, *others])
            if found is not None:
                return found
        return None

    def find_larger(self, system: Sequence[Constraint]) -> dict[str, Number] | None:
        """Return a point of Start and ``system`` with blocks as large as they usually are; the pool takes it up."""
        for point in self._larger_points():
            found = self._in_system(point, system)
            if found is not None:
                self._points().append(dict(point))
                self._sort()
                return found
        return None

    def _larger_points(self) -> Iterator[dict[str, Number]]:
        """Yield points with larger blocks; they are completed as they are asked for, since the first ones often do."""
        if self._larger_to_come is None:
            lists = [
                values if len(values) <= 2 else _LARGER_DATA if name in self._data else _LARGER
                for name, values in self._small.items()
            ]
            points = (dict(zip(self._small, values, strict=True)) for values in islice(_graded(lists), LARGER_TRIED))
            self._larger_to_come = (point for point in map(self._completed, points) if point is not None)
        yield from self._larger
        for point in self._larger_to_come:
            self._larger.append(point)
            yield point

    def find_with(self, values: Mapping[str, int], system: Sequence[Constraint]) -> dict[str, Number] | None:
        """Return a point of Start and ``system`` at which some parameters have given values.

        The others are as at some point of the pool; if need be, data are large enough for any block.
        """
        large = dict.fromkeys(self._data, LARGE)
        for given in (values, {**large, **values}):
            for point in self._points():
                completed = self._completed({name: given.get(name, point[name]) for name in self._small})
                found = None if completed is None else self._in_system(completed, system)
                if found is not None:
                    return found
        return None

    def _in_system(self, point: dict[str, Number], system: Sequence[Constraint]) -> dict[str, Number] | None:
        """Return a completed point with the least machine that a system allows; ``None`` where it is none of its."""
        compiled = [self._compile(constraint) for constraint in system]
        if not all(c.machine or c.holds(point) for c in compiled):
            return None
        return self._with_machine(point, [c for c in compiled if c.machine])

    def learn(self, model: Mapping[str, Number], system: Sequence[Constraint]) -> dict[str, Number] | None:
        """Take the parameters of a solver's model of ``system`` into the pool; return a point of ``system``."""
        completed = self._completed({name: int(model.get(name, values[0])) for name, values in self._small.items()})
        if completed is None:
            return None
        pool = self._points()
        if completed not in pool:
            pool.append(completed)
            self._sort()
        compiled = [self._compile(constraint) for constraint in system]
        found = self._with_machine(completed, [c for c in compiled if c.machine])
        if found is None:
            # Conditions on several machine symbols at once are beyond the greedy choice; the model has one.
            found = completed | {name: model.get(name, 0) for name in self._machine}
            compiled += self._facts
        return found if all(c.holds(found) for c in compiled) else None

    def _points(self) -> list[dict[str, Number]]:
        if self._pool is None:
            pool: list[dict[str, Number]] = []
            for tried, values in enumerate(_graded(list(self._small.values()))):
                if tried >= TRIED or len(pool) >= KEPT:
                    break
                point = self._completed(dict(zip(self._small, values, strict=True)))
                if point is not None:
                    pool.append(point)
            self._replace_pool(pool)
            return pool
        return self._pool

    def _replace_pool(self, pool: list[dict[str, Number]]) -> None:
        self._pool = pool
        for compiled in self._compiled.values():
            compiled.forget()
        self._sort()

    def _sort(self) -> None:
        pool = self._pool or []
        self._order = sorted(range(len(pool)), key=lambda index: sum(pool[index][name] for name in self._small))
        self._recent = list(self._order)

    def _completed(self, parameters: Mapping[str, Number]) -> dict[str, Number] | None:
        """Return a point with its derived symbols, ``None`` where it lies outside Start."""
        point = dict(parameters)
        try:
            for name, value in self._derived:
                point[name] = value(point)
        except ZeroDivisionError:
            return None
        if not all(fact.holds(point) for fact in self._facts if not fact.machine):
            return None
        return point if self._with_machine(point, []) is not None else None

    def _with_machine(self, point: dict[str, Number], system: Sequence[_Compiled]) -> dict[str, Number] | None:
        """Return the point with the least machine that the conditions allow, ``None`` where there is none."""
        pending = [*(fact for fact in self._facts if fact.machine), *system]
        if all(constraint.symbol is not None for constraint in pending):
            least = _least_machine(None, point, pending)
            return None if least is None else {**point, **dict.fromkeys(self._machine, 0), **least}
        found = self._chosen(point, pending, _Interval.least)
        return found if found is not None or not self._late else self._chosen(point, pending, _Interval.greatest)

    def _chosen(
        self, point: dict[str, Number], pending: list[_Compiled], choice: Callable[[_Interval], Number | None]
    ) -> dict[str, Number] | None:
        """Return the point with a number for each machine symbol, what is derived from them before the targets."""
        result = dict(point)
        targets = [name for name in self._machine if name in self._real]
        for name in (*(name for name in self._machine if name not in self._real), *self._late, *targets):
            if name in self._late:
                try:
                    result[name] = self._late[name](result)
                except ZeroDivisionError:
                    return None
                continue
            interval = _Interval(name in self._real)
            rest = []
            for constraint in pending:
                if any(other not in result for other in constraint.machine if other != name):
                    rest.append(constraint)
                elif name not in constraint.machine:
                    if not constraint.holds(result):
                        return None
                elif not constraint.narrow(result, name, interval):
                    return None
            value = interval.least() if name in self._real else choice(interval)
            if value is None:
                return None
            result[name] = value
            pending = rest
        return result if all(constraint.holds(result) for constraint in pending) else None

    def _compile(self, constraint: Constraint) -> _Compiled:
        if constraint not in self._compiled:
            machine = frozenset((*self._machine, *self._late))
            self._compiled[constraint] = _Compiled(constraint, machine, self._real | self._late.keys())
        return self._compiled[constraint]


class _Interval:
    """The values that one machine symbol may still take."""

    def __init__(self, real: bool) -> None:
        self._real = real
        self._low: Number | None = None
        self._low_open = False
        self._high: Number | None = None
        self._high_open = False

    def at_least(self, bound: Number, strict: bool) -> None:
        """Intersect with ``bound <= x``."""
        if self._low is None or bound > self._low or (bound == self._low and strict):
            self._low, self._low_open = bound, strict

    def at_most(self, bound: Number, strict: bool) -> None:
        """Intersect with ``x <= bound``."""
        if self._high is None or bound < self._high or (bound == self._high and strict):
            self._high, self._high_open = bound, strict

    def least(self) -> Number | None:
        """Return the least integer of the interval, else (for a real symbol) some number of it."""
        low = self._low if self._low is not None else 0
        least = floor(low) + 1 if self._low_open else ceil(low)
        if self._high is None or least < self._high or (least == self._high and not self._high_open):
            return least
        if not self._real or self._low is None:
            return None
        if low < self._high:
            return Fraction(low + self._high) / 2 if self._low_open else low
        return low if low == self._high and not self._low_open and not self._high_open else None

    def greatest(self) -> Number | None:
        """Return the greatest integer of the interval, the least one where it has no end."""
        least = self.least()
        if least is None or self._high is None:
            return least
        return max(least, ceil(self._high) - 1 if self._high_open else floor(self._high))


class _Compiled:
    """A constraint as a Python function of a point, and as a function of one machine symbol at a point."""

    def __init__(self, constraint: Constraint, machine: frozenset[str], unbounded: frozenset[str]) -> None:
        self._relation = constraint.relation
        self._difference = integral(constraint).difference
        self._value = _function(self._difference)
        self.machine = self._difference.symbols & machine
        # The machine symbol whose interval this is at a point of the parameters, where there is one (an integer).
        self.symbol: str | None = None
        if len(self.machine) == 1 and not self.machine & unbounded:
            [name] = self.machine
            slope = self._difference.coefficient(name)
            if slope is not None and slope.is_constant and constraint.relation != "==":
                self.symbol = name
                self._slope = int(slope.constant_value())
                self._rest = _function(self._difference.without([name]))
        self._truths: dict[int, bool] = {}
        self._intervals: dict[int, tuple[int | None, int | None]] = {}
        self._linear: dict[str, tuple[Callable[[Point], Number], Callable[[Point], Number]] | None] = {}

    def forget(self) -> None:
        """Forget what was computed for points of the pool."""
        self._truths.clear()
        self._intervals.clear()

    def truth(self, index: int, point: Point) -> bool:
        """Say whether a constraint without machine symbols holds at point ``index`` of the pool."""
        if index not in self._truths:
            self._truths[index] = self.holds(point)
        return self._truths[index]

    def interval(self, index: int | None, point: Point) -> tuple[int | None, int | None]:
        """Return the least and the greatest value of ``symbol`` at a point; that at ``index`` of the pool is kept."""
        known = None if index is None else self._intervals.get(index)
        if known is not None:
            return known
        # slope*m + rest <= 0, where a strict relation between integers is <= -1.
        rest = floor(self._rest(point)) + (1 if self._relation == "<" else 0)
        slope = self._slope
        found = (None, -rest // slope) if slope > 0 else (-(rest // slope), None)
        if index is not None:
            self._intervals[index] = found
        return found

    def holds(self, point: Point) -> bool:
        """Say whether the constraint holds at a point with all its symbols."""
        value = self._value(point)
        return value <= 0 if self._relation == "<=" else value < 0 if self._relation == "<" else value == 0

    def narrow(self, point: Point, name: str, interval: _Interval) -> bool:
        """Intersect the interval of ``name`` with the constraint; say whether that was possible."""
        if name not in self._linear:
            slope = self._difference.coefficient(name)
            self._linear[name] = (
                None if slope is None else (_function(slope), _function(self._difference.without([name])))
            )
        linear = self._linear[name]
        if linear is None:
            return False
        slope_value, rest = linear[0](point), linear[1](point)
        if slope_value == 0:
            return rest <= 0 if self._relation == "<=" else rest < 0 if self._relation == "<" else rest == 0
        bound = -rest * slope_value if slope_value in (1, -1) else Fraction(-rest) / Fraction(slope_value)
        strict = self._relation == "<"
        if slope_value > 0 or self._relation == "==":
            interval.at_most(bound, strict)
        if slope_value < 0 or self._relation == "==":
            interval.at_least(bound, strict)
        return True


def _least_machine(index: int | None, point: Point, bounds: Iterable[_Compiled]) -> dict[str, int] | None:
    """Return the least non-negative values of the machine symbols in ``bounds``; ``None`` where there are none."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for bound in bounds:
        least, most = bound.interval(index, point)
        name = bound.symbol
        assert name is not None
        low[name] = max(low.get(name, 0), least or 0)
        if most is not None:
            high[name] = min(high.get(name, most), most)
        if name in high and low[name] > high[name]:
            return None
    return low


def _with_value(
    name: str, value: Callable[[Point], Number], points: Iterable[dict[str, Number]]
) -> list[dict[str, Number]]:
    """Give points the value of a derived symbol; those at which it has none are left out."""
    kept = []
    for point in points:
        try:
            point[name] = value(point)
        except ZeroDivisionError:
            continue
        kept.append(point)
    return kept


def _quotient(symbol: DerivedSymbol) -> Callable[[Point], Number]:
    """Return a derived symbol as a function of a point; in integers where that is what it is made of."""
    if any(denominators(operand) != 1 for operand in symbol.operands):
        return symbol.evaluate
    operands = [_function(operand) for operand in symbol.operands]

    def value(point: Point) -> Number:
        numbers = [operand(point) for operand in operands]
        match symbol.kind:
            case "floor":
                return numbers[0] // numbers[1]
            case "ceiling":
                return -(-numbers[0] // numbers[1])
            case "maximum":
                return max(numbers)
            case "minimum":
                return min(numbers)

    return value


def _function(polynomial: Polynomial) -> Callable[[Point], Number]:
    """Return a polynomial with integer coefficients as a function of a point."""
    terms = [
        (int(coefficient), [name for name, exponent in mono for _ in range(exponent)])
        for mono, coefficient in polynomial.terms().items()
    ]

    def value(point: Point) -> Number:
        total: Number = 0
        for coefficient, factors in terms:
            product: Number = coefficient
            for name in factors:
                product = product * point[name]
            total = total + product
        return total

    return value


def _graded(candidates: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield the product of the candidate lists by rising sum of positions, so that small points come first."""

    def of_sum(lists: Sequence[Sequence[int]], total: int) -> Iterator[tuple[int, ...]]:
        if not lists:
            if total == 0:
                yield ()
            return
        first, rest = lists[0], lists[1:]
        most = sum(len(other) - 1 for other in rest)
        for index in range(max(0, total - most), min(total, len(first) - 1) + 1):
            for tail in of_sum(rest, total - index):
                yield (first[index], *tail)

    for total in range(sum(len(values) - 1 for values in candidates) + 1):
        yield from of_sum(candidates, total)
