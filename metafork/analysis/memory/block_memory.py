"""What a block keeps close: the plan of its shared memory and of its threads' private windows, path by path.

A *path* is one outcome of the conditions that a whole block takes alike (``metafork.analysis.cfg.source_cfg``).
Shared memory is laid out for each path by itself, from 0; a block needs the maximum over its paths (DESIGN section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import ONE, ZERO, Constraint, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.algebra.symbols import DerivedSymbol
from metafork.analysis.analyses import Analyses
from metafork.analysis.cfg.source_cfg import uniform_paths
from metafork.analysis.memory.private_windows import PrivateWindow, own_windows, private_windows
from metafork.analysis.memory.window_store import Store, WrittenBox, written_boxes
from metafork.analysis.memory.windows import NotCacheableError, Window, array_windows
from metafork.analysis.reference_walk import extent_limits, known_extent
from metafork.analysis.references import Reference
from metafork.analysis.values.conditions import together
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.analysis.values.scope import Facts, Scope
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Array, BlockArray, Expr, Program, walk_statements

if TYPE_CHECKING:
    from metafork.analysis.memory.structures import Structure


class HeldWindow(Struct, frozen=True):
    """A window with its size in words, and how its writes reach global memory: ``boxes`` are what is copied back.

    It has so many buffers in turn as ``stages``, all of which are in ``words``; where it has one, ``one_buffer`` is why
    it has no more, if more were asked for.
    """

    window: Window
    words: Polynomial
    store: Store
    boxes: tuple[WrittenBox, ...] = ()
    stages: int = 1
    one_buffer: str = ""


class PathPlan(Struct, frozen=True):
    """One path: its conditions, its program, and what it holds.

    ``references`` are those of ``program`` in evaluation order; ``block_arrays``, but those in registers, come with
    their sizes in words.
    """

    conditions: tuple[tuple[Expr, bool], ...]
    program: Program
    references: tuple[Reference, ...]
    windows: tuple[HeldWindow, ...]
    private: tuple[PrivateWindow, ...]
    structures: tuple[Structure, ...]
    block_arrays: tuple[tuple[Array, Polynomial], ...]

    @property
    def words(self) -> Polynomial:
        """Words of shared memory that a block needs on this path."""
        total = ZERO
        for held in self.windows:
            total = total + held.words
        for _, words in self.block_arrays:
            total = total + words
        return total


class LeftOut(Struct, frozen=True):
    """An array that was to be cached or transposed and is not: why, and the access at fault where one is.

    ``loop`` names the variable of the loop whose range is not known, where that is why.
    """

    array: str
    reason: str
    access: Reference | None = None
    loop: str = ""


class BlockMemory(Struct, frozen=True):
    """The plan of a program.

    ``words`` is the maximum over paths; ``derived`` are the symbols beyond those of the program's facts that it and the
    windows use; ``left_out`` are the arrays that were to be cached or transposed and are not.
    """

    facts: Facts
    paths: tuple[PathPlan, ...]
    words: Polynomial
    derived: tuple[DerivedSymbol, ...]
    left_out: tuple[LeftOut, ...]


class UnknownSizeError(Exception):
    """The size of an array of the block is no known polynomial; the message names it."""


def block_memory(program: Program, analyses: Analyses | None = None) -> BlockMemory:
    """Return what a block of ``program`` keeps in shared memory and in registers, path by path.

    Raises ``UnknownSizeError`` where an array declared at block level has no polynomial size.
    """
    return (analyses or Analyses()).of(_block_memory, program)


def _block_memory(program: Program, analyses: Analyses) -> BlockMemory:
    facts = analyses.facts(program)
    scope = Scope.of(facts)
    left_out: dict[str, LeftOut] = {}
    plans = [_path(path.conditions, path.program, facts, scope, left_out, analyses) for path in uniform_paths(program)]
    words = largest(analyses.prover(facts.constraints, facts.derived), scope, [plan.words for plan in plans])
    new = tuple(symbol for symbol in scope.derived if symbol not in facts.derived)
    return BlockMemory(facts, tuple(plans), words, new, tuple(left_out.values()))


def largest(prover: Prover, scope: Scope, values: Sequence[Polynomial]) -> Polynomial:
    """Return the maximum of polynomials in parameters: one of them where that is proved, else a derived symbol."""
    kept: list[Polynomial] = []
    for value in dict.fromkeys(values):
        if any(prover.proves(at_most(value, other)) for other in kept):
            continue
        kept = [other for other in kept if not prover.proves(at_most(other, value))] + [value]
    return kept[0] if len(kept) == 1 else scope.extremum("maximum", tuple(kept))


def words_of(scope: Scope, elements: Polynomial, element: ScalarType) -> Polynomial | None:
    """Return the number of 4-byte words of ``elements`` elements as C lays them out, rounded up."""
    if element.size >= 4:
        return elements * (element.size // 4)
    return scope.quotient("ceiling", elements * element.size, Polynomial.constant(4))


def _path(
    conditions: tuple[tuple[Expr, bool], ...],
    program: Program,
    facts: Facts,
    scope: Scope,
    left_out: dict[str, LeftOut],
    analyses: Analyses,
) -> PathPlan:
    prover = analyses.prover((*facts.constraints, *together(scope, conditions).constraints), facts.derived)
    said = _of_blocks(conditions, program, scope)
    lasting = (_with_lasting_ranges(reference, scope) for reference in analyses.references(program, facts))
    found = tuple(_in_blocks(reference, said, scope, prover) for reference in lasting)
    held: list[HeldWindow] = []
    for array in program.arrays:
        if array.name not in program.mapping.cached:
            continue
        own = [reference for reference in found if reference.array == array.name]
        try:
            windows = array_windows(program, scope, prover, array, own)
            held.extend(_held(_laid_out(window, program), scope, prover) for window in windows)
        except NotCacheableError as error:
            left_out[array.name] = LeftOut(array.name, str(error), error.access, error.loop)
    held = [one for one in held if not (one.store is Store.THROUGH and not one.window.reads)]
    held = [_staged(one, program, found, scope) for one in held]
    registers = own_windows(program, prover, found)
    private = (*private_windows(program, prover, found), *registers)
    structures: list[Structure] = []
    for array in program.arrays:
        if array.name in program.mapping.transposed:
            from metafork.analysis.memory.structures import NoStructureError, structures_of  # few programs have any

            own = [reference for reference in found if reference.array == array.name]
            try:
                structures += structures_of(program, scope, prover, array, own)
            except NoStructureError as reason:
                left_out[array.name] = LeftOut(array.name, str(reason))
    kept = {window.array.name for window in registers}
    blocks = [stmt.array for stmt in walk_statements(program.body) if isinstance(stmt, BlockArray)]
    return PathPlan(
        conditions,
        program,
        found,
        tuple(held),
        private,
        tuple(structures),
        tuple((array, _array_words(array, program, scope)) for array in blocks if array.name not in kept),
    )


def _with_lasting_ranges(reference: Reference, scope: Scope) -> Reference:
    """Return a reference without trip counts that hold quotients which nothing but its own walk has a name for."""
    symbols = scope.constants | {loop.var for loop in reference.loops}
    if all(loop.trips is None or loop.trips.symbols <= symbols for loop in reference.loops):
        return reference
    return replace(
        reference,
        loops=tuple(
            loop if loop.trips is None or loop.trips.symbols <= symbols else replace(loop, trips=None)
            for loop in reference.loops
        ),
    )


def _of_blocks(conditions: Sequence[tuple[Expr, bool]], program: Program, scope: Scope) -> tuple[Constraint, ...]:
    """Return what conditions say of grid variables."""
    if not conditions:
        return ()
    inner = scope.copy()
    for loop in program.grid:
        range_ = known_extent(inner, loop, LoopKind.GRID)
        inner.bind(loop.var, range_.value)
        inner.ranges.enter(loop.var, range_.trips)
        inner.ranges.learn(extent_limits(inner, loop))
    said = together(inner, conditions).constraints
    return tuple(constraint for constraint in said if not constraint.symbols <= scope.constants)


def _in_blocks(reference: Reference, blocks: Sequence[Constraint], scope: Scope, prover: Prover) -> Reference:
    """Return a reference whose grid variables stay below what ``blocks`` say, where that is proved to be less."""
    fewer = {
        loop: replace(loop, trips=limit)
        for loop in (reference.loops if blocks else ())
        if loop.kind is LoopKind.GRID and loop.trips is not None
        for limit in (_limit(constraint, loop.var) for constraint in blocks)
        if limit is not None and limit.symbols <= scope.constants and prover.derives(at_most(limit, loop.trips))
    }
    return replace(reference, loops=tuple(fewer.get(loop, loop) for loop in reference.loops)) if fewer else reference


def _limit(constraint: Constraint, variable: str) -> Polynomial | None:
    """Return what ``variable < limit`` or ``variable <= limit - 1`` says it is below."""
    if constraint.relation == "==" or constraint.difference.coefficient(variable) != ONE:
        return None
    limit = Polynomial.symbol(variable) - constraint.difference
    return limit if constraint.relation == "<" else limit + 1


def _laid_out(window: Window, program: Program) -> Window:
    """Give a window the layout that the program has for its array; a row alone is not padded."""
    layout = program.mapping.layout(window.array.name)
    return replace(window, layout=layout if len(window.extents) > 1 else replace(layout, padding=0))


def _staged(held: HeldWindow, program: Program, references: Sequence[Reference], scope: Scope) -> HeldWindow:
    """Return a window with the buffers that the program's mapping asks for, where its copy may run ahead."""
    stages = program.mapping.stages
    if stages == 1:
        return held
    from metafork.analysis.memory.stages import why_not_ahead  # no default strategy asks for buffers

    reason = why_not_ahead(held.window, program, references, scope)
    if reason is not None:
        return replace(held, one_buffer=reason)
    return replace(held, words=held.words * stages, stages=stages)


