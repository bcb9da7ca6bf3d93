"""cse: what was computed once is kept in a temporary.

Sums and products of integers are compared in a canonical form, as multisets of terms and factors; so ``p + 1`` is found
in ``N + p + 1``.  Where several earlier sums are found in one, the first of them serves.  Floating-point expressions
serve only where they are the very same; reads of arrays, comparisons, and the heads of loops are left alone.

Why no new signed overflow arises.  A value that is reused was computed before in the program as given.  A sum E that
becomes ``r + t``, with t an earlier value and r one term, has no intermediate result at all but its terms; its
value is E's.  With more than one term left over, the new partial sums must not exceed E: all its terms are then
required to be non-negative.  A temporary moves a computation to the start of its statement; one that the statement may
skip (right of ``&&``) is moved only if it can neither overflow nor divide by zero.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence, Set
from itertools import chain, count

from msgspec import Struct, field
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.cfg.available import (
    Changes,
    Evaluating,
    Site,
    defined_by,
    evaluating,
    sites_of,
    with_evaluating,
    with_site_replaced,
)
from metafork.analysis.cfg.source_cfg import EnterFor, SourceCfg, build, successors
from metafork.ir import program as ir
from metafork.ir.rewriting import (
    assigned_variables,
    names_of,
)
from metafork.transform.directive import Refused
from metafork.transform.nests.simplification import factors, summands
from metafork.transform.nests.spine import counted_extent

TEMPORARY = re.compile(r"t[0-9]+")
"""Names of temporaries: a value that one of them holds already needs no second."""


class Cse(Struct, frozen=True):
    """Compute once what is computed twice.

    cse(1)::

        int p1 = p + 1;                      int t1 = p + 1;
        int np1 = N + p + 1;           -->   int p1 = t1;
                                             int np1 = N + t1;

    ``cse(1)`` looks within a basic block of the source CFG, ``cse(2)`` along its dominator tree: an earlier computation
    serves where it is an available expression, and its C scope is still open.  Figure 7 of the paper.
    """

    level: int

    def __post_init__(self) -> None:
        if self.level not in (1, 2):
            raise ValueError(f"level is 1 or 2, not {self.level}")

    def apply(self, program: ir.Program, analyses: Analyses) -> ir.Program | Refused:
        """Return the program in which every repeated computation is shared, or that there is none."""
        del analyses
        sharing = _Sharing(program, self.level)
        shared = sharing.done()
        if not sharing.reuses:
            return Refused("nothing is computed twice" + (" in one basic block" if self.level == 1 else ""))
        return shared


class _Line(Struct, eq=False):
    """A statement of a block, or the condition that ends it; ``number`` is its place there.

    What it computes that may serve later computations are its ``hosts``.
    """

    block: int
    number: int
    stmt: Evaluating
    hosts: list[_Host] = field(default_factory=list)


class _Host(Struct, frozen=True, eq=False):
    """A computation; of a sum of integers with its terms, each with whether it is subtracted."""

    line: _Line
    site: Site
    value: int
    terms: Counter[tuple[bool, int]]


class _Reuse(Struct, frozen=True):
    """``use`` takes the value of ``host``; ``rest`` are the terms of the use's sum that remain, with their signs.

    ``place`` is where among them the value goes; ``rest`` is empty where the value is all.
    """

    host: _Host
    use: _Host
    rest: tuple[tuple[bool, ir.Expr], ...] = ()
    place: int = 0


class _Values:
    """Numbers of values: two expressions have the same one only if they have one value wherever both are defined."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._names: list[frozenset[str]] = []
        self._seen: dict[
            int, tuple[ir.Expr, int]
        ] = {}  # by id; the entry holds the expression, so that its id is its own

    def number(self, expr: ir.Expr) -> int:
        """Return the number of an expression's value; terms and factors of integers may stand in any order."""
        if id(expr) in self._seen:
            return self._seen[id(expr)][1]
        parts = [self.number(part) for part in ir.subexpressions(expr)]
        key: Hashable
        match expr:
            case ir.Binary(op="+" | "-") if expr.type.integer:
                key = ("sum", expr.type, frozenset(self.terms(summands(expr)).items()))
            case ir.Binary(op="*") if expr.type.integer:
                product = Counter(self.number(factor) for factor in factors(expr))
                key = ("product", expr.type, frozenset(product.items()))
            case ir.IntConst(value=value, type=type_):
                key = ("integer", type_, value)
            case ir.FloatConst(text=text, type=type_):
                key = ("number", type_, text)
            case ir.Var(name=name):
                key = ("variable", name)
            case ir.Binary(op=mark) | ir.Unary(op=mark) | ir.Call(name=mark) | ir.Element(array=mark):
                key = (type(expr), expr.type, mark, *parts)
            case ir.Cast() | ir.Conditional():
                key = (type(expr), expr.type, *parts)
        number = self._numbers.setdefault(key, len(self._names))
        if number == len(self._names):
            own = [frozenset({expr.name})] if isinstance(expr, ir.Var) else []
            self._names.append(frozenset().union(*own, *(self._names[part] for part in parts)))
        self._seen[id(expr)] = (expr, number)
        return number

    def terms(self, terms: Iterable[tuple[bool, ir.Expr]]) -> Counter[tuple[bool, int]]:
        """Return the terms of a sum as numbers."""
        return Counter((negative, self.number(term)) for negative, term in terms)

    def names(self, value: int) -> frozenset[str]:
        """Return the scalars that a value is computed from."""
        return self._names[value]


