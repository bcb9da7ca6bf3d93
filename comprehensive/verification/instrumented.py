"""A kernel that tells which elements its threads touch and which branches they take, for ``metafork/race.h``.

Only the indices change, ``a[i]`` to ``a[METAFORK_READS(a, i)]``, and each side of a condition begins with
``METAFORK_BRANCH(number)``: what is computed, in which types and in which order, is what the kernel computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.atomic_updates import OPERATORS, kind
from metafork.ir.kernel import Kernel, Space
from metafork.ir.visitor import Rewriter
from metafork.printing.expressions import expression

LONG = ScalarType.LONG_LONG
ENTRY = "metafork_entered"
"""The variable whose declaration announces a thread."""


class Branch(Struct, frozen=True):
    """One side of a condition of a kernel, ``around`` which is the branch of that number (-1: none).

    ``fast`` says that it is the side that holds, and that there is another one: what a tile does where it is full.
    """

    condition: str
    holds: bool
    around: int
    fast: bool

    def __str__(self) -> str:
        """Return it in words."""
        return f"`{self.condition}` {'holds' if self.holds else 'does not hold'}"


def instrumented(kernel: Kernel) -> tuple[Kernel, tuple[Branch, ...]]:
    """Return the kernel with every access to global and shared memory announced, and the branches that it announces."""
    rewriting = _Announcing({memory.name: memory.space for memory in kernel.memories})
    entry = ir.Declare(ENTRY, ScalarType.INT, ir.Call("METAFORK_ENTERS", (), ScalarType.INT))
    return replace(kernel, body=(entry, *rewriting.body(kernel.body))), tuple(rewriting.branches)


def never_taken(branches: Sequence[Branch], taken: Set[int]) -> list[Branch]:
    """Return the branches that are not among those ``taken``, without those inside of one."""
    left = [number for number in range(len(branches)) if number not in taken]
    return [branches[number] for number in left if branches[number].around not in left]


class _Announcing(Rewriter):
    scope: int = -1

    def __init__(self, spaces: Mapping[str, Space]) -> None:
        self._spaces = spaces
        self.branches: list[Branch] = []

    def branch(self, node: ir.If) -> ir.If:
        condition = self.expression(node.condition)
        sides = [self._side(node, holds) for holds in (True, False)]
        return replace(node, condition=condition, then=sides[0], otherwise=sides[1])

    def _side(self, node: ir.If, holds: bool) -> tuple[ir.Stmt, ...]:
        body = node.then if holds else node.otherwise
        if not body:
            return ()
        number, outer = len(self.branches), self.scope
        self.branches.append(Branch(expression(node.condition), holds, outer, holds and bool(node.otherwise)))
        told = ir.Call("METAFORK_BRANCH", (ir.IntConst(number),), ScalarType.INT)
        self.scope = number
        inside = self.body(body)
        self.scope = outer
        return (ir.Declare(f"metafork_branch_{number}", ScalarType.INT, told), *inside)

    def assign(self, node: ir.Assign) -> ir.Assign:
        target = node.target
        if self._is_copy(node):
            assert isinstance(target, ir.Element)
            assert isinstance(node.value, ir.Element)
            source = self._announced(node.value, "METAFORK_COPIES")
            # One that takes its time is as good as one that does not: results say what is read too early.
            return replace(node, target=self._announced(target, "METAFORK_TAKES"), value=source, asynchronous=False)
        value = self.expression(node.value)
        if isinstance(target, ir.Var):
            return replace(node, value=value)
        if node.atomic:
            number = ir.IntConst(OPERATORS.index(kind(node)) + 1)
            return replace(node, target=self._announced(target, "METAFORK_ATOMICS", number), value=value)
        return replace(
            node, target=self._announced(target, "METAFORK_UPDATES" if node.op else "METAFORK_WRITES"), value=value
        )

    def _is_copy(self, stmt: ir.Assign) -> bool:
        """Say whether this moves one element from global to shared memory (the target is evaluated last in C++17)."""
        return (
            isinstance(stmt.target, ir.Element)
            and isinstance(stmt.value, ir.Element)
            and not stmt.op
            and self._spaces.get(stmt.target.array) is Space.SHARED
            and self._spaces.get(stmt.value.array) is Space.GLOBAL
        )

    def _announced(self, element: ir.Element, how: str, *more: ir.Expr) -> ir.Element:
        index = self.expression(element.indices[0])
        if self._spaces.get(element.array, Space.PRIVATE) in (Space.PRIVATE, Space.CONSTANT):
            return replace(element, indices=(index,))
        place = ir.Call(how, (ir.Var(element.array, element.type), index, *more), LONG)
        return replace(element, indices=(place,), part=None)  # each element by itself

    def expression(self, expr: ir.Expr) -> ir.Expr:
        return self._announced(expr, "METAFORK_READS") if isinstance(expr, ir.Element) else super().expression(expr)
