"""Loads in front of the assignments that they stand among, and those that are alike in the order of constants.

A declaration moves in front of an assignment that writes nothing of what it reads.  Parts of one load stay together.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec import Struct

from metafork.ir import program as ir
from metafork.ir.rewriting import arrays_read, assigned_variables, variables
from metafork.ir.visitor import Body


def loads_first(body: Body) -> Body:
    """Move declarations in front of assignments, as far as these write nothing that they read."""
    result: list[ir.Stmt] = []
    loads: dict[int, _Load] = {}
    begin, place = 0, 0  # of a run of declarations and assignments, and of the first assignment in it
    position = 0
    while position < len(body):
        stmt = body[position]
        together = body[position : position + lanes_read(stmt)]
        position += len(together)
        match stmt:
            case ir.Declare(value=value) if value is not None:
                between = tuple(result[place:])
                changing = assigned_variables(between) | {s.name for s in between if isinstance(s, ir.Declare)}
                hidden = stmt.name in {part.name for part in ir.parts_of(between) if isinstance(part, ir.Var)}
                if not (arrays_read(value) & _written(between) or variables(value) & changing or hidden):
                    at = _behind_alike(stmt, result, begin, place, loads)
                    result[at:at] = together
                    place += len(together)
                    continue
            case ir.Declare() | ir.Assign(atomic=False, asynchronous=False):
                pass
            case _:
                result += together
                begin = place = len(result)
                continue
        result += together
        if place == len(result) - len(together) and isinstance(stmt, ir.Declare):
            place += len(together)
    return tuple(result)


def _written(body: Body) -> set[str]:
    targets = (stmt.target for stmt in body if isinstance(stmt, ir.Assign))
    return {target.array for target in targets if isinstance(target, ir.Element)}


def lanes_read(stmt: ir.Stmt) -> int:
    """Return how many statements from this one on are one load."""
    match stmt:
        case ir.Declare(value=ir.Element(part=ir.Part(place=0, lanes=lanes))):
            return lanes
        case _:
            return 1


class _Load(Struct, frozen=True):
    """What a declaration reads: scalars, and, if it is a load, its array and its index without constants, and these."""

    scalars: Set[str]
    alike: tuple[object, ...] | None
    constants: tuple[int, ...]

    @staticmethod
    def of(stmt: ir.Declare, known: dict[int, _Load]) -> _Load:
        """Return what one of a body reads, which is asked for many times."""
        if id(stmt) not in known:
            constants: list[int] = []
            alike: tuple[object, ...] | None = None
            if isinstance(stmt.value, ir.Element):
                alike = stmt.value.array, *_without_constants(stmt.value.indices[0], constants)
            scalars = set() if stmt.value is None else variables(stmt.value)
            known[id(stmt)] = _Load(scalars, alike, tuple(constants))
        return known[id(stmt)]


def _behind_alike(stmt: ir.Declare, body: Sequence[ir.Stmt], begin: int, end: int, known: dict[int, _Load]) -> int:
    """Return where in a run of declarations one goes: in the order of constants among loads that are alike."""
    own, found = _Load.of(stmt, known), end
    for place in range(end, begin, -1):
        other = body[place - 1]
        if not isinstance(other, ir.Declare) or other.name in own.scalars:
            break
        theirs = _Load.of(other, known)
        if stmt.name in theirs.scalars:
            break  # another scalar of that name
        if isinstance(other.value, ir.Element) and other.value.part is not None and other.value.part.place > 0:
            continue
        behind = place - 1 + lanes_read(other)
        if own.alike is None or theirs.alike is None or theirs.alike[0] != own.alike[0]:
            continue
        if theirs.alike != own.alike:
            return behind if found == end else found
        if theirs.constants <= own.constants:
            return behind
        found = place - 1
    return found


def _without_constants(expr: ir.Expr, constants: list[int]) -> list[object]:
    base, constant = split(expr) if expr.type.integer else (expr, 0)
    constants.append(constant)
    if base is None or not ir.subexpressions(base):
        return [base]
    kind = type(base), getattr(base, "op", "")
    return [kind, *(part for one in ir.subexpressions(base) for part in _without_constants(one, constants))]


def array_loaded(stmt: ir.Declare) -> str | None:
    """Return the array of which a scalar is an element."""
    return stmt.value.array if isinstance(stmt.value, ir.Element) else None


def split(expr: ir.Expr) -> tuple[ir.Expr | None, int]:
    """Return an integer as what is added to a constant, and that."""
    match expr:
        case ir.IntConst(value=value):
            return None, value
        case ir.Binary(op="+" | "-" as op, left=left, right=ir.IntConst(value=value)) if left.type is expr.type:
            base, constant = split(left)
            return base, constant + (value if op == "+" else -value)
        case _:
            return expr, 0
