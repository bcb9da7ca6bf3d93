"""Strips of a loop of sums that threads have several of, in register tiles (``metafork.transform.strips``).

``before --> after``, for 8 by 8 sums (``tile(jb, 8); tile(ib, 8); strips(k, size=16)``)::

    meta_for (int ib_o = 0; ...)                 meta_for (int ib_o = 0; ib_o < (m + 7) / 8; ib_o++)
      meta_for (int jb_o = 0; ...)                 meta_for (int jb_o = 0; jb_o < (n + 7) / 8; jb_o++) {
        meta_for (int v = 0; v < B; v++)             float sums[B][B][8][8];
          meta_for (int u = 0; u < B; u++)           ...                                      // all sums are 0
            for (int ib_i = 0; ib_i < 8; ...)        for (int t = 0; t < (l - 1) / 16 + 1; t++)
              for (int jb_i = 0; ...) {                meta_for (int v = 0; v < B; v++)
                float sum = 0;            -->            meta_for (int u = 0; u < B; u++)
                for (int k = 0; k < l; k++)                for (int z = 0; z < 16; z++)       // and fewer at the end
                  sum += a[i][k] * b[k][j];                  for (int ib_i = 0; ib_i < 8; ib_i++)
                c[i][j] = sum;                                 for (int jb_i = 0; jb_i < 8; jb_i++)
              }                                                  sums[v][u][ib_i][jb_i] += a[i][k] * b[k][j];
                                                     ...                                      // c[i][j] = sums[...]
                                                   }

An element that a thread loads serves all sums of its row or column.  Sums are added up in the order of the program.

Legal where the loop does nothing but add up in scalars, of arrays that are not written: the sums of a thread are then
independent of each other, so that their loops may stand inside the loop over a strip.  Where one result of a thread
may touch before its sum what another one writes behind it, the iterations of tiles are to be proved independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import reduce
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.analyses import Analyses
from metafork.analysis.counted_loops import conjuncts
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import common_type
from metafork.ir.names import fresh
from metafork.ir.polynomial_code import conjunction
from metafork.ir.rewriting import names_in, names_of, private_arrays, substitute, substitute_body, variables
from metafork.transform import legality
from metafork.transform.directive import Refused
from metafork.transform.loops import SerialLoop, counting
from metafork.transform.nests.steady_loops import INT, Body, Nest, nest_over

ORDERED = frozenset({"<", "<=", ">", ">="})


def in_tile_strips(
    program: ir.Program, phase: ir.Phase, loop: str, size: int, analyses: Analyses
) -> ir.Program | Refused:
    """Return the program whose blocks walk a loop of a phase, in two tiles of a thread, in strips of ``size``."""
    tiles = _tiles(phase)
    if tiles is None:
        return Refused("a thread has no two tiles of results, one in the other", phase.span)
    nest = nest_over(loop, replace(phase, body=tiles[1]), program, analyses)
    if isinstance(nest, Refused):
        return nest
    if (reason := _why_no_sums(program, phase, nest)) is not None:
        return Refused(reason, nest.loop.span)
    for tile in tiles[0] if _meet(nest) else ():
        loop_of_tile = SerialLoop(tile.loop, tile.variable, ir.IntConst(tile.trips))
        if refused := legality.independent(program, loop_of_tile, analyses):
            return refused
    return _Strips(program, phase, nest, size).program()


def _why_no_sums(program: ir.Program, phase: ir.Phase, nest: Nest) -> str | None:
    if private_arrays(phase.body):
        return "a thread has arrays of its own"
    if (reason := why_not_alone(nest)) is not None:
        return reason
    written = _touched((nest.loop,)) & _stored(program.body)
    return f"{min(written)} is written" if written else None


def _meet(nest: Nest) -> bool:
    """Say whether one result of a thread may touch before its sum what another one writes behind it."""
    parts = ((*nest.before, nest.loop), nest.behind)
    written, touched = ([use(part) for part in parts] for use in (_stored, _touched))
    return bool(written[0] & touched[1] or written[1] & touched[0])


def _stored(body: Body) -> set[str]:
    targets = (one.target for one in ir.walk_statements(body) if isinstance(one, ir.Assign))
    return {target.array for target in targets if isinstance(target, ir.Element)}


def _touched(body: Body) -> set[str]:
    return {part.array for part in ir.parts_of(body) if isinstance(part, ir.Element)}


def why_not_alone(nest: Nest) -> str | None:
    """Say what a loop does beside adding up in scalars."""
    kept = {one.name for one in nest.before if isinstance(one, ir.Declare)} - nest.steady
    own = {one.name for one in nest.loop.body if isinstance(one, ir.Declare)}
    for stmt in nest.loop.body:
        match stmt:
            case ir.Declare(value=value) if value is not None:
                pass
            case ir.Assign(target=ir.Var(name=name)) if name in kept | own:
                pass
            case _:
                return f"the loop over {nest.view.variable.name} does more than add up numbers"
    return None


class _Strips:
    """Makes three phases of one whose grid is tiled: up to the loop of sums, the loop in strips, and what is behind."""

    def __init__(self, tiled: ir.Program, phase: ir.Phase, nest: Nest, strip: int) -> None:
        self._tiled, self._phase, self._nest, self._taken = tiled, phase, nest, set(names_of(tiled))
        self._size = ir.IntConst(strip)
        tiles = _tiles(phase)
        assert tiles is not None
        self._rows, self._columns = tiles[0]
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
            *self._tiled.body[:-1],
            *(ir.BlockArray(array) for array in self._kept.values()),
            self._own_names(self._of_each((*nest.before, *stored))),
            strips,
            self._own_names(self._of_each((*self._steady(), *behind))),
        )
        return replace(self._tiled, body=body)

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


def _tiles(phase: ir.Phase) -> tuple[tuple[_Tiles, _Tiles], Body] | None:
    """Take apart a phase whose threads do nothing but two tiles, one in the other."""
    rows = _opened(phase.body)
    columns = None if rows is None else _opened(rows[1])
    return None if rows is None or columns is None else ((rows[0], columns[0]), columns[1])


def _opened(body: Body) -> tuple[_Tiles, Body] | None:
    """Take apart what ``Tile`` makes of a loop."""
    match body:
        case (ir.For(init=ir.Declare(), condition=ir.Binary(right=ir.IntConst()), body=(ir.If() as test,)) as loop,):
            match test:
                case ir.If(then=(ir.Declare() as place, *rest), otherwise=()):
                    return _Tiles(loop, test, place), tuple(rest)
    return None
