"""What a window in shared memory is worth.

A copy costs a load, a store and a barrier, and each access an index.  It pays where accesses
that do not coalesce become ones that do, and where a thread's loop reads elements that other threads read too (the
operands of a product), or a loop around reads them again.  It does not where each thread reads only some of the
elements that others read (a stencil, the update of an elimination), or one element that all read: the first-level cache
serves these; nor where a box has far more elements than are read (a wavefront's).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import gcd, inf

from msgspec import Struct

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most, less_than
from metafork.algebra.prover import Prover
from metafork.algebra.radix import is_mixed_radix
from metafork.algebra.ranges import bounds
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.analysis.delinearization import coordinates
from metafork.analysis.memory.block_memory import BlockMemory, HeldWindow
from metafork.analysis.memory.private_windows import thread_renaming
from metafork.analysis.memory.window_store import Store
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.analysis.values.scope import Scope
from metafork.ir.marks import phases
from metafork.ir.program import ParameterKind, Program


class Served(Struct, frozen=True):
    """Why an array whose elements threads share has no use for shared memory, and by which access."""

    reason: str
    access: Reference


def worth_of(memory: BlockMemory, growth: Growth, analyses: Analyses) -> tuple[str, Reference, bool] | Served | None:
    """Say why the windows of one array are worth their memory, by which access, and whether one is too large."""
    prover = analyses.prover(memory.facts.constraints, memory.facts.derived)
    found: tuple[str, Reference] | None = None
    served: Served | None = None
    for plan in memory.paths:
        once, often = Polynomial(), Polynomial()
        for held in plan.windows:
            reasons = [why for why in (_shared_by_threads(held, prover), _uncoalesced(held)) if why is not None]
            why = next((one for one in reasons if not isinstance(one, Served)), None)
            if why is not None and _too_wide(held):
                reasons = [Served(f"{why[0]}, but the box around what they touch has far more elements", why[1])]
                why = None
            if why is None:
                served = served or next((one for one in reasons if isinstance(one, Served)), None)
                once += held.words if not reasons and not held.window.writes and _several(held) else ZERO
                continue
            often += held.words
            if growth.grows(held.words, (*memory.facts.derived, *memory.derived)):
                return (*why, True)
            found = found or why
        if found is not None and once != ZERO and not prover.proves(at_most(once, often)):
            return Served(f"{found[0]}, but much of what a block would copy is read by one thread once", found[1])
    return served if found is None else (*found, False)


def _several(held: HeldWindow) -> bool:
    """Say whether a thread reads several elements of a window, in a loop of its own."""
    window = held.window
    indices = [(one, index) for one in window.references for index in coordinates(one, window.factors)]
    return any(
        loop.kind is LoopKind.SERIAL and loop.var in index.symbols for one, index in indices for loop in one.loops
    )


class Growth(Struct, frozen=True):
    """Which sizes grow with the data.

    ``data`` are the parameters that size an array, ``near`` the symbols that a block keeps small all the same: those of
    its own extents, of which a machine allows a thousand threads, and of loops that slide along the index of a thread
    (a filter), where the grid does not depend on them.
    """

    data: frozenset[str]
    near: frozenset[str]

    @staticmethod
    def of(program: Program, analyses: Analyses) -> Growth:
        """Return what is known of the sizes of a program."""
        facts = analyses.facts(program)
        scope = Scope.of(facts)
        data = frozenset(p.name for p in program.parameters if p.kind is ParameterKind.DATA)
        own = frozenset(
            name
            for phase in phases(program)
            for loop in phase.threads
            for name in getattr(scope.polynomial(loop.extent), "symbols", ())
        )
        slides = {
            name
            for reference in analyses.references(program, facts)
            for index in reference.indices
            if index is not None
            for loop in _sliding(reference, index)
            for name in getattr(loop.trips, "symbols", ())
        }
        grid = {n for loop in program.grid for n in getattr(scope.polynomial(loop.extent), "symbols", ())}
        return Growth(data, own | (slides - _reached(grid, scope.derived, own)))

    def grows(self, size: Polynomial, derived: Sequence[DerivedSymbol]) -> bool:
        """Say whether a size depends on the data, by itself or through a derived symbol."""
        return bool(_reached(size.symbols, derived, self.near) & self.data - self.near)


def _reached(symbols: Iterable[str], derived: Sequence[DerivedSymbol], near: Collection[str]) -> set[str]:
    """Return symbols and those that they are defined by, but for what ``near`` ones are defined by."""
    reached = set(symbols)
    for symbol in reversed(derived):
        if symbol.name in reached and symbol.name not in near:
            reached |= {name for operand in symbol.operands for name in operand.symbols}
    return reached


def _sliding(reference: Reference, index: Polynomial) -> Iterator[LoopRange]:
    """Yield the serial loops whose iterations shift the elements of neighbouring threads: ``x[i*B + u + k]``."""
    steps = [index.coefficient(loop.var) for loop in _threads(reference)]
    for loop in reference.loops:
        step = index.coefficient(loop.var)
        if loop.kind is LoopKind.SERIAL and step and any(other in (step, -step) for other in steps):
            yield loop


def _threads(reference: Reference) -> list[LoopRange]:
    return [loop for loop in reference.loops if loop.kind is LoopKind.THREAD]


def _shared_by_threads(held: HeldWindow, prover: Prover) -> tuple[str, Reference] | Served | None:
    """Say how several threads touch one element, and by which access, if they do; or why that is cheap as it is."""
    window = held.window
    places = {
        tuple(
            index.substitute(thread_renaming(reference)) for index in coordinates(reference, window.factors)
        ): reference
        for reference in window.references
        if reference.reads
    }
    shared: list[tuple[str, Reference, bool]] = []
    for reference in window.references:
        if not reference.reads:
            continue
        own = coordinates(reference, window.factors)
        occurring = {name for index in own for name in index.symbols}
        idle = [loop for loop in _threads(reference) if loop.var not in occurring and loop.trips != ONE]
        if idle and reference.phase is not None:
            often = any(_many_rounds(loop) for loop in reference.loops if loop.var in occurring)
            shared.append((f"threads that differ in {idle[0].var} read the same elements", reference, often))
        overlapping = _overlapping(reference, held, prover)
        if overlapping is not None:
            often = _many_rounds(overlapping)
            shared.append(("iterations of neighbouring threads overlap", reference, often))
    if any(
        _may_meet(one, other) and not _apart(mine, theirs, window.factors, prover)
        for (one, mine), (other, theirs) in combinations(places.items(), 2)
    ):
        shared.append(("neighbouring threads read common elements", window.references[0], False))
    if not shared:
        return None
    why, access, often = next((one for one in shared if one[2]), shared[0])
    stays = any(
        _many_rounds(loop, LoopKind.BLOCK) and loop.var not in window.level
        for reference in window.references
        for loop in reference.loops
    )
    if window.elements == ONE:
        return Served(f"{why}, but it is one element at a time, which all of them load at once", access)
    if not (often or stays):
        return Served(f"{why}, but each thread only some of them, which the first-level cache serves", access)
    return why, access


def _may_meet(one: Sequence[Polynomial], other: Sequence[Polynomial]) -> bool:
    """Say whether two accesses may come to one element: not where one index is always the greater.

    Nor where no multiple of what they vary by lies between.
    """
    for left, right in zip(one, other, strict=True):
        apart = left - right
        if left.symbols.isdisjoint(right.symbols) and _of_one_sign(apart):
            return False
        if not apart.is_constant:
            continue
        steps = [factor for mono, factor in left.terms().items() if mono]
        if all(factor.denominator == 1 for factor in steps) and apart.constant_value() % (gcd(*map(int, steps)) or 1):
            return False
    return True


def _apart(one: Reference, other: Reference, factors: Sequence[Polynomial], prover: Prover) -> bool:
    """Say whether an index of one access is always the greater, in whatever iterations of the block's threads."""
    inside = (LoopKind.THREAD, LoopKind.SERIAL)
    primed = {loop.var: Polynomial.symbol(f"{loop.var}'") for loop in other.loops if loop.kind in inside}
    theirs = [loop.renamed(primed) for loop in other.loops]
    loops = tuple(dict.fromkeys((*one.loops, *theirs)))
    pairs = zip(coordinates(one, factors), coordinates(other, factors), strict=True)
    differences = [left - right.substitute(primed) for left, right in pairs]
    return any(
        prover.proves(less_than(most, 0))
        for difference in differences
        for way in (difference, -difference)
        for most in bounds(way, loops, prover, largest=True)
    )


