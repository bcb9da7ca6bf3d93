"""Thread coarsening: one thread runs several consecutive iterations of an outer thread loop.

``before --> after``, for 4 rows a thread::

    int v = threadIdx.y;                           int first = threadIdx.y * 4;
    int x = p * B1 + u;                            int x = p * B1 + u;
    int y = i * B0 + v;                            if (x < n) {
    if (x < n && y < n)                   -->        if (first + 4 <= B0 && i * B0 + first < n && ...) {
      a[y][x] -= a[y][k] * a[k][x];                    int y = i * B0 + first;  ...  int y_4 = i * B0 + (first + 3);
                                                       float t = a[y][k];  ...  a[y][x] = t_3 - t * t_2;  ...
                                                     } else
                                                       for (int v = first; v < B0 && v < first + 4; v++) ...   as before
                                                   }

Scalars and conditions that are the same in all rows are computed once.  Where all rows run, they run side by side: of
each statement first what the rows load, then what they compute and store; so what several of them load is loaded once,
and their addresses have one base.  After Magni, Dubach and O'Boyle, "A large-scale cross-architecture evaluation of
thread-coarsening" (SC 2013).

Legality.  Iterations of the thread loops of one phase are independent (that is what ``meta_for`` promises): none
touches what another one writes before the next barrier, so they may run in any interleaving that keeps the order
within each.  A thread has at least one row, so what is computed once was computed before.  Scalars of thread code live
within one iteration, and each row has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.counted_loops import conjuncts
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.marks import can_run_together
from metafork.ir.names import fresh
from metafork.ir.rewriting import arrays_read, assigned_variables, inlined, map_expression, variables
from metafork.ir.visitor import Rewriter, changed
from metafork.unrolling.ahead import unrolls
from metafork.unrolling.jam import copied, side_by_side
from metafork.unrolling.shared_loads import exact_polynomial, read_always, with_shared_loads

INT = ScalarType.INT
Body = tuple[ir.Stmt, ...]
LARGEST_TEST = 64
"""Operands and operations of a row's condition, written out, that is asked of all rows together."""


def coarsened(
    loop: ir.MetaFor, thread: ir.Expr, count: int, body: Body, own: Set[str], taken: set[str], number: str | None = None
) -> Body:
    """Return what a thread of a phase does that runs ``count`` iterations of ``loop``, whose ``body`` is given.

    ``thread`` is its built-in index, and has a row in ``loop``; ``own`` are the arrays of a thread.  ``number`` is the
    scalar by which the body names the row of a thread, from 0: where rows run side by side no loop over them is left
    then, so that what a thread keeps of each has a constant place.  ``taken`` grows by new names.
    """
    first = ir.Var(fresh(f"first_{loop.var}", taken), INT)
    varying = {loop.var} if number is None else {loop.var, number}
    once, rest = computed_once(body, varying)
    rows = rows_of(rest, varying)
    row, after = ir.Var(loop.var, INT), ir.binary("+", first, ir.IntConst(count))
    alone = rows.body if not rows.tests else (*rows.scalars, ir.If(every(rows.tests), rows.body[len(rows.scalars) :]))
    places: list[ir.Expr] = [first, *(ir.binary("+", first, ir.IntConst(more)) for more in range(1, count))]
    values = [
        {loop.var: place} | ({} if number is None else {number: ir.IntConst(k)}) for k, place in enumerate(places)
    ]
    aside = can_run_together(rows.body, own)
    if number is not None and aside:
        few = rarely_run(alone)
        each: Body = tuple(ir.If(ir.binary("<", one[loop.var], loop.extent), copied(few, one, taken)) for one in values)
    else:
        counted = () if number is None else (ir.Declare(number, INT, ir.binary("-", row, first)),)
        within = ir.binary("&&", ir.binary("<", row, loop.extent), ir.binary("<", row, after))
        step = ir.Assign(row, "+", ir.IntConst(1))
        each = (ir.For(ir.Declare(loop.var, INT, first), within, step, (*counted, *alone), copies=ir.ROLLED),)
    together = each
    if aside:
        straight = loads_first(rows.body, written_in(body), taken)
        copies = [copied(straight, one, taken) for one in values]
        tests = [one for test in rows.tests for one in of_all(test, rows.scalars, loop.var, places)]
        if not (isinstance(loop.extent, ir.IntConst) and loop.extent.value % count == 0):
            tests.insert(0, ir.binary("<=", after, loop.extent))
        side = with_shared_loads(side_by_side(copies), taken)
        together = (ir.If(every(tests), side, each),) if tests else side
    if rows.same:
        together = (ir.If(every(rows.same), together),)
    return (ir.Declare(first.name, INT, ir.binary("*", ir.Cast(INT, thread), ir.IntConst(count))), *once, *together)


