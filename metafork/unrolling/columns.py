"""Columns: one thread runs several neighbouring iterations of the innermost thread loop, with vector accesses.

``before --> after``, for 4 columns per thread::

                                                   int first = threadIdx.x * 4;
                                                   int together = METAFORK_ALIGNED() && n % 4 == 0 && B % 4 == 0;
    int u = threadIdx.x;                           if (together && first + 4 <= B) {
    int x = j * B + u;                               int x = j * B + first;  ...  int x_4 = j * B + (first + 3);
    float sum = y[x];                                float sum = y[x];  ...  // parts 0 to 3 of one access
    for (int i = 0; i < m; i++)            -->       for (int i = 0; i < m; i++) {
      sum += A[i][x] * v[i];                           float t = v[i];  sum += A[i][x] * t;  ...
    y[x] = sum;                                      }
                                                     y[x] = sum;  ...  // likewise
                                                   } else
                                                     for (int u = threadIdx.x; u < B; u += (B + 3) / 4) ...   as before

Where vectors are not aligned, a thread's columns lie as far apart as a block has threads, so that neighbours in x
access neighbours in memory.  Where they are, but not all of the columns (and rows) of a thread run, it runs its own one
by one.  Where the first columns of a vector may not run (``j > k``), vectors are loaded all the same, and stored in
parts (``unrolling.masks``); rows behind the last one do what the first of their group does and store nothing,
and a thread of which nothing runs ends.  ``unrolling.coarsening`` says why that is legal, for rows and columns
alike, and runs several rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import product

from msgspec import Struct

from metafork.algebra.polynomial import Polynomial
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import ALIGNED
from metafork.ir.marks import can_run_together
from metafork.ir.names import fresh
from metafork.ir.rewriting import inlined, variables
from metafork.unrolling.ahead import four_at_a_time
from metafork.unrolling.coarsening import (
    LARGEST_TEST,
    Rows,
    coarsened,
    computed_once,
    every,
    loads_first,
    of_all,
    rows_of,
    slope,
    written_in,
)
from metafork.unrolling.jam import copied, side_by_side
from metafork.unrolling.masks import ColumnMask, masked, stored_in_any_case
from metafork.unrolling.shared_loads import exact_polynomial, with_shared_loads
from metafork.unrolling.vectors import THREAD, divides, is_alike, with_vectors
from metafork.unrolling.walks import Walks

INT = ScalarType.INT
Body = tuple[ir.Stmt, ...]


class Several(Struct, frozen=True):
    """A thread loop of which a thread, whose built-in index is given, runs ``count`` neighbouring iterations."""

    loop: ir.MetaFor
    thread: ir.Expr
    count: int

    @property
    def first(self) -> ir.Expr:
        """The first of them."""
        return ir.binary("*", ir.Cast(INT, self.thread), ir.IntConst(self.count))


class Around(Struct, frozen=True):
    """What columns have to know of the kernel around them.

    ``own`` are arrays of a thread, ``arrays`` those in global memory, ``shared`` the bytes at which those in shared
    memory begin, ``scalars`` the ``int`` arguments of the kernel.  ``taken`` grows by new names.
    """

    own: Set[str]
    arrays: Set[str]
    shared: Mapping[str, Polynomial]
    scalars: Sequence[str]
    taken: set[str]


def in_columns(columns: Several, rows: Sequence[Several], body: Body, around: Around, *, apart: bool) -> Body:
    """Return what a thread of a phase does that has columns, of rows where there are some, and these of planes.

    ``apart``: its columns run one by one in any case.
    """
    taken = around.taken
    once, rest = computed_once(body, {one.loop.var for one in (*rows, columns)})
    alone = rest
    for one in reversed(rows):
        alone = coarsened(one.loop, one.thread, one.count, alone, around.own, taken)
    x, extent, thread = columns.loop.var, columns.loop.extent, ir.Cast(INT, columns.thread)
    groups = ir.binary("/", ir.binary("+", extent, ir.IntConst(columns.count - 1)), ir.IntConst(columns.count))
    together = None if apart else _together(columns, rows, once, rest, around)
    if together is None:
        return (*once, _columns(x, thread, extent, groups, alone))
    first, past, step = (ir.Var(fresh(name, taken), INT) for name in (f"from_{x}", f"past_{x}", f"step_{x}"))
    here, test = together.first, together.test
    one_by_one: Body = (
        ir.Declare(first.name, INT, ir.Conditional(test, here, thread, INT)),
        ir.Declare(past.name, INT, ir.Conditional(test, ir.binary("+", here, ir.IntConst(columns.count)), extent, INT)),
        ir.Declare(step.name, INT, ir.Conditional(test, ir.IntConst(1), groups, INT)),
        _columns(x, first, extent, step, alone, past),
    )
    if together.some:
        one_by_one = (ir.If(ir.binary("||", ir.Unary("!", test, INT), every(together.some)), one_by_one),)
    return (*once, *together.before, ir.If(every((test, *together.tests)), together.body, one_by_one))


def _columns(
    variable: str, first: ir.Expr, extent: ir.Expr, step: ir.Expr, body: Body, past: ir.Expr | None = None
) -> ir.For:
    column = ir.Var(variable, INT)
    test = ir.binary("<", column, extent)
    if past is not None:
        test = ir.binary("&&", test, ir.binary("<", column, past))
    return ir.For(ir.Declare(variable, INT, first), test, ir.Assign(column, "+", step), body, copies=ir.ROLLED)


class _Together(Struct, frozen=True):
    """All columns and rows side by side: ``body`` runs where ``test``, the same in all threads, and ``tests`` hold.

    ``before`` declares what these conditions read, ``first`` the first column among it.  Where ``test`` holds and
    ``some`` do not, nothing of a thread runs.
    """

    before: Body
    first: ir.Var
    test: ir.Var
    tests: tuple[ir.Expr, ...]
    some: tuple[ir.Expr, ...]
    body: Body


class _Nest(Struct, frozen=True):
    """What rows and columns do, where they are and by which names, and scalars around it as polynomials."""

    columns: Several
    rows: Sequence[Several]
    parts: Rows
    firsts: Mapping[str, ir.Var]
    places: Mapping[str, Sequence[ir.Expr]]
    known: Mapping[str, Polynomial]
    around: Around


class _Side(Struct, frozen=True):
    """Code of all rows and columns, which is right where ``tests`` hold and ``divided`` are multiples of numbers."""

    body: Body
    tests: tuple[ir.Expr, ...]
    divided: Mapping[str, int]


def _together(columns: Several, rows: Sequence[Several], once: Body, body: Body, around: Around) -> _Together | None:
    """Return all columns and rows side by side; ``None`` where they cannot be, or vector accesses do not pay."""
    taken = around.taken
    loops = [*rows, columns]
    parts = rows_of(body, {one.loop.var for one in loops})
    if not can_run_together(parts.body, around.own):
        return None
    firsts = {one.loop.var: ir.Var(fresh(f"first_{one.loop.var}", taken), INT) for one in loops}
    places = {one.loop.var: [_place(firsts[one.loop.var], number) for number in range(one.count)] for one in loops}
    nest = _Nest(columns, rows, parts, firsts, places, _known(once, firsts, columns), around)
    row = None if len(rows) != 1 else _mask(nest, rows[0].loop.var)
    edges = [(columns.loop.var, -1), *((one.loop.var, 0) for one in loops)]
    found = [(variable, _edge(nest, variable, runs)) for variable, runs in edges]
    some = [test for variable, edge in found if edge is not None for test in edge.one_runs(nest, variable)]
    if found[0][1] is not None and len(rows) == 1:
        # Columns that begin within a vector, as a rule with rows that end within a group, and blocks behind both.
        row = row or _edge(nest, rows[0].loop.var, 0)
    side = _side(nest, None)
    if side is None:
        return None
    but_one = None if row is None else _side(nest, row)
    if but_one is not None:
        tests = [one for one in side.tests if one not in but_one.tests]
        names = {**side.divided, **but_one.divided}
        divided = {name: max(one.divided.get(name, 1) for one in (side, but_one)) for name in names}
        side = _Side((ir.If(every(tests), side.body, but_one.body),), but_one.tests, divided)
    test = ir.Var(fresh("together", taken), INT)
    conditions: list[ir.Expr] = [ir.Call(ALIGNED, (), INT)]
    conditions += [divides(multiple, ir.Var(name, INT)) for name, multiple in side.divided.items()]
    ends = [
        ir.binary("<=", ir.binary("+", firsts[one.loop.var], ir.IntConst(one.count)), one.loop.extent)
        for one in loops
        if not (isinstance(one.loop.extent, ir.IntConst) and one.loop.extent.value % one.count == 0)
    ]
    before = [ir.Declare(firsts[one.loop.var].name, INT, one.first) for one in loops]
    return _Together(
        (*before, ir.Declare(test.name, INT, every(conditions))),
        firsts[columns.loop.var],
        test,
        (*ends, *parts.same, *side.tests),
        tuple(some),
        side.body,
    )


def _side(nest: _Nest, row: _Mask | None) -> _Side | None:
    """Return rows and columns side by side, of which ``row`` may leave out a row; ``None`` where that does not pay."""
    columns, parts, taken = nest.columns, nest.parts, nest.around.taken
    x = columns.loop.var
    column = _mask(nest, x) or _edge(nest, x, -1)
    tests = _tests(nest, [one.test for one in (column, row) if one is not None])
    if tests is None:
        return None
    straight = stored_in_any_case(loads_first(parts.body, written_in(parts.body), taken, in_loops=True))
    shared: list[ir.Stmt] = []
    copies: list[Body] = []
    asked: dict[str, int] = {}
    hidden = {stmt.name for stmt in ir.walk_statements(straight) if isinstance(stmt, ir.Declare)}
    free = [name for name in nest.around.scalars if name not in hidden]
    places, running = _rows(nest, row, shared)
    if row is not None:
        tests += row.one_runs(nest, nest.rows[0].loop.var)
    for place in places:
        same, other = computed_once(copied(straight, place, taken), {x})
        shared += same
        for number, one in enumerate(nest.places[x]):
            walks = Walks(x, nest.firsts[x], number, columns.count, nest.known, free)
            copies.append(copied(walks.of_column(other), {x: one}, taken))
            asked |= dict.fromkeys(walks.multiples, columns.count)
    code = four_at_a_time((*shared, *side_by_side(copies)), nest.known, nest.around.arrays, taken)
    code = with_shared_loads(code, taken)
    begins = {**dict.fromkeys(nest.around.arrays, Polynomial()), **nest.around.shared}
    vectors = with_vectors(code, nest.known, nest.around.scalars, begins, columns.count, taken)
    if not vectors.pays:
        return None
    divided = {name: max(asked.get(name, 1), vectors.divided.get(name, 1)) for name in {**vectors.divided, **asked}}
    if column is None and row is None:
        return _Side(vectors.body, tuple(tests), divided)
    mask = None
    if column is not None:
        (each,) = of_all(column.test, parts.scalars, x, nest.places[x])
        ones = [inlined(column.test, parts.scalars, {x: one}) for one in nest.places[x]]
        mask = ColumnMask(nest.firsts[x], each, ones, start=column.runs is not None)
    chosen = masked(vectors.body, columns.count, mask, running)
    if chosen is not None:
        some = [] if column is None else column.one_runs(nest, x)
        return _Side(chosen, (*tests, *some), divided)
    if mask is None or row is not None:
        return None
    return _Side(vectors.body, (*tests, mask.every), divided)


def _rows(nest: _Nest, row: _Mask | None, before: list[ir.Stmt]) -> tuple[list[dict[str, ir.Expr]], list[ir.Expr]]:
    """Return where rows are, and where there is a test that may leave out some of them, the tests of all.

    What does not run then does what another one does, and stores nothing; ``before`` grows by where that is.
    """
    names = [one.loop.var for one in nest.rows]
    if row is None:
        return [dict(zip(names, each, strict=True)) for each in product(*(nest.places[name] for name in names))], []
    (y,) = names
    own = nest.places[y]
    tests = [inlined(row.test, nest.parts.scalars, {y: one}) for one in own]
    places: list[dict[str, ir.Expr]] = []
    for number, (test, one) in enumerate(zip(tests, own, strict=True)):
        if number == row.runs:
            places.append({y: one})
            continue
        other = row.runs if row.runs is not None else number + 1 if number + 1 < len(own) else number - 1
        running = ir.Var(fresh(f"running_{y}", nest.around.taken), INT)
        before.append(ir.Declare(running.name, INT, ir.Conditional(test, one, own[other], INT)))
        places.append({y: running})
    return places, tests


def _place(first: ir.Expr, number: int) -> ir.Expr:
    return first if number == 0 else ir.binary("+", first, ir.IntConst(number))


class _Mask(Struct, frozen=True):
    """A test by which some rows, or columns, do not run: one at most, or those before, or behind, one that ``runs``."""

    test: ir.Binary
    runs: int | None = None

    def one_runs(self, nest: _Nest, variable: str) -> list[ir.Expr]:
        """Return what has to hold for one row, or column, to run."""
        if self.runs is None:
            return []
        return [inlined(self.test, nest.parts.scalars, {variable: nest.places[variable][self.runs]})]


def _mask(nest: _Nest, variable: str) -> _Mask | None:
    """Return the one test by which one row, or column, at most does not run: that it is another one."""
    found = [test for test in _steady(nest, variable) if test.op == "!="]
    return _Mask(found[0]) if len(found) == 1 else None


def _edge(nest: _Nest, variable: str, runs: int) -> _Mask | None:
    """Return the one test that the last column, or the first row, passes where any does."""
    up, down = ((">", ">="), ("<", "<=")) if runs else (("<", "<="), (">", ">="))
    found = [
        test
        for test in _steady(nest, variable)
        if test.op in (up if (slope(test, nest.parts.scalars, variable) or 0) > 0 else down)
    ]
    return _Mask(found[0], runs) if len(found) == 1 else None


def _steady(nest: _Nest, variable: str) -> list[ir.Binary]:
    """Return the comparisons of what grows evenly with rows, or columns, alone."""
    return [
        test
        for test in nest.parts.tests
        if isinstance(test, ir.Binary)
        and slope(test, nest.parts.scalars, variable)
        and _varying(nest, test) == [variable]
    ]


def _varying(nest: _Nest, test: ir.Expr) -> list[str]:
    """Return the loops, of rows and of columns, in whose iterations a test may be another."""
    names = variables(inlined(test, nest.parts.scalars, {}))
    return [name for name in nest.places if name in names]


def _tests(nest: _Nest, masks: Sequence[ir.Expr]) -> list[ir.Expr] | None:
    """Return what has to hold for all rows and columns to run, masks apart; ``None`` where that is too much to ask."""
    parts, places = nest.parts, nest.places
    result: list[ir.Expr] = []
    for test in (one for one in parts.tests if not any(one is mask for mask in masks)):
        varying = _varying(nest, test)
        match varying:
            case []:
                result.append(inlined(test, parts.scalars, {}))
            case [name]:
                result += of_all(test, parts.scalars, name, places[name])
            case _:
                every_place = [
                    dict(zip(varying, values, strict=True)) for values in product(*(places[n] for n in varying))
                ]
                if len(every_place) > LARGEST_TEST // 4:
                    return None
                result += [inlined(test, parts.scalars, place) for place in every_place]
    return result


def _known(once: Body, firsts: Mapping[str, ir.Var], columns: Several) -> dict[str, Polynomial]:
    """Return scalars as polynomials: those that all rows and columns share, and the first column."""
    known: dict[str, Polynomial] = {}
    for stmt in once:
        if isinstance(stmt, ir.Declare):
            value = (
                None if stmt.value is None or stmt.type is not INT else exact_polynomial(stmt.value, known, frozenset())
            )
            alike = is_alike(stmt.value, known, frozenset())
            symbol = Polynomial.symbol(stmt.name if alike else f"{THREAD} {stmt.name}")
            known[stmt.name] = symbol if value is None else value
    known[firsts[columns.loop.var].name] = Polynomial.symbol(THREAD) * columns.count
    return known
