"""Strategies ``cse1`` and ``cse2``: what was computed once is kept in a temporary (Figure 7 of the paper).

Before and after::

    int p1 = p + 1;                   int t1 = p + 1;
    int np = N + p;                   int p1 = t1;
    int np1 = N + p + 1;              int np = N + p;
                                      int np1 = N + t1;

``cse1`` looks within a basic block of the source CFG, ``cse2`` along its dominator tree: an earlier computation serves
where it is an available expression, and its C scope is still open.  Sums and products of integers are compared
in a canonical form, as multisets of terms and factors; so ``p + 1`` is found in ``N + p + 1``.  Where several earlier
sums are found in one, the first of them serves.  Floating-point expressions serve only where they are the very same;
reads of arrays, comparisons, and the heads of loops are left alone.

Why no new signed overflow arises.  A value that is reused was computed before in the program as given.  A sum E that
becomes ``r + t``, with t an earlier value and r one term, has no intermediate result at all but its terms; its
value is E's.  With more than one term left over, the new partial sums must not exceed E: all its terms are then
required to be non-negative.  A temporary moves a computation to the start of its statement; one that the statement may
skip (right of ``&&``) is moved only if it can neither overflow nor divide by zero.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.cfg.available import AvailableExpressions, Site, with_site_replaced
from metafork.analysis.cfg.source_cfg import EnterFor, SourceCfg, build, successors
from metafork.ir.program import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Conditional,
    Declare,
    Element,
    Expr,
    FloatConst,
    For,
    IntConst,
    Phase,
    Program,
    Unary,
    Var,
    Version,
    binary,
    subexpressions,
    walk_expression,
    walk_statements,
)
from metafork.ir.rewriting import (
    assigned_variables,
    fresh_name,
    names_of,
    variables,
)
from strategies.loops.simplification import factors, summands
from strategies.loops.spine import counted_extent
from strategies.strategy import Applied, Effect, NotApplied, Sign, Strategy

TEMPORARY = re.compile(r"t[0-9]+")
"""Names of temporaries: a value that one of them holds already needs no second."""
REUSED = Effect("common subexpressions reused")
MAX_REUSES = 500
"""Bound of the number of reuses in one program."""


class CommonSubexpressions(Strategy, frozen=True):
    """The strategy; level 1 looks within basic blocks, level 2 along the dominator tree too."""

    level: int
    at_leaf: ClassVar[bool] = True
    sign: ClassVar[Sign] = Sign("2")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version in which every repeated computation is shared, or that there is none."""
        program = version.program
        reuses = 0
        while reuses < MAX_REUSES:
            shared = _shared_once(program, self.level)
            if shared is None:
                break
            program = shared
            reuses += 1
        if not reuses:
            return NotApplied("nothing is computed twice" + (" in one basic block" if self.level == 1 else ""))
        where = "in a basic block" if self.level == 1 else "along the dominator tree"
        return Applied(
            replace(version, program=program), f"{reuses} computations reuse an earlier value {where}", REUSED
        )


_REGISTERS = frozenset({"registers_per_thread", "registers_per_block"})
STRATEGIES = tuple(CommonSubexpressions(f"cse{level}", _REGISTERS, level) for level in (1, 2))


class _Reuse(Struct, frozen=True):
    """``use`` takes the value of ``host``; ``rest`` are the terms of the use's sum that remain, with their signs.

    ``place`` is where among them the value goes; ``rest`` is empty where the value is all.
    """

    host: Site
    use: Site
    rest: tuple[tuple[bool, Expr], ...]
    place: int


class _Known:
    """What one search knows of expressions: each is looked into once, not once a pair of sites."""

    def __init__(self) -> None:
        self._keys: dict[int, tuple[Expr, Hashable]] = {}
        self._shareable: dict[int, tuple[Expr, bool]] = {}

    def key(self, expr: Expr) -> Hashable:
        """Return ``canonical(expr)``; the entry holds the expression, so that its ``id`` stays its own."""
        if id(expr) not in self._keys:
            self._keys[id(expr)] = (expr, canonical(expr))
        return self._keys[id(expr)][1]

    def shareable(self, expr: Expr) -> bool:
        """Return ``_shareable(expr)``."""
        if id(expr) not in self._shareable:
            self._shareable[id(expr)] = (expr, _shareable(expr))
        return self._shareable[id(expr)][1]


