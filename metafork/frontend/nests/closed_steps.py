"""Offsets that a counted loop steps, in closed form (*induction variables*).

    for (int k = 0; k < m; k++) {            for (int k = 0; k < m; k++)
      s += x[p]; p += n;             -->       s += x[p + (long)(k - 0) * n];
    }                                        p += (long)(m > 0 ? m - 0 : 0) * n;

So every index is one that depends on the loop's variable alone, and its bounds can be told.  The steps stand directly
in the body, each is made in every round, and what they add keeps its value.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from metafork.frontend.host.linear_indices import changed
from metafork.frontend.nests.shape import counter
from metafork.frontend.text import syntax
from metafork.frontend.text.jumps import own_jumps
from metafork.frontend.text.syntax_changes import with_expressions, with_operands, with_statements
from metafork.ir.messages.source import Span

Change = Callable[[syntax.Expression], syntax.Expression]


def with_closed_steps(statement: syntax.Statement, name: str, read_later: bool = False) -> syntax.Statement:
    """Return a statement in which an offset, a variable of 64 bits, is stepped behind counted loops, not in them.

    ``read_later`` says whether somebody behind the statement may read it.
    """
    if isinstance(statement, syntax.Block):
        items: list[syntax.Statement] = []
        for item in reversed(statement.items):
            items = [*_each(item, name, read_later), *items]
            read_later = read_later or _mentions(item, name)
        return replace(statement, items=tuple(items))
    again = isinstance(statement, syntax.ForStatement | syntax.WhileStatement) and _mentions(statement, name)
    statement = with_statements(statement, lambda one: with_closed_steps(one, name, read_later or again))
    found = _closed(statement, name) if isinstance(statement, syntax.ForStatement) else None
    return statement if found is None else syntax.Block(found[: 1 + read_later], statement.span)


def _mentions(statement: syntax.Statement, name: str) -> bool:
    return any(isinstance(one, syntax.Name) and one.name == name for one in syntax.expressions_in(statement))


def _each(item: syntax.Statement, name: str, read_later: bool) -> tuple[syntax.Statement, ...]:
    """Return what an item of a block becomes: of a loop, the loop and the step behind it."""
    found = with_closed_steps(item, name, read_later)
    if isinstance(item, syntax.ForStatement) and isinstance(found, syntax.Block):
        return found.items
    return (found,)


def _closed(loop: syntax.ForStatement, name: str) -> tuple[syntax.Statement, ...] | None:
    """Return a loop that does not change an offset, and the step behind it; ``None`` where it has no such form."""
    counted = counter(loop)
    if counted is None or own_jumps(loop.body) or loop.meta or name not in _changed(loop):
        return None
    variable, start, end, by = counted
    if not (isinstance(by, syntax.Constant) and by.text == "1") or not _is_certain(loop, start):
        return None
    others = (_changed(loop) - {variable}) | {one.name for one in syntax.declarators_in(loop)}
    if variable in _changed(loop.body) or not all(_is_plain(one, others) for one in (start, end)):
        return None
    span = loop.head
    steps = _Steps(name, _long(syntax.Infix("-", syntax.Name(variable, span), start, span), span), span)
    body = [one for item in _items(loop.body) for one in _apart(item)]
    for item in body:
        steps.collect(item, loop)
    rest = steps.in_head(loop.step, loop)
    if not steps.known:
        return None
    closed = replace(loop, body=syntax.Block(tuple(map(steps.written_out, body)), loop.body.span), step=rest)
    if name in _changed(closed):
        return None
    more = syntax.Infix(">", end, start, span)
    trips = syntax.Ternary(more, syntax.Infix("-", end, start, span), syntax.Constant("0", span), span)
    total = syntax.Infix("*", _long(trips, span), steps.total(), span)
    behind = syntax.Assignment("+=", syntax.Name(name, span), total, span)
    return closed, syntax.ExpressionStatement(behind, loop.span)


def _is_certain(loop: syntax.ForStatement, start: syntax.Expression) -> bool:
    """Say whether the variable of a loop begins with the number that its start is: of one type, or any constant."""
    signed = ({"int"}, {"long"}, {"long", "int"})
    declared = isinstance(loop.init, syntax.Declaration) and {*loop.init.declarators[0].type.words} in signed
    return declared or isinstance(start, syntax.Constant)


def _items(body: syntax.Statement) -> tuple[syntax.Statement, ...]:
    return body.items if isinstance(body, syntax.Block) else (body,)


def _apart(item: syntax.Statement) -> tuple[syntax.Statement, ...]:
    """Return the declarations of a statement one by one, as they are evaluated."""
    if not isinstance(item, syntax.Declaration) or len(item.declarators) < 2:
        return (item,)
    return tuple(replace(item, declarators=(one,)) for one in item.declarators)


class _Steps:
    """The steps of an offset in the body of a loop, in the order in which they are made."""

    def __init__(self, name: str, rounds: syntax.Expression, span: Span) -> None:
        self._name = name
        self._rounds = rounds
        self._span = span
        self._steps: list[syntax.Expression] = []
        self._done = 0
        self.known = True

    def collect(self, item: syntax.Statement, loop: syntax.ForStatement) -> None:
        """Note the steps of a statement of the body."""
        below = {name for one in syntax.direct_statements(item) for name in _changed(one)}
        own = [_step(part, self._name) for one in syntax.direct_expressions(item) for part in syntax.walk(one)]
        steps = [one for one in own if one is not None]
        conditional = isinstance(item, syntax.ForStatement | syntax.WhileStatement | syntax.IfStatement)
        if not steps:
            self.known = self.known and self._name not in below | _direct(item)
            return
        named = sum(
            isinstance(part, syntax.Name) and part.name == self._name
            for one in syntax.direct_expressions(item)
            for part in syntax.walk(one)
        )
        once = len(steps) == 1 and named == 1 and not conditional and not below
        self.known = self.known and once and not _in_branch(item, self._name) and _lasts(steps[0], loop)
        self._steps += steps

    def in_head(self, step: syntax.Expression | None, loop: syntax.ForStatement) -> syntax.Expression | None:
        """Note the step in the head of a loop, and return what else the head does."""
        if not isinstance(step, syntax.Comma):
            return step
        left = [one for one in step.items if _step(one, self._name) is None]
        found = [by for one in step.items if (by := _step(one, self._name)) is not None]
        unused = not any(self._name in syntax.names_in(one) for one in left)
        self.known = self.known and unused and all(_lasts(one, loop) for one in found)
        self._steps += found
        return left[0] if len(left) == 1 else replace(step, items=tuple(left))

    def total(self) -> syntax.Expression:
        """Return what all steps of a round add."""
        return self._sum(len(self._steps))

    def _sum(self, count: int) -> syntax.Expression:
        found: syntax.Expression = syntax.Constant("0", self._span)
        for number, one in enumerate(self._steps[:count]):
            found = syntax.Infix("+", found, one, self._span) if number else one
        return found

    def written_out(self, item: syntax.Statement) -> syntax.Statement:
        """Return a statement of the body in which the offset is what it was in front of the loop."""
        if isinstance(item, syntax.ExpressionStatement) and _step(item.expression, self._name) is not None:
            self._done += 1
            return syntax.Empty(item.span)
        before = self._done
        return self._all(item, lambda one: self._at(one, before))

    def _all(self, item: syntax.Statement, change: Change) -> syntax.Statement:
        return with_statements(with_expressions(item, change), lambda one: self._all(one, change))

    def _at(self, expression: syntax.Expression, done: int) -> syntax.Expression:
        if isinstance(expression, syntax.Name) and expression.name == self._name:
            return self._value(expression, done)
        if _step(expression, self._name) is not None:
            self._done += 1
            after = not isinstance(expression, syntax.Postfix)
            return self._value(syntax.Name(self._name, expression.span), done + after)
        return with_operands(expression, lambda one: self._at(one, done))

    def _value(self, name: syntax.Name, done: int) -> syntax.Expression:
        each = syntax.Infix("*", self._rounds, self.total(), name.span)
        value = syntax.Infix("+", name, each, name.span)
        return syntax.Infix("+", value, self._sum(done), name.span) if done else value


def _step(part: syntax.Expression, name: str) -> syntax.Expression | None:
    """Return what an expression adds to a variable, ``None`` for any other expression."""
    match part:
        case (
            syntax.Postfix(op=op, operand=syntax.Name(name=found))
            | syntax.Prefix(op="++" | "--" as op, operand=syntax.Name(name=found))
        ) if found == name:
            one = syntax.Constant("1", part.span)
            return one if op == "++" else syntax.Prefix("-", one, part.span)
        case syntax.Assignment(op="+=", target=syntax.Name(name=found), value=value) if found == name:
            return value
        case syntax.Assignment(op="-=", target=syntax.Name(name=found), value=value) if found == name:
            return syntax.Prefix("-", _long(value, part.span), part.span)
        case _:
            return None


def _in_branch(item: syntax.Statement, name: str) -> bool:
    """Say whether a variable is stepped in a part of an expression that may be left out."""
    return any(
        name in changed(later)
        for one in syntax.direct_expressions(item)
        for part in syntax.walk(one)
        for later in (
            [part.then, part.otherwise]
            if isinstance(part, syntax.Ternary)
            else [part.right]
            if isinstance(part, syntax.Infix) and part.op in ("&&", "||")
            else [],
        )
    )


def _direct(item: syntax.Statement) -> set[str]:
    return changed(syntax.direct_expressions(item))


def _changed(statement: syntax.Statement) -> set[str]:
    return changed(part for one in syntax.walk_statements(statement) for part in syntax.direct_expressions(one))


def _lasts(expression: syntax.Expression, around: syntax.Statement) -> bool:
    return _is_plain(expression, _changed(around) | {one.name for one in syntax.declarators_in(around)})


def _is_plain(expression: syntax.Expression, others: set[str]) -> bool:
    """Say whether an expression is made of scalars that are none of these names, and changes nothing."""
    scalars = (syntax.Name, syntax.Constant, syntax.Infix, syntax.Prefix, syntax.Conversion, syntax.Ternary)
    memory = any(isinstance(one, syntax.Prefix) and one.op in ("*", "&") for one in syntax.walk(expression))
    plain = all(isinstance(one, scalars) for one in syntax.walk(expression)) and not memory
    return plain and not changed([expression]) and syntax.names_in(expression).isdisjoint(others)


def _long(value: syntax.Expression, span: Span) -> syntax.Expression:
    return syntax.Conversion(syntax.TypeName(("long",), frozenset(), frozenset(), (), 0, False, span), value, span)
