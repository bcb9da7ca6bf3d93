"""Loops of the host around a program as loops around its accesses: what is touched by all of its launches together.

``before --> after``: ``x[s*n + i]`` with ``s < m`` of parameters  -->  ``x[s*n + i]`` in a loop ``s`` of ``m`` trips
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.analysis.extents.accesses import Access
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir import program as ir

WholeLoops = Sequence[tuple[str, ir.Expr]]
"""Variables of loops that count from 0, the innermost first, and how many iterations there are."""


def in_whole_loops(facts: Facts, accesses: Sequence[Access], loops: WholeLoops) -> tuple[Facts, list[Access]] | None:
    """Return facts without the variables of loops that run a program whenever they run, and accesses in these loops.

    ``None`` if the variable of the outermost one does not say what is touched.  What holds of a variable where the
    program runs is a condition of its accesses then.
    """
    name, _ = loops[-1]
    if not any(one.index is not None and name in one.index.symbols for one in accesses):
        return None
    found = list(accesses)
    for name, number in loops:
        if any(name in one.symbols for symbol in facts.derived for one in symbol.operands):
            return None
        # The end of the loop is a parameter of the program once an extent says it.
        more = {
            part.name: Polynomial.symbol(part.name) for part in ir.walk_expression(number) if isinstance(part, ir.Var)
        }
        facts = replace(facts, values={**more, **facts.values})
        trips = Scope.of(facts).polynomial(number)
        if trips is None:
            return None
        loop = LoopRange(name, trips, LoopKind.SERIAL)
        moved = [one for one in facts.constraints if name in one.symbols]
        left = [at_most(0, one) for key, one in more.items() if key != name]
        left += [one for one in facts.constraints if name not in one.symbols]
        facts = replace(
            facts,
            constraints=tuple(dict.fromkeys(left)),
            limits=tuple(one for one in facts.limits if name not in one.symbols),
            running=tuple(one for one in facts.running if name not in one.symbols),
        )
        conditions = (*loop.constraints(), *moved)
        found = [
            replace(one, loops=(loop, *one.loops), conditions=tuple(dict.fromkeys((*conditions, *one.conditions))))
            for one in found
        ]
    return facts, found