def _shared_once(program: Program, level: int) -> Program | None:
    """Return the program with the first reuse done, ``None`` where there is none."""
    cfg = build(program)
    available = AvailableExpressions(cfg)
    heads = {
        number
        for block in cfg.blocks
        if isinstance(block.terminator, EnterFor)
        for number in (block.terminator.init, block.terminator.step)
    }
    order = {number: rank for rank, number in enumerate(_textual_order(cfg))}
    never_negative = _never_negative(program)
    known = _Known()
    for number in order:
        if number in heads:
            continue
        for use in available.sites(number):
            if not known.shareable(use.expr):
                continue
            hosts = [
                site
                for site in available.before(use)
                if site.block not in heads
                and (level > 1 or site.block == number)
                and known.shareable(site.expr)
                and not (site.conditional and _may_trap(site.expr))
            ]
            hosts.sort(key=lambda site: (order[site.block], site.position, site.order))
            reuse = _whole(use, hosts, known) or _part_of_sum(use, hosts, never_negative, known)
            if reuse is not None:
                return _rewritten(cfg, reuse, program)
    return None


def _textual_order(cfg: SourceCfg) -> list[int]:
    """Return the blocks that can be reached, each after those that dominate it."""
    finished: list[int] = []
    entered: set[int] = set()

    def visit(number: int) -> None:
        entered.add(number)
        for target in reversed(successors(cfg.blocks[number].terminator)):
            if target not in entered:
                visit(target)
        finished.append(number)

    visit(0)
    return finished[::-1]


def _shareable(expr: Expr) -> bool:
    match expr:
        case Binary(op=op):
            return op not in COMPARISONS and op not in LOGICAL and bool(variables(expr))
        case Call() | Unary(op="-" | "~"):
            return bool(variables(expr))
        case _:
            return False


def _may_trap(expr: Expr) -> bool:
    """Say whether evaluating an expression where the program may not could overflow or divide by zero."""
    for part in walk_expression(expr):
        match part:
            case Binary(op="/" | "%" | ">>", left=left, right=IntConst(value=value)) if left.type.integer:
                if value <= 0 or (part.op == ">>" and value >= 8 * left.type.size):
                    return True
            case Binary(op="&" | "|" | "^") | IntConst() | Var() | FloatConst():
                pass
            case _ if part.type.floating:
                pass
            case _:
                return True
    return False


def canonical(expr: Expr) -> Hashable:
    """Return a key that two expressions share only if they have one value wherever both are defined."""
    match expr:
        case Binary(op="+" | "-") if expr.type.integer:
            terms = Counter((negative, canonical(term)) for negative, term in summands(expr))
            return ("sum", expr.type, frozenset(terms.items()))
        case Binary(op="*") if expr.type.integer:
            return ("product", expr.type, frozenset(Counter(canonical(factor) for factor in factors(expr)).items()))
        case IntConst(value=value, type=type_):
            return ("integer", type_, value)
        case FloatConst(text=text, type=type_):
            return ("number", type_, text)
        case Var(name=name):
            return ("variable", name)
        case Binary(op=op) | Unary(op=op):
            mark = op
        case Call(name=mark) | Element(array=mark):
            pass
        case Cast() | Conditional():
            mark = ""
    return (type(expr).__name__, expr.type, mark, tuple(canonical(operand) for operand in subexpressions(expr)))


def _whole(use: Site, hosts: list[Site], known: _Known) -> _Reuse | None:
    key = known.key(use.expr)
    for host in hosts:
        if host.expr.type == use.expr.type and known.key(host.expr) == key:
            return _Reuse(host, use, (), 0)
    return None


def _part_of_sum(use: Site, hosts: list[Site], never_negative: frozenset[str], known: _Known) -> _Reuse | None:
    terms = _sum_terms(use.expr)
    if len(terms) < 3:
        return None
    for host in hosts:
        part = _sum_terms(host.expr)
        if not 2 <= len(part) < len(terms) or host.expr.type != use.expr.type:
            continue
        wanted = Counter((negative, known.key(term)) for negative, term in part)
        rest: list[tuple[bool, Expr]] = []
        place: int | None = None
        for negative, term in terms:
            key = (negative, known.key(term))
            if wanted[key] > 0:
                wanted[key] -= 1
                place = len(rest) if place is None else place
            else:
                rest.append((negative, term))
        if place is None or +wanted:
            continue
        safe = len(rest) == 1 or all(not n and _not_negative(t, never_negative) for n, t in terms)
        if safe:
            return _Reuse(host, use, tuple(rest), place)
    return None


