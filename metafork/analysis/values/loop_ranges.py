"""The range of a counted loop: an iteration symbol, its trip count and what holds of it, as polynomials.

In iteration ``m`` the variable is ``low + step*m``.  Each condition of the loop that is a comparison of polynomials
becomes a constraint on m; those that only a beginning of the iterations satisfies bound it.  A bound that is the least
of several values is several bounds, ``!=`` is ``<`` where the variable would otherwise run out of its type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most, less_than
from metafork.algebra.prover import Prover
from metafork.algebra.symbols import Value
from metafork.analysis.counted_loops import MIRRORED, CountedLoop, counted_loop
from metafork.analysis.values.choices import extremum_of
from metafork.analysis.values.scope import Scope
from metafork.ir.arithmetic.types import common_type
from metafork.ir.program import Binary, Break, Expr, For, Var, walk_statements

FARTHEST = 8
"""An index that is clamped by more than so much is not followed."""


class LoopKind(Enum):
    """Where a loop stands: the grid, between grid and threads, the threads, or inside a thread."""

    GRID = "grid"
    BLOCK = "block"
    THREAD = "thread"
    SERIAL = "serial"


class LoopRange(Struct, frozen=True):
    """A loop symbol and its range ``0 <= var < trips``; ``trips`` is ``None`` where it is no known polynomial.

    ``inside`` are constraints that hold of it besides.  ``dense`` is false where the symbol does not take every value
    that both allow.  ``low`` is the value of the program's loop variable at symbol 0, and ``step`` what it grows by
    when the symbol grows by one (less than 0 in a loop that counts down).
    """

    var: str
    trips: Polynomial | None
    kind: LoopKind
    dense: bool = True
    low: Polynomial = ZERO
    step: Polynomial = ONE
    inside: tuple[Constraint, ...] = ()

    @property
    def value(self) -> Polynomial:
        """The program's loop variable."""
        return self.low + self.step * Polynomial.symbol(self.var)

    def constraints(self) -> tuple[Constraint, ...]:
        """Return what holds of the symbol inside the loop."""
        if self.trips is None:
            return self.inside
        return (at_most(Polynomial.symbol(self.var) + 1, self.trips), *self.inside)

    def renamed(self, names: Mapping[str, Polynomial]) -> LoopRange:
        """Return the range in other symbols."""
        trips = None if self.trips is None else self.trips.substitute(names)
        inside = tuple(one.substitute(names) for one in self.inside)
        return replace(self, var=str(names.get(self.var, self.var)), trips=trips, inside=inside)


def all_run(loops: Sequence[LoopRange], prover: Prover) -> bool:
    """Say whether each of the loops, outermost first, is proved to run at least once in every iteration around it."""
    around: list[Constraint] = []
    for loop in loops:
        if loop.kind not in (LoopKind.GRID, LoopKind.THREAD):
            bounds = loop.constraints()
            if not loop.dense or not bounds:
                return False
            goal = [bound.substitute({loop.var: ZERO}) for bound in bounds]
            if not prover.proves(goal) and not (around and prover.with_premises(around).proves(goal)):
                return False
        around += loop.inside
    return True


class CountedRange(Struct, frozen=True):
    """The range of a counted loop; ``left_early`` where its conditions may end it before the range does."""

    range: LoopRange
    left_early: bool


def counted_range(scope: Scope, loop: For, kind: LoopKind) -> CountedRange | None:
    """Return the range of a counted loop, ``None`` where it has none."""
    view = counted_loop(loop)
    if view is None:
        return None
    step = scope.polynomial(view.step)
    if step is None or not _positive(scope, step):
        return None
    lows = extremum_of(scope, view.first, view.variable.type).as_kind("minimum" if view.down else "maximum")
    found = [_Reading(scope, loop, view, low, lows, step, kind).counted() for low in lows]
    ranges = [one for one in found if one is not None]
    return min(ranges, key=lambda one: _rank(scope, one.range.trips)) if ranges else None


def _positive(scope: Scope, step: Polynomial) -> bool:
    """Say whether a step is at least 1, every term of it: were it 0, the loop would not end."""
    if step.is_constant:
        return step.constant_value() >= 1
    return step.symbols <= scope.constants and all(c > 0 for c in step.terms().values())


def _rank(scope: Scope, trips: Polynomial | None) -> tuple[bool, int, int, str]:
    """Order trip counts: known ones first, constants, then those that no other loop changes."""
    if trips is None:
        return True, 0, 0, ""
    return False, len(trips.symbols - scope.constants), trips.degree, trips.text()


