"""grow: a block has more iterations of a thread loop, and the grid fewer blocks."""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial, at_most, less_than
from metafork.algebra.prover import Prover
from metafork.analysis.analyses import Analyses
from metafork.analysis.memory.block_shape import SEVERAL_NESTS, only_phase
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.marks import phases
from metafork.ir.messages.source import Span
from metafork.ir.names import fresh
from metafork.ir.rewriting import (
    arrays_read,
    assigned_variables,
    inlined,
    map_expression,
    names_of,
    substitute,
    variables,
)
from metafork.ir.visitor import Body, Rewriter, changed
from metafork.transform.directive import Refused
from metafork.transform.loops import INT, ThreadLoop, loop_named
from metafork.transform.nests.steady_loops import is_plain

ONE = ir.IntConst(1)


class Grow(Struct, frozen=True):
    """Give a block ``factor`` times the iterations of a thread loop, of neighbouring blocks.

    grow(u, 4)::

        meta_for (int i = 0; i < m; i++)     -->   int i_tiles = (m + 3) / 4;
          meta_for (int u = 0; u < B; u++)         meta_for (int i_o = 0; i_o < i_tiles; i_o++)
            S(i * B + u);                            meta_for (int u_2 = 0; u_2 < 4 * B; u_2++)
                                                       S(i_o * (4 * B) + u_2);

    The grid loop is the one of the same dimension; beside a thread loop of one iteration, ``i`` alone is the place, so
    that a block gets planes of a grid that has more dimensions than ``meta_block`` gives it threads. Legal where a
    block is one nest of thread loops and depends on both loops as ``i * B + u`` alone (the order of their iterations is
    free, by what ``meta_for`` promises), and where all that it accesses stands behind a condition that is proved not to
    hold from ``m * B`` on. The places of all iterations, and what a thread computes of them in front of its conditions,
    must be proved to stay in their types.

    Where one of these is not proved, but ``m * B`` is an ``int``, a condition leaves out what lies behind the last
    block, with all that is computed there::

        S(i * B + u);                        -->   if (u_2 < (m - i_o * 4) * B)
                                                     S(i_o * (4 * B) + u_2);

    The threads of a launch, of which there are 1,024 at most, are as many as these iterations or some fewer, so that
    ``4 * B`` is an ``int``; blocks that stride are refused.
    """

    loop: str
    factor: int

    def __post_init__(self) -> None:
        if not 2 <= self.factor <= 1024:
            raise ValueError(f"factor is from 2 to 1024, not {self.factor}")

    def apply(self, program: ir.Program, analyses: Analyses) -> ir.Program | Refused:
        """Return the program with larger blocks."""
        found = loop_named(program, self.loop)
        if isinstance(found, Refused):
            return found
        phase = only_phase(program)
        if phase is None:
            return Refused(SEVERAL_NESTS, program.span)
        if not isinstance(found, ThreadLoop):
            return Refused(f"`{self.loop}` is no thread loop", program.span)
        block, thread = program.grid[found.axis], found.head
        if block.type is not INT or block.extent.type is not INT:
            return Refused(f"the loop over `{block.var}` does not count `int`", block.span)
        taken = set(names_of(program))
        outer = ir.Var(fresh(f"{block.var}_o", taken), INT)
        tiles = ir.Var(fresh(f"{block.var}_tiles", taken), INT)
        factor = ir.IntConst(self.factor)
        size = _times(factor, thread.extent)
        inner = ir.Var(fresh(thread.var, taken), INT)
        place = ir.binary("+", ir.binary("*", outer, size), inner)
        try:
            body = _Placed(block.var, thread, place, assigned_variables(program.body)).body(
                (*program.body[:-1], *phase.body)
            )
        except _OtherwiseError as error:
            return Refused(str(error), error.span)
        grid, threads = list(program.grid), list(phase.threads)
        grid[found.axis] = replace(block, var=outer.name, extent=tiles)
        threads[found.axis] = replace(thread, var=inner.name, extent=size)
        phase = replace(phase, threads=tuple(threads), body=body)
        grown = replace(program, grid=tuple(grid), body=(phase,))
        more = ir.binary("+", block.extent, ir.IntConst(self.factor - 1))
        covered = _times(block.extent, thread.extent)
        known = _with_derived(grown, tiles.name, ir.binary("/", more, factor))
        unknown = _why_not(known, place, covered, _times(more, thread.extent), analyses)
        if unknown is None:
            return known
        if program.striding is not None or not _is_int(covered, program, analyses):
            return Refused(unknown, thread.span)
        before = ir.binary("-", block.extent, ir.IntConst(1))
        number = ir.binary("+", ir.binary("/", before, factor), ir.IntConst(1))
        left = _times(ir.binary("-", block.extent, ir.binary("*", outer, factor)), thread.extent)
        tested = replace(phase, body=_tested(ir.binary("<", inner, left), body))
        return _with_derived(replace(grown, body=(tested,)), tiles.name, number)


def _times(count: ir.Expr, extent: ir.Expr) -> ir.Expr:
    return count if extent == ONE else ir.binary("*", count, extent)


def _with_derived(program: ir.Program, name: str, value: ir.Expr) -> ir.Program:
    return replace(program, derived=(*program.derived, ir.Derived(name, INT, value)))


def _is_int(value: ir.Expr, program: ir.Program, analyses: Analyses) -> bool:
    """Say whether a value is proved to be an ``int``: at most a parameter, or what is divided somewhere."""
    facts = analyses.facts(program)
    scope = Scope.of(facts)
    found = scope.polynomial(value)
    if found is None or not all(_of_ints(one) for one in (value, *(one.definition for one in program.derived))):
        return False
    ints = [Polynomial.symbol(one.name) for one in program.parameters if one.type is INT]
    ints += [one.operands[0] for one in scope.derived if one.kind == "floor"]
    prover = analyses.prover(facts.constraints, tuple(scope.derived))
    return any(prover.derives(at_most(found, one)) for one in ints)