def _of_one_sign(value: Polynomial) -> bool:
    """Say whether a polynomial in what is never negative is always above 0, or always below."""
    coefficients = value.terms().values()
    return bool(value.terms().get((), 0)) and (all(c > 0 for c in coefficients) or all(c < 0 for c in coefficients))


SOME = 8
"""Fewer rounds of a loop, by a constant, are only some."""


def _many_rounds(loop: LoopRange, kind: LoopKind = LoopKind.SERIAL) -> bool:
    """Say whether a loop is of a kind (a thread's own) and has more than some rounds."""
    trips = loop.trips
    return loop.kind is kind and (trips is None or not trips.is_constant or trips.constant_value() >= SOME)


def _too_wide(held: HeldWindow) -> bool:
    """Say whether a window grows faster with the parameters than the accesses to it (an antidiagonal's box)."""
    window = held.window
    made = max(_times_made(reference, window.level).degree for reference in window.references)
    return window.elements.degree > made


def _times_made(reference: Reference, level: Sequence[str]) -> Polynomial:
    """Return how many times a block makes an access while a window lives; loops of unknown length are left out."""
    product = ONE
    for loop in reference.loops:
        inside = loop.kind in (LoopKind.THREAD, LoopKind.SERIAL) or (
            loop.kind is LoopKind.BLOCK and loop.var not in level
        )
        if inside and loop.trips is not None:
            product = product * loop.trips
    return product


