"""Byte-addressed memory for NumPy lanes: global allocations at 64-bit addresses, and per-owner arenas.

Global memory is a set of allocations with gaps between them; an access outside of all of them, or not aligned to its
size, is an error.  Shared, local and parameter memory are arenas: one row of bytes for each block or thread.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
"""The NumPy type of raw values of each size in bytes."""

GAP = 4096
"""Bytes left free behind an allocation, so that overruns are found."""


class AccessError(Exception):
    """An access outside of memory or misaligned; the machine adds the instruction's place.

    Attributes:
        address: the first offending address.
        size: bytes accessed.
    """

    def __init__(self, what: str, address: int, size: int) -> None:
        super().__init__(f"{what} of {size} bytes at address {address:#x}")
        self.address = address
        self.size = size


class GlobalMemory:
    """The device's global memory, shared by launches; addresses are plain integers."""

    def __init__(self, base: int = 0x7_0000_0000) -> None:
        """Start empty; ``base`` is the address of the first allocation that asks for none."""
        self._next = base
        self._starts: Array = np.zeros(0, np.uint64)
        self._buffers: list[Array] = []
        self._sizes: list[int] = []
        self.symbols: dict[str, int] = {}

    def allocate(self, size: int, *, address: int | None = None, alignment: int = 256) -> int:
        """Allocate ``size`` zeroed bytes and return their address.

        Raises:
            ValueError: the requested address range is taken.
        """
        if address is None:
            address = -(-self._next // alignment) * alignment
            self._next = address + size + GAP
        for start, known in zip(self._starts.tolist(), self._sizes, strict=True):
            if address < start + known and start < address + size:
                raise ValueError(f"{address:#x} is already allocated")
        index = int(np.searchsorted(self._starts, np.uint64(address)))
        self._starts = np.insert(self._starts, index, np.uint64(address))
        self._buffers.insert(index, np.zeros(-(-size // 16) * 16, np.uint8))
        self._sizes.insert(index, size)
        return address

    def upload(self, values: Array, *, address: int | None = None) -> int:
        """Allocate room for an array, copy it there and return its address."""
        data = np.ascontiguousarray(values)
        at = self.allocate(data.nbytes, address=address)
        self.write(at, data)
        return at

    def write(self, address: int, values: Array) -> None:
        """Copy an array's bytes to an address.

        Raises:
            AccessError: the range is not within one allocation.
        """
        raw = np.ascontiguousarray(values).view(np.uint8).ravel()
        index, offset = self._locate(address, raw.size)
        self._buffers[index][offset : offset + raw.size] = raw

    def read(self, address: int, count: int, dtype: npt.DTypeLike) -> Array:
        """Return a copy of ``count`` elements at an address.

        Raises:
            AccessError: the range is not within one allocation.
        """
        kind = np.dtype(dtype)
        index, offset = self._locate(address, count * kind.itemsize)
        return self._buffers[index][offset : offset + count * kind.itemsize].copy().view(kind)

    def snapshot(self) -> dict[int, bytes]:
        """Return the bytes of every allocation, by address, for comparing two runs bit for bit."""
        return {
            int(start): buffer[:size].tobytes()
            for start, buffer, size in zip(self._starts, self._buffers, self._sizes, strict=True)
        }

    def copy(self) -> GlobalMemory:
        """Return an independent copy with the same addresses."""
        other = GlobalMemory(self._next)
        other._starts = self._starts.copy()
        other._buffers = [buffer.copy() for buffer in self._buffers]
        other._sizes = list(self._sizes)
        other.symbols = dict(self.symbols)
        return other

    def _locate(self, address: int, size: int) -> tuple[int, int]:
        index = int(np.searchsorted(self._starts, np.uint64(address), side="right")) - 1
        offset = address - int(self._starts[index]) if index >= 0 else 0
        if index < 0 or offset + size > self._sizes[index]:
            raise AccessError("access outside of global memory", address, size)
        return index, offset

    def _split(self, addresses: Array, size: int) -> list[tuple[Array, Array, Any]]:
        """Return (raw view, element indices, which lanes) for each allocation touched."""
        misaligned = addresses % np.uint64(size) != 0
        if misaligned.any():
            raise AccessError("misaligned access", int(addresses[misaligned][0]), size)
        owners = np.searchsorted(self._starts, addresses, side="right") - 1
        parts: list[tuple[Array, Array, Any]] = []
        groups = [int(owners[0])] if (owners == owners[0]).all() else np.unique(owners).tolist()
        for owner in groups:
            which = slice(None) if len(groups) == 1 else owners == owner
            inside = addresses[which]
            if owner < 0:
                raise AccessError("access outside of global memory", int(inside[0]), size)
            offsets = inside - self._starts[owner]
            wrong = offsets + np.uint64(size) > np.uint64(self._sizes[owner])
            if wrong.any():
                raise AccessError("access outside of global memory", int(inside[wrong][0]), size)
            view = self._buffers[owner].view(UNSIGNED[size])
            parts.append((view, (offsets // np.uint64(size)).astype(np.int64), which))
        return parts

    def gather(self, addresses: Array, size: int) -> Array:
        """Return the raw values of ``size`` bytes at each address.

        Raises:
            AccessError: an address is misaligned or outside of memory.
        """
        values = np.zeros(addresses.shape, UNSIGNED[size])
        if addresses.size:
            for view, indices, which in self._split(addresses, size):
                values[which] = view[indices]
        return values

    def scatter(self, addresses: Array, values: Array) -> None:
        """Store raw values; of several to one address the last lane's stays.

        Raises:
            AccessError: an address is misaligned or outside of memory.
        """
        if addresses.size:
            for view, indices, which in self._split(addresses, values.dtype.itemsize):
                view[indices] = values[which]


class Arena:
    """Memory of one kind with a row of ``size`` bytes for each owner (a block or a thread)."""

    def __init__(self, what: str, owners: int, size: int) -> None:
        self.what = what
        self.size = size
        self._row = max(-(-size // 16) * 16, 16)
        self._bytes = np.zeros(owners * self._row, np.uint8)

    def _indices(self, owners: Array, addresses: Array, size: int) -> Array:
        wrong = (addresses % np.uint64(size) != 0) | (addresses > np.uint64(max(self.size - size, 0)))
        if self.size < size or wrong.any():
            address = int(addresses[wrong][0]) if wrong.any() else int(addresses[0])
            raise AccessError(f"misaligned access or access outside of {self.what} memory", address, size)
        return (owners * self._row + addresses.astype(np.int64)) // size

    def gather(self, owners: Array, addresses: Array, size: int) -> Array:
        """Return raw values; ``owners`` selects the row of each lane.

        Raises:
            AccessError: an address is misaligned or beyond the row.
        """
        if not addresses.size:
            return np.zeros(0, UNSIGNED[size])
        result: Array = self._bytes.view(UNSIGNED[size])[self._indices(owners, addresses, size)]
        return result

    def scatter(self, owners: Array, addresses: Array, values: Array) -> None:
        """Store raw values.

        Raises:
            AccessError: an address is misaligned or beyond the row.
        """
        if addresses.size:
            size = values.dtype.itemsize
            self._bytes.view(UNSIGNED[size])[self._indices(owners, addresses, size)] = values
