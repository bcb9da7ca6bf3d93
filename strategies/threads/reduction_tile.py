"""reduction_tile: several sums per thread over operands that rows or columns of threads share, in strips.

``before --> after``, for 8 by 8 sums::

    meta_for (int ib = 0; ib < m; ib++)          meta_for (int ib_o = 0; ib_o < (m + 7) / 8; ib_o++)
      meta_for (int jb = 0; jb < n; jb++)          meta_for (int jb_o = 0; jb_o < (n + 7) / 8; jb_o++) {
        meta_for (int v = 0; v < B; v++)             float sums[B][B][8][8];
          meta_for (int u = 0; u < B; u++) {         ...                                      // all sums are 0
            float sum = 0;                           for (int t = 0; t < (l - 1) / 16 + 1; t++)
            for (int k = 0; k < l; k++)                meta_for (int v = 0; v < B; v++)
              sum += a[i][k] * b[k][j];     -->          meta_for (int u = 0; u < B; u++)
            c[i][j] = sum;                                 for (int z = 0; z < 16; z++)       // and fewer at the end
          }                                                  for (int ib_i = 0; ib_i < 8; ib_i++)
                                                               for (int jb_i = 0; jb_i < 8; jb_i++)
                                                                 sums[v][u][ib_i][jb_i] += a[i][k] * b[k][j];
                                                     ...                                      // c[i][j] = sums[...]
                                                   }

A block keeps its threads and computes more: each thread has the iterations of several blocks.  An element that a
thread loads serves all sums of its row or column, and comes from shared memory, where the strips lie.  Sums are added
up in the order of the program.

Legal always: blocks may run as one, by what ``meta_for`` promises (``metafork.transform.tile``); the sums of a thread
are independent of each other, so that their loops may stand inside the loop over a strip; more barriers than before
stand where all threads come to them, since the ends of the loop are the same for all.  No operand is written.
It is done for floating sums, for then a tile at the end of an array needs no path of its own
(``metafork.analysis.memory.speculation``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import reduce
from itertools import product
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.prover import Prover
from metafork.analysis.analyses import Analyses
from metafork.analysis.counted_loops import conjuncts
from metafork.analysis.memory.block_memory import PathPlan, block_memory
from metafork.analysis.memory.block_shape import SEVERAL_NESTS, only_phase
from metafork.analysis.memory.speculation import left_out
from metafork.analysis.references import Reference
from metafork.analysis.values.scope import Scope
from metafork.evaluators.thread_extent import ThreadExtent
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import common_type
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import conjunction
from metafork.ir.rewriting import names_in, names_of, private_arrays, substitute, substitute_body, variables
from metafork.strategies.strategy import Applied, Effect, Need, NotApplied, Remark, Strategy
from metafork.strategies.threads.needs import FULL_WARP, not_untouched
from metafork.strategies.threads.steady_loops import INT, Body, Nest, nests, not_known, read_in, why_no_room
from metafork.transform.directive import Refused
from metafork.transform.loops import counting
from metafork.transform.schedule import applied
from metafork.transform.tile import Tile

FLAT = 4
"""How many times as many threads in one direction as in the other make a block flat."""
ORDERED = frozenset({"<", "<=", ">", ">="})


class ReductionTile(Strategy, frozen=True):
    """Let a thread have rows by columns of sums, and the block walk their loop in strips of ``strip`` iterations.

    Of the ``shapes``, those that are longer in one direction are for blocks that have four times as many threads in the
    other one: under ``meta_block(8, 32)`` 16 by 4 sums make 128 by 128, and 8 by 8 would make 64 by 256.
    """

    name: str = "reduction_tile"
    improves: frozenset[str] = frozenset()
    proposes: ClassVar[bool] = True
    caches: ClassVar[bool] = True
    shapes: tuple[tuple[int, int], ...] = ((16, 4), (4, 16), (8, 8), (4, 4))
    strip: int = 16

    def __post_init__(self) -> None:
        if not 4 <= self.strip <= 64:
            raise ValueError(f"strip is from 4 to 64, not {self.strip}")

    def apply(self, version: ir.Version, analyses: Analyses) -> Applied | NotApplied:
        """Return the version whose threads have several sums, or why there is none."""
        program = version.program
        if (split := not_untouched(version)) is not None:
            return split
        found = _reduction(program, analyses)
        if isinstance(found, str):
            return NotApplied(found)
        (rows, columns), *others = self.shapes
        counts = dict(zip(found.axes, (rows, columns), strict=True))
        tiles = tuple(Tile(program.grid[axis].var, counts[axis]) for axis in reversed(found.axes))
        tiled = applied(program, tiles, analyses)
        if isinstance(tiled, Refused):
            return NotApplied(tiled.reason)
        mined = _Strips(tiled, found, self.strip).program()
        if (unfit := _why_not(mined, analyses)) is not None:
            return NotApplied(unfit)
        (few, wide), (many, narrow) = sorted(zip((rows, columns), found.axes, strict=True))
        flat = [Need(ThreadExtent(wide, 0, narrow), FLAT)] if few < many else []
        variable, arrays = found.nest.view.variable.name, ", ".join(found.operands)
        shape = f"{rows} x {columns} results per thread"
        note = f"a thread has {shape[: -len(' per thread')]}, and a block walks the loop over {variable} in strips"
        return Applied(
            replace(version, program=mined),
            f"{note}, of which {arrays} go through shared memory",
            Effect(f"{shape}, loop over {variable} in strips"),
            tuple(_remarks(program, found)),
            (FULL_WARP, *flat),
            replace(self, shapes=tuple(others)) if others else None,
        )


class _Reduction(Struct, frozen=True):
    """A loop of sums, the operands that it reads, each with a read, and the two dimensions of the grid to be tiled."""

    nest: Nest
    operands: Mapping[str, ir.Element]
    axes: tuple[int, int]


def _reduction(program: ir.Program, analyses: Analyses) -> _Reduction | str:
    """Return the first loop of sums whose operands rows or columns of threads share, or why there is none."""
    phase = only_phase(program)
    if phase is None:
        return SEVERAL_NESTS
    loops = (*program.grid, *phase.threads)
    if any(loop.type is not INT or loop.extent.type is not INT for loop in loops):
        return "the loops of grid and threads do not all count int"
    if private_arrays(phase.body):
        return "a thread has arrays of its own"
    reason = "a thread has no loop whose ends are the same for all threads"
    facts = analyses.facts(program)
    scope, prover = Scope.of(facts), analyses.prover(facts.constraints, facts.derived)
    for nest in nests(phase):
        operands = _operands(nest, analyses.references(program, facts))
        ending = operands if isinstance(operands, str) else nest.ending(scope, prover)
        axes = operands if isinstance(operands, str) else _shared_axes(program, phase, operands)
        if isinstance(ending, str) or isinstance(axes, str):
            reason = ending if isinstance(ending, str) else str(axes)
        elif not isinstance(operands, str):
            return _Reduction(ending, {one.array: one.element for one in operands}, axes)
    return reason


def _operands(nest: Nest, references: Sequence[Reference]) -> list[Reference] | str:
    """Return what a loop of floating sums reads in each iteration, or why it is none."""
    variable = nest.view.variable.name
    accesses = read_in(nest, references)
    if isinstance(accesses, str):
        return accesses
    kept = {one.name for one in nest.before if isinstance(one, ir.Declare)} - nest.steady
    own = {one.name for one in nest.loop.body if isinstance(one, ir.Declare)}
    for stmt in nest.loop.body:
        match stmt:
            case ir.Declare(value=value) if value is not None:
                pass
            case ir.Assign(target=ir.Var(name=name, type=type_)) if type_.floating and name in kept | own:
                pass
            case _:
                return f"the loop over {variable} does more than add up floating numbers"
    written = {one.array for one in references if one.writes}
    for one in accesses:
        if (unknown := not_known(one, variable)) is not None:
            return unknown
        if one.array in written or not one.element.type.floating:
            return f"{one.array} is written, or holds no floating numbers"
    return accesses or f"the loop over {variable} reads nothing"


def _shared_axes(program: ir.Program, phase: ir.Phase, operands: Sequence[Reference]) -> tuple[int, int] | str:
    """Return the two innermost dimensions along which threads share an operand, and each of which moves another one."""
    moves: list[set[int]] = []
    for one in operands:
        symbols = {name for index in one.indices if index is not None for name in index.symbols}
        pairs = enumerate(zip(program.grid, phase.threads, strict=True))
        moves.append({axis for axis, (block, thread) in pairs if symbols & {block.var, thread.var}})
    shared = [
        axis
        for axis in range(len(program.grid))
        if any(axis in one for one in moves) and any(axis not in one for one in moves)
    ]
    if len(shared) < 2 or not all(set(shared[-2:]) - one for one in moves):
        return "no rows and columns of threads share what they read"
    return shared[-2], shared[-1]


def _remarks(program: ir.Program, found: _Reduction) -> Iterator[Remark]:
    for name, read in found.operands.items():
        reason = f"rows of threads share its elements in the loop over {found.nest.view.variable.name}, in strips"
        yield Remark("shared memory", name, True, reason, program.array(name).span, read.span)


def _why_not(mined: ir.Program, analyses: Analyses) -> str | None:
    """Say why the strips of a program have no place in shared memory, or its sums none in registers."""
    if (full := why_no_room(mined, analyses)) is not None:
        return full
    memory = block_memory(mined, analyses)
    if any(path.block_arrays for path in memory.paths):
        return "the sums of a thread have no registers"
    prover = analyses.prover(memory.facts.constraints, memory.facts.derived)
    if not all(_in_any_case(path, prover) for path in memory.paths):
        return "sums at the end of an array would take a path of their own"
    return None


def _in_any_case(path: PathPlan, prover: Prover) -> bool:
    """Say whether no condition is asked in the loops over strips."""
    known = left_out(path, prover)
    strips = [one.body for one in path.program.body if isinstance(one, ir.For)]
    loops = [one for body in strips for one in ir.walk_statements(body) if isinstance(one, ir.For)]
    return all(id(one) in known for one in ir.walk_statements(tuple(loops)) if isinstance(one, ir.If))


class _Strips:
    """Makes three phases of one whose grid is tiled: up to the loop of sums, the loop in strips, and what is behind."""

    def __init__(self, tiled: ir.Program, found: _Reduction, strip: int) -> None:
        *self._scalars, phase = tiled.body
        assert isinstance(phase, ir.Phase)
        self._tiled, self._phase, self._found, self._taken = tiled, phase, found, set(names_of(tiled))
        self._size = ir.IntConst(strip)
        self._rows, columns = _opened(phase.body)
        self._columns, core = _opened(columns)
        nest = next(one for one in nests(replace(phase, body=core)) if one.view.variable == found.nest.view.variable)
        self._nest = replace(nest, empty=found.nest.empty)
        needed = names_in((nest.loop, *nest.behind))
        kept = [one for one in nest.before if isinstance(one, ir.Declare) and one.name in needed - nest.steady]
        extents = (
            *(loop.extent for loop in phase.threads),
            *(ir.IntConst(one.trips) for one in (self._rows, self._columns)),
        )
        self._kept = {
            one.name: ir.Array(fresh(f"{one.name}_of_threads", self._taken), one.type, extents) for one in kept
        }
        self._used: frozenset[str] = frozenset()

    def program(self) -> ir.Program:
        """Return the program."""
        nest, elements = self._nest, {name: self._element(name) for name in self._kept}
        strip = ir.Var(fresh(f"{nest.view.variable.name}_strip", self._taken), nest.view.variable.type)
        first = ir.Declare(strip.name, strip.type, ir.IntConst(0))
        strips: ir.Stmt = ir.For(
            first,
            ir.binary("<", strip, nest.strips(self._size)),
            ir.Assign(strip, "+", ir.IntConst(1)),
            (self._own_names(self._strip(strip, elements)),),
        )
        tests = conjunction([one for guard in self._guards() for one in self._somewhere(*guard)])
        strips = strips if tests is None else ir.If(tests, (strips,))
        stored = (ir.Assign(elements[name], "", ir.Var(name, array.element)) for name, array in self._kept.items())
        behind = substitute_body(nest.behind, elements, self._taken)
        body = (
            *self._scalars,
            *(ir.BlockArray(array) for array in self._kept.values()),
            self._own_names(self._of_each((*nest.before, *stored))),
            strips,
            self._own_names(self._of_each((*self._steady(), *behind))),
        )
        cached = {*self._tiled.mapping.cached, *self._found.operands}
        names = tuple(array.name for array in self._tiled.arrays if array.name in cached)
        return replace(self._tiled, body=body).mapped(cached=names)

    def _strip(self, strip: ir.Var, elements: Mapping[str, ir.Expr]) -> Body:
        """Return what a thread does in a strip: a whole one has a constant number of iterations."""
        nest, variable = self._nest, self._nest.view.variable
        begin = nest.begin(strip, self._size)
        type_ = common_type(variable.type, nest.limit.type)
        left = ir.binary("-", nest.limit, begin)
        length = ir.Var(fresh(f"{variable.name}_left", self._taken), type_)
        some = ir.Conditional(ir.binary("<", left, self._size), left, self._size, type_)
        place = ir.Var(fresh(f"{variable.name}_place", self._taken), INT)
        at = ir.Declare(variable.name, variable.type, ir.binary("+", begin, place))
        each = self._of_each((*self._steady(), at, *substitute_body(nest.loop.body, elements, self._taken)))
        whole, rest = (counting(place.name, ir.IntConst(0), limit, each) for limit in (self._size, length))
        other = substitute_body((rest,), {}, self._taken, renaming=_declared((rest,)))
        self._taken |= names_in(other)
        return (ir.Declare(length.name, type_, some), ir.If(ir.binary("==", length, self._size), (whole,), other))

    def _guards(self) -> Iterator[tuple[Body, ir.Expr]]:
        """Yield what is asked of a result, with the scalars that it is asked of."""
        scalars: Body = (self._rows.place, self._columns.place)
        for own, condition in self._nest.guards:
            scalars = (*scalars, *own)
            for one in conjuncts(condition):
                yield scalars, one

    def _somewhere(self, scalars: Body, test: ir.Expr) -> Iterator[ir.Expr]:
        """Yield a condition without which no result of a block passes a test of row and column, if there is one.

        Where the test compares what grows evenly with both, a result in a corner of the block passes it if any does.
        """
        known: dict[str, ir.Expr] = {}
        for one in scalars:
            if isinstance(one, ir.Declare) and one.value is not None:
                known[one.name] = substitute(one.value, known)
        last = {tiles.variable: ir.IntConst(tiles.trips - 1) for tiles in (self._rows, self._columns)}
        ends: dict[str, ir.Expr] = {**last}
        ends |= {loop.var: ir.binary("-", loop.extent, ir.IntConst(1)) for loop in self._phase.threads}
        whole = substitute(test, known)
        if not (isinstance(whole, ir.Binary) and whole.op in ORDERED and last.keys() <= variables(whole)):
            return
        if not all(_is_even(side, ends.keys()) for side in (whole.left, whole.right)):
            return
        names = sorted(ends.keys() & variables(whole))
        places = product(*((ir.IntConst(0), ends[name]) for name in names))
        corners = [substitute(whole, dict(zip(names, one, strict=True))) for one in places]
        yield reduce(lambda left, right: ir.binary("||", left, right), corners)

    def _steady(self) -> Body:
        return tuple(one for one in self._nest.before if isinstance(one, ir.Declare) and one.name in self._nest.steady)

    def _element(self, name: str) -> ir.Element:
        array = self._kept[name]
        places = [ir.Var(loop.var, loop.type) for loop in self._phase.threads]
        tile = [ir.Var(tiles.variable, INT) for tiles in (self._rows, self._columns)]
        return ir.Element(array.name, (*places, *tile), array.element)

    def _of_each(self, body: Body) -> Body:
        """Return some code for all results of a thread."""
        return self._rows.around(self._columns.around(self._nest.guarded(body)))

    def _own_names(self, body: Body) -> ir.Phase:
        """Return a phase of some code, which has names of its own, as a printed program has."""
        (own,) = substitute_body((replace(self._phase, body=body),), {}, self._taken, renaming=self._used)
        assert isinstance(own, ir.Phase)
        self._taken |= names_in((own,))
        self._used |= _declared(own.body) | {loop.var for loop in own.threads}
        return own


def _declared(body: Body) -> frozenset[str]:
    heads = (one.init for one in ir.walk_statements(body) if isinstance(one, ir.For))
    return frozenset(one.name for one in (*ir.walk_statements(body), *heads) if isinstance(one, ir.Declare))


def _is_even(expr: ir.Expr, names: Set[str]) -> bool:
    """Say whether an integer is a sum of terms that each have one of some variables at most, or a product by it."""
    match expr:
        case ir.Binary(op="+" | "-", left=left, right=right):
            return _is_even(left, names) and _is_even(right, names)
        case ir.Binary(op="*", left=left, right=right):
            both = variables(left) & names, variables(right) & names
            return not (both[0] and both[1]) and _is_even(left, names) and _is_even(right, names)
        case _:
            return not variables(expr) & names or (isinstance(expr, ir.Var) and expr.type.integer)


class _Tiles(Struct, frozen=True):
    """The loop over a tile that ``Tile`` makes, but for what it does."""

    loop: ir.For
    test: ir.If
    place: ir.Stmt

    @property
    def variable(self) -> str:
        """The counter."""
        assert isinstance(self.loop.init, ir.Declare)
        return self.loop.init.name

    @property
    def trips(self) -> int:
        """How many iterations a tile has."""
        assert isinstance(self.loop.condition, ir.Binary)
        assert isinstance(self.loop.condition.right, ir.IntConst)
        return self.loop.condition.right.value

    def around(self, body: Body) -> Body:
        """Return the loop with this body."""
        return (replace(self.loop, body=(replace(self.test, then=(self.place, *body)),)),)


def _opened(body: Body) -> tuple[_Tiles, Body]:
    """Take apart what ``Tile`` made of a phase."""
    (loop,) = body
    assert isinstance(loop, ir.For)
    (test,) = loop.body
    assert isinstance(test, ir.If)
    place, *rest = test.then
    return _Tiles(loop, test, place), tuple(rest)


STRATEGY = ReductionTile()