class _Sharing:
    """One walk over a program, in an order in which what surely is computed before stands before.

    Where a reuse is found, the lines that it changes are looked through again.  Between them nothing is found that was
    not found before: a new temporary stands in these lines only.
    """

    def __init__(self, program: ir.Program, level: int) -> None:
        self.reuses = 0
        self._level = level
        self._cfg = build(program)
        self._changes = Changes(self._cfg)
        self._order = {number: rank for rank, number in enumerate(_textual_order(self._cfg))}
        self._lines = [
            [_Line(number, place, stmt) for place, stmt in enumerate(evaluating(block))]
            for number, block in enumerate(self._cfg.blocks)
        ]
        self._defining: dict[tuple[int, str | None], list[_Line]] = {}
        for line in chain.from_iterable(self._lines):
            self._defining.setdefault((line.block, defined_by(line.stmt)), []).append(line)
        self._taken = set(names_of(program))
        self._never_negative = set(_never_negative(program))
        self._temporaries = _set_once(program)
        self._values = _Values()
        self._hosts: dict[int, list[_Host]] = {}
        self._sums: dict[tuple[bool, int], list[_Host]] = {}  # by their first terms

    def done(self) -> ir.Program:
        """Return the program in which what is computed again is shared."""
        heads = {
            number
            for block in self._cfg.blocks
            if isinstance(block.terminator, EnterFor)
            for number in (block.terminator.init, block.terminator.step)
        }
        for number in self._order:
            waiting = [] if number in heads else self._lines[number][::-1]
            while waiting:
                line = waiting.pop()
                reuse = self._first_reuse(line)
                if reuse is not None:
                    self.reuses += 1
                    changed = self._rewritten(reuse)
                    for line in changed:
                        self._forget(line)
                    waiting += changed
        blocks = zip(self._cfg.blocks, self._lines, strict=True)
        done = tuple(with_evaluating(block, [line.stmt for line in lines]) for block, lines in blocks)
        return replace(self._cfg, blocks=done).program()

    def _forget(self, line: _Line) -> None:
        """Let nothing use what a line computes until it is looked through again."""
        for host in line.hosts:
            self._hosts[host.value].remove(host)
            if host.terms:
                self._sums[next(iter(host.terms))].remove(host)
        line.hosts.clear()

    def _first_reuse(self, line: _Line) -> _Reuse | None:
        """Return the first reuse in a line; what stands before it may serve what follows."""
        for site in sites_of(line.stmt):
            value = self._values.number(site.expr)
            if not _shareable(site.expr) or not self._values.names(value):
                continue
            terms = _sum_terms(site.expr)
            use = _Host(line, site, value, self._values.terms(terms))
            host = self._first(use, self._hosts.get(value, ()))
            reuse = self._part_of_sum(use, terms) if host is None else _Reuse(host, use)
            if reuse is not None:
                return reuse
            line.hosts.append(use)
            self._hosts.setdefault(value, []).append(use)
            if terms:
                self._sums.setdefault(next(iter(use.terms)), []).append(use)
        return None

    def _first(self, use: _Host, hosts: Iterable[_Host]) -> _Host | None:
        """Return the first of some computations whose value is at hand for another one."""
        found = sorted(hosts, key=lambda host: (self._order[host.line.block], host.line.number))  # which is stable
        return next((host for host in found if self._serves(host, use)), None)

    def _serves(self, host: _Host, use: _Host) -> bool:
        if host.site.expr.type != use.site.expr.type or (host.site.conditional and _may_trap(host.site.expr)):
            return False
        names, first, then = self._values.names(host.value), host.line.block, use.line.block
        if first == then:  # a line that is looked through again stands before some that were
            before = host.line.number <= use.line.number
            return before and not self._defined(names, first, host.line.number, use.line.number)
        scope = self._cfg.blocks[first].scope
        if self._level == 1 or self._cfg.blocks[then].scope[: len(scope)] != scope:
            return False
        between = self._changes.between(first, then)
        return (
            between is not None
            and not names & between
            and not self._defined(names, first, host.line.number, len(self._lines[first]))
            and not self._defined(names, then, 0, use.line.number)
        )

    def _defined(self, names: frozenset[str], block: int, first: int, end: int) -> bool:
        """Say whether lines of a block from one up to another change one of some scalars."""
        lines = chain.from_iterable(self._defining.get((block, name), ()) for name in names)
        return any(first <= line.number < end for line in lines)

    def _part_of_sum(self, use: _Host, terms: Sequence[tuple[bool, ir.Expr]]) -> _Reuse | None:
        if len(terms) < 3:
            return None
        hosts = chain.from_iterable(self._sums.get(term, ()) for term in use.terms)
        parts = [host for host in hosts if host.terms.total() < len(terms) and host.terms <= use.terms]
        safe = all(not negative and _not_negative(term, self._never_negative) for negative, term in terms)
        found = self._first(use, [host for host in parts if safe or host.terms.total() == len(terms) - 1])
        if found is None:
            return None
        wanted = Counter(found.terms)
        rest: list[tuple[bool, ir.Expr]] = []
        place: int | None = None
        for negative, term in terms:
            key = (negative, self._values.number(term))
            if wanted[key] > 0:
                wanted[key] -= 1
                place = len(rest) if place is None else place
            else:
                rest.append((negative, term))
        return _Reuse(found, use, tuple(rest), place or 0)

    def _rewritten(self, reuse: _Reuse) -> list[_Line]:
        """Rewrite the lines of a reuse, and return those that changed, the last one first."""
        line, expr, use = reuse.host.line, reuse.host.site.expr, reuse.use
        stmt = line.stmt
        if (
            isinstance(stmt, ir.Declare)
            and stmt.value is expr
            and stmt.name in self._temporaries
            and stmt.type == expr.type
        ):
            use.line.stmt = with_site_replaced(use.line.stmt, use.site, _sum_with(ir.Var(stmt.name, expr.type), reuse))
            return [use.line]
        name = next(name for number in count(1) if (name := f"t{number}") not in self._taken)
        self._taken.add(name)
        self._temporaries.add(name)
        if expr.type.integer and _not_negative(expr, self._never_negative):
            self._never_negative.add(name)
        value = ir.Var(name, expr.type)
        use.line.stmt = with_site_replaced(use.line.stmt, use.site, _sum_with(value, reuse))
        line.stmt = with_site_replaced(line.stmt, reuse.host.site, value)
        temporary = _Line(line.block, line.number, ir.Declare(name, expr.type, expr))
        lines = self._lines[line.block]
        lines.insert(line.number, temporary)
        for number, each in enumerate(lines):
            each.number = number
        return [line, temporary] if line is use.line else [use.line, line, temporary]


