"""Speculation: conditions that are left out around sums of a thread, which nobody reads where they do not hold.

``before --> after``, where ``sums`` are registers, and windows of ``a`` and ``b`` lie in shared memory::

    if (i < n && j < n)
      sums[y][w] += shared_a[..] * shared_b[..];     -->     sums[y][w] += shared_a[..] * shared_b[..];
    ...                                                      ...
    if (i < n && j < n)                                      if (i < n && j < n)
      c[i][j] = sums[y][w];                                    c[i][j] = sums[y][w];

So a tile at the end of an array takes no path of its own.

Legality.  What is computed in vain reads elements within its windows, which are memory of the block whatever they hold,
and registers; it stores to registers of the thread alone.  It computes with floating numbers: there is no division that
traps and no overflow.  Every other read of such a register stands behind the same condition on the same element, so
that what was computed in vain is never read: the condition is a function of the element and of what is the same in all
phases of the block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metafork.algebra.polynomial import Constraint, Polynomial
from metafork.algebra.prover import Prover
from metafork.analysis.delinearization import coordinates
from metafork.analysis.memory.block_memory import PathPlan
from metafork.analysis.memory.private_windows import PrivateWindow, digits_of, thread_renaming
from metafork.analysis.memory.windows import Window
from metafork.analysis.references import Guard, Reference
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.ir import program as ir
from metafork.ir.visitor import Visitor


def left_out(plan: PathPlan, prover: Prover) -> frozenset[int]:
    """Return the ``id``s of the conditions of a path's threads that are left out, those in them too."""
    own = {one.number: window for window in plan.private if window.of_block for one in window.references}
    if not own:
        return frozenset()
    held = {one.number: each.window for each in plan.windows for one in each.window.references}
    found = _LeftOut(plan.references, own, held, prover)
    found.body(plan.program.body)
    return frozenset(found.left_out)


class _LeftOut(Visitor):
    def __init__(
        self,
        references: Sequence[Reference],
        own: Mapping[int, PrivateWindow],
        held: Mapping[int, Window],
        prover: Prover,
    ) -> None:
        self._references, self._own, self._held, self._prover = references, own, held, prover
        self.left_out: set[int] = set()

    def element(self, node: ir.Element, number: int) -> None:
        """Do nothing: a visitor that has a method for elements counts them."""

    def branch(self, node: ir.If) -> None:
        before = self.elements
        self.expression(node.condition)
        start = self.elements
        self.body(node.then)
        inside = [one for one in self._references if start <= one.number < self.elements]
        if (
            start == before
            and not node.otherwise
            and all(map(_is_harmless, node.then))
            and self._runs_in_vain(node, inside)
        ):
            self.left_out |= {id(one) for one in ir.walk_statements((node,)) if isinstance(one, ir.If)}
        self.body(node.otherwise)

    def _runs_in_vain(self, node: ir.If, inside: Sequence[Reference]) -> bool:
        """Say whether the accesses that a condition guards may be made where it does not hold."""
        sums = {one.array: self._own[one.number] for one in inside if one.writes and one.number in self._own}
        return bool(sums) and all(
            _in_vain(one, node, sums[one.array])
            if one.writes and one.array in sums
            else one.number in self._own
            or (one.number in self._held and not one.writes and _within(one, self._held[one.number], self._prover))
            for one in inside
        )


def _in_vain(write: Reference, node: ir.If, window: PrivateWindow) -> bool:
    """Say whether every read of a register stands behind the conditions that are left out here, on its element."""
    depth = next((place for place, one in enumerate(write.guards) if one.condition == node.condition), None)
    if depth is None or not all(one.truth for one in write.guards[depth:]):
        return False
    asked = _said(write.guards[depth:], write, window)
    return asked is not None and all(asked <= _known(one, window) for one in window.references if one.reads)


def _is_harmless(stmt: ir.Stmt) -> bool:
    """Say whether a statement may run in vain, accesses apart: it neither traps nor overflows.

    Integers that it declares find elements only, which have their places in windows then, and serve conditions.
    """
    match stmt:
        case ir.Declare(type=type_, value=value) if value is not None:
            return _is_index(value) if type_.integer else _is_plain(value)
        case ir.Assign(target=ir.Element(type=type_), value=value, atomic=False):
            return type_.floating and _is_plain(value)
        case ir.If(then=then, otherwise=()):
            return all(map(_is_harmless, then))
        case ir.For(condition=ir.Binary(right=ir.IntConst()), body=body):
            return all(map(_is_harmless, body))
        case _:
            return False


def _is_plain(expr: ir.Expr) -> bool:
    """Say whether an expression computes with floating numbers, and constants, alone."""
    if isinstance(expr, ir.IntConst):
        return True
    if isinstance(expr, ir.Element):
        return expr.type.floating and all(map(_is_index, expr.indices))
    return expr.type.floating and all(map(_is_plain, ir.subexpressions(expr)))


def _is_index(expr: ir.Expr) -> bool:
    """Say whether an integer is made of scalars by sums and products."""
    match expr:
        case ir.Binary(op="+" | "-" | "*", left=left, right=right):
            return _is_index(left) and _is_index(right)
        case _:
            return isinstance(expr, ir.Var | ir.IntConst) and expr.type.integer


def _within(reference: Reference, window: Window, prover: Prover) -> bool:
    """Say whether an access is proved to stay in its window for all values of its loops, whatever its guards say."""
    if reference.clamped or reference.wrapped:
        return False
    places = zip(coordinates(reference, window.factors), window.lows, window.strides, window.extents, strict=True)
    for index, low, stride, extent in places:
        offset = (index - low).divide_exactly(Polynomial.constant(stride))
        if offset is None or prover.derives_within(offset, extent, reference.loops) != (True, True):
            return False
    return True


def _said(guards: Sequence[Guard], reference: Reference, window: PrivateWindow) -> frozenset[Constraint] | None:
    """Return what guards say of the element of a register; ``None`` where that is not all they say."""
    conjunctions = [guard.meaning.conjunction for guard in guards]
    inner = {loop.var for loop in reference.loops if loop.kind is not LoopKind.GRID}
    others = inner - _names(reference, window).keys()
    if None in conjunctions or any(guard.meaning.symbols & others for guard in guards):
        return None
    return _renamed([one for each in conjunctions if each is not None for one in each], reference, window)


def _known(reference: Reference, window: PrivateWindow) -> frozenset[Constraint]:
    return _renamed([one for guard in reference.guards for one in guard.constraints], reference, window)


def _renamed(constraints: Sequence[Constraint], reference: Reference, window: PrivateWindow) -> frozenset[Constraint]:
    names = _names(reference, window)
    return frozenset(one.substitute(names) for one in constraints)


def _names(reference: Reference, window: PrivateWindow) -> dict[str, Polynomial]:
    """Return the loops that say which register an access means, under the same names in all phases."""
    digits = digits_of(reference, window.factors)
    return thread_renaming(reference) | {
        loop.var: Polynomial.symbol(f"digit {number}") for number, loop in enumerate(digits)
    }
