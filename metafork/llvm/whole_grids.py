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

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.ir_strategies import SHUFFLE, IrStrategy
from metafork.ir.kernel import OFFSET, Kernel, made_of_offsets
from metafork.ir.program import (
    Assign,
    Barrier,
    Binary,
    Break,
    Call,
    Cast,
    Continue,
    Declare,
    Expr,
    For,
    If,
    Stmt,
    Unary,
    Var,
    While,
    binary,
    subexpressions,
    unary,
    walk_statements,
)
from metafork.ir.rewriting import map_body, with_operands
from metafork.llvm.leaf_ptx import grid_loop, made

_INT, _LONG = ScalarType.INT, ScalarType.LONG_LONG


def for_whole_grids(kernel: Kernel) -> Kernel:
    """Return the kernel for launches with a block for every point of the grid and with short offsets."""
    body = _straight(kernel.body)
    offsets = {
        stmt.name
        for stmt in walk_statements(body)
        if isinstance(stmt, Declare) and stmt.type is _LONG and made_of_offsets(stmt.value)
    }
    short = map_body(body, lambda expr: _short(expr, offsets))
    return replace(kernel, body=_declared(short, offsets))


def whole_grid_ptx(kernel: Kernel, ir_strategies: Sequence[IrStrategy], target: str) -> str | None:
    """Return the PTX of that kernel under IR strategies, ``None`` where it has shuffles: their PTX has a way for it.

    Raises as ``metafork.llvm.leaf_ptx.leaf_ptx``.
    """
    return None if SHUFFLE in ir_strategies else made(for_whole_grids(kernel), ir_strategies, target)[1]


def _straight(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        found = grid_loop(stmt)
        if found is None or not isinstance(stmt, For):
            result.append(stmt)
            continue
        inner = _straight(stmt.body)
        if inner == stmt.body and inner and isinstance(inner[-1], Barrier):
            inner = inner[:-1]
        if _continues(inner):
            # A loop of one trip, which LLVM takes apart.
            assert stmt.step is not None
            assert isinstance(found[1].left, Var)
            result.append(replace(stmt, step=Assign(found[1].left, "", found[1].right), body=inner))
        else:
            result += [found[0], *inner]
    return tuple(result)


def _continues(body: tuple[Stmt, ...]) -> bool:
    """Say whether a statement ends the trip of the loop that the body is of."""
    return any(
        isinstance(stmt, Continue | Break)
        or (isinstance(stmt, If) and (_continues(stmt.then) or _continues(stmt.otherwise)))
        for stmt in body
    )


def _short(expr: Expr, offsets: Collection[str]) -> Expr:
    """Return an expression with offsets of type ``int``, and with the types that C gives what is made of them."""
    match expr:
        case Call(name=name, arguments=(index,)) if name == OFFSET:
            inner = _short(index, offsets)
            return inner if inner.type is _INT else Cast(_INT, inner)
        case Var(name=name) if name in offsets:
            return replace(expr, type=_INT)
    parts = subexpressions(expr)
    operands = [_short(part, offsets) for part in parts]
    if all(new.type is old.type for new, old in zip(operands, parts, strict=True)):
        return with_operands(expr, operands)
    match expr:
        case Binary(op=op, span=span):
            return binary(op, operands[0], operands[1], span)
        case Unary(op=op):
            return unary(op, operands[0])
        case _:
            return with_operands(expr, operands)


def _declared(body: tuple[Stmt, ...], offsets: Collection[str]) -> tuple[Stmt, ...]:
    """Return a body in which these scalars are declared as ``int``."""

    def one(stmt: Stmt) -> Stmt:
        match stmt:
            case Declare(name=name) if name in offsets:
                return replace(stmt, type=_INT)
            case If(then=then, otherwise=otherwise):
                return replace(stmt, then=_declared(then, offsets), otherwise=_declared(otherwise, offsets))
            case For(init=init, body=inner):
                first = one(init) if isinstance(init, Declare | Assign) else init
                assert first is None or isinstance(first, Declare | Assign)
                return replace(stmt, init=first, body=_declared(inner, offsets))
            case While(body=inner):
                return replace(stmt, body=_declared(inner, offsets))
            case _:
                return stmt

    return tuple(one(stmt) for stmt in body)