class _Reading(Struct):
    """Reads the conditions of one loop, its variable being ``low`` at first, the extremum of ``lows``."""

    scope: Scope
    loop: For
    view: CountedLoop
    low: Polynomial
    lows: tuple[Polynomial, ...]
    step: Polynomial
    kind: LoopKind

    def counted(self) -> CountedRange | None:
        name = self.view.variable.name
        step = -self.step if self.view.down else self.step
        # Where the start is one of several values, the variable is only known to go by ones from the one taken here.
        hull = len(self.lows) > 1 and self.step != ONE
        by = (-ONE if self.view.down else ONE) if hull else step
        value = self.low + by * Polynomial.symbol(name)
        inner = self.scope.copy()
        inner.bind(name, value)
        inner.ranges.enter(name, None)
        inside = [self._past(value, other) for other in self.lows if other != self.low]
        inner.ranges.assume(inside)
        bounding: list[tuple[Constraint, Polynomial | None, bool]] = []
        unknown = any(self._limits(condition) for condition in self.view.others)
        early = any(not self._limits(condition) for condition in self.view.others)
        for condition in self.view.conditions:
            constraints = self._constraints(inner, condition)
            if constraints is None:
                limits = self._limits(condition)
                early, unknown = early or not limits, unknown or limits
                continue
            for constraint in constraints:
                slack = constraint.room
                factor = slack.coefficient(name)
                if factor is not None and factor and _positive(self.scope, -factor):
                    trips, exact = self._trips(slack.without((name,)) + 1, -factor)
                    bounding.append((constraint, trips, exact))
                elif not inner.bounded(slack):
                    # What no iteration changes, or else what may end the loop at any time.
                    early = early or factor is None or bool(factor)
                    inside.append(constraint)
                inner.ranges.assume((constraint,))
        if not bounding and not unknown:
            return None
        if not self._stays(inner, value + by):
            return None
        bounding.sort(key=lambda one: _rank(self.scope, one[1]))
        trips = bounding[0][1] if bounding else None
        known = {bounding[0][0]} if bounding and bounding[0][2] else set()
        inside += [constraint for constraint, _, _ in bounding if constraint not in known]
        dense = not (hull or early or (unknown and bounding))
        range_ = LoopRange(name, trips, self.kind, dense, self.low, by, tuple(dict.fromkeys(inside)))
        return CountedRange(range_, early)

    def _past(self, value: Polynomial, other: Polynomial) -> Constraint:
        return at_most(value, other) if self.view.down else at_most(other, value)

    def _limits(self, condition: Expr) -> bool:
        """Say whether a condition, known or not, has the form of a bound in the direction in which the loop counts."""
        match condition:
            case Binary(op=op, left=Var(name=name)) if name == self.view.variable.name:
                return op in ("<", "<=") if not self.view.down else op in (">", ">=")
            case _:
                return False

    def _constraints(self, inner: Scope, condition: Expr) -> list[Constraint] | None:
        """Return constraints whose conjunction is the condition, ``None`` where it is not known to be one."""
        if not isinstance(condition, Binary) or condition.op not in MIRRORED:
            return None
        op, left, right = condition.op, condition.left, condition.right
        if not (left.type.integer and right.type.integer):
            return None
        if op in (">", ">="):
            op, left, right = MIRRORED[op], right, left
        compared = common_type(left.type, right.type)
        first, second = extremum_of(inner, left, compared), extremum_of(inner, right, compared)
        if op in ("!=", "=="):
            return self._unequal(condition) if first and second and op == "!=" else None
        join = less_than if op == "<" else at_most
        return [join(a, b) for a in first.as_kind("maximum") for b in second.as_kind("minimum")] or None

    def _unequal(self, condition: Binary) -> list[Constraint] | None:
        """Read ``k != end``: the variable does not step past the end, for it would run out of its type."""
        found = self.view.only_limit()
        if (
            found is None
            or len(self.lows) > 1
            or any(isinstance(stmt, Break) for stmt in walk_statements(self.loop.body))
        ):
            return None
        limit = found[1]
        compared = common_type(self.view.variable.type, limit.type)
        end = self.scope.converted(limit, compared)
        if end is None:
            return None
        name = self.view.variable.name
        value = self.low + (-self.step if self.view.down else self.step) * Polynomial.symbol(name)
        undefined = self.view.computed.signed and compared.signed and self.view.variable.type.size >= 4
        distance = self.low - end if self.view.down else end - self.low
        if not undefined and not (self.step == ONE and self.scope.bounded(distance)):
            return None
        return [less_than(end, value) if self.view.down else less_than(value, end)]

    def _trips(self, span: Polynomial, factor: Polynomial) -> tuple[Polynomial | None, bool]:
        """Return how many m satisfy ``factor*m < span``, and whether that is all that is to be said.

        A quotient may be known here alone: what it says is said besides.  Where there is none, a bound.
        """
        if factor == ONE:
            return span, True
        trips = self.scope.quotient("ceiling", span, factor)
        if trips is not None:
            return trips, trips.is_constant
        return (span, False) if factor.is_constant else (None, False)

    def _stays(self, inner: Scope, following: Polynomial) -> bool:
        """Say whether the variable stays within its type, the value that ends the loop included."""
        type_, computed = self.view.variable.type, self.view.computed
        if computed.signed and type_.holds(computed):
            return True  # C says so
        if self.view.down:
            return inner.within(following, type_, low=True)
        # By ones it comes to its limit before it leaves a type that holds the limit, and does not end otherwise.
        return self.view.unit or inner.within(following, type_, high=True)


def nearby(scope: Scope, value: Value, symbol: str) -> LoopRange | None:
    """Return how far a value lies from a polynomial, as a loop that runs for some numbers.

    ``max(i - 1, 0)`` with ``0 <= i`` is ``i - 1`` or one more.  A modular value leaves out some periods.  ``None`` if
    it may lie far from all operands.
    """
    if value.kind == "modular":
        low, period = value.operands
        turn = LoopRange(symbol, None, LoopKind.SERIAL, dense=False, low=low, step=-period)
        return replace(turn, inside=(at_most(0, turn.value), less_than(turn.value, period)))
    for operand in value.operands:
        for reach in range(1, FARTHEST + 1):
            apart = [other - operand if value.kind == "maximum" else operand - other for other in value.operands]
            if all(scope.bounded(one, None, reach) for one in apart if one):
                step = ONE if value.kind == "maximum" else -ONE
                trips = Polynomial.constant(reach + 1)
                return LoopRange(symbol, trips, LoopKind.SERIAL, dense=False, low=operand, step=step)
    return None
