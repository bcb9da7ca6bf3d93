"""The accesses of a program with opaque values: indices that are polynomials once some integers have symbols.

Beside what ``references`` knows, the walk gives a symbol to

- a scalar between grid and threads whose value is not known: all threads of a block see one value of it; one that the
  host computes by operations on bits is their value;
- the rounds of a loop of any shape: what it adds to a scalar once a round, ``k += B``, makes that ``start + B*round``;
- quotients, remainders and operations on bits of loop variables (``metafork.analysis.values.opaque``).

The condition of a loop of any shape holds of what its body begins with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.symbols import DerivedSymbol, Value
from metafork.analysis.counted_loops import added
from metafork.analysis.reference_walk import ReferenceWalk
from metafork.analysis.references import Reference, left_early
from metafork.analysis.values.intervals import Interval, loop_intervals, never_grows, stored_interval
from metafork.analysis.values.loop_ranges import CountedRange
from metafork.analysis.values.opaque import OpaqueSymbols
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import assigned_variables
from metafork.ir.visitor import Body


def references_with_opaque(
    program: ir.Program, facts: Facts
) -> tuple[tuple[Reference, ...], tuple[DerivedSymbol, ...], OpaqueSymbols]:
    """Return the accesses, the quotients in conditions that the facts do not define, and the opaque values."""
    walk = OpaqueWalk(facts)
    walk.program(program)
    return tuple(walk.found), tuple(walk.quotients[len(facts.derived) :]), walk.opaque


class OpaqueWalk(ReferenceWalk):
    """One walk over a program; a fresh object each time."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.opaque = OpaqueSymbols()
        self._of_host = facts.opaque

    def program(self, program: ir.Program) -> None:
        """Find the accesses of a program."""
        for argument in program.values:
            if argument.type.integer and self.scope.values.get(argument.name) is None:
                low = None if argument.type.signed else 0
                self.scope.values[argument.name] = self.opaque.unknown(argument.name, once_a_block=False, low=low)
        self.scope.beyond = self.opaque
        for derived in program.derived:
            value = self.scope.converted(derived.definition, derived.type) if derived.name in self._of_host else None
            if value is not None:
                self.scope.values[derived.name] = value
        super().program(program)

    # --- scalars ----------------------------------------------------------------------------------------------

    def _declared(self, name: str, type_: ScalarType, value: ir.Expr) -> Polynomial | None:
        self.scope.beyond = None
        plain = super()._declared(name, type_, value)
        self.scope.beyond = self.opaque
        return self._kept(name, type_, value) if plain is None else plain

    def _kept(self, name: str, type_: ScalarType, value: ir.Expr) -> Polynomial | None:
        kept = super()._kept(name, type_, value)
        if kept is not None or self.scope.beyond is None:
            return kept
        return self._lost(name, type_, stored_interval(value, type_, self._interval))

    def _choose(self, name: str, choice: Value) -> None:
        if choice.kind == "modular":
            self.scope.bind(name, self.opaque.wrapped(self.scope, choice))
        else:
            super()._choose(name, choice)

    def _forget(self, body: Body, names: Iterable[str]) -> None:
        types = _types_of_assigned(body)
        start = {name: self._interval(ir.Var(name, types[name])) for name in names if types[name].integer}
        values = self.scope.values
        before = {name: values.get(name) for name in start}
        super()._forget(body, names)
        if self._phase is None:
            bounds = loop_intervals(body, start, self._interval)
            for name, interval in bounds.items():
                falls = interval[0] is not None and interval[0] >= 0 and never_grows(name, body)
                most = before[name] if falls else None
                values[name] = self._lost(name, types[name], interval, most)

    def _lost(
        self, name: str, type_: ScalarType, bounds: Interval | None, most: Polynomial | None = None
    ) -> Polynomial | None:
        """Return a symbol for a scalar that a block has, ``None`` for one of a thread."""
        if self._phase is not None or not type_.integer:
            return None
        low, high = bounds or (None, None)
        low = 0 if low is None and not type_.signed else low
        value = self.opaque.unknown(name, once_a_block=True, low=low, high=high, most=most)
        self.scope.ranges.assume(self.opaque.constraints(value))
        if most is not None:
            (symbol,) = value.symbols
            self.scope.ranges.enter(symbol, most + 1)
        return value

    def _interval(self, expr: ir.Expr) -> Interval:
        """Return what is known of the value of an expression here."""
        value = self.scope.polynomial(expr)
        if value is None:
            return (None if expr.type.signed else 0), None
        if value.is_constant:
            number = value.constant_value()
            return (int(number), int(number)) if number.denominator == 1 else (None, None)
        low = next((bound for bound in (1, 0) if self.scope.bounded(value, bound)), None)
        return low, (1 if self.scope.bounded(value, None, 1) else None)

    # --- loops ------------------------------------------------------------------------------------------------

    def _counts(self, counted: CountedRange, node: ir.For) -> bool:
        """Say whether a counted loop is one: what others add to scalars is known by their rounds."""
        return counted.range.dense and super()._counts(counted, node)

    def _added_each_round(
        self, condition: ir.Expr | None, body: Body, step: ir.Assign | None
    ) -> Mapping[str, tuple[Polynomial, Polynomial]]:
        """Return what a loop adds to scalars of known value once a round, whatever happens in it.

        In the body that is so at its end alone, where nothing leaves a round early.
        """
        last = () if step is None else (step,)
        everything = (*body, *last)
        inside = self.scope.copy()
        inside.beyond = None
        for name in _declared_or_assigned(everything):
            inside.bind(name, None)
        surely = last if left_early(body) else everything
        found: dict[str, tuple[Polynomial, Polynomial]] = {}
        for stmt in surely:
            match stmt:
                case ir.Assign(target=ir.Var(name=name, type=type_) as target, value=value) if type_.integer:
                    amount, down = added(name, stmt) or (target, False)
                    by = inside.polynomial(amount)
                    each = -by if down and by is not None else by
                case _:
                    continue
            before = self.scope.values.get(name)
            if each is None or before is None or not type_.holds(value.type):
                continue
            once = sum(_assigns(other, name) for other in ir.walk_statements(everything)) == 1
            if once and ((type_.signed and type_.size >= 4) or _stays(inside, before, each, condition, target)):
                found[name] = before, each
        return found


def _types_of_assigned(body: Body) -> Mapping[str, ScalarType]:
    targets = [stmt.target for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Assign)]
    return {target.name: target.type for target in targets if isinstance(target, ir.Var)}


def _declared_or_assigned(body: Body) -> Iterator[str]:
    yield from assigned_variables(body)
    yield from (stmt.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Declare))


def _assigns(stmt: ir.Stmt, name: str) -> bool:
    return isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Var) and stmt.target.name == name


def _stays(scope: Scope, before: Polynomial, each: Polynomial, condition: ir.Expr | None, target: ir.Var) -> bool:
    """Say whether ``while (x < high) x += each`` keeps an unsigned or narrow ``x`` within its type.

    ``x`` is the least at first, and below ``high`` before every step.
    """
    match condition:
        case ir.Binary(op=("<" | "<="), left=ir.Var(name=name), right=right) if name == target.name:
            high = scope.converted(right, target.type)
        case _:
            return False
    if high is None or target.type is not right.type:
        return False
    greatest = target.type.greatest
    return scope.bounded(before, 0, greatest) and scope.bounded(each) and scope.bounded(high + each, None, greatest)
