"""Every access of a program to an array, with its indices as polynomials and the loops and conditions around it.

What a thread does to arrays of its own is no access here: nothing else sees them, and nothing is known of their values.
Nor is a read of a table in constant memory, which nobody writes.

The walk evaluates integer scalars symbolically on the way: a scalar that is assigned in a loop, or differently in two
branches, is not known afterwards.  A serial loop variable that starts at ``low`` is ``low`` plus an iteration symbol of
the same name, so that every loop symbol starts at 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from metafork.algebra.polynomial import Constraint, Polynomial, at_most
from metafork.algebra.symbols import DerivedSymbol, Value
from metafork.analysis.references import Guard, Reference, breaks, left_early
from metafork.analysis.values.choices import chosen, value_of
from metafork.analysis.values.conditions import meaning
from metafork.analysis.values.loop_ranges import CountedRange, LoopKind, LoopRange, counted_range, nearby
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.atomic_updates import kind
from metafork.ir.rewriting import assigned_variables, private_arrays
from metafork.ir.visitor import Body, Visitor


def references(program: ir.Program, facts: Facts) -> tuple[Reference, ...]:
    """Return the accesses of a program to arrays, in evaluation order."""
    return references_and_quotients(program, facts)[0]


def references_and_quotients(
    program: ir.Program, facts: Facts
) -> tuple[tuple[Reference, ...], tuple[DerivedSymbol, ...]]:
    """Return the accesses, and the symbols of quotients in conditions, which the facts do not define."""
    walk = ReferenceWalk(facts)
    walk.program(program)
    return tuple(walk.found), tuple(walk.quotients[len(facts.derived) :])


def demanded(program: ir.Program, facts: Facts, control: Collection[str]) -> list[Constraint]:
    """Return what would keep indices, bounds and conditions within their types, and the scalars ``control`` in them."""
    demands: list[Constraint] = []
    ReferenceWalk(facts, demands, control).program(program)
    return demands


def kept_within(program: ir.Program, facts: Facts) -> Mapping[tuple[int, ScalarType], tuple[ir.Expr, bool]]:
    """Say of expressions in indices, bounds, conditions and scalars whether they are shown to stay within types.

    The keys are the identity of an expression and a type; the values keep the expressions alive.
    """
    walk = ReferenceWalk(facts)
    kept = walk.watch(program)
    walk.program(program)
    return kept


def known_extent(scope: Scope, loop: ir.MetaFor, kind: LoopKind) -> LoopRange:
    """Return the range of a ``meta_for``."""
    return LoopRange(loop.var, scope.polynomial(loop.extent), kind)


def extent_limits(scope: Scope, loop: ir.MetaFor) -> tuple[Constraint, ...]:
    """Return what the types of a ``meta_for``'s extent and variable say: it counts up to its extent in them."""
    extent = scope.polynomial(loop.extent)
    if extent is None or extent.is_constant:
        return ()
    return (at_most(extent, min(loop.type.greatest, loop.extent.type.greatest)),)


