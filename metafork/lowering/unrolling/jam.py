"""Unroll and jam: several iterations of a thread's loop together, so that what they all load is loaded once.

``before --> after``, for 4 iterations together::

    for (int w = 0; w < s; w++) {                  for (int w = 0; w < s / 4 * 4; w += 4) {
      float c0 = c[q + w];                           float c0 = c[q + w];  ...  float c0_4 = c[q + w + 3];
      for (int z = 0; z < K; z++)                    for (int z = 0; z < K; z++) {
        c0 += a[z] * b[z][w];            -->           c0 += a[z] * b[z][w];  ...  c0_4 += a[z] * b[z][w + 3];
      c[q + w] = c0;                                 }
    }                                                c[q + w] = c0;  ...  c[q + w + 3] = c0_4;
                                                   }
                                                   for (int w = s / 4 * 4; w < s; w++) ...   as before

A loop of at most as many iterations, by a constant, becomes one iteration without the loop around it.  After Callahan,
Carr and Kennedy, "Improving register allocation for subscripted variables" (PLDI 1990).

Legality.  Iterations are *independent*: an array that one writes is accessed at one place only, whose index is another
in every iteration, whatever the iterations of loops inside (mixed radix); scalars that one assigns are its own; no
condition reads memory.  So iterations may run in any interleaving that keeps the order within each, and each element
sees its updates in the same order.  A loop that is not proved to be so stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from metafork.algebra.prover import Prover
from metafork.algebra.radix import is_mixed_radix
from metafork.analysis.references import Reference
from metafork.analysis.values.loop_ranges import LoopKind, LoopRange
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.names import fresh
from metafork.ir.rewriting import arrays_read, assigned_variables, substitute, variables

INT = ScalarType.INT
MOST_RESULTS = 16
"""Most iterations that nested loops run together."""

Body = tuple[ir.Stmt, ...]


class Jam(Struct, frozen=True):
    """How many iterations of a loop run together; ``whole``: these are all that it has."""

    factor: int
    whole: bool


def jam_of(loop: ir.For, references: Sequence[Reference], inside: int, most: int, prover: Prover) -> Jam | None:
    """Return how a thread's loop is unrolled and jammed; ``None`` where that is not proved legal or shares nothing.

    ``references`` are the accesses in it; ``inside`` is how many iterations the loops in it run together already.
    """
    variable = counter_of(loop)
    if variable is None or not _plain(loop.body):
        return None
    ranges = {range_ for one in references for range_ in one.loops if range_.var == variable}
    if len(ranges) != 1:
        return None
    (range_,) = ranges
    if range_.kind is not LoopKind.SERIAL or range_.low or range_.step != 1 or range_.inside or not range_.dense:
        return None
    written = {one.array for one in references if one.writes}
    if not all(_apart([one for one in references if one.array == array], range_, prover) for array in written):
        return None
    depth = {len(_within(one, range_)) for one in references}
    shared = any(
        one.array not in written and _within(one, range_) and all(variable not in i.symbols for i in one.indices if i)
        for one in references
        if None not in one.indices
    )
    if not shared or depth == {0}:
        return None
    if range_.trips is not None and range_.trips.is_constant:
        trips = int(range_.trips.constant_value())
        if 2 <= trips <= max(most, MOST_RESULTS // 2) and trips * inside <= MOST_RESULTS:
            return Jam(trips, True)
        if trips < most:
            return None
    return Jam(most, False) if most * inside <= MOST_RESULTS else None


def counter_of(loop: ir.For) -> str | None:
    """Return the variable of ``for (int w = 0; w < limit; w++)`` with a limit that the body leaves as it is."""
    match loop:
        case ir.For(
            init=ir.Declare(name=name, type=ScalarType.INT, value=ir.IntConst(value=0)),
            condition=ir.Binary(op="<", left=ir.Var(name=tested), right=limit),
            step=ir.Assign(target=ir.Var(name=stepped), op="+", value=ir.IntConst(value=1)),
        ) if name == tested == stepped and limit.type is INT and not arrays_read(limit):
            changed = assigned_variables(loop.body) | {
                s.name for s in ir.walk_statements(loop.body) if isinstance(s, ir.Declare)
            }
            return None if (variables(limit) | {name}) & changed else name
    return None


def _plain(body: Body) -> bool:
    """Say whether a body is straight but for loops and conditions on scalars, and assigns its own scalars only."""
    own = {stmt.name for stmt in ir.walk_statements(body) if isinstance(stmt, ir.Declare)}
    if not assigned_variables(body) <= own:
        return False
    for stmt in ir.walk_statements(body):
        match stmt:
            case ir.Declare() | ir.Assign():
                pass
            case ir.For(init=ir.Declare(), condition=condition) if condition is not None:
                if arrays_read(condition):
                    return False
            case ir.If(condition=condition):
                if arrays_read(condition):
                    return False
            case _:
                return False
    return True


def _within(reference: Reference, range_: LoopRange) -> tuple[LoopRange, ...]:
    """Return the loops of a reference inside a loop."""
    position = reference.loops.index(range_)
    return reference.loops[position + 1 :]


def _apart(references: Sequence[Reference], range_: LoopRange, prover: Prover) -> bool:
    """Say whether different iterations are proved to touch different elements of an array, by all these accesses."""
    first = references[0]
    for axis, index in enumerate(first.indices):
        if index is None or range_.var not in index.symbols:
            continue
        places = {
            (one.indices[axis], tuple(loop for loop in _within(one, range_) if loop.var in index.symbols))
            for one in references
        }
        digits = [range_, *(loop for loop in _within(first, range_) if loop.var in index.symbols)]
        if len(places) == 1 and is_mixed_radix(index, digits, prover):
            return True
    return False


def jammed(loop: ir.For, jam: Jam, taken: set[str]) -> Body:
    """Return a loop of a kernel with so many iterations together, and the loop over those that are left.

    ``taken`` grows by the names of scalars.
    """
    init, condition, step = loop.init, loop.condition, loop.step
    assert isinstance(init, ir.Declare)
    assert isinstance(condition, ir.Binary)
    assert step is not None
    variable = ir.Var(init.name, init.type)
    copies = []
    for number in range(jam.factor):
        shifted: ir.Expr = ir.IntConst(number)
        if not jam.whole:
            shifted = variable if number == 0 else ir.binary("+", variable, ir.IntConst(number))
        copies.append(copied(loop.body, {variable.name: shifted}, taken))
    body = side_by_side(copies)
    if jam.whole:
        return body
    limit = condition.right
    even = ir.binary("*", ir.binary("/", limit, ir.IntConst(jam.factor)), ir.IntConst(jam.factor))
    main = replace(
        loop, condition=ir.binary("<", variable, even), step=replace(step, value=ir.IntConst(jam.factor)), body=body
    )
    if isinstance(limit, ir.IntConst) and limit.value % jam.factor == 0:
        return (main,)
    return (main, replace(loop, init=replace(init, value=even)))


def side_by_side(copies: Sequence[Body]) -> Body:
    """Return copies of one body run side by side, statement by statement; equal heads of neighbours become one."""
    result: list[ir.Stmt] = []
    for stmts in zip(*copies, strict=True):
        for _, group in groupby(stmts, _head):
            result += _as_one(list(group))
    return tuple(result)


def _as_one(stmts: list[ir.Stmt]) -> list[ir.Stmt]:
    """Return loops, or conditions, with one head as one."""
    match stmts[0]:
        case ir.For() as first:
            return [replace(first, body=side_by_side([s.body for s in stmts if isinstance(s, ir.For)]))]
        case ir.If() as first:
            then = side_by_side([s.then for s in stmts if isinstance(s, ir.If)])
            otherwise = side_by_side([s.otherwise for s in stmts if isinstance(s, ir.If)])
            return [replace(first, then=then, otherwise=otherwise)]
        case _:
            return stmts


def _head(stmt: ir.Stmt) -> object:
    match stmt:
        case ir.For(init=init, condition=condition, step=step):
            return init, condition, step
        case ir.If(condition=condition):
            return condition
        case _:
            return None


def copied(body: Body, values: Mapping[str, ir.Expr], taken: set[str]) -> Body:
    """Return a body with scalars replaced, and other names for those that it declares outside of loops' heads."""
    inner = dict(values)
    result: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.Declare(name=name, type=type_, value=value):
                new = None if value is None else substitute(value, inner)
                own = fresh(name, taken)
                inner[name] = ir.Var(own, type_)
                result.append(ir.Declare(own, type_, new, stmt.span))
            case ir.Assign():
                result.append(_assigned(stmt, inner))
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                test = substitute(condition, inner)
                yes, no = copied(then, inner, taken), copied(otherwise, inner, taken)
                result.append(ir.If(test, yes, no, stmt.span, stmt.widened))
            case ir.For(init=ir.Declare() as init, condition=condition, step=step):
                head = {name: value for name, value in inner.items() if name != init.name}
                start = None if init.value is None else substitute(init.value, inner)
                test_or_none = None if condition is None else substitute(condition, head)
                again = None if step is None else _assigned(step, head)
                inside = copied(stmt.body, head, taken)
                begin = ir.Declare(init.name, init.type, start, init.span)
                result.append(ir.For(begin, test_or_none, again, inside, stmt.span, stmt.copies))
            case _:
                raise AssertionError(f"{type(stmt).__name__} in a loop that is unrolled")
    return tuple(result)


def _assigned(stmt: ir.Assign, values: Mapping[str, ir.Expr]) -> ir.Assign:
    target = substitute(stmt.target, values)
    assert isinstance(target, ir.Var | ir.Element)
    value = substitute(stmt.value, values)
    return ir.Assign(target, stmt.op, value, stmt.span, stmt.atomic, stmt.asynchronous)
