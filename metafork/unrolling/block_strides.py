"""Loops of a thread that go by as many places as its block has: four iterations at once, as long as there are four.

``before --> after``, where a block has ``B`` places::

    for (int k = u; k < n; k += B)            int k = u;
      sum += a[k];                     -->    for (; k < n - 3 * B; k += 4 * B) {
                                                sum += a[k];  sum += a[k + B];  ...  sum += a[k + 3 * B];
                                              }
                                              for (; k < n; k += B)
                                                sum += a[k];

A compiler does the same, but divides first, to know how many iterations are left over: some 25 instructions.  Where
blocks add up in steps, loops by ones that access every ``B``-th element get the same; elsewhere they are left to the
passes that make vectors and tiles of them.

Legality.  Iterations stay in their order, and leave the limit as it is.  A block has few places, and the limit is
proved not to be negative, or tested, so that nothing overflows that did not before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from itertools import chain

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.counted_loops import CountedLoop, counted_loop
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span
from metafork.ir.names import fresh
from metafork.ir.rewriting import assigned_variables
from metafork.ir.visitor import Body, Rewriter
from metafork.unrolling.jam import copied
from metafork.unrolling.shared_loads import exact_polynomial
from metafork.unrolling.warp_steps import known_scalar

INT = ScalarType.INT
TOGETHER = 4
MOST_STATEMENTS = 32
"""Statements of an iteration that is written so many times."""


class BlockStrides(Rewriter):
    """Rewrites the code of a thread in a phase with these thread loops; loops within loops stay as they are.

    ``positive`` says what is proved not to be negative, ``by_ones`` whether loops by ones are among them.  ``taken``
    grows by the names of scalars.
    """

    def __init__(
        self, threads: Sequence[ir.MetaFor], positive: Callable[[ir.Expr], bool], by_ones: bool, taken: set[str]
    ) -> None:
        extents = [exact_polynomial(loop.extent, {}, frozenset()) for loop in threads]
        self._extents: list[Polynomial | None] = [one for one in extents if one is not None and one.symbols]
        self._positive, self._by_ones, self._taken = positive, by_ones, taken

    def loop(self, node: ir.For) -> ir.Stmt | Body:
        """Return a loop, or one of several iterations at once and one over those that are left."""
        counted = counted_loop(node)
        steady = counted is not None and not (counted.down or counted.others) and counted.declared
        limit = counted.only_limit() if counted is not None and steady else None
        if counted is None or limit is None or not node.body or node.copies:
            return node
        statements = ir.walk_statements(node.body)
        simple = all(isinstance(one, ir.Declare | ir.Assign | ir.If) for one in statements)
        op, end = limit
        changing = assigned_variables(node.body)
        if (
            not simple
            or len(statements) > MOST_STATEMENTS
            or not counted.variable.type is end.type is counted.step.type is INT
            or op != "<"
            or not self._goes_by_places(counted, node.body, changing)
        ):
            return node
        place = ir.Var(fresh(counted.variable.name, self._taken), INT)
        apart = [_times(counted.step, count) for count in range(1, TOGETHER + 1)]
        further: list[ir.Expr] = [place, *(ir.binary("+", place, one) for one in apart[:-1])]
        copies = [copied(node.body, {counted.variable.name: one}, self._taken) for one in (*further, place)]
        last = ir.binary("-", end, apart[-2])
        four = _rolled(place, last, apart[-1], tuple(chain(*copies[:-1])), node.span)
        rest = _rolled(place, end, counted.step, copies[-1], node.span)
        several = four if self._positive(end) else ir.If(ir.binary(">", end, apart[-2]), (four,))
        return (ir.Declare(place.name, INT, counted.first, node.span), several, rest)

    def _goes_by_places(self, loop: CountedLoop, body: Body, changing: Set[str]) -> bool:
        """Say whether a loop's step is the number of places, or what it accesses lies so many elements apart."""
        if exact_polynomial(loop.step, {}, changing) in self._extents:
            return True
        if not (loop.unit and self._by_ones):
            return False
        known: dict[str, Polynomial] = {}
        for stmt in ir.walk_statements(body):
            for part in (part for expr in ir.expressions_of(stmt) for part in ir.walk_expression(expr)):
                place = exact_polynomial(part.indices[0], known, changing) if isinstance(part, ir.Element) else None
                if place is not None and place.coefficient(loop.variable.name) in self._extents:
                    return True
            if isinstance(stmt, ir.Declare):
                known[stmt.name] = known_scalar(stmt, known)
        return False


def _times(step: ir.Expr, count: int) -> ir.Expr:
    if isinstance(step, ir.IntConst):
        return ir.IntConst(step.value * count)
    return step if count == 1 else ir.binary("*", step, ir.IntConst(count))


def _rolled(place: ir.Var, limit: ir.Expr, step: ir.Expr, body: Body, span: Span) -> ir.For:
    return ir.For(None, ir.binary("<", place, limit), ir.Assign(place, "+", step), body, span, ir.ROLLED)
