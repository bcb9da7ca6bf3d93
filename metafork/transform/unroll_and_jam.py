"""unroll_and_jam: several iterations of a thread's loop side by side."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.ir import program as ir
from metafork.ir.marks import can_run_together, counter_of, phases
from metafork.ir.rewriting import private_arrays
from metafork.transform import legality
from metafork.transform.directive import Refused
from metafork.transform.loops import SerialLoop, each_replaced, loop_named


class UnrollAndJam(Struct, frozen=True):
    """Run ``factor`` iterations of a loop together, so that what they all load is loaded once.

    unroll_and_jam(w, 4)::

        for (int w = 0; w < s; w++) {               for (int w = 0; w < s / 4 * 4; w += 4) {
          float t = c[w];                             float t = c[w];  ...  float t_4 = c[w + 3];
          for (int z = 0; z < K; z++)                 for (int z = 0; z < K; z++) {
            t += a[z] * b[z][w];             -->        t += a[z] * b[z][w];  ...  t_4 += a[z] * b[z][w + 3];
          c[w] = t;                                   }
        }                                             c[w] = t;  ...  c[w + 3] = t_4;
                                                    }
                                                    for (int w = s / 4 * 4; w < s; w++) ...   as before

    The loop is marked, and lowering puts its iterations side by side; of a loop that has ``factor`` of them nothing
    else is left.  After Callahan, Carr and Kennedy, "Improving register allocation for subscripted variables" (PLDI
    1990).

    Legal where iterations are independent: they may then run in any interleaving that keeps the order within each.
    """

    loop: str
    factor: int

    def __post_init__(self) -> None:
        if not 2 <= self.factor <= 16:
            raise ValueError(f"factor is from 2 to 16, not {self.factor}")

    def apply(self, program: ir.Program, analyses: Analyses) -> ir.Program | Refused:
        """Return the program with the loop marked."""
        found = loop_named(program, self.loop)
        if isinstance(found, Refused):
            return found
        if not isinstance(found, SerialLoop) or not _in_threads(program, found.stmt):
            return Refused(f"`{self.loop}` is no loop of a thread", program.span)
        loop = found.stmt
        if loop.copies:
            return Refused(f"iterations of `{self.loop}` run together already", loop.span)
        if isinstance(found.extent, ir.IntConst) and found.extent.value < self.factor:
            return Refused(f"the loop over `{self.loop}` has fewer than {self.factor} iterations", loop.span)
        if counter_of(loop) is None or not can_run_together(loop.body, private_arrays(program.body)):
            return Refused(f"iterations of `{self.loop}` cannot stand side by side", loop.span)
        if refused := legality.independent(program, found, analyses):
            return refused
        marked = replace(loop, copies=self.factor)
        return replace(program, body=each_replaced(program.body, lambda stmt: (marked,) if stmt is loop else None))


def _in_threads(program: ir.Program, loop: ir.For) -> bool:
    return any(stmt is loop for phase in phases(program) for stmt in ir.walk_statements(phase.body))
