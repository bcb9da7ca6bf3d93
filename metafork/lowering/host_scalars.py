"""What a kernel computes of its arguments alone, computed on the host before the launch: quotients, and longer things.

``before --> after``::

    for (int k = 0; k < n / B; k++)                for (int k = 0; k < n_div_B; k++)       n_div_B = n / B on the host
    int below = B - 1;                      -->
    below |= below >> 1;
    below |= below >> 2;                           int half = below_2;                     below_2 = ... on the host
    int half = below ^ (below >> 1);

A GPU has no instruction that divides integers: a quotient takes some 25 of them, in each thread.

Legality.  All operands are arguments, which nothing in the kernel changes, or scalars that are made of them before.
The host computes the value whether the kernel comes to it or not, so that it is proved to have one wherever the kernel
is launched: divisors are at least 1 and dividends not negative, and what is subtracted, and from what, is not negative.
Bits, shifts to the right and comparisons always have a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set

from metafork.algebra.polynomial import ONE, ZERO, Polynomial, at_most
from metafork.algebra.prover import Prover
from metafork.analysis.values.scope import Scope
from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.names import fresh
from metafork.ir.rewriting import assigned_variables, substitute
from metafork.ir.visitor import Body, Rewriter

INT = ScalarType.INT
MOST_OPERANDS = 4
"""Most operands of a side of a quotient, one nested in the other."""
FEWEST_OPERATIONS = 3
"""Fewest operations of anything else."""
TESTS = ir.COMPARISONS | ir.LOGICAL
_BITS = frozenset({"|", "&", "^"})
_BY_CONSTANTS = frozenset({"/", "%", ">>"})


def with_host_scalars(
    body: Body, arguments: Mapping[str, ir.Var], scope: Scope, prover: Prover, taken: set[str]
) -> tuple[Body, tuple[ir.Derived, ...]]:
    """Return a kernel's body that reads what the host computes, and its definitions; ``taken`` grows by their names."""
    hosting = _Hosting(body, arguments, scope, prover, taken)
    new = hosting.body(body)
    return new, tuple(hosting.made)


