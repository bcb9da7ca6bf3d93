"""Loops of a thread whose ends are the same for all threads of a block, with what stands around them.

A block may walk such a loop in strips (``metafork.transform.strips``).
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import at_most
from metafork.algebra.prover import Prover
from metafork.analysis.analyses import Analyses
from metafork.analysis.counted_loops import CountedLoop, counted_loop
from metafork.analysis.references import breaks
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import assigned_variables, variables, without_unread
from metafork.transform.directive import Refused

Body = tuple[ir.Stmt, ...]
INT = ScalarType.INT
COUNTED = frozenset({INT, ScalarType.LONG, ScalarType.LONG_LONG})
LARGEST_BLOCK = 1024
"""Threads of a block on any GPU: a loop of no more iterations is one strip, which ``caching`` decides on."""


class Nest(Struct, frozen=True):
    """A loop of a thread, what stands before and behind it, and the ``guards`` around all three, outside in.

    A guard is what stands before a condition, which are scalars that each part of a thread computes for itself, and
    the condition.  ``steady`` are those scalars, and those that stand before the loop.  ``empty`` says that it may have
    no iterations, but no fewer: its last strip may then be empty.
    """

    guards: tuple[tuple[Body, ir.Expr], ...]
    before: Body
    loop: ir.For
    view: CountedLoop
    limit: ir.Expr
    behind: Body
    steady: frozenset[str]
    empty: bool = False

    def ending(self, scope: Scope, prover: Prover) -> Nest | str:
        """Return the nest with what is known of the loop's end, or why strips of it have no known ends."""
        first, limit = scope.polynomial(self.view.first), scope.polynomial(self.limit)
        if first is None or limit is None or not prover.derives(at_most(-LARGEST_BLOCK, limit)):
            # Ends of strips are computed without overflow where this is known.
            return f"the loop over {self.view.variable.name} is not known to end near 0 or behind it"
        runs = bool(prover.derives(at_most(first + 1, limit)))
        return replace(self, empty=not runs and bool(prover.derives(at_most(first, limit))))

    def strips(self, size: ir.Expr) -> ir.Expr:
        """Return how many strips of a size the loop has."""
        first = self.view.first
        span = self.limit if first == ir.IntConst(0) else ir.binary("-", self.limit, first)
        dividend = span if self.empty else ir.binary("-", span, ir.IntConst(1))
        return ir.binary("+", ir.binary("/", dividend, size), ir.IntConst(1))

    def begin(self, strip: ir.Expr, size: ir.Expr) -> ir.Expr:
        """Return where a strip begins."""
        begin = ir.binary("*", strip, size)
        return begin if self.view.first == ir.IntConst(0) else ir.binary("+", self.view.first, begin)

    def guarded(self, body: Body) -> Body:
        """Return some code under the guards, with those scalars of theirs that it needs."""
        body = without_unread(body, self.steady)
        for scalars, condition in reversed(self.guards):
            body = without_unread((*scalars, ir.If(condition, body)), self.steady)
        return body


def nests(phase: ir.Phase) -> Iterator[Nest]:
    """Yield the loops of a phase that count by ones from a constant to what is the same for all threads of a block."""
    code, guards, steady = phase.body, list[tuple[Body, ir.Expr]](), frozenset[str]()
    own = frozenset(stmt.name for stmt in ir.walk_statements(phase.body) if isinstance(stmt, ir.Declare))
    threads, changing = frozenset(loop.var for loop in phase.threads), assigned_variables(phase.body)
    while True:
        inside = _steady(code, steady, own, changing)
        for place, stmt in enumerate(code):
            view = counted_loop(stmt) if isinstance(stmt, ir.For) else None
            end = None if view is None else _end(view)
            if view is None or end is None or not isinstance(stmt, ir.For):
                continue
            alike = is_plain(end) and not variables(end) & (own | threads)
            if {view.variable.type, end.type} <= COUNTED and alike and not breaks(stmt.body):
                yield Nest(tuple(guards), code[:place], stmt, view, end, code[place + 1 :], inside)
        match code:
            case (*scalars, ir.If(condition=condition, then=then, otherwise=())) if (
                all(isinstance(one, ir.Declare) and one.name in inside for one in scalars)
                and is_plain(condition)
                and not variables(condition) & own - inside
            ):
                guards.append((tuple(scalars), condition))
                code, steady = then, inside
            case _:
                return


def nest_over(variable: str, phase: ir.Phase, program: ir.Program, analyses: Analyses) -> Nest | Refused:
    """Return the loop of a phase over a variable, with what is known of its end, or why it has no strips."""
    facts = analyses.facts(program)
    scope, prover = Scope.of(facts), analyses.prover(facts.constraints, facts.derived)
    for nest in nests(phase):
        if nest.view.variable.name == variable:
            ending = nest.ending(scope, prover)
            return Refused(ending, nest.loop.span) if isinstance(ending, str) else ending
    return Refused(f"the ends of a loop over `{variable}` are not the same for all threads", program.span)


def _end(view: CountedLoop) -> ir.Expr | None:
    """Return what a loop that counts by ones from a constant stays below, ``None`` for another loop."""
    first, limit = view.first, view.only_limit()
    if not (view.declared and view.unit and not view.down and isinstance(first, ir.IntConst)):
        return None
    if not 0 <= first.value < 1 << 30:
        return None
    match limit:
        case ("<", end):
            return end
        case ("<=", last):
            return ir.binary("+", last, ir.IntConst(1))
        case _:
            return None


def _steady(code: Body, around: frozenset[str], own: Set[str], changing: Set[str]) -> frozenset[str]:
    """Return the scalars of a body, and those around it, that each part of a thread can compute for itself."""
    found = around
    for stmt in code:
        match stmt:
            case ir.Declare(name=name, value=value) if (
                value is not None and name not in changing and is_plain(value) and not variables(value) & own - found
            ):
                found |= {name}
            case _:
                pass
    return found


def is_plain(expr: ir.Expr) -> bool:
    """Say whether an expression reads no memory and calls nothing."""
    return not any(isinstance(part, ir.Element | ir.Call) for part in ir.walk_expression(expr))
