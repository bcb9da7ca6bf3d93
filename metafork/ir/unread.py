"""Which variables of a kernel are never read, found scope by scope as C has them.

Compilers warn of such variables; ``metafork.printing.cuda`` marks them.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from metafork.ir.program import Declare, Element, Expr, Stmt, Var, walk_expression
from metafork.ir.visitor import Visitor


class Unread(Struct, frozen=True):
    """``outer`` are names of arguments and memories; ``declarations`` are the ``id``s of ``Declare`` nodes.

    A node that stands at several places is listed when it is unread at one of them.
    """

    outer: frozenset[str]
    declarations: frozenset[int]


def unread(outer: Iterable[str], body: tuple[Stmt, ...]) -> Unread:
    """Find the names of ``outer`` and the declarations in ``body`` whose value no expression of ``body`` uses.

    Being the target of an assignment is no use of a scalar; it is one of a memory.
    """
    search = _Search()
    names = {search.place(name): name for name in outer}
    search.body(body)
    return Unread(
        frozenset(name for place, name in names.items() if place not in search.read),
        frozenset(node for place, node in search.nodes.items() if place not in search.read),
    )


class _Search(Visitor):
    """Numbers the places of declaration in textual order and notes which of them are read.

    Its scope is the place at which each name is declared.
    """

    def __init__(self) -> None:
        self.scope: dict[str, int] = {}
        self.nodes: dict[int, int] = {}
        self.read: set[int] = set()
        self.count = 0

    def place(self, name: str) -> int:
        self.count += 1
        self.scope[name] = self.count
        return self.count

    def inner(self) -> dict[str, int]:
        return dict(self.scope)

    def expression(self, expr: Expr) -> None:
        for part in walk_expression(expr):
            if isinstance(part, Var):
                self.read.add(self.scope.get(part.name, 0))  # 0 is no place
            elif isinstance(part, Element):
                self.read.add(self.scope.get(part.array, 0))

    def target(self, node: Var | Element) -> None:
        if isinstance(node, Element):
            self.expression(node)

    def declare(self, node: Declare) -> None:
        super().declare(node)
        self.nodes[self.place(node.name)] = id(node)
