"""Every access of a program to an array, with its indices as polynomials and the loops and conditions around it.

The walk evaluates integer scalars symbolically on the way: a scalar that is assigned in a loop, or differently in two
branches, is not known afterwards.  A serial loop variable that starts at ``low`` is ``low`` plus an iteration symbol of
the same name, so that every loop symbol starts at 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from metafork.algebra.polynomial import ZERO, Constraint, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.conditions import Meaning, meaning
from metafork.analysis.facts import Facts, Scope, assigned_scalars
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.program import (
    Assign,
    Barrier,
    Binary,
    BlockArray,
    Break,
    Call,
    Cast,
    Conditional,
    Continue,
    Declare,
    Element,
    Expr,
    FloatConst,
    For,
    If,
    IntConst,
    MetaFor,
    Phase,
    Program,
    Stmt,
    Unary,
    Var,
    While,
    binary,
)


class LoopKind(Enum):
    """Where a loop stands: the grid, between grid and threads, the threads, or inside a thread."""

    GRID = "grid"
    BLOCK = "block"
    THREAD = "thread"
    SERIAL = "serial"


@dataclass(frozen=True, slots=True)
class LoopRange:
    """A loop symbol and its range ``0 <= var < trips``; ``trips`` is ``None`` where it is no known polynomial.

    ``dense`` is false where the symbol does not take every value of its range.  ``low`` is the value of the program's
    loop variable at symbol 0, and ``step`` what it grows by when the symbol grows by one.
    """

    var: str
    trips: Polynomial | None
    kind: LoopKind
    dense: bool = True
    low: Polynomial = ZERO
    step: int = 1

    def constraints(self) -> tuple[Constraint, ...]:
        """Return what holds of the symbol inside the loop."""
        if self.trips is None:
            return ()
        return (at_most(Polynomial.symbol(self.var) + 1, self.trips),)


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that held (or, with ``truth`` false, did not) where an access stands, and what it says."""

    condition: Expr
    truth: bool
    meaning: Meaning

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What follows from it in any case."""
        return self.meaning.constraints

    @property
    def conjunction(self) -> bool:
        """Whether the constraints say all that the condition says."""
        return self.meaning.exact and not self.meaning.alternatives

    def holds(self, values: Mapping[str, int]) -> bool:
        """Say whether what is known of the condition holds at a point, which gives every symbol a value."""
        return all(
            any(all(constraint.holds(values) for constraint in case) for case in choice)
            for choice in self.meaning.choices
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """One access.  ``indices`` hold ``None`` where an index is no known polynomial.

    ``loops`` are the enclosing loops outside in, grid loops first; ``bounded`` is false inside a loop of unknown shape
    (``while``) or past a ``break``, where an access may be skipped for reasons that no guard shows.  ``phase`` numbers
    the phases in textual order, ``None`` at block level.  ``order`` numbers accesses in evaluation order.
    """

    element: Element
    indices: tuple[Polynomial | None, ...]
    reads: bool
    writes: bool
    loops: tuple[LoopRange, ...]
    guards: tuple[Guard, ...]
    bounded: bool
    phase: int | None
    order: int

    @property
    def array(self) -> str:
        """The name of the array."""
        return self.element.array

    def constraints(self) -> tuple[Constraint, ...]:
        """Return what holds where the access stands: ranges of loop symbols and guards."""
        ranges = tuple(c for loop in self.loops for c in loop.constraints())
        return ranges + tuple(c for guard in self.guards for c in guard.constraints)


def references(program: Program, facts: Facts) -> tuple[Reference, ...]:
    """Return the accesses of a program to arrays, in evaluation order."""
    return references_and_quotients(program, facts)[0]


def references_and_quotients(program: Program, facts: Facts) -> tuple[tuple[Reference, ...], tuple[DerivedSymbol, ...]]:
    """Return the accesses, and the symbols of quotients in conditions, which the facts do not define."""
    walk = ReferenceWalk(facts)
    found = tuple(walk.program(program))
    return found, tuple(walk.quotients[len(facts.derived) :])


def demanded(program: Program, facts: Facts, control: Collection[str]) -> list[Constraint]:
    """Return what would keep indices, bounds and conditions within their types, and the scalars ``control`` in them."""
    demands: list[Constraint] = []
    walk = ReferenceWalk(facts, demands, control)
    for _ in walk.program(program):
        pass
    return demands


def kept_within(program: Program, facts: Facts) -> Mapping[tuple[int, ScalarType], tuple[Expr, bool]]:
    """Say of expressions in indices, bounds, conditions and scalars whether they are shown to stay within types.

    The keys are the identity of an expression and a type; the values keep the expressions alive.
    """
    walk = ReferenceWalk(facts)
    kept = walk.watch(program)
    for _ in walk.program(program):
        pass
    return kept


def known_extent(scope: Scope, loop: MetaFor, kind: LoopKind) -> LoopRange:
    """Return the range of a ``meta_for``."""
    return LoopRange(loop.var, scope.polynomial(loop.extent), kind)


def extent_limits(scope: Scope, loop: MetaFor) -> tuple[Constraint, ...]:
    """Return what the types of a ``meta_for``'s extent and variable say: it counts up to its extent in them."""
    extent = scope.polynomial(loop.extent)
    if extent is None or extent.is_constant:
        return ()
    return (at_most(extent, min(loop.type.greatest, loop.extent.type.greatest)),)


