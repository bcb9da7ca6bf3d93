"""Scalars of copies that are other scalars, or a constant away from them, are written as these.

``before --> after``::

    int y = i * B + first;                           int y = i * B + first;
    int y_2 = i * B + (first + 1);
    float part = a[y * n + x];            -->        float part = a[y * n + x];
    float part_2 = a[y_2 * n + x];                   float part_2 = a[(y + 1) * n + x];

Copies then differ in constants alone, by which ``metafork.printing.rerolled`` knows them.  A scalar is written as
another one if both never change, and if it is one of several of which some are copies.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Set

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.rewriting import assigned_variables
from metafork.ir.visitor import Body, Rewriter, Visitor

INT = ScalarType.INT
SEVERAL = 3
"""So many scalars that differ by constants are written as one."""
_Linear = tuple[frozenset[tuple[ir.Expr, int]], int]


def without_aliases(body: Body) -> Body:
    """Return a kernel's code with fewer scalars."""
    statements = ir.walk_statements(body)
    declared = Counter(stmt.name for stmt in statements if isinstance(stmt, ir.Declare))
    counters = {s.init.name for s in statements if isinstance(s, ir.For) and isinstance(s.init, ir.Declare)}
    changing = assigned_variables(body)
    fixed = {name for name, count in declared.items() if count == 1} - counters - changing
    forms = _Forms(fixed, changing, declared.keys())
    forms.body(body)
    return _WithoutAliases(fixed, forms).body(body)


class _Forms(Visitor):
    """What scalars are, as sums of products and a constant."""

    def __init__(self, fixed: Set[str], changing: Set[str], names: Set[str]) -> None:
        self._fixed, self._changing, self.names = fixed, changing, names
        self.of: dict[str, _Linear] = {}
        self.alike: defaultdict[frozenset[tuple[ir.Expr, int]], list[str]] = defaultdict(list)

    def declare(self, node: ir.Declare) -> None:
        """Look at the declaration of a scalar."""
        if node.value is None or node.name not in self._fixed or node.type is not INT or node.value.type is not INT:
            return
        terms: dict[ir.Expr, int] = {}
        constant = self._sum(node.value, 1, terms)
        if constant is None:
            return
        sum_ = frozenset((part, factor) for part, factor in terms.items() if factor)
        self.of[node.name] = sum_, constant
        self.alike[sum_].append(node.name)

    def _sum(self, expr: ir.Expr, factor: int, terms: dict[ir.Expr, int]) -> int | None:
        """Add ``factor`` times an expression to ``terms``, and return the constant; ``None`` where it may change."""
        match expr:
            case ir.IntConst(value=value):
                return factor * value
            case ir.Var(name=name) if name in self.of:
                inner, constant = self.of[name]
                for part, count in inner:
                    terms[part] = terms.get(part, 0) + factor * count
                return factor * constant
            case ir.Binary(op="+" | "-" as op, left=left, right=right, type=ScalarType.INT):
                one = self._sum(left, factor, terms)
                other = self._sum(right, factor if op == "+" else -factor, terms)
                return None if one is None or other is None else one + other
            case _:
                for part in ir.walk_expression(expr):
                    if isinstance(part, ir.Element | ir.Call) or (
                        isinstance(part, ir.Var) and part.name in self._changing
                    ):
                        return None
                terms[expr] = terms.get(expr, 0) + factor
                return 0


class _WithoutAliases(Rewriter):
    """``scope`` are the names that are declared around."""

    scope: frozenset[str] = frozenset()

    def __init__(self, fixed: Set[str], forms: _Forms) -> None:
        self._fixed = fixed
        self._values: dict[str, ir.Expr] = {}
        self._forms: dict[str, _Linear] = {}
        for sum_, names in forms.alike.items():
            if len(names) >= SEVERAL and any(re.sub(r"(_\d+)+$", "", name) in forms.names - {name} for name in names):
                self._forms |= {name: (sum_, forms.of[name][1]) for name in names}

    def variable(self, node: ir.Var) -> ir.Expr:
        return self._values.get(node.name, node)

    def declare(self, node: ir.Declare) -> ir.Stmt | Body:
        new = super().declare(node)
        assert isinstance(new, ir.Declare)
        value = self._as_another(new)
        if value is not None:
            self._values[node.name] = value
            return ()
        self.scope |= {node.name}
        return new

    def _as_another(self, node: ir.Declare) -> ir.Expr | None:
        if node.name not in self._fixed:
            return None
        if isinstance(node.value, ir.Var) and node.value.name in self._fixed and node.type is node.value.type:
            return node.value
        if node.name not in self._forms:
            return None
        sum_, constant = self._forms[node.name]
        for name, (other, begin) in self._forms.items():
            if other == sum_ and name in self.scope:
                away = ir.IntConst(abs(constant - begin))
                base = ir.Var(name, INT)
                return base if constant == begin else ir.binary("+" if constant > begin else "-", base, away)
        return None
