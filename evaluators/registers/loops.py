"""The loops of a kernel's PTX, and how ``ptxas`` unrolls them.

``ptxas`` unrolls loops of its own accord: one with a constant and small number of iterations whole, and an innermost
counted one inside another by four.  A loop is counted where its one exit tests a value that grows by a constant in each
iteration against one that the loop leaves alone; loops over blocks, whose step is the size of the grid, are not, and
loops that divide, wait at a barrier or call are left as they are.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from evaluators.registers.ptx_registers import PtxBlock, PtxInstruction

_SEQUENCE = re.compile(r"(div|rem|sqrt|rcp)\.(?!approx|full)")
_CONSTANT = re.compile(r"(-?\d+)$")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
# Found on the programs of bench/registers: the most instructions that a loop unrolled whole becomes, and its most
# iterations.
_MOST_WHOLE = 200
_MOST_ITERATIONS = 64
UNKNOWN = 0
"""The number of iterations of a counted loop that is no constant."""


@dataclass(frozen=True, slots=True)
class Loops:
    """``members`` maps the header of each natural loop to its blocks, ``position`` a block to its place in reverse
    postorder; blocks that cannot be reached are in neither."""

    members: Mapping[int, frozenset[int]]
    position: Mapping[int, int]

    def innermost(self) -> list[int]:
        """Return the headers of the loops that hold no other."""
        return [
            header
            for header, members in self.members.items()
            if not any(other != header and other in members for other in self.members)
        ]

    def is_inside_another(self, header: int) -> bool:
        """Say whether a loop stands in another."""
        return any(other != header and header in members for other, members in self.members.items())


def is_sequence(instruction: PtxInstruction) -> bool:
    """Say whether an instruction is a long sequence or a subroutine, a barrier or a call: nothing is unrolled then."""
    return _is_sequence(instruction.opcode)


@cache
def _is_sequence(opcode: str) -> bool:
    return opcode.startswith(("bar", "call")) or bool(_SEQUENCE.match(opcode))


def _reverse_postorder(blocks: Sequence[PtxBlock]) -> list[int]:
    seen = {0}
    order: list[int] = []
    stack = [(0, iter(blocks[0].successors))]
    while stack:
        block, rest = stack[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(blocks[successor].successors)))
                break
        else:
            order.append(block)
            stack.pop()
    return order[::-1]


def natural_loops(blocks: Sequence[PtxBlock]) -> Loops:
    """Find the natural loops; loops with one header count as one."""
    order = _reverse_postorder(blocks)
    position = {block: index for index, block in enumerate(order)}
    predecessors: dict[int, list[int]] = {block: [] for block in order}
    for block in order:
        for successor in blocks[block].successors:
            predecessors[successor].append(block)
    dominator = {0: 0}

    def meet(left: int, right: int) -> int:
        while left != right:
            if position[left] > position[right]:
                left = dominator[left]
            else:
                right = dominator[right]
        return left

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [one for one in predecessors[block] if one in dominator]
            new = known[0]
            for one in known[1:]:
                new = meet(new, one)
            changed = changed or dominator.get(block) != new
            dominator[block] = new

    members: dict[int, set[int]] = {}
    for block in order:
        for header in blocks[block].successors:
            if position[header] <= position[block] and meet(header, block) == header:
                body = members.setdefault(header, {header})
                pending = [block]
                while pending:
                    one = pending.pop()
                    if one not in body:
                        body.add(one)
                        pending.extend(predecessors[one])
    return Loops({header: frozenset(body) for header, body in members.items()}, position)


@dataclass(frozen=True, slots=True)
class Chain:
    """A loop whose blocks follow each other in one way only, from the header on, and that is left at one place."""

    blocks: tuple[int, ...]
    exit: int
    body: tuple[PtxInstruction, ...]


def chain_of(blocks: Sequence[PtxBlock], header: int, members: frozenset[int]) -> Chain | None:
    """Return the loop as a chain, ``None`` where it branches or is left at several places."""
    sequence: list[int] = []
    exits: list[int] = []
    block = header
    while True:
        sequence.append(block)
        inside = [one for one in blocks[block].successors if one in members]
        exits.extend(one for one in blocks[block].successors if one not in members)
        if len(inside) != 1:
            return None
        (block,) = inside
        if block == header:
            break
    if len(sequence) != len(members) or len(exits) != 1:
        return None
    return Chain(tuple(sequence), exits[0], tuple(one for block in sequence for one in blocks[block].instructions))


def iterations(blocks: Sequence[PtxBlock], chain: Chain) -> int | None:
    """Return how often a loop runs: a number, ``UNKNOWN``, or ``None`` where it is not counted at all."""
    branches = [one for one in chain.body if one.opcode.startswith("bra") and one.guarded]
    if len(branches) != 1:
        return None
    tests = [one for one in chain.body if one.opcode.startswith("setp") and set(one.defines) & set(branches[0].uses)]
    if len(tests) != 1:
        return None
    (test,), (leaves,) = tests, branches
    defined = {name for one in chain.body for name in one.defines}
    for tested in test.uses:
        if defined.intersection(name for name in test.uses if name != tested):
            continue
        for place, one in enumerate(chain.body):
            if not one.opcode.startswith(("add.", "sub.")) or len(one.uses) != 1:
                continue
            (grown,), (counter,) = one.defines, one.uses
            found = _CONSTANT.search(one.operands)
            step = int(found[1]) * (-1 if one.opcode.startswith("sub.") else 1) if found else 0
            if not step or tested not in (grown, counter) or not _comes_back(chain.body, grown, counter):
                continue
            after = tested == grown and (grown != counter or place < chain.body.index(test))
            return _constant_iterations(blocks, chain, test, leaves, tested, counter, step, after=after)
    return None


def _comes_back(body: Sequence[PtxInstruction], grown: str, counter: str) -> bool:
    """Say whether a value that a loop computes is that of a register in the next iteration."""
    copies = {one.defines[0]: one.uses[0] for one in body if one.opcode.startswith("mov") and len(one.uses) == 1}
    name = counter
    for _ in range(len(copies) + 1):
        if name == grown:
            return True
        if name not in copies:
            return False
        name = copies[name]
    return False


def _constant_iterations(
    blocks: Sequence[PtxBlock],
    chain: Chain,
    test: PtxInstruction,
    leaves: PtxInstruction,
    tested: str,
    counter: str,
    step: int,
    *,
    after: bool,
) -> int:
    """Run a counter from a constant to a constant; ``after`` tells that it is tested after it has grown."""
    operands = [operand.strip() for operand in test.operands.split(",")]
    bound = _CONSTANT.fullmatch(operands[-1])
    start = _start(blocks, chain, counter)
    compare = _COMPARE.get(test.opcode.split(".")[1])
    if bound is None or start is None or compare is None or operands[1] != tested:
        return UNKNOWN
    limit = int(bound[1])
    value = start + step if after else start
    stays = compare(value, limit)
    for passed in range(1, _MOST_ITERATIONS + 1):
        value += step
        if compare(value, limit) != stays:
            # A test at the end of the body follows an iteration that it did not have to allow.
            rest = chain.body[chain.body.index(leaves) + 1 :]
            return passed + all(one.opcode.startswith("bra") for one in rest)
    return UNKNOWN


def _start(blocks: Sequence[PtxBlock], chain: Chain, name: str) -> int | None:
    """Return the constant that a register holds where a loop begins."""
    inside = set(chain.blocks)
    outside = [one for index, block in enumerate(blocks) if index not in inside for one in block.instructions]
    for _ in range(2):
        writes = [one for one in outside if name in one.defines]
        if len(writes) != 1 or not writes[0].opcode.startswith("mov"):
            return None
        constant = _CONSTANT.fullmatch(writes[0].operands.split(",")[-1].strip())
        if constant is not None:
            return int(constant[1])
        if not writes[0].uses:
            return None
        (name,) = writes[0].uses
    return None


def original(name: str) -> str:
    """Return the register that a copy of a loop's body names."""
    return name.split("#")[0]


