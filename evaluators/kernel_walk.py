"""What a thread executes of a kernel, as a polynomial: one walk over the kernel as it is lowered.

A loop counts with its trip count (the largest one, where outer loops change it), an ``if`` with the greater of its
branches, guards as if they held; a loop of unknown shape makes the count not known.  Where several elements may go by
one access, they count one by one.  What an access, an operation or a barrier counts, a subclass says; so also how a
loop counts in which the threads of a block share the work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import assert_never

from msgspec.structs import replace

from metafork.algebra.polynomial import ZERO, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.algebra.ranges import bounds
from metafork.algebra.symbols import UNKNOWN, DerivedSymbol
from metafork.analysis.counted_loops import counted_loop
from metafork.analysis.memory.block_memory import largest
from metafork.analysis.values.choices import extremum_of, upper_bounds
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange, counted_range
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import OFFSET, Kernel, Space
from metafork.ir.rewriting import assigned_variables, map_body
from metafork.llvm.leaf_ptx import grid_loop


class UnknownCountError(Exception):
    """A kernel cannot be counted; the message says why."""


class KernelWalk(ABC):
    """One walk over a kernel; a fresh object each time.

    ``in_global_memory`` are the names of its memories there, ``scope`` what is known of scalars where the walk is.
    """

    def __init__(self, kernel: Kernel, facts: Facts) -> None:
        self.kernel = replace(kernel, body=map_body(kernel.body, _plain_index))
        self._facts = facts
        self.scope = Scope.of(facts)
        # Quotients by the number of threads are new facts here.
        self.scope.closed = False
        self.in_global_memory = {memory.name for memory in kernel.memories if memory.space is Space.GLOBAL}
        self._loops: list[LoopRange] = []
        self.prover = Prover(facts.constraints, facts.derived)
        for scalar in kernel.host_scalars:
            if scalar.name not in self.scope.values:
                self.scope.values[scalar.name] = self.scope.polynomial(scalar.definition)
        for letter, extent in zip("xyz", kernel.block, strict=True):
            threads = self.scope.polynomial(extent)
            if threads is not None:
                self.scope.ranges.learn((at_most(threads, ScalarType.INT.greatest),))  # hardware has no such blocks
            self.scope.values[f"blockDim.{letter}"] = threads
            self._within(f"threadIdx.{letter}", threads)

    @abstractmethod
    def access(self, element: ir.Element, *, stored: bool) -> Polynomial:
        """Return what an access counts; ``x += y`` has one of each kind."""

    def operation(self, expr: ir.Expr) -> Polynomial:
        """Return what an operation counts, its operands apart."""
        return ZERO

    def barrier(self) -> Polynomial:
        """Return what a barrier counts."""
        return ZERO

    def repeated(self, trips: Polynomial, body: Callable[[], Polynomial]) -> Polynomial:
        """Return what a loop counts that runs ``trips`` times."""
        return trips * body()

    def together(self, extent: Polynomial, threads: Polynomial, body: Callable[[], Polynomial]) -> Polynomial:
        """Return what a loop counts in which so many threads share ``extent`` iterations: those of the busiest one."""
        trips = self.scope.quotient("ceiling", *_without_common(extent, threads))
        if trips is None:
            raise UnknownCountError("how often a loop around a load runs is no known polynomial")
        return trips * body()

    def matters(self, loop: ir.For | ir.While) -> bool:
        """Say whether there is anything to be counted in a loop."""
        return True

    def greater(self, one: Polynomial, other: Polynomial) -> Polynomial:
        """Return the greater of two counts."""
        return largest(self.prover, self.scope, [one, other])

    def total(self) -> Polynomial:
        """Return the count of the kernel.  Raises ``UnknownCountError``."""
        return self._body(self.kernel.body)

    def needed(self, value: Polynomial) -> tuple[DerivedSymbol, ...]:
        """Return the derived symbols that a value is made of, in order of definition."""
        names = set(value.symbols)
        kept: list[DerivedSymbol] = []
        for symbol in reversed(self.scope.derived):
            if symbol.name in names or symbol in self._facts.derived:
                kept.insert(0, symbol)
                names |= {name for operand in symbol.operands for name in operand.symbols}
        return tuple(kept)

    def _within(self, name: str, trips: Polynomial | None) -> None:
        self._loops.append(LoopRange(name, trips, LoopKind.THREAD))
        self.scope.values[name] = Polynomial.symbol(name)
        self.scope.ranges.enter(name, trips)

    def _body(self, body: tuple[ir.Stmt, ...]) -> Polynomial:
        total = ZERO
        for stmt in body:
            total = total + self._statement(stmt)
        return total

    def _statement(self, stmt: ir.Stmt) -> Polynomial:
        match stmt:
            case ir.Declare(name=name, type=type_, value=value):
                known = None if value is None else self.scope.converted(value, type_)
                told = UNKNOWN
                if value is not None and known is None:
                    told = extremum_of(self.scope, value, type_) or upper_bounds(self.scope, value, type_)
                self.scope.bind(name, known, told)
                return ZERO if value is None else self._expression(value)
            case ir.Assign(target=ir.Var(name=name), value=value):
                self.scope.bind(name, None if stmt.op else self.scope.converted(value, stmt.target.type))
                return self._expression(value) + (self.operation(stmt.target) if stmt.op else ZERO)
            case ir.Assign(target=target, op=op, value=value):
                assert isinstance(target, ir.Element)
                indices = self.index(target.indices)
                if op:
                    indices = indices + self.access(target, stored=False) + self.operation(target)
                total = indices + self._expression(value)
                return total + self.access(target, stored=True)
            case ir.If(condition=condition, otherwise=otherwise, widened=True):
                return self._expression(condition) + self.branch(otherwise)
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                total = self._expression(condition)
                counts = [self.branch(then), self.branch(otherwise)]
                self._forget(then + otherwise)
                return total + self._greater(*counts)
            case ir.For():
                return self._for(stmt)
            case ir.While():
                return self._uncounted(stmt)
            case ir.Barrier():
                return self.barrier()
            case ir.Break() | ir.Continue() | ir.BlockArray() | ir.PrivateArray():
                return ZERO
            case ir.Phase():
                raise AssertionError("a phase in a kernel")
            case _:
                assert_never(stmt)

    def branch(self, body: tuple[ir.Stmt, ...]) -> Polynomial:
        """Return what one side of an ``if`` counts."""
        before = self.scope
        self.scope = before.copy()
        count = self._body(body)
        self.scope = before
        return count

    def _running(self, body: tuple[ir.Stmt, ...]) -> dict[str, Polynomial]:
        """Return scalars that a body advances once, by the same in all threads: what they were, and an unknown more."""
        found: dict[str, Polynomial] = {}
        everywhere = [one.target for one in ir.walk_statements(body) if isinstance(one, ir.Assign)]
        for stmt in body:
            match stmt:
                case ir.Assign(target=ir.Var(name=name) as target, op="+" | "-") if everywhere.count(target) == 1:
                    before, by = self.scope.values.get(name), self.scope.polynomial(stmt.value)
                    if before is not None and by is not None and by.symbols <= self.scope.constants:
                        found[name] = before + Polynomial.symbol(f"{name} so far")
                case _:
                    pass
        return found

    def _forget(self, body: tuple[ir.Stmt, ...]) -> None:
        for name in assigned_variables(body):
            self.scope.values[name] = None

    def _greater(self, one: Polynomial, other: Polynomial) -> Polynomial:
        if not one or not other:
            return one + other
        return self.greater(one, other)

    def _for(self, loop: ir.For) -> Polynomial:
        if not self.matters(loop):
            self._forget((loop,))
            return ZERO
        running = self._running(loop.body)
        self._forget(loop.body)
        self.scope.values.update(running)
        found = grid_loop(loop)
        if found is not None:
            init, condition = found
            blocks = self.scope.polynomial(condition.right)
            counted_to = condition.right.operand if isinstance(condition.right, ir.Cast) else condition.right
            if blocks is not None:
                self.scope.ranges.learn((at_most(blocks, counted_to.type.greatest),))
            self._within(init.name, blocks)
            return self._once(loop)
        shared = self._shared(loop)
        if shared is not None:
            variable, extent, threads = shared
            return self._loop(loop, {variable: None}, [], lambda body: self.together(extent, threads, body))
        counted = counted_range(self.scope, loop, LoopKind.SERIAL)
        if counted is None:
            return self._uncounted(loop)
        range_ = counted.range
        trips = self._most(range_.trips)
        values = {range_.var: range_.value}
        return self._loop(loop, values, [range_], lambda body: self.repeated(trips, body))

    def _loop(
        self,
        loop: ir.For,
        values: Mapping[str, Polynomial | None],
        loops: list[LoopRange],
        repeat: Callable[[Callable[[], Polynomial]], Polynomial],
    ) -> Polynomial:
        before = self.scope
        self.scope = before.copy()
        self.scope.values.update(values)
        for one in loops:
            self.scope.ranges.enter(one.var, one.trips)
        self._loops += loops
        total = repeat(lambda: self._body(loop.body) + self._loop_part(loop.condition) + self._loop_part(loop.step))
        total = total + self._loop_part(loop.init) + self._loop_part(loop.condition)
        del self._loops[len(self._loops) - len(loops) :]
        self.scope = before
        return total

    def _once(self, loop: ir.For) -> Polynomial:
        count = self._body(loop.body)
        self._loops.pop()
        return count

    def _loop_part(self, part: ir.Expr | ir.Stmt | None) -> Polynomial:
        if part is None:
            return ZERO
        exprs = ir.expressions_of(part) if isinstance(part, ir.Declare | ir.Assign) else (part,)
        return self._sum(tuple(expr for expr in exprs if not isinstance(expr, ir.Stmt)))

    def _shared(self, loop: ir.For) -> tuple[str, Polynomial, Polynomial] | None:
        """Return variable, most iterations and threads of a shared loop, ``i = thread; i < n; i += threads``."""
        view = counted_loop(loop)
        limit = None if view is None else view.only_limit()
        if view is None or limit is None or view.down or limit[0] != "<" or not _names_in(view.first, "threadIdx."):
            return None
        threads, ends = self._block_extent(view.step), upper_bounds(self.scope, limit[1])
        if threads is None or not ends or not _names_in(view.step, "blockDim."):
            return None
        # One end that is the same in every block says most.
        extent = min(ends.operands, key=lambda one: len(one.symbols - self.scope.constants))
        widest = self._widest(extent)
        return None if widest is None else (view.variable.name, widest, threads)

    def _widest(self, value: Polynomial | None) -> Polynomial | None:
        """Return what a value is at most, whatever the loops around are; the least such where it is known."""
        if value is None:
            return None
        found = bounds(value, self._loops, self.prover, largest=True)
        return next((one for one in found if one.symbols <= self.scope.constants), None)

    def _block_extent(self, step: ir.Expr) -> Polynomial | None:
        """Return a product of the block's extents: a block has 1,024 threads at most, so none of them wraps."""
        match step:
            case ir.Cast(operand=operand):
                return self._block_extent(operand)
            case ir.Binary(op="*", left=left, right=right):
                sides = self._block_extent(left), self._block_extent(right)
                return None if sides[0] is None or sides[1] is None else sides[0] * sides[1]
            case _:
                return self.scope.polynomial(step)

    def _most(self, trips: Polynomial | None) -> Polynomial:
        """Return the largest trip count over the enclosing loops, at least 0."""
        widest = self._widest(trips)
        if widest is None:
            raise UnknownCountError("how often a loop around a load runs is no known polynomial")
        if self.prover.proves(at_most(ZERO, widest)):
            return widest
        return self.scope.extremum("maximum", (widest, ZERO))

    def _uncounted(self, loop: ir.For | ir.While) -> Polynomial:
        if self.matters(loop):
            raise UnknownCountError("a loop of unknown shape stands around a load")
        self._forget((loop,))
        return ZERO

    def index(self, indices: tuple[ir.Expr, ...]) -> Polynomial:
        """Return what an index counts."""
        return self._sum(indices)

    def _sum(self, exprs: tuple[ir.Expr, ...]) -> Polynomial:
        total = ZERO
        for expr in exprs:
            total = total + self._expression(expr)
        return total

    def _expression(self, expr: ir.Expr) -> Polynomial:
        match expr:
            case ir.Element(indices=indices):
                return self.index(indices) + self.access(expr, stored=False)
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                branches = self._expression(then), self._expression(otherwise)
                return self._expression(condition) + self._greater(*branches) + self.operation(expr)
            case _:
                operands = ir.subexpressions(expr)
                return self._sum(operands) + self.operation(expr) if operands else ZERO


def _without_common(dividend: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Cancel the extents of the block, which are not zero, that occur as factors on both sides."""
    for name in sorted(divisor.symbols):
        factor = Polynomial.symbol(name)
        while (shorter := dividend.divide_exactly(factor)) and (smaller := divisor.divide_exactly(factor)):
            dividend, divisor = shorter, smaller
    return dividend, divisor


def _names_in(expr: ir.Expr, prefix: str) -> bool:
    """Say whether an expression is made of built-in variables with this prefix, and of others of the device."""
    names = [part.name for part in ir.walk_expression(expr) if isinstance(part, ir.Var)]
    return any(name.startswith(prefix) for name in names) and all("." in name for name in names)


def _plain_index(expr: ir.Expr) -> ir.Expr | None:
    """Replace the function that gives an index its type by the index."""
    match expr:
        case ir.Call(name=name, arguments=(index,)) if name == OFFSET:
            return ir.Cast(expr.type, index)
        case _:
            return None
