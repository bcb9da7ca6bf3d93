"""Available expressions of a source CFG.

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
from metafork.ir.program import (
    LOGICAL,
    Assign,
    Barrier,
    Binary,
    BlockArray,
    Conditional,
    Declare,
    Element,
    Expr,
    FloatConst,
    IntConst,
    PrivateArray,
    Var,
    subexpressions,
    walk_expression,
)
from metafork.ir.rewriting import variables, with_operands


class Site(Struct, frozen=True, eq=False):
    """One computation of a pure scalar expression.

    ``position`` counts the statements of the block; the number of statements stands for the terminator.  ``path`` leads
    from the statement to the expression: first the number among the expressions it evaluates, then that of the operand
    at each step down.  ``conditional`` says that the expression may be skipped when its statement runs (right of
    ``&&``, an arm of ``?:``).  ``order`` numbers the sites of a block in evaluation order, parents before their parts.
    """

    block: int
    position: int
    order: int
    path: tuple[int, ...]
    expr: Expr
    conditional: bool


def defined_by(stmt: Simple) -> str | None:
    """Return the name of the scalar whose value a statement changes."""
    match stmt:
        case Declare(name=name):
            return name
        case Assign(target=Var(name=name)):
            return name
        case Assign() | BlockArray() | PrivateArray() | Barrier():
            return None
        case _:
            assert_never(stmt)


def sites_of(cfg: SourceCfg, number: int) -> tuple[Site, ...]:
    """Return the sites of a block in evaluation order, those of an ``if`` that ends it included.

    Expressions with array reads are no sites (what they read may change), nor are single variables and constants.
    Heads of loops and extents of threads are left alone: they belong to other blocks, or to the launch.
    """
    block = cfg.blocks[number]
    result: list[Site] = []
    for position, stmt in enumerate(block.statements):
        for place, expr in enumerate(_evaluated(stmt)):
            for path, part, conditional in _parts(expr, (place,), False):
                result.append(Site(number, position, len(result), path, part, conditional))
    if isinstance(block.terminator, Select):
        for path, part, conditional in _parts(block.terminator.condition, (0,), False):
            result.append(Site(number, len(block.statements), len(result), path, part, conditional))
    return tuple(result)


def with_site_replaced(cfg: SourceCfg, site: Site, new: Expr) -> SourceCfg:
    """Return the CFG with the expression of one site replaced; equal expressions elsewhere stay."""
    block = cfg.blocks[site.block]
    if site.position == len(block.statements):
        terminator = block.terminator
        assert isinstance(terminator, Select)
        condition = _replaced(terminator.condition, site.path[1:], new)
        return cfg.with_block(site.block, replace(block, terminator=replace(terminator, condition=condition)))
    stmt = block.statements[site.position]
    parts = list(_evaluated(stmt))
    parts[site.path[0]] = _replaced(parts[site.path[0]], site.path[1:], new)
    before, after = block.statements[: site.position], block.statements[site.position + 1 :]
    return cfg.with_block(site.block, replace(block, statements=(*before, _with_evaluated(stmt, parts), *after)))


def _replaced(expr: Expr, path: tuple[int, ...], new: Expr) -> Expr:
    if not path:
        return new
    operands = list(subexpressions(expr))
    operands[path[0]] = _replaced(operands[path[0]], path[1:], new)
    return with_operands(expr, operands)


def _evaluated(stmt: Simple) -> tuple[Expr, ...]:
    match stmt:
        case Declare(value=value):
            return () if value is None else (value,)
        case Assign(target=Element(indices=indices), value=value):
            return (*indices, value)
        case Assign(value=value):
            return (value,)
        case BlockArray() | PrivateArray() | Barrier():
            return ()
        case _:
            assert_never(stmt)


def _with_evaluated(stmt: Simple, parts: Sequence[Expr]) -> Simple:
    match stmt:
        case Declare():
            return replace(stmt, value=parts[0]) if parts else stmt
        case Assign(target=Element() as target):
            return replace(stmt, target=replace(target, indices=tuple(parts[:-1])), value=parts[-1])
        case Assign():
            return replace(stmt, value=parts[0])
        case BlockArray() | PrivateArray() | Barrier():
            return stmt
        case _:
            assert_never(stmt)


def _parts(expr: Expr, path: tuple[int, ...], conditional: bool) -> Iterator[tuple[tuple[int, ...], Expr, bool]]:
    if isinstance(expr, IntConst | FloatConst | Var):
        return
    if not isinstance(expr, Element) and is_pure(expr):
        yield path, expr, conditional
    for place, operand in enumerate(subexpressions(expr)):
        lazy = place > 0 and (isinstance(expr, Conditional) or (isinstance(expr, Binary) and expr.op in LOGICAL))
        yield from _parts(operand, (*path, place), conditional or lazy)


def is_pure(expr: Expr) -> bool:
    """Say whether an expression reads scalars only."""
    return not any(isinstance(part, Element) for part in walk_expression(expr))


class AvailableExpressions:
    """The sites available at each point of a CFG."""

    def __init__(self, cfg: SourceCfg) -> None:
        self._cfg = cfg
        self._sites = tuple(sites_of(cfg, number) for number in range(len(cfg.blocks)))
        self._operands = {site: variables(site.expr) for sites in self._sites for site in sites}
        self._at_entry = self._solved()

    def sites(self, number: int) -> tuple[Site, ...]:
        """Return the sites of a block in evaluation order."""
        return self._sites[number]

    def before(self, use: Site) -> frozenset[Site]:
        """Return the sites available where ``use`` is computed, earlier ones of the same statement included.

        A site is visible there too: its C scope encloses the use.
        """
        scope = self._cfg.blocks[use.block].scope
        return frozenset(
            site
            for site in self._through(use.block, use)
            if scope[: len(depth := self._cfg.blocks[site.block].scope)] == depth
        )

    def _through(self, number: int, use: Site | None) -> frozenset[Site]:
        """Return what is available at the end of a block, or at one of its sites."""
        block = self._cfg.blocks[number]
        available = set(self._at_entry[number])
        mine = self._sites[number]
        limit = len(block.statements) if use is None else use.position
        for position, stmt in enumerate(block.statements[:limit]):
            available.update(site for site in mine if site.position == position)
            killed = defined_by(stmt)
            if killed is not None:
                available = {site for site in available if killed not in self._operands[site]}
        before = len(mine) if use is None else use.order
        available.update(site for site in mine if site.position == limit and site.order < before)
        return frozenset(available)

    def _leaving(self, number: int) -> frozenset[Site]:
        killed = names_bound(self._cfg.blocks[number])
        return frozenset(site for site in self._through(number, None) if not killed & self._operands[site])

    def _solved(self) -> list[frozenset[Site]]:
        everything = frozenset(site for sites in self._sites for site in sites)
        self._at_entry = [frozenset()] + [everything] * (len(self._cfg.blocks) - 1)
        waiting = [0]
        reached = {0}
        while waiting:
            number = waiting.pop()
            leaving = self._leaving(number)
            for target in successors(self._cfg.blocks[number].terminator):
                new = self._at_entry[target] & leaving
                if new != self._at_entry[target] or target not in reached:
                    reached.add(target)
                    self._at_entry[target] = new
                    waiting.append(target)
        return [entry if number in reached else frozenset() for number, entry in enumerate(self._at_entry)]


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
