"""Operands as functions on frames: reading a source in a type, writing a destination under a mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from metafork.ptx.emulation.evaluate import type_width
from metafork.ptx.interpreter.alu import NUMPY_TYPES
from metafork.ptx.interpreter.frame import Frame
from metafork.ptx.interpreter.memory import UNSIGNED
from metafork.ptx.text.flatten import FlatBody
from metafork.ptx.text.operands import float_bits, integer_literal
from metafork.ptx.text.source import PtxError
from metafork.ptx.text.syntax import Address, Immediate, Instruction, Name, Negated, Offset, Operand

Array: TypeAlias = npt.NDArray[Any]
Reader: TypeAlias = Callable[[Frame], Array]
Writer: TypeAlias = Callable[[Frame, Array, Array], None]

SHARED_WINDOW = 1 << 56
"""Generic address of the start of shared memory."""
LOCAL_WINDOW = 2 << 56
"""Generic address of the start of local memory."""


def register_type(kind: str) -> Any:
    """Return the NumPy type that holds a register's raw bits."""
    return np.bool_ if kind == "pred" else UNSIGNED[max(type_width(kind) // 8, 1)]


class Operands:
    """Compiles the operands of one function."""

    def __init__(
        self, body: FlatBody, symbols: Mapping[str, int], shared: Mapping[str, int], local: Mapping[str, int]
    ) -> None:
        """``symbols`` are global and constant variables with their addresses, the others byte offsets."""
        self.body = body
        self.addresses: dict[str, int] = {**symbols, **shared, **local}

    def read(self, operand: Operand, kind: str, instruction: Instruction) -> Reader:
        """Return a reader of an operand in a type; wider registers give their low bits.

        Raises:
            PtxError: the operand cannot be read as a value.
        """
        dtype = np.dtype(NUMPY_TYPES[kind])
        match operand:
            case Immediate(text):
                return _constant(immediate(text, kind, instruction), dtype)
            case Negated(name):
                inner = self.read(name, "pred", instruction)
                return lambda frame: ~inner(frame)
            case Offset(name, offset) if name.text in self.addresses:
                return _constant(self.addresses[name.text] + offset, dtype)
            case Name(text, component):
                if component is None and text in self.body.registers:
                    return _register(text, dtype)
                if text == "WARP_SZ":
                    return _constant(32, dtype)
                if text in self.addresses:
                    return _constant(self.addresses[text], dtype)
                if text.startswith("%"):
                    return _special(str(operand), dtype, instruction)
        raise PtxError(f"the interpreter cannot read operand {operand}", instruction.span)

    def write(self, operand: Operand, kind: str, instruction: Instruction) -> Writer:
        """Return a writer of results of a type; wider registers are extended by its sign.

        Raises:
            PtxError: the operand is no register.
        """
        if isinstance(operand, Name) and operand.text == "_":
            return lambda frame, values, mask: None
        if not isinstance(operand, Name) or operand.text not in self.body.registers:
            raise PtxError(f"the interpreter cannot write operand {operand}", instruction.span)
        name = operand.text
        raw = np.dtype(register_type(self.body.registers[name]))
        natural = np.dtype(NUMPY_TYPES[kind])

        def write(frame: Frame, values: Array, mask: Array) -> None:
            if values.dtype != natural:
                values = values.astype(natural)
            if raw.itemsize == natural.itemsize:
                bits = np.ascontiguousarray(values).view(raw)
            elif natural.kind == "i":
                bits = values.astype(np.dtype(f"i{raw.itemsize}")).view(raw)
            else:
                unsigned = np.ascontiguousarray(values).view(np.dtype(f"u{natural.itemsize}"))
                bits = unsigned.astype(raw)
            np.copyto(frame.registers[name], bits, where=mask)

        return write

    def address(self, operand: Operand, instruction: Instruction) -> Reader:
        """Return a reader of the 64-bit address of a memory operand.

        Raises:
            PtxError: the operand is no address.
        """
        if not isinstance(operand, Address):
            raise PtxError(f"the interpreter does not know the address {operand}", instruction.span)
        base = self.read(operand.base, "u64", instruction)
        offset = np.uint64(operand.offset % (1 << 64))

        def address(frame: Frame) -> Array:
            return np.broadcast_to(base(frame) + offset, (frame.slots,))

        return address


def immediate(text: str, kind: str, instruction: Instruction) -> int:
    """Return the bits of a literal in a type.

    Raises:
        PtxError: the text is no literal.
    """
    width = type_width(kind)
    bits = float_bits(text, width)
    if bits is not None:
        return bits
    try:
        return integer_literal(text)
    except ValueError:
        raise PtxError(f"{text} is no literal", instruction.span) from None


def _constant(value: int, dtype: np.dtype[Any]) -> Reader:
    if dtype == np.bool_:
        array: Array = np.array([value != 0])
    else:
        raw = np.dtype(f"u{dtype.itemsize}")
        array = np.array([value % (1 << (8 * dtype.itemsize))], raw).view(dtype)
    return lambda frame: array


def _register(name: str, dtype: np.dtype[Any]) -> Reader:
    def read(frame: Frame) -> Array:
        raw = frame.registers[name]
        if raw.dtype.itemsize == dtype.itemsize:
            return raw.view(dtype)
        narrowed = raw.astype(np.dtype(f"u{dtype.itemsize}"))
        result: Array = narrowed.view(dtype)
        return result

    return read


def _special(name: str, dtype: np.dtype[Any], instruction: Instruction) -> Reader:
    def read(frame: Frame) -> Array:
        if name in ("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"):
            frame.batch.clock += 1
            return np.array([frame.batch.clock]).astype(dtype)
        values = frame.batch.specials.get(name)
        if values is None:
            raise PtxError(f"the interpreter does not know the register {name}", instruction.span)
        result: Array = values.astype(dtype)
        return result

    return read
