"""caching: which arrays go through shared memory, and taking them out again (DESIGN section 5).

``accept --> refuse``::

    meta_schedule cache(a, c) { ... }   -->   meta_schedule cache() { ... }

The accept side of the counter keeps the arrays; the strategy, on the refuse side, takes all of them out at once.
Without a ``cache`` clause ``with_cached_arrays`` decides beforehand, by reuse between threads and by coalescing.

What a window is worth.  A copy costs a load, a store and a barrier, and each access an index.  It pays where accesses
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
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most, less_than
from metafork.algebra.prover import Prover
from metafork.algebra.radix import is_mixed_radix
from metafork.algebra.ranges import bounds
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.analysis.delinearization import coordinates
from metafork.analysis.memory.block_memory import BlockMemory, HeldWindow, LeftOut, UnknownSizeError, block_memory
from metafork.analysis.memory.block_shape import phases
from metafork.analysis.memory.flat_rows import with_rows
from metafork.analysis.memory.private_windows import left_in_global_memory, thread_renaming
from metafork.analysis.memory.window_store import Store
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.analysis.values.scope import Scope
from metafork.ir.messages.source import NOWHERE, Span
from metafork.ir.program import Array, BlockArray, ParameterKind, Program, Version, walk_statements
from metafork.strategies.hints import bounded_loop_hints, chosen_index_hint
from metafork.strategies.strategy import Applied, Effect, NotApplied, Remark, Sign, Strategy


class Caching(Strategy, frozen=True):
    """Take every cached array out of shared memory.

    ``meta_schedule cache(a) {...}  -->  meta_schedule cache() {...}``.  Legal always: the kernel then reads and writes
    global memory where the program says so.  Arrays declared at block level stay: they have no other home.
    """

    name: str = "caching"
    improves: frozenset[str] = frozenset({"shared_memory", "occupancy"})
    by_choice: ClassVar[bool] = True
    sign: ClassVar[Sign] = Sign("4b")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version without cached arrays."""
        cached = version.program.mapping.cached
        if not cached:
            return NotApplied("no array goes through shared memory")
        layouts = tuple(pair for pair in version.program.mapping.layouts if pair[0] not in cached)
        program = version.program.mapped(cached=(), layouts=layouts)
        note = f"took {', '.join(cached)} out of shared memory"
        effect = Effect(without_shared_memory(program, cached), of_memory=True, while_empty=True)
        return Applied(replace(version, program=program), note, effect)


STRATEGY = Caching()


def to_be_tried(program: Program, strategies: Sequence[Strategy]) -> list[Strategy]:
    """Return the strategies that the program, as it was read, leaves to be tried: a cache clause decides alone."""
    return [strategy for strategy in strategies if not (program.mapping.decided and strategy.caches)]


def without_shared_memory(program: Program, taken_out: Sequence[str]) -> str:
    """Name a program whose cached arrays were taken out: arrays of the block may be left in shared memory."""
    if any(isinstance(stmt, BlockArray) for stmt in walk_statements(program.body)):
        return f"{', '.join(taken_out)} not in shared memory"
    return "no shared memory"


class CachingChoice(Struct, frozen=True):
    """The program with its cached arrays chosen, and a remark on each array that says why."""

    program: Program
    remarks: tuple[Remark, ...]

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """The remarks as (array, sentence) pairs."""
        return tuple((remark.subject, _sentence(remark)) for remark in self.remarks)


def _sentence(remark: Remark) -> str:
    if remark.topic == "registers":
        return f"kept in registers: {remark.reason}"
    return f"cached: {remark.reason}" if remark.taken else f"not cached: {remark.reason}"


