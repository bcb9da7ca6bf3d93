"""Dominators of a source CFG, where it computes what, and what changes on the way from one place to another.

A *site* is one place where a pure scalar expression is computed.  A site is available at a point when every path to
the point passes it, and no operand of its expression changes between the last passage and the point.  A value stored
at an available site can be read at the point (the site dominates it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.cfg.source_cfg import (
    BasicBlock,
    EnterFor,
    EnterThreads,
    EnterWhile,
    Exit,
    Jump,
    Leave,
    Select,
    Simple,
    SourceCfg,
    Test,
    successors,
)
from metafork.ir import program as ir
from metafork.ir.rewriting import with_operands

Evaluating = Simple | ir.Expr
"""A statement of a block, or the condition of the ``if`` that ends it."""


class Site(Struct, frozen=True, eq=False):
    """One computation of a pure scalar expression.

    ``path`` leads from the statement to the expression: first the number among the expressions it evaluates, then that
    of the operand at each step down.  ``conditional`` says that the expression may be skipped when its statement runs
    (right of ``&&``, an arm of ``?:``).
    """

    path: tuple[int, ...]
    expr: ir.Expr
    conditional: bool


def dominators(cfg: SourceCfg) -> tuple[frozenset[int], ...]:
    """Return, for each block, the blocks that every path from the entry to it passes (itself included).

    A block that nothing reaches has no path, so that all blocks dominate it.
    """
    everything = frozenset(range(len(cfg.blocks)))
    result = [frozenset({0})] + [everything] * (len(cfg.blocks) - 1)
    sources = cfg.predecessors()
    changed = True
    while changed:
        changed = False
        for number in range(1, len(cfg.blocks)):
            before = everything
            for source in sources[number]:
                before &= result[source]
            new = before | {number} if sources[number] else everything
            if new != result[number]:
                result[number] = new
                changed = True
    return tuple(result)


def defined_by(stmt: Evaluating) -> str | None:
    """Return the name of the scalar whose value a statement changes."""
    match stmt:
        case ir.Declare(name=name):
            return name
        case ir.Assign(target=ir.Var(name=name)):
            return name
        case _:
            return None


def evaluating(block: BasicBlock) -> tuple[Evaluating, ...]:
    """Return the statements of a block in order, and the condition of an ``if`` that ends it."""
    return (*block.statements, block.terminator.condition) if isinstance(block.terminator, Select) else block.statements


def with_evaluating(block: BasicBlock, changed: Sequence[Evaluating]) -> BasicBlock:
    """Return a block with other statements, and another condition of the ``if`` that ends it."""
    simple = tuple(stmt for stmt in changed if isinstance(stmt, Simple))
    if not isinstance(block.terminator, Select):
        return replace(block, statements=simple)
    condition = changed[-1]
    assert not isinstance(condition, Simple)
    return replace(block, statements=simple, terminator=replace(block.terminator, condition=condition))


def sites_of(stmt: Evaluating) -> list[Site]:
    """Return the sites of a statement in evaluation order, parents before their parts.

    Expressions with array reads are no sites (what they read may change), nor are single variables and constants.
    Heads of loops and extents of threads are left alone: they belong to other blocks, or to the launch.
    """
    found: list[Site] = []
    for place, expr in enumerate(_evaluated(stmt)):
        _collect(expr, (place,), False, found)
    return found


def with_site_replaced(stmt: Evaluating, site: Site, new: ir.Expr) -> Evaluating:
    """Return a statement with the expression of one site replaced; equal expressions elsewhere stay."""
    parts = list(_evaluated(stmt))
    parts[site.path[0]] = _replaced(parts[site.path[0]], site.path[1:], new)
    return _with_evaluated(stmt, parts)


def _replaced(expr: ir.Expr, path: tuple[int, ...], new: ir.Expr) -> ir.Expr:
    if not path:
        return new
    operands = list(ir.subexpressions(expr))
    operands[path[0]] = _replaced(operands[path[0]], path[1:], new)
    return with_operands(expr, operands)


def _evaluated(stmt: Evaluating) -> tuple[ir.Expr, ...]:
    match stmt:
        case ir.Declare(value=value):
            return () if value is None else (value,)
        case ir.Assign(target=ir.Element(indices=indices), value=value):
            return (*indices, value)
        case ir.Assign(value=value):
            return (value,)
        case ir.BlockArray() | ir.PrivateArray() | ir.Barrier():
            return ()
        case _:
            return (stmt,)


def _with_evaluated(stmt: Evaluating, parts: Sequence[ir.Expr]) -> Evaluating:
    match stmt:
        case ir.Declare():
            return replace(stmt, value=parts[0]) if parts else stmt
        case ir.Assign(target=ir.Element() as target):
            return replace(stmt, target=replace(target, indices=tuple(parts[:-1])), value=parts[-1])
        case ir.Assign():
            return replace(stmt, value=parts[0])
        case ir.BlockArray() | ir.PrivateArray() | ir.Barrier():
            return stmt
        case _:
            return parts[0]


def _collect(expr: ir.Expr, path: tuple[int, ...], conditional: bool, found: list[Site]) -> bool:
    """Append the sites of an expression, and say whether it reads scalars only."""
    if isinstance(expr, ir.IntConst | ir.FloatConst | ir.Var):
        return True
    before = len(found)
    pure = not isinstance(expr, ir.Element)
    for place, operand in enumerate(ir.subexpressions(expr)):
        lazy = place > 0 and (
            isinstance(expr, ir.Conditional) or (isinstance(expr, ir.Binary) and expr.op in ir.LOGICAL)
        )
        pure = _collect(operand, (*path, place), conditional or lazy, found) and pure
    if pure:
        found.insert(before, Site(path, expr, conditional))
    return pure


class Changes:
    """What may change on the ways from the end of a block to where another one begins."""

    def __init__(self, cfg: SourceCfg) -> None:
        self._cfg = cfg
        self._dominators = dominators(cfg)
        self._defined = [frozenset(_defined_in(block)) for block in cfg.blocks]
        self._between: dict[int, dict[int, frozenset[str]]] = {}

    def between(self, first: int, then: int) -> frozenset[str] | None:
        """Return the scalars that may change since ``first`` was last passed, ``None`` where a way does not pass it."""
        if first == then or first not in self._dominators[then]:
            return None
        if first not in self._between:
            self._between[first] = self._solved(first)
        return self._between[first].get(then)

    def _solved(self, first: int) -> dict[int, frozenset[str]]:
        entering: dict[int, frozenset[str]] = {}
        waiting = [first]
        while waiting:
            number = waiting.pop()
            leaving = names_bound(self._cfg.blocks[number])
            if number != first:
                leaving |= entering[number] | self._defined[number]
            for target in successors(self._cfg.blocks[number].terminator):
                if target != first and (target not in entering or not leaving <= entering[target]):
                    entering[target] = entering.get(target, frozenset()) | leaving
                    waiting.append(target)
        return entering


def _defined_in(block: BasicBlock) -> Iterator[str]:
    for stmt in block.statements:
        name = defined_by(stmt)
        if name is not None:
            yield name


def names_bound(block: BasicBlock) -> frozenset[str]:
    """Return the names that the terminator of a block binds: the variables of thread loops."""
    terminator = block.terminator
    match terminator:
        case EnterThreads(threads=threads):
            return frozenset(loop.var for loop in threads)
        case Exit() | Jump() | Leave() | Select() | EnterFor() | EnterWhile() | Test():
            return frozenset()
        case _:
            assert_never(terminator)