def copies(body: Sequence[PtxInstruction], count: int, tag: str) -> list[PtxInstruction]:
    """Return a loop's body so many times without its branches; each copy's values have names of their own.

    The last copy leaves its values where the code after the loop looks for them.
    """
    straight = [one for one in body if not one.opcode.startswith("bra")]
    last = {name: place for place, one in enumerate(straight) for name in one.defines}
    current: dict[str, str] = {}
    result: list[PtxInstruction] = []
    for copy in range(count):
        for place, one in enumerate(straight):
            uses, address = (tuple(current.get(name, name) for name in names) for names in (one.uses, one.address))
            for name in one.defines:
                stays = copy == count - 1 and last[name] == place
                current[name] = name if stays else f"{name}#{tag}.{copy}.{place}"
            defines = tuple(current[name] for name in one.defines)
            result.append(replace(one, defines=defines, uses=uses, address=address))
    return result


def unrolled_whole(blocks: Sequence[PtxBlock]) -> list[PtxBlock]:
    """Unroll the loops with a constant and small number of iterations, and join blocks that only follow each other.

    Positions stay as they are; what is no longer reached is empty.
    """
    current = list(blocks)
    count = 0
    while (found := _whole(current)) is not None:
        chain, number = found
        count += 1
        current[chain.blocks[0]] = PtxBlock(tuple(copies(chain.body, number, f"w{count}")), (chain.exit,))
        for block in chain.blocks[1:]:
            current[block] = PtxBlock((), ())
    return _joined(current)


def _whole(blocks: Sequence[PtxBlock]) -> tuple[Chain, int] | None:
    loops = natural_loops(blocks)
    for header in loops.innermost():
        chain = chain_of(blocks, header, loops.members[header])
        if chain is None or any(map(is_sequence, chain.body)):
            continue
        number = iterations(blocks, chain)
        if number and number * len(chain.body) <= _MOST_WHOLE:
            return chain, number
    return None


def _joined(blocks: list[PtxBlock]) -> list[PtxBlock]:
    entries = [0] * len(blocks)
    entries[0] = 1
    order = _reverse_postorder(blocks)
    for block in order:
        for successor in blocks[block].successors:
            entries[successor] += 1
    gone: set[int] = set()
    for block in order:
        if block in gone:
            continue
        while len(blocks[block].successors) == 1 and entries[blocks[block].successors[0]] == 1:
            (next_one,) = blocks[block].successors
            if next_one == block:
                break
            body = blocks[block].instructions
            if body and body[-1].opcode.startswith("bra"):
                body = body[:-1]
            blocks[block] = PtxBlock(body + blocks[next_one].instructions, blocks[next_one].successors)
            blocks[next_one] = PtxBlock((), ())
            gone.add(next_one)
    return blocks
