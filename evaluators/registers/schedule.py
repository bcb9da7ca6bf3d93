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

import heapq
from collections.abc import Iterator, Mapping, Sequence

from evaluators.registers.code import PtxBlock, PtxCode, PtxInstruction, Slow, liveness
from evaluators.registers.loops import chain_of, copies, iterations, natural_loops, original, unrolled_whole
from evaluators.registers.pressure import weights
from metafork.lazy_dataclass import dataclass

ALL_WARPS = 32
BUDGET = 28
FREE_MORE = 6
TIGHT_MORE = 4
_NO_BUDGET = 1 << 30
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
# Cycles until a result is there; in proportion to each other, all that matters.
_LATENCIES = {"st": 1, **dict.fromkeys(("cvt", "cvta", "ex2", "lg2", "sin", "cos"), 12)}
_GLOBAL_LATENCY, _LOAD_LATENCY, _SEQUENCE_LATENCY, _APPROXIMATE_LATENCY, _DOUBLE_LATENCY, _LATENCY = (
    40,
    25,
    60,
    12,
    8,
    5,
)
_EXTENSIONS = frozenset({("u32", "u64"), ("u64", "u32"), ("s64", "s32"), ("u32", "u16")})


@dataclass(frozen=True, slots=True)
class Region:
    """Straight-line code, the registers that live after it, and whether it stands for a loop unrolled by four."""

    body: Sequence[PtxInstruction]
    live_out: frozenset[str]
    unrolled: bool = False


@dataclass(slots=True)
class _Operation:
    """``instruction`` says what it does; ``defines`` and ``uses`` name values, each defined once in a region."""

    instruction: PtxInstruction
    defines: list[str]
    uses: list[str]
    latency: int


