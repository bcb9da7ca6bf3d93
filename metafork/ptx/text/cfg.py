"""The control-flow graph of a flat body: blocks, dominance, natural loops, control dependence, liveness.

Dominators and loops are those of ``graph``; control dependence comes from post-dominators.  A graph with an edge into
the middle of a loop is *irreducible*; it says so, and callers leave such a kernel alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from metafork.ptx.text.flatten import FlatBody
from metafork.ptx.text.graph import EXIT, dominators, natural_loops, reverse_postorder
from metafork.ptx.text.opcodes import read, written
from metafork.ptx.text.source import PtxError
from metafork.ptx.text.syntax import Instruction, Name

_ENDS = frozenset({"bra", "brx", "ret", "exit"})


class Block(Struct, frozen=True):
    """Instructions ``start`` to ``end`` (half open) and the blocks that may follow; ``-1`` is the end of the thread.

    For a guarded branch the successors are (taken, fall through).
    """

    start: int
    end: int
    successors: tuple[int, ...]


class Loop(Struct, frozen=True):
    """A natural loop: its header block and all its blocks, the header included."""

    header: int
    blocks: frozenset[int]


class Cfg(Struct, frozen=True):
    """The control flow of one function.

    Attributes:
        order: reachable blocks in reverse postorder.
        loops: header → loop; loops that share a header are one.
        reducible: whether every cycle is a natural loop.
        controllers: block → the blocks whose branch it depends on, directly or through others.
        live: block → registers live at its start.
    """

    body: FlatBody
    blocks: tuple[Block, ...]
    order: tuple[int, ...]
    loops: Mapping[int, Loop]
    reducible: bool
    controllers: Mapping[int, frozenset[int]]
    live: Mapping[int, frozenset[str]]

    def loops_around(self, block: int) -> tuple[Loop, ...]:
        """Return the loops that a block stands in, the outermost first."""
        around = [loop for loop in self.loops.values() if block in loop.blocks]
        return tuple(sorted(around, key=lambda loop: -len(loop.blocks)))


def build_cfg(body: FlatBody) -> Cfg:
    """Build the graph of a flat body.

    Raises:
        PtxError: a branch to a label that the function does not have.
    """
    blocks = basic_blocks(body)
    successors = [block.successors for block in blocks]
    order = reverse_postorder(successors) if blocks else ()
    loops = natural_loops(successors, order)
    return Cfg(
        body,
        blocks,
        order,
        {header: Loop(header, members) for header, members in loops.members.items()},
        loops.reducible,
        _controllers(blocks, order),
        _liveness(body, blocks, order),
    )


def _target(body: FlatBody, instruction: Instruction, name: str) -> int:
    if name not in body.labels:
        raise PtxError(f"no label {name} in {body.function.name}", instruction.span)
    return body.labels[name]


def _targets(body: FlatBody, instruction: Instruction) -> tuple[int, ...]:
    if instruction.opcode == "bra":
        label = instruction.operands[0] if instruction.operands else None
        if not isinstance(label, Name):
            raise PtxError("bra needs a label", instruction.span)
        return (_target(body, instruction, label.text),)
    table = instruction.operands[-1] if instruction.operands else None
    if not isinstance(table, Name) or table.text not in body.tables:
        raise PtxError("brx.idx needs the name of a .branchtargets list", instruction.span)
    return tuple(dict.fromkeys(_target(body, instruction, label) for label in body.tables[table.text]))


def basic_blocks(body: FlatBody) -> tuple[Block, ...]:
    """Split a flat body into blocks, in the order of the text.

    Raises:
        PtxError: a branch to a label that the function does not have.
    """
    instructions = body.instructions
    size = len(instructions)
    leaders = {0, *(at for at in body.labels.values() if at < size)}
    leaders.update(index + 1 for index, instruction in enumerate(instructions) if instruction.opcode in _ENDS)
    starts = sorted(at for at in leaders if at < size)
    number = {start: index for index, start in enumerate(starts)}
    blocks = []
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else size
        last = instructions[end - 1]
        following = (index + 1 if index + 1 < len(starts) else EXIT,)
        successors: tuple[int, ...] = following
        if last.opcode in ("bra", "brx"):
            targets = tuple(number.get(at, EXIT) for at in _targets(body, last))
            successors = targets if last.guard is None else targets + following
        elif last.opcode in ("ret", "exit"):
            successors = (EXIT,) if last.guard is None else (EXIT, *following)
        blocks.append(Block(start, end, successors))
    return tuple(blocks)


def _controllers(blocks: Sequence[Block], order: Sequence[int]) -> dict[int, frozenset[int]]:
    """Control dependence (Ferrante, Ottenstein, Warren), closed transitively."""
    # Post-dominators are dominators of the reversed graph, whose entry is EXIT; an endless loop has no way there,
    # so its blocks get an edge of their own.
    successors = {block: list(blocks[block].successors) for block in order}
    predecessors: dict[int, list[int]] = {EXIT: []}
    for block in order:
        predecessors.setdefault(block, [])
    for block in order:
        for successor in dict.fromkeys(successors[block]):
            predecessors[successor].append(block)
    reached = dict.fromkeys(reverse_postorder(predecessors, EXIT, None))
    for block in order:
        if block not in reached:
            predecessors[EXIT].append(block)
            successors[block].append(EXIT)
            reached = dict.fromkeys(reverse_postorder(predecessors, EXIT, None))
    immediate = dominators(tuple(reached), {block: successors.get(block, []) for block in reached})
    direct: dict[int, set[int]] = {block: set() for block in order}
    for block in order:
        if len(set(successors[block])) < 2:
            continue
        for successor in successors[block]:
            walker = successor
            while walker not in (EXIT, immediate[block]):
                direct[walker].add(block)
                walker = immediate[walker]
    closed: dict[int, frozenset[int]] = {}
    for block in order:
        seen: set[int] = set()
        pending = list(direct[block])
        while pending:
            controller = pending.pop()
            if controller not in seen:
                seen.add(controller)
                pending.extend(direct[controller])
        closed[block] = frozenset(seen)
    return closed


def _liveness(body: FlatBody, blocks: Sequence[Block], order: Sequence[int]) -> dict[int, frozenset[str]]:
    registers = body.registers
    uses: dict[int, set[str]] = {}
    kills: dict[int, set[str]] = {}
    for block in order:
        used: set[str] = set()
        killed: set[str] = set()
        for instruction in body.instructions[blocks[block].start : blocks[block].end]:
            for name in read(instruction):
                if name.text in registers and name.text not in killed:
                    used.add(name.text)
            killed.update(name.text for name in written(instruction) if instruction.guard is None)
        uses[block], kills[block] = used, killed
    live: dict[int, set[str]] = {block: set(uses[block]) for block in order}
    changed = True
    while changed:
        changed = False
        for block in reversed(order):
            after: set[str] = set()
            for successor in blocks[block].successors:
                if successor != EXIT:
                    after |= live[successor]
            before = uses[block] | (after - kills[block])
            if before != live[block]:
                live[block] = before
                changed = True
    return {block: frozenset(registers) for block, registers in live.items()}
