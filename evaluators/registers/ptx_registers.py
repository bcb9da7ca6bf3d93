"""How many registers the PTX that LLVM emits keeps alive, as ``ptxas`` would arrange it.

What comes in is the PTX of one kernel as LLVM's NVPTX back end prints it (one statement ends with ``;``, virtual
registers are ``%r`` for 32 bits, ``%rd`` for 64, ``%rs`` for 16, ``%p`` for predicates); what goes out is a
``Pressure``: live registers of 32 bits in the order of the text, and in the order that hides latency, where loads and
the addresses of stores stand as early as dependences, stores and barriers allow, also across the branches inside an
innermost loop.

Three things that ``ptxas`` does make the count follow it: values that all threads of a block share (arguments, block
indices and what is computed from them) stand in constant memory or in uniform registers and take no register of a
thread; a 64-bit register whose upper half nobody needs (an address of shared memory) takes one register; predicates
take none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

_REGISTER = re.compile(r"%(?:rd|rs|rq|r|p)\d+\b")
_LABEL = re.compile(r"\s*([$\w]+):")
_SPECIAL = re.compile(r"%(\w+)\.[xyz]")
_COMMENT = re.compile(r"//[^\n]*")
_NO_RESULT = ("st", "bra", "brx", "bar", "ret", "call", "exit", "trap", "red", "membar", "fence")
_UNIFORM_REGISTERS = frozenset({"ctaid", "ntid", "nctaid"})
# Operations of which the lower half of the result needs the lower halves of the operands only.
_LOW_HALF = ("add.", "sub.", "mul.lo.", "mad.lo.", "shl.", "and.", "or.", "xor.", "mov.", "selp.", "not.", "neg.")


class Slow(Enum):
    """Operations that ``ptxas`` makes subroutines or long sequences of, with temporaries of their own."""

    DIVIDE_DOUBLE = r"(div|sqrt)\.rn\.f64"
    RECIPROCAL_DOUBLE = r"rcp\.rn\.f64"
    DIVIDE_FLOAT = r"(div|sqrt|rcp)\.rn\.f32"
    DIVIDE_LONG = r"(div|rem)\.[su]64"
    DIVIDE_INT = r"(div|rem)\.[su](16|32)"
    CALL = r"call"


_SLOW = [(kind, re.compile(kind.value)) for kind in Slow]


@cache
def slow_kind(opcode: str) -> Slow | None:
    """Return which slow operation an opcode is."""
    return next((kind for kind, pattern in _SLOW if pattern.match(opcode)), None)


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """One instruction: the registers it defines and uses; ``address`` are the used ones that form an address.

    ``guarded`` tells that it may not run; ``target`` is the label of a branch; ``special`` the special registers read;
    ``operands`` the text after the opcode.
    """

    opcode: str
    defines: tuple[str, ...]
    uses: tuple[str, ...]
    address: tuple[str, ...]
    guarded: bool
    target: str
    special: tuple[str, ...]
    operands: str

    @property
    def loads(self) -> bool:
        """Whether it reads global, shared or private memory (arguments are no memory)."""
        return self.opcode.startswith("ld.") and not self.opcode.startswith("ld.param")


@dataclass(frozen=True, slots=True)
class PtxBlock:
    """Instructions that run one after the other, and the positions of the blocks that may follow."""

    instructions: tuple[PtxInstruction, ...]
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pressure:
    """Live 32-bit registers of a kernel.

    ``in_order``: the most in the order of the text; ``hoisted``: the most when loads and addresses come as early as
    they can.
    """

    in_order: int
    hoisted: int


@dataclass(frozen=True, slots=True)
class Accesses:
    """How many instructions load, store, access shared memory, and multiply to twice their width (as indices do)."""

    loads: int
    stores: int
    shared: int
    wide: int


def accesses(blocks: Sequence[PtxBlock]) -> Accesses:
    """Count the accesses of a kernel."""
    body = [one for block in blocks for one in block.instructions]
    return Accesses(
        sum(one.loads for one in body),
        sum(one.opcode.startswith("st.") for one in body),
        sum(".shared" in one.opcode for one in body),
        sum("wide" in one.opcode for one in body),
    )


def read_blocks(ptx: str) -> tuple[PtxBlock, ...]:
    """Return the blocks of the one kernel in PTX text; raises ``ValueError`` where there is no body."""
    start = ptx.find("\n{")
    if start < 0:
        raise ValueError("the PTX has no kernel body")
    labels: dict[str, int] = {}
    bodies: list[list[PtxInstruction]] = [[]]
    for part in _COMMENT.sub("", ptx[start + 2 :]).split(";"):
        text = part
        while True:
            text = text.lstrip(" \t\n{}")
            label = _LABEL.match(text)
            if label is None:
                break
            if bodies[-1]:
                bodies.append([])
            labels[label[1]] = len(bodies) - 1
            text = text[label.end() :]
        if not text or text.startswith("."):
            continue
        instruction = _instruction(text)
        bodies[-1].append(instruction)
        if instruction.opcode.startswith(("bra", "brx", "ret", "exit")):
            bodies.append([])
    if not bodies[-1]:
        bodies.pop()
    return tuple(PtxBlock(tuple(body), _successors(bodies, index, labels)) for index, body in enumerate(bodies))


def _successors(bodies: Sequence[Sequence[PtxInstruction]], index: int, labels: Mapping[str, int]) -> tuple[int, ...]:
    following = (index + 1,) if index + 1 < len(bodies) else ()
    last = bodies[index][-1] if bodies[index] else None
    if last is None:
        return following
    if last.opcode.startswith("brx"):
        # An indirect branch: any labelled block.
        return tuple(position for position in labels.values() if position < len(bodies))
    if last.opcode.startswith("bra"):
        target = labels[last.target]
        return tuple(dict.fromkeys((target, *(following if last.guarded else ()))))
    if last.opcode.startswith(("ret", "exit")):
        return following if last.guarded else ()
    return following


def _instruction(text: str) -> PtxInstruction:
    guard: tuple[str, ...] = ()
    if text.startswith("@"):
        word, text = text.split(None, 1)
        guard = tuple(_REGISTER.findall(word))
    opcode, _, operands = text.partition("\t") if "\t" in text else text.partition(" ")
    opcode, operands = opcode.strip(), operands.strip()
    defines: list[str] = []
    rest = operands
    if not opcode.startswith(_NO_RESULT):
        # The first operand is the result: one register, a pair p|q, or a vector in braces.
        end = operands.find("}") + 1 if operands.startswith("{") else operands.find(",")
        end = len(operands) if end <= 0 else end
        defines, rest = _REGISTER.findall(operands[:end]), operands[end:]
    opening = rest.find("[")
    address = _REGISTER.findall(rest[opening : rest.find("]")]) if opening >= 0 else []
    return PtxInstruction(
        opcode,
        tuple(defines),
        (*_REGISTER.findall(rest), *guard),
        tuple(address),
        bool(guard),
        operands if opcode.startswith("bra") else "",
        tuple(_SPECIAL.findall(operands)),
        operands,
    )


def pressure(blocks: Sequence[PtxBlock]) -> Pressure:
    """Measure a kernel."""
    weight = weights(blocks)
    live_in, live_out = liveness(blocks)
    in_order = hoisted = 0
    for block, out in zip(blocks, live_out, strict=True):
        in_order = max(in_order, _walk(block.instructions, out, weight))
    inside: set[int] = set()
    for first, last in _innermost_loops(blocks):
        members = range(first, last + 1)
        body = [one for index in members for one in blocks[index].instructions]
        if any(one.opcode.startswith(("bar", "call")) for one in body):
            continue
        inside.update(members)
        left = {name for index in members for after in blocks[index].successors if after not in members
                for name in live_in[after]}  # fmt: skip
        hoisted = max(hoisted, _walk(_memory_first(body), live_in[first] | left, weight, predicated=True))
    for index, block in enumerate(blocks):
        if index not in inside:
            hoisted = max(hoisted, _walk(_memory_first(block.instructions), live_out[index], weight))
    return Pressure(in_order, hoisted)


def _walk(
    instructions: Sequence[PtxInstruction],
    live_out: Iterable[str],
    weight: Mapping[str, int],
    *,
    predicated: bool = False,
) -> int:
    """Return the most live registers, going backwards.

    With ``predicated`` a guarded definition ends the life before it, as where the guard holds.
    """
    live = set(live_out)
    now = sum(weight[name] for name in live)
    most = now
    for one in reversed(instructions):
        dead = sum(weight[name] for name in one.defines if name not in live)
        most = max(most, now + dead)
        if predicated or not one.guarded:
            for name in one.defines:
                if name in live:
                    live.discard(name)
                    now -= weight[name]
        for name in one.uses:
            if name not in live:
                live.add(name)
                now += weight[name]
        most = max(most, now)
    return most


def _memory_first(instructions: Sequence[PtxInstruction]) -> list[PtxInstruction]:
    """Reorder straight-line code: every load and every address, with what it needs, as early as it may stand.

    A load may pass anything but a definition it needs, a barrier, and a store to its own space; loads through the
    read-only cache pass those too.
    """
    defined_at: dict[str, int] = {}
    needs: list[list[int]] = []
    earliest: list[int] = []
    fence = {"global": 0, "shared": 0, "local": 0}
    groups: dict[int, list[int]] = {}
    for position, one in enumerate(instructions):
        sources = [defined_at[name] for name in one.uses if name in defined_at]
        needs.append(sources)
        place = max((earliest[source] for source in sources), default=0)
        if one.loads:
            space = one.opcode.split(".")[1]
            if not one.opcode.startswith("ld.global.nc"):
                place = max(place, fence.get(space, position))
            groups.setdefault(place, []).append(position)
        elif one.opcode.startswith("st."):
            for name in one.address:
                if name in defined_at:
                    groups.setdefault(earliest[defined_at[name]], []).append(defined_at[name])
        earliest.append(place)
        for name in one.defines:
            defined_at[name] = position
        if one.opcode.startswith(("bar", "call")):
            fence = dict.fromkeys(fence, position + 1)
        elif one.opcode.startswith("st."):
            fence[one.opcode.split(".")[1]] = position + 1
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
        put(position)
    return order


def _innermost_loops(blocks: Sequence[PtxBlock]) -> list[tuple[int, int]]:
    """Return (first, last) block of each loop that holds no other; LLVM lays a loop out contiguously."""
    ends: dict[int, int] = {}
    for index, block in enumerate(blocks):
        for successor in block.successors:
            if successor <= index:
                ends[successor] = max(ends.get(successor, 0), index)
    loops = sorted(ends.items())
    return [
        (first, last)
        for first, last in loops
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b in loops)
    ]


def liveness(blocks: Sequence[PtxBlock]) -> tuple[list[set[str]], list[set[str]]]:
    """Return the registers that live where each block begins, and where it ends."""
    used: list[set[str]] = []
    defined: list[set[str]] = []
    for block in blocks:
        uses: set[str] = set()
        defines: set[str] = set()
        for one in block.instructions:
            uses.update(name for name in one.uses if name not in defines)
            if one.guarded:
                uses.update(name for name in one.defines if name not in defines)
            defines.update(one.defines)
        used.append(uses)
        defined.append(defines)
    live_in = [set(uses) for uses in used]
    live_out: list[set[str]] = [set() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for index in range(len(blocks) - 1, -1, -1):
            out = live_out[index]
            size = len(out)
            for successor in blocks[index].successors:
                out |= live_in[successor]
            if len(out) != size:
                changed = True
                live_in[index] |= out - defined[index]
    return live_in, live_out


def weights(blocks: Sequence[PtxBlock]) -> dict[str, int]:
    """Return how many registers of a thread each virtual register takes."""
    instructions = [one for block in blocks for one in block.instructions]
    names = {name for one in instructions for name in (*one.defines, *one.uses)}
    whole = _needed_whole(instructions)
    uniform = _uniform(instructions)
    weight: dict[str, int] = {}
    for name in names:
        if name in uniform or name.startswith("%p"):
            weight[name] = 0
        else:
            weight[name] = 2 if name in whole else 1
    return weight


def _needed_whole(instructions: Sequence[PtxInstruction]) -> set[str]:
    """Return the 64-bit registers of which somebody needs the upper half."""
    candidates = [one for one in instructions if any(name.startswith("%rd") for name in one.uses)]
    whole: set[str] = set()
    changed = True
    while changed:
        changed = False
        for one in reversed(candidates):
            if one.opcode.startswith(_LOW_HALF):
                needed: Iterable[str] = one.uses if any(name in whole for name in one.defines) else ()
            elif one.opcode.startswith(("ld.shared", "cvt.u32.u64", "cvt.u16.u64")):
                needed = ()
            elif one.opcode.startswith("st.shared"):
                needed = [name for name in one.uses if name not in one.address]
            else:
                needed = one.uses
            fresh = [name for name in needed if name.startswith("%rd") and name not in whole]
            whole.update(fresh)
            changed = changed or bool(fresh)
    return whole


def _uniform(instructions: Sequence[PtxInstruction]) -> set[str]:
    """Return the registers that hold one value for the whole block, defined once from arguments and block indices."""
    count: dict[str, int] = {}
    for one in instructions:
        for name in one.defines:
            count[name] = count.get(name, 0) + 1
    uniform: set[str] = set()
    changed = True
    while changed:
        changed = False
        for one in instructions:
            if not one.defines or any(name in uniform or count[name] > 1 for name in one.defines):
                continue
            if one.opcode.startswith("ld."):
                shared = one.opcode.startswith("ld.param") and not one.address
            elif one.special:
                shared = all(name in _UNIFORM_REGISTERS for name in one.special)
            else:
                shared = bool(one.uses) and all(name in uniform for name in one.uses)
            if shared:
                uniform.update(one.defines)
                changed = True
    return uniform
