"""The kernel of launches whose grid is the program's and whose arrays have offsets of 31 bits.

It is the first of the two kernels that CUDA text stands for (``metafork.printing.launches``)::

    for (block = blockIdx.x; block < extent; block += gridDim.x) S      -->  block = blockIdx.x; S
    long long offset = METAFORK_OFFSET(i) * n + j                       -->  int offset = i * n + j

A barrier that only the next block of the same thread-block needs is left out.  The dispatcher launches the kernel for
any grid and any offsets (``shape->large``) wherever these do not hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.ir_strategies import SHUFFLE, IrStrategy
from metafork.ir.kernel import OFFSET, Kernel, made_of_offsets
from metafork.ir.visitor import Body, Rewriter, changed
from metafork.llvm.leaf_ptx import grid_loop, made

_INT, _LONG = ScalarType.INT, ScalarType.LONG_LONG


def for_whole_grids(kernel: Kernel) -> Kernel:
    """Return the kernel for launches with a block for every point of the grid and with short offsets."""
    body = _straight(kernel.body)
    offsets = {
        stmt.name
        for stmt in ir.walk_statements(body)
        if isinstance(stmt, ir.Declare) and stmt.type is _LONG and made_of_offsets(stmt.value)
    }
    return replace(kernel, body=_Short(offsets).body(body))


def whole_grid_ptx(kernel: Kernel, ir_strategies: Sequence[IrStrategy], target: str) -> str | None:
    """Return the PTX of that kernel under IR strategies, ``None`` where it has shuffles: their PTX has a way for it.

    Raises as ``metafork.llvm.leaf_ptx.leaf_ptx``.
    """
    return None if SHUFFLE in ir_strategies else made(for_whole_grids(kernel), ir_strategies, target)[1]


def _straight(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    result: list[ir.Stmt] = []
    for stmt in body:
        found = grid_loop(stmt)
        if found is None or not isinstance(stmt, ir.For):
            result.append(stmt)
            continue
        inner = _straight(stmt.body)
        if inner == stmt.body and inner and isinstance(inner[-1], ir.Barrier):
            inner = inner[:-1]
        if _continues(inner):
            # A loop of one trip, which LLVM takes apart.
            assert stmt.step is not None
            assert isinstance(found[1].left, ir.Var)
            result.append(replace(stmt, step=ir.Assign(found[1].left, "", found[1].right), body=inner))
        else:
            result += [found[0], *inner]
    return tuple(result)


def _continues(body: tuple[ir.Stmt, ...]) -> bool:
    """Say whether a statement ends the trip of the loop that the body is of."""
    return any(
        isinstance(stmt, ir.Continue | ir.Break)
        or (isinstance(stmt, ir.If) and (_continues(stmt.then) or _continues(stmt.otherwise)))
        for stmt in body
    )


class _Short(Rewriter):
    """Gives ``offsets`` and what is made of them the type ``int``, and all else the types that C then gives it."""

    def __init__(self, offsets: Collection[str]) -> None:
        self._offsets = offsets

    def declare(self, node: ir.Declare) -> ir.Stmt | Body:
        return super().declare(replace(node, type=_INT) if node.name in self._offsets else node)

    def variable(self, node: ir.Var) -> ir.Var:
        return replace(node, type=_INT) if node.name in self._offsets else node

    def call(self, node: ir.Call) -> ir.Expr:
        if node.name != OFFSET:
            return super().call(node)
        inner = self.expression(node.arguments[0])
        return inner if inner.type is _INT else ir.Cast(_INT, inner)

    def binary(self, node: ir.Binary) -> ir.Expr:
        left, right = self.expression(node.left), self.expression(node.right)
        if left.type is node.left.type and right.type is node.right.type:
            return changed(node, left=left, right=right)
        return ir.binary(node.op, left, right, node.span)

    def unary(self, node: ir.Unary) -> ir.Expr:
        operand = self.expression(node.operand)
        return changed(node, operand=operand) if operand.type is node.operand.type else ir.unary(node.op, operand)
