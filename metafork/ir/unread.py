"""Which variables of a kernel are never read, found scope by scope as C has them.

Compilers warn of such variables; ``metafork.printing.cuda`` marks them.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from metafork.ir.program import Assign, Declare, Element, Expr, For, If, Stmt, Var, While, walk_expression


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
    names = {search.declare(name): name for name in outer}
    search.body(body)
    return Unread(
        frozenset(name for place, name in names.items() if place not in search.read),
        frozenset(node for place, node in search.nodes.items() if place not in search.read),
    )


class _Search:
    """Numbers the places of declaration in textual order and notes which of them are read."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.nodes: dict[int, int] = {}
        self.read: set[int] = set()
        self.count = 0

    def declare(self, name: str) -> int:
        self.count += 1
        self.places[name] = self.count
        return self.count

    def use(self, expr: Expr) -> None:
        for part in walk_expression(expr):
            if isinstance(part, Var):
                self.read.add(self.places.get(part.name, 0))  # 0 is no place
            elif isinstance(part, Element):
                self.read.add(self.places.get(part.array, 0))

    def body(self, stmts: tuple[Stmt, ...]) -> None:
        around = dict(self.places)
        for stmt in stmts:
            self.statement(stmt)
        self.places = around

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Declare(name=name, value=value):
                if value is not None:
                    self.use(value)
                self.nodes[self.declare(name)] = id(stmt)
            case Assign(target=target, value=value):
                if isinstance(target, Element):
                    self.use(target)
                self.use(value)
            case If(condition=condition, then=then, otherwise=otherwise):
                self.use(condition)
                self.body(then)
                self.body(otherwise)
            case For(init=init, condition=condition, step=step, body=inner):
                around = dict(self.places)
                if init is not None:
                    self.statement(init)
                if condition is not None:
                    self.use(condition)
                self.body(inner)
                if step is not None:
                    self.statement(step)
                self.places = around
            case While(condition=condition, body=inner):
                self.use(condition)
                self.body(inner)
            case _:
                pass
