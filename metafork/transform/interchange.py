"""interchange: two serial loops, one right inside the other, change places."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.ir.program import Program
from metafork.ir.rewriting import variables
from metafork.transform import legality
from metafork.transform.directive import Refused
from metafork.transform.loops import SerialLoop, each_replaced, loop_named


class Interchange(Struct, frozen=True):
    """Let the loop right inside of a serial loop stand around it.

    interchange(z, w)::

        for (int z = 0; z < B; z++)          -->   for (int w = 0; w < s; w++)
          for (int w = 0; w < s; w++)                for (int z = 0; z < B; z++)
            S(z, w);                                   S(z, w);

    Legal where nothing but the inner loop stands in the outer one, the limit of neither depends on the other, and the
    iterations of one of them are independent: then no iteration hands anything on that goes from one (z, w) to another
    whose z is later and whose w is earlier.
    """

    outer: str
    inner: str

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program with the loops in the other order."""
        outer, inner = (loop_named(program, name) for name in (self.outer, self.inner))
        for loop in (outer, inner):
            if isinstance(loop, Refused):
                return loop
            if not isinstance(loop, SerialLoop):
                return Refused("grid and thread loops have no order", loop.head.span)
        assert isinstance(outer, SerialLoop)
        assert isinstance(inner, SerialLoop)
        if outer.stmt.body != (inner.stmt,):
            reason = f"the loop over `{self.inner}` is not all that the loop over `{self.outer}` does"
            return Refused(reason, outer.stmt.span)
        if outer.variable in variables(inner.extent):
            return Refused(f"how often `{self.inner}` runs depends on `{self.outer}`", inner.stmt.span)
        refused = legality.independent(program, outer, analyses)
        if refused and legality.independent(program, inner, analyses, around=outer):
            return refused
        new = replace(inner.stmt, body=(replace(outer.stmt, body=inner.stmt.body),))
        body = each_replaced(program.body, lambda stmt: (new,) if stmt is outer.stmt else None)
        return replace(program, body=body)
