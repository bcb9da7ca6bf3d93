"""Memory traces: which earlier loads still hold what memory holds (PTXASW section 4.3).

A trace keeps the global loads of one path that no later write can have changed.  It is indexed by the symbolic part of
the address, so that finding the loads whose address differs by a constant takes no search.  A store ends every load
that it may overlap, in its own thread or in another lane of the warp, unless the addresses are proved different;
what orders memory (barriers, fences, atomics, volatile accesses, unknown calls and opcodes) ends every load that is not
read-only (``.nc``) and starts a new *epoch*, the version of memory that uninterpreted loads are functions of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from metafork.ptx.emulation.terms import Monomial, Poly, Terms, signed

LANES = 32
Shape: TypeAlias = tuple[tuple[Monomial, int], ...]


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """A load executed on this path: its position, 64-bit address, size in bytes; ``read_only`` for ``ld.global.nc``."""

    position: int
    address: Poly
    size: int
    read_only: bool


@dataclass(frozen=True, slots=True)
class Store:
    """A store: its 64-bit address and size in bytes."""

    address: Poly
    size: int


class Trace:
    """The loads of one path that are still valid; mutable, owned by one emulator state."""

    def __init__(self) -> None:
        self._records: dict[int, LoadRecord] = {}
        self._index: dict[Shape, dict[int, tuple[LoadRecord, ...]]] = {}
        self._shared = False

    def copy(self) -> Trace:
        """Return an independent copy; what both hold is copied when one of them changes."""
        other = Trace()
        other._records, other._index = self._records, self._index
        self._shared = other._shared = True
        return other

    def __iter__(self) -> Iterator[LoadRecord]:
        return iter(self._records.values())

    def add(self, record: LoadRecord) -> None:
        """Append a load."""
        if self._shared:
            self._records, self._index, self._shared = dict(self._records), dict(self._index), False
        self._records[record.position] = record
        row = dict(self._index.get(record.address.terms, {}))
        row[record.address.constant] = (*row.get(record.address.constant, ()), record)
        self._index[record.address.terms] = row

    def _keep(self, wanted: Callable[[LoadRecord], bool]) -> None:
        kept = [record for record in self._records.values() if wanted(record)]
        if len(kept) != len(self._records):
            self._records, self._index, self._shared = {}, {}, False
            for record in kept:
                self.add(record)

    def at(self, address: Poly) -> tuple[LoadRecord, ...]:
        """Return the loads whose address is this polynomial."""
        return self._index.get(address.terms, {}).get(address.constant, ())

    def order(self, *, new_grid: bool = False) -> None:
        """End every load that is not read-only; with ``new_grid`` those too."""
        self._keep(lambda record: record.read_only and not new_grid)

    def store(self, store: Store, may_overlap: Callable[[Store, LoadRecord], bool]) -> None:
        """End every load that the store may have overwritten."""
        self._keep(lambda record: record.read_only or not may_overlap(store, record))

    def intersect(self, other: Trace) -> None:
        """Keep the loads that are valid on another path too, with the same address."""
        if self._records is not other._records:
            self._keep(lambda record: other._records.get(record.position) == record)


def stride(terms: Terms, address: Poly) -> int | None:
    """Return the bytes between the addresses of neighbouring lanes of a row, ``None`` where they are no constant."""
    difference = terms.subtract(terms.shift(address, 1), address)
    return signed(difference.constant, 64) if difference.is_constant else None


def overlap_in_lanes(terms: Terms, store: Store, record: LoadRecord) -> bool | None:
    """Tell by normal forms whether a store may overlap a load in the same thread or another lane of the row.

    ``None`` where the forms differ by more than a constant, and the question is open.
    """
    difference = terms.subtract(store.address, record.address)
    if not difference.is_constant:
        return None
    step = stride(terms, store.address)
    if step is None:
        return None
    distance = signed(difference.constant, 64)
    return any(-store.size < distance + step * lane < record.size for lane in range(1 - LANES, LANES))


def matching_lanes(terms: Terms, trace: Trace, address: Poly, reach: int) -> Iterator[tuple[LoadRecord, int]]:
    """Yield the valid loads A and the lanes N, |N| ≤ reach, with A(%tid.x + N) = address(%tid.x), nearest first.

    Equality is that of normal forms, so every pair is proved (section 5.1).
    """
    if not terms.comparable(address):
        reach = 0
    step = stride(terms, address) if reach else 0
    for distance in range(reach + 1):
        for lanes in (distance, -distance) if distance else (0,):
            if step == 0 and lanes:
                return
            if step is None:
                wanted = terms.shift(address, -lanes)
            else:
                wanted = Poly(64, (address.constant - step * lanes) % (1 << 64), address.terms)
            for record in trace.at(wanted):
                yield record, lanes
