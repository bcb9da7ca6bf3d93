"""register_tile: several results per thread, of one to three directions, so that what is loaded serves all of them.

``before --> after``, for 8 rows of 4 columns::

    meta_for (int v = 0; v < B0; v++)              meta_for (int t = 0; t < (B0 + 7) / 8; t++)
      meta_for (int u = 0; u < B1; u++)     -->      meta_for (int q = 0; q < (B1 + 3) / 4; q++)
        S(v, u);                                       for (int v = 8 * t; v < B0 && v < 8 * t + 8; v++)
                                                         for (int u = 4 * q; u < B1 && u < 4 * q + 4; u++)
                                                           S(v, u);

Where ``meta_block`` says how many threads a block has, it keeps them and computes more instead
(``metafork.transform.grow``).  A block that the program writes has fewer threads; if these are less than a warp, it
computes more in the outermost direction of several results: *larger blocks*, such as 64 by 32 results of 8 by 32.
Rows, or planes, may be those of a dimension that the grid alone walks (a stencil of two dimensions under
``meta_block(B)``), if there are as many.
Where threads share loads in yet another direction, which is not in the tile, neighbours in that one share them in a
warp, and the block stays as it is, with a smaller shape.

The directive ``coarsen`` marks the loops (``metafork.transform.coarsen``).  Shapes are
tried from the largest on; each is a variant of its leaf, where a block still fills a warp:

- *rows of columns*, columns being neighbours in x: where these share loads (a row's factor, an element of a vector, the
  columns of a stencil) and their own elements lie side by side, so that those of a thread are one access of 16 bytes.
  Where they share nothing, vectors pay for threads that hardly compute: copies, sums of arrays.
  A warp then has no more requests than with one result per thread, and asks for no more sectors
  (``unrolling.vectors`` counts them).  Where vectors are not aligned as the program stands, its tiles begin at
  a multiple instead, if that computes the same (``transform.align``).
- first of all with *twice the rows*, where a result then takes fewer sectors (``evaluators.sectors_of_loads``): a
  stencil reads two rows more than it has results.  That needs blocks whose rows are whole groups, and registers.
- before all others *rows of planes with two columns* (``deep``), for stencils in three dimensions: the planes that
  neighbours need are loaded once.  Launch bounds keep the registers within those of the largest block, so the code
  is straight, and elements have 4 bytes.
- *rows of planes*: where two outer thread loops share loads, and both together save more than one.
- *fewer* columns and planes, eight results and then four, for blocks in which more leave no full warp: 8 by 32 threads,
  which many people write, have room for eight.  Columns are then two where that takes fewer sectors: a stencil's rows
  are read again by the results above and below them.
- *rows*: neighbouring iterations of the outer thread loop that share the most loads, eight and then four.  Where these
  come from shared memory, in a loop of the thread (a tile of a matrix), fewer rows, so that what a thread keeps of all
  of them across a block-level loop still has registers; a stencil's tile, of which a thread reads each element once,
  leaves threads as they are.  Of loops that share as many it is the innermost, which has the most iterations in most
  blocks.

Arrays of a block's own, structures in shared memory, and elements kept in registers without a tile leave threads as
they are, but for blocks that add up rows in steps (``strategies.threads.trees``): these have columns.  With a tile, or
with elements in registers, there are rows alone: the threads that share a window save loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_memory import BlockMemory, UnknownSizeError, block_memory
from metafork.analysis.values.loop_ranges import LoopKind
from metafork.evaluators.counter import NotKnown
from metafork.evaluators.extent import Extent
from metafork.evaluators.kernels import has_vectors, multiples
from metafork.evaluators.multiple import Multiple
from metafork.evaluators.registers_per_thread import registers
from metafork.evaluators.work import work
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.marks import (
    can_run_together,
    is_coarsenable,
    phases,
    results_of,
    rows_of,
    several_results,
    with_results,
)
from metafork.ir.program import Program, Var, Version
from metafork.ir.rewriting import private_arrays
from metafork.strategies.strategy import Applied, Effect, Need, NotApplied, Strategy
from metafork.strategies.threads.larger_blocks import grown, is_alone, opened
from metafork.strategies.threads.needs import FULL_WARP, MOST_OPERATIONS, PTX, SEVERAL, full_tiles
from metafork.strategies.threads.sharing import MANY, iterations, loads_per_result, loops_that_share, saved_loads
from metafork.strategies.threads.trees import adds_up_rows
from metafork.transform.align import Align
from metafork.transform.coarsen import Coarsen
from metafork.transform.directive import Refused, Schedule

COLUMNS = (4, 2)
"""How many columns are tried: an access of 16 bytes has four, or two of 8 bytes."""
FROM_MULTIPLES = Align(COLUMNS[0])
ROWS, FEW_ROWS = 8, 4
PLANES, FEWER_PLANES = (8, 4), (2, 4)
"""Rows without columns, and planes with rows of each."""
OF_TILES = (4, 2)
"""How many rows are tried where the loads that they share come from shared memory."""
WORTH = Fraction(9, 10)
"""What loads, or their sectors, have to fall to for the registers of more results to pay."""
SMALL = 4
"""Bytes of elements of which a thread has registers for planes of rows of columns, in blocks of any size."""
MOST_REGISTERS = 168
"""With more, a multiprocessor of 65,536 registers has fewer than twelve warps, three for each of its schedulers."""


def _left(shapes: Sequence[str], kind: str, shape: _Shape, *, grows: bool) -> tuple[str, ...]:
    """Return which shapes are worth a try behind one of a kind."""
    needless = FOR_SMALL_BLOCKS if grows else {"pairs"}  # small blocks have pairs as fewer columns, as a rule
    if shape.columns:  # planes and rows save less
        needless = needless | {"planes", "fewer planes", "rows"}
    if kind == "few columns":
        needless = needless | {"few rows"}
    if shape.counts[-1] != COLUMNS[0]:
        needless = needless | {"pairs"}
    return tuple(one for one in shapes if one not in needless)


class _Tiled(Struct, frozen=True):
    """A version that may get tiles of up to so many results, and the memory of its blocks as it is."""

    version: Version
    memory: BlockMemory
    results: int
    analyses: Analyses

    @property
    def program(self) -> Program:
        """The program as it is."""
        return self.version.program

    @property
    def keeps(self) -> bool:
        """Whether a block keeps something in shared memory, or a thread across a block-level loop."""
        return any(path.windows or path.private for path in self.memory.paths)

    @property
    def adds_up(self) -> bool:
        """Whether blocks add up rows in steps."""
        return adds_up_rows(self.program)


class _Shape(Struct, frozen=True):
    """A program whose threads have several results: how many in each direction, and what is said of them."""

    program: Program
    counts: tuple[int, ...]
    note: str
    needs: tuple[Need[Version], ...] = (FULL_WARP,)
    aligned: bool = False
    grown: Schedule = ()

    @property
    def schedule(self) -> Schedule:
        """The directives that make it."""
        if self.grown:
            return self.grown
        threads = phases(self.program)[0].threads
        results = tuple(Coarsen(threads[axis].var, count) for axis, count in several_results(self.program).items())
        return (FROM_MULTIPLES, *results) if self.aligned else results

    @property
    def columns(self) -> bool:
        """Whether some of them are columns."""
        return results_of(self.program)[-1] > 1


KEEPS = "threads share what the block keeps, or keep elements across a block-level loop"
NO_OTHER = ""
"""Why there are no rows of another loop: what the shapes before say is enough."""
APART = "what neighbours in x access does not lie side by side in vectors"


def _taller(tiled: _Tiled) -> _Shape | str:
    """Return columns with twice the rows, where a result then takes fewer sectors."""
    program, analyses = tiled.program, tiled.analyses
    if not any(is_coarsenable(program, loop, 2) for loop in range(len(program.grid) - 1)):
        return "there are no rows"
    shorter = _columns(tiled)
    if isinstance(shorter, str):
        return shorter
    several, columns = rows_of(shorter.program), results_of(shorter.program)[-1]
    if several is None:
        return "rows of columns share no loads"
    loop, few = several
    rows = 2 * few
    if rows > iterations(program, loop):
        return f"there are fewer than {rows} rows"
    plain, more = (registers(Version(one), analyses) for one in (program, shorter.program))
    if isinstance(plain, NotKnown) or isinstance(more, NotKnown):
        return "how many registers a thread takes is not known"
    if 2 * more - plain > MOST_REGISTERS:
        return f"{rows} rows of {columns} columns would take some {2 * more - plain} registers per thread"
    from metafork.evaluators.sectors_of_loads import sectors_of_loads  # few columns get this far

    before, after = (sectors_of_loads(tiled.memory, loop, count, columns) for count in (few, rows))
    if after > before * WORTH:
        return f"{rows} rows of {columns} columns load hardly less than {few}"
    mapped = with_results(shorter.program, {loop: rows})
    vectors = has_vectors(mapped, analyses)
    if isinstance(vectors, NotKnown):
        return vectors.reason
    if not vectors:
        return APART
    saved = f"loads take {float(after):.4g} sectors per result instead of {float(before):.4g}"
    note = (
        f"{columns} neighbouring iterations of the innermost thread loop and {rows} of thread loop {loop}, in vectors"
    )
    extent = phases(program)[0].threads[loop].extent
    needs = FULL_WARP, Need(Multiple(extent, rows), 1)
    return _Shape(mapped, (rows, columns), f"{note}: {saved}", needs, shorter.aligned)


def _columns(tiled: _Tiled, place: int = 0, part: int = 1, *, pairs: bool = False) -> _Shape | str:
    """Return columns of the innermost thread loop in vectors, with rows where these share loads.

    ``place`` says which rows: 0 those that share the most loads; ``part`` that there are so many times fewer; ``pairs``
    that there are two columns.
    """
    program, analyses, memory = tiled.program, tiled.analyses, tiled.memory
    if tiled.keeps:
        return KEEPS
    if not is_coarsenable(program, len(program.grid) - 1, 2):
        return "innermost thread loops do not all count int"
    shares = saved_loads(program, memory, len(phases(program)[0].threads) - 1)
    if not shares and not _streams(tiled) and not tiled.adds_up:
        return "neighbouring iterations of the innermost thread loop share no loads"
    loop = _sharing(tiled, place)
    if loop is None and (place or part > 2):
        return NO_OTHER
    for begins in (program, analyses.of(FROM_MULTIPLES.apply, program)):
        if isinstance(begins, Refused):
            break
        most = MANY if tiled.adds_up else iterations(program, -1)  # one thread has the sum of a tree
        for columns in (one for one in COLUMNS[pairs:] if one <= most):
            rows = min(tiled.results // 2 // part // columns, MANY if loop is None else iterations(program, loop))
            less = part > 1 and columns == COLUMNS[0]
            if loop is not None:
                begun = block_memory(begins, analyses)
                while rows > 1 and _loads_less(begun, loop, (rows // 2, columns), (rows, columns)):
                    rows //= 2  # of which loops of few trips are unrolled, and share loads
            if less and (loop is None or _loads_less(begun, loop, (2 * rows, columns // 2), (rows, columns))):
                continue
            several = None if loop is None or rows == 1 else (loop, rows)
            mapped = with_results(begins, {len(begins.grid) - 1: columns, **dict([several] if several else [])})
            vectors = has_vectors(mapped, analyses)
            if isinstance(vectors, NotKnown):
                return vectors.reason
            if vectors:
                note = f"{columns} neighbouring iterations of the innermost thread loop"
                note += "" if several is None else f" and {rows} of thread loop {loop}"
                note += ", in vectors" if begins is program else f", in vectors, from a multiple of {COLUMNS[0]} on"
                counts = (columns,) if several is None else (rows, columns)
                return _Shape(mapped, counts, note, aligned=begins is not program)
    return APART


def _whole_vectors(program: Program, analyses: Analyses) -> Iterator[Need[Version]]:
    """Yield what a thread's columns need to go together, where half as many columns need less for it."""
    fewer = multiples(with_results(program, {len(program.grid) - 1: COLUMNS[1]}), analyses)
    for name, number in multiples(program, analyses).items():
        if fewer and number > fewer.get(name, 1):
            yield Need(Multiple(Var(name, ScalarType.INT), number), 1)


