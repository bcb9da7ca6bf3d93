"""Which scalars decide where a program goes and what it touches."""

from __future__ import annotations

from collections.abc import Iterable

from metafork.ir import program as ir


def control_names(grid: Iterable[ir.MetaFor], body: tuple[ir.Stmt, ...]) -> set[str]:
    """Return the scalars that decide an extent, an index, a bound or a condition, through locals too."""
    control = {part.name for loop in grid for part in variables_of(loop.extent)}
    feeds: dict[str, set[str]] = {}
    for statement in ir.walk_statements(body):
        deciding: list[ir.Expr] = []
        match statement:
            case ir.Declare(name=name, value=value) | ir.Assign(target=ir.Var(name=name), value=value):
                if value is not None:
                    feeds.setdefault(name, set()).update(part.name for part in variables_of(value))
            case ir.For(init=init, step=step):
                heads = [one for one in (init, statement, step) if one is not None]
                deciding += [part for one in heads for part in ir.expressions_of(one)]
            case ir.Assign():
                pass
            case _:
                deciding += ir.expressions_of(statement)
        for expression in ir.expressions_of(statement):
            for part in ir.walk_expression(expression):
                if isinstance(part, ir.Element):
                    deciding += part.indices
                elif isinstance(part, ir.Conditional):
                    deciding.append(part.condition)
        control.update(part.name for expression in deciding for part in variables_of(expression))
    pending = list(control)
    while pending:
        for name in feeds.get(pending.pop(), set()) - control:
            control.add(name)
            pending.append(name)
    return control


def variables_of(expression: ir.Expr) -> list[ir.Var]:
    """Return the variables of an expression, left to right."""
    return [part for part in ir.walk_expression(expression) if isinstance(part, ir.Var)]