def _held(window: Window, scope: Scope, prover: Prover) -> HeldWindow:
    words = words_of(scope, window.elements, window.array.element)
    if words is None:
        raise NotCacheableError(
            f"the size of a window of {window.array.name} in words is no known polynomial", window.references[0]
        )
    if not window.writes:
        return HeldWindow(window, words, Store.NONE)
    boxes = written_boxes(window, prover)
    return HeldWindow(window, words, Store.THROUGH) if boxes is None else HeldWindow(window, words, Store.COPY, boxes)


def block_array_elements(array: Array, program: Program, scope: Scope) -> Polynomial:
    """Return the elements of an array of the block, padding included.

    Raises ``UnknownSizeError`` where an extent is no polynomial.
    """
    elements = ONE
    for axis, extent in enumerate(array.extents):
        value = scope.polynomial(extent)
        if value is None:
            raise UnknownSizeError(f"an extent of {array.name} is no polynomial in parameters")
        last = axis == len(array.extents) - 1 and axis > 0
        elements = elements * (value + program.mapping.layout(array.name).padding if last else value)
    return elements


def _array_words(array: Array, program: Program, scope: Scope) -> Polynomial:
    elements = block_array_elements(array, program, scope)
    words = words_of(scope, elements, array.element)
    if words is None:
        raise UnknownSizeError(f"the size of {array.name} in words is no known polynomial")
    return words
