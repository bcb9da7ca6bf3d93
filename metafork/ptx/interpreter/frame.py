"""The state of one call: registers as arrays over lanes, local variables and parameters.

A *slot* is a lane of the batch, whether a thread lives there or not: every block takes a whole number of warps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from metafork.ptx.interpreter.memory import UNSIGNED, Arena, GlobalMemory

Array: TypeAlias = npt.NDArray[Any]

WARP = 32


class Batch(Struct):
    """The threads of some blocks, and what they share.

    Attributes:
        slots: lanes in all, a multiple of the warp size.
        block: block of each slot, as a row of the shared arena.
        specials: values of the special registers, by name.
        exited: slots that hold no thread, or whose thread has ended.
    """

    slots: int
    block: Array
    specials: Mapping[str, Array]
    exited: Array
    memory: GlobalMemory
    shared: Arena
    shared_offsets: Mapping[str, int]
    clock: int = 0

    def warps(self, mask: Array) -> Array:
        """Return for each slot the bits of its warp's lanes that are in ``mask``."""
        bits = np.left_shift(np.uint32(1), np.arange(WARP, dtype=np.uint32))
        words = np.bitwise_or.reduce(np.where(mask.reshape(-1, WARP), bits, np.uint32(0)), axis=1)
        return np.repeat(words, WARP)

    def lane_values(self, values: Array, lanes: Array) -> Array:
        """Return for each slot the value that lane ``lanes`` of its warp holds."""
        first = np.arange(self.slots) // WARP * WARP
        result: Array = values[first + lanes]
        return result


class ParameterSpace(Struct):
    """Bytes of one ``.param`` variable: one row for all lanes (a kernel's) or one each (a call's)."""

    data: Array

    def load(self, offset: int, size: int) -> Array:
        """Return raw values at a byte offset; one element where all lanes share them."""
        return np.ascontiguousarray(self.data[:, offset : offset + size]).view(UNSIGNED[size])[:, 0]

    def store(self, offset: int, values: Array, mask: Array) -> None:
        """Store raw values of the lanes in ``mask``."""
        size = values.dtype.itemsize
        raw = np.ascontiguousarray(np.broadcast_to(values, mask.shape)).view(np.uint8).reshape(-1, size)
        self.data[mask, offset : offset + size] = raw[mask]


class Frame(Struct):
    """One activation of a function over a batch."""

    batch: Batch
    registers: dict[str, Array]
    parameters: dict[str, ParameterSpace]
    local: Arena
    local_offsets: Mapping[str, int]
    carry: Array = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def slots(self) -> int:
        """Lanes of the batch."""
        return self.batch.slots
