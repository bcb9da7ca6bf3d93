"""How the variable ``k`` of a granularity loop (``e`` iterations) joins the grid variable ``i`` (``d`` blocks).

Three ways, tried in this order; ``I`` is the enlarged grid variable, with extent ``d*e``:

- *fine*: every index, condition and bound depends on i and k through ``i*e + k`` alone, which is ``I``::

      i < dim:  p = i*s*B + k*B + j      -->   i < dim*s:  p = i*B + j

- *coarse*: through ``i + k*d`` alone::

      p < N/(2*B), assert(N % (2*B) == 0):  j = p*B + q;  c[j + k*(N/2)]   -->   p < N/(2*B)*2:  c[p*B + q]

- *decoded*: ``i = I/e; k = I%e`` at the start of the block.

For the first two, every root of the program (an index, a comparison, an integer turned into a number: what is not
only the value of another integer scalar) is a function f of I.  So f has the same value at k = 0 with i*e (with i, in
the coarse way) replaced by I; and integer scalars in between may take other values than before.  That is what is
done: k becomes 0, and ``i*e`` becomes ``i`` in products that hold both.

Overflow: ``I < d*e``, which is proved to be no larger than an extent of an array, a parameter, or a value computed
before the schedule, that are themselves of the type of i; without that proof I is a ``long``, and decoded.  A rewritten
scalar keeps the shape of its expression, and may have no negative term but a last constant, so that its partial sums
do not exceed its value.  That value is one that the scalar had before, if it is itself a function of I.  If it is not
(``q = j*s*ub1 + u``, used in ``q + w*ub1``), its new value must not exceed that of its roots: then nothing may be
subtracted in any root, but for a last constant.
"""

from __future__ import annotations

from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.algebra.positivity import Positivity
from metafork.analysis.facts import program_facts
from metafork.analysis.host_arithmetic import always_computed
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import (
    fresh_name,
    names_of,
)
from metafork.transform.nests.grid_tile import ExactQuotients, Joining, Tile
from metafork.transform.nests.simplification import simplified


def join(joining: Joining) -> tuple[ir.Program, str]:
    """Return the program in which ``k`` is part of a grid variable, and how this was done, in words."""
    facts = program_facts(joining.program)
    exact = ExactQuotients(facts)
    for position in reversed(range(len(joining.program.grid))):
        loop = joining.program.grid[position]
        if not _fits(joining, loop, facts):
            continue
        for coarse in (False, True):
            rewriter = Tile(joining, loop, coarse, facts, exact)
            program = rewriter.program(position)
            if program is not None:
                shape = f"{loop.var} + {joining.k}*extent" if coarse else f"{loop.var}*extent + {joining.k}"
                return program, f"{joining.k} occurs as {shape} only, the new {loop.var}"
    return _decoded(joining, facts)


def _fits(joining: Joining, loop: ir.MetaFor, facts: Facts) -> bool:
    """Say whether the enlarged extent is proved to be no larger than some value of the grid variable's own type."""
    scope = Scope.of(facts)
    extent, trips = scope.polynomial(loop.extent), scope.polynomial(joining.trips)
    if extent is None or trips is None:
        return False
    known = Positivity(facts.constraints, facts.derived)
    bounds: list[Polynomial | None] = [
        scope.polynomial(dimension)
        for array in joining.program.arrays
        for dimension in array.extents
        if loop.type.holds(dimension.type)
    ]
    bounds += [facts.values.get(p.name) for p in joining.program.parameters if loop.type.holds(p.type)]
    # What the program computes before the schedule stays within its type: N + B - 1 of (N + B - 1) / B.
    bounds += [
        scope.polynomial(part)
        for derived in joining.program.derived
        for part in always_computed(derived.definition)
        if part.type.integer and loop.type.holds(part.type)
    ]
    room = [bound - extent * trips for bound in dict.fromkeys(bounds) if bound is not None]
    return any(known.non_negative(rest, search=True) for rest in room)


def _decoded(joining: Joining, facts: Facts) -> tuple[ir.Program, str]:
    """Return the program in which the innermost grid variable and ``k`` are computed from the enlarged index."""
    program = joining.program
    loop = program.grid[-1]
    name = fresh_name(loop.var + joining.k, names_of(program))
    fits = _fits(joining, loop, facts)
    type_ = loop.type if fits else ScalarType.LONG
    extent = loop.extent if fits else ir.Cast(ScalarType.LONG, loop.extent)
    index = ir.Var(name, type_)
    quotient, remainder = ir.binary("/", index, joining.trips), ir.binary("%", index, joining.trips)
    enlarged = ir.MetaFor(name, simplified(ir.binary("*", extent, joining.trips)), type_, loop.span)
    new = replace(
        program,
        grid=(*program.grid[:-1], enlarged),
        body=(
            ir.Declare(loop.var, loop.type, quotient),
            ir.Declare(joining.k, joining.k_type, remainder),
            *program.body,
        ),
    )
    return new, f"{loop.var} and {joining.k} are decoded from the enlarged grid index {name}"