def with_cached_arrays(program: Program, analyses: Analyses | None = None) -> CachingChoice:
    """Decide which arrays go through shared memory at the start of the case discussion.

    A ``cache`` clause decides by itself.  Without one, an array is cached when threads share its elements (an index
    does not tell neighbours apart, or references of neighbours overlap), or when neighbours in x touch elements that
    are not neighbours in memory.  A window that grows with the data is not taken up unless the clause asks for it.
    """
    analyses = analyses or Analyses()
    program = with_rows(program, analyses)
    asked = program.mapping.cached if program.mapping.decided else ()
    kept: tuple[str, ...] = ()
    try:
        left = {one.array: one for one in block_memory(program, analyses).left_out} if asked else {}
        kept = tuple(name for name in asked if name not in left)
        private = _private(program.mapped(cached=kept), analyses)
        remarks = [
            _asked(program, array, left.get(array.name), analyses)
            if array.name in asked
            else Remark("shared memory", array.name, False, _VIEW, array.span)
            if array.whole
            else _alone(array, private[array.name])
            if array.name in private
            else _judged(program, array, analyses)
            for array in program.arrays
        ]
    except UnknownSizeError as reason:
        unknown = Remark("shared memory", "shared memory", False, str(reason), program.span)
        return CachingChoice(program.mapped(cached=(), decided=True), (unknown,))
    if program.mapping.decided:
        remarks = [_left_to_the_clause(remark, asked) for remark in remarks]
    else:
        kept = tuple(remark.subject for remark in remarks if remark.topic == "shared memory" and remark.taken)
    remarks = [_with_clause(remark, kept) for remark in remarks]
    return CachingChoice(program.mapped(cached=kept, decided=True), tuple(remarks))


_VIEW = "it is the part of one type of structures of several, whose copy would hold parts of others"


def _private(program: Program, analyses: Analyses) -> dict[str, Reference]:
    """Return the arrays of which a thread keeps its elements in registers, each with an access to it."""
    return {
        window.array.name: window.references[0]
        for plan in block_memory(program, analyses).paths
        for window in plan.private
    }


def _alone(array: Array, access: Reference) -> Remark:
    reason = "each thread is alone with its elements"
    return Remark("registers", array.name, True, reason, array.span, access.element.span)


def _asked(program: Program, array: Array, left: LeftOut | None, analyses: Analyses) -> Remark:
    """Remark on an array that the clause names."""
    if left is None:
        span = _first_access(program, array, analyses)
        return Remark("shared memory", array.name, True, "the cache clause asks for it", array.span, span)
    return _refused(program, array, left, analyses)


def _first_access(program: Program, array: Array, analyses: Analyses) -> Span:
    found = analyses.references(program, analyses.facts(program))
    return next((access.element.span for access in found if access.array == array.name), NOWHERE)


def _refused(program: Program, array: Array, left: LeftOut, analyses: Analyses) -> Remark:
    fault = NOWHERE if left.access is None else left.access.element.span
    bounded = bounded_loop_hints(program, left.loop) if left.loop else ()
    hint = next((text for text, written in bounded if _taken(written, array, analyses)), "")
    if left.access is not None and not left.access.writes and (left.access.wrapped or None in left.access.indices):
        found = chosen_index_hint(program, left.access)
        hint = found[0] if found is not None and _taken(found[1], array, analyses) else ""
    return Remark("shared memory", array.name, False, left.reason, array.span, fault, hint)


def _taken(program: Program, array: Array, analyses: Analyses) -> bool:
    """Say whether an array goes through shared memory in a program: by its clause, or because that is worth it."""
    if block_memory(program.mapped(cached=(array.name,)), analyses).left_out:
        return False
    if array.name in program.mapping.cached:
        return True
    return not program.mapping.decided and _judged(program, array, analyses).taken


def _judged(program: Program, array: Array, analyses: Analyses) -> Remark:
    """Decide on one array that is in no clause; the hint of one that the clause would get in is its name alone."""
    memory = block_memory(program.mapped(cached=(array.name,)), analyses)
    if memory.left_out:
        return _refused(program, array, memory.left_out[0], analyses)
    worth = _worth(memory, Growth.of(program, analyses), analyses)
    if isinstance(worth, _Served):
        span = worth.access.element.span
        return Remark("shared memory", array.name, False, worth.reason, array.span, span)
    if worth is None:
        why = "neighbours share no element of it, and their accesses coalesce"
        plans = block_memory(program, analyses).paths
        prover = analyses.prover(memory.facts.constraints, memory.facts.derived)
        left = [left_in_global_memory(plan.program, prover, plan.references).get(array.name) for plan in plans]
        why = "; and ".join([why, *dict.fromkeys(reason for reason in left if reason)])
        fault = _first_access(program, array, analyses)
        return Remark("shared memory", array.name, False, why, array.span, fault)
    why, access, grows = worth
    if grows:
        why = "a block's window of it grows with the data"
    hint = array.name if grows else ""
    return Remark("shared memory", array.name, not grows, why, array.span, access.element.span, hint)


