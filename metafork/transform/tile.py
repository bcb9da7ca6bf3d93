"""tile: a loop in two, of which the inner one runs the iterations of a tile."""

from __future__ import annotations

from enum import Enum
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.ir.names import fresh
from metafork.ir.program import Declare, Derived, Expr, If, IntConst, Phase, Program, Stmt, Var, binary
from metafork.ir.rewriting import arrays_read, names_of, substitute_body, variables
from metafork.ir.visitor import Body
from metafork.transform import legality
from metafork.transform.directive import Refused
from metafork.transform.loops import (
    INT,
    GridLoop,
    SerialLoop,
    ThreadLoop,
    counting,
    each_replaced,
    loop_named,
)
from metafork.transform.nests.in_threads import in_threads


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
    each of its phases (``metafork.transform.nests.in_threads``), and with ``tail=peel`` the rest has blocks of its own.
    ``strided``: ``v = v_i * v_tiles + v_o``, so that neighbours in a block stay neighbours.

    Legal: the order of grid and thread loops is free, by what ``meta_for`` promises, where nothing that the block does
    together depends on a grid loop; consecutive tiles of a serial loop run in its order, strided ones need iterations
    that are independent.  No sum of a kernel leaves ``int``, whatever the extent; ``v_tiles`` is the host's.
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
            threads[axis] = replace(head, var=split.outer, extent=split.tiles)
            derived = split.derived
            return (replace(stmt, threads=tuple(threads), body=split.tile(stmt.body)),)

        body = each_replaced(program.body, tiled)
        return replace(program, body=body, derived=derived)

    def _of_grid(self, program: Program, axis: int) -> Program | Refused:
        head, grid = program.grid[axis], list(program.grid)
        split = _Split(self, program, head.var, head.extent)
        own_blocks = self.tail is Tail.PEEL and self.layout is Layout.CONSECUTIVE
        body = in_threads(program.body, head.var, split.full_tile if own_blocks else split.tile, split.taken)
        if isinstance(body, Refused):
            return body
        extent, body = split.in_blocks(body, program.body) if own_blocks else (split.tiles, body)
        grid[axis] = replace(head, var=split.outer, extent=extent)
        return replace(program, grid=tuple(grid), body=body, derived=split.derived)


class _Split:
    """The names, the number of tiles and the code of one tile of a loop.

    What is computed from parameters alone becomes a derived scalar, in ``derived``.
    """

    def __init__(self, tile: Tile, program: Program, variable: str, extent: Expr) -> None:
        self.taken = set(names_of(program))
        self._program, self._tile, self._variable, self._extent = program, tile, variable, extent
        self.outer, self._inner = fresh(f"{variable}_o", self.taken), fresh(f"{variable}_i", self.taken)
        self.derived = program.derived

    @cached_property
    def tiles(self) -> Expr:
        """How many tiles there are, 0 or less where there is no iteration; the sum stays within ``int``."""
        extent, factor = self._extent, IntConst(self._tile.factor)
        if isinstance(extent, IntConst):
            return IntConst((extent.value - 1) // factor.value + 1)
        known = {one.name for one in self._program.parameters} | {one.name for one in self._program.derived}
        if variables(extent) <= known and not arrays_read(extent):
            return self._computed("tiles", binary("/", binary("+", extent, IntConst(factor.value - 1)), factor))
        return binary("+", binary("/", extent, factor), binary(">", binary("%", extent, factor), IntConst(0)))

    def _computed(self, suffix: str, value: Expr) -> Var:
        name = fresh(f"{self._variable}_{suffix}", self.taken)
        self.derived = (*self.derived, Derived(name, INT, value))
        return Var(name, INT)

    def tile(self, body: Body) -> Body:
        """Return what a tile does whose iterations do ``body``."""
        first, offset, index = self._places()
        left, size, factor = binary("-", self._extent, first), self._tile.factor, IntConst(self._tile.factor)
        if isinstance(self._extent, IntConst) and self._extent.value % size == 0:
            return self.full_tile(body)
        one = (Declare(self._variable, INT, index), *body)
        tested = self._counting((If(binary("<", offset, left), one),))
        if self._tile.tail is Tail.GUARD:
            return (tested,)
        full = binary(">=", left, factor)
        if self._tile.layout is Layout.STRIDED:
            full = binary("<", binary("*", IntConst(size - 1), self.tiles), left)
        return (If(full, self.full_tile(body), self._renamed((tested,))),)

    def full_tile(self, body: Body) -> Body:
        """Return what a full tile does whose iterations do ``body``."""
        *_, index = self._places()
        return (self._counting((Declare(self._variable, INT, index), *body)),)

    def _places(self) -> tuple[Expr, Expr, Expr]:
        """Return where a tile begins, how far behind that one of its iterations is, and the sum of both."""
        inner, outer = Var(self._inner, INT), Var(self.outer, INT)
        if self._tile.layout is Layout.STRIDED:
            offset = binary("*", inner, self.tiles)
            return outer, offset, binary("+", offset, outer)
        first = binary("*", IntConst(self._tile.factor), outer)
        return first, inner, binary("+", first, inner)

    def in_blocks(self, together: Body, alone: Body) -> tuple[Expr, Body]:
        """Return how many blocks there are where each iteration that is left over has its own, and what they do."""
        outer, factor = Var(self.outer, INT), self._tile.factor
        full = self._computed("full", binary("/", self._extent, IntConst(factor)))
        before = binary("*", IntConst(factor - 1), full)
        rest = (Declare(self._variable, INT, binary("+", before, outer)), *alone)
        body = (If(binary("<", outer, full), together, self._renamed(rest)),)
        return binary("-", self._extent, before), body

    def _counting(self, body: Body) -> Stmt:
        return counting(self._inner, IntConst(0), IntConst(self._tile.factor), body)

    def _renamed(self, body: Body) -> Body:
        """Return a second copy of code under names of its own: a program declares each name once."""
        return substitute_body(body, {}, self.taken, renaming=frozenset(self.taken))
