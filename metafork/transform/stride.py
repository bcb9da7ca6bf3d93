"""stride: a block has fewer threads than its loops ask for."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.ir.program import Program
from metafork.transform.directive import Refused


class Stride(Struct, frozen=True):
    """Walk the thread loops of a block by ``threads`` threads, or by more where there is room.

    stride(32)::

        meta_for (int v = 0; v < B0; v++)    -->   meta_for (int t = 0; t < threads; t++)
          meta_for (int u = 0; u < B1; u++)          for (int x = t; x < B0 * B1; x += threads)
            S(v, u);                                   S(x / B1, x % B1);

    Legal always: the order of thread loops is free, by what ``meta_for`` promises.  ``B0 * B1`` is to be an ``int``.
    """

    threads: int

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= 1024:
            raise ValueError(f"threads is from 1 to 1024, not {self.threads}")

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program with fewer threads."""
        if program.striding is not None:
            return Refused("the threads of a block stride already", program.span)
        return replace(program, striding=self.threads)