@dataclass(frozen=True, slots=True)
class _Code:
    """The operations of a region, the values that live after it, and the registers that each value takes."""

    operations: list[_Operation]
    live_out: set[str]
    weight: dict[str, int]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What is counted on the regions of a kernel.

    ``wanted``: registers as the text of the module says; ``loads``: the most loads in one region, loops not unrolled
    by four; ``slow``: the most operations of each slow kind in one region.
    """

    wanted: int
    loads: int
    slow: Mapping[Slow, int]


def arrangement(code: PtxCode) -> Arrangement:
    """Arrange a kernel."""
    weight = weights(code)
    found = list(_regions(unrolled_whole(code.blocks)))
    loads = max((sum(one.loads for one in region.body) for region in found if not region.unrolled), default=0)
    slow = dict.fromkeys(Slow, 0)
    regions = []
    for region in found:
        count: dict[Slow, int] = {}
        for one in region.body:
            if one.slow is not None:
                count[one.slow] = count.get(one.slow, 0) + 1
        for kind, number in count.items():
            slow[kind] = max(slow[kind], number)
        temporaries = [more for kind, more in _TEMPORARIES.items() if kind in count]
        # All values at once, more than any arrangement of the region keeps alive.
        values = sum(weight[original(name)] for one in region.body for name in one.defines)
        from_outside = region.live_out.union(*(one.uses for one in region.body))
        values += sum(weight[original(name)] for name in from_outside)
        most = max(values + FREE_MORE, *(max(values + more, least) for more, least in temporaries), 0)
        regions.append((most, region, temporaries))
    wanted = 0
    for most, region, temporaries in sorted(regions, key=lambda item: -item[0]):
        if most <= wanted:
            break
        operations = _code(region, weight)
        in_order = _in_order(operations)
        if temporaries or max(ALL_WARPS, in_order + TIGHT_MORE) > wanted:
            wanted = max(wanted, _wanted(operations, in_order, temporaries))
    return Arrangement(wanted, loads, slow)


def _wanted(code: _Code, in_order: int, temporaries: Sequence[tuple[int, int]]) -> int:
    free = _scheduled(code, _NO_BUDGET)
    if not temporaries and min(free + FREE_MORE, in_order + TIGHT_MORE) <= ALL_WARPS:
        return min(free + FREE_MORE, ALL_WARPS)
    tight = min(in_order, free if free <= BUDGET else _scheduled(code, BUDGET))
    arranged = min(free + FREE_MORE, max(ALL_WARPS, tight + TIGHT_MORE))
    return max(arranged, *(max(tight + more, fewest) for more, fewest in temporaries), 0)


def _regions(blocks: Sequence[PtxBlock]) -> Iterator[Region]:
    """Yield innermost loops without barriers and calls, unrolled and as they are, and all other blocks."""
    live_in, live_out = liveness(blocks)
    loops = natural_loops(blocks)
    inside: set[int] = set()
    for header in loops.innermost():
        members = loops.members[header]
        chain = chain_of(blocks, header, members)
        order = chain.blocks if chain is not None else sorted(members, key=lambda block: loops.position[block])
        body = [one for block in order for one in blocks[block].instructions]
        if any(one.waits for one in body):
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
        yield Region(body, live)
        if (
            chain is not None
            and len(body) <= _MOST_UNROLLED
            and loops.is_inside_another(header)
            and not any(one.is_sequence for one in body)
            and iterations(blocks, chain) is not None
        ):
            yield Region(copies(body, _UNROLLS_BY, "u"), live, unrolled=True)
    for block in loops.position:
        if block not in inside and blocks[block].instructions:
            yield Region(blocks[block].instructions, frozenset(live_out[block]))


def _latency(one: PtxInstruction) -> int:
    if one.opcode == "ld":
        return _GLOBAL_LATENCY if one.space == "global" else _LOAD_LATENCY
    if one.opcode in _LATENCIES:
        return _LATENCIES[one.opcode]
    if one.is_quotient:
        return _APPROXIMATE_LATENCY if one.approximate else _SEQUENCE_LATENCY
    return _DOUBLE_LATENCY if "f64" in one.code.modifiers else _LATENCY


def _extends(one: PtxInstruction) -> bool:
    """Say whether it only tells the width of a value."""
    modifiers = one.code.modifiers
    return one.opcode == "cvt" and (modifiers[:2] in _EXTENSIONS or modifiers[0] == "u16")


def _scales(one: PtxInstruction) -> bool:
    """Say whether it makes an offset in bytes of an index, which an addition does besides."""
    modifiers = one.code.modifiers
    match one.opcode:
        case "mul":
            return modifiers[0] == "wide"
        case "shl":
            return modifiers[0] == "b64"
        case "cvt":
            return modifiers[0] == "s64"
        case _:
            return False


def _register(value: str) -> str:
    """Return the register of the PTX that a value of a region stands in."""
    return original(value.split("@")[0])


def _code(region: Region, weight: Mapping[str, int]) -> _Code:
    """Rename, so that each value is defined once, and make operations of the instructions."""
    current: dict[str, str] = {}
    renamed: list[tuple[PtxInstruction, list[str], list[str]]] = []
    count: dict[str, int] = {}
    as_address: dict[str, int] = {}
    for place, one in enumerate(region.body):
        uses = [current.get(name, name) for name in one.uses]
        for name, value in zip(one.uses, uses, strict=True):
            count[value] = count.get(value, 0) + 1
            if name in one.address:
                as_address[value] = as_address.get(value, 0) + 1
        if one.guarded:
            # Where the guard does not hold, the old value stays.
            uses += [current.get(name, name) for name in one.defines]
        defines = []
        for name in one.defines:
            current[name] = f"{name}@{place}"
            defines.append(current[name])
        renamed.append((one, defines, uses))
    last = {current.get(name, name) for name in region.live_out}
    for value in last:
        count[value] = count.get(value, 0) + 1

    alias: dict[str, str] = {}

    def root(value: str) -> str:
        while value in alias:
            value = alias[value]
        return value

    operations: list[_Operation] = []
    producer: dict[str, _Operation] = {}
    absorbed: set[int] = set()
    for one, defines, uses in renamed:
        uses = [root(value) for value in uses]
        if one.opcode == "bra":
            operations.append(_Operation(one, [], [], 1))
            continue
        if len(uses) == 1 and len(defines) == 1 and not one.special and defines[0] not in last:
            value = defines[0]
            same = weight[_register(uses[0])] == weight[_register(value)]
            vanishes = (
                one.opcode in ("mov", "cvta")
                or (same and _extends(one))
                # A constant offset of accesses.
                or (one.mnemonic == "add.s64" and as_address.get(value, 0) == count.get(value, 0))
            )
            if vanishes:
                alias[value] = uses[0]
                continue
        operation = _Operation(one, defines, uses, _latency(one))
        if one.mnemonic in ("add.s64", "sub.s64"):
            for value in uses:
                scale = producer.get(value)
                if scale is not None and count.get(value) == 1 and _scales(scale.instruction):
                    operation.uses = [other for other in uses if other != value] + scale.uses
                    absorbed.add(id(scale))
                    break
        for value in defines:
            producer[value] = operation
        operations.append(operation)
    operations = [one for one in operations if id(one) not in absorbed]
    sizes = {value: weight[_register(value)] for one in operations for value in (*one.defines, *one.uses)}
    live_out: set[str] = set()
    for value in last:
        live_out.add(root(value))
        sizes[root(value)] = max(sizes.get(root(value), 0), weight[_register(value)])
    return _Code(operations, live_out, sizes)


def _in_order(code: _Code) -> int:
    """Return the most registers that live at once in the order of the text."""
    weight = code.weight
    live = set(code.live_out)
    now = most = sum(weight[value] for value in live)
    for one in reversed(code.operations):
        most = max(most, now + sum(weight[value] for value in one.defines if value not in live))
        for value in one.defines:
            if value in live:
                live.discard(value)
                now -= weight[value]
        for value in one.uses:
            if value not in live:
                live.add(value)
                now += weight[value]
        most = max(most, now)
    return most


def _predecessors(operations: Sequence[_Operation]) -> list[set[int]]:
    """Return what each operation has to wait for.

    Values, barriers, branches, and accesses to the same space of which one is a store; loads through the read-only
    cache pass stores.
    """
    defined: dict[str, int] = {}
    result: list[set[int]] = []
    stored: dict[str, int] = {}
    loaded: dict[str, list[int]] = {}
    fence = -1
    for place, one in enumerate(operations):
        instruction = one.instruction
        waits = {defined[value] for value in one.uses if value in defined}
        if fence >= 0:
            waits.add(fence)
        if instruction.loads and not instruction.cached:
            space = instruction.space
            if space in stored:
                waits.add(stored[space])
            loaded.setdefault(space, []).append(place)
        elif instruction.stores:
            space = instruction.space
            waits.update(loaded.pop(space, ()))
            if space in stored:
                waits.add(stored[space])
            stored[space] = place
        elif instruction.waits or instruction.opcode == "bra":
            waits.update(range(place))
            fence = place if instruction.waits else fence
        for value in one.defines:
            defined[value] = place
        result.append(waits)
    return result


def _scheduled(code: _Code, budget: int) -> int:
    """Issue one operation a cycle, and return the most registers that live at once; see the module's text."""
    operations, weight = code.operations, code.weight
    waits = _predecessors(operations)
    followers: list[list[int]] = [[] for _ in operations]
    for place, before in enumerate(waits):
        for one in before:
            followers[one].append(place)
    path = [0] * len(operations)
    for place in range(len(operations) - 1, -1, -1):
        path[place] = operations[place].latency + max((path[one] for one in followers[place]), default=0)
    uses = [set(one.uses) for one in operations]
    needed: dict[str, int] = {}
    for values in (*uses, code.live_out):
        for value in values:
            needed[value] = needed.get(value, 0) + 1
    defined = {value for one in operations for value in one.defines}
    now = most = sum(weight[value] for value in needed if value not in defined)
    missing = [len(before) for before in waits]
    when = [0] * len(operations)
    ready = [place for place, number in enumerate(missing) if not number]
    waiting: list[tuple[int, int]] = []
    cycle = 0

    def growth(place: int) -> int:
        freed = sum(weight[value] for value in uses[place] if needed[value] == 1)
        return sum(weight[value] for value in operations[place].defines) - freed

    def sparing() -> int:
        pool = [*ready, *(place for _, place in waiting)]
        best = min(pool, key=lambda place: (growth(place), -path[place], place))
        return best if growth(best) <= 0 else min(pool)

    for _ in operations:
        while waiting and waiting[0][0] <= cycle:
            ready.append(heapq.heappop(waiting)[1])
        if not ready:
            cycle = waiting[0][0]
            while waiting and waiting[0][0] <= cycle:
                ready.append(heapq.heappop(waiting)[1])
        chosen = max(ready, key=lambda place: (path[place], -place))
        if now >= budget - 1 or now + growth(chosen) > budget:
            chosen = sparing()
        if chosen in ready:
            ready.remove(chosen)
        else:
            cycle = max(cycle, when[chosen])
            waiting.remove((when[chosen], chosen))
            heapq.heapify(waiting)
        dead = sum(weight[value] for value in operations[chosen].defines if value not in needed)
        for value in uses[chosen]:
            needed[value] -= 1
            if not needed[value]:
                now -= weight[value]
        now += sum(weight[value] for value in operations[chosen].defines if value in needed)
        most = max(most, now + dead)
        cycle += 1
        for one in followers[chosen]:
            missing[one] -= 1
            when[one] = max(when[one], cycle - 1 + operations[chosen].latency)
            if not missing[one]:
                if when[one] <= cycle:
                    ready.append(one)
                else:
                    heapq.heappush(waiting, (when[one], one))
    return most
