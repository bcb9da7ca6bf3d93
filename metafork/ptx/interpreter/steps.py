"""Instructions as steps: functions of a frame and the mask of lanes that execute."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from metafork.ptx.emulation.evaluate import instruction_types
from metafork.ptx.interpreter.access import Accesses
from metafork.ptx.interpreter.alu import NUMPY_TYPES, comparison, compile_operation, unsupported
from metafork.ptx.interpreter.frame import Frame, ParameterSpace
from metafork.ptx.interpreter.operands import LOCAL_WINDOW, SHARED_WINDOW, Operands, Reader
from metafork.ptx.interpreter.warp import WARP_OPCODES, compile_warp_operation
from metafork.ptx.text.source import PtxError, Span
from metafork.ptx.text.syntax import Group, Instruction, Name, Pair, Vector

if TYPE_CHECKING:
    from typing import Protocol

    class Caller(Protocol):
        """What runs device functions."""

        def call(
            self, frame: Frame, mask: npt.NDArray[Any], name: str, arguments: list[ParameterSpace], span: Span
        ) -> list[npt.NDArray[Any]]:
            """Run a function and return its results' bytes."""


Array: TypeAlias = npt.NDArray[Any]
Step: TypeAlias = Callable[[Frame, Array], None]

_NOTHING = frozenset(
    {"bra", "brx", "ret", "exit", "bar", "barrier", "membar", "fence", "prefetch", "prefetchu", "nanosleep", "pmevent",
     "brkpt", "discard", "applypriority", "griddepcontrol"}
)  # fmt: skip
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "global": 0, "const": 0}


def _nothing(frame: Frame, mask: Array) -> None:
    """Control flow is the machine's; fences have no effect on lanes that run in lockstep."""


