"""Loads, stores and atomics in all state spaces; generic addresses are told apart by their window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from metafork.ptx.emulation.evaluate import instruction_types
from metafork.ptx.interpreter.alu import NUMPY_TYPES, unsupported
from metafork.ptx.interpreter.frame import Frame
from metafork.ptx.interpreter.memory import UNSIGNED
from metafork.ptx.interpreter.operands import LOCAL_WINDOW, SHARED_WINDOW, Operands, Reader
from metafork.ptx.text.source import PtxError
from metafork.ptx.text.syntax import Address, Instruction, Name, Vector

Array: TypeAlias = npt.NDArray[Any]
Step: TypeAlias = Callable[[Frame, Array], None]
Update: TypeAlias = Callable[[Any, Any, Any], Any]

_SPACES = ("global", "const", "shared", "local", "param")
_REGION = np.uint64(56)


def gather(frame: Frame, space: str | None, addresses: Array, slots: Array, size: int) -> Array:
    """Return raw values that the lanes ``slots`` read at their addresses."""
    if space in ("global", "const"):
        return frame.batch.memory.gather(addresses, size)
    if space == "shared":
        return frame.batch.shared.gather(frame.batch.block[slots], addresses, size)
    if space == "local":
        return frame.local.gather(slots, addresses, size)
    values = np.zeros(addresses.shape, UNSIGNED[size])
    for part, inner, where in _generic(addresses):
        values[where] = gather(frame, part, inner, slots[where], size)
    return values


def scatter(frame: Frame, space: str | None, addresses: Array, slots: Array, values: Array) -> None:
    """Store the raw values of the lanes ``slots`` at their addresses."""
    if space in ("global", "const"):
        frame.batch.memory.scatter(addresses, values)
    elif space == "shared":
        frame.batch.shared.scatter(frame.batch.block[slots], addresses, values)
    elif space == "local":
        frame.local.scatter(slots, addresses, values)
    else:
        for part, inner, where in _generic(addresses):
            scatter(frame, part, inner, slots[where], values[where])


def _generic(addresses: Array) -> list[tuple[str, Array, Array]]:
    """Split generic addresses by window: (space, addresses within it, which lanes)."""
    region = addresses >> _REGION
    parts = []
    for space, window in (("global", 0), ("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW)):
        where = region == np.uint64(window >> 56)
        if space == "global":
            where = (region != np.uint64(SHARED_WINDOW >> 56)) & (region != np.uint64(LOCAL_WINDOW >> 56))
        if where.any():
            parts.append((space, addresses[where] - np.uint64(window), where))
    return parts


class Accesses:
    """Compiles the memory instructions of one function."""

    def __init__(self, operands: Operands) -> None:
        self.operands = operands

    def step(self, instruction: Instruction) -> Step:
        """Return the step of ``ld``, ``st``, ``atom`` or ``red``.

        Raises:
            PtxError: the form is not known.
        """
        kinds = instruction_types(instruction)
        space = next((s for m in instruction.modifiers if (s := m.split("::")[0]) in _SPACES), None)
        if not kinds or kinds[-1] not in NUMPY_TYPES:
            raise unsupported(instruction)
        kind = kinds[-1]
        opcode = instruction.opcode
        if opcode in ("atom", "red"):
            return self._atomic(instruction, space, kind)
        if space == "param":
            return self._parameter(instruction, kind)
        memory_operand = instruction.operands[1 if opcode in ("ld", "ldu") else 0]
        address = self.operands.address(memory_operand, instruction)
        register = instruction.operands[0 if opcode in ("ld", "ldu") else 1]
        elements = register.elements if isinstance(register, Vector) else (register,)
        size = np.dtype(NUMPY_TYPES[kind]).itemsize
        whole = np.uint64(size * len(elements))
        natural = np.dtype(NUMPY_TYPES[kind])

        def check(addresses: Array) -> None:
            if (addresses % whole).any():
                raise PtxError(f"misaligned vector access at {int(addresses[0]):#x}", instruction.span)

        if opcode in ("ld", "ldu"):
            writers = [self.operands.write(element, kind, instruction) for element in elements]

            def load(frame: Frame, mask: Array) -> None:
                slots = np.flatnonzero(mask)
                addresses = address(frame)[slots]
                if len(writers) > 1:
                    check(addresses)
                for index, write in enumerate(writers):
                    values = np.zeros(frame.slots, natural)
                    raw = gather(frame, space, addresses + np.uint64(index * size), slots, size)
                    values[slots] = raw.view(natural)
                    write(frame, values, mask)

            return load
        readers = [self.operands.read(element, kind, instruction) for element in elements]

        def store(frame: Frame, mask: Array) -> None:
            slots = np.flatnonzero(mask)
            addresses = address(frame)[slots]
            if len(readers) > 1:
                check(addresses)
            for index, read in enumerate(readers):
                values = np.ascontiguousarray(np.broadcast_to(read(frame), (frame.slots,))[slots])
                scatter(frame, space, addresses + np.uint64(index * size), slots, values.view(UNSIGNED[size]))

        return store

    def _parameter(self, instruction: Instruction, kind: str) -> Step:
        loading = instruction.opcode in ("ld", "ldu")
        memory_operand = instruction.operands[1 if loading else 0]
        if not isinstance(memory_operand, Address) or not isinstance(memory_operand.base, Name):
            raise unsupported(instruction)
        name, offset = memory_operand.base.text, memory_operand.offset
        if name in self.operands.body.registers:
            raise unsupported(instruction)
        register = instruction.operands[0 if loading else 1]
        elements = register.elements if isinstance(register, Vector) else (register,)
        natural = np.dtype(NUMPY_TYPES[kind])
        size = natural.itemsize
        if loading:
            writers = [self.operands.write(element, kind, instruction) for element in elements]

            def load(frame: Frame, mask: Array) -> None:
                if name not in frame.parameters:
                    raise PtxError(f"{name} is no parameter", instruction.span)
                for index, write in enumerate(writers):
                    write(frame, frame.parameters[name].load(offset + index * size, size).view(natural), mask)

            return load
        readers = [self.operands.read(element, kind, instruction) for element in elements]

        def store(frame: Frame, mask: Array) -> None:
            if name not in frame.parameters:
                raise PtxError(f"{name} is no parameter", instruction.span)
            for index, read in enumerate(readers):
                values = np.broadcast_to(read(frame), (frame.slots,))
                frame.parameters[name].store(offset + index * size, values, mask)

        return store

    def _atomic(self, instruction: Instruction, space: str | None, kind: str) -> Step:
        """Lanes update memory one after the other, in the order of their slots."""
        returning = instruction.opcode == "atom"
        operands = instruction.operands[1:] if returning else instruction.operands
        update = next((_UPDATES[m] for m in instruction.modifiers if m in _UPDATES), None)
        if update is None or isinstance(instruction.operands[0], Vector):
            raise unsupported(instruction)
        address = self.operands.address(operands[0], instruction)
        readers: list[Reader] = [self.operands.read(operand, kind, instruction) for operand in operands[1:]]
        write = self.operands.write(instruction.operands[0], kind, instruction) if returning else None
        natural = np.dtype(NUMPY_TYPES[kind])

        def step(frame: Frame, mask: Array) -> None:
            slots = np.flatnonzero(mask)
            addresses = address(frame)[slots]
            columns = [np.broadcast_to(read(frame), (frame.slots,))[slots] for read in readers]
            old = np.zeros(frame.slots, natural)
            for index in range(slots.size):
                here = slice(index, index + 1)
                value = gather(frame, space, addresses[here], slots[here], natural.itemsize).view(natural)
                old[slots[index]] = value[0]
                extra = columns[1][here] if len(columns) > 1 else value
                new = np.asarray(update(value, columns[0][here], extra)).astype(natural)
                scatter(frame, space, addresses[here], slots[here], new.view(UNSIGNED[natural.itemsize]))
            if write is not None:
                write(frame, old, mask)

        return step


_UPDATES: dict[str, Update] = {
    "add": lambda old, a, b: old + a,
    "min": lambda old, a, b: np.minimum(old, a),
    "max": lambda old, a, b: np.maximum(old, a),
    "and": lambda old, a, b: old & a,
    "or": lambda old, a, b: old | a,
    "xor": lambda old, a, b: old ^ a,
    "exch": lambda old, a, b: a,
    "cas": lambda old, a, b: np.where(old == a, b, old),
    "inc": lambda old, a, b: np.where(old >= a, 0, old + 1),
    "dec": lambda old, a, b: np.where((old == 0) | (old > a), a, old - 1),
}
