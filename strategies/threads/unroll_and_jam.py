"""unroll_and_jam: several iterations of a serial loop per thread, so that what loops in it load serves all of them.

``before --> after``::

    for (int w = 0; w < s; w++) {              for (int w = 0; w < s / 4 * 4; w += 4) {
      float t = c[p][w];                         float t = c[p][w];  ...  float t_4 = c[p][w + 3];
      for (int z = 0; z < K; z++)                for (int z = 0; z < K; z++) {
        t += a[p][z] * b[z][w];        -->         t += a[p][z] * b[z][w];  ...  t_4 += a[p][z] * b[z][w + 3];
      c[p][w] = t;                               }
    }                                            ...

``lowering.unrolling.jam`` does it and says what is proved.  Loops in which loops inside load what does not depend on
them are taken, two nested ones too (``s0`` by ``s1`` results); the strategy itself is a word in the program's mapping.
It spends registers to save loads, and makes a variant of its leaf for where they are there.
"""

from __future__ import annotations

from typing import ClassVar

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_shape import phases
from metafork.ir.kernel import Space
from metafork.ir.program import For, Program, Version, walk_statements
from metafork.lowering.lowering import CannotLowerError, lower
from metafork.strategies.strategy import Applied, Effect, NotApplied, Strategy
from metafork.strategies.threads.needs import PTX


class UnrollAndJam(Strategy, frozen=True):
    """Run ``most`` iterations of a loop together where that shares loads; no counter counts those in shared memory."""

    name: str = "unroll_and_jam"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    most: int = 4

    def __post_init__(self) -> None:
        if not 2 <= self.most <= 16:
            raise ValueError(f"most is from 2 to 16, not {self.most}")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with jammed loops, or that there is none to jam."""
        program = version.program
        if version.ir_strategies:
            return PTX
        if program.mapping.jammed is not None:
            return NotApplied("loops run several iterations together already")
        tiled = program.mapped(jammed=self.most)
        try:
            if not _may_share(program, analyses) or _code(tiled, analyses) == _code(program, analyses):
                return NotApplied("no loop of a thread is proved to have independent iterations that share loads")
        except CannotLowerError as reason:
            return NotApplied(str(reason))
        note = f"{self.most} iterations of a loop run together, and share what loops in it load"
        return Applied(Version(tiled, version.ir_strategies), note, Effect("unroll-and-jam"))


def _may_share(program: Program, analyses: Analyses) -> bool:
    """Say whether there is a loop in a loop of a thread, or shared memory, of which several elements are read at once.

    Without either the kernel with jammed loops is the kernel, and need not be made.
    """
    loops = (loop for phase in phases(program) for loop in walk_statements(phase.body) if isinstance(loop, For))
    if any(isinstance(inner, For) for loop in loops for inner in walk_statements(loop.body)):
        return True
    return any(memory.space is Space.SHARED for memory in lower(program, program.name, analyses).memories)


def _code(program: Program, analyses: Analyses) -> object:
    return lower(program, program.name, analyses).body


STRATEGY = UnrollAndJam()
