"""Blocks that compute more with the threads that they have (``metafork.transform.grow``)."""

from __future__ import annotations

from metafork.analysis.analyses import Analyses
from metafork.ir.marks import phases
from metafork.ir.program import IntConst, MetaFor, Program
from metafork.transform.directive import Refused, Schedule, applied
from metafork.transform.grow import Grow


def grown(program: Program, analyses: Analyses) -> tuple[Program, Schedule]:
    """Return a program whose blocks compute more with the threads that they had; itself where that is not legal.

    Where ``meta_block`` says how many threads a block has, all loops grow, else the outermost one of several results,
    and with planes of rows the innermost, so that neighbours in a warp still have a row.
    """
    if len(phases(program)) != 1:
        return program, ()
    loops = [loop for loop in phases(program)[0].threads if loop.results > 1]
    larger = tuple(Grow(loop.var, loop.results) for loop in (loops if program.blocked else loops[:1] + loops[2:]))
    result = applied(program, larger, analyses)
    return (program, ()) if isinstance(result, Refused) else (result, larger)


def is_alone(loop: MetaFor) -> bool:
    """Say whether a thread loop has one iteration: the grid alone walks its dimension."""
    return loop.extent == IntConst(1)


def opened(program: Program, most: int, analyses: Analyses) -> Program:
    """Return a program whose blocks have ``most`` rows and planes of those that the grid alone walks; or itself."""
    loops = phases(program)[0].threads[:-1] if program.blocked else ()
    result = applied(program, tuple(Grow(loop.var, most) for loop in loops if is_alone(loop)), analyses)
    return program if isinstance(result, Refused) else result
