"""The IR CFG: blocks, edges, instructions and liveness of a kernel's LLVM IR, read through llvmlite.

The graph is a plain value: nothing of it points into LLVM.  Values are known by their names, which are unique in a
function; one without a name has the number that LLVM prints for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import llvmlite.binding as llvm

from metafork.llvm.ptx_target import TargetError, parsed


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
    """Return the CFG of the one function that a module defines; raises ``TargetError`` where there is not exactly one.

    The module is printed once and its text read: asking LLVM for every operand takes ten times as long.
    """
    text = str(module)
    definitions = list(_DEFINITION.finditer(text))
    if len(definitions) != 1:
        raise TargetError(f"the module defines {len(definitions)} functions")
    (definition,) = definitions
    arguments = {}
    for one in _ARGUMENT.finditer(definition["arguments"]):
        arguments[_name(one["name"])] = registers_of_type(one["type"])
    bodies: dict[str, list[IrInstruction]] = {}
    successors: dict[str, tuple[str, ...]] = {}
    # An entry without a label has the number that follows those of the arguments without a name.
    current = str(sum(name.isdigit() for name in arguments))
    for line in _BROKEN.sub(" ", text[definition.end() : text.index("\n}", definition.end())]).splitlines():
        if line.startswith("  "):
            instruction = _instruction(line)
            bodies.setdefault(current, []).append(instruction)
            if instruction.opcode in _BRANCHES:
                successors[current] = tuple(dict.fromkeys(map(_name, _TARGET.findall(line))))
        elif label := _LABEL.match(line):
            current = _name(label[1])
    predecessors: dict[str, list[str]] = {name: [] for name in bodies}
    for name, targets in successors.items():
        for target in targets:
            predecessors[target].append(name)
    blocks = tuple(
        IrBlock(name, tuple(body), successors.get(name, ()), tuple(predecessors[name])) for name, body in bodies.items()
    )
    return IrCfg(_name(definition["name"]), arguments, blocks)


# A name as LLVM prints it: plain, or in quotes where it holds other characters.  Values without one have a number.
_NAME = r'(?:"[^"]*"|[-\w.$]+)'
_TYPE = r"(?:ptr(?: addrspace\(\d+\))?|<[^>]*>|\{[^}]*\}|i\d+|float|double|half|x86_fp80|void)"
_DEFINITION = re.compile(rf"^define [^@]*@(?P<name>{_NAME})\((?P<arguments>.*)\)[^)]*\{{$", re.MULTILINE)
_ARGUMENT = re.compile(rf"(?:^|, )(?P<type>{_TYPE})[^%]*%(?P<name>{_NAME})")
_LABEL = re.compile(rf"({_NAME}):")
_INSTRUCTION = re.compile(rf"  (?:%(?P<name>{_NAME}) = )?(?:(?:tail|musttail|notail) )?(?P<opcode>\w+)")
_VALUE = re.compile(rf"(?<!label )%({_NAME})")
_TARGET = re.compile(rf"label %({_NAME})")
_INCOMING = re.compile(rf"\[ (?:%(?P<value>{_NAME})|[^%]*), %(?P<block>{_NAME}) \]")
_CALLEE = re.compile(rf"@({_NAME})\(")
_FIRST_TYPE = re.compile(rf"\b{_TYPE}(?=[\s,]|$)|<[^>]*>|\{{[^}}]*\}}")
_POINTER = re.compile(r"ptr(?: addrspace\(\d+\))?")
_CAST_TO = re.compile(rf" to ({_TYPE})")
# The cases of a switch stand on lines of their own.
_BROKEN = re.compile(r"\n(?=    |  \])")
_BRANCHES = frozenset({"br", "switch"})
_NO_REGISTER = frozenset({"br", "fcmp", "icmp", "ret", "store", "switch", "unreachable"})


def _name(printed: str) -> str:
    return printed.strip('"')


def _instruction(line: str) -> IrInstruction:
    start = _INSTRUCTION.match(line)
    if start is None:
        raise TargetError(f"no instruction: {line.strip()}")
    opcode, rest = start["opcode"], line[start.end() :]
    name = _name(start["name"] or "")
    sources: tuple[str, ...] = ()
    callee = ""
    if opcode == "phi":
        pairs = [(_name(one["value"]), _name(one["block"])) for one in _INCOMING.finditer(rest) if one["value"]]
        names, sources = tuple(value for value, _ in pairs), tuple(block for _, block in pairs)
    else:
        names = tuple(map(_name, _VALUE.findall(rest)))
    if opcode == "call" and (called := _CALLEE.search(rest)):
        callee = _name(called[1])
    return IrInstruction(name, opcode, _registers(opcode, rest) if name else 0, names, sources, callee)


def _registers(opcode: str, rest: str) -> int:
    """Return the size of the value of an instruction, by the type that its text names."""
    if opcode in _NO_REGISTER:
        return 0
    if cast := _CAST_TO.search(rest):
        return registers_of_type(cast[1])
    if opcode in ("getelementptr", "alloca"):
        pointer = _POINTER.search(rest)
        return registers_of_type(pointer[0] if pointer else "ptr")
    types = [one[0] for one in _FIRST_TYPE.finditer(rest)]
    match opcode:
        case "select":
            return registers_of_type(types[1])
        case "extractvalue":
            fields = types[0].strip("{} ").split(",")
            return registers_of_type(fields[int(rest.rsplit(",", 1)[1])].strip())
        case _:
            return registers_of_type(types[0])


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


def most_live_registers(cfg: IrCfg, sizes: Mapping[str, int] | None = None) -> int:
    """Return the maximum over program points of the live values in 32-bit registers.

    ``sizes`` are those of the values, by default ``cfg.registers()``.
    """
    size = cfg.registers() if sizes is None else sizes
    live = liveness(cfg)
    most = 0
    for block in cfg.blocks:
        now = set(live.live_out[block.name])
        count = sum(size[name] for name in now)
        most = max(most, count)
        for one in reversed(block.instructions):
            if one.name and one.name not in now:
                most = max(most, count + size[one.name])
            elif one.name:
                now.discard(one.name)
                count -= size[one.name]
            if one.opcode != "phi":
                for name in one.operands:
                    if name not in now:
                        now.add(name)
                        count += size[name]
            most = max(most, count)
    return most


_UNIFORM_CALL = re.compile(r"llvm\.nvvm\.read\.ptx\.sreg\.(ctaid|ntid|nctaid)\.")
_NOT_COMPUTED = frozenset({"alloca", "atomicrmw", "call", "cmpxchg", "load", "phi"})


def uniform_values(cfg: IrCfg) -> frozenset[str]:
    """Return the values that all threads of a block share: arguments, block indices, what is computed from them alone.

    A ``phi`` is never among them, for threads may come to it by different ways.
    """
    uniform = set(cfg.arguments)
    changed = True
    while changed:
        changed = False
        for block in cfg.blocks:
            for one in block.instructions:
                if not one.name or one.name in uniform:
                    continue
                computed = one.opcode not in _NOT_COMPUTED and uniform.issuperset(one.operands)
                if computed or _UNIFORM_CALL.match(one.callee):
                    uniform.add(one.name)
                    changed = True
    return frozenset(uniform)


def with_folded_addresses(cfg: IrCfg) -> IrCfg:
    """Return the CFG without addresses at a constant distance of another, which loads and stores take as an offset."""
    base: dict[str, str] = {}
    for block in cfg.blocks:
        for one in block.instructions:
            if one.opcode == "getelementptr" and len(one.operands) == 1:
                base[one.name] = one.operands[0]

    def root(name: str) -> str:
        while name in base:
            name = base[name]
        return name

    blocks = tuple(
        replace(
            block,
            instructions=tuple(
                replace(one, operands=tuple(map(root, one.operands)))
                for one in block.instructions
                if one.name not in base
            ),
        )
        for block in cfg.blocks
    )
    return replace(cfg, blocks=blocks)


def thread_registers(cfg: IrCfg) -> int:
    """Return the most live 32-bit registers that a thread needs of its own.

    What a whole block shares stands in constant memory or in uniform registers, and constant offsets in the
    instructions that use them.
    """
    folded = with_folded_addresses(cfg)
    sizes = folded.registers() | dict.fromkeys(uniform_values(folded), 0)
    return most_live_registers(folded, sizes)