def _sum_terms(expr: Expr) -> list[tuple[bool, Expr]]:
    return summands(expr) if isinstance(expr, Binary) and expr.op in ("+", "-") and expr.type.integer else []


def _not_negative(expr: Expr, names: frozenset[str]) -> bool:
    match expr:
        case IntConst(value=value):
            return value >= 0
        case Var(name=name):
            return name in names
        case Binary(op="+" | "*" | "/" | "%" | ">>", left=left, right=right):
            return _not_negative(left, names) and _not_negative(right, names)
        case _:
            return False


def _never_negative(program: Program) -> frozenset[str]:
    """Return integer scalars that are never negative: parameters, counting loops, and what is computed from them."""
    # A name may be declared several times: all its declarations must agree.
    declared: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    names = {parameter.name for parameter in program.parameters} | {loop.var for loop in program.grid}
    for derived in program.derived:
        if _not_negative(derived.definition, frozenset(names)):
            names.add(derived.name)
    outer = names | {derived.name for derived in program.derived} | {value.name for value in program.values}
    assigned = assigned_variables(program.body)
    for stmt in walk_statements(program.body):
        match stmt:
            case Declare(name=name, type=type_, value=value):
                declared[name] += 1
                fits = type_.integer and name not in assigned and value is not None
                if fits and value is not None and _not_negative(value, frozenset(names)):
                    shown[name] += 1
                    if value.type.size <= type_.size and name not in outer:
                        names.add(name)
            case For(init=Declare(name=name)) if counted_extent(stmt) is not None and name not in outer:
                shown[name] += 1
                names.add(name)
            case Phase(threads=threads):
                names.update(loop.var for loop in threads if loop.var not in outer)
                shown.update(loop.var for loop in threads)
                declared.update(loop.var for loop in threads)
            case _:
                pass
    return frozenset(name for name in names if declared[name] <= max(shown[name], 1) and declared[name] <= 1)


def _rewritten(cfg: SourceCfg, reuse: _Reuse, program: Program) -> Program:
    host, use = reuse.host, reuse.use
    block = cfg.blocks[host.block]
    stmt = block.statements[host.position] if host.position < len(block.statements) else None
    held = isinstance(stmt, Declare) and stmt.value is host.expr and bool(TEMPORARY.fullmatch(stmt.name))
    if isinstance(stmt, Declare) and held and stmt.type == host.expr.type and _set_once(stmt.name, program):
        name = stmt.name
        temporary = None
    else:
        number = 1
        taken = names_of(program)
        while f"t{number}" in taken:
            number += 1
        name = fresh_name(f"t{number}", taken)
        temporary = Declare(name, host.expr.type, host.expr)
    value = Var(name, host.expr.type)
    cfg = with_site_replaced(cfg, use, _sum_with(value, reuse))
    if temporary is None:
        return cfg.program()
    cfg = with_site_replaced(cfg, host, value)
    block = cfg.blocks[host.block]
    statements = (*block.statements[: host.position], temporary, *block.statements[host.position :])
    return cfg.with_block(host.block, replace(block, statements=statements)).program()


def _set_once(name: str, program: Program) -> bool:
    declarations = [stmt for stmt in walk_statements(program.body) if isinstance(stmt, Declare) and stmt.name == name]
    return len(declarations) == 1 and name not in assigned_variables(program.body)


def _sum_with(value: Var, reuse: _Reuse) -> Expr:
    terms: list[tuple[bool, Expr]] = list(reuse.rest)
    terms.insert(reuse.place, (False, value))
    first = next(position for position, (negative, _) in enumerate(terms) if not negative)
    terms.insert(0, terms.pop(first))
    result = terms[0][1]
    for negative, term in terms[1:]:
        result = binary("-" if negative else "+", result, term)
    return result
