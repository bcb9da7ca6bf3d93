"""Loops of neighbouring columns that begin at neighbouring places, as one loop.

``before --> after``, for the second of 4 columns, where ``first``, ``n`` and ``B`` are multiples of 4::

    for (int k = first + 1; k < n; k += B)         for (int k = first; k < n; k += B)
      sum += a[k];                           -->     sum += a[k + 1];

Legality.  The counter of a column lies behind that of the first one as far as its start does, in every iteration.  The
start of the first column, the step and the limit are multiples of the number of columns.  So where the first counter is
below the limit, all are: all columns have as many iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metafork.algebra.polynomial import Polynomial
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import names_in, substitute, substitute_body
from metafork.ir.visitor import Body, Rewriter, changed
from metafork.unrolling.shared_loads import changing_scalars, exact_polynomial
from metafork.unrolling.vectors import multiples_needed

INT = ScalarType.INT


class Walks(Rewriter):
    """Rewrites what a column does, whose loop variable is ``column``; column ``number`` of ``count``.

    ``first`` is the first of them, ``known`` are scalars as polynomials, ``free`` those that may be asked to be
    multiples of ``count``; those that have to be are collected in ``multiples``.
    """

    def __init__(
        self,
        column: str,
        first: ir.Var,
        number: int,
        count: int,
        known: Mapping[str, Polynomial],
        free: Sequence[str],
    ) -> None:
        super().__init__()
        self._column, self._first, self._number, self._count = column, first, number, count
        self._known, self._free = {**known, column: Polynomial.symbol(column)}, free
        self._code: dict[str, ir.Expr] = {column: first}
        self._changing: frozenset[str] = frozenset()
        self.multiples: list[str] = []

    def of_column(self, body: Body) -> Body:
        """Return what the column does, with its loops from the first column on."""
        self._changing = changing_scalars(body)
        return self.body(body)

    def declare(self, node: ir.Declare) -> ir.Declare:
        """Remember what a scalar is."""
        value = None if node.value is None or node.type is not INT else self._value(node.value)
        if value is None or node.value is None:
            self._known[node.name] = Polynomial.symbol(node.name)
        else:
            self._known[node.name] = value
            self._code[node.name] = substitute(node.value, self._code)
        return node

    def loop(self, node: ir.For) -> ir.Stmt | Body:
        """Begin at the first column, and do what belongs to the own one."""
        match node:
            case ir.For(
                init=ir.Declare(name=name, type=ScalarType.INT, value=begin) as init,
                condition=ir.Binary(op="<", left=ir.Var(name=tested), right=limit),
                step=ir.Assign(target=ir.Var(name=stepped), op="+", value=step),
            ) if begin is not None and name == tested == stepped:
                values = [self._value(one) for one in (begin, limit, step)]
            case _:
                return super().loop(node)
        start, *others = values
        if start is None or start.coefficient(self._column) != Polynomial.constant(1) or None in others:
            return super().loop(node)
        at_first = start.substitute({self._column: self._known[self._first.name]})
        even = [one for one in (at_first, *others) if one is not None]
        needed = multiples_needed(even, self._count, self._free, self.multiples)
        if needed is None or any(self._column in one.symbols for one in even):
            return super().loop(node)
        self.multiples = needed
        body = node.body
        if self._number:
            place = ir.binary("+", ir.Var(name, INT), ir.IntConst(self._number))
            body = substitute_body(body, {name: place}, names_in(body))
        own = ir.Declare(name, INT, substitute(begin, self._code), init.span)
        return changed(node, init=own, body=self.body(body))

    def _value(self, expr: ir.Expr) -> Polynomial | None:
        return exact_polynomial(expr, self._known, self._changing)