def _textual_order(cfg: SourceCfg) -> list[int]:
    """Return the blocks that can be reached, each after those that dominate it."""
    finished: list[int] = []
    entered = {0}
    waiting = [(0, iter(successors(cfg.blocks[0].terminator)[::-1]))]
    while waiting:
        number, targets = waiting[-1]
        target = next((target for target in targets if target not in entered), None)
        if target is None:
            finished.append(number)
            waiting.pop()
        else:
            entered.add(target)
            waiting.append((target, iter(successors(cfg.blocks[target].terminator)[::-1])))
    return finished[::-1]


def _shareable(expr: ir.Expr) -> bool:
    match expr:
        case ir.Binary(op=op):
            return op not in ir.COMPARISONS and op not in ir.LOGICAL
        case ir.Call() | ir.Unary(op="-" | "~"):
            return True
        case _:
            return False


def _may_trap(expr: ir.Expr) -> bool:
    """Say whether evaluating an expression where the program may not could overflow or divide by zero."""
    for part in ir.walk_expression(expr):
        match part:
            case ir.Binary(op="/" | "%" | ">>", left=left, right=ir.IntConst(value=value)) if left.type.integer:
                if value <= 0 or (part.op == ">>" and value >= 8 * left.type.size):
                    return True
            case ir.Binary(op="&" | "|" | "^") | ir.IntConst() | ir.Var() | ir.FloatConst():
                pass
            case _ if part.type.floating:
                pass
            case _:
                return True
    return False


