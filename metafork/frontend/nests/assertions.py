"""Assertions in a schedule: facts about parameters where every iteration makes them, and others.

``assert(m % 4 == 0)`` in the loops is what it would be in front of them: parameters do not change meanwhile.  It is a
condition under which kernels run; where it does not hold, the serial code does, and ends the program as C says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from metafork.frontend.text import syntax
from metafork.ir.messages.source import Span

ASSERTING = frozenset({"assert", "__builtin_assume"})
"""Calls that say what holds."""


def facts_in(schedule: syntax.ScheduleStatement, own: Collection[str]) -> tuple[list[syntax.Expression], list[Span]]:
    """Return the conditions that are the same for all iterations, and where assertions of another kind stand.

    ``own`` are the names of the file's functions, which may be called as assertions are.
    """
    changing = {declarator.name for declarator in syntax.declarators_in(schedule.body)}
    for node in syntax.expressions_in(schedule.body):
        match node:
            case syntax.Assignment(target=target):
                changing |= syntax.names_in(target)
            case syntax.Prefix(op="++" | "--" | "&", operand=target) | syntax.Postfix(operand=target):
                changing |= syntax.names_in(target)
    always = {id(one) for one in _always(schedule.body)}
    facts: list[syntax.Expression] = []
    others: list[Span] = []
    for one in syntax.walk_statements(schedule.body):
        condition = _asserted(one)
        if condition is None or not isinstance(one, syntax.ExpressionStatement) or ASSERTING.intersection(own):
            continue
        for part in syntax.conjuncts(condition):
            if id(one) in always and not syntax.names_in(part) & changing:
                facts.append(part)
            elif one.span not in others:
                others.append(one.span)
    return facts, others


def _asserted(statement: syntax.Statement) -> syntax.Expression | None:
    """Return what a statement asserts, ``None`` where it is another one."""
    match statement:
        case syntax.ExpressionStatement(
            expression=syntax.Invocation(callee=syntax.Name(name=name), arguments=(condition,))
        ) if name in ASSERTING:
            return condition
        case _:
            return None


def _always(statement: syntax.Statement) -> Iterator[syntax.Statement]:
    """Yield the statements that are under no condition and in no serial loop."""
    match statement:
        case syntax.Block(items=items):
            for item in items:
                yield from _always(item)
        case syntax.ForStatement(meta=True, body=body):
            yield from _always(body)
        case _:
            yield statement