class Compiler:
    """Turns the instructions of one function into steps."""

    def __init__(self, caller: Caller, operands: Operands) -> None:
        self.caller = caller
        self.operands = operands
        self.accesses = Accesses(operands)

    def step(self, instruction: Instruction) -> Step:
        """Return the step of an instruction.

        Raises:
            PtxError: it is not known, with line and column.
        """
        opcode = instruction.opcode
        if opcode in _NOTHING:
            if "red" in instruction.modifiers:
                raise unsupported(instruction)
            return _nothing
        if opcode == "trap":
            return _trap(instruction)
        if opcode == "call":
            return self._call(instruction)
        if opcode in ("ld", "ldu", "st", "atom", "red"):
            return self.accesses.step(instruction)
        if opcode in WARP_OPCODES:
            return compile_warp_operation(instruction, self.operands)
        if opcode == "setp":
            return self._setp(instruction)
        if opcode in ("cvta", "isspacep"):
            return self._space(instruction)
        if opcode == "mov" and any(isinstance(operand, Vector) for operand in instruction.operands):
            return self._pack(instruction)
        if opcode in ("addc", "subc") or "cc" in instruction.modifiers:
            return self._carry(instruction)
        return self._operation(instruction)

    def _operation(self, instruction: Instruction) -> Step:
        operation = compile_operation(instruction)
        if len(instruction.operands) < len(operation.sources) + 1:
            raise PtxError(f"{instruction.mnemonic} has too few operands", instruction.span)
        readers = [
            self.operands.read(operand, kind, instruction)
            for operand, kind in zip(instruction.operands[1:], operation.sources, strict=False)
        ]
        target = instruction.operands[0]
        if isinstance(target, Pair):
            raise unsupported(instruction)
        write = self.operands.write(target, operation.result, instruction)
        apply = operation.apply
        if len(readers) == 2:
            first, second = readers

            def binary(frame: Frame, mask: Array) -> None:
                write(frame, apply(first(frame), second(frame)), mask)

            return binary

        def step(frame: Frame, mask: Array) -> None:
            write(frame, apply(*(read(frame) for read in readers)), mask)

        return step

    def _setp(self, instruction: Instruction) -> Step:
        kind = instruction_types(instruction)[-1]
        compare = comparison(instruction, kind)
        left = self.operands.read(instruction.operands[1], kind, instruction)
        right = self.operands.read(instruction.operands[2], kind, instruction)
        combination = next((m for m in instruction.modifiers if m in ("and", "or", "xor")), None)
        combined: Reader | None = None
        if len(instruction.operands) > 3:
            combined = self.operands.read(instruction.operands[3], "pred", instruction)
        combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.get(combination or "and")
        target = instruction.operands[0]
        names = (target.first, target.second) if isinstance(target, Pair) else (target,)
        writers = [self.operands.write(name, "pred", instruction) for name in names]
        assert combine is not None

        def step(frame: Frame, mask: Array) -> None:
            outcome = compare(left(frame), right(frame))
            results = [outcome, ~outcome]
            if combined is not None:
                other = combined(frame)
                results = [combine(result, other) for result in results]
            for write, result in zip(writers, results, strict=False):
                write(frame, result, mask)

        return step

    def _space(self, instruction: Instruction) -> Step:
        modifiers = instruction.modifiers
        space = next((m.split("::")[0] for m in modifiers if m.split("::")[0] in _WINDOWS), None)
        if space is None:
            raise unsupported(instruction)
        window = np.uint64(_WINDOWS[space])
        read = self.operands.read(instruction.operands[1], "u64", instruction)
        if instruction.opcode == "isspacep":
            write = self.operands.write(instruction.operands[0], "pred", instruction)
            region = window >> np.uint64(56)

            def inside(frame: Frame, mask: Array) -> None:
                write(frame, read(frame) >> np.uint64(56) == region, mask)

            return inside
        write = self.operands.write(instruction.operands[0], "u64", instruction)
        if "to" not in modifiers:

            def to_generic(frame: Frame, mask: Array) -> None:
                write(frame, read(frame) + window, mask)

            return to_generic

        def from_generic(frame: Frame, mask: Array) -> None:
            write(frame, read(frame) - window, mask)

        return from_generic

    def _pack(self, instruction: Instruction) -> Step:
        kind = instruction_types(instruction)[-1]
        target, source = instruction.operands
        bits = 8 * np.dtype(NUMPY_TYPES[kind]).itemsize
        if isinstance(target, Vector):
            part = bits // len(target.elements)
            read = self.operands.read(source, f"u{bits}", instruction)
            writers = [self.operands.write(element, f"u{part}", instruction) for element in target.elements]

            def unpack(frame: Frame, mask: Array) -> None:
                # A destination may be part of nothing that is still to be read: the source is read once.
                whole = read(frame).copy()
                for index, write in enumerate(writers):
                    write(frame, (whole >> whole.dtype.type(index * part)).astype(f"u{part // 8}"), mask)

            return unpack
        if not isinstance(source, Vector):
            raise unsupported(instruction)
        part = bits // len(source.elements)
        readers = [self.operands.read(element, f"u{part}", instruction) for element in source.elements]
        write_whole = self.operands.write(target, f"u{bits}", instruction)

        def pack(frame: Frame, mask: Array) -> None:
            whole = np.zeros(1, f"u{bits // 8}")
            for index, read in enumerate(readers):
                whole = whole | read(frame).astype(whole.dtype) << whole.dtype.type(index * part)
            write_whole(frame, whole, mask)

        return pack

    def _carry(self, instruction: Instruction) -> Step:
        """``add.cc``, ``addc``, ``sub.cc`` and ``subc`` on 32 and 64 bits."""
        opcode = instruction.opcode
        kind = instruction_types(instruction)[-1]
        if opcode not in ("add", "addc", "sub", "subc") or kind[1:] not in ("32", "64"):
            raise unsupported(instruction)
        kind = f"u{kind[1:]}"
        left = self.operands.read(instruction.operands[1], kind, instruction)
        right = self.operands.read(instruction.operands[2], kind, instruction)
        write = self.operands.write(instruction.operands[0], kind, instruction)
        adding, with_carry, sets = opcode.startswith("add"), opcode.endswith("c"), "cc" in instruction.modifiers

        def step(frame: Frame, mask: Array) -> None:
            a, b = left(frame), right(frame)
            carry = frame.carry.astype(a.dtype) if with_carry else np.zeros(1, a.dtype)
            if adding:
                partial = a + b
                result = partial + carry
                out = (partial < a) | (result < partial)
            else:
                partial = a - b
                result = partial - carry
                out = (a < b) | (partial < carry)
            if sets:
                np.copyto(frame.carry, out, where=mask)
            write(frame, result, mask)

        return step

    def _call(self, instruction: Instruction) -> Step:
        operands = list(instruction.operands)
        results: tuple[Name, ...] = ()
        if operands and isinstance(operands[0], Group):
            results = _names(operands.pop(0), instruction)
        target = operands.pop(0) if operands else None
        if not isinstance(target, Name) or target.text in self.operands.body.registers:
            raise PtxError("the interpreter does not know indirect calls", instruction.span)
        arguments = _names(operands.pop(0), instruction) if operands else ()
        name, caller = target.text, self.caller

        def step(frame: Frame, mask: Array) -> None:
            spaces = [self._argument(frame, argument, instruction) for argument in arguments]
            values = caller.call(frame, mask, name, spaces, instruction.span)
            for result, data in zip(results, values, strict=False):
                space = self._argument(frame, result, instruction)
                width = min(space.data.shape[1], data.shape[1])
                space.data[mask, :width] = data[mask, :width]

        return step

    @staticmethod
    def _argument(frame: Frame, name: Name, instruction: Instruction) -> ParameterSpace:
        if name.text not in frame.parameters:
            raise PtxError(f"{name} is no .param variable", instruction.span)
        return frame.parameters[name.text]


def _names(operand: object, instruction: Instruction) -> tuple[Name, ...]:
    if not isinstance(operand, Group):
        raise unsupported(instruction)
    names = [element for element in operand.elements if isinstance(element, Name)]
    if len(names) != len(operand.elements):
        raise unsupported(instruction)
    return tuple(names)


def _trap(instruction: Instruction) -> Step:
    def step(frame: Frame, mask: Array) -> None:
        raise PtxError("a thread ran into trap", instruction.span)

    return step