def counted_range(scope: Scope, loop: For, kind: LoopKind) -> tuple[str, LoopRange] | None:
    """Return variable and range of a counted loop ``for (v = low; v < high; v += step)``, else ``None``.

    ``<=`` is understood too; ``step`` is a positive constant; the body must not assign the variable.
    """
    match loop:
        case For(
            init=Declare(name=name, type=type_, value=start)
            | Assign(target=Var(name=name, type=type_), op="", value=start),
            condition=Binary(op=("<" | "<=") as op, left=Var(name=tested), right=limit),
            step=Assign(target=Var(name=stepped), op="+", value=IntConst(value=step)),
        ) if start is not None and name == tested == stepped and step >= 1:
            pass
        case _:
            return None
    if name in assigned_scalars(loop.body):
        return None
    compared = common_type(type_, limit.type)
    low, high = scope.converted(start, type_), scope.converted(limit, compared)
    if low is None or scope.stored(low, type_, compared) is None:
        return None
    trips = None
    dense = True
    if high is not None:
        span = high - low + (1 if op == "<=" else 0)
        trips = span if step == 1 else scope.quotient("ceiling", span, Polynomial.constant(step))
        if trips is None:
            # Every value of the variable lies in the range, if not the other way round.
            trips, dense, step = span, False, 1
    return name, LoopRange(name, trips, kind, dense, low, step)


