"""The loops of a kernel's PTX, and how ``ptxas`` unrolls them.

``ptxas`` unrolls loops of its own accord: one with a constant and small number of iterations whole, and an innermost
counted one inside another by four; conditions in it become predicates, except conditions in conditions.  What is the
same in all iterations it computes before the loop.  A loop is counted where its one exit tests a value that grows by a
constant in each iteration against one that the loop leaves alone; loops over blocks, whose step is the size of the
grid, are not, and loops that divide, wait at a barrier or call are left as they are.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct
from msgspec.structs import replace

from metafork.evaluators.registers.code import PtxBlock, PtxInstruction
from metafork.ptx.text import graph
from metafork.ptx.text.operands import integer_literal
from metafork.ptx.text.syntax import Immediate, Name, Operand

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
_WITHOUT_EFFECT = frozenset(
    ("add", "sub", "mul", "mad", "fma", "neg", "abs", "min", "max", "shl", "shr", "and", "or", "xor", "not", "bfe",
     "mov", "cvt", "cvta", "setp", "selp")
)  # fmt: skip
UNKNOWN = 0
"""The number of iterations of a counted loop that is no constant."""


class Loops(Struct, frozen=True):
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


def natural_loops(blocks: Sequence[PtxBlock]) -> Loops:
    """Find the natural loops; loops with one header count as one."""
    successors = [block.successors for block in blocks]
    order = graph.reverse_postorder(successors)
    members = graph.natural_loops(successors, order).members
    return Loops(members, {block: index for index, block in enumerate(order)})


class Chain(Struct, frozen=True):
    """A loop whose blocks follow each other, from the header on, and that is left at one place.

    Blocks that a condition skips stand between the others; the branches to them are no part of the body, and what they
    leave to others is *guarded* there.
    """

    blocks: tuple[int, ...]
    exit: int
    body: tuple[PtxInstruction, ...]


def chain_of(blocks: Sequence[PtxBlock], header: int, members: frozenset[int]) -> Chain | None:
    """Return the loop as a chain, ``None`` where conditions stand in conditions or it is left at several places."""
    entries: dict[int, int] = {}
    for member in members:
        for one in blocks[member].successors:
            entries[one] = entries.get(one, 0) + 1
    sequence: list[int] = []
    exits: list[int] = []
    body: list[PtxInstruction] = []
    block = header
    while True:
        sequence.append(block)
        inside = [one for one in blocks[block].successors if one in members]
        exits.extend(one for one in blocks[block].successors if one not in members)
        if len(inside) == 1:
            body += blocks[block].instructions
            (block,) = inside
        else:
            join, skipped = _skipped(blocks, inside, entries)
            if join is None or join == header:
                return None
            body += [one for one in blocks[block].instructions if one.form.opcode != "bra"]
            for one in skipped:
                sequence.append(one)
                body += _guarded(blocks, one)
            block = join
        if block == header:
            break
    if len(sequence) != len(members) or len(exits) != 1:
        return None
    return Chain(tuple(sequence), exits[0], tuple(body))


def _skipped(
    blocks: Sequence[PtxBlock], ways: Sequence[int], entries: Mapping[int, int]
) -> tuple[int | None, tuple[int, ...]]:
    """Return the block in which two ways meet again, and the single blocks between; no block where there are more."""
    if len(ways) != 2:
        return None, ()
    (left, right), after = ways, [blocks[way].successors for way in ways]
    alone = [entries[way] == 1 for way in ways]
    if after[0] == (right,) and alone[0]:
        return right, (left,)
    if after[1] == (left,) and alone[1]:
        return left, (right,)
    if len(after[0]) == 1 and after[0] == after[1] and all(alone):
        return after[0][0], (left, right)
    return None, ()


def _guarded(blocks: Sequence[PtxBlock], skipped: int) -> Iterator[PtxInstruction]:
    """Yield the instructions of a block that may be skipped; values that others use may stay what they were."""
    instructions = blocks[skipped].instructions
    defined: set[int] = set()
    left = {name for place, block in enumerate(blocks) if place != skipped for one in block.instructions
            for name in one.uses}  # fmt: skip
    for one in instructions:
        left.update(name for name in one.uses if name not in defined)
        defined.update(one.defines)
    for one in instructions:
        if one.form.opcode != "bra":
            yield replace(one, guarded=True) if left.intersection(one.defines) else one


def without_invariants(body: Sequence[PtxInstruction]) -> tuple[list[PtxInstruction], frozenset[int]]:
    """Return what of a loop's body depends on the iteration, and the values that it uses of the rest."""
    definitions = Counter([name for one in body for name in one.defines])
    several = {name for name, number in definitions.items() if number > 1}
    varying = set(definitions)
    left = list(body)
    before = len(left) + 1
    while len(left) < before:
        before = len(left)
        kept = []
        for one in left:
            if varying.isdisjoint(one.uses) and _may_be_invariant(one, several):
                varying.difference_update(one.defines)
            else:
                kept.append(one)
        left = kept
    return left, frozenset({name for one in left for name in one.uses} & (definitions.keys() - varying))


def _may_be_invariant(one: PtxInstruction, several: AbstractSet[int]) -> bool:
    """Say whether it is where its operands are, but for registers that are written ``several`` times."""
    return one.form.opcode in _WITHOUT_EFFECT and not one.guarded and several.isdisjoint(one.defines)


