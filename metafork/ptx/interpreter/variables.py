"""Where variables live: offsets of shared and local ones, addresses of global and constant ones, packed arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from metafork.ptx.interpreter.memory import GlobalMemory
from metafork.ptx.text.flatten import FlatBody, flatten
from metafork.ptx.text.operands import float_bits, integer_literal
from metafork.ptx.text.source import PtxError
from metafork.ptx.text.syntax import TYPE_BYTES, Declaration, Declarator, Function, Module

Array: TypeAlias = npt.NDArray[Any]


class FunctionLayout(Struct, frozen=True):
    """Byte offsets of a function's ``.local`` variables in each thread's local memory."""

    local_offsets: Mapping[str, int]
    local_size: int


class ModuleLayout(Struct, frozen=True):
    """Addresses of the module's variables.

    Attributes:
        symbols: ``.global`` and ``.const`` variables → address.
        shared: module-level ``.shared`` variables → offset; open arrays start behind all static ones.
        shared_in: function → its own ``.shared`` variables.
        shared_size: bytes of static shared memory, where dynamic shared memory starts.
    """

    symbols: Mapping[str, int]
    shared: Mapping[str, int]
    shared_in: Mapping[str, Mapping[str, int]]
    shared_size: int

    def shared_of(self, function: str) -> Mapping[str, int]:
        """Return the shared variables that a function sees."""
        return {**self.shared, **self.shared_in.get(function, {})}


def element_size(declaration: Declaration) -> int:
    """Return the bytes of one element, vectors as a whole."""
    lanes = int(declaration.vector[1]) if declaration.vector else 1
    return TYPE_BYTES.get(declaration.type, 8) * lanes


def declared_size(declaration: Declaration, declarator: Declarator) -> int:
    """Return the bytes of a variable; 0 for an open array."""
    size = element_size(declaration)
    for extent in declarator.extents:
        size *= extent or 0
    return size


def _alignment(declaration: Declaration) -> int:
    return declaration.alignment or element_size(declaration)


def layout_function(body: FlatBody) -> FunctionLayout:
    """Place a function's ``.local`` variables."""
    offsets: dict[str, int] = {}
    size = 0
    for name, variable in body.variables.items():
        if variable.declaration.space == "local":
            size = -(-size // _alignment(variable.declaration)) * _alignment(variable.declaration)
            offsets[name] = size
            size += declared_size(variable.declaration, variable.declarator)
    return FunctionLayout(offsets, size)


def layout_module(module: Module, memory: GlobalMemory) -> ModuleLayout:
    """Place the module's variables; global and constant ones are allocated and initialised in ``memory`` once."""
    symbols = memory.symbols
    shared: dict[str, int] = {}
    shared_in: dict[str, dict[str, int]] = {}
    open_arrays: list[tuple[dict[str, int], str, int]] = []
    size = 0

    def place(into: dict[str, int], declaration: Declaration, declarator: Declarator, name: str) -> None:
        nonlocal size
        if None in declarator.extents:
            open_arrays.append((into, name, _alignment(declaration)))
            return
        size = -(-size // _alignment(declaration)) * _alignment(declaration)
        into[name] = size
        size += declared_size(declaration, declarator)

    for item in module.items:
        if isinstance(item, Declaration):
            for declarator in item.declarators:
                if item.space == "shared":
                    place(shared, item, declarator, declarator.name)
                elif item.space in ("global", "const") and declarator.name not in symbols:
                    values = _initial_bytes(item, declarator)
                    symbols[declarator.name] = memory.upload(values)
        elif isinstance(item, Function) and item.body is not None:
            inside = shared_in.setdefault(item.name, {})
            for name, variable in flatten(item).variables.items():
                if variable.declaration.space == "shared":
                    place(inside, variable.declaration, variable.declarator, name)
    for _, _, alignment in open_arrays:
        size = -(-size // alignment) * alignment
    for into, name, _ in open_arrays:
        into[name] = size
    return ModuleLayout(symbols, shared, shared_in, size)


def _initial_bytes(declaration: Declaration, declarator: Declarator) -> Array:
    size = declared_size(declaration, declarator)
    if declarator.initialiser is None:
        return np.zeros(max(size, 1), np.uint8)
    words = re.findall(r"-?[\w.]+(?:[eE][+-]\d+)?", declarator.initialiser)
    part = TYPE_BYTES.get(declaration.type, 8)
    raw = bytearray()
    for word in words:
        bits = float_bits(word, 8 * part) if declaration.type[0] == "f" or word[:2] in ("0f", "0d") else None
        try:
            value = integer_literal(word) if bits is None else bits
        except ValueError:
            raise PtxError(f"the interpreter cannot initialise by {word}", declaration.span) from None
        raw += (value % (1 << (8 * part))).to_bytes(part, "little")
    raw += bytes(max(size - len(raw), 0))
    return np.frombuffer(bytes(raw), np.uint8)


def pack_argument(declaration: Declaration, value: Any) -> Array:
    """Return one row of bytes for a kernel argument.

    Raises:
        ValueError: a ``bytes`` value of the wrong length, or a value that is no number.
    """
    size = declared_size(declaration, declaration.declarators[0])
    if isinstance(value, bytes):
        if len(value) != size:
            raise ValueError(f"{declaration.declarators[0].name} takes {size} bytes, not {len(value)}")
        raw = value
    elif declaration.type[0] == "f" or isinstance(value, (float, np.floating)):
        raw = np.array(value, {2: np.float16, 4: np.float32, 8: np.float64}[size]).tobytes()
    else:
        raw = (int(value) % (1 << (8 * size))).to_bytes(size, "little")
    return np.frombuffer(raw, np.uint8).reshape(1, -1)
