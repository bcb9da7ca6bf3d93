"""Bounds of the integers that a loop changes, which hold before, in and after it: ``1 <= h`` for ``h *= 2`` from 1 on.

Every assignment in the loop is taken to happen at any time, any number of times; bounds are widened until none breaks
them.  Arithmetic of signed types is taken not to overflow, as C demands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import add, floordiv, lshift, mul, rshift, sub

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType

Interval = tuple[int | None, int | None]
"""The least and the greatest value; ``None`` where there is no bound."""
UNBOUNDED: Interval = (None, None)
MOST_ROUNDS = 20
"""Walks over the assignments; with more, nothing is known."""


def loop_intervals(
    body: Sequence[ir.Stmt], start: Mapping[str, Interval], outside: Callable[[ir.Expr], Interval]
) -> Mapping[str, Interval]:
    """Return bounds of the scalars of ``start``, which have those bounds at first, for any run of ``body``.

    ``outside`` gives bounds of variables that the body neither declares nor assigns.
    """
    changes = _changes(body)
    local = {name for name, _, _ in changes} - start.keys()
    known: dict[str, Interval] = dict(start)
    for _ in range(MOST_ROUNDS):
        before = dict(known)
        for name, type_, value in changes:
            found = _bounds(value, known, local, outside)
            if found is not None:  # else it reads a local that no assignment reached yet
                new = _stored(found, value.type, type_)
                known[name] = _widened(known[name], new) if name in known else new
        if known == before:
            return {name: known[name] for name in start}
    return dict.fromkeys(start, UNBOUNDED)


def stored_interval(value: ir.Expr, type_: ScalarType, outside: Callable[[ir.Expr], Interval]) -> Interval:
    """Return bounds of what a scalar of some integer type has after an expression was assigned to it."""
    found = _bounds(value, {}, set(), outside)
    assert found is not None  # nothing is local
    return _stored(found, value.type, type_)


def never_grows(name: str, body: Sequence[ir.Stmt]) -> bool:
    """Say whether no assignment in a body makes a scalar, which never is negative there, larger."""
    return all(_no_more(name, type_, value) for changed, type_, value in _changes(body) if changed == name)


def _no_more(name: str, type_: ScalarType, value: ir.Expr) -> bool:
    match value:
        case ir.Binary(op=("/" | ">>") as op, left=ir.Var(name=left), right=ir.IntConst(value=number)):
            return left == name and number >= (0 if op == ">>" else 1) and type_.holds(value.type)
        case ir.Binary(op="-", left=ir.Var(name=left), right=ir.IntConst(value=number)):
            return left == name and number >= 0 and type_.signed and type_.holds(value.type)
        case _:
            return False


def _changes(body: Sequence[ir.Stmt]) -> list[tuple[str, ScalarType, ir.Expr]]:
    found: list[tuple[str, ScalarType, ir.Expr]] = []
    for stmt in ir.walk_statements(tuple(body)):
        match stmt:
            case ir.Declare(name=name, type=type_, value=value) if value is not None and type_.integer:
                found.append((name, type_, value))
            case ir.Assign(target=ir.Var(name=name, type=type_) as target, op=op, value=value) if type_.integer:
                found.append((name, type_, ir.binary(op, target, value) if op else value))
            case _:
                pass
    return found


def _widened(old: Interval, new: Interval) -> Interval:
    low, high = old
    if low is not None and (new[0] is None or new[0] < low):
        low = None if new[0] is None or new[0] < 0 else min(new[0], 1)
    if high is not None and (new[1] is None or new[1] > high):
        high = 1 if new[1] == 1 else None
    return low, high


def _stored(found: Interval, given: ScalarType, type_: ScalarType) -> Interval:
    """Return the bounds of a value of one type after its conversion to another one."""
    low, high = found
    low = 0 if low is None and not given.signed else low
    if type_.holds(given):
        return low, high
    if low is not None and high is not None and type_.least <= low and high <= type_.greatest:
        return low, high
    return (None if type_.signed else 0), None


def _bounds(
    expr: ir.Expr, known: Mapping[str, Interval], local: set[str], outside: Callable[[ir.Expr], Interval]
) -> Interval | None:
    """Return bounds of an expression; ``None`` where it reads a local that has no value yet."""

    def inner(part: ir.Expr, type_: ScalarType | None = None) -> Interval | None:
        found = _bounds(part, known, local, outside)
        return found if found is None or type_ is None else _stored(found, part.type, type_)

    match expr:
        case ir.IntConst(value=number):
            return number, number
        case ir.Var(name=name):
            if name in known:
                return known[name]
            return None if name in local else outside(expr)
        case ir.Cast(type=type_, operand=operand) if type_.integer and operand.type.integer:
            return inner(operand, type_)
        case ir.Unary(op="!"):
            return 0, 1
        case ir.Binary(op=op) if op in ir.COMPARISONS or op in ir.LOGICAL:
            return 0, 1
        case ir.Conditional(then=then, otherwise=otherwise) if expr.type.integer:
            one, other = inner(then, expr.type), inner(otherwise, expr.type)
            if one is None or other is None:
                return one or other
            return _of(min, one[0], other[0]), _of(max, one[1], other[1])
        case ir.Binary(op=op, left=left, right=right) if expr.type.integer:
            shift = op in ("<<", ">>")
            one, other = inner(left, expr.type), inner(right, None if shift else expr.type)
            if one is None or other is None:
                return None
            low, high = _combined(op, one, other)
            fits = expr.type.signed or (
                low is not None and low >= 0 and high is not None and high <= expr.type.greatest
            )
            return (low, high) if fits else (0, None)  # unsigned types count modulo their size
        case _:
            return (None if expr.type.signed else 0), None


def _of(do: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else do(one, other)


def _combined(op: str, one: Interval, other: Interval) -> Interval:
    (low, high), (least, most) = one, other
    match op:
        case "+":
            return _of(add, low, least), _of(add, high, most)
        case "-":
            return _of(sub, low, most), _of(sub, high, least)
    if low is None or low < 0 or least is None or least < 0:
        return (0, most) if op == "&" and least is not None and least >= 0 else UNBOUNDED
    match op:
        case "*":
            return low * least, _of(mul, high, most)
        case "/" if least >= 1:
            return 0 if most is None else low // most, _of(floordiv, high, least)
        case "%" if least >= 1:
            return 0, high if most is None else most - 1
        case "<<" if least == most:
            return low << least, _of(lshift, high, least)
        case ">>" if least == most:
            return low >> least, _of(rshift, high, least)
        case "&":
            return 0, high if most is None else most
        case "^" | "|":
            return 0, 1 if high in (0, 1) and most in (0, 1) else None
        case _:
            return UNBOUNDED
