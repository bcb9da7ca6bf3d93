"""reroll: statements that repeat with a shift become a loop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.ir import program as ir
from metafork.ir.rewriting import assigned_variables, fresh_name, names_of, variables
from metafork.transform import legality
from metafork.transform.directive import Refused
from metafork.transform.nests.rolling import definition_of, rolled_bodies
from metafork.transform.nests.spine import Body, counted_extent, replaced_on_spine, spine_of


class Reroll(Struct, frozen=True):
    """Roll what a block does into a loop over ``k``, a name that is new, of so many ``trips``.

    reroll(2)::

        c[i][j] = a[i][j];                     for (int k = 0; k < 2; k++)
        c[i][j + N/2] = a[i][j + N/2];   -->     c[i][j + k*(N/2)] = a[i][j + k*(N/2)];

    Legal always: the loop runs the same statements in the same order (``metafork.transform.nests.rolling``).
    """

    trips: int

    def apply(self, program: ir.Program, analyses: Analyses) -> ir.Program | Refused:
        """Return the program with the loop."""
        if refused := legality.distinct(program):
            return refused
        for rolled, loop in rolled_programs(program, analyses):
            if counted_extent(loop) == ir.IntConst(self.trips):
                return rolled
        return Refused(f"no statements around all the work of a block repeat {self.trips} times with a shift")


def rolled_programs(program: ir.Program, analyses: Analyses) -> Iterator[tuple[ir.Program, ir.For]]:
    """Yield the ways to roll the end of a block's work into a loop on its spine, with that loop; most trips first."""
    spine = spine_of(program)
    variable = fresh_name("k", names_of(program))
    steps = {loop.init.name for loop in spine.loops if isinstance(loop.init, ir.Declare)}
    changing = assigned_variables(program.body) - steps
    definitions: dict[str, ir.Expr] = {}
    for stmt in spine.declarations:
        value = definition_of(stmt)
        if value is not None and not (variables(value) | {stmt.name}) & changing:
            definitions[stmt.name] = value
    for body in rolled_bodies(spine.innermost, variable, analyses.facts(program), definitions):
        loop = body[-1]
        assert isinstance(loop, ir.For)
        yield replace(program, body=replaced_on_spine(program.body, spine.innermost[0], partial(_all, body))), loop


def _all(body: Body, level: Body, position: int) -> Body:
    del level, position
    return body
