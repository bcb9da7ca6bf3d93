"""The counted-loop view of a ``For``: a variable that goes from a first value by steps of one length.

``for (k = first; conditions; k += step)``, in any spelling: ``k -= step``, ``k = k + step``, ``++k``; any conditions
joined by ``&&``; any integer type.  The body does not assign the variable, and the step does not change meanwhile.  So
in iteration number m the variable is ``first + m*step`` (or ``-``), as long as that stays within its type.  What the
conditions say of m is a question of ranges (``metafork.analysis.values.loop_ranges``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.rewriting import arrays_read, assigned_variables, variables

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!=", "==": "=="}
"""What ``a op b`` is called from the other side."""


class CountedLoop(Struct, frozen=True):
    """A loop seen as a count.

    ``step`` is what the variable grows by, or with ``down`` what it falls by.  ``conditions`` are those conjuncts of
    the loop's condition that read the variable and what the body leaves alone, ``others`` the rest.  ``declared`` says
    whether the loop declares its variable.
    """

    variable: ir.Var
    declared: bool
    first: ir.Expr
    step: ir.Expr
    down: bool
    conditions: tuple[ir.Expr, ...]
    others: tuple[ir.Expr, ...]

    @property
    def unit(self) -> bool:
        """Whether the variable goes by ones."""
        return isinstance(self.step, ir.IntConst) and self.step.value == 1

    @property
    def computed(self) -> ScalarType:
        """The type in which C computes the next value."""
        return common_type(self.variable.type, self.step.type)

    def limits(self) -> Iterator[tuple[str, ir.Expr]]:
        """Yield the conditions ``variable op limit`` as (op, limit), whichever side the variable stands on."""
        yield from self._limits(self.conditions)

    def _limits(self, conditions: Iterable[ir.Expr]) -> Iterator[tuple[str, ir.Expr]]:
        for condition in conditions:
            match condition:
                case ir.Binary(op=op, left=ir.Var(name=name), right=limit) if name == self.variable.name:
                    pass
                case ir.Binary(op=op, left=limit, right=ir.Var(name=name)) if (
                    name == self.variable.name and op in MIRRORED
                ):
                    op = MIRRORED[op]
                case _:
                    continue
            if self.variable.name not in variables(limit):
                yield op, limit

    def only_limit(self) -> tuple[str, ir.Expr] | None:
        """Return the loop's condition where it is ``variable op limit`` alone, whatever the limit is."""
        conditions = (*self.conditions, *self.others)
        found = tuple(self._limits(conditions))
        return found[0] if len(found) == len(conditions) == 1 else None

    def spans(self) -> Iterator[ir.Expr]:
        """Yield what is at least 1 where the loop runs at all; by ones, the least of it is the trip count."""
        for op, limit in self.limits():
            if op not in (("<", "<=") if not self.down else (">", ">=")):
                continue
            high, low = (limit, self.first) if not self.down else (self.first, limit)
            span = high if low == ir.IntConst(0) else ir.binary("-", high, low)
            yield span if op in ("<", ">") else ir.binary("+", span, ir.IntConst(1))


def counted_loop(loop: ir.For) -> CountedLoop | None:
    """Return the counted-loop view of a loop, ``None`` where it has none."""
    match loop.init:
        case ir.Declare(name=name, type=type_, value=first) if first is not None:
            variable, declared = ir.Var(name, type_), True
        case ir.Assign(target=ir.Var() as variable, op="", value=first):
            declared = False
        case _:
            return None
    if not variable.type.integer or loop.step is None or loop.condition is None:
        return None
    changed = assigned_variables(loop.body)
    step = added(variable.name, loop.step)
    if step is None or variable.name in changed:
        return None
    amount, down = step
    if not amount.type.integer or arrays_read(amount) or variables(amount) & (changed | {variable.name}):
        return None
    conditions: list[ir.Expr] = []
    others: list[ir.Expr] = []
    for condition in conjuncts(loop.condition):
        steady = not arrays_read(condition) and not variables(condition) & changed
        (conditions if steady else others).append(condition)
    return CountedLoop(variable, declared, first, amount, down, tuple(conditions), tuple(others))


def added(name: str, step: ir.Stmt) -> tuple[ir.Expr, bool] | None:
    """Return what ``x += e``, ``x = x + e`` and their like add to a variable, and whether they take it away."""
    match step:
        case ir.Assign(target=ir.Var(name=stepped), op="+" | "-" as op, value=amount) if stepped == name:
            pass
        case ir.Assign(target=ir.Var(name=stepped), op="", value=ir.Binary(op="+" | "-" as op, left=ir.Var(name=old),
                    right=amount)) if stepped == old == name:  # fmt: skip
            pass
        case ir.Assign(target=ir.Var(name=stepped), op="", value=ir.Binary(op="+" as op, left=amount,
                    right=ir.Var(name=old))) if stepped == old == name:  # fmt: skip
            pass
        case _:
            return None
    down = op == "-"
    match amount:
        case ir.Unary(op="-", operand=positive):
            return positive, not down
        case ir.IntConst(value=value) if value < 0:
            return ir.IntConst(-value, amount.type), not down
        case _:
            return amount, down


def halved(loop: ir.For) -> ir.Var | None:
    """Return the variable of a loop that halves it while it is positive."""
    if not isinstance(loop.init, ir.Declare) or loop.init.type is not ScalarType.INT:
        return None
    half = ir.Var(loop.init.name, ScalarType.INT)
    going = [ir.binary(op, half, ir.IntConst(limit)) for op, limit in ((">", 0), (">=", 1), ("!=", 0))]
    match loop.step:
        case ir.Assign(target=target, op="/", value=ir.IntConst(value=2)) if target == half:
            pass
        case ir.Assign(target=target, op=">>", value=ir.IntConst(value=1)) if target == half:
            pass
        case ir.Assign(target=target, op="", value=value) if target == half and value in (
            ir.binary("/", half, ir.IntConst(2)),
            ir.binary(">>", half, ir.IntConst(1)),
        ):
            pass
        case _:
            return None
    return half if loop.condition in going else None


def doubled(loop: ir.For) -> ir.Var | None:
    """Return the variable of a loop that doubles it, from 1 on."""
    match loop:
        case ir.For(init=ir.Declare(name=name, type=ScalarType.INT, value=ir.IntConst(value=1))):
            reach = ir.Var(name, ScalarType.INT)
        case _:
            return None
    two, one = ir.IntConst(2), ir.IntConst(1)
    steps = [ir.Assign(reach, op, value) for op, value in (("*", two), ("<<", one), ("+", reach))]
    values = ir.binary("*", reach, two), ir.binary("*", two, reach), ir.binary("<<", reach, one)
    steps += [ir.Assign(reach, "", value) for value in (*values, ir.binary("+", reach, reach))]
    return reach if loop.step in steps and reach.name not in assigned_variables(loop.body) else None


def conjuncts(condition: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the operands of a chain of ``&&``, a single condition as it is."""
    if isinstance(condition, ir.Binary) and condition.op == "&&":
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    else:
        yield condition