def _streams(tiled: _Tiled) -> bool:
    """Say whether threads move elements rather than compute: then vectors save instructions without shared loads."""
    found = work(tiled.version, tiled.analyses)
    if isinstance(found, NotKnown):
        return False
    spare = found.global_memory * MOST_OPERATIONS - found.operations
    return all(number >= 0 for number in spare.terms().values())


def _loads_less(memory: BlockMemory, loop: int, shape: tuple[int, int], other: tuple[int, int]) -> bool:
    """Say whether a result loads less in so many rows of columns than in others."""
    from metafork.evaluators.sectors_of_loads import sectors_of_loads  # few shapes get this far

    return sectors_of_loads(memory, loop, *shape) < sectors_of_loads(memory, loop, *other) * WORTH


def _planes(tiled: _Tiled, counts: tuple[int, int] = PLANES) -> _Shape | str:
    """Return rows of several planes, where both together load less than planes alone."""
    program, memory = tiled.program, tiled.memory
    if tiled.keeps:
        return KEEPS
    first, second, *_ = (*loops_that_share(program, memory), None, None)
    if first is None or second is None:
        return "no two thread loops but the innermost share loads in neighbouring iterations"
    first, second = sorted((first, second))
    planes, rows = (min(count, iterations(program, loop)) for count, loop in zip(counts, (first, second), strict=True))
    alone = loads_per_result(program, memory, {first: planes})
    together = loads_per_result(program, memory, {first: planes, second: rows})
    if together > alone * WORTH:
        return "rows of several planes load hardly less than planes of one row"
    mapped = with_results(program, {first: planes, second: rows})
    note = f"{planes} neighbouring iterations of thread loop {first} with {rows} of thread loop {second} each"
    return _Shape(
        mapped, (planes, rows), f"{note}: {float(together):.4g} loads per result instead of {float(alone):.4g}"
    )


