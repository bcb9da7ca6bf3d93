"""global_loads: how many loads from global memory a thread executes for one block of the grid, a cost.

Counted on the kernel as it is lowered, copies into shared memory included, and never too low: a loop counts with its
trip count (the largest one, where outer loops change it), the loops by which all threads fill a window together with
elements / threads rounded up, an ``if`` with the greater of its branches, guards as if they held.  A loop of unknown
shape around a load makes the count not known.  What a compiler merges is not seen; ``cse`` merges it in the program.

A version with ``shuffle`` is counted on its PTX, as a warp runs it whose lanes are all there, in a launch that covers
the grid, away from the ends of rows of threads: the loads that no shuffle or register has replaced, on all branches
together.  Lanes at the ends of a warp or a row, warps that are not full, and launches with fewer blocks make their
original loads besides; they are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, assert_never

from evaluators.counter import CounterValue, NotKnown
from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.algebra.ranges import bounds
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.analysis.counted_loops import counted_loop
from metafork.analysis.extrema import extremum_of, upper_bounds
from metafork.analysis.facts import Facts, Scope, assigned_scalars
from metafork.analysis.loop_ranges import LoopKind, LoopRange, counted_range
from metafork.analysis.memory.block_memory import largest
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.ir_strategies import SHUFFLE, passes_of
from metafork.ir.kernel import Kernel, Space
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
    Phase,
    PrivateArray,
    Stmt,
    Unary,
    Var,
    Version,
    While,
    expressions_of,
    walk_expression,
    walk_statements,
)
from metafork.llvm.leaf_ptx import LeafPtx, covering_only, grid_loop, leaf_ptx, load_places
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import TargetError, emit_ptx, optimize
from metafork.lowering.lowering import CannotLowerError, lower
from metafork.ptx.text.source import PtxError


@dataclass(frozen=True, slots=True)
class GlobalLoads:
    """Loads from global memory of a thread and a block; accepted when at most the target ``L``."""

    name: str = "global_loads"
    kind: Literal["resource", "performance"] = "performance"
    symbol: str = "L"
    less_is_better: bool = True
    default_target: Fraction | None = Fraction(8)

    def evaluate(self, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
        """Return the loads as a polynomial in parameters and derived symbols."""
        return global_loads(version, analyses)


def global_loads(version: Version, analyses: Analyses) -> CounterValue | NotKnown:
    """Return the value of the counter."""
    return analyses.of(_global_loads, version)


def _global_loads(version: Version, analyses: Analyses) -> CounterValue | NotKnown:
    try:
        kernel = lower(version.program, version.program.name, analyses)
    except CannotLowerError as error:
        return NotKnown(f"no kernel: {error}")
    if SHUFFLE in version.ir_strategies:
        return _remaining(kernel, version, analyses)
    try:
        return _Count(kernel, analyses.facts(version.program)).value()
    except _UnknownCountError as reason:
        return NotKnown(str(reason))


def _remaining(kernel: Kernel, version: Version, analyses: Analyses) -> CounterValue | NotKnown:
    """Count the loads that stay on the way of launches that cover the grid, from the PTX."""
    try:
        code = analyses.of(ptx_of_version, version)
        straight = emit_ptx(optimize(module_text(covering_only(kernel)), passes_of(version.ir_strategies)))
        places, alone = load_places(code.plain), load_places(straight)
    except (TargetError, PtxError) as error:
        return NotKnown(f"no PTX to count: {error}")
    if places is None or alone is None:
        return NotKnown("the PTX has a cycle with two entries")
    if alone[1]:
        return NotKnown(
            "loads of its PTX stand in loops of a thread, and which of them shuffles replace is not counted"
        )
    if len(alone[0]) != len(places[0]):
        return NotKnown("its PTX does not part the launches that cover the grid from the others")
    assert code.report is not None
    replaced = {shuffle.span for shuffle in (*code.report.shuffles, *code.report.reuses)}
    return CounterValue(Polynomial.constant(len(places[0] - replaced)))


def ptx_of_version(version: Version, analyses: Analyses) -> LeafPtx:
    """Return the PTX of a version; to be asked for by ``analyses.of``.

    Raises ``CannotLowerError``, ``ExternalFunctionError`` and ``TargetError``.
    """
    return leaf_ptx(lower(version.program, version.program.name, analyses), version.ir_strategies)


class _UnknownCountError(Exception):
    """A kernel's loads cannot be counted; the message says why."""


