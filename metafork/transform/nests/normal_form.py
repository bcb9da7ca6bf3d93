"""Loops that count from 0 by ones, in place of loops that count otherwise.

``before --> after``::

    for (int k = B; k < s * B; k += B) S   -->   for (int m = 0; m < s - 1; m++) { int k = B + m * B; S }

The new variable and its products stay within the type of the old one: they do not exceed the values that the old one
takes where its first value (or, downward, its last) is not negative.
"""

from __future__ import annotations

from metafork.analysis.counted_loops import counted_loop
from metafork.analysis.values.scope import Scope
from metafork.ir.polynomial_code import code_of, may_be_negative
from metafork.ir.program import Assign, Declare, Expr, For, IntConst, Program, Var, binary
from metafork.ir.rewriting import fresh_name, names_of
from metafork.transform.nests.simplification import simplified


def from_zero(loop: For, program: Program, scope: Scope) -> For | None:
    """Return the loop counting from 0 by ones, ``None`` where its trip count is no polynomial in parameters."""
    view = counted_loop(loop)
    limit = None if view is None else view.only_limit()
    if view is None or limit is None or not view.declared or not view.variable.type.signed:
        return None
    spans = tuple(view.spans())
    least = view.first if not view.down else limit[1]
    low = scope.polynomial(least)
    span = None if not spans else scope.polynomial(spans[0])
    step = scope.polynomial(view.step)
    if low is None or span is None or step is None or not step or may_be_negative(low) or may_be_negative(step):
        return None
    trips = span.divide_exactly(step)
    if trips is None or any(coefficient.denominator != 1 for coefficient in trips.terms().values()):
        return None
    if not (low.symbols | trips.symbols | step.symbols) <= scope.constants:
        return None
    scalars = {p.name: p.type for p in program.parameters} | {d.name: d.type for d in program.derived}
    if not trips.symbols <= scalars.keys() or any(scope.values.get(name) is None for name in trips.symbols):
        return None
    type_ = view.variable.type
    extent = code_of(trips, {name: Var(name, of) for name, of in scalars.items()})
    counter = Var(fresh_name(f"{view.variable.name}_number", names_of(program)), type_)
    gone: Expr = counter if view.unit else binary("*", counter, view.step)
    value = simplified(binary("-" if view.down else "+", view.first, gone))
    return For(
        Declare(counter.name, type_, IntConst(0)),
        binary("<", counter, extent),
        Assign(counter, "+", IntConst(1)),
        (Declare(view.variable.name, type_, value), *loop.body),
        loop.span,
    )
