"""What of an array of a block is read behind a loop: only its first element, or others too.

A tree leaves its result in the first element of an array.  Where no other one is read before all are written again,
the steps of the tree may leave anything there.
"""

from __future__ import annotations

from enum import Enum

from metafork.ir import program as ir

Body = tuple[ir.Stmt, ...]
FIRST = (ir.IntConst(0),)


class _Use(Enum):
    """How a list of statements uses elements but the first: it reads them, writes all before, or neither."""

    READ, WRITTEN, NEITHER = "read", "written", "neither"


def first_alone(program: ir.Program, loop: ir.For, array: ir.Array) -> bool:
    """Say whether behind a block-level loop only the first element of an array of the block is read as it is then."""
    behind = _behind(program.body, loop)
    return behind is not None and len(array.extents) == 1 and _use(behind, array) is not _Use.READ


def _behind(body: Body, loop: ir.For) -> Body | None:
    """Return what may run behind a loop that stands in a body; what repeats it may run again as a whole."""
    for place, stmt in enumerate(body):
        if stmt is loop:
            return body[place + 1 :]
        match stmt:
            case ir.For(body=inner) | ir.While(body=inner):
                within = _behind(inner, loop)
                within = None if within is None else (*within, stmt)
            case ir.If(then=then, otherwise=otherwise):
                inside = _behind(then, loop)
                within = _behind(otherwise, loop) if inside is None else inside
            case _:
                continue
        if within is not None:
            return (*within, *body[place + 1 :])
    return None


def _use(body: Body, array: ir.Array) -> _Use:
    for stmt in body:
        match stmt:
            case ir.Phase(threads=(thread,), body=inner) if _writes_all(inner, thread, array):
                return _Use.WRITTEN
            case ir.For(body=inner, init=init, step=step):
                heads = [one for one in (stmt, init, step) if one is not None]
                if any(_reads(one, array) for one in heads) or _use(inner, array) is _Use.READ:
                    return _Use.READ
            case ir.While(body=inner):
                if _reads(stmt, array) or _use(inner, array) is _Use.READ:
                    return _Use.READ
            case ir.If(then=then, otherwise=otherwise):
                if _reads(stmt, array) or _Use.READ in (_use(then, array), _use(otherwise, array)):
                    return _Use.READ
            case _:
                if any(_reads(one, array) for one in ir.walk_statements((stmt,))):
                    return _Use.READ
    return _Use.NEITHER


def _writes_all(body: Body, thread: ir.MetaFor, array: ir.Array) -> bool:
    """Say whether each thread writes its own element before it reads any but the first, and each element has one."""
    own = (ir.Var(thread.var, thread.type),)
    if thread.extent != array.extents[0]:
        return False
    for stmt in body:
        parts = ir.walk_statements((stmt,))
        if any(isinstance(one, ir.Break | ir.Continue) or _reads(one, array) for one in parts):
            return False
        match stmt:
            case ir.Assign(target=ir.Element(array=name, indices=indices), op="", atomic=False):
                if name == array.name and indices == own:
                    return True
            case _:
                pass
    return False


def _reads(stmt: ir.Stmt, array: ir.Array) -> bool:
    """Say whether a statement itself reads an element that may be another one than the first."""
    match stmt:
        case ir.Assign(target=ir.Element(indices=indices), op="", value=value):
            read: tuple[ir.Expr, ...] = (*indices, value)
        case _:
            read = ir.expressions_of(stmt)
    parts = [part for expr in read for part in ir.walk_expression(expr) if isinstance(part, ir.Element)]
    return any(part.array == array.name and part.indices != FIRST for part in parts)
