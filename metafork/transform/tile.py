"""tile: a loop in two, of which the inner one runs the iterations of a tile."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.ir.names import fresh
from metafork.ir.program import Declare, Derived, Expr, If, IntConst, Phase, Program, Stmt, Var, binary
from metafork.ir.rewriting import arrays_read, names_of, substitute_body, variables
from metafork.transform import legality
from metafork.transform.directive import Refused
from metafork.transform.loops import (
    INT,
    Body,
    GridLoop,
    SerialLoop,
    ThreadLoop,
    counting,
    each_replaced,
    loop_named,
)


class Layout(Enum):
    """Which iterations are a tile: neighbours, or those that lie as far apart as there are tiles."""

    CONSECUTIVE = "consecutive"
    STRIDED = "strided"


class Tail(Enum):
    """What becomes of a tile that is not full: every iteration is tested, or full tiles run without a test."""

    GUARD = "guard"
    PEEL = "peel"


class Tile(Struct, frozen=True):
    """Split a loop into tiles of ``factor`` iterations, which one thread runs one after the other.

    tile(v, 4)::

        meta_for (int v = 0; v < B; v++)     -->   int v_tiles = (B + 3) / 4;
          S(v);                                    meta_for (int v_o = 0; v_o < v_tiles; v_o++)
                                                     for (int v_i = 0; v_i < 4; v_i++)
                                                       if (v_i < B - 4 * v_o) {
                                                         int v = 4 * v_o + v_i;
                                                         S(v);
                                                       }

    Of a thread loop, the loops of the same dimension in all phases are split; of a grid loop, a block runs the tile in
    each of its phases.  ``strided``: ``v = v_i * v_tiles + v_o``, so that neighbours in a block stay neighbours.

    Legal: the order of grid and thread loops is free, by what ``meta_for`` promises, where nothing that the block does
    together depends on a grid loop; consecutive tiles of a serial loop run in its order, strided ones need iterations
    that are independent.  The sums stay within ``int``, whatever the extent.
    """

    loop: str
    factor: int
    layout: Layout = Layout.CONSECUTIVE
    tail: Tail = Tail.GUARD

    def __post_init__(self) -> None:
        if not 2 <= self.factor <= 1024:
            raise ValueError(f"factor is from 2 to 1024, not {self.factor}")

    def apply(self, program: Program, analyses: Analyses) -> Program | Refused:
        """Return the program with the loop in two."""
        match loop_named(program, self.loop):
            case Refused() as refused:
                return refused
            case GridLoop(axis=axis):
                return self._of_grid(program, axis)
            case ThreadLoop(axis=axis):
                return self._of_threads(program, axis)
            case SerialLoop() as loop:
                return self._of_serial(program, loop, analyses)

    def _of_serial(self, program: Program, loop: SerialLoop, analyses: Analyses) -> Program | Refused:
        strided = self.layout is Layout.STRIDED
        refused = legality.independent(program, loop, analyses) if strided else legality.to_its_end(loop)
        if refused:
            return refused
        split = _Split(self, program, loop.variable, loop.extent)
        outer = counting(split.outer, IntConst(0), split.tiles, split.tile(loop.stmt.body))
        body = each_replaced(program.body, lambda stmt: (outer,) if stmt is loop.stmt else None)
        return replace(program, body=body, derived=split.derived)

    def _of_threads(self, program: Program, axis: int) -> Program:
        derived = program.derived

        def tiled(stmt: Stmt) -> Body | None:
            nonlocal derived
            if not isinstance(stmt, Phase):
                return None
            head, threads = stmt.threads[axis], list(stmt.threads)
            split = _Split(self, replace(program, derived=derived), head.var, head.extent)
            derived = split.derived
            threads[axis] = replace(head, var=split.outer, extent=split.tiles)
            return (replace(stmt, threads=tuple(threads), body=split.tile(stmt.body)),)

        body = each_replaced(program.body, tiled)
        return replace(program, body=body, derived=derived)

    def _of_grid(self, program: Program, axis: int) -> Program | Refused:
        head, grid = program.grid[axis], list(program.grid)
        if refused := legality.same_for_all(program.body, head.var):
            return refused
        split = _Split(self, program, head.var, head.extent)
        grid[axis] = replace(head, var=split.outer, extent=split.tiles)

        def tiled(stmt: Stmt) -> Body | None:
            return (replace(stmt, body=split.tile(stmt.body)),) if isinstance(stmt, Phase) else None

        body = each_replaced(program.body, tiled)
        return replace(program, grid=tuple(grid), body=body, derived=split.derived)


class _Split:
    """The names, the number of tiles and the code of one tile of a loop."""

    def __init__(self, tile: Tile, program: Program, variable: str, extent: Expr) -> None:
        taken = set(names_of(program))
        self._tile, self._variable, self._extent, self._taken = tile, variable, extent, taken
        self.outer, self._inner = fresh(f"{variable}_o", taken), fresh(f"{variable}_i", taken)
        self.derived = program.derived
        self.tiles = _tiles(extent, tile.factor)
        known = {one.name for one in program.parameters} | {one.name for one in program.derived}
        if not isinstance(extent, IntConst) and variables(extent) <= known and not arrays_read(extent):
            name = fresh(f"{variable}_tiles", taken)
            up = binary("+", extent, IntConst(tile.factor - 1))
            self.derived = (*program.derived, Derived(name, INT, binary("/", up, IntConst(tile.factor))))
            self.tiles = Var(name, INT)

    def tile(self, body: Body) -> Body:
        """Return what a tile does whose iterations do ``body``."""
        inner, outer, factor = Var(self._inner, INT), Var(self.outer, INT), IntConst(self._tile.factor)
        if self._tile.layout is Layout.CONSECUTIVE:
            offset: Expr = inner
            first: Expr = binary("*", factor, outer)
            index = binary("+", first, inner)
        else:
            first, offset = outer, binary("*", inner, self.tiles)
            index = binary("+", offset, outer)
        one: Body = (Declare(self._variable, INT, index), *body)
        left = binary("-", self._extent, first)
        tested: Body = (If(binary("<", offset, left), one),)
        if isinstance(self._extent, IntConst) and self._extent.value % self._tile.factor == 0:
            return (self._counting(one),)
        if self._tile.tail is Tail.GUARD:
            return (self._counting(tested),)
        last = binary("-", left, binary("*", IntConst(self._tile.factor - 1), self.tiles))
        full = binary(">=", left, factor) if self._tile.layout is Layout.CONSECUTIVE else binary(">", last, IntConst(0))
        return (If(full, (self._counting(one),), self._renamed((self._counting(tested),))),)

    def _counting(self, body: Body) -> Stmt:
        return counting(self._inner, IntConst(0), IntConst(self._tile.factor), body)

    def _renamed(self, body: Body) -> Body:
        """Return a second copy of code under names of its own: a program declares each name once."""
        return substitute_body(body, {}, self._taken, renaming=frozenset(self._taken))


def _tiles(extent: Expr, factor: int) -> Expr:
    """Return how many tiles there are, 0 or less where there is no iteration; the sum stays within ``int``."""
    if isinstance(extent, IntConst):
        return IntConst((extent.value - 1) // factor + 1)
    size = IntConst(factor)
    return binary("+", binary("/", extent, size), binary(">", binary("%", extent, size), IntConst(0)))