def _overlapping(reference: Reference, held: HeldWindow, prover: Prover) -> LoopRange | None:
    """Return the loop that makes threads step on each other's elements (``a[i + k]``), if one does."""
    for index in coordinates(reference, held.window.factors):
        clamped = [range_ for _, range_ in reference.distances]
        digits = [loop for loop in reference.loops if loop.kind in (LoopKind.THREAD, LoopKind.SERIAL)]
        digits = [loop for loop in digits if loop not in clamped]
        occurring = [loop for loop in digits if loop.var in index.symbols]
        if not any(loop.kind is LoopKind.THREAD for loop in occurring):
            continue
        if not is_mixed_radix(index, occurring, prover):
            alone = [loop for loop in occurring if loop.kind is LoopKind.THREAD]
            for loop in occurring:
                if loop.kind is LoopKind.SERIAL and not is_mixed_radix(index, [*alone, loop], prover):
                    return loop
            return occurring[-1]
    return None


NEAR = 2
"""Elements that lie at most so far apart are loaded without shared memory.

A warp's load touches twice the lines of one that coalesces; a copy takes two passes of shared memory beside it.
"""


def _uncoalesced(held: HeldWindow) -> tuple[str, Reference] | Served | None:
    """Say which access strides through memory, if the copy of the window would not; or that it would too."""
    if held.store is Store.THROUGH:
        return None
    served: Served | None = None
    for reference in held.window.references:
        threads = _threads(reference)
        if not threads:
            continue
        neighbour = threads[-1].var
        own = coordinates(reference, held.window.factors)
        step = own[-1].coefficient(neighbour)
        strides = any(index.coefficient(neighbour) != 0 for index in own[:-1])
        apart = abs(step.constant_value()) if step is not None and step.is_constant and not strides else None
        if (step is None and not strides) or (apart is not None and apart <= 1):
            continue
        why = f"accesses of threads that are neighbours in {neighbour} do not coalesce"
        if held.window.extents[-1] == ONE:
            return Served(f"{why}, and neither would the copy of a column", reference)
        if apart is None or NEAR < apart <= _read_in_a_row(held):
            return why, reference
        rest = f"read {_read_in_a_row(held)} of {apart} elements, all of which a copy would load"
        if apart <= NEAR:
            rest = "take every second element, which the first-level cache serves"
        served = Served(f"{why}, but {rest}", reference)
    return served


def _read_in_a_row(held: HeldWindow) -> Fraction | float:
    """Return how many neighbours of the rows of a window a thread accesses; infinite where loops say how many."""
    places: dict[Polynomial, Fraction | float] = {}
    for reference in held.window.references:
        last = coordinates(reference, held.window.factors)[-1]
        count: Fraction | float = Fraction(1)
        for loop in reference.loops:
            if loop.kind is LoopKind.SERIAL and loop.var in last.symbols:
                known = loop.trips is not None and loop.trips.is_constant
                count = count * loop.trips.constant_value() if known and loop.trips is not None else inf
        places[last] = count
    return sum(places.values())
