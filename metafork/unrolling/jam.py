"""Unroll and jam, carried out: copies of a loop's body side by side (``metafork.transform.unroll_and_jam``).

``before --> after``, for 4 iterations together::

    for (int w = 0; w < s; w++) {                  for (int w = 0; w < s / 4 * 4; w += 4) {
      float c0 = c[q + w];                           float c0 = c[q + w];  ...  float c0_4 = c[q + w + 3];
      for (int z = 0; z < K; z++)                    for (int z = 0; z < K; z++) {
        c0 += a[z] * b[z][w];            -->           c0 += a[z] * b[z][w];  ...  c0_4 += a[z] * b[z][w + 3];
      c[q + w] = c0;                                 }
    }                                                c[q + w] = c0;  ...  c[q + w + 3] = c0_4;
                                                   }
                                                   for (int w = s / 4 * 4; w < s; w++) ...   as before
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.names import fresh
from metafork.ir.rewriting import substitute

INT = ScalarType.INT
Body = tuple[ir.Stmt, ...]


def jammed(loop: ir.For, factor: int, taken: set[str]) -> Body:
    """Return a loop of a kernel with so many iterations together, and the loop over those that are left.

    Of one that has ``factor`` iterations only its body is left.  ``taken`` grows by the names of scalars.
    """
    init, condition, step = loop.init, loop.condition, loop.step
    assert isinstance(init, ir.Declare)
    assert isinstance(condition, ir.Binary)
    assert step is not None
    variable, limit = ir.Var(init.name, init.type), condition.right
    whole = isinstance(limit, ir.IntConst) and limit.value == factor
    copies = []
    for number in range(factor):
        shifted: ir.Expr = ir.IntConst(number)
        if not whole:
            shifted = variable if number == 0 else ir.binary("+", variable, ir.IntConst(number))
        copies.append(copied(loop.body, {variable.name: shifted}, taken))
    body = side_by_side(copies)
    if whole:
        return body
    even = ir.binary("*", ir.binary("/", limit, ir.IntConst(factor)), ir.IntConst(factor))
    main = replace(
        loop, condition=ir.binary("<", variable, even), step=replace(step, value=ir.IntConst(factor)), body=body
    )
    if isinstance(limit, ir.IntConst) and limit.value % factor == 0:
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
