"""What is known of opcodes: which operand they write, and what they do to memory.

An opcode that is not here is *unknown*: every register it mentions may change, and so may memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import assert_never

from metafork.ptx.text.syntax import (
    Address,
    Group,
    Immediate,
    Instruction,
    Name,
    Negated,
    Offset,
    Operand,
    Pair,
    Vector,
    Verbatim,
)

PREFIX = "%shuffle_"
"""What the names of the registers that ``synthesis`` adds start with."""

SINK = "_"
"""The name of what is written to no register."""


class Effect(Enum):
    """What an instruction may do to memory that other instructions see."""

    NONE = "none"
    LOAD = "load"
    STORE = "store"
    ORDER = "order"
    """Barriers, fences, atomics, unknown calls: other threads' writes may become visible."""
    NEW_GRID = "new grid"
    """``griddepcontrol``: even memory that is read-only for this grid may have been written by an earlier one."""
    UNKNOWN = "unknown"


_PURE = frozenset({
    "abs", "activemask", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot",
    "copysign", "cos", "createpolicy", "cvt", "cvta", "div", "dp2a", "dp4a", "elect", "ex2", "fma", "fns",
    "getctarank", "isspacep", "istypep", "lg2", "lop3", "mad", "mad24", "madc", "mapa", "match", "max", "min",
    "mov", "movmatrix", "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "redux", "rem", "rsqrt",
    "sad", "selp", "set", "setp", "shf", "shfl", "shl", "shr", "sin", "slct", "sqrt", "sub", "subc", "szext",
    "tanh", "testp", "vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset", "vshl", "vshr", "vmad", "vote", "xor",
    "mma", "alloca", "stacksave", "txq", "suq", "tex", "tld4", "suld", "ldmatrix",
})  # fmt: skip
_NO_RESULT = {
    "bra": Effect.NONE, "brx": Effect.NONE, "ret": Effect.NONE, "exit": Effect.NONE, "trap": Effect.NONE,
    "brkpt": Effect.NONE, "pmevent": Effect.NONE, "prefetch": Effect.NONE, "prefetchu": Effect.NONE,
    "nanosleep": Effect.ORDER, "applypriority": Effect.NONE, "stackrestore": Effect.NONE,
    "st": Effect.STORE, "red": Effect.ORDER, "membar": Effect.ORDER, "fence": Effect.ORDER, "discard": Effect.ORDER,
    "griddepcontrol": Effect.NEW_GRID, "sust": Effect.ORDER, "sured": Effect.ORDER, "stmatrix": Effect.ORDER,
}  # fmt: skip
_WITH_RESULT = {"ld": Effect.LOAD, "ldu": Effect.LOAD, "atom": Effect.ORDER}
WRITES_FIRST = _PURE.union(_WITH_RESULT)
"""What writes its first operand, and no other."""


def is_known(instruction: Instruction) -> bool:
    """Tell whether results and memory effects of the opcode are known."""
    opcode = instruction.opcode
    return opcode in _PURE or opcode in _NO_RESULT or opcode in _WITH_RESULT or opcode in ("bar", "barrier", "call")


def effect(instruction: Instruction) -> Effect:
    """Return what the instruction may do to memory."""
    opcode = instruction.opcode
    if opcode in _PURE:
        return Effect.NONE
    if opcode in ("bar", "barrier", "call"):
        return Effect.ORDER
    return _NO_RESULT.get(opcode) or _WITH_RESULT.get(opcode) or Effect.UNKNOWN


def written(instruction: Instruction) -> list[Name]:
    """Return the registers the instruction may write; for an unknown opcode all that it mentions."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in WRITES_FIRST:
        return names_in(operands[:1])
    if opcode in _NO_RESULT:
        return []
    if opcode in ("bar", "barrier"):
        return names_in(operands[:1]) if "red" in instruction.modifiers else []
    if opcode == "call":
        return names_in(operands[:1]) if operands and isinstance(operands[0], Group) else []
    return names_in(operands)


def target(instruction: Instruction) -> Operand:
    """Return what an instruction writes first; of a vector of one element that element."""
    match instruction.operands[0]:
        case Vector((single,)):
            return single
        case operand:
            return operand


def targets(instruction: Instruction) -> tuple[Operand, ...]:
    """Return what an instruction writes first; of a vector its elements."""
    match instruction.operands[0]:
        case Vector(elements):
            return elements
        case operand:
            return (operand,)


def read(instruction: Instruction) -> list[Name]:
    """Return the names the instruction may read, its guard included."""
    operands = instruction.operands
    names = names_in(operands[1:] if instruction.opcode in WRITES_FIRST else operands)
    if instruction.guard is None:
        return names
    # A predicated write keeps the old value where the predicate is false.
    return [instruction.guard.name, *written(instruction), *names]


def names_in(operands: Iterable[Operand]) -> list[Name]:
    """Return the names that operands mention, without the sink."""
    names: list[Name] = []
    for operand in operands:
        match operand:
            case Name():
                if operand.text != SINK:
                    names.append(operand)
            case Immediate():
                pass
            case Address():
                if isinstance(operand.base, Name):
                    names.append(operand.base)
            case Negated(name) | Offset(name):
                names.append(name)
            case Pair(first, second):
                names += names_in((first, second))
            case Vector(elements) | Group(elements):
                names += names_in(elements)
            case Verbatim():
                names += operand.names
            case _:
                assert_never(operand)
    return names