def _deep(tiled: _Tiled) -> _Shape | str:
    """Return planes of rows of two columns in vectors, for straight code in which both outer directions share loads."""
    program = tiled.program
    around = [loop.kind for path in tiled.memory.paths for one in path.references for loop in one.loops]
    if LoopKind.SERIAL in around:
        return "a loop of a thread would keep all results of several planes in registers"
    if any(array.element.size > SMALL for array in program.arrays):
        return f"planes of elements of more than {SMALL} bytes have no registers"
    shape = _planes(tiled)
    if isinstance(shape, str):
        return shape
    mapped = with_results(program, several_results(shape.program) | {len(program.grid) - 1: COLUMNS[1]})
    vectors = has_vectors(mapped, tiled.analyses)
    if vectors is not True:
        return APART if vectors is False else vectors.reason
    note = f"{COLUMNS[1]} neighbouring iterations of the innermost thread loop in vectors, {shape.note}"
    return _Shape(mapped, (*shape.counts, COLUMNS[1]), note)


def _rows(tiled: _Tiled, most: int = ROWS) -> _Shape | str:
    """Return rows of the outer thread loop whose iterations share the most loads."""
    program, memory = tiled.program, tiled.memory
    tiles = any(path.windows for path in memory.paths)
    if not tiles and tiled.keeps:
        return "a thread keeps elements in registers across a block-level loop, and no tile is shared"
    if tiles and most < ROWS:
        return NO_OTHER
    best = _sharing(tiled, in_loops=tiles)
    if best is None:
        where = " in a loop of a thread" if tiles else ""
        return f"neighbouring iterations of thread loops but the innermost share no loads{where}"
    most = min(most, iterations(program, best))
    for count in [rows for rows in OF_TILES if rows <= most] if tiles else [most]:
        mapped = with_results(program, {best: count})
        if _in_registers(block_memory(mapped, tiled.analyses)) == _in_registers(memory):
            return _Shape(mapped, (count,), f"{count} neighbouring iterations of thread loop {best}, which share loads")
    return "what a thread keeps across a block-level loop has no registers for several iterations"


