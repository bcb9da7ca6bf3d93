"""A kernel that tells which elements its threads touch, for ``metafork/race.h``.

Only the indices change, ``a[i]`` to ``a[METAFORK_READS(a, i)]``: what is computed, in which types and in which order,
is what the kernel computes.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.atomic_updates import OPERATORS, kind
from metafork.ir.kernel import Kernel, Space
from metafork.ir.program import (
    Assign,
    Binary,
    Call,
    Cast,
    Conditional,
    Declare,
    Element,
    Expr,
    For,
    If,
    IntConst,
    Stmt,
    Unary,
    Var,
    While,
)

LONG = ScalarType.LONG_LONG
ENTRY = "metafork_entered"
"""The variable whose declaration announces a thread."""


def instrumented(kernel: Kernel) -> Kernel:
    """Return the kernel with every access to global and shared memory announced."""
    rewriting = _Rewriting({memory.name: memory.space for memory in kernel.memories})
    entry = Declare(ENTRY, ScalarType.INT, Call("METAFORK_ENTERS", (), ScalarType.INT))
    return replace(kernel, body=(entry, *rewriting.body(kernel.body)))


class _Rewriting:
    def __init__(self, spaces: Mapping[str, Space]) -> None:
        self._spaces = spaces

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(self._stmt(stmt) for stmt in body)

    def _stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Declare(value=value) if value is not None:
                return replace(stmt, value=self._expr(value))
            case Assign():
                return self._assign(stmt)
            case If(condition=condition, then=then, otherwise=otherwise):
                return replace(
                    stmt, condition=self._expr(condition), then=self.body(then), otherwise=self.body(otherwise)
                )
            case For(init=init, condition=condition, step=step, body=inner):
                first = self._stmt(init) if init is not None else None
                last = self._assign(step) if step is not None else None
                assert first is None or isinstance(first, Declare | Assign)
                return For(first, None if condition is None else self._expr(condition), last, self.body(inner))
            case While(condition=condition, body=inner):
                return replace(stmt, condition=self._expr(condition), body=self.body(inner))
            case _:
                return stmt

    def _assign(self, stmt: Assign) -> Assign:
        target = stmt.target
        if self._is_copy(stmt):
            assert isinstance(target, Element)
            assert isinstance(stmt.value, Element)
            source = self._element(stmt.value, "METAFORK_COPIES")
            # One that takes its time is as good as one that does not: results say what is read too early.
            return replace(stmt, target=self._element(target, "METAFORK_TAKES"), value=source, asynchronous=False)
        value = self._expr(stmt.value)
        if isinstance(target, Var):
            return replace(stmt, value=value)
        if stmt.atomic:
            number = IntConst(OPERATORS.index(kind(stmt)) + 1)
            return replace(stmt, target=self._element(target, "METAFORK_ATOMICS", number), value=value)
        return replace(
            stmt, target=self._element(target, "METAFORK_UPDATES" if stmt.op else "METAFORK_WRITES"), value=value
        )

    def _is_copy(self, stmt: Assign) -> bool:
        """Say whether this moves one element from global to shared memory (the target is evaluated last in C++17)."""
        return (
            isinstance(stmt.target, Element)
            and isinstance(stmt.value, Element)
            and not stmt.op
            and self._spaces.get(stmt.target.array) is Space.SHARED
            and self._spaces.get(stmt.value.array) is Space.GLOBAL
        )

    def _element(self, element: Element, how: str, *more: Expr) -> Element:
        index = self._expr(element.indices[0])
        if self._spaces.get(element.array, Space.PRIVATE) in (Space.PRIVATE, Space.CONSTANT):
            return replace(element, indices=(index,))
        place = Call(how, (Var(element.array, element.type), index, *more), LONG)
        return replace(element, indices=(place,), part=None)  # each element by itself

    def _expr(self, expr: Expr) -> Expr:
        match expr:
            case Element():
                return self._element(expr, "METAFORK_READS")
            case Unary(operand=operand) | Cast(operand=operand):
                return replace(expr, operand=self._expr(operand))
            case Binary(left=left, right=right):
                return replace(expr, left=self._expr(left), right=self._expr(right))
            case Conditional(condition=condition, then=then, otherwise=otherwise):
                return replace(
                    expr, condition=self._expr(condition), then=self._expr(then), otherwise=self._expr(otherwise)
                )
            case Call(arguments=arguments):
                return replace(expr, arguments=tuple(self._expr(argument) for argument in arguments))
            case _:
                return expr
