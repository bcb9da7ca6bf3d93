"""How ``ptxas`` arranges the instructions of a kernel's PTX, as far as it decides how many registers live at once.

A *region* is straight-line code: a block, or the body of an innermost loop, branches in it taken as predicates; loops
that ``ptxas`` unrolls are unrolled (``evaluators.registers.loops``).  Its instructions become *operations*, much as
they will be on the device: copies and extensions vanish, constant offsets stand in the accesses, the product that
scales an index is one instruction with the sum that adds the base.

Two arrangements matter.  ``free`` hides latency as if registers cost nothing: list scheduling by critical path.
``tight`` keeps to ``BUDGET`` registers: it prefers the critical path while there are registers left, and what frees
most of them once there are none; where the order of the text needs still less, that.  ``ptxas`` takes the free
arrangement while it fits in as many registers as all warps of a multiprocessor can have, and then whichever of the two
needs less::

    min(free + FREE_MORE, max(ALL_WARPS, tight + TIGHT_MORE))

Divisions and calls need temporaries while all that lives across them stays where it is: a region with one takes at
least ``tight`` and what ``_TEMPORARIES`` says.  A kernel wants as much as the region that takes most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from metafork.evaluators.registers.code import Liveness, PtxBlock, PtxCode, PtxInstruction, Slow, live_before, liveness
from metafork.evaluators.registers.list_scheduling import dependences, scheduled
from metafork.evaluators.registers.loops import (
    chain_of,
    copies,
    iterations,
    joined,
    natural_loops,
    unrolled_whole,
    without_invariants,
)
from metafork.evaluators.registers.operations import Operations, in_order, operations
from metafork.evaluators.registers.pressure import weights

ALL_WARPS = 32
BUDGET = 28
FREE_MORE = 6
TIGHT_MORE = 4
# For each slow operation the registers it takes beside those that live across it, and the fewest that come out.
_TEMPORARIES = {
    Slow.DIVIDE_DOUBLE: (14, 28),
    Slow.RECIPROCAL_DOUBLE: (8, 22),
    Slow.DIVIDE_FLOAT: (8, 0),
    Slow.CALL: (8, 0),
}
_UNROLLS_BY = 4
# Instructions in the body of a loop that ptxas unrolls by that.
_MOST_UNROLLED = 52


class Region(Struct, frozen=True):
    """Straight-line code, the registers that live before and after it, and whether it is a loop unrolled by four.

    ``varying``: for a loop without what is the same in all iterations.
    """

    body: Sequence[PtxInstruction]
    live_in: AbstractSet[int]
    live_out: AbstractSet[int]
    unrolled: bool = False
    varying: bool = False


class Arrangement(Struct, frozen=True):
    """What is counted on the regions of a kernel.

    ``wanted``: registers as the text of the module says; ``loads``: the most loads in one region, loops not unrolled
    by four; ``across``: the most registers that live behind a region; ``slow``: the most slow operations in one region.
    """

    wanted: int
    loads: int
    across: int
    slow: int


def arrangement(code: PtxCode, weight: Sequence[int] | None = None, live: Liveness | None = None) -> Arrangement:
    """Arrange a kernel; ``weight`` is that of ``weights``, and ``live`` that of ``liveness``, where they are known."""
    weight = list(weight or weights(code))
    taken = weight.__getitem__
    blocks = unrolled_whole(code.blocks, weight)
    live_in, _ = live if live is not None and blocks is code.blocks else liveness(blocks)
    found = list(_regions(joined(blocks), live_in, weight))
    as_they_are = [region for region in found if not region.unrolled and not region.varying]
    loads = max((sum([one.form.loads for one in region.body]) for region in as_they_are), default=0)
    slow, regions = 0, []
    for region in found:
        kinds = [one.form.slow for one in region.body if one.form.slow is not None]
        slow = max(slow, len(kinds))
        temporaries = [more for kind, more in _TEMPORARIES.items() if kind in kinds]
        # All values at once, more than any arrangement of the region keeps alive.
        values = sum([taken(name) for one in region.body for name in one.defines])
        values += sum(map(taken, region.live_in))
        most = max(values + FREE_MORE, *(max(values + more, least) for more, least in temporaries), 0)
        regions.append((most, region, temporaries))
    wanted = 0
    for most, region, temporaries in sorted(regions, key=lambda item: (item[1].varying, -item[0])):
        if most <= wanted or (region.varying and wanted >= ALL_WARPS):
            continue
        straight = operations(region.body, region.live_out, weight)
        needed = in_order(straight)
        if temporaries or max(ALL_WARPS, needed + TIGHT_MORE) > wanted:
            takes = _wanted(straight, needed, temporaries)
            if not region.varying or takes <= ALL_WARPS:
                wanted = max(wanted, takes)
    across = max((sum(map(taken, region.live_out)) for region in as_they_are), default=0)
    return Arrangement(wanted, loads, across, slow)


def _wanted(code: Operations, needed: int, temporaries: Sequence[tuple[int, int]]) -> int:
    known = dependences(code)
    fits = needed + TIGHT_MORE <= ALL_WARPS and not temporaries
    # A free arrangement that takes more than the other may, or than fits, matters no further.
    free = scheduled(known, enough=ALL_WARPS - FREE_MORE if fits else max(BUDGET + 1, needed + TIGHT_MORE - FREE_MORE))
    if not temporaries and min(free + FREE_MORE, needed + TIGHT_MORE) <= ALL_WARPS:
        return min(free + FREE_MORE, ALL_WARPS)
    tight = min(needed, free if free <= BUDGET else scheduled(known, BUDGET, enough=needed))
    arranged = min(free + FREE_MORE, max(ALL_WARPS, tight + TIGHT_MORE))
    return max(arranged, *(max(tight + more, fewest) for more, fewest in temporaries), 0)


def _region(
    body: Sequence[PtxInstruction], live_out: AbstractSet[int], *, unrolled: bool = False, varying: bool = False
) -> Region:
    return Region(body, live_before(body, live_out), live_out, unrolled, varying)


def _regions(blocks: Sequence[PtxBlock], live_in: Sequence[AbstractSet[int]], weight: list[int]) -> Iterator[Region]:
    """Yield innermost loops without barriers and calls, unrolled and as they are, and all other blocks.

    ``live_in`` are the registers that live where each block begins; ``weight`` grows by the registers of copies.
    """
    loops = natural_loops(blocks)
    inside: set[int] = set()
    for header in loops.innermost():
        members = loops.members[header]
        chain = chain_of(blocks, header, members)
        order = chain.blocks if chain is not None else sorted(members, key=lambda block: loops.position[block])
        body = [one for block in order for one in blocks[block].instructions]
        if any(one.form.waits for one in body):
            continue
        inside |= members
        left = {
            name
            for block in members
            for after in blocks[block].successors
            if after not in members
            for name in live_in[after]
        }
        live = frozenset(live_in[header] | left)
        yield _region(body, live)
        varying, invariants = without_invariants(body)
        if invariants:
            yield _region(varying, live | invariants, varying=True)
        if (
            chain is not None
            and len(body) <= _MOST_UNROLLED
            and loops.is_inside_another(header)
            and not any(one.form.is_sequence for one in body)
            and iterations(blocks, chain) is not None
        ):
            yield _region(copies(chain.body, _UNROLLS_BY, weight), live, unrolled=True)
    for block in loops.position:
        if block not in inside and blocks[block].instructions:
            live_out = frozenset[int]().union(*[live_in[after] for after in blocks[block].successors])
            yield Region(blocks[block].instructions, live_in[block], live_out)