def _sharing(tiled: _Tiled, place: int = 0, *, in_loops: bool = False) -> int | None:
    """Return the outer thread loop that comes ``place``-th by the loads that its iterations share.

    A second one is for blocks in which the first has too few iterations, where that can be.
    """
    loops = loops_that_share(tiled.program, tiled.memory, in_loops=in_loops)
    if place >= len(loops) or (place and iterations(tiled.program, loops[0]) < MANY):
        return None
    return loops[place]


SHAPES: dict[str, Callable[[_Tiled], _Shape | str]] = {
    "deep": _deep,
    "taller": _taller,
    "columns": _columns,
    "pairs": partial(_columns, pairs=True),
    "planes": _planes,
    "fewer columns": partial(_columns, part=2),
    "fewer planes": partial(_planes, counts=FEWER_PLANES),
    "rows": _rows,
    "few columns": partial(_columns, part=4),
    "few rows": partial(_rows, most=FEW_ROWS),
    "other columns": partial(_columns, place=1),
}
"""From the largest on; each gives its shape, or why there is none."""
LARGER = "larger "
"""Stands before the shape that blocks had too few threads for: it is tried in blocks that compute more."""
OF_TREES = {"columns", "pairs"}
WHOLE = {"taller", "columns"}
"""Shapes that need whole vectors, where pairs stand behind them."""
FOR_SMALL_BLOCKS = {"fewer columns", "fewer planes", "few columns", "few rows", "other columns"}


