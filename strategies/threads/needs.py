"""What several strategies ask of a version before they change what its threads run, and of their variants to pay."""

from metafork.evaluators.extent import Extent
from metafork.evaluators.threads_per_block import COUNTER as THREADS_PER_BLOCK
from metafork.ir.hidden_names import shadowed_name
from metafork.ir.marks import factors_of, phases
from metafork.ir.program import IntConst, Program, Version
from metafork.strategies.strategy import Need, NotApplied

FULL_WARP: Need[Version] = Need(THREADS_PER_BLOCK, "warp_size")
"""Fewer threads than a warp leave lanes of it idle, whatever each of the others does."""

MOST_OPERATIONS = 2
"""How many operations on numbers for an access to global memory are few."""

PTX = NotApplied("registers are short: the leaf is PTX")
SEVERAL = NotApplied("a thread runs several iterations together already")


def not_untouched(version: Version) -> NotApplied | None:
    """Say why the loops of a version cannot be split any more: something runs several iterations, or hides a name."""
    program = version.program
    if version.ir_strategies:
        return PTX
    if factors_of(program) or program.striding is not None or program.mapping.wide:
        return SEVERAL
    hidden = shadowed_name(program)
    return None if hidden is None else NotApplied(f"a local declaration hides another {hidden[0]}", hidden[1])


def full_tiles(program: Program) -> tuple[Need[Version], ...]:
    """Return what the iterations that threads run together need: loops with as many, or no thread runs them so."""
    loops = [loop for phase in phases(program) for loop in phase.threads if loop.results > 1]
    needs = (Need(Extent(one.extent), one.results) for one in loops if not isinstance(one.extent, IntConst))
    return tuple(dict.fromkeys(needs))