def rarely_run(body: Body) -> Body:
    """Return a body with its loops left as loops: what is left over of a tile pays for no code of several trips."""
    return _RarelyRun().body(body)


class _RarelyRun(Rewriter):
    def loop(self, node: ir.For) -> ir.For:
        few = node.copies or unrolls(node)
        return changed(node, body=self.body(node.body), copies=node.copies if few else ir.ROLLED)


class Rows(Struct, frozen=True):
    """What a row does: ``body``, where conditions hold that are the ``same`` in all rows, and its own ``tests``.

    ``scalars`` are the first statements of the body, which the tests may read.
    """

    body: Body
    same: tuple[ir.Expr, ...] = ()
    tests: tuple[ir.Expr, ...] = ()
    scalars: Body = ()


def computed_once(body: Body, loops: Set[str]) -> tuple[Body, Body]:
    """Split off the scalars that depend neither on the variables of ``loops``, nor on what the body writes."""
    written, changed, varying = written_in(body), assigned_variables(body), set(loops)
    once: list[ir.Stmt] = []
    rest: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.Declare(name=name, value=value) if (
                value is not None
                and name not in changed
                and not variables(value) & varying
                and not arrays_read(value) & written
            ):
                once.append(stmt)
                continue
            case ir.Declare(name=name):
                varying.add(name)
            case _:
                pass
        rest.append(stmt)
    return tuple(once), tuple(rest)


def rows_of(body: Body, loops: Set[str]) -> Rows:
    """Take apart a body that is one condition behind scalars; ``loops`` are what is another in each row."""
    match body:
        case (*scalars, ir.If(condition=condition, then=then, otherwise=())) if all(
            isinstance(one, ir.Declare) for one in scalars
        ):
            pass
        case _:
            return Rows(body)
    names = loops | {one.name for one in scalars if isinstance(one, ir.Declare)}
    changing = assigned_variables(then)
    definitions = {
        one.name: one.value
        for one in scalars
        if isinstance(one, ir.Declare) and one.value is not None and one.name not in changing and is_plain(one.value)
    }
    parts = list(conjuncts(condition))
    same = tuple(part for part in parts if is_plain(part) and not variables(part) & names)
    own = tuple(part for part in parts if part not in same)
    sizes = dict.fromkeys(loops, 1)
    for name, value in definitions.items():
        if variables(value) & names <= sizes.keys():
            sizes[name] = _size(value, sizes)
    if all(
        is_plain(part) and variables(part) & names <= sizes.keys() and _size(part, sizes) <= LARGEST_TEST
        for part in own
    ):
        return Rows((*scalars, *then), same, own, tuple(scalars))
    inner = ir.If(every(own), then) if own else None
    return Rows((*scalars, *(then if inner is None else (inner,))), same)


def _size(expr: ir.Expr, sizes: Mapping[str, int]) -> int:
    """Return how large an expression is with scalars replaced by what they are."""
    return sum(sizes.get(part.name, 1) if isinstance(part, ir.Var) else 1 for part in ir.walk_expression(expr))


