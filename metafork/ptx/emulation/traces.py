"""Memory traces: which earlier loads still hold what memory holds (PTXASW section 4.3).

A trace keeps the global loads of one path that no later write can have changed.  It is indexed by the symbolic part of
the address, so that finding the loads whose address differs by a constant takes no search.  A store ends every load
that it may overlap, in its own thread or in another lane of the warp, unless the addresses are proved different;
what orders memory (barriers, fences, atomics, volatile accesses, unknown calls and opcodes) ends every load and starts
a new *epoch*, the version of memory that uninterpreted loads are functions of.  A read-only load (``.nc``) that ended
still holds what another read-only load of its address may give, and serves no other kind: that nothing writes such
memory is believed of a load that says so, and of no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from metafork.ptx.emulation.borders import Check, Form
from metafork.ptx.emulation.terms import Monomial, Poly, Terms, signed

LANES = 32
Shape: TypeAlias = tuple[tuple[Monomial, int], ...]


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """A load executed on this path: its position and 64-bit address.

    ``kept`` says of each of its elements, of ``part`` bytes, whether a register takes it (a vector may drop some).
    ``read_only`` is for ``ld.global.nc``; ``ended`` for one of these that memory may since differ from.  ``guard`` is
    the predicate of one that not every lane executed.  ``forms`` are what the address is in lanes away from borders.
    """

    position: int
    address: Poly
    part: int
    kept: tuple[bool, ...]
    read_only: bool
    guard: Poly | None = None
    ended: bool = False
    forms: tuple[Form, ...] = field(default=(), compare=False)

    @property
    def size(self) -> int:
        """The bytes of the whole access."""
        return self.part * len(self.kept)


class Source(NamedTuple):
    """An earlier load whose elements from ``element`` on lie at an address; in lanes that ``checks`` all let pass."""

    record: LoadRecord
    element: int
    checks: frozenset[Check]

    def serves(self, other: LoadRecord) -> bool:
        """Tell whether a later load of the address may take these elements."""
        kept = self.record.kept[self.element : self.element + len(other.kept)]
        whole = len(kept) == len(other.kept) and all(kept) and all(other.kept)
        return whole and self.record.part == other.part and (other.read_only or not self.record.ended)


class Match(NamedTuple):
    """How a load finds its value in an earlier one: in the lane N = ``lanes`` further, from ``element`` on.

    It does so in lanes that the checks of ``own`` let pass, from lanes that those of ``asked`` do.
    """

    lanes: int
    element: int = 0
    own: frozenset[Check] = frozenset()
    asked: frozenset[Check] = frozenset()


class Store(Struct, frozen=True):
    """A store: its 64-bit address and size in bytes."""

    address: Poly
    size: int


class Trace:
    """The loads of one path that are still valid; mutable, owned by one emulator state."""

    def __init__(self) -> None:
        self._records: dict[int, LoadRecord] = {}
        self._index: dict[Shape, dict[int, tuple[Source, ...]]] = {}
        self._shared = False

    def copy(self) -> Trace:
        """Return an independent copy; what both hold is copied when one of them changes."""
        other = Trace()
        other._records, other._index = self._records, self._index
        self._shared = other._shared = True
        return other

    def __getitem__(self, position: int) -> LoadRecord:
        return self._records[position]

    def add(self, record: LoadRecord) -> None:
        """Append a load."""
        if self._shared:
            self._records, self._index, self._shared = dict(self._records), dict(self._index), False
        self._records[record.position] = record
        for address, checks in ((record.address, frozenset[Check]()), *record.forms):
            row = dict(self._index.get(address.terms, {}))
            for element in range(len(record.kept)):
                at = (address.constant + element * record.part) % (1 << 64)
                row[at] = (*row.get(at, ()), Source(record, element, checks))
            self._index[address.terms] = row

    def _change(self, change: Callable[[LoadRecord], LoadRecord | None]) -> None:
        records = self._records.values()
        changed = [change(record) for record in records]
        if any(new is not old for new, old in zip(changed, records, strict=True)):
            self._records, self._index, self._shared = {}, {}, False
            for record in changed:
                if record is not None:
                    self.add(record)

    def at(self, address: Poly) -> tuple[Source, ...]:
        """Return the elements whose address is this polynomial, away from borders at least."""
        return self._index.get(address.terms, {}).get(address.constant, ())

    def order(self, *, new_grid: bool = False) -> None:
        """End every load; with ``new_grid`` read-only ones serve read-only ones no more."""
        self._change(lambda record: None if new_grid else _ended(record))

    def store(self, store: Store, may_overlap: Callable[[Store, LoadRecord], bool]) -> None:
        """End every load that the store may have overwritten."""
        self._change(lambda record: _ended(record) if not record.ended and may_overlap(store, record) else record)

    def intersect(self, other: Trace) -> None:
        """Keep the loads that are valid on another path too, with the same address; one that ended there has ended."""
        if self._records is other._records:
            return

        def weaker(record: LoadRecord) -> LoadRecord | None:
            theirs = other._records.get(record.position)
            if theirs == record:
                same = tuple(form for form in record.forms if form in theirs.forms)
                return record if same == record.forms else replace(record, forms=same)
            return _ended(record) if theirs is not None and _ended(theirs) == _ended(record) else None

        self._change(weaker)


def _ended(record: LoadRecord) -> LoadRecord | None:
    """Return what remains of a load that memory may have changed under, ``None`` for nothing."""
    if record.ended:
        return record
    return replace(record, ended=True) if record.read_only else None


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


def matching_lanes(terms: Terms, trace: Trace, address: Poly, reach: int) -> Iterator[tuple[Source, int]]:
    """Yield the elements A of valid loads and the N, |N| ≤ reach, with A(%tid.x + N) = address(%tid.x), nearest first.

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
            for source in trace.at(wanted):
                yield source, lanes
