"""Columns: one thread runs several neighbouring iterations of the innermost thread loop, with vector accesses.

``before --> after``, for 4 columns a thread::

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
by one.  ``metafork.lowering.coarsening`` says why that is legal, for rows and columns alike, and runs several rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import product

from metafork.algebra.polynomial import Polynomial
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import ALIGNED
from metafork.ir.names import fresh
from metafork.ir.program import (
    Assign,
    Binary,
    Call,
    Cast,
    Conditional,
    Declare,
    Expr,
    For,
    If,
    IntConst,
    MetaFor,
    Stmt,
    Var,
    binary,
)
from metafork.ir.rewriting import variables
from metafork.lazy_dataclass import dataclass
from metafork.lowering.ahead import four_at_a_time
from metafork.lowering.coarsening import (
    LARGEST_TEST,
    Rows,
    can_run_together,
    coarsened,
    computed_once,
    every,
    inlined,
    loads_first,
    of_all,
    rows_of,
    slope,
    written_in,
)
from metafork.lowering.jam import copied, side_by_side
from metafork.lowering.masks import masked, stored_in_any_case
from metafork.lowering.shared_loads import exact_polynomial, with_shared_loads
from metafork.lowering.vectors import THREAD, with_vectors

INT = ScalarType.INT
Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Several:
    """A thread loop of which a thread, whose built-in index is given, runs ``count`` neighbouring iterations."""

    loop: MetaFor
    thread: Expr
    count: int

    @property
    def first(self) -> Expr:
        """The first of them."""
        return binary("*", Cast(INT, self.thread), IntConst(self.count))


@dataclass(frozen=True, slots=True)
class Around:
    """What columns have to know of the kernel around them.

    ``own`` are arrays of a thread, ``arrays`` those in global memory, ``scalars`` the ``int`` arguments of the kernel.
    ``taken`` grows by new names.
    """

    own: Set[str]
    arrays: Set[str]
    scalars: Sequence[str]
    taken: set[str]


def in_columns(columns: Several, rows: Several | None, body: Body, around: Around) -> Body:
    """Return what a thread of a phase does that has a column, and a row where there are some."""
    taken = around.taken
    loops = {one.loop.var for one in (columns, rows) if one is not None}
    once, rest = computed_once(body, loops)
    alone = rest if rows is None else coarsened(rows.loop, rows.thread, rows.count, rest, around.own, taken)
    x, extent, thread = columns.loop.var, columns.loop.extent, Cast(INT, columns.thread)
    groups = binary("/", binary("+", extent, IntConst(columns.count - 1)), IntConst(columns.count))
    together = _together(columns, rows, once, rest, around)
    if together is None:
        return (*once, _columns(x, thread, extent, groups, alone))
    first, past, step = (Var(fresh(name, taken), INT) for name in (f"from_{x}", f"past_{x}", f"step_{x}"))
    here, test = together.first, together.test
    one_by_one: Body = (
        Declare(first.name, INT, Conditional(test, here, thread, INT)),
        Declare(past.name, INT, Conditional(test, binary("+", here, IntConst(columns.count)), extent, INT)),
        Declare(step.name, INT, Conditional(test, IntConst(1), groups, INT)),
        _columns(x, first, extent, step, alone, past),
    )
    return (*once, *together.before, If(every((test, *together.tests)), together.body, one_by_one))


def _columns(variable: str, first: Expr, extent: Expr, step: Expr, body: Body, past: Expr | None = None) -> For:
    column = Var(variable, INT)
    test = binary("<", column, extent)
    if past is not None:
        test = binary("&&", test, binary("<", column, past))
    return For(Declare(variable, INT, first), test, Assign(column, "+", step), body, rolled=True)


@dataclass(frozen=True, slots=True)
class _Together:
    """All columns and rows side by side: ``body`` runs where ``test``, the same in all threads, and ``tests`` hold.

    ``before`` declares what these conditions read, ``first`` the first column among it.
    """

    before: Body
    first: Var
    test: Var
    tests: tuple[Expr, ...]
    body: Body


def _together(columns: Several, rows: Several | None, once: Body, body: Body, around: Around) -> _Together | None:
    """Return all columns and rows side by side; ``None`` where they cannot be, or vector accesses do not pay."""
    taken = around.taken
    loops = [one for one in (rows, columns) if one is not None]
    parts = rows_of(body, {one.loop.var for one in loops})
    if not can_run_together(parts.body, around.own):
        return None
    firsts = {one.loop.var: Var(fresh(f"first_{one.loop.var}", taken), INT) for one in loops}
    places = {one.loop.var: [_place(firsts[one.loop.var], number) for number in range(one.count)] for one in loops}
    mask = _mask(parts, columns.loop.var)
    tests = _tests(parts, places, mask)
    if tests is None:
        return None
    straight = stored_in_any_case(loads_first(parts.body, written_in(parts.body), taken))
    shared: list[Stmt] = []
    copies: list[Body] = []
    for row in [{}] if rows is None else [{rows.loop.var: place} for place in places[rows.loop.var]]:
        same, other = computed_once(copied(straight, row, taken), {columns.loop.var})
        shared += same
        copies += [copied(other, {columns.loop.var: place}, taken) for place in places[columns.loop.var]]
    known = _known(once, firsts, columns)
    side = four_at_a_time((*shared, *side_by_side(copies)), known, around.arrays, taken)
    side = with_shared_loads(side, taken)
    vectors = with_vectors(side, known, around.scalars, around.arrays, columns.count, taken)
    if not vectors.pays:
        return None
    side = vectors.body
    if mask is not None:
        own = places[columns.loop.var]
        (each,) = of_all(mask, parts.scalars, columns.loop.var, own)
        chosen = masked(
            side,
            firsts[columns.loop.var],
            columns.count,
            each,
            lambda number: inlined(mask, parts.scalars, {columns.loop.var: own[number]}),
        )
        if chosen is None:
            tests.append(each)
        else:
            side = chosen
    test = Var(fresh("together", taken), INT)
    conditions: list[Expr] = [Call(ALIGNED, (), INT)]
    conditions += [
        binary("==", binary("%", Var(name, INT), IntConst(multiple)), IntConst(0))
        for name, multiple in vectors.divided.items()
    ]
    ends = [
        binary("<=", binary("+", firsts[one.loop.var], IntConst(one.count)), one.loop.extent)
        for one in loops
        if not (isinstance(one.loop.extent, IntConst) and one.loop.extent.value % one.count == 0)
    ]
    before = [Declare(firsts[one.loop.var].name, INT, one.first) for one in loops]
    return _Together(
        (*before, Declare(test.name, INT, every(conditions))),
        firsts[columns.loop.var],
        test,
        (*ends, *parts.same, *tests),
        side,
    )


def _place(first: Expr, number: int) -> Expr:
    return first if number == 0 else binary("+", first, IntConst(number))


def _mask(parts: Rows, column: str) -> Expr | None:
    """Return the one test by which one column at most does not run: that it is another one."""
    found = [
        test
        for test in parts.tests
        if isinstance(test, Binary) and test.op == "!=" and slope(test, parts.scalars, column)
    ]
    return found[0] if len(found) == 1 else None


def _tests(parts: Rows, places: Mapping[str, Sequence[Expr]], mask: Expr | None) -> list[Expr] | None:
    """Return what has to hold for all rows and columns to run, a mask apart; ``None`` where that is too much to ask."""
    result: list[Expr] = []
    for test in (one for one in parts.tests if one is not mask):
        varying = [name for name in places if name in variables(inlined(test, parts.scalars, {}))]
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


def _known(once: Body, firsts: Mapping[str, Var], columns: Several) -> dict[str, Polynomial]:
    """Return scalars as polynomials: those that all rows and columns share, and the first column."""
    known: dict[str, Polynomial] = {}
    for stmt in once:
        if isinstance(stmt, Declare):
            value = (
                None if stmt.value is None or stmt.type is not INT else exact_polynomial(stmt.value, known, frozenset())
            )
            known[stmt.name] = Polynomial.symbol(f"{THREAD} {stmt.name}") if value is None else value
    known[firsts[columns.loop.var].name] = Polynomial.symbol(THREAD) * columns.count
    return known
