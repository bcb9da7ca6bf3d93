"""Loops of few constant trips in straight thread code, and the code without them.

``before --> after``::

    for (int d = 0; d < 3; d++)            sum += a[x];
      sum += a[x + d];              -->    sum += a[x + 1];
                                           sum += a[x + 2];
"""

from __future__ import annotations

from collections.abc import Mapping

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Assign, Binary, Declare, Expr, For, If, IntConst, Stmt, Var, While, walk_statements
from metafork.ir.rewriting import assigned_variables, map_body, map_expression
from metafork.ir.visitor import Rewriter, changed
from metafork.unrolling.jam import copied

Body = tuple[Stmt, ...]
MOST_TRIPS = 16
MOST_STATEMENTS = 1024
"""Statements of a loop that is unrolled, all trips together."""


def places_of(loop: For) -> range:
    """Return the values of a counter that runs from a constant to a constant; none where a loop is another one."""
    match loop:
        case For(
            init=Declare(name=name, type=ScalarType.INT, value=IntConst(value=first)),
            condition=Binary(op="<", left=Var(name=tested), right=IntConst(value=last)),
            step=Assign(target=Var(name=stepped), op="+", value=IntConst(value=1)),
            body=inner,
        ) if name == tested == stepped and name not in assigned_variables(inner):
            return range(first, last)
        case _:
            return range(0)


def is_unrolled(places: range, statements: int) -> bool:
    """Say whether a loop with a body of so many statements is unrolled."""
    return 0 < len(places) <= MOST_TRIPS and len(places) * statements <= MOST_STATEMENTS


def unrolled_statements(body: Body) -> int:
    """Return how many statements code has without its loops of few constant trips."""
    return sum(map(_unrolled, body))


def _unrolled(stmt: Stmt) -> int:
    match stmt:
        case If(then=then, otherwise=otherwise):
            return 1 + unrolled_statements(then) + unrolled_statements(otherwise)
        case For(init=init, step=step, body=inner):
            places, inside = places_of(stmt), unrolled_statements(inner)
            if is_unrolled(places, inside):
                return len(places) * inside
            return 1 + (init is not None) + (step is not None) + inside
        case _:
            return 1


def without_short_loops(body: Body, taken: set[str]) -> Body:
    """Return code without its loops of few constant trips; itself where it has none."""
    return _Straight(taken).body(body)


class _Straight(Rewriter):
    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def repeat(self, node: While) -> While:
        return node

    def loop(self, node: For) -> Stmt | Body:
        straight = self.body(node.body)
        places = places_of(node)
        if not is_unrolled(places, len(walk_statements(straight))):
            return changed(node, body=straight)
        assert isinstance(node.init, Declare)
        result: list[Stmt] = []
        for number in places:
            values: Mapping[str, Expr] = {node.init.name: IntConst(number)}
            copy = copied(straight, values, self._taken)
            result += copy if number else map_body(copy, _without_zero)
        return tuple(result)


def _without_zero(expr: Expr) -> Expr | None:
    """Leave out a summand that a counter's first value has made zero."""
    match expr:
        case Binary(op="+", left=left, right=IntConst(value=0)) if left.type is expr.type:
            return map_expression(left, _without_zero)
        case _:
            return None
