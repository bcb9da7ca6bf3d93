"""The IR CFG: blocks, edges, instructions and liveness of a kernel's LLVM IR, read through llvmlite.

The graph is a plain value: nothing of it points into LLVM.  Values are known by their names, which are unique in a
function; the ``instnamer`` pass gives one to each that has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import llvmlite.binding as llvm

from metafork.ptx_target import TargetError, parsed, run_pipeline


@dataclass(frozen=True, slots=True)
class IrInstruction:
    """One instruction.  ``name`` is empty where it gives no value; ``operands`` are values, constants left out.

    ``registers`` is the size of its value in 32-bit registers: 0 for predicates and for no value.  ``callee`` is the
    function that a call calls.  The operands of a ``phi`` are used at the end of the ``sources``, pairwise.
    """

    name: str
    opcode: str
    registers: int
    operands: tuple[str, ...]
    sources: tuple[str, ...] = ()
    callee: str = ""


@dataclass(frozen=True, slots=True)
class IrBlock:
    """A basic block and its edges."""

    name: str
    instructions: tuple[IrInstruction, ...]
    successors: tuple[str, ...]
    predecessors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IrCfg:
    """The control flow graph of one function; ``blocks`` in textual order, the entry first.

    ``arguments`` maps each argument to its size in 32-bit registers.
    """

    name: str
    arguments: Mapping[str, int]
    blocks: tuple[IrBlock, ...]

    def block(self, name: str) -> IrBlock:
        """Return the block of that name; raises ``KeyError``."""
        for block in self.blocks:
            if block.name == name:
                return block
        raise KeyError(name)

    def registers(self) -> dict[str, int]:
        """Return the size of every value in 32-bit registers."""
        sizes = dict(self.arguments)
        for block in self.blocks:
            sizes.update({one.name: one.registers for one in block.instructions if one.name})
        return sizes


def registers_of_type(text: str) -> int:
    """Return how many 32-bit registers a value of an LLVM type takes: predicates (``i1``) none.

    Addresses of shared and of private memory are 32 bits wide to the hardware, all others 64.
    """
    if text == "ptr" or text.startswith("ptr addrspace("):
        return 1 if text in ("ptr addrspace(3)", "ptr addrspace(5)") else 2
    if text.startswith("<"):
        count, _, element = text.strip("<>").partition(" x ")
        return int(count) * registers_of_type(element)
    if text.startswith("{"):
        # What checked arithmetic gives (a value and a predicate); such structures do not nest.
        return sum(registers_of_type(field.strip()) for field in text.strip("{} ").split(","))
    match text:
        case "void" | "i1" | "label" | "metadata":
            return 0
        case "float" | "half":
            return 1
        case "double":
            return 2
        case _ if text.startswith("i") and text[1:].isdigit():
            return (int(text[1:]) + 31) // 32
        case _:
            raise TargetError(f"no register holds a value of type {text}")


def read_cfg(ir_text: str) -> IrCfg:
    """Return the CFG of the one function that IR text defines; raises ``TargetError``."""
    return cfg_of(parsed(ir_text))


def cfg_of(module: llvm.ModuleRef) -> IrCfg:
    """Return the CFG of the one function that a module defines, naming its values in place.

    Raises ``TargetError`` where there is not exactly one.
    """
    run_pipeline(module, ("instnamer",))
    functions = [function for function in module.functions if not function.is_declaration]
    if len(functions) != 1:
        raise TargetError(f"the module defines {len(functions)} functions")
    (function,) = functions
    arguments = {argument.name: registers_of_type(str(argument.type)) for argument in function.arguments}
    bodies: dict[str, tuple[IrInstruction, ...]] = {}
    successors: dict[str, tuple[str, ...]] = {}
    for block in function.blocks:
        instructions = list(block.instructions)
        bodies[block.name] = tuple(_instruction(instruction) for instruction in instructions)
        targets = [operand.name for operand in instructions[-1].operands if operand.value_kind.name == "basic_block"]
        # LLVM keeps the targets of a branch backwards; here the one for "true" comes first.
        successors[block.name] = tuple(dict.fromkeys(reversed(targets)))
    predecessors: dict[str, list[str]] = {name: [] for name in bodies}
    for name, targets_of in successors.items():
        for target in targets_of:
            predecessors[target].append(name)
    blocks = tuple(IrBlock(name, bodies[name], successors[name], tuple(predecessors[name])) for name in bodies)
    return IrCfg(function.name, arguments, blocks)


_NO_REGISTER = frozenset({"br", "fcmp", "icmp", "ret", "store", "switch", "unreachable"})
_VALUES = frozenset({"instruction", "argument"})


def _instruction(value: llvm.ValueRef) -> IrInstruction:
    opcode = value.opcode
    operands = list(value.operands)
    sources: tuple[str, ...] = ()
    callee = ""
    if opcode == "phi":
        pairs = [
            (operand.name, block.name)
            for operand, block in zip(operands, value.incoming_blocks, strict=True)
            if operand.value_kind.name in _VALUES
        ]
        names, sources = tuple(name for name, _ in pairs), tuple(block for _, block in pairs)
    else:
        names = tuple(operand.name for operand in operands if operand.value_kind.name in _VALUES)
    if opcode == "call":
        callee = operands[-1].name
    # Asking LLVM for a type is slow, and these have none that takes a register.
    registers = 0 if opcode in _NO_REGISTER else registers_of_type(str(value.type))
    return IrInstruction(value.name, opcode, registers, names, sources, callee)


@dataclass(frozen=True, slots=True)
class Liveness:
    """The values that are live where each block begins and where it ends."""

    live_in: Mapping[str, frozenset[str]]
    live_out: Mapping[str, frozenset[str]]


def liveness(cfg: IrCfg) -> Liveness:
    """Solve the backward equations; a ``phi``'s operand is live out of the block it comes from only."""
    phi_uses: dict[str, set[str]] = {block.name: set() for block in cfg.blocks}
    uses: dict[str, set[str]] = {}
    defined: dict[str, set[str]] = {}
    for block in cfg.blocks:
        used: set[str] = set()
        own: set[str] = set()
        for one in block.instructions:
            if one.opcode == "phi":
                for operand, source in zip(one.operands, one.sources, strict=True):
                    phi_uses[source].add(operand)
            else:
                used.update(operand for operand in one.operands if operand not in own)
            if one.name:
                own.add(one.name)
        uses[block.name], defined[block.name] = used, own
    live_in: dict[str, set[str]] = {block.name: set(uses[block.name]) for block in cfg.blocks}
    live_out: dict[str, set[str]] = {block.name: set(phi_uses[block.name]) for block in cfg.blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(cfg.blocks):
            out = live_out[block.name]
            before = len(out)
            for successor in block.successors:
                out |= live_in[successor]
            into = live_in[block.name]
            size = len(into)
            into |= out - defined[block.name]
            changed = changed or len(out) != before or len(into) != size
    return Liveness(
        {name: frozenset(names) for name, names in live_in.items()},
        {name: frozenset(names) for name, names in live_out.items()},
    )


def live_points(cfg: IrCfg) -> Iterator[tuple[str, int, frozenset[str]]]:
    """Yield (block, position, values live just after the instruction at that position), backwards in each block.

    A value that nothing uses is live at its own definition: it needs a register there.
    """
    live = liveness(cfg)
    for block in cfg.blocks:
        now = set(live.live_out[block.name])
        for position in range(len(block.instructions) - 1, -1, -1):
            one = block.instructions[position]
            yield block.name, position, frozenset(now | ({one.name} if one.name else set()))
            now.discard(one.name)
            if one.opcode != "phi":
                now.update(one.operands)
        yield block.name, -1, frozenset(now)


def most_live_registers(cfg: IrCfg) -> int:
    """Return the maximum over program points of the live values in 32-bit registers."""
    sizes = cfg.registers()
    return max(sum(sizes[name] for name in names) for _, _, names in live_points(cfg))
