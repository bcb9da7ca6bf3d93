"""Names that a local declaration hides: code that moves from one scope to another must not find any."""

from __future__ import annotations

from metafork.ir.messages.source import Span
from metafork.ir.program import BlockArray, Declare, For, If, Phase, PrivateArray, Program, Stmt, While

Body = tuple[Stmt, ...]


def shadowed_name(program: Program) -> tuple[str, Span] | None:
    """Return a name that some declaration hides another meaning of, if there is one, and where that stands."""
    outer = {array.name for array in program.arrays} | {loop.var for loop in program.grid}
    outer |= {scalar.name for scalar in program.parameters} | {scalar.name for scalar in program.derived}
    outer |= {scalar.name for scalar in program.values}
    return _shadowed(program.body, outer)


def _shadowed(body: Body, visible: set[str]) -> tuple[str, Span] | None:
    visible = set(visible)
    for stmt in body:
        inner: list[Body] = []
        names: list[str] = []
        match stmt:
            case Declare(name=name):
                if name in visible:
                    return name, stmt.span
                visible.add(name)
            case BlockArray(array=array) | PrivateArray(array=array):
                if array.name in visible:
                    return array.name, stmt.span
                visible.add(array.name)
            case If(then=then, otherwise=otherwise):
                inner = [then, otherwise]
            case For(init=init, body=loop_body):
                names = [init.name] if isinstance(init, Declare) else []
                inner = [loop_body]
            case While(body=loop_body):
                inner = [loop_body]
            case Phase(threads=threads, body=loop_body):
                names = [loop.var for loop in threads]
                inner = [loop_body]
            case _:
                pass
        for name in names:
            if name in visible:
                return name, stmt.span
        for part in inner:
            found = _shadowed(part, visible | set(names))
            if found is not None:
                return found
    return None
