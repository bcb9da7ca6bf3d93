"""caching: which arrays go through shared memory, and taking them out again (DESIGN section 5).

``accept --> refuse``::

    meta_schedule cache(a, c) { ... }   -->   meta_schedule cache() { ... }

The accept side of the counter keeps the arrays; the strategy, on the refuse side, takes all of them out at once.
Without a ``cache`` clause ``with_cached_arrays`` decides beforehand, by reuse between threads and by coalescing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from metafork.algebra.polynomial import ONE, Polynomial
from metafork.algebra.prover import Prover
from metafork.algebra.radix import is_mixed_radix
from metafork.analysis.analyses import Analyses
from metafork.analysis.facts import Scope
from metafork.analysis.memory.block_memory import BlockMemory, HeldWindow, UnknownSizeError, block_memory
from metafork.analysis.memory.private_windows import thread_renaming
from metafork.analysis.memory.window_store import Store
from metafork.analysis.memory.windows import coordinates
from metafork.analysis.references import LoopKind, LoopRange, Reference
from metafork.ir.program import ParameterKind, Program, Version
from strategies.strategy import Applied, NotApplied, Sign


@dataclass(frozen=True, slots=True)
class Caching:
    """Take every cached array out of shared memory.

    ``meta_schedule cache(a) {...}  -->  meta_schedule cache() {...}``.  Legal always: the kernel then reads and writes
    global memory where the program says so.  Arrays declared at block level stay: they have no other home.
    """

    name: str = "caching"
    improves: frozenset[str] = frozenset({"shared_memory"})
    on_ir: bool = False
    at_leaf: bool = False
    sign: ClassVar[Sign] = Sign("4b")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version without cached arrays."""
        cached = version.program.mapping.cached
        if not cached:
            return NotApplied("no array goes through shared memory")
        layouts = tuple(pair for pair in version.program.mapping.layouts if pair[0] not in cached)
        program = version.program.mapped(cached=(), layouts=layouts)
        return Applied(replace(version, program=program), f"took {', '.join(cached)} out of shared memory")


STRATEGY = Caching()


@dataclass(frozen=True, slots=True)
class CachingChoice:
    """The program with its cached arrays chosen, and (array, sentence) pairs that say why."""

    program: Program
    reasons: tuple[tuple[str, str], ...]


def with_cached_arrays(program: Program, analyses: Analyses | None = None) -> CachingChoice:
    """Decide which arrays go through shared memory at the start of the case discussion.

    A ``cache`` clause decides by itself.  Without one, an array is cached when threads share its elements (an index
    does not tell neighbours apart, or references of neighbours overlap), or when neighbours in x touch elements that
    are not neighbours in memory.  A window that grows with the data is not taken up unless the clause asks for it.
    """
    analyses = analyses or Analyses()
    if program.mapping.decided:
        left = dict(_left_out(program, analyses))
        kept = tuple(name for name in program.mapping.cached if name not in left)
        asked = tuple((name, "the cache clause asks for it") for name in kept)
        refused = tuple((name, f"not cached: {why}") for name, why in left.items())
        return CachingChoice(program.mapped(cached=kept), asked + refused)
    data = {parameter.name for parameter in program.parameters if parameter.kind is ParameterKind.DATA}
    reasons: dict[str, str] = {}
    cached: list[str] = []
    try:
        private = {
            window.array.name
            for plan in block_memory(program.mapped(cached=()), analyses).paths
            for window in plan.private
        }
    except UnknownSizeError as reason:
        return CachingChoice(program.mapped(cached=(), decided=True), (("shared memory", str(reason)),))
    for array in program.arrays:
        if array.name in private:
            reasons[array.name] = "kept in registers: each thread is alone with its elements"
            continue
        memory = block_memory(program.mapped(cached=(array.name,)), analyses)
        if memory.left_out:
            reasons[array.name] = f"not cached: {memory.left_out[0][1]}"
            continue
        why = _worth(memory, data, analyses)
        if why is None:
            reasons[array.name] = "not cached: neighbours share no element of it, and their accesses coalesce"
        elif why == "":
            reasons[array.name] = "not cached: a block's window of it grows with the data"
        else:
            reasons[array.name] = why
            cached.append(array.name)
    return CachingChoice(program.mapped(cached=tuple(cached), decided=True), tuple(reasons.items()))


def _left_out(program: Program, analyses: Analyses) -> tuple[tuple[str, str], ...]:
    try:
        return block_memory(program, analyses).left_out
    except UnknownSizeError as reason:
        return tuple((name, str(reason)) for name in program.mapping.cached)


def _worth(memory: BlockMemory, data: set[str], analyses: Analyses) -> str | None:
    """Say why the windows of one array are worth their memory: ``None`` if not, ``""`` if they were smaller."""
    prover = analyses.prover(memory.facts.constraints, memory.facts.derived)
    found: str | None = None
    for plan in memory.paths:
        for held in plan.windows:
            why = _shared_by_threads(held, prover) or _uncoalesced(held)
            if why is None:
                continue
            if _grows(held.words, data, Scope.of(memory.facts)):
                return ""
            found = found or why
    return found


def _grows(words: Polynomial, data: set[str], scope: Scope) -> bool:
    """Say whether a size depends on a data parameter, by itself or through a derived symbol."""
    reached = set(words.symbols)
    for symbol in reversed(scope.derived):
        if symbol.name in reached:
            reached |= {name for operand in symbol.operands for name in operand.symbols}
    return bool(reached & data)


def _threads(reference: Reference) -> list[LoopRange]:
    return [loop for loop in reference.loops if loop.kind is LoopKind.THREAD]


def _shared_by_threads(held: HeldWindow, prover: Prover) -> str | None:
    """Say how several threads touch one element, if they do."""
    window = held.window
    places = {
        tuple(index.substitute(thread_renaming(reference)) for index in coordinates(reference, window.factors))
        for reference in window.references
        if reference.reads
    }
    for reference in window.references:
        if not reference.reads:
            continue
        own = coordinates(reference, window.factors)
        occurring = {name for index in own for name in index.symbols}
        idle = [loop for loop in _threads(reference) if loop.var not in occurring and loop.trips != ONE]
        if idle and reference.phase is not None:
            return f"cached: threads that differ in {idle[0].var} read the same elements"
        if _overlapping(reference, held, prover):
            return "cached: iterations of neighbouring threads overlap"
    if len(places) > 1:
        return "cached: neighbouring threads read common elements"
    return None


def _overlapping(reference: Reference, held: HeldWindow, prover: Prover) -> bool:
    """Say whether a serial loop makes threads step on each other's elements (``a[i + k]``)."""
    for index in coordinates(reference, held.window.factors):
        digits = [loop for loop in reference.loops if loop.kind in (LoopKind.THREAD, LoopKind.SERIAL)]
        occurring = [loop for loop in digits if loop.var in index.symbols]
        if not any(loop.kind is LoopKind.THREAD for loop in occurring):
            continue
        if not is_mixed_radix(index, occurring, prover):
            return True
    return False


def _uncoalesced(held: HeldWindow) -> str | None:
    """Say which access strides through memory, if the copy of the window would not."""
    if held.store is Store.THROUGH:
        return None
    for reference in held.window.references:
        threads = _threads(reference)
        if not threads:
            continue
        neighbour = threads[-1].var
        own = coordinates(reference, held.window.factors)
        step = own[-1].coefficient(neighbour)
        strides = any(index.coefficient(neighbour) != 0 for index in own[:-1])
        if strides or (step is not None and step != 0 and step != ONE):
            return f"cached: accesses of threads that are neighbours in {neighbour} do not coalesce"
    return None
