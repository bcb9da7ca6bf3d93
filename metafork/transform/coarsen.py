"""coarsen: a thread has several results."""

from __future__ import annotations

from msgspec import Struct

from metafork.analysis.analyses import Analyses
from metafork.ir.marks import is_coarsenable, results_of, with_results
from metafork.ir.program import Program
from metafork.transform.directive import Refused
from metafork.transform.loops import ThreadLoop, loop_named


class Coarsen(Struct, frozen=True):
    """Let a thread run ``factor`` neighbouring iterations of a thread loop, side by side.

    coarsen(v, 4)::

        meta_for (int v = 0; v < B; v++)     -->   meta_for (int v_o = 0; v_o < (B + 3) / 4; v_o++)
          S(v);                                      S(4 * v_o); S(4 * v_o + 1); S(4 * v_o + 2); S(4 * v_o + 3);

    The loops of the same dimension in all phases are marked, and lowering puts the iterations side by side: what
    several of them load is loaded once, and neighbours of the innermost loop are accessed as vectors of 2 or 4.  After
    Magni, Dubach and O'Boyle, "A large-scale cross-architecture evaluation of thread-coarsening" (SC 2013).

    Legal always: the order of thread loops is free, by what ``meta_for`` promises.
    """

    loop: str
    factor: int

    def __post_init__(self) -> None:
        if not 2 <= self.factor <= 64:
            raise ValueError(f"factor is from 2 to 64, not {self.factor}")

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program with the loops marked."""
        found = loop_named(program, self.loop)
        if isinstance(found, Refused):
            return found
        if not isinstance(found, ThreadLoop):
            return Refused(f"`{self.loop}` is no thread loop", program.span)
        span = found.head.span
        if program.striding is not None:
            return Refused("the threads of a block stride", span)
        if results_of(program)[found.axis] > 1:
            return Refused(f"a thread has several results over `{self.loop}` already", span)
        if not is_coarsenable(program, found.axis, self.factor):
            return Refused(f"no thread runs {self.factor} iterations of `{self.loop}` with those that it runs", span)
        return with_results(program, {found.axis: self.factor})