def _sum_terms(expr: ir.Expr) -> list[tuple[bool, ir.Expr]]:
    return summands(expr) if isinstance(expr, ir.Binary) and expr.op in ("+", "-") and expr.type.integer else []


def _not_negative(expr: ir.Expr, names: Set[str]) -> bool:
    match expr:
        case ir.IntConst(value=value):
            return value >= 0
        case ir.Var(name=name):
            return name in names
        case ir.Binary(op="+" | "*" | "/" | "%" | ">>", left=left, right=right):
            return _not_negative(left, names) and _not_negative(right, names)
        case _:
            return False


def _never_negative(program: ir.Program) -> frozenset[str]:
    """Return integer scalars that are never negative: parameters, counting loops, and what is computed from them."""
    # A name may be declared several times: all its declarations must agree.
    declared: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    names = {parameter.name for parameter in program.parameters} | {loop.var for loop in program.grid}
    for derived in program.derived:
        if _not_negative(derived.definition, names):
            names.add(derived.name)
    outer = names | {derived.name for derived in program.derived} | {value.name for value in program.values}
    assigned = assigned_variables(program.body)
    for stmt in ir.walk_statements(program.body):
        match stmt:
            case ir.Declare(name=name, type=type_, value=value):
                declared[name] += 1
                fits = type_.integer and name not in assigned and value is not None
                if fits and value is not None and _not_negative(value, names):
                    shown[name] += 1
                    if value.type.size <= type_.size and name not in outer:
                        names.add(name)
            case ir.For(init=ir.Declare(name=name)) if counted_extent(stmt) is not None and name not in outer:
                shown[name] += 1
                names.add(name)
            case ir.Phase(threads=threads):
                names.update(loop.var for loop in threads if loop.var not in outer)
                shown.update(loop.var for loop in threads)
                declared.update(loop.var for loop in threads)
            case _:
                pass
    return frozenset(name for name in names if declared[name] <= max(shown[name], 1) and declared[name] <= 1)


def _set_once(program: ir.Program) -> set[str]:
    """Return the temporaries of a program that keep their values."""
    declared = Counter(stmt.name for stmt in ir.walk_statements(program.body) if isinstance(stmt, ir.Declare))
    once = {name for name, times in declared.items() if times == 1 and TEMPORARY.fullmatch(name)}
    return once - assigned_variables(program.body)


def _sum_with(value: ir.Var, reuse: _Reuse) -> ir.Expr:
    terms: list[tuple[bool, ir.Expr]] = list(reuse.rest)
    terms.insert(reuse.place, (False, value))
    first = next(position for position, (negative, _) in enumerate(terms) if not negative)
    terms.insert(0, terms.pop(first))
    result = terms[0][1]
    for negative, term in terms[1:]:
        result = ir.binary("-" if negative else "+", result, term)
    return result
