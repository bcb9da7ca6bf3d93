"""Values of static parameters that programs are likely to be run with, for those who name none.

What a parameter is for says what it may be.  ``B`` of ``meta_for (u < B)`` is an extent of the block: a block has 256
threads or so, as a square, or with a warp in x.  ``s`` of ``for (w < s)`` in thread code is how many results per thread
has where the grid shrinks by it, and where a loop around the threads goes by it, how many steps of a sum are done at a
time.  Parameters that are none of these stay symbols.  The first combination is the commonest; each of the others
changes one part of it.

An instance is worth compiling where its kernel is simpler than the dynamic one: a loop has lost its symbolic bound, a
condition is gone, or elements have moved into registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from math import prod

from metafork.analysis.analyses import WARP_SIZE
from metafork.analysis.counted_loops import counted_loop
from metafork.ir import program as ir
from metafork.ir.kernel import Kernel, Space
from metafork.ir.rewriting import variables
from metafork.ir.static_values import static_parameters
from metafork.printing.expressions import representable

MOST_TYPICAL = 4
"""Most instances of a leaf that nobody asked for."""
MOST_THREADS = 1024

Values = Mapping[str, int]

BLOCKS: Mapping[int, tuple[tuple[int, ...], ...]] = {
    1: ((256,), (128,), (64,), (32,), (16,), (8,), (4,), (2,)),
    2: ((16, 16), (8, 32), (32, 16), (4, 8)),
    3: ((2, 4, 32), (4, 8, 8)),
}
"""Extents of a block of which so many are parameters, x last; those count that make a warp to 1024 threads of it."""
SQUARES = (16, 32, 8, 4)
"""Extents of a block in which one parameter stands for several."""
RESULTS: Mapping[int, tuple[tuple[int, ...], ...]] = {1: ((4,), (2,)), 2: ((4, 4), (2, 4))}
"""Results of a thread, by so many parameters."""
STEPS = (16, 32)
"""Steps of a sum that are done at a time."""


def typical_values(program: ir.Program, warp_size: int = WARP_SIZE) -> tuple[Values, ...]:
    """Return combinations of values, the commonest first; none where no parameter has a purpose that is known.

    No block has fewer threads than a warp.
    """
    free = static_parameters(program)
    threads = next((phase.threads for phase in ir.walk_statements(program.body) if isinstance(phase, ir.Phase)), ())
    blocks = _blocks([_threads_of(loop) for loop in threads], free, warp_size)
    trips = [name for name in _trip_counts(program) if name in free and not any(name in block for block in blocks)]
    shrinking, between = _of_the_grid(program), _between_grid_and_threads(program)
    results = [name for name in trips if name in shrinking]
    steps = [name for name in trips if name not in shrinking and name in between]
    tiles = [dict(zip(results, values, strict=True)) for values in RESULTS.get(len(results), ())]
    depths = [dict.fromkeys(steps, value) for value in STEPS] if steps else []
    types = {parameter.name: parameter.type for parameter in program.parameters}
    found = _around_the_first(blocks, tiles, depths)
    possible = (one for one in found if all(representable(value, types[name]) for name, value in one.items()))
    return tuple(islice(possible, MOST_TYPICAL))


def _around_the_first(*parts: Sequence[Values]) -> Iterator[Values]:
    """Yield the first of each part together, and then each other one with the first of the other parts, in turn."""
    known = [part for part in parts if part]
    if not known:
        return
    first: Values = {name: value for part in known for name, value in part[0].items()}
    yield first
    for turn in zip_longest(*(part[1:] for part in known), fillvalue=None):
        yield from ({**first, **other} for other in turn if other is not None)


def _threads_of(loop: ir.MetaFor) -> ir.Expr:
    """Return how many threads a loop has in a block: ``B`` where it has ``4 * B`` iterations, four per thread."""
    match loop.extent:
        case ir.Binary(op="*", left=ir.IntConst(value=factor), right=ir.Var() as extent) if factor == loop.results:
            return extent
        case _:
            return loop.extent


def _blocks(extents: Sequence[ir.Expr], free: frozenset[str], fewest: int) -> list[Values]:
    """Return what parameters that are extents of a block may be; nothing where some extent is another expression."""
    names = [extent.name for extent in extents if isinstance(extent, ir.Var) and extent.name in free]
    rest = [extent.value for extent in extents if isinstance(extent, ir.IntConst)]
    if not names or len(names) + len(rest) != len(extents):
        return []
    different = list(dict.fromkeys(names))
    several = len(different) == 1 < len(names)
    tried = [(value,) for value in SQUARES] if several else BLOCKS.get(len(different), ())
    found: list[Values] = [dict(zip(different, values, strict=True)) for values in tried]
    return [one for one in found if fewest <= prod(rest) * prod(one[n] for n in names) <= MOST_THREADS]


def _trip_counts(program: ir.Program) -> list[str]:
    """Return the variables that say how often loops of thread code run, in the order of the text."""
    found: list[str] = []
    for phase in ir.walk_statements(program.body):
        for loop in ir.walk_statements(phase.body) if isinstance(phase, ir.Phase) else ():
            view = counted_loop(loop) if isinstance(loop, ir.For) else None
            found += [span.name for span in view.spans() if isinstance(span, ir.Var)] if view is not None else []
    return list(dict.fromkeys(found))


def _of_the_grid(program: ir.Program) -> frozenset[str]:
    """Return the variables that the extents of the grid are computed from."""
    found = frozenset(name for loop in program.grid for name in variables(loop.extent))
    for derived in reversed(program.derived):
        if derived.name in found:
            found |= variables(derived.definition)
    return found


def _between_grid_and_threads(program: ir.Program) -> frozenset[str]:
    """Return the variables that loops between grid and threads are controlled by."""
    return frozenset(name for stmt in _at_block_level(program.body) for name in _controlling(stmt))


def _at_block_level(body: Sequence[ir.Stmt]) -> Iterator[ir.For]:
    for stmt in body:
        match stmt:
            case ir.For():
                yield stmt
                yield from _at_block_level(stmt.body)
            case ir.If(then=then, otherwise=otherwise):
                yield from _at_block_level((*then, *otherwise))
            case _:
                pass


def _controlling(loop: ir.For) -> frozenset[str]:
    parts = [loop.condition, *(expr for stmt in (loop.init, loop.step) if stmt for expr in ir.expressions_of(stmt))]
    return frozenset(name for part in parts if part is not None for name in variables(part))


def is_simpler(kernel: Kernel, dynamic: Kernel) -> bool:
    """Say whether an instance has fewer loops of symbolic length, fewer conditions or more registers than the leaf."""
    own, others = _shape(kernel), _shape(dynamic)
    return any(mine < other for mine, other in zip(own, others, strict=True))


def _shape(kernel: Kernel) -> tuple[int, int, int]:
    statements = tuple(ir.walk_statements(kernel.body))
    loops = sum(isinstance(stmt, ir.For) and _symbolic(stmt) for stmt in statements)
    conditions = sum(isinstance(stmt, ir.If) for stmt in statements)
    return loops, conditions, -sum(memory.space is Space.PRIVATE for memory in kernel.memories)


def _symbolic(loop: ir.For) -> bool:
    own = {loop.init.name} if isinstance(loop.init, ir.Declare) else set()
    return loop.condition is not None and bool(variables(loop.condition) - own)