def _opened(tiled: _Tiled) -> _Tiled:
    """Return blocks of ``meta_block`` with rows and planes that the grid alone walks, as many as a thread may have."""
    if tiled.keeps or tiled.adds_up:
        return tiled
    larger = opened(tiled.program, ROWS, tiled.analyses)
    if larger is tiled.program:
        return tiled
    return replace(tiled, version=replace(tiled.version, program=larger), memory=block_memory(larger, tiled.analyses))


def _as_they_grow(shape: _Shape, program: Program, analyses: Analyses) -> _Shape | str:
    """Return a shape of opened blocks for the program as it is, whose blocks get rows and planes as they grow."""
    begins = analyses.of(FROM_MULTIPLES.apply, program) if shape.aligned else program
    if isinstance(begins, Refused):
        return begins.reason
    counts, threads = several_results(shape.program), phases(program)[0].threads
    alone = [axis for axis in counts if is_alone(threads[axis])]
    mapped = with_results(begins, counts)
    if alone and grown(mapped, analyses)[0] is mapped:
        return "blocks cannot compute more"
    needs = (Need(Extent(program.grid[axis].extent), counts[axis]) for axis in alone)
    return replace(shape, program=mapped, needs=(*shape.needs, *needs))


def _in_larger_blocks(tiled: _Tiled, kind: str) -> _Shape | str:
    """Return a shape whose blocks compute more, where a block's threads share nothing else in the directions left."""
    shape = SHAPES[kind](tiled)
    assert isinstance(shape, _Shape)
    results = results_of(shape.program)
    if tiled.keeps:
        return KEEPS
    if any(results[loop] == 1 for loop in loops_that_share(tiled.program, tiled.memory)):
        return "threads of a block share loads in another direction"
    more, larger = grown(shape.program, tiled.analyses)
    if more is shape.program:
        return "blocks cannot compute more"
    if shape.columns and has_vectors(more, tiled.analyses) is not True:
        return APART
    whole = _whole_vectors(more, tiled.analyses) if kind in WHOLE else ()
    return replace(shape, program=more, needs=(FULL_WARP, *whole), grown=(*shape.schedule, *larger))