class _Hosting(Rewriter):
    """Names what arguments make; ``scope`` are the scalars that are made of them, as they are by then."""

    def __init__(
        self, body: Body, arguments: Mapping[str, ir.Var], values: Scope, prover: Prover, taken: set[str]
    ) -> None:
        statements = ir.walk_statements(body)
        hidden = {stmt.name for stmt in statements if isinstance(stmt, ir.Declare)} | assigned_variables(body)
        self._asked = {name for name, one in arguments.items() if one.type.integer and name not in hidden}
        self._assigned = Counter(map(_assigned, statements))
        self._values, self._prover, self._taken = values, prover, taken
        self._known: dict[ir.Expr, ir.Var] = {}
        self._natural: dict[str, bool] = {}
        self._in_steps: set[str] = set()
        self.made: list[ir.Derived] = []
        self.scope: dict[str, ir.Expr] = {}

    def inner(self) -> dict[str, ir.Expr]:
        return dict(self.scope)

    def body(self, body: Body) -> Body:
        steps = [stmt for stmt in body if _assigned(stmt)]
        for stmt in body:
            if isinstance(stmt, ir.Declare) and stmt.type is INT and stmt.value is not None:
                own = [one for one in steps if _assigned(one) == stmt.name]
                if 0 < len(own) == self._assigned[stmt.name] and all(self._is_step(one, stmt.name) for one in own):
                    self._in_steps.add(stmt.name)
        return super().body(body)

    def _is_step(self, stmt: ir.Stmt, name: str) -> bool:
        """Say whether a statement changes bits of a scalar, by arguments and the scalar alone."""
        assert isinstance(stmt, ir.Assign)
        return stmt.op in _BITS and self._operations(stmt.value, {*self._asked, name}) is not None

    def declare(self, node: ir.Declare) -> ir.Stmt | Body:
        self.scope.pop(node.name, None)
        made = node.type is INT and node.value is not None and self._operations(node.value, self._asked) is not None
        stepped = node.name in self._in_steps
        if made and node.value is not None and (stepped or not self._assigned[node.name]):
            self.scope[node.name] = substitute(node.value, self.scope)
            if stepped:
                return ()
        return super().declare(node)

    def assign(self, node: ir.Assign) -> ir.Stmt | Body:
        name = _assigned(node)
        if name not in self.scope:
            return super().assign(node)
        value = ir.binary(node.op, self.scope[name], substitute(node.value, self.scope))
        self.scope[name] = self._named(name, value)
        return ()

    def expression(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Var) and expr.name in self._in_steps:
            return self.scope.get(expr.name, expr)
        if isinstance(expr, ir.Binary) and expr.type is INT:
            return self._hosted(expr) or super().expression(expr)
        return super().expression(expr)

    def _hosted(self, expr: ir.Binary) -> ir.Var | None:
        """Return the scalar that the host makes of an expression, if it is worth one and has a value."""
        left, right = expr.left, expr.right
        if expr.op == "/" and not isinstance(right, ir.IntConst):
            sides = all(_of_arguments(side, self._asked) for side in (left, right))
            if not sides or not self._derives(left, ZERO) or not self._derives(right, ONE):
                return None
            return self._named("_div_".join(_name(side) for side in (left, right)), expr)
        if (self._operations(expr, self._asked) or 0) < FEWEST_OPERATIONS:
            return None
        value = substitute(expr, self.scope)
        return self._named(f"{_name(value)}_{'fits' if expr.op in TESTS else 'value'}", value)

    def _named(self, name: str, value: ir.Expr) -> ir.Var:
        if value not in self._known:
            result = ir.Var(fresh(name, self._taken), INT)
            self.made.append(ir.Derived(result.name, INT, value))
            self._natural[result.name] = self._is_natural(value)
            self._asked.add(result.name)
            self._known[value] = result
        return self._known[value]

    def _operations(self, expr: ir.Expr, asked: Set[str]) -> int | None:
        """Return how many operations arguments take to make an expression that has a value, ``None`` otherwise."""
        match expr:
            case ir.Var(name=name) if name in self.scope:
                return self._operations(self.scope[name], asked)
            case ir.Var(name=name, type=ScalarType.INT):
                return 0 if name in asked else None
            case ir.IntConst():
                return 0
            case ir.Cast(type=ScalarType.INT, operand=ir.Var() as operand):
                return 0 if operand.name in asked else None
            case ir.Binary(op=op, left=left, right=right, type=ScalarType.INT):
                counts = self._operations(left, asked), self._operations(right, asked)
                constant = isinstance(right, ir.IntConst) and 0 < right.value < INT.size * 8
                free = op in _BITS or op in TESTS or (constant and op in _BY_CONSTANTS)
                free = free or (op == "-" and self._is_natural(left) and self._is_natural(right))
                return None if counts[0] is None or counts[1] is None or not free else counts[0] + counts[1] + 1
            case _:
                return None

    def _is_natural(self, expr: ir.Expr) -> bool:
        """Say whether an expression is proved not to be negative."""
        match expr:
            case ir.Var(name=name) if name in self.scope:
                return self._is_natural(self.scope[name])
            case ir.Var(name=name):
                if name not in self._natural:
                    self._natural[name] = self._derives(expr, ZERO)
                return self._natural[name]
            case ir.IntConst(value=value):
                return value >= 0
            case ir.Binary(op=op, left=left, right=right):
                if op in _BY_CONSTANTS or op == "&":
                    return self._is_natural(left)
                if op in _BITS:
                    return self._is_natural(left) and self._is_natural(right)
                return op in TESTS or self._derives(expr, ZERO)
            case _:
                return False

    def _derives(self, expr: ir.Expr, least: Polynomial) -> bool:
        value = self._values.polynomial(expr)
        return value is not None and self._prover.derives(at_most(least, value))


def _assigned(stmt: ir.Stmt) -> str:
    """Return the scalar that a statement assigns, or an empty name."""
    return stmt.target.name if isinstance(stmt, ir.Assign) and isinstance(stmt.target, ir.Var) else ""


def _of_arguments(expr: ir.Expr, asked: Set[str], most: int = MOST_OPERANDS) -> bool:
    """Say whether an expression is a few arguments and constants, added, subtracted and multiplied."""
    match expr:
        case ir.Var(name=name):
            return name in asked
        case ir.IntConst():
            return True
        case ir.Binary(op="+" | "-" | "*", left=left, right=right, type=ScalarType.INT) if most > 1:
            return all(_of_arguments(side, asked, most - 1) for side in (left, right))
        case _:
            return False


def _name(expr: ir.Expr) -> str:
    """Return the first argument of a side."""
    return next((part.name for part in ir.walk_expression(expr) if isinstance(part, ir.Var)), "all")
