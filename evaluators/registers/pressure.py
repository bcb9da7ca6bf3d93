"""How many registers a kernel keeps alive when loads and addresses come as early as they can.

That is how ``ptxas`` hides latency: loads and the addresses of stores stand as early as dependences, stores and
barriers allow, also across the branches inside an innermost loop.  Three things that it does make the count follow it:
values that all threads of a block share (arguments, block indices and what is computed from them) stand in constant
memory or in uniform registers and take no register of a thread; a 64-bit register whose upper half nobody needs (an
address of shared memory) takes one register; predicates take none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from evaluators.registers.code import Form, Liveness, PtxCode, PtxInstruction, live_before, liveness
from evaluators.registers.loops import natural_loops

_UNIFORM_REGISTERS = frozenset({"%ctaid", "%ntid", "%nctaid"})
# Operations of which the lower half of the result needs the lower halves of the operands only.
_LOW_HALF = frozenset({"add", "sub", "shl", "and", "or", "xor", "mov", "selp", "not", "neg"})
_PRODUCTS = frozenset({"mul", "mad"})
_TO_NARROW = frozenset({"cvt.u32.u64", "cvt.u16.u64"})


class Accesses(Struct, frozen=True):
    """How many instructions load, store, and access shared memory."""

    loads: int
    stores: int
    shared: int


def accesses(code: PtxCode) -> Accesses:
    """Count the accesses of a kernel."""
    body = code.instructions()
    return Accesses(
        sum(one.form.loads for one in body),
        sum(one.form.stores for one in body),
        sum("shared" in one.form.modifiers for one in body),
    )


def hoisted(code: PtxCode, weight: Sequence[int] | None = None, live: Liveness | None = None) -> int:
    """Return the most 32-bit registers that live when loads and addresses come as early as they can.

    ``weight`` is that of ``weights``, and ``live`` that of ``liveness``, where they are known.
    """
    blocks, weight = code.blocks, weight or weights(code)
    live_in, live_out = live or liveness(blocks)
    loops = natural_loops(blocks)
    taken = weight.__getitem__
    regions: list[tuple[int, Sequence[PtxInstruction], set[int], bool]] = []

    def add(body: Sequence[PtxInstruction], before: set[int], after: set[int], loop: bool) -> None:
        # As much as could live at once, were everything needed everywhere.
        bound = sum(map(taken, before)) + sum([taken(name) for one in body for name in one.defines])
        regions.append((bound, body, after, loop))

    inside: set[int] = set()
    for header in loops.innermost():
        members = sorted(loops.members[header])
        body = [one for index in members for one in blocks[index].instructions]
        if any(one.form.waits for one in body):
            continue
        inside.update(members)
        left = {name for index in members for after in blocks[index].successors if after not in loops.members[header]
                for name in live_in[after]}  # fmt: skip
        left |= live_in[header]
        add(body, live_before(body, left), left, loop=True)
    for index, block in enumerate(blocks):
        if index not in inside:
            add(block.instructions, live_in[index], live_out[index], loop=False)
    most = 0
    for bound, instructions, after, loop in sorted(regions, key=lambda region: -region[0]):
        if bound <= most:
            break
        most = max(most, _walk(_memory_first(instructions), after, weight, predicated=loop))
    return most


def _walk(
    instructions: Sequence[PtxInstruction],
    live_out: Iterable[int],
    weight: Sequence[int],
    *,
    predicated: bool = False,
) -> int:
    """Return the most live registers, going backwards.

    With ``predicated`` a guarded definition ends the life before it, as where the guard holds.
    """
    live = set(live_out)
    now = sum(map(weight.__getitem__, live))
    most = now
    for one in reversed(instructions):
        dead = 0
        stays = one.guarded and not predicated
        for name in one.defines:
            if name not in live:
                dead += weight[name]
        if now + dead > most:
            most = now + dead
        if not stays:
            for name in one.defines:
                if name in live:
                    live.discard(name)
                    now -= weight[name]
        for name in one.uses:
            if name not in live:
                live.add(name)
                now += weight[name]
        if now > most:
            most = now
    return most


def _memory_first(instructions: Sequence[PtxInstruction]) -> Sequence[PtxInstruction]:
    """Reorder straight-line code: every load and every address, with what it needs, as early as it may stand.

    A load may pass anything but a definition it needs, a barrier, and a store to its own space; loads through the
    read-only cache pass those too.
    """
    defined_at: dict[int, int] = {}
    needs: list[list[int]] = []
    earliest: list[int] = []
    fence: dict[str, int] = {}
    everything = 0
    groups: dict[int, list[int]] = {}
    for position, one in enumerate(instructions):
        sources = [defined_at[name] for name in one.uses if name in defined_at]
        needs.append(sources)
        place = 0
        for source in sources:
            if earliest[source] > place:
                place = earliest[source]
        if one.form.loads:
            if not one.cached:
                place = max(place, everything, fence.get(one.form.space, 0))
            groups.setdefault(place, []).append(position)
        elif one.form.stores:
            for name in one.address:
                if name in defined_at:
                    groups.setdefault(earliest[defined_at[name]], []).append(defined_at[name])
        earliest.append(place)
        for name in one.defines:
            defined_at[name] = position
        if one.form.waits:
            everything = position + 1
        elif one.form.stores:
            fence[one.form.space] = position + 1
    if not groups:
        return instructions
    done = [False] * len(instructions)
    order: list[PtxInstruction] = []

    def put(position: int) -> None:
        pending = [position]
        while pending:
            top = pending[-1]
            missing = [source for source in needs[top] if not done[source]]
            if missing and not done[top]:
                pending.extend(missing)
                continue
            pending.pop()
            if not done[top]:
                done[top] = True
                order.append(instructions[top])

    for position in range(len(instructions)):
        for load in groups.get(position, ()):
            put(load)
        if not done[position]:
            # All that stands before it is done, and with that what it needs.
            done[position] = True
            order.append(instructions[position])
    return order


def weights(code: PtxCode) -> list[int]:
    """Return how many registers of a thread each register of the PTX takes."""
    instructions = code.instructions()
    whole = _needed_whole(instructions, code.sizes)
    uniform = _uniform(instructions)
    return [0 if name in uniform or not size else 2 if name in whole else 1 for name, size in enumerate(code.sizes)]


def _needed_whole(instructions: Sequence[PtxInstruction], sizes: Sequence[int]) -> set[int]:
    """Return the 64-bit registers of which somebody needs the upper half."""
    wide = {name for name, size in enumerate(sizes) if size == 8}
    whole: set[int] = set()
    # What needs the upper halves of its operands where somebody needs that of its result.
    waiting: list[tuple[PtxInstruction, set[int]]] = []
    for one in reversed(instructions):
        used, form = wide.intersection(one.uses), one.form
        if not used:
            continue
        if _needs_low_half(form):
            if whole.isdisjoint(one.defines):
                waiting.append((one, used))
            else:
                whole |= used
        elif form.space == "shared" and form.stores:
            whole |= used.difference(one.address)
        elif not (form.mnemonic in _TO_NARROW or (form.space == "shared" and form.loads)):
            whole |= used
    before = len(waiting) + 1
    while len(waiting) < before:
        before, still = len(waiting), []
        for one, used in waiting:
            if whole.isdisjoint(one.defines):
                still.append((one, used))
            else:
                whole |= used
        waiting = still
    return whole


def _needs_low_half(form: Form) -> bool:
    return form.opcode in _LOW_HALF or (form.opcode in _PRODUCTS and "lo" in form.modifiers)


def _uniform(instructions: Sequence[PtxInstruction]) -> set[int]:
    """Return the registers that hold one value for the whole block, defined once from arguments and block indices."""
    count = Counter([name for one in instructions for name in one.defines])
    several = {name for name, number in count.items() if number > 1}
    uniform: set[int] = set()
    computed: list[PtxInstruction] = []
    for one in instructions:
        if not one.defines or not several.isdisjoint(one.defines):
            continue
        if one.form.opcode == "ld":
            shared = one.form.space == "param" and not one.address
        elif one.special:
            shared = _UNIFORM_REGISTERS.issuperset(one.special)
        else:
            shared = bool(one.uses) and uniform.issuperset(one.uses)
            if one.uses and not shared:
                computed.append(one)
        if shared:
            uniform.update(one.defines)
    changed = True
    while changed:
        waiting = []
        for one in computed:
            if uniform.issuperset(one.uses):
                uniform.update(one.defines)
            else:
                waiting.append(one)
        changed = len(waiting) < len(computed)
        computed = waiting
    return uniform