def _in_registers(memory: BlockMemory) -> list[set[str]]:
    """Return the arrays of which a thread keeps elements across a block-level loop, by path."""
    return [{window.array.name for window in path.private} for path in memory.paths]


class RegisterTile(Strategy, frozen=True):
    """Let a thread run up to ``results`` iterations of thread loops that share loads, in one of some ``shapes``.

    ``grows``: blocks that may keep their threads do; others are tried where they have too many for that.
    """

    name: str = "register_tile"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    results: int = 32
    shapes: tuple[str, ...] = tuple(SHAPES)
    grows: bool = True

    def __post_init__(self) -> None:
        if not 8 <= self.results <= 64:
            raise ValueError(f"results is from 8 to 64, not {self.results}")

    def apply(self, version: Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version with fewer threads that do more, or why there is none."""
        program = version.program
        if version.ir_strategies:
            return PTX
        if several_results(program) or program.striding is not None:
            return SEVERAL
        try:
            memory = block_memory(program, analyses)
        except UnknownSizeError as reason:
            return NotApplied(str(reason))
        own = any(path.block_arrays for path in memory.paths)
        if any(path.structures for path in memory.paths) or (own and not adds_up_rows(program)):
            return NotApplied("threads share what the block keeps")
        if not all(can_run_together(one.body, private_arrays(one.body)) for one in phases(program)):
            return NotApplied("iterations of a thread loop do not run side by side: one may end early, or has arrays")
        tiled = _Tiled(version, memory, self.results, analyses)
        tiled = _opened(tiled) if self.grows else tiled
        reasons: list[str] = []
        shapes = tuple(kind for kind in self.shapes if kind in OF_TREES or not own)
        for number, kind in enumerate(shapes, 1):
            larger_blocks, kind = kind.startswith(LARGER), kind.removeprefix(LARGER)
            shape = _in_larger_blocks(tiled, kind) if larger_blocks else SHAPES[kind](tiled)
            if isinstance(shape, _Shape) and tiled.program is not program:
                shape = _as_they_grow(shape, program, analyses)
            if isinstance(shape, _Shape):
                keeps = self.grows and program.blocked
                made, larger = grown(shape.program, analyses) if keeps else (shape.program, ())
                stays = own or program.blocked or larger_blocks
                more = not stays and isinstance(_in_larger_blocks(tiled, kind), _Shape)
                left = shapes[number:]
                if kind == "deep":
                    pass
                elif larger_blocks:
                    left = tuple(one for one in left if one in OF_TREES)
                elif not own:
                    left = _left(left, kind, shape, grows=more or made is not shape.program)
                left = (f"{LARGER}{kind}", *left) if more else left
                smaller = replace(self, shapes=left) if left else self._of_fewer(program)
                whole = _whole_vectors(made, analyses) if kind in WHOLE and not larger_blocks else ()
                needs = (*shape.needs, *whole, *full_tiles(made))
                what = f"{' x '.join(map(str, shape.counts))} results per thread"
                fewer_threads = program.blocked and not keeps
                effect = Effect(f"{what}, in larger blocks" if larger_blocks else what + ", of fewer" * fewer_threads)
                note, schedule = f"a thread runs {shape.note}", (*shape.schedule, *larger)
                return Applied(replace(version, program=made), note, effect, (), needs, smaller, schedule)
            reasons.append(shape)
        if self.shapes != tuple(SHAPES) and (fewer := self._of_fewer(program)) is not None:
            return fewer.apply(version, analyses)
        return NotApplied("; ".join(dict.fromkeys(filter(None, reasons))))

    def _of_fewer(self, program: Program) -> RegisterTile | None:
        """Return what is tried behind the last shape of blocks that keep their threads: with fewer, all shapes."""
        return replace(self, shapes=tuple(SHAPES), grows=False) if self.grows and program.blocked else None


STRATEGY = RegisterTile()
