"""Which scalars decide where a program goes and what it touches."""

from __future__ import annotations

from collections.abc import Iterable

from metafork.ir.program import (
    Assign,
    BlockArray,
    Conditional,
    Declare,
    Element,
    Expr,
    For,
    If,
    MetaFor,
    Phase,
    PrivateArray,
    Stmt,
    Var,
    While,
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
            case Declare(name=name, value=value):
                if value is not None:
                    feeds.setdefault(name, set()).update(part.name for part in variables_of(value))
            case Assign(target=target, value=value):
                if isinstance(target, Var):
                    feeds.setdefault(target.name, set()).update(part.name for part in variables_of(value))
            case If(condition=condition) | While(condition=condition):
                deciding.append(condition)
            case For(init=init, condition=test, step=step):
                deciding += [part for one in (init, step) if one is not None for part in expressions_of(one)]
                deciding += [] if test is None else [test]
            case Phase() | BlockArray() | PrivateArray():
                deciding += expressions_of(statement)
            case _:
                pass
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
