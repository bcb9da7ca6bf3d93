"""What a kernel does, step by step: comments for people in front of copies, and of what is computed behind them.

A copy is recognized by what it does: all elements that its statements write are in one kind of memory, and are elements
of another kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from metafork.ir import program as ir
from metafork.ir.kernel import Memory, Space
from metafork.ir.rewriting import variables

_SAID = {
    (Space.GLOBAL, Space.SHARED): "copy {} to shared memory",
    (Space.SHARED, Space.GLOBAL): "copy {} from shared memory",
    (Space.GLOBAL, Space.PRIVATE): "load {} into registers",
    (Space.PRIVATE, Space.GLOBAL): "store {} from registers",
}
_COMPUTE = "compute"


def steps(body: tuple[ir.Stmt, ...], memories: Iterable[Memory]) -> dict[int, str]:
    """Return comments by the ``id`` of the statement in front of which they stand."""
    found: dict[int, str] = {}
    _enter(body, {memory.name: memory.space for memory in memories}, found)
    return found


def _enter(body: tuple[ir.Stmt, ...], spaces: Mapping[str, Space], found: dict[int, str]) -> None:
    said = ""
    copied = False
    begin = 0  # of what is computed behind a barrier
    for position, stmt in enumerate(body):
        copy = _copy(stmt, spaces)
        if copy and copy != said:
            found.setdefault(id(body[_start(body, position)]), copy)
            said, copied = copy, True
        elif isinstance(stmt, ir.Barrier):
            said, begin = "", position + 1
        elif not copy and not isinstance(stmt, ir.Declare):
            if copied and begin and begin <= position and not any(id(one) in found for one in body[begin:position]):
                found.setdefault(id(body[begin]), _COMPUTE)
            said, begin = "", 0
        for inner in _bodies(stmt) if not copy else ():
            _enter(inner, spaces, found)


def _bodies(stmt: ir.Stmt) -> tuple[tuple[ir.Stmt, ...], ...]:
    match stmt:
        case ir.For(body=body) | ir.While(body=body):
            return (body,)
        case ir.If(then=then, otherwise=otherwise):
            return (then, otherwise)
        case _:
            return ()


def _start(body: tuple[ir.Stmt, ...], position: int) -> int:
    """Return where the scalars are declared that only serve the statement at a position."""
    used = {part.name for part in ir.parts_of((body[position],)) if isinstance(part, ir.Var)}
    while position > 0:
        before = body[position - 1]
        if not isinstance(before, ir.Declare) or before.name not in used:
            break
        position -= 1
        used |= set() if before.value is None else variables(before.value)
    return position


def _copy(stmt: ir.Stmt, spaces: Mapping[str, Space]) -> str:
    """Return what a statement copies; nothing if it does something else."""
    ways: set[tuple[Space, Space]] = set()
    names: dict[str, None] = {}
    for inner in ir.walk_statements((stmt,)):
        match inner:
            case ir.Assign(target=ir.Element(array=target), value=ir.Element(array=source), op="", atomic=False):
                way = spaces.get(source), spaces.get(target)
                if way[0] is None or way[1] is None:
                    return ""
                ways.add((way[0], way[1]))
                names[source if way[0] is Space.GLOBAL else target] = None
            case ir.Assign(target=ir.Element()) | ir.Barrier():
                return ""
            case _:
                pass
    return next((_SAID[way].format(", ".join(names)) for way in ways if way in _SAID), "") if len(ways) == 1 else ""