def _of_ints(expr: ir.Expr) -> bool:
    return all(part.type is INT for part in ir.walk_expression(expr))


def _tested(test: ir.Expr, body: Body) -> Body:
    """Return a body behind a test: one ``if``, also where the body is scalars and an ``if``, whose test follows."""
    match body:
        case (*scalars, ir.If(condition=condition, then=then, otherwise=())) if all(
            isinstance(one, ir.Declare) and one.value is not None and is_plain(one.value) for one in scalars
        ):
            names = {one.name for one in scalars if isinstance(one, ir.Declare)}
            if not names & assigned_variables(then):
                both = ir.binary("&&", test, inlined(condition, tuple(scalars), {}))
                return (ir.If(both, (*scalars, *then)),)
        case _:
            pass
    return (ir.If(test, body),)


def _why_not(grown: ir.Program, place: ir.Expr, covered: ir.Expr, reach: ir.Expr, analyses: Analyses) -> str | None:
    """Say what is not proved: that places below ``reach`` are ints, and nothing is accessed from ``covered`` on."""
    facts = analyses.facts(grown)
    scope = Scope.of(facts)
    (phase,) = phases(grown)
    loops = {loop.var for loop in (*grown.grid, *phase.threads)}
    for name in loops:
        scope.bind(name, Polynomial.symbol(name))
    at, end, most = (scope.polynomial(one) for one in (place, covered, reach))
    if at is None or end is None or most is None:
        return "the extents of its loops are no polynomials in parameters"
    prover = analyses.prover(facts.constraints, tuple(scope.derived))
    assert isinstance(place, ir.Binary)
    assert isinstance(place.right, ir.Var)
    places = _Places(place.right.name, at, most, loops)
    computed = [one for one in takewhile(_is_declared, phase.body) if isinstance(one, ir.Declare)]
    if not prover.proves(at_most(most, INT.greatest)) or not all(places.fits(one, scope, prover) for one in computed):
        return "what a thread computes in front of its conditions is not known to stay within its type"
    behind = {tuple(c for guard in one.guards for c in guard.constraints) for one in analyses.references(grown, facts)}
    if not all(prover.with_premises(said).derives(less_than(at, end)) for said in behind):
        return "no condition is known to leave out what lies behind the last block"
    return None


def _is_declared(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Declare)


class _Places(Struct, frozen=True):
    """The places of a block's iterations, ``at`` for one of them, all below ``end``; ``thread`` is counted by ones."""

    thread: str
    at: Polynomial
    end: Polynomial
    loops: Set[str]

    def fits(self, stmt: ir.Declare, scope: Scope, prover: Prover) -> bool:
        """Say whether a scalar is proved to stay within its type at all places; it enters the scope."""
        value = None if stmt.value is None else scope.polynomial(stmt.value)
        scope.bind(stmt.name, value)
        if value is None:
            return stmt.value is None or not variables(stmt.value) & self.loops
        if self.thread not in value.symbols:
            return True
        slope = value.coefficient(self.thread)
        if slope is None or not slope.is_constant or (value - self.at * slope).symbols & self.loops:
            return False
        last = value + (self.end - self.at) * slope
        up = slope.constant_value() > 0
        return bool(prover.proves(at_most(last, stmt.type.greatest) if up else at_most(stmt.type.least, last)))


class _OtherwiseError(Exception):
    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.span = span


class _Placed(Rewriter):
    """Puts another place where ``block * extent + thread`` stands; its scope is what scalars of either loop are."""

    scope: Mapping[str, ir.Expr]

    def __init__(self, block: str, thread: ir.MetaFor, place: ir.Expr, assigned: frozenset[str]) -> None:
        self.scope = {}
        self._loops, self._assigned = {block, thread.var}, assigned
        first, index, size = ir.Var(block, INT), ir.Var(thread.var, INT), thread.extent
        begins = ir.binary("*", first, size), ir.binary("*", size, first)
        sums = [one for begin in begins for one in (ir.binary("+", begin, index), ir.binary("+", index, begin))]
        self._places: dict[ir.Expr, ir.Expr] = dict.fromkeys(sums, place)
        if size == ONE:
            self._places[first] = place
        self._begins, self._index, self._place = begins, index, place

    def inner(self) -> Mapping[str, ir.Expr]:
        return dict(self.scope)

    def expression(self, expr: ir.Expr) -> ir.Expr:
        new = self._placed(expr)
        if variables(new) & self._loops:
            block, thread = sorted(self._loops)
            raise _OtherwiseError(f"this depends on `{block}` and `{thread}` in another way", expr.span)
        return new

    def _placed(self, expr: ir.Expr) -> ir.Expr:
        return map_expression(substitute(expr, self.scope), self._another)

    def _another(self, expr: ir.Expr) -> ir.Expr | None:
        match expr:
            case ir.Binary(op="+", left=ir.Binary(op="+", left=before, right=begin), right=index) if (
                begin in self._begins and index == self._index
            ):
                return ir.binary("+", map_expression(before, self._another), self._place)
            case _:
                return self._places.get(expr)

    def declare(self, node: ir.Declare) -> ir.Stmt | Body:
        if node.value is None:
            return node
        new = self._placed(node.value)
        if not variables(new) & self._loops:
            return changed(node, value=new)
        if node.name in self._assigned or arrays_read(new) or node.type is not new.type:
            return changed(node, value=self.expression(node.value))
        self.scope = {**self.scope, node.name: new}
        return ()
