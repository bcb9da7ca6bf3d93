"""Which scalars decide where a program goes and what it touches."""

from __future__ import annotations

from collections.abc import Iterable

from metafork.ir.program import (
    Assign,
    Conditional,
    Declare,
    Element,
    Expr,
    For,
    MetaFor,
    Stmt,
    Var,
    expressions_of,
    walk_expression,
    walk_statements,
)


def control_names(grid: Iterable[MetaFor], body: tuple[Stmt, ...]) -> set[str]:
    """Return the scalars that decide an extent, an index, a bound or a condition, through locals too."""
    control = {part.name for loop in grid for part in variables_of(loop.extent)}
    feeds: dict[str, set[str]] = {}
    for statement in walk_statements(body):
        deciding: list[Expr] = []
        match statement:
            case Declare(name=name, value=value) | Assign(target=Var(name=name), value=value):
                if value is not None:
                    feeds.setdefault(name, set()).update(part.name for part in variables_of(value))
            case For(init=init, step=step):
                heads = [one for one in (init, statement, step) if one is not None]
                deciding += [part for one in heads for part in expressions_of(one)]
            case Assign():
                pass
            case _:
                deciding += expressions_of(statement)
        for expression in expressions_of(statement):
            for part in walk_expression(expression):
                if isinstance(part, Element):
                    deciding += part.indices
                elif isinstance(part, Conditional):
                    deciding.append(part.condition)
        control.update(part.name for expression in deciding for part in variables_of(expression))
    pending = list(control)
    while pending:
        for name in feeds.get(pending.pop(), set()) - control:
            control.add(name)
            pending.append(name)
    return control


def variables_of(expression: Expr) -> list[Var]:
    """Return the variables of an expression, left to right."""
    return [part for part in walk_expression(expression) if isinstance(part, Var)]