def is_plain(expr: ir.Expr) -> bool:
    """Say whether an expression may be evaluated before the conditions that stand before it."""
    return not any(
        isinstance(part, ir.Element | ir.Call) or (isinstance(part, ir.Binary) and part.op in ("/", "%"))
        for part in ir.walk_expression(expr)
    )


def every(conditions: Sequence[ir.Expr]) -> ir.Expr:
    """Return the conjunction of at least one condition."""
    result, *others = conditions
    for other in others:
        result = ir.binary("&&", result, other)
    return result


def of_all(test: ir.Expr, scalars: Body, variable: str, places: Sequence[ir.Expr]) -> list[ir.Expr]:
    """Return conditions under which a test holds in all rows: of those at the ends where rows go up or down."""
    first, *_, last = (inlined(test, scalars, {variable: place}) for place in places)
    match test:
        case ir.Binary(op="<" | "<=" | ">" | ">=" | "!=" as op) if grows := slope(test, scalars, variable):
            if op != "!=":
                return [last if (op in ("<", "<=")) == (grows > 0) else first]
            before, behind = ("<", ">") if grows > 0 else (">", "<")
            assert isinstance(first, ir.Binary)
            assert isinstance(last, ir.Binary)
            return [
                ir.binary("||", ir.binary(before, last.left, last.right), ir.binary(behind, first.left, first.right))
            ]
        case _:
            return [inlined(test, scalars, {variable: place}) for place in places]


def slope(test: ir.Binary, scalars: Body, variable: str) -> Fraction | None:
    """Return by how much the left side minus the right one grows from row to row, where that is a constant."""
    known: dict[str, Polynomial] = {}
    changing: set[str] = set()
    for one in scalars:
        if isinstance(one, ir.Declare):
            value = None if one.value is None or one.type is not INT else exact_polynomial(one.value, known, changing)
            if value is None:
                changing.add(one.name)
            else:
                known[one.name] = value
    sides = [exact_polynomial(side, known, changing) for side in (test.left, test.right)]
    if sides[0] is None or sides[1] is None:
        return None
    apart = sides[0] - sides[1]
    grows = apart.substitute({variable: Polynomial.symbol(variable) + 1}) - apart
    return grows.constant_value() if grows.is_constant else None


def written_in(body: Body) -> frozenset[str]:
    """Return the memories that a body stores to."""
    return frozenset(
        stmt.target.array
        for stmt in ir.walk_statements(body)
        if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Element)
    )


def loads_first(body: Body, written: Set[str], taken: set[str], *, in_loops: bool = False) -> Body:
    """Read what a statement reads of memory that the body writes into scalars before it, ``in_loops`` or not."""
    result: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.Assign(target=ir.Element() as target, op=op, value=value, atomic=False):
                if op and op not in _COMPOUND:
                    result.append(stmt)
                    continue
                whole = ir.binary(op, target, value) if op else value
                loads, new = _loaded(whole, written, taken)
                result += [*loads, replace(stmt, op="", value=new) if loads else stmt]
            case ir.If(condition=condition):
                loads, new = _loaded(condition, written, taken)
                result += [*loads, replace(stmt, condition=new)]
            case ir.For(body=inner) if in_loops:
                result.append(changed(stmt, body=loads_first(inner, written, taken, in_loops=True)))
            case _:
                result.append(stmt)
    return tuple(result)


_COMPOUND = frozenset({"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"})


def _loaded(expr: ir.Expr, written: Set[str], taken: set[str]) -> tuple[list[ir.Stmt], ir.Expr]:
    """Return declarations of what an expression reads in any case, and the expression with their scalars."""
    names: dict[ir.Element, ir.Var] = {}
    for element in read_always(expr):
        if element.array in written and element not in names:
            names[element] = ir.Var(fresh("loaded", taken), element.type)
    declared: list[ir.Stmt] = [ir.Declare(variable.name, variable.type, element) for element, variable in names.items()]
    return declared, map_expression(expr, lambda part: names.get(part) if isinstance(part, ir.Element) else None)