def _left_to_the_clause(remark: Remark, asked: Sequence[str]) -> Remark:
    """Remark on an array where there is a clause."""
    if remark.subject in asked or remark.topic == "registers":
        return remark
    if not remark.taken:
        hint = remark.hint if remark.hint == remark.subject else ""
        return replace(remark, reason=f"the cache clause leaves it out, and {remark.reason}", hint=hint)
    return replace(remark, taken=False, reason=f"the cache clause leaves it out, but {remark.reason}",
                   hint=remark.subject)  # fmt: skip


def _with_clause(remark: Remark, kept: Sequence[str]) -> Remark:
    """Write the clause out where a hint is the name of the array that it would add."""
    if remark.hint != remark.subject:
        return remark
    return replace(remark, hint=f"add cache({', '.join((*kept, remark.subject))})")


class _Served(Struct, frozen=True):
    """Why an array whose elements threads share has no use for shared memory, and by which access."""

    reason: str
    access: Reference


def _worth(memory: BlockMemory, growth: Growth, analyses: Analyses) -> tuple[str, Reference, bool] | _Served | None:
    """Say why the windows of one array are worth their memory, by which access, and whether one is too large."""
    prover = analyses.prover(memory.facts.constraints, memory.facts.derived)
    found: tuple[str, Reference] | None = None
    served: _Served | None = None
    for plan in memory.paths:
        once, often = Polynomial(), Polynomial()
        for held in plan.windows:
            reasons = [why for why in (_shared_by_threads(held, prover), _uncoalesced(held)) if why is not None]
            why = next((one for one in reasons if not isinstance(one, _Served)), None)
            if why is not None and _too_wide(held):
                reasons = [_Served(f"{why[0]}, but the box around what they touch has far more elements", why[1])]
                why = None
            if why is None:
                served = served or next((one for one in reasons if isinstance(one, _Served)), None)
                once += held.words if not reasons and not held.window.writes and _several(held) else ZERO
                continue
            often += held.words
            if growth.grows(held.words, (*memory.facts.derived, *memory.derived)):
                return (*why, True)
            found = found or why
        if found is not None and once != ZERO and prover.proves(at_most(often, once)):
            return _Served(f"{found[0]}, but most of what a block would copy is read by one thread once", found[1])
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


def _shared_by_threads(held: HeldWindow, prover: Prover) -> tuple[str, Reference] | _Served | None:
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
        return _Served(f"{why}, but it is one element at a time, which all of them load at once", access)
    if not (often or stays):
        return _Served(f"{why}, but each thread only some of them, which the first-level cache serves", access)
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
    theirs = [
        replace(
            loop,
            var=str(primed.get(loop.var, loop.var)),
            trips=None if loop.trips is None else loop.trips.substitute(primed),
            inside=tuple(constraint.substitute(primed) for constraint in loop.inside),
        )
        for loop in other.loops
    ]
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


def _uncoalesced(held: HeldWindow) -> tuple[str, Reference] | _Served | None:
    """Say which access strides through memory, if the copy of the window would not; or that it would too."""
    if held.store is Store.THROUGH:
        return None
    served: _Served | None = None
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
            return _Served(f"{why}, and neither would the copy of a column", reference)
        if apart is None or NEAR < apart <= _read_in_a_row(held):
            return why, reference
        rest = f"read {_read_in_a_row(held)} of {apart} elements, all of which a copy would load"
        if apart <= NEAR:
            rest = "take every second element, which the first-level cache serves"
        served = _Served(f"{why}, but {rest}", reference)
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