class ReferenceWalk(Visitor):
    """One walk over a program; a fresh object each time.  ``found`` are the accesses so far."""

    scope: Scope

    def __init__(
        self, facts: Facts, demands: list[Constraint] | None = None, control: Collection[str] = frozenset()
    ) -> None:
        self.scope = Scope.of(facts, demands)
        self.found: list[Reference] = []
        self._demands = demands
        self._control = control
        self.quotients = self.scope.derived
        self._loops: list[LoopRange] = []
        self._guards: list[Guard] = []
        self._bounded = True
        self._unsaid = 0
        """Reasons to leave an access out that no guard shows: jumps, and loops whose iterations are not known."""
        self._phase: int | None = None
        self._phases = 0
        self._rounds = 0
        self._stored: ir.Assign | None = None
        self._reassigned: frozenset[str] = frozenset()
        self._own: frozenset[str] = frozenset()

    def watch(self, program: ir.Program) -> Mapping[tuple[int, ScalarType], tuple[ir.Expr, bool]]:
        """Take note of what stays within types, from the definitions of derived scalars on."""
        kept = self.scope.kept = {}
        for derived in program.derived:
            self.scope.converted(derived.definition, derived.type)
        return kept

    def program(self, program: ir.Program) -> None:
        """Find the accesses of a program."""
        self._reassigned = assigned_variables(program.body)
        self._own = private_arrays(program.body) | {table.array.name for table in program.tables}
        self._enter_all(program.grid, LoopKind.GRID, self.scope)
        self.body(program.body)

    def _enter_all(self, loops: Iterable[ir.MetaFor], kind: LoopKind, outer: Scope) -> None:
        for loop in loops:
            self._enter(known_extent(outer, loop, kind))
            self.scope.ranges.learn(extent_limits(outer, loop))

    def _enter(self, loop: LoopRange) -> None:
        self._loops.append(loop)
        self.scope.bind(loop.var, loop.value)
        self.scope.ranges.enter(loop.var, loop.trips)
        self.scope.ranges.assume(loop.inside)

    @contextmanager
    def _inside(self, scope: Scope) -> Iterator[None]:
        """Visit something in a scope; what is known around it is known again behind it."""
        around = self.scope, self._bounded, self._unsaid
        loops, guards = len(self._loops), len(self._guards)
        self.scope = scope
        yield
        self.scope, self._bounded, self._unsaid = around
        del self._loops[loops:], self._guards[guards:]

    def _hold(self, condition: ir.Expr, truth: bool, *, lasts: bool = False) -> None:
        self._guards.append(Guard(condition, truth, meaning(self.scope, condition, truth), lasts))
        self.scope.ranges.assume(self._guards[-1].constraints)

    def body(self, body: Body) -> None:
        """Visit statements, of which each knows the jumps before it."""
        with self._inside(self.scope):
            for stmt in body:
                stays = self._stays(stmt)
                self.statement(stmt)
                if left_early((stmt,)):
                    self._bounded = False
                    self._unsaid += 0 if stays else 1
                if any(one.lasts for one in stays):
                    self._unsaid -= breaks((stmt,))
                self._guards += stays

    def _stays(self, stmt: ir.Stmt) -> list[Guard]:
        """Return the guard of what follows ``if (c) break;`` or ``if (c) continue;``: that ``c`` did not hold."""
        condition: ir.Expr | None = None
        while True:
            match stmt:
                case ir.If(condition=here, then=(*_, ir.Break() | ir.Continue() as leaves), otherwise=()):
                    condition = here if condition is None else ir.binary("&&", condition, here)
                    return [
                        Guard(condition, False, meaning(self.scope, condition, False), isinstance(leaves, ir.Break))
                    ]
                case ir.If(condition=here, then=(ir.If() as stmt,), otherwise=()):
                    condition = here if condition is None else ir.binary("&&", condition, here)
                case _:
                    return []

    def extent(self, expr: ir.Expr) -> None:
        """Pass over an extent: it reads no memory."""

    # --- scalars ----------------------------------------------------------------------------------------------

    def declare(self, node: ir.Declare) -> None:
        """Visit the declaration of a scalar."""
        name, type_, value = node.name, node.type, node.value
        if value is None:
            self.scope.bind(name, None)
            return
        self.expression(value)
        choice = value_of(self.scope, value, type_)
        self.scope.bind(name, self._declared(name, type_, value), choice)

    def _declared(self, name: str, type_: ScalarType, value: ir.Expr) -> Polynomial | None:
        """Return the value of a scalar; a quotient of grid variables becomes a symbol of its own, alike for a block.

        So an index decoded from an enlarged grid (``p = pk / s, k = pk % s``) stays linear in what it is decoded to.
        """
        known = self._kept(name, type_, value)
        if known is not None or self._phase is not None or name in self._reassigned or type_.size < 4:
            return known
        if not (isinstance(value, ir.Binary) and value.op in ("/", "%") and value.type.integer):
            return None
        left, right = self.scope.polynomial(value.left), self.scope.polynomial(value.right)
        if left is None or right is None or not right.symbols <= self.scope.constants:
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
        self.scope.ranges.enter(name, trips)
        symbol = self.scope.noted(value, type_, self.scope.stored(Polynomial.symbol(name), value.type, type_))
        if symbol is not None:
            self._loops.append(LoopRange(name, trips, LoopKind.GRID, dense=False))
        return symbol

    def assign(self, node: ir.Assign) -> None:
        """Visit an assignment."""
        self.expression(node.value)
        if isinstance(node.target, ir.Element):
            self._stored = node
            self.target(node.target)
            self._stored = None
            return
        full = ir.binary(node.op, node.target, node.value) if node.op else node.value
        name, type_ = node.target.name, node.target.type
        choice = value_of(self.scope, full, type_)
        self.scope.bind(name, self._kept(name, type_, full), choice)

    def _kept(self, name: str, type_: ScalarType, value: ir.Expr) -> Polynomial | None:
        """Return the value that a scalar keeps; one that decides no access demands nothing of parameters."""
        if name not in self._control:
            self.scope.demands = None
        kept = self.scope.converted(value, type_)
        self.scope.demands = self._demands
        return kept

    def _choose(self, name: str, choice: Value) -> None:
        """Take note of what is known of a scalar without a polynomial."""
        self.scope.bind(name, None, choice)

    def _forget(self, body: Body, names: Iterable[str]) -> None:
        """Take note that some scalars, which ``body`` assigns, have values that are not known from here on."""
        for name in names:
            self.scope.bind(name, None)

    # --- control ----------------------------------------------------------------------------------------------

    def phase(self, node: ir.Phase) -> None:
        """Visit a phase."""
        outer = self.scope
        with self._inside(outer.copy()):
            self._phase = self._phases
            self._phases += 1
            self._enter_all(node.threads, LoopKind.THREAD, outer)
            self.body(node.body)
        self._phase = None

    def branch(self, node: ir.If) -> None:
        """Visit an ``if``."""
        self.expression(node.condition)
        before, condition = self.scope, node.condition
        ends: list[Scope] = []
        for truth, body in ((True, node.then), (False, node.otherwise)):
            with self._inside(before.copy()):
                self._hold(condition, truth)
                self.body(body)
                ends.append(self.scope)
        changing = node.then + node.otherwise
        merged = {name: _merged(before, condition, name, *ends) for name in assigned_variables(changing)}
        for name, value in merged.items():
            if value.known:
                before.bind(name, value.operands[0])
        self._forget(changing, [name for name, value in merged.items() if not value.known])
        for name, value in merged.items():
            if value and not value.known:
                self._choose(name, value)

    def loop(self, node: ir.For) -> None:
        """Visit a ``for``."""
        kind = LoopKind.BLOCK if self._phase is None else LoopKind.SERIAL
        counted = counted_range(self.scope, node, kind)
        if counted is None or not self._counts(counted, node):
            if node.init is not None:
                self.statement(node.init)
            self._rounds_of(node.condition, node.body, node.step)
            return
        if node.init is not None and node.init.value is not None:
            self.expression(node.init.value)
        self._forget(node.body, assigned_variables(node.body))
        with self._inside(self.scope.copy()):
            self._enter(counted.range)
            if node.condition is not None:
                self._tested(node.condition)
            if counted.left_early or breaks(node.body):
                self._bounded = False  # iterations after the one that leaves do not happen
            self._unsaid += counted.left_early + breaks(node.body)
            self.body(node.body)
        self.scope.bind(counted.range.var, None)

    def _counts(self, counted: CountedRange, node: ir.For) -> bool:
        """Say whether a counted loop is one; in one of a block no iteration ends before copies at its end."""
        return counted.range.kind is not LoopKind.BLOCK or not (counted.left_early or left_early(node.body))

    def _tested(self, condition: ir.Expr) -> None:
        """Visit the condition of a counted loop."""
        self.expression(condition)

    def repeat(self, node: ir.While) -> None:
        """Visit a ``while``."""
        self._rounds_of(node.condition, node.body, None)

    def _rounds_of(self, condition: ir.Expr | None, body: Body, step: ir.Assign | None) -> None:
        """Visit a loop of any shape, in whose rounds ``body`` and then ``step`` run while ``condition`` holds."""
        everything = body if step is None else (*body, step)
        added = self._added_each_round(condition, body, step)
        self._forget(everything, assigned_variables(everything))
        with self._inside(self.scope.copy()):
            if added:
                self._rounds += 1
                kind = LoopKind.BLOCK if self._phase is None else LoopKind.SERIAL
                self._loops.append(LoopRange(f"round {self._rounds}", None, kind))
                self.scope.ranges.enter(self._loops[-1].var, None)
                for name, (before, each) in added.items():
                    self.scope.values[name] = before + each * Polynomial.symbol(self._loops[-1].var)
            self._bounded = False
            self._unsaid += 1
            with self._inside(self.scope):
                if condition is not None:
                    self.expression(condition)
                    self._hold(condition, True, lasts=True)
                self._unsaid += breaks(body) - 1
                self.body(body)
            if step is not None:
                self.statement(step)

    def _added_each_round(
        self, condition: ir.Expr | None, body: Body, step: ir.Assign | None
    ) -> Mapping[str, tuple[Polynomial, Polynomial]]:
        """Return the values of scalars in front of a loop, with what each round adds to them; none where not known."""
        return {}

    # --- expressions ------------------------------------------------------------------------------------------

    def binary(self, node: ir.Binary) -> None:
        """Visit an operation; the right side of ``&&`` and ``||`` is evaluated on a condition."""
        self.expression(node.left)
        if node.op in ir.LOGICAL:
            self._guarded(node.left, node.op == "&&", node.right)
        else:
            self.expression(node.right)

    def conditional(self, node: ir.Conditional) -> None:
        """Visit ``condition ? then : otherwise``."""
        self.expression(node.condition)
        self._guarded(node.condition, True, node.then)
        self._guarded(node.condition, False, node.otherwise)

    def _guarded(self, condition: ir.Expr, truth: bool, expr: ir.Expr) -> None:
        with self._inside(self.scope.copy()):
            self._hold(condition, truth)
            self.expression(expr)

    def element(self, node: ir.Element, number: int) -> None:
        """Find an access."""
        if node.array in self._own:
            return
        indices: list[Polynomial | None] = []
        distances: dict[int, LoopRange] = {}
        turns: dict[int, LoopRange] = {}
        for axis, index in enumerate(node.indices):
            value = value_of(self.scope, index)
            near = None if value.known else nearby(self.scope, value, f"{node.array} {number}.{axis}")
            if near is not None:
                (turns if value.kind == "modular" else distances)[axis] = near
            indices.append(value.operands[0] if value.known else None if near is None else near.value)
        stored = self._stored if self._stored is not None and node is self._stored.target else None
        self.found.append(
            Reference(
                node,
                tuple(indices),
                stored is None or bool(stored.op),
                stored is not None,
                (*self._loops, *distances.values(), *turns.values()),
                tuple(self._guards),
                self._bounded,
                self._phase,
                number,
                tuple(distances),
                tuple(turns),
                "" if stored is None else kind(stored),
                not self._unsaid,
            )
        )


def _merged(scope: Scope, condition: ir.Expr, name: str, then: Scope, otherwise: Scope) -> Value:
    """Return what a scalar is after two branches, at the end of which it has the values of two scopes."""
    first, second = then.bound(name), otherwise.bound(name)
    return first if first == second else chosen(scope, condition, first, second)