class _Count:
    """One walk over a kernel; a fresh object each time."""

    def __init__(self, kernel: Kernel, facts: Facts) -> None:
        self._kernel = kernel
        self._facts = facts
        self._scope = Scope.of(facts)
        # Quotients by the number of threads are new facts here.
        self._scope.closed = False
        self._global = {memory.name for memory in kernel.memories if memory.space is Space.GLOBAL}
        self._loops: list[LoopRange] = []
        self._prover = Prover(facts.constraints, facts.derived)
        for scalar in kernel.host_scalars:
            if scalar.name not in self._scope.values:
                self._scope.values[scalar.name] = self._scope.polynomial(scalar.definition)
        for letter, extent in zip("xyz", kernel.block, strict=True):
            threads = self._scope.polynomial(extent)
            if threads is not None:
                self._scope.ranges.learn((at_most(threads, ScalarType.INT.greatest),))  # hardware has no such blocks
            self._scope.values[f"blockDim.{letter}"] = threads
            self._within(f"threadIdx.{letter}", threads)

    def value(self) -> CounterValue:
        """Return the count."""
        total = self._body(self._kernel.body)
        return CounterValue(total, derived=self._needed(total))

    def _needed(self, value: Polynomial) -> tuple[DerivedSymbol, ...]:
        """Return the derived symbols that a value is made of, in order of definition."""
        names = set(value.symbols)
        kept: list[DerivedSymbol] = []
        for symbol in reversed(self._scope.derived):
            if symbol.name in names or symbol in self._facts.derived:
                kept.insert(0, symbol)
                names |= {name for operand in symbol.operands for name in operand.symbols}
        return tuple(kept)

    def _within(self, name: str, trips: Polynomial | None) -> None:
        self._loops.append(LoopRange(name, trips, LoopKind.THREAD))
        self._scope.values[name] = Polynomial.symbol(name)
        self._scope.ranges.enter(name, trips)

    def _body(self, body: tuple[Stmt, ...]) -> Polynomial:
        total = ZERO
        for stmt in body:
            total = total + self._statement(stmt)
        return total

    def _statement(self, stmt: Stmt) -> Polynomial:
        match stmt:
            case Declare(name=name, type=type_, value=value):
                known = None if value is None else self._scope.converted(value, type_)
                if value is not None and known is None:
                    told = extremum_of(self._scope, value, type_) or upper_bounds(self._scope, value, type_)
                    self._scope.bind(name, known, told)
                else:
                    self._scope.bind(name, known)
                return ZERO if value is None else self._expression(value)
            case Assign(target=Var(name=name), value=value):
                self._scope.bind(name, None if stmt.op else self._scope.converted(value, stmt.target.type))
                return self._expression(value)
            case Assign(target=target, op=op, value=value):
                assert isinstance(target, Element)
                indices = self._sum(target.indices)
                own = ONE if op and target.array in self._global else ZERO
                return indices + own + self._expression(value)
            case If(condition=condition, then=then, otherwise=otherwise):
                total = self._expression(condition)
                counts = [self._branch(then), self._branch(otherwise)]
                self._forget(then + otherwise)
                return total + self._greater(*counts)
            case For():
                return self._for(stmt)
            case While():
                return self._uncounted(stmt)
            case Break() | Continue() | Barrier() | BlockArray() | PrivateArray():
                return ZERO
            case Phase():
                raise AssertionError("a phase in a kernel")
            case _:
                assert_never(stmt)

    def _branch(self, body: tuple[Stmt, ...]) -> Polynomial:
        before = self._scope
        self._scope = before.copy()
        count = self._body(body)
        self._scope = before
        return count

    def _forget(self, body: tuple[Stmt, ...]) -> None:
        for name in assigned_scalars(body):
            self._scope.values[name] = None

    def _greater(self, one: Polynomial, other: Polynomial) -> Polynomial:
        if not one or not other:
            return one + other
        return largest(self._prover, self._scope, [one, other])

    def _for(self, loop: For) -> Polynomial:
        if not self._loads(loop):
            self._forget((loop,))
            return ZERO
        self._forget(loop.body)
        found = grid_loop(loop)
        if found is not None:
            init, condition = found
            blocks = self._scope.polynomial(condition.right)
            counted_to = condition.right.operand if isinstance(condition.right, Cast) else condition.right
            if blocks is not None:
                self._scope.ranges.learn((at_most(blocks, counted_to.type.greatest),))
            self._within(init.name, blocks)
            return self._once(loop)
        trips = self._shared_trips(loop)
        if trips is None:
            counted = counted_range(self._scope, loop, LoopKind.SERIAL)
            if counted is None:
                return self._uncounted(loop)
            range_ = counted.range
            trips = self._most(range_.trips)
            values, loops = {counted.variable: range_.value}, [range_]
        else:
            values, loops = {}, []
        before = self._scope
        self._scope = before.copy()
        self._scope.values.update(values)
        for one in loops:
            self._scope.ranges.enter(one.var, one.trips)
        self._loops += loops
        each = self._body(loop.body) + self._loop_part(loop.condition) + self._loop_part(loop.step)
        first = self._loop_part(loop.init) + self._loop_part(loop.condition)
        del self._loops[len(self._loops) - len(loops) :]
        self._scope = before
        return trips * each + first

    def _once(self, loop: For) -> Polynomial:
        count = self._body(loop.body)
        self._loops.pop()
        return count

    def _loop_part(self, part: Expr | Stmt | None) -> Polynomial:
        if part is None:
            return ZERO
        exprs = expressions_of(part) if isinstance(part, Declare | Assign) else (part,)
        return self._sum(tuple(expr for expr in exprs if not isinstance(expr, Stmt)))

    def _shared_trips(self, loop: For) -> Polynomial | None:
        """Return the most iterations of a thread in a shared loop, ``i = thread; i < n; i += threads``."""
        view = counted_loop(loop)
        limit = None if view is None else view.only_limit()
        if view is None or limit is None or view.down or limit[0] != "<" or not _names_in(view.first, "threadIdx."):
            return None
        threads, ends = self._block_extent(view.step), upper_bounds(self._scope, limit[1])
        if threads is None or ends is None or not _names_in(view.step, "blockDim."):
            return None
        # One end that is the same in every block says most.
        extent = min(ends.operands, key=lambda one: len(one.symbols - self._scope.constants))
        widest = self._widest(extent)
        return None if widest is None else self._scope.quotient("ceiling", *_without_common(widest, threads))

    def _widest(self, value: Polynomial | None) -> Polynomial | None:
        """Return what a value is at most, whatever the loops around are; the least such where it is known."""
        if value is None:
            return None
        found = bounds(value, self._loops, self._prover, largest=True)
        return next((one for one in found if one.symbols <= self._scope.constants), None)

    def _block_extent(self, step: Expr) -> Polynomial | None:
        """Return a product of the block's extents: a block has 1,024 threads at most, so none of them wraps."""
        match step:
            case Cast(operand=operand):
                return self._block_extent(operand)
            case Binary(op="*", left=left, right=right):
                sides = self._block_extent(left), self._block_extent(right)
                return None if sides[0] is None or sides[1] is None else sides[0] * sides[1]
            case _:
                return self._scope.polynomial(step)

    def _most(self, trips: Polynomial | None) -> Polynomial:
        """Return the largest trip count over the enclosing loops, at least 0."""
        widest = self._widest(trips)
        if widest is None:
            raise _UnknownCountError("how often a loop around a load runs is no known polynomial")
        if self._prover.proves(at_most(ZERO, widest)):
            return widest
        return self._scope.extremum("maximum", (widest, ZERO))

    def _uncounted(self, loop: For | While) -> Polynomial:
        if self._loads(loop):
            raise _UnknownCountError("a loop of unknown shape stands around a load")
        self._forget((loop,))
        return ZERO

    def _loads(self, loop: For | While) -> bool:
        """Say whether a loop reads global memory at all."""
        for stmt in walk_statements((loop,)):
            stored = stmt.target if isinstance(stmt, Assign) and not stmt.op else None
            for expr in expressions_of(stmt):
                for part in walk_expression(expr):
                    if isinstance(part, Element) and part.array in self._global and part is not stored:
                        return True
        return False

    def _sum(self, exprs: tuple[Expr, ...]) -> Polynomial:
        total = ZERO
        for expr in exprs:
            total = total + self._expression(expr)
        return total

    def _expression(self, expr: Expr) -> Polynomial:
        match expr:
            case Element(array=array, indices=indices):
                return self._sum(indices) + (ONE if array in self._global else ZERO)
            case Conditional(condition=condition, then=then, otherwise=otherwise):
                branches = self._expression(then), self._expression(otherwise)
                return self._expression(condition) + self._greater(*branches)
            case Binary(left=left, right=right):
                return self._expression(left) + self._expression(right)
            case Unary(operand=operand) | Cast(operand=operand):
                return self._expression(operand)
            case Call(arguments=arguments):
                return self._sum(arguments)
            case IntConst() | FloatConst() | Var():
                return ZERO
            case _:
                assert_never(expr)


def _without_common(dividend: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Cancel the extents of the block, which are not zero, that occur as factors on both sides."""
    for name in sorted(divisor.symbols):
        factor = Polynomial.symbol(name)
        while (shorter := dividend.divide_exactly(factor)) and (smaller := divisor.divide_exactly(factor)):
            dividend, divisor = shorter, smaller
    return dividend, divisor


def _names_in(expr: Expr, prefix: str) -> bool:
    """Say whether an expression is made of built-in variables with this prefix, and of others of the device."""
    names = [part.name for part in walk_expression(expr) if isinstance(part, Var)]
    return any(name.startswith(prefix) for name in names) and all("." in name for name in names)


COUNTER = GlobalLoads()