class ReferenceWalk:
    """One walk over a program; a fresh object each time."""

    def __init__(
        self, facts: Facts, demands: list[Constraint] | None = None, control: Collection[str] = frozenset()
    ) -> None:
        self._scope = Scope.of(facts, demands)
        self._demands = demands
        self._control = control
        self.quotients = self._scope.derived
        self._loops: list[LoopRange] = []
        self._guards: list[Guard] = []
        self._bounded = True
        self._phase: int | None = None
        self._phases = 0
        self._order = 0
        self._reassigned: frozenset[str] = frozenset()

    def watch(self, program: Program) -> Mapping[tuple[int, ScalarType], tuple[Expr, bool]]:
        """Take note of what stays within types, from the definitions of derived scalars on."""
        kept = self._scope.kept = {}
        for derived in program.derived:
            self._scope.converted(derived.definition, derived.type)
        return kept

    def program(self, program: Program) -> Iterator[Reference]:
        """Yield the accesses of a program, in evaluation order."""
        self._reassigned = assigned_scalars(program.body)
        for loop in program.grid:
            self._enter(known_extent(self._scope, loop, LoopKind.GRID), loop.var)
            self._scope.ranges.learn(extent_limits(self._scope, loop))
        yield from self._body(program.body)

    def _enter(self, loop: LoopRange, variable: str) -> None:
        self._loops.append(loop)
        value = Polynomial.symbol(loop.var) * loop.step + loop.low
        self._scope.values[variable] = value
        self._scope.ranges.enter(loop.var, loop.trips)

    def _body(self, body: tuple[Stmt, ...]) -> Iterator[Reference]:
        bounded, depth = self._bounded, len(self._loops)
        for stmt in body:
            yield from self._statement(stmt)
            if left_early((stmt,)):
                self._bounded = False
        del self._loops[depth:]
        self._bounded = bounded

    def _statement(self, stmt: Stmt) -> Iterator[Reference]:
        match stmt:
            case Declare(name=name, type=type_, value=value):
                if value is not None:
                    yield from self._reads(value)
                self._scope.values[name] = None if value is None else self._declared(name, type_, value)
            case Assign(target=target, op=op, value=value):
                yield from self._assignment(target, op, value)
            case If(condition=condition, then=then, otherwise=otherwise):
                yield from self._reads(condition)
                yield from self._branches(condition, then, otherwise)
            case For():
                yield from self._for(stmt)
            case While(condition=condition, body=body):
                yield from self._loop_of_unknown_shape(condition, body)
            case Phase(threads=threads, body=body):
                yield from self._threads(threads, body)
            case BlockArray() | Break() | Continue() | Barrier():
                return

    def _declared(self, name: str, type_: ScalarType, value: Expr) -> Polynomial | None:
        """Return the value of a scalar; a quotient of grid variables becomes a symbol of its own, alike for a block.

        So an index decoded from an enlarged grid (``p = pk / s, k = pk % s``) stays linear in what it is decoded to.
        """
        known = self._kept(name, type_, value)
        if known is not None or self._phase is not None or name in self._reassigned or type_.size < 4:
            return known
        if not (isinstance(value, Binary) and value.op in ("/", "%") and value.type.integer):
            return None
        left, right = self._scope.polynomial(value.left), self._scope.polynomial(value.right)
        if left is None or right is None or not right.symbols <= self._scope.constants:
            return None
        loops = [loop for loop in self._loops if loop.var in left.symbols]
        grid = {loop.var: loop for loop in self._loops if loop.kind is LoopKind.GRID}
        if not loops or any(loop.var not in grid for loop in loops) or any(c < 0 for c in left.terms().values()):
            return None
        trips: Polynomial | None = right
        if value.op == "/":
            # With 0 <= i < t, i/s lies below t/s where s divides t, and nothing is said otherwise.
            alone = loops[0].trips if left == Polynomial.symbol(loops[0].var) else None
            trips = None if alone is None else alone.divide_exactly(right)
        self._scope.ranges.enter(name, trips)
        symbol = self._scope.noted(value, type_, self._scope.stored(Polynomial.symbol(name), value.type, type_))
        if symbol is not None:
            self._loops.append(LoopRange(name, trips, LoopKind.GRID, dense=False))
        return symbol

    def _assignment(self, target: Var | Element, op: str, value: Expr) -> Iterator[Reference]:
        yield from self._reads(value)
        if isinstance(target, Element):
            for index in target.indices:
                yield from self._reads(index)
            yield self._reference(target, reads=bool(op), writes=True)
            return
        full = binary(op, target, value) if op else value
        self._scope.values[target.name] = self._kept(target.name, target.type, full)

    def _kept(self, name: str, type_: ScalarType, value: Expr) -> Polynomial | None:
        """Return the value that a scalar keeps; one that decides no access demands nothing of parameters."""
        if name not in self._control:
            self._scope.demands = None
        kept = self._scope.converted(value, type_)
        self._scope.demands = self._demands
        return kept

    def _threads(self, threads: tuple[MetaFor, ...], body: tuple[Stmt, ...]) -> Iterator[Reference]:
        outer = self._scope
        self._scope = outer.copy()
        self._phase = self._phases
        self._phases += 1
        for loop in threads:
            self._enter(known_extent(outer, loop, LoopKind.THREAD), loop.var)
            self._scope.ranges.learn(extent_limits(outer, loop))
        yield from self._body(body)
        del self._loops[len(self._loops) - len(threads) :]
        self._phase = None
        self._scope = outer

    def _branches(self, condition: Expr, then: tuple[Stmt, ...], otherwise: tuple[Stmt, ...]) -> Iterator[Reference]:
        before = self._scope
        ends: list[Mapping[str, Polynomial | None]] = []
        for truth, body in ((True, then), (False, otherwise)):
            self._scope = before.copy()
            self._guards.append(Guard(condition, truth, meaning(self._scope, condition, truth)))
            self._scope.ranges.assume(self._guards[-1].constraints)
            yield from self._body(body)
            self._guards.pop()
            ends.append(self._scope.values)
        self._scope = before
        assigned = assigned_scalars(then + otherwise)
        agreed = [name for name in assigned if ends[0].get(name) == ends[1].get(name)]
        before.values.update((name, ends[0].get(name)) for name in agreed)
        self._forget(then + otherwise, assigned.difference(agreed))

    def _forget(self, body: tuple[Stmt, ...], names: Iterable[str]) -> None:
        """Take note that some scalars, which ``body`` assigns, have values that are not known from here on."""
        self._scope.values.update(dict.fromkeys(names))

    def _for(self, loop: For) -> Iterator[Reference]:
        kind = LoopKind.BLOCK if self._phase is None else LoopKind.SERIAL
        if isinstance(loop.init, Declare | Assign) and loop.init.value is not None:
            yield from self._reads(loop.init.value)
        counted = counted_range(self._scope, loop, kind)
        if kind is LoopKind.BLOCK and left_early(loop.body):
            counted = None  # an iteration may end before what stands at its end, copies included
        self._forget(loop.body, assigned_scalars(loop.body))
        if counted is None:
            if loop.init is not None:
                name = loop.init.name if isinstance(loop.init, Declare) else _assigned_name(loop.init)
                if name:
                    self._scope.values[name] = None
            condition = loop.condition or IntConst(1)
            step = (loop.step,) if loop.step is not None else ()
            yield from self._loop_of_unknown_shape(condition, (*loop.body, *step))
            return
        variable, range_ = counted
        outer, bounded = self._scope, self._bounded
        self._scope = outer.copy()
        self._enter(range_, variable)
        if loop.condition is not None:
            yield from self._reads(loop.condition)
        if _breaks(loop.body):
            self._bounded = False  # iterations after the one that leaves do not happen
        yield from self._body(loop.body)
        self._bounded = bounded
        self._loops.pop()
        self._scope = outer
        outer.values[variable] = None

    def _loop_of_unknown_shape(self, condition: Expr, body: tuple[Stmt, ...]) -> Iterator[Reference]:
        bounded, self._bounded = self._bounded, False
        self._forget(body, assigned_scalars(body))
        outer = self._scope
        self._scope = outer.copy()
        yield from self._reads(condition)
        yield from self._body(body)
        self._scope = outer
        self._bounded = bounded

    def _reads(self, expr: Expr) -> Iterator[Reference]:
        match expr:
            case Element(indices=indices):
                for index in indices:
                    yield from self._reads(index)
                yield self._reference(expr, reads=True, writes=False)
            case Binary(op=("&&" | "||") as op, left=left, right=right):
                yield from self._reads(left)
                yield from self._guarded(left, op == "&&", right)
            case Conditional(condition=condition, then=then, otherwise=otherwise):
                yield from self._reads(condition)
                yield from self._guarded(condition, True, then)
                yield from self._guarded(condition, False, otherwise)
            case Binary(left=left, right=right):
                yield from self._reads(left)
                yield from self._reads(right)
            case Unary(operand=operand) | Cast(operand=operand):
                yield from self._reads(operand)
            case Call(arguments=arguments):
                for argument in arguments:
                    yield from self._reads(argument)
            case IntConst() | FloatConst() | Var():
                return

    def _guarded(self, condition: Expr, truth: bool, expr: Expr) -> Iterator[Reference]:
        outer = self._scope
        self._guards.append(Guard(condition, truth, meaning(outer, condition, truth)))
        self._scope = outer.copy()
        self._scope.ranges.assume(self._guards[-1].constraints)
        yield from self._reads(expr)
        self._scope = outer
        self._guards.pop()

    def _reference(self, element: Element, *, reads: bool, writes: bool) -> Reference:
        indices = tuple(self._scope.polynomial(index) for index in element.indices)
        self._order += 1
        return Reference(
            element,
            indices,
            reads,
            writes,
            tuple(self._loops),
            tuple(self._guards),
            self._bounded,
            self._phase,
            self._order,
        )


def left_early(body: tuple[Stmt, ...]) -> bool:
    """Say whether a ``break`` or ``continue`` belongs to the loop with this body."""
    return any(
        isinstance(stmt, Break | Continue)
        or (isinstance(stmt, If) and (left_early(stmt.then) or left_early(stmt.otherwise)))
        for stmt in body
    )


def _breaks(body: tuple[Stmt, ...]) -> bool:
    """Say whether a ``break`` belongs to the loop with this body."""
    return any(
        isinstance(stmt, Break)
        or (isinstance(stmt, If) and (_breaks(stmt.then) or _breaks(stmt.otherwise)))
        or (isinstance(stmt, Phase) and _breaks(stmt.body))
        for stmt in body
    )


def _assigned_name(stmt: Assign) -> str:
    return stmt.target.name if isinstance(stmt.target, Var) else ""