def iterations(blocks: Sequence[PtxBlock], chain: Chain) -> int | None:
    """Return how often a loop runs: a number, ``UNKNOWN``, or ``None`` where it is not counted at all."""
    branches = [one for one in chain.body if one.form.opcode == "bra" and one.guarded]
    if len(branches) != 1:
        return None
    tests = [one for one in chain.body if one.form.opcode == "setp" and set(one.defines) & set(branches[0].uses)]
    if len(tests) != 1:
        return None
    (test,), (leaves,) = tests, branches
    defined = {name for one in chain.body for name in one.defines}
    for tested in test.uses:
        if defined.intersection(name for name in test.uses if name != tested):
            continue
        for place, one in enumerate(chain.body):
            if one.form.opcode not in ("add", "sub") or len(one.uses) != 1:
                continue
            (grown,), (counter,) = one.defines, one.uses
            grows_by = _constant(one.operands[-1])
            step = grows_by and (-grows_by if one.form.opcode == "sub" else grows_by)
            if not step or tested not in (grown, counter) or not _comes_back(chain.body, grown, counter):
                continue
            after = tested == grown and (grown != counter or place < chain.body.index(test))
            return _constant_iterations(blocks, chain, test, leaves, tested, counter, step, after=after)
    return None


def _comes_back(body: Sequence[PtxInstruction], grown: int, counter: int) -> bool:
    """Say whether a value that a loop computes is that of a register in the next iteration."""
    copies = {one.defines[0]: one.uses[0] for one in body if one.form.opcode == "mov" and len(one.uses) == 1}
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
    tested: int,
    counter: int,
    step: int,
    *,
    after: bool,
) -> int:
    """Run a counter from a constant to a constant; ``after`` tells that it is tested after it has grown."""
    limit = _constant(test.operands[-1])
    start = _start(blocks, chain, counter)
    compare = _COMPARE.get(test.form.modifiers[0])
    first = test.operands[1]
    if limit is None or start is None or compare is None or not isinstance(first, Name) or test.uses[0] != tested:
        return UNKNOWN
    value = start + step if after else start
    stays = compare(value, limit)
    for passed in range(1, _MOST_ITERATIONS + 1):
        value += step
        if compare(value, limit) != stays:
            # A test at the end of the body follows an iteration that it did not have to allow.
            rest = chain.body[chain.body.index(leaves) + 1 :]
            return passed + all(one.form.opcode == "bra" for one in rest)
    return UNKNOWN


def _constant(operand: Operand) -> int | None:
    """Return the integer that an operand is."""
    if not isinstance(operand, Immediate):
        return None
    try:
        return integer_literal(operand.text)
    except ValueError:
        return None


def _start(blocks: Sequence[PtxBlock], chain: Chain, name: int) -> int | None:
    """Return the constant that a register holds where a loop begins."""
    inside = set(chain.blocks)
    outside = [block.instructions for index, block in enumerate(blocks) if index not in inside]
    for _ in range(2):
        writes = [one for instructions in outside for one in instructions if name in one.defines]
        if len(writes) != 1 or writes[0].form.opcode != "mov":
            return None
        constant = _constant(writes[0].operands[-1])
        if constant is not None:
            return constant
        if not writes[0].uses:
            return None
        (name,) = writes[0].uses
    return None


def copies(body: Sequence[PtxInstruction], count: int, weight: list[int]) -> list[PtxInstruction]:
    """Return a loop's body so many times without its branches; each copy's values have registers of their own.

    The last copy leaves its values where the code after the loop looks for them.  ``weight`` says how many registers of
    a thread each takes, and grows by those of the copies.
    """
    straight = [one for one in body if one.form.opcode != "bra"]
    last = {name: place for place, one in enumerate(straight) for name in one.defines}
    current = {name: name for one in straight for name in (*one.uses, *one.defines)}
    result: list[PtxInstruction] = []
    for copy in range(count):
        for place, one in enumerate(straight):
            uses, address = [current[name] for name in one.uses], [current[name] for name in one.address]
            for name in one.defines:
                if copy == count - 1 and last[name] == place:
                    current[name] = name
                else:
                    current[name] = len(weight)
                    weight.append(weight[name])
            result.append(one.with_registers([current[name] for name in one.defines], uses, address))
    return result


def unrolled_whole(blocks: Sequence[PtxBlock], weight: list[int]) -> Sequence[PtxBlock]:
    """Unroll the loops with a constant and small number of iterations; where there are none, these are the same blocks.

    Positions stay as they are; what is no longer reached is empty.  ``weight`` grows as for ``copies``.
    """
    current = blocks
    while (found := _whole(current)) is not None:
        chain, number = found
        current = list(current)
        current[chain.blocks[0]] = PtxBlock(tuple(copies(chain.body, number, weight)), (chain.exit,))
        for block in chain.blocks[1:]:
            current[block] = PtxBlock((), ())
    return current


def _whole(blocks: Sequence[PtxBlock]) -> tuple[Chain, int] | None:
    loops = natural_loops(blocks)
    for header in loops.innermost():
        chain = chain_of(blocks, header, loops.members[header])
        if chain is None or any(one.form.is_sequence for one in chain.body):
            continue
        number = iterations(blocks, chain)
        if number and number * len(chain.body) <= _MOST_WHOLE:
            return chain, number
    return None


def joined(blocks: Sequence[PtxBlock]) -> list[PtxBlock]:
    """Join blocks that only follow each other; positions stay as they are."""
    blocks = list(blocks)
    entries = [0] * len(blocks)
    entries[0] = 1
    order = graph.reverse_postorder([block.successors for block in blocks])
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
            if body and body[-1].form.opcode == "bra":
                body = body[:-1]
            blocks[block] = PtxBlock(body + blocks[next_one].instructions, blocks[next_one].successors)
            blocks[next_one] = PtxBlock((), ())
            gone.add(next_one)
    return blocks
