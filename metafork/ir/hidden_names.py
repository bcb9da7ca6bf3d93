"""Names that a local declaration hides: code that moves from one scope to another must not find any."""

from __future__ import annotations

from metafork.ir.messages.source import Span
from metafork.ir.program import BlockArray, Declare, MetaFor, PrivateArray, Program
from metafork.ir.visitor import Visitor


def shadowed_name(program: Program) -> tuple[str, Span] | None:
    """Return a name that some declaration hides another meaning of, if there is one, and where that stands."""
    outer = {array.name for array in program.arrays} | {loop.var for loop in program.grid}
    outer |= {scalar.name for scalar in program.parameters} | {scalar.name for scalar in program.derived}
    outer |= {scalar.name for scalar in program.values}
    search = _Shadowed(frozenset(outer))
    search.body(program.body)
    return search.found


class _Shadowed(Visitor):
    """Its scope are the names that mean something."""

    scope: frozenset[str]

    def __init__(self, outer: frozenset[str]) -> None:
        self.scope = outer
        self.found: tuple[str, Span] | None = None

    def declared(self, name: str, node: Declare | BlockArray | PrivateArray | MetaFor) -> None:
        if name in self.scope and self.found is None:
            self.found = name, node.span
        self.scope |= {name}
